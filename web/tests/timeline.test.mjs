// The timeline: what a worker draws, and what the page says of it, against a plain reading of the file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { own } from "./environment.mjs";
import { accessibilityFaults, chromiumOnly, download, drop, launch } from "./harness.mjs";
import { PATIENCE, colours, drawn, dropped, example, exampleEvents, hears, id, meanwhile, rows, settled, until, view } from "./page.mjs";
import { processMegabytes } from "./processes.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// What GEMM is drawn in.
const BLUE = "0,114,178,255";

const events = exampleEvents();
const slices = events.filter((event) => event.ph === "X" && event.ts !== undefined);
const isGpu = (event) => ["kernel", "gpu_memcpy", "gpu_memset"].includes(event.cat);
const kernels = slices.filter((event) => event.cat === "kernel");

async function opened(options) {
  const session = await dropped(browser, [example()], options);
  await settled(session.page);
  await view(session.page, "timeline");
  await hears(session.page, "over");
  return session;
}

/// Presses keys in the picture and waits until the page says something of a slice with this name.
async function press(page, key, name) {
  await id(page, "surface-over").focus();
  await page.keyboard.press(key);
  await says(page, name);
}

const says = (page, start) => page.waitForFunction(
  (start) => document.querySelector("[data-testid=chapter-slice] p")?.textContent.startsWith(start), start, PATIENCE);

/// Searches for the longest kernel: that, and the first one of its name, which is then selected.
async function found(page) {
  const [longest] = [...kernels].sort((a, b) => b.dur - a.dur);
  await id(page, "find-slice").fill(longest.name);
  await page.keyboard.press("Enter");
  await says(page, longest.name);
  const [first] = kernels.filter((event) => event.name === longest.name).sort((a, b) => a.ts - b.ts);
  return { longest, first };
}

