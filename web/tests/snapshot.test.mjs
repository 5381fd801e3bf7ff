// Memory snapshots on the page, against what the command line says of the same file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { after, before, test } from "node:test";

import { cli, scratch } from "./environment.mjs";
import { accessibilityFaults, launch } from "./harness.mjs";
import { PATIENCE, colours, dropped, example, id, rows, settled, showsOption, until } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const MIB = 1 << 20;

/// Four steps: weights that stay, an activation that goes, and a list that keeps 4 MiB of each step.
function leaking() {
  const frame = (line, name) => [{ filename: "/app/train.py", line, name }];
  const events = [{ action: "segment_alloc", addr: 1 << 30, size: 64 * MIB, stream: 0, frames: [], time_us: 1 }];
  const blocks = [];
  let [address, time] = [1 << 30, 1];
  const allocate = (size, frames) => {
    events.push({ action: "alloc", addr: address, size, stream: 0, frames, time_us: ++time });
    address += size;
    return address - size;
  };
  const keep = (at, size, frames) => blocks.push({ address: at, size, requested_size: size, state: "active_allocated", frames });
  keep(allocate(8 * MIB, frame(10, "build")), 8 * MIB, frame(10, "build"));
  for (let step = 0; step < 4; step += 1) {
    const at = allocate(6 * MIB, frame(20, "forward"));
    keep(allocate(4 * MIB, frame(30, "log")), 4 * MIB, frame(30, "log"));
    for (const action of ["free_requested", "free_completed"]) events.push({ action, addr: at, size: 6 * MIB, stream: 0, frames: [], time_us: ++time });
  }
  const used = new Map(blocks.map((block) => [block.address, block]));
  const all = [];
  for (let at = 1 << 30; at < (1 << 30) + 64 * MIB;) {
    const next = [...used.keys()].filter((key) => key >= at).sort((a, b) => a - b)[0] ?? (1 << 30) + 64 * MIB;
    if (next > at) all.push({ address: at, size: next - at, requested_size: 0, state: "inactive", frames: [] });
    const block = used.get(next);
    if (block) all.push(block);
    at = next + (block?.size ?? 0);
  }
  const size = blocks.reduce((sum, block) => sum + block.size, 0);
  const segment = { device: 0, address: 1 << 30, total_size: 64 * MIB, allocated_size: size, active_size: size, stream: 0, segment_type: "large", blocks: all };
  return JSON.stringify({ segments: [segment], device_traces: [events] });
}

function file() {
  const at = path.join(scratch(), "leak.json.gz");
  fs.writeFileSync(at, gzipSync(leaking()));
  return at;
}

const said = (of, ...options) => execFileSync(cli(), ["memory", of, ...options], { encoding: "utf8", maxBuffer: 1 << 28 });

/// Waits until a picture is drawn: three colours or more, each of many pixels. (Edges of letters have many colours, each of a few.)
const isDrawn = (page, name) => until(async () => {
  const found = await colours(page, `[data-testid=surface-${name}]`);
  return found?.filter(([, n]) => n > 400).length >= 3;
}, `${name} is drawn`);

/// Waits until the figures at the cursor begin so.
const moment = (page, start) => page.waitForFunction((start) => document.querySelector("[data-testid=chapter-moment] p")?.textContent.startsWith(start), start, PATIENCE);

const thin = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");

