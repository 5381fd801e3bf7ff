// Several files on one clock in the timeline, against a plain reading of the files.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { ownTrace } from "./environment.mjs";
import { accessibilityFaults, download, launch } from "./harness.mjs";
import { PATIENCE, card, dropped, id, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const GLOO = ["gloo_rank0", "gloo_rank1"];
const GPU = ["rank_0", "rank_1"];

/// When the slices of a sample start and end, in ns since 1970, if it tells that.
function times(name) {
  const text = gunzipSync(fs.readFileSync(ownTrace(name))).toString();
  const { traceEvents, baseTimeNanoseconds: base = 0 } = JSON.parse(text.replace(/\bNaN\b/g, "null"));
  const slices = traceEvents.filter((event) => event.ph === "X");
  const ns = (us) => BigInt(base) + BigInt(Math.round(us * 1_000));
  const [first, last] = [Math.min(...slices.map((event) => event.ts)), Math.max(...slices.map((event) => event.ts + event.dur))];
  return { start: ns(first), end: ns(last) };
}

/// The timeline of the first file, with the second one below it.
async function together([first, second], options) {
  const session = await dropped(browser, [first, second].map((name) => ownTrace(name)), options);
  const { page } = session;
  await settled(page);
  await card(page, first).click();
  await view(page, "timeline");
  await id(page, "add-beneath").selectOption({ label: `${second}.json.gz` });
  await id(page, "offset").waitFor(PATIENCE);
  await page.waitForFunction(() => [...document.querySelectorAll("canvas.lanes")].filter((canvas) => canvas.width > 200).length === 2, null, PATIENCE);
  await page.waitForTimeout(300);
  return session;
}

/// The texts of a picture, from the top: the ticks of its axis, and the heads of its tracks.
async function texts(page, nth) {
  // (What one picture shows reaches the other one in the next frame.)
  await page.waitForTimeout(300);
  const { bytes } = await download(page, () => id(page, "svg").nth(nth).click());
  const found = [...bytes.toString("utf8").matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((match) => match[1]);
  return { ticks: found.filter((text) => /^-?[\d.]+ (ns|µs|ms|s)$/.test(text)), heads: found.filter((text) => text.startsWith("▾")) };
}

/// The offset that the page shows, in µs.
const offset = async (page) => Number(await id(page, "offset").inputValue());
const said = (page, text) => page.waitForFunction(
  (text) => document.querySelector("[data-testid=offset-said]")?.textContent.startsWith(text), text, PATIENCE);

test("two ranks are placed by their clocks and show the same time, whichever of them is moved", async () => {
  const session = await together(GLOO);
  const { page } = session;
  const [first, second] = GLOO.map(times);
  const apart = Number(second.start - first.start) / 1_000;
  // (A number of JSON has no more digits.)
  assert.ok(Math.abs(await offset(page) - apart) < 0.002, `${apart} µs`);
  await said(page, "By the clocks of both files.");
  assert.deepEqual(await accessibilityFaults(page), []);
  const whole = [await texts(page, 0), await texts(page, 1)];
  assert.ok(whole[0].ticks.length > 2 && whole[0].ticks[0].startsWith("0 "), whole[0].ticks.join(", "));
  assert.deepEqual(whole[1].ticks, whole[0].ticks);
  for (const [nth, name] of GLOO.entries()) {
    assert.ok(whole[nth].heads.every((head) => head.startsWith(`▾ ${name}: `)), whole[nth].heads.join(", "));
  }
  for (const nth of [0, 1]) {
    await id(page, "surface-over").nth(nth).focus();
    await page.keyboard.press("w");
    await page.keyboard.press("d");
    const both = [await texts(page, 0), await texts(page, 1)];
    assert.notDeepEqual(both[0].ticks, whole[nth].ticks);
    assert.deepEqual(both[1].ticks, both[0].ticks);
    whole[1] = both[0];
  }
  await session.close();
});

test("a range is one of both files, and each has its figures", async () => {
  const session = await together(GPU);
  const { page } = session;
  await id(page, "surface-over").first().focus();
  // From the start of a slice to the end of another one.
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("i");
  await page.keyboard.press("End");
  await page.keyboard.press("o");
  const ranges = page.getByTestId("chapter-range");
  await id(page, "seen-beneath").getByTestId("chapter-range").waitFor(PATIENCE);
  assert.equal(await ranges.count(), 2);
  const titles = await ranges.locator("> h2").allTextContents();
  assert.deepEqual(titles.map((title) => title.split(": ")[0]), GPU);
  assert.ok((await rows(page, "range-names-1")).length > 0 && (await rows(page, "range-names")).length > 0);
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "surface-over").nth(1).focus();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("[data-testid=chapter-range]") === null, null, PATIENCE);
  await session.close();
});

test("the offset is set by keyboard, reset, and goes with the file", async () => {
  const session = await together(GLOO);
  const { page } = session;
  const before = await offset(page);
  const alone = await texts(page, 0);
  await id(page, "offset").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("250000.5");
  await page.keyboard.press("Enter");
  await said(page, "Set by hand. Without that ");
  assert.equal(await offset(page), 250_000.5);
  const [first, second] = GLOO.map(times);
  const last = Math.max(Number(first.end - first.start), 250_000_500 + Number(second.end - second.start));
  const moved = await texts(page, 1);
  const ms = (tick) => parseFloat(tick) * { ns: 1e-6, µs: 1e-3, ms: 1, s: 1e3 }[tick.split(" ")[1]];
  assert.ok(ms(moved.ticks.at(-1)) <= last / 1e6 && ms(moved.ticks.at(-1)) > 250, moved.ticks.join(", "));
  assert.deepEqual(moved.ticks, (await texts(page, 0)).ticks);
  await id(page, "offset-reset").press("Enter");
  await said(page, "By the clocks of both files.");
  assert.equal(await offset(page), before);
  assert.ok(await id(page, "offset-reset").isDisabled());
  assert.deepEqual((await texts(page, 0)).ticks, alone.ticks);
  await id(page, "remove-beneath").press("Enter");
  await id(page, "beneath").waitFor({ state: "detached", ...PATIENCE });
  assert.ok((await texts(page, 0)).heads.every((head) => !head.includes(GLOO[0])));
  // It can be added again; a file that is closed takes its lanes with it.
  await id(page, "add-beneath").selectOption({ label: `${GLOO[1]}.json.gz` });
  await id(page, "offset").waitFor(PATIENCE);
  await card(page, GLOO[1]).getByTestId("remove").click();
  await id(page, "beneath").waitFor({ state: "detached", ...PATIENCE });
  assert.equal(await id(page, "add-beneath").count(), 0, "no other file is open");
  await session.close();
});

test("files without a clock are aligned by an assumption that is named, also below a view and at 400 px", async () => {
  const session = await together(GPU, { viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const { page } = session;
  assert.equal(await offset(page), 0);
  await said(page, "Assumption: the first slice begins at the same time in both files (not both files record a clock).");
  assert.deepEqual(await accessibilityFaults(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is cut at 400 px");
  await page.setViewportSize({ width: 1_280, height: 900 });
  await id(page, "dock-open").click();
  await id(page, "dock").getByTestId("beneath").waitFor(PATIENCE);
  assert.equal(await id(page, "dock").getByTestId("surface-over").count(), 2);
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});
