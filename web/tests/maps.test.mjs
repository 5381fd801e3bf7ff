// Kernel maps and lists of captures: files that are no traces but tell of them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { cli, samples, scratch, shared } from "./environment.mjs";
import { accessibilityFaults, download, drop, launch } from "./harness.mjs";
import { PATIENCE, TEXTS, ZIP, accompanied, card, dropped, example, id, ofCli, ofPage, role, rows, sample, settled, showsOption, triaged, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const FORMAL = "mi300_vllm_decode_formal.json.gz";
const CAPTURE = "mi300_vllm_decode_capture.json.gz";
const MAP = "kernel_map.json";

// The page is drawn anew when something was made: a click in the middle of that may meet a button that is being replaced.
async function save(page, name) {
  await settled(page);
  return download(page, () => id(page, `artifact-${name}`).getByRole("button", { name: `Download ${name}` }).click());
}

/// The map that the command line exports of a trace.
async function exported(...options) {
  const file = path.join(scratch(), MAP);
  await promisify(execFile)(cli(), ["triage", ...options, "--export-map", file], { maxBuffer: 1 << 26 });
  return file;
}

/// Every artifact of the file that is shown, against those of the command line, byte for byte.
async function artifactsAre(page, wanted) {
  await view(page, "downloads");
  for (const name of TEXTS) {
    const { bytes } = await save(page, name);
    assert.equal(bytes.toString(), wanted(name).toString(), name);
  }
  const zip = await download(page, () => id(page, "artifact-zip").click());
  assert.ok(zip.bytes.equals(wanted(ZIP)), "the archive");
}

test("a kernel map is exported as the command line does, and one beside a trace is used as its --map is", async () => {
  const map = await exported(example());
  const session = await dropped(browser, [example()]);
  const { page } = session;
  await settled(page);
  await view(page, "downloads");
  const saved = await save(page, MAP);
  assert.ok(saved.bytes.equals(fs.readFileSync(map)), "the map");
  assert.equal(Number(await id(page, `artifact-${MAP}`).locator("[data-exact]").getAttribute("data-exact")), saved.bytes.length);
  await save(page, "kernel_table.json");
  assert.equal(await id(page, `artifact-${MAP}`).locator("[data-exact]").count(), 1, "what was made for the same options stays");

  await view(page, "triage");
  const alone = (await rows(page, "kernel-table")).map(ofPage);
  await drop(page, "body", [map]);
  await accompanied(page, 1);
  await showsOption(role(page, MAP), "Kernel map for example.json.gz");
  assert.match(await card(page, MAP).getByTestId("file-status").textContent(), /^Kernel map · \d+ kernels · /);
  assert.match(await id(page, "companion").textContent(), /^Kernel map.*kernel_map\.json.*maps kernels to ops and Python lines, by kernel name/);
  const table = await rows(page, "kernel-table");
  assert.ok(table.filter((row) => row.mapping_confidence === "mapping").length > 5, "what graphs launched ran without them, too");
  const wanted = await triaged(example(), "--map", map);
  // (The page shows the rows of all stages by their time.)
  assert.deepEqual(table.map(ofPage).sort(), JSON.parse(wanted("kernel_table.json")).map(ofCli).sort());
  await artifactsAre(page, wanted);

  await view(page, "triage");
  await role(page, MAP).selectOption({ label: "Not used" });
  await id(page, "companions").waitFor({ state: "detached" });
  await settled(page);
  assert.deepEqual((await rows(page, "kernel-table")).map(ofPage), alone);
  await session.close();
});

test("a map that came first waits for its trace, and says what it is meanwhile", async () => {
  const map = await exported(example());
  for (const [colorScheme, width] of [["light", 1280], ["dark", 400]]) {
    const session = await dropped(browser, [map], { colorScheme, viewport: { width, height: 800 } });
    const { page } = session;
    await id(page, "view-aside").getByRole("heading", { name: "Kernel map" }).waitFor(PATIENCE);
    assert.match(await id(page, "finding-line").textContent(), /^\d+ kernels; stages: extend\/prefill, decode\.$/);
    assert.equal(await id(page, "role").count(), 0, "there is no trace that it could tell of");
    assert.deepEqual(await accessibilityFaults(page), []);
    await drop(page, "body", [example()]);
    await id(page, "view-overview").waitFor(PATIENCE);
    await settled(page);
    await view(page, "triage");
    await accompanied(page, 1);
    await card(page, MAP).locator(".file-card-main").click();
    await id(page, "aside-use").getByText("Maps the kernels of example.json.gz").waitFor(PATIENCE);
    await session.close();
  }
});

test("a map that cannot be used says what is wrong with it and where", async () => {
  const good = fs.readFileSync(await exported(example()), "utf8");
  const folder = scratch();
  for (const [text, what, where] of [
    [good.replace('"version": 2', '"version": 1'), /version 1 is not supported; supported: 2/, /Where version/],
    [good.replace('"launches": ', '"launches": -'), /it is not a whole number/, /Where stages\.extend\.kernels\[.*\.sites\[0\]\.launches/],
    [good.slice(0, -9), /it is not JSON: EOF/, /Export the map again/],
  ]) {
    const file = path.join(folder, "wrong.json");
    fs.writeFileSync(file, text);
    const session = await dropped(browser, [file]);
    const failure = id(session.page, "failure");
    await failure.waitFor(PATIENCE);
    const said = await failure.textContent();
    assert.match(said, /This kernel map cannot be used/);
    assert.match(said, what);
    assert.match(said, where);
    assert.deepEqual(await accessibilityFaults(session.page), []);
    await session.close();
  }
});

test("where no op is known there is no map to export", async () => {
  const file = path.join(scratch(), "bare.json");
  fs.writeFileSync(file, JSON.stringify({ traceEvents: [{ ph: "X", cat: "kernel", name: "k", pid: 0, tid: 7, ts: 1, dur: 2, args: { device: 0, stream: 7 } }] }));
  const session = await dropped(browser, [file]);
  await settled(session.page);
  await view(session.page, "downloads");
  assert.equal(await id(session.page, "artifact-kernel_table.json").count(), 1);
  assert.equal(await id(session.page, `artifact-${MAP}`).count(), 0);
  await session.close();
});

describe("with real traces", { skip: shared() === undefined }, () => {
  test("the artifacts of a pair with a capture are the command line's, and so is its kernel map", async () => {
    const session = await dropped(browser, [sample(FORMAL), sample(CAPTURE)]);
    const { page } = session;
    await view(page, "triage");
    await accompanied(page, 1);
    const beside = [sample(FORMAL), "--capture", sample(CAPTURE)];
    await artifactsAre(page, await triaged(...beside));
    const map = await exported(...beside);
    const { bytes } = await save(page, MAP);
    assert.ok(bytes.equals(fs.readFileSync(map)), "the map");
    await session.close();

    const alone = await dropped(browser, [sample(FORMAL), map]);
    await view(alone.page, "triage");
    await accompanied(alone.page, 1);
    await showsOption(role(alone.page, MAP), `Kernel map for ${FORMAL}`);
    assert.match(await id(alone.page, "view-triage").textContent(), /421 of them map to ops/);
    await artifactsAre(alone.page, await triaged(sample(FORMAL), "--map", map));
    await alone.close();
  });

  test("the artifacts of a pair with a mapping trace are the command line's", async () => {
    const [formal, mapping] = ["mi300_sglang_decode_formal", "mi300_sglang_prefilldecode"].map((name) => sample(`${name}.json.gz`));
    const session = await dropped(browser, [formal, mapping]);
    const { page } = session;
    await settled(page);
    await role(page, path.basename(mapping)).selectOption({ label: `Mapping trace for ${path.basename(formal)}` });
    await view(page, "triage");
    await accompanied(page, 1);
    await artifactsAre(page, await triaged(formal, "--mapping", mapping));
    await session.close();
  });

  test("a list of captures says of which batch each is, in the words of the command line", async () => {
    const folder = scratch();
    const capture = path.join(folder, "bs_32_rank0.json.gz");
    const list = path.join(folder, "execution_details.json");
    fs.copyFileSync(sample(CAPTURE), capture);
    fs.copyFileSync(samples("not-traces").find((file) => path.basename(file) === "execution_details.json"), list);
    const session = await dropped(browser, [sample(FORMAL), capture]);
    const { page } = session;
    await view(page, "triage");
    await accompanied(page, 1);
    const note = (text) => id(page, "view-triage").getByText(text).first().waitFor(PATIENCE);
    await note("Captures used: bs_32_rank0.json.gz (batch 32) for 1 graph launch.");
    await drop(page, "body", [list]);
    await note("Captures used: bs_32_rank0.json.gz (FULL, batch 32) for 1 graph launch.");
    assert.equal(await id(page, "companion-graph").textContent(), "FULL, batch 32");
    assert.match(await card(page, "execution_details.json").getByTestId("file-status").textContent(), /^List of captures · 1 capture · /);
    await settled(page);
    await artifactsAre(page, await triaged(sample(FORMAL), "--capture", capture));
    await card(page, "execution_details.json").locator(".file-card-main").click();
    assert.match(await id(page, "aside-capture").textContent(), /bs_32_rank0\.json\.gz.*FULL, batch 32.*loaded as capture/);
    assert.deepEqual(await accessibilityFaults(page), []);
    await session.close();
  });
});

describe("two captures with the same kernels", () => {
  const event = (cat, name, ts, dur, args = {}) => ({ ph: "X", cat, name, pid: 1, tid: 1, ts, dur, args });
  const write = (folder, name, events) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, JSON.stringify({ traceEvents: events }));
    return file;
  };
  const capture = (folder, name, op) => write(folder, name, [
    event("cuda_runtime", "hipStreamBeginCapture", 1, 0.5),
    event("cpu_op", op, 2, 6, { "External id": 5 }),
    event("cuda_runtime", "hipLaunchKernel", 3, 1, { correlation: 9, "External id": 5, kernel: "gemm" }),
    event("cuda_runtime", "hipStreamEndCapture", 9, 0.5),
  ]);

  test("are told apart by the batch size of the list beside them", async () => {
    const folder = scratch();
    const formal = write(folder, "formal.json", [
      event("user_annotation", "execute_context_0(0)_generation_2(2)", 0, 50),
      event("cuda_runtime", "hipGraphLaunch", 1, 2, { correlation: 1 }),
      { ...event("kernel", "gemm", 10, 5, { stream: 7, device: 0, correlation: 1 }), pid: 0, tid: 7 },
    ]);
    fs.mkdirSync(path.join(folder, "captures"));
    const captures = [["bs_8.json", "op::eight"], ["bs_2.json", "op::two"]].map(([name, op]) => capture(path.join(folder, "captures"), name, op));
    const list = path.join(folder, "captures", "execution_details.json");
    const written = (text) => { fs.writeFileSync(list, text); return list; };
    written(JSON.stringify([{ file: "bs_8.json", batch_size: 8, mode: "FULL" }, { file: "bs_2.json", batch_size: 2, mode: "PIECEWISE" }]));

    const session = await dropped(browser, [formal, ...captures, list]);
    const { page } = session;
    await view(page, "triage");
    await accompanied(page, 2);
    const words = "Captures used: bs_2.json (PIECEWISE, batch 2) for 1 graph launch.";
    await id(page, "view-triage").getByText(words).first().waitFor(PATIENCE);
    const table = await rows(page, "kernel-table");
    assert.deepEqual(table.map((row) => row.cpu_op), ["op::two"]);
    const options = [formal, "--capture", ...captures];
    const wanted = await triaged(...options);
    assert.deepEqual(table.map(ofPage), JSON.parse(wanted("kernel_table.json")).map(ofCli));
    assert.ok(wanted("profile_summary.md").toString().replaceAll("\\", "").includes(words), "the command line says the same");
    await artifactsAre(page, wanted);

    // Without the list there is nothing to choose by, and the first capture is taken.
    await view(page, "triage");
    await card(page, "execution_details.json").getByTestId("remove").click();
    await id(page, "view-triage").getByText("Captures used: bs_8.json for 1 graph launch.").first().waitFor(PATIENCE);
    await settled(page);
    fs.rmSync(list);
    const first = await triaged(...options);
    await view(page, "downloads");
    // (Not all of them again: after ten downloads of one page Chromium asks the person first.)
    for (const name of ["profile_summary.md", "kernel_table.json"]) {
      assert.equal((await save(page, name)).bytes.toString(), first(name).toString(), name);
    }
    await view(page, "triage");
    assert.deepEqual((await rows(page, "kernel-table")).map((row) => row.cpu_op), ["op::eight"]);
    await session.close();
  });
});
