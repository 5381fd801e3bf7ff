// Triage on the page: its figures against a plain sum over the file, its stages, the details of a row.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { samples, shared } from "./environment.mjs";
import { accessibilityFaults, drop, launch, open } from "./harness.mjs";
import { PATIENCE, id, rows, view } from "./page.mjs";
import { readTrace, textOf } from "./reference.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const sample = (name) => samples("traces").find((file) => path.basename(file) === name);
const hash = (page) => page.evaluate(() => location.hash);

async function opened(name, options) {
  const session = await open(browser, options);
  const { page } = session;
  await session.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await drop(page, "body", sample(name));
  await page.waitForFunction(() => /: ready, /.test(document.querySelector("[data-testid=status]")?.textContent ?? ""), null, PATIENCE);
  return session;
}

/// Launches and nanoseconds of every kernel and copy of a file, by name.
function sums(file) {
  const byName = new Map();
  for (const event of readTrace(textOf(file)).events) {
    if (event?.ph !== "X" || !["kernel", "gpu_memcpy", "gpu_memset"].includes(event.cat)) continue;
    const sum = byName.get(event.name) ?? { launches: 0, ns: 0 };
    sum.launches += 1;
    sum.ns += Number(event.dur);
    byName.set(event.name, sum);
  }
  return byName;
}

describe("triage", { skip: shared() === undefined }, () => {
  test("every kernel's launches and time are those of the file, and it has its line of Python", async () => {
    const session = await opened("mi300_sglang_prefilldecode.json.gz");
    const { page } = session;
    await view(page, "triage");
    const table = await rows(page, "kernel-table");
    const wanted = sums(sample("mi300_sglang_prefilldecode.json.gz"));
    assert.equal(table.length, wanted.size);
    for (const row of table) {
      const { launches, ns } = wanted.get(row.kernel_name);
      assert.deepEqual([Number(row.launches), Number(row.total_ns)], [launches, ns], row.kernel_name);
      // A few kernels are launched by Python itself, without an op.
      assert.equal(row.mapping_confidence, row.cpu_op.startsWith("hip") ? "launch" : "exact", row.kernel_name);
    }
    assert.match(table[0].python_location, /^sglang\/srt\/layers\/quantization\/unquant\.py:\d+ apply$/);
    assert.ok(!("stage" in table[0]), "all rows are of one stage, so no column says it");
    assert.equal(await id(page, "stages").count(), 0, "one stage leaves nothing to choose");
    await session.close();
  });

  test("a stage holds for all three views and stands in the address", async () => {
    const session = await opened("mi300_resnet_training.json.gz");
    const { page } = session;
    await view(page, "triage");
    const stages = await rows(page, "stages");
    const all = await rows(page, "kernel-table");
    assert.deepEqual(stages.map((row) => row.stage), ["forward", "backward", "optimizer"]);
    for (const { stage, n_slices: n, total_ns: ns } of stages) {
      const sum = (key) => all.filter((row) => row.stage === stage).reduce((sum, row) => sum + Number(row[key]), 0);
      assert.deepEqual([sum("launches"), sum("total_ns")], [Number(n), Number(ns)], stage);
    }

    await id(page, "stage-backward").click();
    await page.waitForFunction(() => location.hash === "#v=1&view=triage&stage=backward");
    const backward = await rows(page, "kernel-table");
    assert.deepEqual(backward.map((row) => row.kernel_name), all.filter((row) => row.stage === "backward").map((row) => row.kernel_name));
    for (const name of ["overlap", "fuse"]) {
      await view(page, name);
      assert.equal(await id(page, "stage-backward").getAttribute("aria-pressed"), "true");
      assert.equal(await hash(page), `#v=1&view=${name}&stage=backward`);
    }
    await id(page, "stages-all").click();
    await page.waitForFunction(() => location.hash === "#v=1&view=fuse");
    await page.goBack();
    await id(page, "view-overlap").waitFor(PATIENCE);
    assert.equal(await id(page, "stage-backward").getAttribute("aria-pressed"), "true", "the address of that time had a stage");
    await session.close();
  });

  test("a row in full by keyboard, and back", async () => {
    const session = await opened("mi300_sglang_prefilldecode.json.gz");
    const { page } = session;
    await view(page, "triage");
    const grid = id(page, "table-kernel-table").getByRole("grid");
    await grid.focus();
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    const panel = id(page, "details-kernel-table");
    await panel.waitFor(PATIENCE);
    const entries = await panel.locator("dl > div").evaluateAll((items) => Object.fromEntries(items.map((item) => [...item.children].map((child) => child.textContent))));
    const second = (await rows(page, "kernel-table"))[1];
    assert.equal(entries.Kernel, second.kernel_name, "the whole name");
    assert.equal(entries.Python, second.python_location);
    assert.equal(entries.Op, second.cpu_op);
    assert.equal(entries["How sure"], "exact: by the file's ids");
    assert.deepEqual(await accessibilityFaults(page), []);

    await grid.focus();
    const onPanel = () => panel.evaluate((element) => element === document.activeElement);
    for (let n = 0; n < 40 && !await onPanel(); n += 1) await page.keyboard.press("Tab");
    assert.ok(await onPanel(), "the panel is reached by Tab");
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    assert.ok(await grid.evaluate((element) => element === document.activeElement), "the focus is back on the table");
    assert.match(await grid.getAttribute("aria-activedescendant"), /-cell-1-/, "and on the row that was shown");

    await grid.getByRole("row").nth(3).getByRole("gridcell").first().click();
    await panel.waitFor(PATIENCE);
    await panel.getByRole("button", { name: "Close the details" }).click();
    await panel.waitFor({ state: "detached" });
    await session.close();
  });

  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 400]]) {
    test(`accessible in ${scheme}, ${width} px wide`, async () => {
      const session = await opened("mi300_resnet_training.json.gz", { colorScheme: scheme, viewport: { width, height: 800 } });
      const { page } = session;
      for (const [name, table] of [["triage", "kernel-table"], ["overlap", "overlap"], ["fuse", "fuse"]]) {
        await view(page, name);
        if (name === "triage") await id(page, "stage-backward").click();
        const cells = id(page, `table-${table}`).getByRole("gridcell");
        if (await cells.count() > 0) {
          await cells.first().click();
          await id(page, `details-${table}`).waitFor(PATIENCE);
        }
        assert.deepEqual(await accessibilityFaults(page), [], name);
        const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
        assert.ok(scroll <= inner, `${name} scrolls sideways: ${scroll} > ${inner}`);
      }
      await session.close();
    });
  }
});
