// The timeline below a view: it follows the selected row, has a height that a person sets, and covers nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessibilityFaults, launch } from "./harness.mjs";
import { PATIENCE, dropped, example, id, meanwhile, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const NARROW = { viewport: { width: 400, height: 800 }, colorScheme: "dark" };

/// The example in a view with the timeline below it.
async function docked(name, options) {
  const session = await dropped(browser, [example()], options);
  const { page } = session;
  await settled(page);
  await view(page, name);
  await page.locator("main h1").focus();
  await page.keyboard.press("t");
  await id(page, "surface-over").waitFor(PATIENCE);
  await page.waitForFunction(() => document.querySelector(".dock canvas.lanes").width > 200, null, PATIENCE);
  return session;
}

const says = (page, start) => page.waitForFunction(
  (start) => document.querySelector("[data-testid=chapter-slice] p")?.textContent.startsWith(start), start, PATIENCE);

const place = (page, selector) => page.locator(selector).evaluate((element) => {
  const { top, bottom, height } = element.getBoundingClientRect();
  return { top, bottom, height };
});

/// The view ends where the timeline begins, and the picture is inside of the timeline.
async function nothingIsCovered(page) {
  const [main, dock, picture, edge] = await Promise.all(["main", ".dock", "canvas.over", ".dock-edge"].map((of) => place(page, of)));
  assert.ok(main.bottom <= dock.top + 0.5, `the view ends at ${main.bottom}, the timeline begins at ${dock.top}`);
  assert.ok(edge.bottom <= picture.top && picture.bottom <= dock.bottom + 0.5, `the picture is at ${picture.top} – ${picture.bottom}`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the window");
}

test("it follows the row that is selected by a click or a key", async () => {
  const session = await docked("triage");
  const { page } = session;
  const kernels = await rows(page, "kernel-table", { merged: true });
  const table = id(page, "table-kernel-table");
  await table.getByRole("gridcell").first().click();
  await says(page, kernels[0].kernel_name);
  await table.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  await says(page, kernels[1].kernel_name);
  await page.keyboard.press("ArrowDown");
  await says(page, kernels[2].kernel_name);
  assert.equal(await id(page, "view-triage").count(), 1, "the view stays");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TABLE", "keys still go to the table");
  // The lane as a table, in the timeline itself, does not move it.
  const lane = id(page, "table-lane-slices").getByRole("gridcell").first();
  await lane.click();
  await meanwhile(page);
  await says(page, kernels[2].kernel_name);
  await session.close();
});

test("it shows the row that was selected before, which stays in sight", async () => {
  const session = await dropped(browser, [example()]);
  const { page } = session;
  await settled(page);
  await view(page, "triage");
  const kernels = await rows(page, "kernel-table", { merged: true });
  const grid = id(page, "table-kernel-table").getByRole("grid");
  await grid.focus();
  for (let n = 0; n < 6; n += 1) await page.keyboard.press("ArrowDown");
  // (The page follows a row once a person has stayed on it for 150 ms: it shows nothing of that yet.)
  await meanwhile(page, 300);
  await page.keyboard.press("t");
  await id(page, "surface-over").waitFor(PATIENCE);
  const selected = Number(await grid.locator("tr.selected").getAttribute("aria-rowindex")) - 2;
  await says(page, kernels[selected].kernel_name);
  const [cell, main] = [await place(page, "main td.active"), await place(page, "main")];
  assert.ok(cell.top >= main.top && cell.bottom <= main.bottom, `the row at ${cell.top} – ${cell.bottom}, the view up to ${main.bottom}`);
  await nothingIsCovered(page);
  await grid.focus();
  await page.keyboard.press("Enter");
  await id(page, "kernel-launches").waitFor(PATIENCE);
  const details = await place(page, ".row-details");
  assert.ok(details.top >= main.top && details.bottom <= main.bottom + 1, `the details at ${details.top} – ${details.bottom}`);
  await session.close();
});

test("its height is set by keys and by a pointer, and kept", async () => {
  const session = await docked("triage");
  const { page } = session;
  const edge = page.getByRole("separator", { name: "Height of the timeline" });
  const now = async () => Number(await edge.getAttribute("aria-valuenow"));
  const height = async () => (await place(page, ".dock")).height;
  assert.equal(await edge.getAttribute("aria-orientation"), "horizontal");
  const [first, px] = [await now(), await height()];
  await edge.focus();
  await page.keyboard.press("ArrowUp");
  assert.equal(await now(), first + 5);
  assert.ok(await height() > px + 20, `${await height()} px, before ${px}`);
  await nothingIsCovered(page);
  await page.keyboard.press("End");
  assert.equal(await now(), Number(await edge.getAttribute("aria-valuemax")));
  await nothingIsCovered(page);
  await page.keyboard.press("Home");
  assert.equal(await now(), Number(await edge.getAttribute("aria-valuemin")));
  await nothingIsCovered(page);
  const box = await place(page, ".dock-edge");
  await page.evaluate(() => {
    globalThis.writes = [];
    const set = Storage.prototype.setItem;
    Storage.prototype.setItem = function (key, value) {
      globalThis.writes.push(key);
      set.call(this, key, value);
    };
  });
  const n_writes = () => page.evaluate(() => globalThis.writes.filter((key) => key.endsWith(".dock")).length);
  await page.mouse.move(500, box.top + 12);
  await page.mouse.down();
  await page.mouse.move(500, box.top - 88, { steps: 5 });
  assert.equal(await n_writes(), 0, "nothing is stored while it is dragged");
  await page.mouse.up();
  await page.waitForFunction(() => globalThis.writes.some((key) => key.endsWith(".dock")));
  assert.equal(await n_writes(), 1, "it is stored once, at the end");
  const moved = await place(page, ".dock-edge");
  assert.ok(Math.abs(box.top - moved.top - 100) <= 2, `it moved by ${box.top - moved.top} px, the pointer by 100`);
  await page.mouse.move(500, moved.top - 200, { steps: 2 });
  assert.equal((await place(page, ".dock-edge")).top, moved.top, "it is let go");
  // The picture is drawn in the size that it has now.
  await page.waitForFunction(() => {
    const drawn = document.querySelector("canvas.lanes");
    return Math.abs(drawn.height - drawn.clientHeight * devicePixelRatio) <= 2;
  }, null, PATIENCE);
  assert.deepEqual(await accessibilityFaults(page), []);
  const kept = await now();
  const again = await session.context.newPage();
  await again.goto(session.server.url);
  await again.waitForFunction(() => document.documentElement.style.getPropertyValue("--dock") !== "");
  const share = Number.parseFloat(await again.evaluate(() => document.documentElement.style.getPropertyValue("--dock")));
  assert.equal(Math.floor(share), kept, "the next visit has it");
  await session.close();
});

test("a range is chosen by two moments, by keys and by buttons", async () => {
  const session = await docked("breakdown");
  const { page } = session;
  const range = id(page, "chapter-range");
  const picture = page.locator("canvas.over");
  await picture.focus();
  await page.keyboard.press("ArrowRight");
  await id(page, "chapter-slice").waitFor(PATIENCE);
  await page.keyboard.press("i");
  await page.waitForFunction(() => /The range starts .* Press O where it ends\./.test(document.querySelector(".status-bar").textContent), null, PATIENCE);
  assert.equal(await range.count(), 0);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("o");
  await range.waitFor(PATIENCE);
  await page.keyboard.press("Escape");
  await range.waitFor({ state: "detached" });
  // By clicks alone: two places, two buttons.
  const box = await picture.boundingBox();
  const y = box.height - 8;
  await picture.click({ position: { x: box.width * 0.3, y } });
  await page.getByRole("button", { name: "From here" }).click();
  await picture.click({ position: { x: box.width * 0.6, y } });
  await page.getByRole("button", { name: "To here" }).click();
  await range.waitFor(PATIENCE);
  // The key that showed the timeline also removes it, from within the picture too.
  await picture.focus();
  await page.keyboard.press("t");
  await id(page, "dock").waitFor({ state: "detached" });
  await session.close();
});

test("a narrow window and one at 400% have both, the view and the timeline", async () => {
  const session = await docked("triage", NARROW);
  const { page } = session;
  await nothingIsCovered(page);
  assert.ok((await place(page, "main")).height > 120 && (await place(page, "canvas.over")).height > 120);
  assert.deepEqual(await accessibilityFaults(page), []);
  // 1280 × 1024 at 400%: the two are in the room that is left, and can be scrolled to.
  await page.setViewportSize({ width: 320, height: 256 });
  await nothingIsCovered(page);
  await page.locator(".dock-side").scrollIntoViewIfNeeded();
  const edge = page.getByRole("separator", { name: "Height of the timeline" });
  await edge.focus();
  const { top, bottom } = await place(page, ".dock-edge");
  assert.ok(top >= 0 && bottom <= 256, `the edge is at ${top} – ${bottom}`);
  await session.close();
});

test("each change of the repair is in reach: the timeline follows the log", async () => {
  const session = await docked("repair");
  const { page } = session;
  const changes = await rows(page, "repair_log");
  const slices = changes.filter((change) => change.dur_ns !== "").slice(0, 3);
  assert.ok(slices.length > 1, `${changes.length} changes`);
  const grid = id(page, "table-repair_log").getByRole("grid");
  await grid.focus();
  let at = 0;
  for (const slice of slices) {
    for (; at <= changes.indexOf(slice); at += 1) await page.keyboard.press(at === 0 ? "Home" : "ArrowDown");
    await says(page, slice.name);
  }
  await session.close();
});
