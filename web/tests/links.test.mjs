// The address of the page: the view, the range of the timeline and the filters, and nothing of the trace but numbers; and filters that
// are taken back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { drop, launch } from "./harness.mjs";
import { PATIENCE, dropped, example, exampleEvents, hears, id, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const hash = (page) => page.evaluate(() => location.hash);
const hashHas = (page, text) => page.waitForFunction((text) => location.hash.includes(text), text, PATIENCE);
const rangeIs = (page, start) => page.waitForFunction(
  (start) => document.querySelector("[data-testid=chapter-range] p")?.textContent.startsWith(start) ?? start === "", start, PATIENCE);

async function opened(address) {
  const session = await dropped(browser, []);
  const { page } = session;
  if (address) await page.evaluate((address) => { location.hash = address; }, address);
  await drop(page, "body", [example()]);
  await settled(page);
  return session;
}

/// Selects a slice of the timeline with the arrow keys, and its time.
async function selectRange(page) {
  await hears(page, "over");
  await id(page, "surface-over").focus();
  await page.keyboard.press("ArrowRight");
  await id(page, "chapter-slice").waitFor(PATIENCE);
  await page.keyboard.press("r");
  await id(page, "chapter-range").waitFor(PATIENCE);
  await hashHas(page, "range=");
  return id(page, "chapter-range").locator("p").first().textContent();
}

test("a link leads to the view and the range, and has only numbers of the trace", async () => {
  const session = await opened();
  const { page } = session;
  await view(page, "timeline");
  const said = await selectRange(page);
  const link = await hash(page);
  assert.match(link, /^#v=1&view=timeline&range=-?\d+\.\.\d+$/);
  await session.close();

  const other = await opened(link);
  await rangeIs(other.page, said);
  assert.equal(await hash(other.page), link);
  await other.close();
});

test("Back leads to a timeline with its range, and a range of another file's length is refused", async () => {
  const session = await opened();
  const { page } = session;
  await view(page, "timeline");
  const said = await selectRange(page);
  const link = await hash(page);
  await view(page, "triage");
  assert.equal(await hash(page), "#v=1&view=triage", "no timeline, no range");
  await page.evaluate(() => history.back());
  await id(page, "view-timeline").waitFor(PATIENCE);
  await rangeIs(page, said);
  assert.equal(await hash(page), link);
  await page.evaluate(() => { location.hash = "#v=1&view=timeline&range=900000000000..900000000001"; });
  await page.waitForFunction(() => /not in this file/.test(document.querySelector("[data-testid=announcement]").textContent), null, PATIENCE);
  await page.waitForFunction(() => location.hash === "#v=1&view=timeline", null, PATIENCE);
  await session.close();
});

test("comparisons of a filter are in the link, words that may be names are not", async () => {
  const names = new Set(exampleEvents().map((event) => event.name).filter(Boolean));
  const session = await opened();
  const { page } = session;
  await view(page, "triage");
  await id(page, "filter-kernel-table").fill("gemm >5us calls>=1");
  await hashHas(page, "&filter=.gt.5us,calls.ge.1");
  const link = await hash(page);
  assert.ok(!link.includes("gemm"), link);
  assert.ok([...names].every((name) => !link.includes(encodeURIComponent(name)) && !link.includes(name)), link);
  await session.close();

  const other = await opened(link);
  await id(other.page, "filter-kernel-table").waitFor(PATIENCE);
  assert.equal(await id(other.page, "filter-kernel-table").inputValue(), ">5us calls>=1");
  await other.close();
});

test("filters are taken back by a key, a button and a command", async () => {
  const session = await opened();
  const { page } = session;
  await view(page, "triage");
  const field = id(page, "filter-kernel-table");
  const heldBy = (text) => page.waitForFunction(
    (text) => document.querySelector("[data-testid=filter-kernel-table]").value === text, text, PATIENCE);
  assert.equal(await id(page, "undo").count(), 0, "nothing is filtered");
  await field.pressSequentially("gemm");
  await field.fill("");
  await field.pressSequentially("norm");
  await page.locator("main h1").focus();
  await page.keyboard.press("z");
  await heldBy("");
  await page.keyboard.press("ControlOrMeta+z");
  await heldBy("gemm");
  assert.equal(await id(page, "announcement").textContent(), "Filter undone.");
  await id(page, "undo").click();
  await heldBy("");
  assert.equal(await id(page, "undo").count(), 0);
  // In a field the keys are the browser's.
  await field.fill("gemm");
  await field.press("z");
  await heldBy("gemmz");
  await page.keyboard.press("ControlOrMeta+k");
  // Enter follows what is typed before the list is drawn anew.
  await id(page, "commands-text").evaluate((field) => {
    field.value = "undo filter";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  });
  await heldBy("");
  await session.close();
});
