// Several files that belong together: a capture and a mapping trace tell where kernels come from, two runs are compared.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { samples, scratch, shared } from "./environment.mjs";
import { accessibilityFaults, drop, launch } from "./harness.mjs";
import { PATIENCE, accompanied, card, dropped as droppedIn, id, ofCli, ofPage, role, rows, sample, settled, showsOption, triaged, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const FORMAL = "mi300_vllm_decode_formal.json.gz";
const CAPTURE = "mi300_vllm_decode_capture.json.gz";

const dropped = (files, options) => droppedIn(browser, files, options);

/// The kernel table that the command line writes of the same files.
const kernelTable = async (...options) => JSON.parse((await triaged(...options))("kernel_table.json"));

const ns = (us) => Math.round(us * 1000);

describe("a pair", { skip: shared() === undefined }, () => {
  test("a capture is known for one, and every replayed kernel gets its op and its line", async () => {
    const session = await dropped([sample(CAPTURE), sample(FORMAL)]);
    const { page } = session;
    await page.waitForSelector("[data-testid=role]", PATIENCE);
    await view(page, "triage");
    await accompanied(page, 1);
    await showsOption(role(page, CAPTURE), `Capture for ${FORMAL}`);
    assert.equal(await role(page, FORMAL).count(), 0, "what has a companion is none itself");
    assert.equal(await card(page, FORMAL).locator("[aria-pressed=true]").count(), 1, "the measured trace is shown, whichever was first");

    const table = await rows(page, "kernel-table");
    const replayed = table.filter((row) => row.mapping_confidence === "replay");
    assert.equal(replayed.reduce((n, row) => n + Number(row.launches), 0), 421);
    for (const row of replayed) {
      assert.match(row.python_location, /^\S+\.py:\d+ \S+$/, row.kernel_name);
      assert.ok(row.cpu_op && !row.cpu_op.startsWith("hip"), row.kernel_name);
    }
    assert.deepEqual(table.map(ofPage), (await kernelTable(sample(FORMAL), "--capture", sample(CAPTURE))).map(ofCli));
    await session.close();
  });

  test("the role is changed on the card and back, and triage follows", async () => {
    const session = await dropped([sample(FORMAL)]);
    const { page } = session;
    await settled(page);
    assert.equal(await id(page, "role").count(), 0, "one file has no part to play");
    await view(page, "triage");
    const sure = async () => new Set((await rows(page, "kernel-table")).map((row) => row.mapping_confidence));
    assert.ok(!(await sure()).has("replay"));

    await drop(page, "body", sample(CAPTURE));
    await accompanied(page, 1);
    assert.equal(await card(page, FORMAL).locator("[aria-pressed=true]").count(), 1, "a companion that comes later does not push itself forward");
    assert.ok((await sure()).has("replay"));
    const told = (await rows(page, "kernel-table")).map(ofPage);

    await role(page, CAPTURE).selectOption({ label: "Measured trace" });
    await id(page, "companions").waitFor({ state: "detached" });
    await settled(page);
    assert.ok(!(await sure()).has("replay"));
    await role(page, CAPTURE).selectOption({ label: `Mapping trace for ${FORMAL}` });
    await accompanied(page, 1);
    assert.ok(!(await sure()).has("replay"));
    await role(page, CAPTURE).selectOption({ label: `Capture for ${FORMAL}` });
    await accompanied(page, 1);
    assert.deepEqual((await rows(page, "kernel-table")).map(ofPage), told);

    await card(page, CAPTURE).getByTestId("remove").click();
    await id(page, "companions").waitFor({ state: "detached" });
    await settled(page);
    assert.ok(!(await sure()).has("replay"), "a closed file tells nothing any more");
    await session.close();
  });

  test("each of several measured traces has its own capture, and a file that is stopped keeps it", async () => {
    const names = ["sglang", "vllm"].flatMap((kind) => ["capture", "formal"].map((part) => `mi300_${kind}_decode_${part}.json.gz`));
    const session = await dropped(names.map(sample));
    const { page } = session;
    await page.waitForFunction(() => document.querySelectorAll("[data-testid=role]").length >= 2, null, PATIENCE);
    await settled(page);
    for (const [kind, n] of [["vllm", 421], ["sglang", 544]]) {
      const formal = `mi300_${kind}_decode_formal.json.gz`;
      await showsOption(role(page, `mi300_${kind}_decode_capture.json.gz`), `Capture for ${formal}`);
      const mapped = async () => {
        await card(page, formal).locator(".file-card-main").click();
        await view(page, "triage");
        await accompanied(page, 1);
        const replayed = (await rows(page, "kernel-table")).filter((row) => row.mapping_confidence === "replay");
        return replayed.reduce((sum, row) => sum + Number(row.launches), 0);
      };
      assert.equal(await mapped(), n, kind);
    }
    await session.close();
  });

  test("a companion that cannot be read is a card, and the job lives", async () => {
    const folder = scratch();
    const copy = path.join(folder, "capture.json.gz");
    fs.copyFileSync(sample(CAPTURE), copy);
    const session = await dropped([sample(FORMAL), copy, samples("not-traces").find((file) => file.includes("execution_trace"))]);
    const { page } = session;
    await settled(page);
    await view(page, "triage");
    await accompanied(page, 1);
    assert.equal(await page.locator(".file-card.failed").count(), 1, "what is no trace fails on its own card");
    const told = (await rows(page, "kernel-table")).map(ofPage);

    await role(page, "capture.json.gz").selectOption({ label: "Measured trace" });
    await id(page, "companions").waitFor({ state: "detached" });
    await settled(page);
    // (A file that is only changed is still read by Firefox.)
    fs.rmSync(copy);
    await role(page, "capture.json.gz").selectOption({ label: `Capture for ${FORMAL}` });
    const failure = id(page, "failure");
    await failure.waitFor(PATIENCE);
    assert.match(await failure.textContent(), /can no longer be read[^]*capture\.json\.gz/);
    await settled(page);
    assert.equal(await card(page, FORMAL).locator(".failed").count(), 0);
    const alone = await rows(page, "kernel-table");
    assert.equal(alone.length, told.length);
    assert.ok(alone.every((row) => row.mapping_confidence !== "replay"));
    assert.deepEqual(await accessibilityFaults(page), []);
    await failure.getByRole("button", { name: "Try again" }).click();
    await failure.waitFor(PATIENCE);
    await session.close();
  });
});

describe("a mapping trace", () => {
  const event = (cat, name, pid, ts, dur, args) => ({ ph: "X", cat, name, pid, tid: pid === 0 ? 7 : 1, ts, dur, args });
  const kernels = ["void gemm<1>(int)", "void norm<1>(int)", "rope_kernel"];
  const write = (folder, name, events) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, JSON.stringify({ traceEvents: events }));
    return file;
  };

  test("tells by names what the graph of the other does not", async () => {
    const folder = scratch();
    const formal = write(folder, "formal.json", [
      event("cuda_runtime", "cudaGraphLaunch", 1, 1, 2, { correlation: 1 }),
      ...kernels.map((name, at) => event("kernel", name, 0, 10 + at * 10, 5, { stream: 7, device: 0, correlation: 1 })),
    ]);
    const mapping = write(folder, "mapping.json", kernels.flatMap((name, at) => [
      event("cpu_op", `my::op${at}`, 1, 100 * at, 50, { "External id": at + 1 }),
      event("cuda_runtime", "cudaLaunchKernel", 1, 100 * at + 5, 2, { correlation: at + 1, "External id": at + 1 }),
      event("kernel", name, 0, 100 * at + 20, 10, { stream: 7, device: 0, correlation: at + 1, "External id": at + 1 }),
    ]));
    const session = await dropped([mapping, formal]);
    const { page } = session;
    const question = card(page, "mapping.json").getByTestId("role-question");
    await question.waitFor(PATIENCE);
    assert.match(await question.textContent(), /^Compare these runs, or use this file as the mapping trace of formal\.json\?/);
    assert.equal(await id(page, "role-question").count(), 1);
    await settled(page);
    assert.equal(await id(page, "companions").count(), 0, "nothing is taken for a mapping unasked");
    assert.deepEqual(await accessibilityFaults(page), []);
    await question.getByTestId("answer-mapping").click();
    await card(page, "formal.json").locator(".file-card-main").click();
    await view(page, "triage");
    await accompanied(page, 1);
    assert.equal(await id(page, "role-question").count(), 0);
    await showsOption(role(page, "mapping.json"), "Mapping trace for formal.json");
    assert.equal(await page.locator(".companion.read").count(), 1);
    const table = await rows(page, "kernel-table");
    assert.deepEqual(table.map((row) => [row.cpu_op, row.mapping_confidence]).sort(), [0, 1, 2].map((at) => [`my::op${at}`, "mapping"]));
    await session.close();
  });

  test("may as well be compared, and the question says so", async () => {
    const folder = scratch();
    const launch = event("cuda_runtime", "cudaGraphLaunch", 1, 1, 2, { correlation: 1 });
    const replayed = kernels.map((name, at) => event("kernel", name, 0, 10 + at * 10, 5, { stream: 7, device: 0, correlation: 1 }));
    const formal = write(folder, "formal.json", [launch, ...replayed]);
    const other = write(folder, "other.json", kernels.flatMap((name, at) => [
      event("cpu_op", `my::op${at}`, 1, 100 * at, 50, { "External id": at + 1 }),
      event("kernel", name, 0, 100 * at + 20, 10, { stream: 7, device: 0, correlation: at + 1 }),
    ]));
    const session = await dropped([other, formal]);
    const { page } = session;
    await card(page, "other.json").getByTestId("answer-compare").click(PATIENCE);
    await id(page, "guard").waitFor(PATIENCE);
    assert.equal(await id(page, "role-question").count(), 0);
    assert.equal(await card(page, "formal.json").locator("[aria-pressed=true]").count(), 1);
    await session.close();
  });

  test("that maps no kernel gets no check, but the reason", async () => {
    const folder = scratch();
    const formal = write(folder, "formal.json", [
      event("cuda_runtime", "cudaGraphLaunch", 1, 1, 2, { correlation: 1 }),
      event("kernel", "one_kernel", 0, 10, 5, { stream: 7, device: 0, correlation: 1 }),
    ]);
    const mapping = write(folder, "mapping.json", [
      event("cpu_op", "my::op", 1, 1, 50, { "External id": 1 }),
      event("kernel", "another_kernel", 0, 20, 10, { stream: 7, device: 0, correlation: 1 }),
    ]);
    const session = await dropped([formal, mapping]);
    const { page } = session;
    await settled(page);
    await role(page, "mapping.json").selectOption({ label: "Mapping trace for formal.json" });
    await card(page, "formal.json").locator(".file-card-main").click();
    await view(page, "triage");
    await page.waitForSelector(".companion.unused", PATIENCE);
    assert.match(await id(page, "companion").textContent(), /maps no kernel: it has no op or Python line for any kernel name of this trace/);
    assert.equal(await page.locator(".companion.read").count(), 0);
    await session.close();
  });
});