test("a snapshot shows the figures, findings and tables of the command line", async () => {
  const snapshot = file();
  const session = await dropped(browser, [snapshot]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  await settled(page);
  const { devices, findings } = JSON.parse(said(snapshot, "--json"));
  assert.equal(await id(page, "finding").count(), findings.length);
  const text = await id(page, "view-snapshot").innerText();
  for (const finding of findings) assert.ok(text.includes(finding.observation), finding.observation);
  const markdown = said(snapshot);
  const peak = markdown.split("\n").find((line) => line.startsWith("Memory in use peaks at"))?.replaceAll("\\", "");
  assert.ok(peak && text.includes(peak), peak);
  assert.equal(devices["0"].replay.peak_requested, 30 * MIB, "weights, four kept lists, and one step");
  const sites = await rows(page, "peak-by-site");
  assert.deepEqual(sites.map((row) => [row.site, Number(row.bytes)]), devices["0"].replay.peak_by_site.map((row) => [row.site, row.bytes]));
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("a person looks at a snapshot: at the peak first, at any event, at a range, by pointer and by keys", async () => {
  const snapshot = file();
  const session = await dropped(browser, [snapshot]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  const { replay } = JSON.parse(said(snapshot, "--json")).devices["0"];
  await moment(page, `Before event ${thin(replay.peak_index)}: 30.0 MiB requested`);
  const atPeak = await rows(page, "alive");
  assert.deepEqual(atPeak.map((row) => [row.site, Number(row.bytes)]), replay.peak_by_site.map((row) => [row.site, row.bytes]));
  for (const name of ["memory", "blocks"]) {
    await isDrawn(page, name);
  }
  // By keys: an event back from the peak, and to the last.
  const chart = id(page, "surface-memory");
  await chart.focus();
  await page.keyboard.press("ArrowLeft");
  await moment(page, `Before event ${thin(replay.peak_index - 1)}:`);
  await page.keyboard.press("End");
  await moment(page, "Before event 18: 24.0 MiB requested in 5 blocks");
  assert.ok((await id(page, "announcement").textContent()).includes("Before event 18"), "it is announced");
  // By pointer: the first two of four steps, ten of nineteen states.
  const { x, y, width } = await chart.boundingBox();
  await page.mouse.move(x + 2, y + 60);
  await page.mouse.down();
  await page.mouse.move(x + width / 4, y + 60);
  await page.mouse.move(x + width * 10.5 / 19, y + 60);
  await page.mouse.up();
  await id(page, "chapter-range").waitFor(PATIENCE);
  const changes = await rows(page, "changes");
  assert.ok(changes.some((row) => row.site.includes("forward") && row.kept === "0"), "what is freed in the range is not kept");
  await chart.click({ position: { x: width * 1.5 / 19, y: 60 } });
  await moment(page, "Before event 1:");
  assert.equal(await id(page, "chapter-range").count(), 0, "a click clears the range");
  // Another theme has other colours, and the picture stays where it was.
  await id(page, "theme").click();
  await id(page, "theme").click();
  await isDrawn(page, "memory");
  await moment(page, "Before event 1:");
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("a block is selected by a click and by keys, with its size, state and stack, and followed through time", async () => {
  const session = await dropped(browser, [file()]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  await moment(page, "Before event");
  await page.waitForFunction(() => document.querySelector("[data-testid=surface-blocks]")?.width > 300);
  const blocks = id(page, "surface-blocks");
  const selected = (start) => page.waitForFunction((start) => document.querySelector("[data-testid=chapter-block] p")?.textContent.startsWith(start), start, PATIENCE);
  const none = () => page.waitForFunction(() => !document.querySelector("[data-testid=chapter-block]"), null, PATIENCE);
  const weights = "Block at 0x40000000: 8.00 MiB requested, 8.00 MiB taken, allocated by event 1 at /app/train.py:10:build, in use until the end of the recording.";
  // The first row is the name of the pool.
  await blocks.click({ position: { x: 5, y: 24 } });
  await selected(weights);
  assert.ok((await id(page, "announcement").textContent()).includes("Block at 0x40000000"), "it is announced");
  // (Copying the table would press Escape, which clears the selection.)
  const stack = async () => (await id(page, "table-block-stack").locator("[role=gridcell]").allInnerTexts()).map((text) => text.trim());
  assert.deepEqual(await stack(), ["build", "/app/train.py", "10"]);
  assert.deepEqual(await accessibilityFaults(page), []);
  // By keys: the block after it, at the peak, and the one before.
  await blocks.focus();
  await page.keyboard.press(".");
  await selected("Block at 0x40e00000: 4.00 MiB requested");
  assert.deepEqual(await stack(), ["log", "/app/train.py", "30"]);
  await blocks.focus();
  // Through time: before it was allocated it is not there.
  await page.keyboard.press("Home");
  await none();
  await page.keyboard.press("End");
  await selected("Block at 0x40e00000: 4.00 MiB requested");
  await page.keyboard.press(",");
  await selected(weights);
  await page.keyboard.press("Escape");
  await none();
  await session.close();
});

test("a snapshot at 400 pixels in the dark has nothing cut, and a trace beside it stays", async () => {
  const session = await dropped(browser, [file(), example()], { viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const { page } = session;
  await settled(page);
  await page.getByTestId("file-card").filter({ hasText: "leak" }).locator("button").first().click();
  await id(page, "view-snapshot").waitFor(PATIENCE);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.ok(!wide, "nothing is cut at 400 px");
  assert.deepEqual(await accessibilityFaults(page), []);
  await page.getByTestId("file-card").filter({ hasText: "example" }).locator("button").first().click();
  await id(page, "view-overview").waitFor(PATIENCE);
  await session.close();
});

test("some events of a snapshot are read, as the command line reads them, and all of them again", async () => {
  const snapshot = file();
  const session = await dropped(browser, [snapshot]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  await settled(page);
  assert.equal(await id(page, "read-all").count(), 0, "all are there");
  const told = (options) => said(snapshot, ...options).split("\n").find((line) => line.startsWith("Memory in use peaks at"))?.replaceAll("\\", "");
  const shows = (sentence) => page.waitForFunction((sentence) => document.querySelector("[data-testid=view-snapshot]")?.innerText.includes(sentence), sentence, PATIENCE);
  // Nothing is read of what is no range.
  for (const [from, to] of [["5", "2"], ["0", "1e1"]]) {
    await id(page, "events-from").fill(from);
    await id(page, "events-to").fill(to);
    await id(page, "read-events").click();
    assert.equal(await id(page, "read-all").count(), 0, `${from}..${to}`);
  }
  await id(page, "events-from").fill("2");
  await id(page, "events-to").fill("5");
  await id(page, "events-to").press("Enter");
  const part = said(snapshot, "--events", "2..5");
  const kept = part.split("\n").find((line) => line.includes("only events 2 to 4 of"));
  assert.ok(kept, part);
  await shows(kept.replaceAll("\\", ""));
  await settled(page);
  assert.deepEqual([await id(page, "events-from").inputValue(), await id(page, "events-to").inputValue()], ["2", "5"]);
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "read-all").click();
  await shows(told([]));
  await session.close();
});

test("a snapshot that is too large for a tab is read once a person says how much of it", async () => {
  const at = path.join(scratch(), "huge.json");
  fs.writeFileSync(at, leaking());
  // (Nothing but its size is read of the rest.)
  fs.truncateSync(at, 5 * 1024 ** 3);
  const session = await dropped(browser, [at]);
  const { page } = session;
  await id(page, "large-snapshot").waitFor(PATIENCE);
  assert.ok((await id(page, "large-snapshot").innerText()).includes("huge.json has 5.37 GB"), await id(page, "large-snapshot").innerText());
  assert.equal(await id(page, "read-all").count(), 1);
  assert.deepEqual(await accessibilityFaults(page), []);
  fs.rmSync(at);
  await session.close();
});

test("a snapshot that is cut is read as far as it goes, and says so", async () => {
  const at = path.join(scratch(), "cut.json");
  fs.writeFileSync(at, leaking().slice(0, 700));
  const session = await dropped(browser, [at]);
  await id(session.page, "view-snapshot").waitFor(PATIENCE);
  assert.ok((await id(session.page, "view-snapshot").innerText()).includes("The file is cut"));
  await session.close();
});

test("a memory timeline of the profiler is drawn by category, with the figures of the command line", async () => {
  const at = path.join(scratch(), "run.memory_timeline.raw.json.gz");
  // Parameters from before; three steps whose activations come and go.
  const timeline = [[-1, 1, 8 * MIB, 0]];
  for (let step = 0; step < 3; step += 1) {
    const t = 1e6 * (step + 1);
    timeline.push([t, 2, (4 + step) * MIB, 4], [t + 2e5, 2, 2 * MIB, 5], [t + 4e5, 4, -(4 + step) * MIB, 4], [t + 6e5, 4, -2 * MIB, 5]);
  }
  fs.writeFileSync(at, gzipSync(JSON.stringify(timeline)));
  const session = await dropped(browser, [at]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  await settled(page);
  const text = await id(page, "view-snapshot").innerText();
  const [said0] = said(at).split("\n").filter((line) => line.startsWith("The most memory"));
  assert.ok(text.includes(said0), said0);
  const { peak_bytes, peak_by_category } = JSON.parse(said(at, "--json")).timeline;
  assert.equal(peak_bytes, 16 * MIB);
  // The cursor stands at the peak.
  const shown = await rows(page, "alive");
  assert.deepEqual(shown.map((row) => [row.category, Number(row.bytes)]), peak_by_category.map((row) => [row.category, row.bytes]));
  await isDrawn(page, "memory");
  assert.equal(await id(page, "surface-blocks").count(), 0, "there are no blocks in it");
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

/// A trace with a weight from before, an activation of a line of Python and a result of an op.
function traceWithMemory() {
  const slice = (cat, name, tid, ts, dur) => ({ ph: "X", cat, name, pid: 1, tid, ts, dur, args: {} });
  const memory = (ts, address, bytes, total) => ({
    ph: "i", cat: "cpu_instant_event", s: "t", name: "[memory]", pid: 1, tid: 1, ts,
    args: { "Total Reserved": 32 * MIB, "Total Allocated": total, Bytes: bytes, Addr: address, "Device Id": 0, "Device Type": 1 },
  });
  return { traceEvents: [
    slice("python_function", "/app/train.py(12): forward", 1, 10, 3000),
    slice("cpu_op", "aten::relu", 1, 15, 2000), slice("cpu_op", "aten::mm", 1, 5000, 2000),
    slice("cpu_op", "aten::empty", 1, 5500, 500), slice("kernel", "gemm", 7, 6000, 900),
    memory(1000, 4096, 8 * MIB, 12 * MIB), memory(5700, 8192, 6 * MIB, 18 * MIB), memory(8000, 4096, -8 * MIB, 10 * MIB),
  ] };
}

test("the memory events of a trace are drawn by what allocated, with the figures of the command line", async () => {
  const at = path.join(scratch(), "profile_memory.json");
  fs.writeFileSync(at, JSON.stringify(traceWithMemory()));
  const session = await dropped(browser, [at]);
  const { page } = session;
  await settled(page);
  await id(page, "nav-memory").click();
  await id(page, "looking").waitFor(PATIENCE);
  await moment(page, "Before event 3 (+4.70 ms): 18.0 MiB, 32.0 MiB reserved.");
  const text = await id(page, "view-memory").innerText();
  const [said0] = said(at).split("\n").filter((line) => line.startsWith("The most memory"));
  assert.ok(text.includes(said0.replaceAll("\\", "")), said0);
  const { peak_by_category } = JSON.parse(said(at, "--json")).memory_events[0].memory;
  assert.deepEqual(peak_by_category.map((row) => row.category), ["/app/train.py:12 forward", "aten::mm", "allocated before the first event"]);
  const shown = await rows(page, "alive");
  assert.deepEqual(shown.map((row) => [row.category, Number(row.bytes)]), peak_by_category.map((row) => [row.category, row.bytes]));
  await isDrawn(page, "memory");
  assert.equal(await id(page, "surface-blocks").count(), 0, "there are no blocks in it");
  assert.deepEqual(await accessibilityFaults(page), []);
  // Another view and back: a canvas is handed over once, so the new one is drawn on.
  await id(page, "nav-triage").click();
  await id(page, "nav-memory").click();
  await id(page, "looking").waitFor(PATIENCE);
  await isDrawn(page, "memory");
  await page.keyboard.press("Home");
  await session.close();
});

test("of several devices the one that ran out of memory comes first, and is named as chosen", async () => {
  const at = path.join(scratch(), "two.json");
  const { segments: [segment], device_traces: [events] } = JSON.parse(leaking());
  const oom = { action: "oom", size: 80 * MIB, device_free: 0, stream: 0, frames: [{ filename: "/app/train.py", line: 20, name: "forward" }], time_us: 99 };
  const segments = [segment, { ...segment, device: 1 }];
  fs.writeFileSync(at, JSON.stringify({ segments, device_traces: [events, [...events, oom]] }));
  const session = await dropped(browser, [at]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  assert.match(await id(page, "view-snapshot").innerText(), /Device 1 ran out of memory: an allocation of 80\.0 MiB failed at \/app\/train\.py:20:forward/);
  await moment(page, "Before event 18: 24.0 MiB requested");
  await showsOption(id(page, "charted"), "1");
  await id(page, "charted").selectOption("0");
  const { peak_index } = JSON.parse(said(at, "--json")).devices["0"].replay;
  await moment(page, `Before event ${peak_index}: 30.0 MiB requested`);
  await showsOption(id(page, "charted"), "0");
  await session.close();
});

test("a snapshot of 200 MB is read in the browser, and answers at once when it is looked at", async () => {
  const at = path.join(scratch(), "large.json");
  const frames = JSON.stringify(Array.from({ length: 24 }, (_, depth) => ({ filename: `/opt/venv/lib/python3.12/site-packages/torch/nn/modules/part_${depth}.py`, line: 100 + depth, name: "_call_impl" })));
  const out = fs.openSync(at, "w");
  fs.writeSync(out, '{"device_traces": [[');
  let written = 0;
  for (let n = 0; written < 200e6; n += 1) {
    const address = (1 << 30) + (n % 7) * MIB;
    const events = ["alloc", "free_requested", "free_completed"].map((action, of) => `{"action": "${action}", "addr": ${address}, "size": ${MIB}, "stream": 0, "time_us": ${3 * n + of + 1}, "frames": ${frames}}`);
    written += fs.writeSync(out, `${n > 0 ? ", " : ""}${events.join(", ")}`);
  }
  const block = { address: 1 << 30, size: 8 * MIB, requested_size: 0, state: "inactive", frames: [] };
  const segment = { device: 0, address: 1 << 30, total_size: 8 * MIB, allocated_size: 0, active_size: 0, stream: 0, segment_type: "large", blocks: [block] };
  fs.writeSync(out, `]], "segments": [${JSON.stringify(segment)}]}`);
  fs.closeSync(out);
  const session = await dropped(browser, [at]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  await settled(page);
  const [first] = said(at).split("\n").filter((line) => line.startsWith("Memory in use peaks at"));
  assert.ok((await id(page, "view-snapshot").innerText()).includes(first.replaceAll("\\", "")), first);
  await moment(page, "Before event 1: 1.00 MiB requested in 1 block");
  await id(page, "surface-memory").press("End");
  await page.waitForFunction(() => /^Before event .*: 0 B requested/.test(document.querySelector("[data-testid=chapter-moment] p")?.textContent), undefined, PATIENCE);
  fs.rmSync(at);
  await session.close();
});

test("two snapshots are compared as the command line compares them", async () => {
  const [before, later] = ["before.json", "later.json"].map((name) => path.join(scratch(), name));
  const whole = JSON.parse(leaking());
  fs.writeFileSync(later, JSON.stringify(whole));
  // The earlier one ends before the last step: one block less is kept.
  const [events] = whole.device_traces;
  const cut = events.slice(0, 14);
  const segment = structuredClone(whole.segments[0]);
  const last = segment.blocks.findLast((block) => block.state === "active_allocated");
  last.state = "inactive";
  segment.allocated_size -= last.size;
  segment.active_size -= last.size;
  fs.writeFileSync(before, JSON.stringify({ segments: [segment], device_traces: [cut] }));
  const session = await dropped(browser, [before, later]);
  const { page } = session;
  await settled(page);
  const cards = page.getByTestId("file-card");
  await cards.filter({ hasText: "later.json" }).locator("button").first().click();
  await id(page, "earlier").selectOption("before.json");
  await id(page, "chapter-memory-compare").waitFor(PATIENCE);
  const { comparison } = JSON.parse(said(later, "--against", before, "--json"));
  const first = said(later, "--against", before).split("\n").find((line) => line.startsWith("Memory in use"));
  assert.ok((await id(page, "chapter-memory-compare").innerText()).includes(first), first);
  const shown = await rows(page, "memory-sites-0");
  assert.ok(shown.length > 0);
  assert.deepEqual(shown.map((row) => [row.site, Number(row.end_after)]), comparison.sites["0"].map((row) => [row.site, row.end_after]));
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "earlier").selectOption("None");
  assert.equal(await id(page, "chapter-memory-compare").count(), 0);
  await session.close();
});

test("a trace of the same run names the ops that allocated, as the command line does", async () => {
  const [taken, run, other] = ["taken.json", "run.json", "other.json"].map((name) => path.join(scratch(), name));
  const since = 1_700_000_000_000_000;
  const whole = JSON.parse(leaking());
  const [events] = whole.device_traces;
  // 5 ms apart: every allocation has a time of its own.
  for (const event of events) event.time_us = since + event.time_us * 5_000;
  fs.writeFileSync(taken, JSON.stringify(whole));
  const common = { pid: 1, tid: 1 };
  const recorded = events.filter((event) => event.action === "alloc").flatMap(({ addr, size, time_us }) => [
    { ph: "X", cat: "cpu_op", name: size === 4 * MIB ? "aten::cat" : "aten::mm", ts: time_us - since - 20, dur: 50, args: {}, ...common },
    { ph: "i", s: "t", cat: "cpu_instant_event", name: "[memory]", ts: time_us - since + 2, args: { Bytes: size, Addr: addr, "Device Id": 0, "Device Type": 1 }, ...common },
  ]);
  const trace = (moved) => JSON.stringify({
    baseTimeNanoseconds: since * 1_000,
    traceEvents: recorded.map((event) => (event.args.Addr ? { ...event, args: { ...event.args, Addr: event.args.Addr + moved } } : event)),
  });
  fs.writeFileSync(run, trace(0));
  fs.writeFileSync(other, trace(64));
  const session = await dropped(browser, [taken, run, other]);
  const { page } = session;
  await settled(page);
  await page.getByTestId("file-card").filter({ hasText: "taken.json" }).locator("button").first().click();
  await id(page, "trace").selectOption("run.json");
  await id(page, "chapter-same-run").waitFor(PATIENCE);
  const sentence = (of) => said(taken, "--trace", of).split("\n").find((line) => line.startsWith(path.basename(of))).replaceAll("\\", "");
  const shown = async () => (await id(page, "chapter-same-run").locator("p").first().innerText()).trim();
  assert.equal(await shown(), sentence(run));
  assert.match(await shown(), /is of the same run: \d+ of \d+ allocations/);
  const { same_run: found } = JSON.parse(said(taken, "--trace", run, "--json"));
  const table = await rows(page, "same-run-places");
  assert.ok(found.places.some((row) => row.asked === "at_peak" && row.op === "aten::cat"));
  assert.deepEqual(table.map((row) => [row.site, row.op]), found.places.map((row) => [row.site, row.op]));
  assert.deepEqual(await accessibilityFaults(page), []);
  // The trace of another process, at the same time.
  await id(page, "trace").selectOption("other.json");
  await page.waitForFunction(() => document.querySelector("[data-testid=chapter-same-run] p")?.textContent.includes("not shown"), undefined, PATIENCE);
  assert.equal(await shown(), sentence(other));
  assert.equal(await page.getByTestId("table-same-run-places").count(), 0);
  await id(page, "trace").selectOption("None");
  assert.equal(await id(page, "chapter-same-run").count(), 0);
  await session.close();
});

test("the layers of memory stand for call sites, purposes or phases", async () => {
  const session = await dropped(browser, [file()]);
  const { page } = session;
  await id(page, "view-snapshot").waitFor(PATIENCE);
  const heading = (text) => page.waitForFunction((text) => document.querySelector("[data-testid=stacked-by]")?.textContent.endsWith(text), text, PATIENCE);
  const legend = () => page.locator("[data-testid=looking] > ul.legend > li").allInnerTexts();
  await moment(page, "Before event");
  await heading("by call site");
  assert.ok((await legend()).some((label) => label.includes("train.py:30:log")));
  await id(page, "surface-memory").focus();
  await page.keyboard.press("l");
  await heading("by purpose (an estimate)");
  assert.deepEqual(await legend(), ["unknown"], "nothing in this file tells what its memory is for");
  await page.getByRole("button", { name: "Site, purpose or phase" }).click();
  await heading("by phase of the stack that allocated");
  // (Functions called forward are a forward pass, also where no hooks are called.)
  assert.deepEqual(await legend(), ["forward", "other"]);
  await page.keyboard.press("l");
  await session.close();
});
