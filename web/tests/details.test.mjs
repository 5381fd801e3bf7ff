// One row of triage in detail: a kernel's launches against a plain reading of the file, and the lanes around an instance.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { samples, shared } from "./environment.mjs";
import { accessibilityFaults, allowClipboard, copied, drop, launch, open } from "./harness.mjs";
import { readTrace, textOf } from "./reference.mjs";

const PATIENCE = { timeout: 60_000 };
let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const id = (page, name) => page.getByTestId(name);
const sample = (name) => samples("traces").find((file) => path.basename(file) === name);

async function opened(name, view, options) {
  const session = await open(browser, { copied: false, ...options });
  const { page } = session;
  await allowClipboard(session.context);
  await drop(page, "body", sample(name));
  await page.waitForFunction(() => /: ready, /.test(document.querySelector("[data-testid=status]")?.textContent ?? ""), null, PATIENCE);
  await id(page, `nav-${view}`).click();
  await id(page, `view-${view}`).waitFor(PATIENCE);
  return session;
}

/// A table as it is copied: one object per row.
async function rows(page, name) {
  const [head, ...lines] = (await copied(page, () => id(page, `copy-tsv-${name}`).click())).trimEnd().split("\n").map((line) => line.split("\t"));
  return lines.map((cells) => Object.fromEntries(head.map((key, at) => [key, cells[at]])));
}

/// Opens the first row of a table that fits, and gives its panel.
async function firstRow(page, table, filter) {
  if (filter) await id(page, `filter-${table}`).fill(filter);
  await id(page, `table-${table}`).getByRole("gridcell").first().click();
  const panel = id(page, `details-${table}`);
  await panel.waitFor(PATIENCE);
  return panel;
}

describe("details", { skip: shared() === undefined }, () => {
  test("a kernel's launches are the file's, in order, with longest, shortest and median marked", async () => {
    const name = "mi300_resnet_training.json.gz";
    const session = await opened(name, "triage");
    const { page } = session;
    await id(page, "stages-all").waitFor(PATIENCE);
    const panel = await firstRow(page, "kernel-table");
    await id(page, "kernel-launches").waitFor(PATIENCE);
    const kernel = await id(page, "kernel-name").textContent();
    assert.equal(await copied(page, () => id(page, "copy-kernel-name").click()), kernel, "the whole name");
    const lines = (await copied(page, () => id(page, "copy-launches").click())).trimEnd().split("\n").map((line) => line.split("\t"));
    const [head, ...rows] = lines;
    const launches = rows.map((cells) => Object.fromEntries(head.map((key, at) => [key, cells[at]])));

    const { events } = readTrace(textOf(sample(name)));
    for (const { event, dur_ns: ns } of launches) {
      assert.equal(events[Number(event)].name, kernel);
      assert.equal(Number(ns), Math.round(Number(events[Number(event)].dur)), `event ${event}`);
    }
    const starts = launches.map((launch) => BigInt(launch.start_ns));
    assert.ok(starts.every((start, at) => at === 0 || starts[at - 1] <= start), "by start");
    const marked = (mark) => launches.find((launch) => launch.mark.includes(mark));
    const durations = launches.map((launch) => Number(launch.dur_ns));
    assert.equal(Number(marked("longest").dur_ns), Math.max(...durations));
    assert.equal(Number(marked("shortest").dur_ns), Math.min(...durations));
    assert.ok(marked("median"));
    assert.ok(launches.every((launch) => Number(launch.exposed_ns) <= Number(launch.dur_ns)));
    assert.equal(await id(page, "launch").count(), launches.length);

    const chain = await panel.locator(".chain").first().locator("li").allTextContents();
    assert.match(chain[0], /^launch/);
    assert.match(chain[1], /^op/);
    assert.match(await id(page, "how-sure").first().textContent(), /^Exact: linked by the ids in the file/);
    assert.match(await id(page, "kernel-class").textContent(), /rule \S+/);
    await session.close();
  });

  test("the panel follows the keyboard from row to row", async () => {
    const session = await opened("mi300_sglang_prefilldecode.json.gz", "triage");
    const { page } = session;
    const grid = id(page, "table-kernel-table").getByRole("grid");
    await grid.focus();
    for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
    await id(page, "kernel-launches").waitFor(PATIENCE);
    const first = await id(page, "kernel-name").textContent();
    const chain = id(page, "kernel-sites").locator(".chain").first().locator("li");
    const line = (await rows(page, "kernel-table"))[0].python_location;
    assert.equal(await chain.and(page.locator(".chosen")).textContent(), `Python${line}`, "the line that the table names");
    assert.ok(await chain.filter({ hasText: /^called by/ }).count() > 1, "and its callers");
    await grid.focus();
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((last) => document.querySelector("[data-testid=kernel-name]")?.textContent !== last, first);
    await id(page, "kernel-launches").waitFor(PATIENCE);
    await page.keyboard.press("Escape");
    await id(page, "kernel-panel").waitFor({ state: "detached" });
    await session.close();
  });

  test("the lanes around the longest instance of an overlap row show its device's streams", async () => {
    const name = "nccl.json.gz";
    const session = await opened(name, "overlap");
    const { page } = session;
    const panel = await firstRow(page, "overlap");
    const drawing = id(page, "window");
    await drawing.waitFor(PATIENCE);
    const entries = await panel.locator("dl > div").evaluateAll((items) => Object.fromEntries(items.map((item) => [...item.children].map((child) => child.textContent))));
    const event = Number(entries["Longest instance"].replace(/\D/g, ""));
    const { events } = readTrace(textOf(sample(name)));
    const instance = events[event];
    assert.equal(await drawing.locator(".chosen").count(), 1, "the instance is marked, once");
    assert.ok((await drawing.locator(".chosen title").textContent()).startsWith("A "));

    // What ran on the device in the window: 35% of it before the instance, 65% after.
    const [start, dur] = [Number(instance.ts), Number(instance.dur)];
    const span = Math.max(40_000, 6 * dur);
    const [from, to] = [start - Math.floor(span * 0.35), start + dur + span - Math.floor(span * 0.35)];
    const isGpu = (other) => other?.ph === "X" && ["kernel", "gpu_memcpy", "gpu_memset"].includes(other.cat);
    const inside = events.filter((other) => isGpu(other) && Number(other.ts) < to && Number(other.ts) + Number(other.dur) > from);
    await drawing.getByText("Show as a table").click();
    const rows = await drawing.getByRole("grid").getAttribute("aria-rowcount");
    assert.equal(Number(rows) - 1, inside.length);
    const streams = new Set(inside.map((other) => other.tid));
    assert.equal(await drawing.locator(".lane:not(.ruler)").count(), streams.size);
    await session.close();
  });

  for (const [scheme, width] of [["light", 1440], ["dark", 1280], ["light", 400]]) {
    test(`accessible in ${scheme}, ${width} px wide`, async () => {
      const session = await opened("nccl.json.gz", "triage", { colorScheme: scheme, viewport: { width, height: 900 } });
      const { page } = session;
      await firstRow(page, "kernel-table");
      await id(page, "kernel-launches").waitFor(PATIENCE);
      assert.deepEqual(await accessibilityFaults(page), [], "kernels");
      const isWide = async () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(await isWide() <= 0, "kernels scroll sideways");
      await id(page, "nav-overlap").click();
      await firstRow(page, "overlap");
      await id(page, "window").waitFor(PATIENCE);
      assert.deepEqual(await accessibilityFaults(page), [], "overlap");
      assert.ok(await isWide() <= 0, "overlap scrolls sideways");
      await session.close();
    });
  }
});
