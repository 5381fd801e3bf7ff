// The artifacts on the page: their bytes are the command line's, whatever the options; the form is held to the same checks.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { cli, scratch, shared } from "./environment.mjs";
import { accessibilityFaults, download, drop, launch, open } from "./harness.mjs";
import { PATIENCE, TEXTS, TRACE, ZIP, example, id, sample, triaged } from "./page.mjs";

const REPORTS = ["report.md", "report.json", "report.html"];

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());


async function opened(file, options) {
  const session = await open(browser, { copied: false, ...options });
  const { page } = session;
  await drop(page, "body", file);
  await page.waitForFunction(() => /: ready, /.test(document.querySelector("[data-testid=status]")?.textContent ?? ""), null, PATIENCE);
  await id(page, "nav-downloads").click();
  await id(page, "downloads").waitFor(PATIENCE);
  return session;
}

/// Opens the parts of the view that are folded.
async function unfold(page) {
  for (const name of ["download-options", "facts"]) {
    if (!await id(page, name).evaluate((part) => part.open)) await id(page, name).locator("summary").click();
  }
}

const save = (page, name) => download(page, () => id(page, `artifact-${name}`).getByRole("button", { name: `Download ${name}` }).click());
const saveZip = (page) => download(page, () => id(page, "artifact-zip").click());
const sizeOf = async (page, name) => Number(await id(page, `artifact-${name}`).locator("[data-exact]").getAttribute("data-exact", PATIENCE));