describe("two runs", { skip: shared() === undefined }, () => {
  const A = "mi300_qwen15_0.5b.json.gz";
  const B = "h100_qwen15_0.5b.json.gz";

  /// Time by kernel name, as the command line's table has it.
  const totals = (table) => {
    const sums = new Map();
    for (const row of table) sums.set(row.kernel_name, (sums.get(row.kernel_name) ?? 0) + ns(row.total_us));
    return sums;
  };

  async function compared(page, a, b) {
    await card(page, a).locator(".file-card-main").click();
    await view(page, "compare");
    // With two runs open it is the other one already.
    await showsOption(id(page, "compare-with"), b);
    await id(page, "guard").waitFor(PATIENCE);
  }

  test("of different hardware are not comparable, and are shown below that banner", async () => {
    const session = await dropped([sample(A), sample(B)]);
    const { page } = session;
    await settled(page);
    await compared(page, A, B);
    assert.match(await id(page, "guard-banner").textContent(), /^Not comparable as a measurement of a change: this compares hardware and software \(.*GPU architecture/);
    const reasons = await id(page, "guard-reason").allTextContents();
    assert.ok(reasons.some((text) => /^GPU architectureA gfx942B sm_90$/.test(text)), reasons.join("\n"));
    const order = await page.evaluate(() => {
      const banner = document.querySelector("[data-testid=guard]");
      const tables = [...document.querySelectorAll("[data-testid^=table-compare]")];
      return tables.every((table) => banner.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING);
    });
    assert.ok(order, "the banner comes first");

    const [a, b] = [totals(await kernelTable(sample(A))), totals(await kernelTable(sample(B)))];
    const table = await rows(page, "compare-kernels");
    const seen = { a: 0, b: 0 };
    for (const row of table) {
      const [left, right] = [Number(row.a_total_ns), Number(row.b_total_ns)];
      assert.equal(Number(row.delta_ns), right - left, row.name);
      if (row.presence !== "similar name") {
        assert.deepEqual([left, right], [a.get(row.name) ?? 0, b.get(row.name) ?? 0], row.name);
        assert.equal(row.presence, a.has(row.name) ? b.has(row.name) ? "matched" : "only A" : "only B");
      }
      seen.a += left;
      seen.b += right;
    }
    const sum = (sums) => [...sums.values()].reduce((x, y) => x + y, 0);
    assert.deepEqual(seen, { a: sum(a), b: sum(b) }, "nothing is left out");
    assert.equal(await page.evaluate(() => location.hash), "#v=1&view=compare", "the address says nothing of the traces");
    for (const name of ["stages", "categories", "fuse"]) assert.equal(await id(page, `table-compare-${name}`).count(), 1, name);
    await showsOption(role(page, B), "Measured trace");
    await session.close();
  });

  test("that are the same file twice differ in nothing", async () => {
    const copy = path.join(scratch(), "again.json.gz");
    fs.copyFileSync(sample(A), copy);
    const session = await dropped([sample(A), copy]);
    const { page } = session;
    await settled(page);
    await compared(page, A, "again.json.gz");
    assert.match(await id(page, "guard-banner").textContent(), /^Conditionally comparable: .*benchmark configuration/);
    for (const row of await rows(page, "compare-kernels")) assert.deepEqual([row.presence, row.delta_ns], ["matched", "0"], JSON.stringify(row));

    await card(page, "again.json.gz").getByTestId("remove").click();
    await id(page, "compare-alone").waitFor(PATIENCE);
    await session.close();
  });

  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 400]]) {
    test(`accessible in ${scheme}, ${width} px wide`, async () => {
      const session = await dropped([sample(A), sample(B)], { colorScheme: scheme, viewport: { width, height: 800 } });
      const { page } = session;
      await settled(page);
      await compared(page, A, B);
      await rows(page, "compare-kernels");
      assert.deepEqual(await accessibilityFaults(page), []);
      const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
      assert.ok(scroll <= inner, `scrolls sideways: ${scroll} > ${inner}`);
      await session.close();
    });
  }
});

test("launch flags beside a trace are taken, and are no trace", async () => {
  const file = path.join(scratch(), "server_args.json");
  fs.writeFileSync(file, JSON.stringify({ model_path: "m", tp_size: 2 }));
  const session = await dropped([file]);
  await session.page.waitForFunction(() => /launch flags/.test(document.querySelector("[data-testid=announcement]").textContent));
  assert.equal(await id(session.page, "file-card").count(), 0);
  await session.close();
});
