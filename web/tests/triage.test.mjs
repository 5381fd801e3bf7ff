// Triage on the page: its figures against a plain sum over the file, its stages, the details of a row.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { samples, shared } from "./environment.mjs";
import { accessibilityFaults, allowClipboard, drop, launch, open, started } from "./harness.mjs";
import { PATIENCE, id, meanwhile, rows, until, view } from "./page.mjs";
import { readTrace, textOf } from "./reference.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// The place of a column among those shown.
const at = (grid, key) => grid.locator("th button").evaluateAll((buttons, key) => buttons.findIndex((button) => button.dataset.key === key), key);
const sample = (name) => samples("traces").find((file) => path.basename(file) === name);
const hash = (page) => page.evaluate(() => location.hash);

async function opened(name, options) {
  const session = await open(browser, { copied: false, ...options });
  const { page } = session;
  await allowClipboard(session.context);
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
    await page.evaluate(() => history.back());
    await id(page, "view-overlap").waitFor(PATIENCE);
    assert.equal(await id(page, "stage-backward").getAttribute("aria-pressed"), "true", "the address of that time had a stage");
    await session.close();
  });

  test("kernels of all stages are merged by name, and their shares add up to 100%", async () => {
    const session = await opened("mi300_resnet_training.json.gz");
    const { page } = session;
    await view(page, "triage");
    const merged = await rows(page, "kernel-table", { merged: true });
    const split = await rows(page, "kernel-table");
    assert.equal(new Set(merged.map((row) => row.kernel_name)).size, merged.length, "a row per name");
    assert.deepEqual(merged.map((row) => row.kernel_name).sort(), [...new Set(split.map((row) => row.kernel_name))].sort());
    for (const row of merged) {
      const own = split.filter((of) => of.kernel_name === row.kernel_name);
      for (const key of ["launches", "total_ns", "exposed_ns"]) {
        assert.equal(Number(row[key]), own.reduce((sum, of) => sum + Number(of[key]), 0), `${row.kernel_name} ${key}`);
      }
    }
    for (const table of [merged, split]) {
      const shares = table.reduce((sum, row) => sum + Number(row.gpu_time_share_pct), 0);
      assert.ok(Math.abs(shares - 100) < 1e-6, `${shares}`);
    }
    assert.match(await id(page, "table-kernel-table").locator("tfoot").textContent(), /100\.0%/, "and the total says it");

    await id(page, "kernels-merged").click();
    const grid = id(page, "table-kernel-table").getByRole("grid");
    const twice = merged.find((row) => split.filter((of) => of.kernel_name === row.kernel_name).length > 1);
    await id(page, "filter-kernel-table").fill(`"${twice.kernel_name}"`);
    await grid.getByRole("gridcell").first().click();
    await id(page, "kernel-launches").waitFor(PATIENCE);
    assert.match(await id(page, "kernel-launches").textContent(), new RegExp(`${twice.launches} launches`), "the panel has the launches of all stages");
    await session.close();
  });

  test("eight columns at most, all on screen at 1400 px, and a person's choice is kept; copies have all", async () => {
    const session = await opened("mi300_resnet_training.json.gz", { viewport: { width: 1400, height: 900 } });
    const { page } = session;
    await view(page, "triage");
    const keys = (table) => id(page, `table-${table}`).locator("th button").evaluateAll((buttons) => buttons.map((button) => button.dataset.key));
    for (const [name, table] of [["triage", "stages"], ["triage", "kernel-table"], ["overlap", "overlap"], ["fuse", "fuse"]]) {
      await view(page, name);
      await id(page, `table-${table}`).waitFor(PATIENCE);
      await until(async () => (await keys(table)).length > 3, `${table} has columns`);
      // (The page guesses a width first, and measures after it has painted.)
      await meanwhile(page, 200);
      const shown = await keys(table);
      assert.ok(shown.length > 3 && shown.length <= 8, `${table}: ${shown}`);
      const [width, room] = await id(page, `table-${table}`).locator(".table-scroll").evaluate((of) => [of.scrollWidth, of.clientWidth]);
      assert.ok(width <= room, `${table} scrolls sideways: ${width} > ${room}`);
    }
    await view(page, "triage");
    assert.ok((await keys("stages")).includes("launch_bound"));
    const before = await keys("kernel-table");

    // By keyboard: the button, then the boxes.
    await id(page, "columns-kernel-table").focus();
    await page.keyboard.press("Enter");
    const box = id(page, "column-kernel-table-grid");
    for (let n = 0; n < 60 && !await box.evaluate((of) => of === document.activeElement); n += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.waitForFunction(() => document.querySelector("[data-testid=table-kernel-table] [data-key=grid]"));
    assert.deepEqual(await accessibilityFaults(page), []);
    await page.keyboard.press("Escape");
    assert.equal(await box.count(), 0, "Escape closes the chooser");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), "columns-kernel-table", "and the focus is back on its button");
    assert.ok(Object.keys((await rows(page, "kernel-table"))[0]).length > 20, "a copy has all columns");

    page.on("dialog", (dialog) => dialog.accept());
    await page.reload();
    await started(page);
    if (await page.getByTestId("file-card").count() === 0) await drop(page, "body", sample("mi300_resnet_training.json.gz"));
    await id(page, "table-kernel-table").waitFor(PATIENCE);
    assert.deepEqual(await keys("kernel-table"), [...before, "grid"], "kept over a reload");
    await id(page, "columns-kernel-table").click();
    await id(page, "columns-default-kernel-table").click();
    await page.waitForFunction(() => !document.querySelector("[data-testid=table-kernel-table] [data-key=grid]"));
    await session.close();
  });

  test("a grid is one tab stop: arrows lead over its headers and rows, and Enter sorts", async () => {
    const session = await opened("mi300_sglang_prefilldecode.json.gz");
    const { page } = session;
    await view(page, "triage");
    const table = id(page, "table-kernel-table");
    const grid = table.getByRole("grid");
    await grid.focus();
    await page.keyboard.press("Tab");
    assert.ok(!await grid.evaluate((of) => of.contains(document.activeElement)), "Tab leaves the grid at once");
    await grid.focus();
    for (const key of ["ArrowDown", "ArrowUp", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    const head = await grid.getAttribute("aria-activedescendant");
    assert.match(head, /-head-1$/);
    const column = page.locator(`#${head}`);
    assert.equal(await column.getAttribute("aria-sort"), "ascending", "the second state of the column that orders the table");
    assert.equal(await grid.getAttribute("aria-activedescendant"), head, "the keyboard stays on the header");
    await page.keyboard.press("ArrowDown");
    assert.match(await grid.getAttribute("aria-activedescendant"), /-cell-0-1$/);
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
    assert.equal(await id(page, "kernel-name").textContent(), second.kernel_name, "the whole name");
    assert.equal(entries["Python function"], second.python_location);
    assert.equal(entries.Op, second.cpu_op);
    assert.match(entries.Confidence, /^Exact: linked by the ids in the file/);
    const header = await grid.locator("[data-key=total_ns]").textContent();
    const unit = header.match(/\((.*)\)/)[1];
    assert.equal(entries.Total, `${await grid.getByRole("row").nth(2).getByRole("gridcell").nth(await at(grid, "total_ns")).textContent()} ${unit}`, "figures have the unit of the table");
    assert.equal(await panel.locator("dl [data-exact]").and(page.locator(`[data-exact="${second.total_ns}"]`)).first().getAttribute("title").then((title) => title.replace(/\D/g, "")), second.total_ns, "and the exact value in a tooltip");
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