test("the report is the command line's in each form, byte for byte", async () => {
  const folder = scratch();
  const at = (name) => path.join(folder, name);
  const outputs = REPORTS.flatMap((name) => [`--${name.split(".")[1]}-out`, at(name)]);
  execFileSync(cli(), ["report", "--cpu-trace", example(), ...outputs]);
  const session = await opened(example());
  for (const name of REPORTS) {
    const saved = await save(session.page, name);
    assert.ok(saved.bytes.equals(fs.readFileSync(at(name))), name);
  }
  // The page that it writes has no script, loads nothing, and is readable without sight.
  const context = await browser.newContext({ viewport: { width: 400, height: 800 } });
  const report = await context.newPage();
  const asked = [];
  report.on("request", (request) => asked.push(request.url()));
  await report.goto(`file://${at("report.html")}`);
  // (Firefox does not tell of the file itself.)
  assert.deepEqual(asked.filter((url) => url !== report.url()), []);
  assert.deepEqual(await accessibilityFaults(report), []);
  assert.ok(await report.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is cut at 400 px");
  await context.close();
  await session.close();
});

describe("artifacts", { skip: shared() === undefined }, () => {
  test("the archive and every file in it are the command line's, byte for byte", async () => {
    const file = sample("mi300_resnet_training.json.gz");
    const wanted = await triaged(file);
    const session = await opened(file);
    const { page } = session;
    const zip = await saveZip(page);
    assert.equal(zip.name, ZIP);
    assert.ok(zip.bytes.equals(wanted(ZIP)), "the archive");
    for (const name of [...TEXTS, TRACE]) {
      assert.equal(await sizeOf(page, name), wanted(name).length, `${name}: the size that is shown`);
      const saved = await save(page, name);
      assert.ok(saved.bytes.equals(wanted(name)), name);
    }
    await session.close();
  });

  test("a stage, a cut-off, facts, launch flags and a benchmark's configuration go into them", async () => {
    const file = sample("mi300_resnet_training.json.gz");
    const folder = scratch();
    const written = (name, text) => {
      fs.writeFileSync(path.join(folder, name), text);
      return path.join(folder, name);
    };
    const flags = written("server_args.json", '{"model_path": "/home/jo/m", "tp_size": 8, "mem_fraction_static": 0.8499999999999999, "api_key": "k", "x": 1.0}');
    const config = written("bench.json", '{"b": [1, 2.5], "a": null}');
    const facts = written("facts.json", '{"trial_id": "17", "gpu_device_ids": [4, 5], "gpu_clocks_mhz": {"4": 2100, "5": 1950.5}, "preflight_passed": true, "resource_class": "multi-gpu", "base_image": "rocm/pytorch:1 \\"x\\""}');
    const wanted = await triaged(file, "--stage", "backward", "--cutoff", "0.2", "--keep-names", "--count-before-window", "--target-arch", "gfx950", "--facts", facts, "--server-args", flags, "--benchmark-config", config);

    const session = await opened(file);
    const { page } = session;
    await id(page, "stage-backward").click();
    await unfold(page);
    await id(page, "fact-cutoff").fill("0.2");
    await id(page, "keep-names").check();
    await id(page, "count-before-window").check();
    for (const [key, text] of [["trial_id", "17"], ["gpu_device_ids", "4, 5"], ["gpu_clocks_mhz", "4: 2100, 5: 1950.5"], ["base_image", 'rocm/pytorch:1 "x"'], ["target_arch", "gfx950"]]) {
      await id(page, `fact-${key}`).fill(text);
    }
    await id(page, "fact-preflight_passed").selectOption("yes");
    await id(page, "fact-resource_class").selectOption("multi-gpu");
    await id(page, "choose-benchmark-config").setInputFiles(config);
    await page.waitForFunction(() => document.querySelector("[data-testid=fact-benchmark_config_hash]").value.startsWith("sha256:"));
    await id(page, "choose-server-args").setInputFiles(flags);
    await id(page, "server-args-state").waitFor(PATIENCE);
    for (const name of TEXTS) {
      const saved = await save(page, name);
      assert.equal(saved.bytes.toString(), wanted(name).toString(), name);
    }
    assert.ok((await saveZip(page)).bytes.equals(wanted(ZIP)), "the archive");
    await session.close();
  });

  test("progress is shown while the repaired trace is written, and the file's other views stay", async () => {
    const session = await opened(sample("mi300_xdit_sd35.json.gz"));
    const { page } = session;
    const saving = saveZip(page);
    await id(page, "making").getByText(/Writing the repaired file \d+%/).waitFor(PATIENCE);
    assert.ok((await saving).bytes.length > 1e6);
    await id(page, "nav-overview").click();
    await id(page, "figure-kernels").waitFor(PATIENCE);
    await session.close();
  });
});

const SMALL = {
  name: "small.json",
  mimeType: "application/json",
  buffer: Buffer.from(JSON.stringify({
    host_name: "node7.cluster",
    traceEvents: [{ ph: "X", cat: "kernel", name: "k", pid: 0, tid: 7, ts: 1, dur: 2, args: { device: 0, stream: 7 } }],
  })),
};

async function small(options) {
  const session = await open(browser, options);
  const { page } = session;
  await id(page, "file-input").setInputFiles(SMALL);
  await id(page, "nav-downloads").click();
  await id(page, "downloads").waitFor(PATIENCE);
  return session;
}

test("what cannot be is said at its field, and nothing is written until it is mended", async () => {
  const session = await small();
  const { page } = session;
  await unfold(page);
  const target = id(page, "fact-target_arch");
  await target.fill("MI355X");
  const error = page.locator("#fact-target_arch-help");
  await error.getByText("gfx950").waitFor(PATIENCE);
  assert.equal(await target.getAttribute("aria-invalid"), "true");
  assert.equal(await target.getAttribute("aria-describedby"), "fact-target_arch-help");
  assert.ok(await id(page, "artifact-zip").isDisabled());
  await id(page, "downloads-locked").getByText("Target architecture").waitFor(PATIENCE);
  assert.deepEqual(await accessibilityFaults(page), []);

  await target.fill("gfx950");
  const { bytes } = await save(page, "profile_metadata.json");
  assert.equal(JSON.parse(bytes).target_arch, "gfx950");
  await id(page, "choose-server-args").setInputFiles({ name: "server_args.json", mimeType: "application/json", buffer: Buffer.from("[]") });
  await page.getByText("it is not a JSON object").waitFor(PATIENCE);
  await page.getByRole("button", { name: "Remove the launch flags" }).click();
  await save(page, "kernel_table.json");
  await session.close();
});

test("facts are kept between visits only if that is wanted, and launch flags never", async () => {
  const session = await small();
  const { page } = session;
  const kept = () => page.evaluate(() => JSON.stringify(localStorage));
  await unfold(page);
  await id(page, "fact-trial_id").fill("trial-4711");
  await id(page, "choose-server-args").setInputFiles({ name: "server_args.json", mimeType: "application/json", buffer: Buffer.from('{"api_key": "geheim"}') });
  await id(page, "server-args-state").waitFor(PATIENCE);
  assert.ok(!(await kept()).includes("trial-4711"));
  await id(page, "facts-remember").check();
  await page.waitForFunction(() => JSON.stringify(localStorage).includes("trial-4711"));
  assert.ok(!(await kept()).includes("geheim"));

  await page.reload();
  await id(page, "file-input").setInputFiles(SMALL);
  await id(page, "downloads").waitFor(PATIENCE);
  assert.ok(await id(page, "fact-trial_id").isVisible(), "open where something is filled in");
  assert.equal(await id(page, "fact-trial_id").inputValue(), "trial-4711");
  assert.equal(await id(page, "server-args-state").count(), 0);
  await id(page, "facts-remember").uncheck();
  await page.waitForFunction(() => !JSON.stringify(localStorage).includes("trial-4711"));
  await session.close();
});

for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 400]]) {
  test(`accessible in ${scheme}, ${width} px wide`, async () => {
    const session = await small({ colorScheme: scheme, viewport: { width, height: 800 } });
    const { page } = session;
    await save(page, "profile_summary.md");
    assert.ok(!await id(page, "fact-trial_id").isVisible(), "the form is folded at first");
    assert.deepEqual(await accessibilityFaults(page), []);
    await unfold(page);
    assert.deepEqual(await accessibilityFaults(page), []);
    const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
    assert.ok(scroll <= inner, `scrolls sideways: ${scroll} > ${inner}`);
    await session.close();
  });
}
