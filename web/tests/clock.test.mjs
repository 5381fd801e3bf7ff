// Several files on one clock in the timeline, against a plain reading of the files.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { ownTrace, scratch } from "./environment.mjs";
import { accessibilityFaults, download, drop, launch, open } from "./harness.mjs";
import { PATIENCE, card, colours, drawn, dropped, id, rows, settled, until, view } from "./page.mjs";

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

/// The timeline of the first sample, with the second one below it.
const together = (names, options) => filesTogether(names.map((name) => ownTrace(name)), options);

/// `first` is done in the timeline before the second file is below it.
async function filesTogether(files, options, first = async () => {}) {
  const session = await dropped(browser, files, options);
  const { page } = session;
  await settled(page);
  const [above, below] = files.map((file) => path.basename(file));
  await card(page, above).click();
  await view(page, "timeline");
  await first(page);
  await id(page, "add-beneath").selectOption({ label: below });
  await id(page, "offset").waitFor(PATIENCE);
  for (const nth of [0, 1]) await drawn(page, "canvas.lanes", nth);
  return session;
}

/// The texts of a picture, from the top: the ticks of its axis, and the heads of its tracks.
async function texts(page, nth) {
  await drawn(page, "canvas.lanes", nth);
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
  const whole = await alike(page);
  assert.ok(whole[0].ticks.length > 2 && whole[0].ticks[0].startsWith("0 "), whole[0].ticks.join(", "));
  for (const [nth, name] of GLOO.entries()) {
    assert.ok(whole[nth].heads.every((head) => head.startsWith(`▾ ${name}: `)), whole[nth].heads.join(", "));
  }
  for (const nth of [0, 1]) {
    await id(page, "surface-over").nth(nth).focus();
    await page.keyboard.press("w");
    await page.keyboard.press("d");
    whole[1] = (await alike(page, whole[nth].ticks))[0];
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
  const type = async (text) => {
    await id(page, "offset").selectText();
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
  };
  await type("250000.5");
  await said(page, "Set by hand. Without that ");
  assert.equal(await offset(page), 250_000.5);
  // What is no number changes nothing.
  await id(page, "offset").selectText();
  await page.keyboard.press("Delete");
  await page.keyboard.press("Enter");
  assert.equal(await offset(page), 250_000.5);
  await id(page, "offset-reset").press("Enter");
  await said(page, "By the clocks of both files.");
  assert.equal(await offset(page), before);
  assert.ok(await id(page, "offset-reset").isDisabled());
  const [alone] = await alike(page);
  await type("250000.5");
  await said(page, "Set by hand. Without that ");
  const [first, second] = GLOO.map(times);
  const last = Math.max(Number(first.end - first.start), 250_000_500 + Number(second.end - second.start));
  const [, moved] = await alike(page, alone.ticks);
  const ms = (tick) => parseFloat(tick) * { ns: 1e-6, µs: 1e-3, ms: 1, s: 1e3 }[tick.split(" ")[1]];
  assert.ok(ms(moved.ticks.at(-1)) <= last / 1e6 && ms(moved.ticks.at(-1)) > 250, moved.ticks.join(", "));
  await id(page, "offset-reset").click();
  await said(page, "By the clocks of both files.");
  assert.deepEqual((await alike(page, moved.ticks))[0].ticks, alone.ticks);
  await id(page, "remove-beneath").click();
  await id(page, "beneath").waitFor({ state: "detached", ...PATIENCE });
  await until(async () => {
    const { heads } = await texts(page, 0);
    return heads.length > 0 && heads.every((head) => !head.includes(GLOO[0]));
  }, "the tracks of a picture alone do not name its file");
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

/// A rank whose clock is fast, in us: products, each followed by a collective that ends on all ranks at once.
function ofRank(rank, fast) {
  const group = {
    "Collective name": "allreduce", dtype: "Float", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2,
    "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
  };
  const traceEvents = Array.from({ length: 24 }, (_, at) => {
    const [correlation, from, joins, to] = [at + 1, at * 1_000 + 20, at * 1_000 + 200 + 37 * ((at * 7 + rank * 5) % 11), at * 1_000 + 950];
    const launch = { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, dur: 0.5 };
    const kernel = { ph: "X", cat: "kernel", pid: 0, tid: 7 };
    const args = (nth) => ({ device: 0, stream: 7, correlation: 2 * correlation + nth });
    return [
      { ...launch, ts: at * 1_000, args: { correlation: 2 * correlation } },
      { ...launch, ts: at * 1_000 + 2, args: { correlation: 2 * correlation + 1 } },
      { ...kernel, name: "gemm", ts: from, dur: joins - from, args: args(0) },
      { ...kernel, name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL", ts: joins, dur: to - joins, args: { ...args(1), ...group } },
    ];
  }).flat().map((event) => ({ ...event, ts: event.ts + fast }));
  return `{"baseTimeNanoseconds":1700000000000000000,"distributedInfo":{"backend":"nccl","rank":${rank},"world_size":2},"traceEvents":${JSON.stringify(traceEvents)}}`;
}

test("clocks of two machines are corrected by what the collectives of their ranks show", async () => {
  const folder = scratch();
  const files = [0, 120].map((fast, rank) => {
    const file = path.join(folder, `run-rank${rank}.json`);
    fs.writeFileSync(file, ofRank(rank, fast));
    return file;
  });
  const session = await filesTogether(files);
  const { page } = session;
  await said(page, "By the clocks of both files; -120 µs are added, with which collectives end together.");
  assert.equal(await offset(page), 0);
  await session.close();
});

/// A snapshot of a block that is in use in the middle of a sample.
function snapshot(name) {
  const { start, end } = times(name);
  const us = (share) => Number(start / 1_000n) + Math.round(Number(end - start) / 1_000 * share);
  const event = (action, addr, size, share) => ({ action, addr, size, stream: 0, time_us: us(share), frames: [] });
  const events = [
    event("segment_alloc", 4_096, 2_097_152, 0.2), event("alloc", 4_096, 1_048_576, 0.25), event("free_requested", 4_096, 1_048_576, 0.7),
    event("free_completed", 4_096, 1_048_576, 0.7), event("segment_free", 4_096, 2_097_152, 0.8),
  ];
  const file = path.join(scratch(), "snapshot.json");
  fs.writeFileSync(file, JSON.stringify({ segments: [], device_traces: [events] }));
  return { file, us, start };
}

/// The texts of both pictures, once they have the same ticks, and others than `before`.
async function alike(page, before) {
  let both;
  await until(async () => {
    both = [await texts(page, 0), await texts(page, 1)];
    const [above, beneath] = both.map(({ ticks }) => ticks.join());
    return above === beneath && above !== before?.join();
  }, () => `both have the same ticks, and others than ${before}: ${both.map(({ ticks }) => ticks.join()).join(" and ")}`);
  return both;
}

/// Waits until the first track of a picture has such a name.
async function firstHead(page, nth, name) {
  let head;
  await until(async () => {
    [head] = (await texts(page, nth)).heads;
    return name.test(head);
  }, () => `${head} is not ${name}`);
}

/// Waits until pixels of what lies over both pictures are drawn on, or none of either.
async function marked(page, wanted) {
  assert.equal(await page.locator("canvas.over").count(), 2);
  for (const nth of [0, 1]) {
    await until(async () => ((await colours(page, "canvas.over", nth))?.length > 0) === wanted, `marks over picture ${nth}: ${wanted}`);
  }
}

test("what is sought, and which tracks are shown, is the same in a file that is added later", async () => {
  const both = async (page) => {
    await id(page, "find-slice").fill("gloo");
    await id(page, "find-track").fill("thread");
    await until(async () => (await colours(page, "canvas.over"))?.length > 0, "what is sought is marked");
    await firstHead(page, 0, /thread /);
  };
  const session = await filesTogether(GLOO.map((name) => ownTrace(name)), {}, both);
  const { page } = session;
  await marked(page, true);
  // (The first one of all is Steps.)
  for (const nth of [0, 1]) await firstHead(page, nth, /: thread /);
  await id(page, "find-slice").fill("");
  await marked(page, false);
  await id(page, "find-track").fill("");
  for (const nth of [0, 1]) await firstHead(page, nth, /: Steps$/);
  await session.close();
});

test("the memory of a snapshot is a lane on the clock of a trace", async () => {
  const { file, us, start } = snapshot(GLOO[0]);
  const session = await filesTogether([ownTrace(GLOO[0]), file]);
  const { page } = session;
  await said(page, "By the clocks of both files.");
  assert.ok(Math.abs(await offset(page) - (us(0.2) - Number(start) / 1_000)) < 1, "to the us");
  assert.deepEqual((await texts(page, 1)).heads, ["▾ snapshot: Memory of GPU 0 (requested bytes)"]);
  // (Of the trace, what says "Before the repair" stands in place of the last.)
  let [above, beneath] = [[], []];
  await until(async () => {
    [above, beneath] = [(await texts(page, 0)).ticks, (await texts(page, 1)).ticks];
    return above.length > 1 && above.every((tick, at) => tick === beneath[at]) && beneath.length - above.length <= 1;
  }, () => `${beneath} and ${above}`);
  // In the middle of what is recorded, the block is there.
  const box = await id(page, "surface-over").nth(1).boundingBox();
  await id(page, "surface-over").nth(1).click({ position: { x: box.width * 0.5, y: 50 + 20 + 20 } });
  const chapter = id(page, "seen-beneath").getByTestId("chapter-levels");
  await chapter.waitFor(PATIENCE);
  assert.match(await chapter.locator("p").first().textContent(), /: 1\.00 MiB/);
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "remove-beneath").click();
  await id(page, "beneath").waitFor({ state: "detached", ...PATIENCE });
  await session.close();
});

test("a file below whose worker has crashed says so, and is read again", async () => {
  const session = await open(browser);
  const { page } = session;
  await page.evaluate(() => {
    globalThis.workers = [];
    globalThis.Worker = class extends Worker {
      constructor(...all) {
        super(...all);
        globalThis.workers.push(this);
      }
    };
  });
  await drop(page, "body", [ownTrace(GLOO[0])]);
  await settled(page);
  await drop(page, "body", [snapshot(GLOO[0]).file]);
  await card(page, "snapshot.json").getByText("Memory snapshot").waitFor(PATIENCE);
  await settled(page);
  // (The last one that was started reads the snapshot.)
  await page.evaluate(() => globalThis.workers.at(-1).dispatchEvent(new ErrorEvent("error", { message: "unreachable" })));
  await id(page, "view-snapshot").getByTestId("failure").waitFor(PATIENCE);
  await card(page, GLOO[0]).click();
  await view(page, "timeline");
  await id(page, "add-beneath").selectOption({ label: "snapshot.json" });
  const failure = id(page, "beneath").getByTestId("failure");
  await failure.waitFor(PATIENCE);
  assert.match(await failure.innerText(), /unreachable[^]*What to do/);
  assert.deepEqual(await accessibilityFaults(page), []);
  await failure.getByRole("button", { name: "Try again" }).click();
  await said(page, "By the clocks of both files.");
  await id(page, "beneath").getByTestId("surface-over").waitFor(PATIENCE);
  await session.close();
});