test("every slice is in a lane, and the picture has their colours", async () => {
  const session = await opened();
  const { page } = session;
  const line = await id(page, "finding-line").textContent();
  // The steps of the profiler have a track of their own, beside their thread.
  const steps = slices.filter((event) => /^ProfilerStep/.test(event.name) && event.cat !== "gpu_user_annotation").length;
  assert.equal(Number(line.split(" slices")[0].replaceAll("\u2009", "")), slices.length + steps);
  await drawn(page);
  const shown = await colours(page);
  assert.ok((new Map(shown).get(BLUE) ?? 0) > 200, "GEMM is blue");
  assert.ok(shown.length > 5, `${shown.length} colours`);
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("keys lead from a kernel to its launch and back", async () => {
  const session = await opened();
  const { page } = session;
  const { longest, first } = await found(page);
  const calls = slices.filter((event) => !isGpu(event) && event.cat !== "python_function" && event.args?.correlation !== undefined);
  const call = calls.find((event) => event.args.correlation === first.args.correlation && /unch/.test(event.name));
  assert.ok(call, "its launch is recorded");
  assert.match(await id(page, "chapter-slice").textContent(), new RegExp(`Launched by ${call.name}: it starts`));
  await press(page, "[", call.name);
  await press(page, "]", (await id(page, "chapter-slice").textContent()) && "");
  await id(page, "surface-over").focus();
  await page.keyboard.press("r");
  await id(page, "chapter-range").waitFor(PATIENCE);
  assert.match(await id(page, "chapter-range").textContent(), /GPU \d+ is busy for .* and idle for /);
  assert.ok(await id(page, "table-lane-slices").locator("[role=gridcell]").count() > 0, "the lane as a table");
  await page.keyboard.press("Escape");
  await id(page, "chapter-range").waitFor({ state: "detached" });
  await session.close();
});

/// What is said of the selected range, and its tables with all their rows and columns. (Each comes by itself: the parts of the wall time
/// with the diagnosis, the rest one after the other. The width of a window decides which rows are visible.)
async function rangeIs(page) {
  await page.locator("main h1").focus();
  const tables = [];
  for (const name of ["range-wall", "range-streams", "range-names", "range-calls"]) tables.push(await rows(page, name));
  assert.ok(tables.every((table) => table.length > 0), JSON.stringify(tables));
  return { said: await id(page, "chapter-range").locator("> p").allTextContents(), tables };
}

test("a click selects a slice, a drag a range; another view and back keeps them", async () => {
  const session = await opened();
  const { page } = session;
  const box = await id(page, "surface-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 120);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 120, { steps: 4 });
  await page.mouse.up();
  const range = await rangeIs(page);
  assert.ok(range.said.length > 1, JSON.stringify(range.said));
  await view(page, "breakdown");
  await view(page, "timeline");
  assert.deepEqual(await rangeIs(page), range);
  await drawn(page);
  assert.ok((await colours(page)).length > 5, "it is drawn again");
  await session.close();
});

test("a launch of a kernel is shown in the timeline from its table", async () => {
  const session = await dropped(browser, [example()]);
  const { page } = session;
  await settled(page);
  await view(page, "triage");
  await id(page, "table-kernel-table").getByRole("gridcell").first().click();
  await id(page, "kernel-launches").waitFor(PATIENCE);
  const name = await id(page, "kernel-name").textContent();
  await id(page, "show-slice").first().click();
  await id(page, "view-timeline").waitFor(PATIENCE);
  await says(page, name);
  await session.close();
});

test("a gap of the GPU leads to the timeline, whose range has the parts of the bar and the calls of a thread", async () => {
  const session = await dropped(browser, [example()]);
  const { page } = session;
  await settled(page);
  await view(page, "diagnosis");
  await id(page, "baseline").waitFor(PATIENCE);
  await view(page, "gaps");
  const gap = (await rows(page, "gaps"))[0];
  await id(page, "table-gaps").getByRole("gridcell").first().click();
  await page.keyboard.press("Enter");
  await id(page, "in-timeline").click();
  await id(page, "chapter-range").waitFor(PATIENCE);
  // Keys go to the picture. (Here Escape is to close menus, and not to clear the range.)
  await page.waitForFunction(() => document.activeElement.matches("canvas.over"), null, PATIENCE);
  await page.locator("main h1").focus();
  // The parts of the range are those of the gap: all of it is idle time.
  await page.waitForFunction(() => document.querySelector("[data-testid=table-range-wall]"), null, PATIENCE);
  const parts = await rows(page, "range-wall");
  const sum = parts.reduce((sum, part) => sum + Number(part.total_ns), 0);
  assert.equal(sum, Number(gap.dur_ns), JSON.stringify(parts));
  assert.ok(parts.every((part) => part.part.startsWith("Idle: ")), JSON.stringify(parts));
  assert.match(await id(page, "chapter-range").textContent(), /busy for 0 ns \(0\.0%\)/);
  const calls = await rows(page, "range-calls");
  assert.ok(calls.length > 0 && calls.every((call) => Number(call.self_ns) <= Number(gap.dur_ns)));
  assert.ok(await id(page, "chapter-range").locator("svg[role=img] rect").count() > 0, "the calls are drawn");
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("Perfetto is opened at the time of the selected slice", async () => {
  const session = await opened();
  const { page } = session;
  const { longest, first } = await found(page);
  await page.evaluate(() => { window.open = (url) => { window.opened = url; return null; }; });
  await id(page, "perfetto-at").click();
  await page.waitForFunction(() => window.opened);
  const [, from, to] = /#!\/\?visStart=(\d+)&visEnd=(\d+)$/.exec(await page.evaluate(() => window.opened));
  assert.ok(Math.abs(Number(from) - first.ts * 1000) <= 1000, `${from} is ${first.ts} us`);
  assert.ok(Math.abs(Number(to) - Number(from) - first.dur * 1000) <= 1000);
  await session.close();
});

test("at 400 px in the dark nothing is cut, and the worker is asked for nothing else", async () => {
  const session = await opened({ viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const { page } = session;
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "no sideways scrolling");
  await press(page, "ArrowRight", "");
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("the timeline stands below another view, and a row of a table moves it", async () => {
  const session = await dropped(browser, [example()]);
  const { page } = session;
  await settled(page);
  await view(page, "triage");
  await page.locator("main h1").focus();
  await page.keyboard.press("t");
  await id(page, "dock").waitFor(PATIENCE);
  await id(page, "surface-over").waitFor(PATIENCE);
  await page.waitForFunction(() => document.querySelector(".dock canvas.lanes").width > 300);
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "table-kernel-table").getByRole("gridcell").first().click();
  await id(page, "kernel-launches").waitFor(PATIENCE);
  const name = await id(page, "kernel-name").textContent();
  await id(page, "show-slice").first().click();
  await says(page, name);
  assert.equal(await id(page, "view-triage").count(), 1, "the view stays");
  // Another view keeps it, the timeline itself needs none, and it is there again after that.
  await view(page, "fuse");
  await says(page, name);
  await view(page, "timeline");
  await id(page, "surface-over").waitFor(PATIENCE);
  assert.equal(await id(page, "dock").count(), 0);
  await says(page, name);
  await view(page, "breakdown");
  await id(page, "dock-close").click();
  await id(page, "dock").waitFor({ state: "detached" });
  await session.close();
});

test("the page with a timeline below its view fits a narrow window", async () => {
  const session = await dropped(browser, [example()], { viewport: { width: 400, height: 800 } });
  const { page } = session;
  await settled(page);
  await page.locator("main h1").focus();
  await page.keyboard.press("t");
  await id(page, "surface-over").waitFor(PATIENCE);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the window");
  assert.ok(await page.locator("main").evaluate((main) => main.clientHeight) > 120, "the view has room");
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("the picture is saved as it is seen", async () => {
  const session = await opened();
  const { page } = session;
  await drawn(page);
  const shown = new Map(await colours(page)).get(BLUE);
  const saved = await download(page, () => id(page, "picture-over").click());
  assert.match(saved.name, /^example-lanes\.png$/);
  assert.equal(saved.bytes.subarray(1, 4).toString(), "PNG");
  const read = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const copy = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const context = copy.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let gemm = 0;
    for (let at = 0; at < data.length; at += 4) gemm += data[at] === 0 && data[at + 1] === 114 && data[at + 2] === 178;
    return { gemm, size: [image.width, image.height] };
  }, saved.bytes.toString("base64"));
  const size = await page.evaluate(() => { const { width, height } = document.querySelector("canvas.lanes"); return [width, height]; });
  assert.deepEqual(read.size, size);
  assert.ok(Math.abs(read.gemm - shown) <= 0.01 * shown, `${read.gemm} of ${shown} blue pixels`);
  await session.close();
});

// Memory of the browser's processes in MB, and of the page's scripts. (Firefox has no way to ask for a collection.)
async function memoryOf(session) {
  const client = await session.context.newCDPSession(session.page);
  await client.send("HeapProfiler.collectGarbage");
  // (What the collection frees is given back later.)
  await meanwhile(session.page, 1_500);
  await client.send("HeapProfiler.collectGarbage");
  const { usedSize } = await client.send("Runtime.getHeapUsage");
  await client.detach();
  return { processes: processMegabytes(), scripts: usedSize / 1e6 };
}

test("the calls of a range have time on the CPU and of the GPU work that they launched, and what is searched for has callers and callees", async () => {
  const session = await opened();
  const { page } = session;
  const thread = slices.filter((event) => event.cat === "cpu_op").sort((a, b) => b.dur - a.dur)[0];
  await id(page, "find-slice").fill(thread.name);
  await page.keyboard.press("Enter");
  await says(page, thread.name);
  await id(page, "surface-over").focus();
  await page.keyboard.press("r");
  for (const picture of ["range-flame", "range-focus"]) await id(page, `drawing-${picture}`).waitFor(PATIENCE);
  // (Escape, which closes a menu, clears the range where the picture has the focus.)
  await page.locator("main h1").focus();
  const calls = await rows(page, "range-calls");
  assert.ok(calls.some((row) => Number(row.total_ns) >= Number(row.self_ns) && Number(row.self_ns) > 0));
  const callees = await rows(page, "range-callees");
  const callers = await rows(page, "range-callers");
  assert.ok(callers.length > 0 && callees.length > 0, `${callers.length} callers, ${callees.length} callees`);
  const launched = calls.reduce((sum, row) => sum + Number(row.gpu_ns), 0);
  assert.equal(await id(page, "drawing-range-flame-gpu").count(), launched > 0 ? 1 : 0);
  await id(page, "find-slice").fill("no such name");
  await id(page, "drawing-range-focus").waitFor({ state: "detached", ...PATIENCE });
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

chromiumOnly("ten traces opened and removed with the timeline shown leave no memory behind", async () => {
  // (What other tests left in the browser would be part of the sums.)
  const own = await launch({ own: true });
  const session = await dropped(own, []);
  const { page } = session;
  const openAndRemove = async () => {
    await drop(page, "body", [example()]);
    await settled(page);
    await view(page, "timeline");
    await page.waitForFunction(() => document.querySelector("canvas.lanes")?.width > 300);
    await page.getByRole("button", { name: /^Close / }).first().click();
    await id(page, "file-card").waitFor({ state: "detached" });
  };
  // The first one loads the programs, whose code stays.
  await openAndRemove();
  const before = await memoryOf(session);
  for (let n = 0; n < 10; n += 1) await openAndRemove();
  const after = await memoryOf(session);
  assert.equal(page.workers().length, 0, "no worker is left");
  assert.ok(after.scripts <= 1.1 * before.scripts + 0.2, `scripts: ${before.scripts} MB, then ${after.scripts} MB`);
  assert.ok(after.processes <= 1.1 * before.processes, `processes: ${before.processes} MB, then ${after.processes} MB`);
  await session.close();
  await own.close();
});

test("tracks are filtered by name and kept at the top", async () => {
  const session = await opened();
  const { page } = session;
  await found(page);
  await id(page, "find-track").fill("gpu");
  const said = await page.waitForFunction(() => /^\d+ of \d+ tracks shown\.$/.exec(document.querySelector(".status-bar").textContent.match(/\d+ of \d+ tracks shown\./)?.[0] ?? "")?.[0], null, PATIENCE);
  const [shown, all] = (await said.jsonValue()).match(/\d+/g).map(Number);
  assert.ok(shown > 0 && shown < all, `${shown} of ${all}`);
  await id(page, "surface-over").focus();
  await page.keyboard.press("b");
  const status = (text) => page.waitForFunction((text) => document.querySelector(".status-bar").textContent.includes(text), text, PATIENCE);
  await status("is kept at the top.");
  await page.getByRole("button", { name: "Pin" }).click();
  await status("is in its place again.");
  await session.close();
});

test("a damaged place of the repair is shown in the timeline", async () => {
  const session = await dropped(browser, [own("traces").find((file) => file.endsWith("dependent_launch.json.gz"))]);
  const { page } = session;
  await settled(page);
  await view(page, "repair");
  await id(page, "place-in-timeline").first().click();
  await id(page, "view-timeline").waitFor(PATIENCE);
  await id(page, "chapter-slice").waitFor(PATIENCE);
  await session.close();
});
