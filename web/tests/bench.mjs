// One measurement in a process of its own, for `cargo xtask bench`. Each prints one JSON object with the CPU seconds of
// this process (all its threads: the compiler's count too) for the work alone; the work's input is in memory before it.
//
//   node bench.mjs ours FILE STAGE     our wasm; STAGE is decode, main (decode, analyse, plan) or repair (main, and the
//                                      repaired .json.gz)
//   node bench.mjs cold FILE           our wasm from its bytes to the kernel table, compilation included
//   node bench.mjs triage FILE ROLE OTHER  our wasm from its bytes to the artifacts of a pair; ROLE of OTHER is mapping or
//                                      capture
//   node bench.mjs host FILE           our wasm: decode, arguments, and the figures of the CPU
//   node bench.mjs snapshot FILE       our wasm on a memory snapshot: decode, the first figures, what a person looks at, the
//                                      rest of the report, and 240 frames of pan and zoom
//   node bench.mjs perfetto FILE       Perfetto's wasm: import, engine already started
//   node bench.mjs page FILE           the built page in Chromium, from just before the file is chosen; Linux only
import fs from "node:fs";
import { createRequire } from "node:module";

import { descendants, readStat } from "./processes.mjs";

// As large as the page's worker takes them (web/src/worker/session.rs).
const pieceBytes = (total) => Math.min(Math.max(Math.floor(total / 40), 1 << 20), 4 << 20);
const PERFETTO_PIECE_BYTES = 32 << 20;

function* pieces(bytes, size) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const ourModule = () => createRequire(import.meta.url)(process.env.KINETOSCOPE_BENCH_JS);

function ours(file, stage) {
  const bytes = fs.readFileSync(file);
  const { Job, linear_memory: memory } = ourModule();
  return work(bytes, Job, memory, stage, cpuSeconds());
}

function cold(file) {
  const bytes = fs.readFileSync(file);
  const before = cpuSeconds();
  const { Job, linear_memory: memory } = ourModule();
  return work(bytes, Job, memory, "analyze", before);
}

const STAGES = ["decode", "analyze", "main", "repair"];

function work(bytes, Job, memory, stage, before) {
  const result = { cpu_s: 0, stages: {} };
  const last = STAGES.indexOf(stage);
  if (last < 0) throw new Error(`no stage is called ${stage}`);
  const size = pieceBytes(bytes.length);
  let at = before;
  const done = (name) => {
    const now = cpuSeconds();
    result.stages[name] = { cpu_s: now - at, memory_bytes: memory().buffer.byteLength };
    at = now;
    result.cpu_s = now - before;
  };
  const job = new Job();
  for (const piece of pieces(bytes, size)) job.push(piece);
  result.n_events = job.finish_decode();
  done("decode");
  if (last >= 1) {
    result.n_kernel_rows = job.analyze();
    done("analyze");
  }
  if (last >= 2) {
    result.n_drops = job.plan();
    done("plan");
  }
  if (last >= 3) {
    job.start_repair();
    for (const piece of pieces(bytes, size)) job.push_repair(piece);
    result.n_bytes_out = job.finish_repair();
    done("repair");
  }
  result.heap_bytes = job.heap_bytes();
  return result;
}

function triage(file, role, other) {
  const [bytes, others] = [file, other].map((name) => fs.readFileSync(name));
  const before = cpuSeconds();
  const { Job, linear_memory: memory } = ourModule();
  const loaded = cpuSeconds();
  const job = new Job();
  const decode = (bytes) => {
    for (const piece of pieces(bytes, pieceBytes(bytes.length))) job.push(piece);
    return job.finish_decode();
  };
  // As the command line and the page do: arguments of the measured trace and of captures are read from their files again.
  const readAgain = (bytes) => {
    job.start_details();
    for (const piece of pieces(bytes, pieceBytes(bytes.length))) if (!job.push_details(piece)) break;
    job.finish_details();
  };
  const n_events_other = decode(others);
  if (role === "mapping") {
    job.keep_as_mapping();
  } else if (role === "capture") {
    readAgain(others);
    job.keep_as_capture();
  } else {
    throw new Error(`no role is called ${role}`);
  }
  const n_events = decode(bytes);
  readAgain(bytes);
  const n_bytes_out = job.triage();
  const after = cpuSeconds();
  return {
    cpu_s: after - before,
    loaded_cpu_s: after - loaded,
    memory_bytes: memory().buffer.byteLength,
    // In kilobytes.
    process_bytes: process.resourceUsage().maxRSS * 1024,
    n_events,
    n_events_other,
    n_bytes_out,
  };
}

function host(file) {
  const bytes = fs.readFileSync(file);
  const { Job, linear_memory: memory } = ourModule();
  const job = new Job();
  const before = cpuSeconds();
  for (const piece of pieces(bytes, pieceBytes(bytes.length))) job.push(piece);
  const n_events = job.finish_decode();
  const decoded = cpuSeconds();
  const decode_memory_bytes = memory().buffer.byteLength;
  job.start_host_details();
  for (const piece of pieces(bytes, pieceBytes(bytes.length))) if (!job.push_details(piece)) break;
  job.finish_details();
  const read = cpuSeconds();
  const n_ops = job.host();
  return {
    n_events,
    n_ops,
    decode_cpu_s: decoded - before,
    arguments_cpu_s: read - decoded,
    figures_cpu_s: cpuSeconds() - read,
    decode_memory_bytes,
    memory_bytes: memory().buffer.byteLength,
  };
}

// The file is read in pieces, as the page's worker does: it may be larger than what one buffer holds.
function snapshot(file) {
  const { SnapshotJob, linear_memory: memory } = ourModule();
  const size = fs.statSync(file).size;
  const piece = Buffer.alloc(pieceBytes(size));
  const handle = fs.openSync(file);
  const before = cpuSeconds();
  const job = new SnapshotJob();
  for (let read = 0; (read = fs.readSync(handle, piece)) > 0;) job.push(piece.subarray(0, read));
  const n_events = job.finish();
  const decoded = cpuSeconds();
  job.figures();
  const first = cpuSeconds();
  job.look();
  const ready = cpuSeconds();
  job.complete();
  const completed = cpuSeconds();
  // Zoom in from everything to a few events, then pan through them.
  const frames = [];
  for (let frame = 0; frame < 240; frame += 1) {
    const span = frame < 120 ? 0.93 ** frame : 0.001;
    const from = frame < 120 ? 0.37 * (1 - span) : 0.37 + (frame - 120) * 0.0001;
    const start = performance.now();
    job.frame(from, from + span);
    frames.push(performance.now() - start);
  }
  frames.sort((a, b) => a - b);
  return {
    n_events,
    cpu_s: first - before,
    decode_cpu_s: decoded - before,
    look_cpu_s: ready - first,
    rest_cpu_s: completed - ready,
    memory_bytes: memory().buffer.byteLength,
    frame_p95_ms: frames[Math.floor(frames.length * 0.95)],
    frame_max_ms: frames.at(-1),
  };
}

async function perfetto(file) {
  console.warn = () => {};
  const bytes = fs.readFileSync(file);
  const { startEngine } = await import("./perfetto.mjs");
  const engine = await startEngine();
  const before = cpuSeconds();
  for (const piece of pieces(bytes, PERFETTO_PIECE_BYTES)) await engine.parse(piece);
  await engine.notifyEof();
  const cpu_s = cpuSeconds() - before;
  const rows = await engine.query("select count(*) as n from slice");
  return { cpu_s, n_slices: Number(rows.iter({}).get("n")) };
}

// CPU seconds of every process that descends from this one, this one not counted: all of the browser; and of its threads
// that are dedicated workers.
function browserCpu() {
  const sum = { all: 0, workers: 0 };
  for (const [pid, { seconds }] of descendants()) {
    sum.all += seconds;
    const tasks = `/proc/${pid}/task`;
    const threads = fs.existsSync(tasks) ? fs.readdirSync(tasks).map((id) => readStat(`${tasks}/${id}/stat`)) : [];
    for (const thread of threads) if (thread?.name.startsWith("DedicatedWorker")) sum.workers += thread.seconds;
  }
  return sum;
}

async function page(file) {
  const { launch, started } = await import("./harness.mjs");
  const { serveFolder } = await import("./server.mjs");
  const browser = await launch({ optimises: true });
  const server = await serveFolder(process.env.KINETOSCOPE_PAGE);
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${server.url}#v=1&view=kernels`);
  await started(page);
  const rest = () => new Promise((resolve) => setTimeout(resolve, 3000));
  // The browser's start and the service worker's first run are not ours.
  await rest();
  // Told by the page itself: asking again and again would cost it time.
  const appeared = page.evaluate(() => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("no kernel table within a minute")), 60_000);
    const look = () => document.querySelector('[data-testid="table-kernels"] [role="gridcell"]') && resolve();
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  }));
  const before = browserCpu();
  await page.locator("input[type=file]").first().setInputFiles(file);
  await appeared;
  const after = browserCpu();
  await rest();
  const settled = browserCpu();
  await rest();
  const idle = browserCpu();
  // Stretches of more than 50 ms in which the page could not answer; the browser keeps them for who asks later.
  const longest_s = await page.evaluate(() => new Promise((resolve) => {
    const longest = (list) => Math.max(0, ...list.getEntries().map(({ duration }) => duration)) / 1000;
    new PerformanceObserver((list) => resolve(longest(list))).observe({ type: "longtask", buffered: true });
    setTimeout(resolve, 500, 0);
  }));
  await browser.close();
  await server.close();
  return {
    cpu_s: after.all - before.all,
    worker_cpu_s: after.workers - before.workers,
    settled_cpu_s: settled.all - before.all,
    start_cpu_s: before.all,
    idle_cpu_s: idle.all - settled.all,
    longest_s,
  };
}

const [what, ...files] = process.argv.slice(2);
const result = await { ours, cold, triage, host, snapshot, perfetto, page }[what](...files);
// Perfetto's engine keeps the process alive; a pipe must be empty before we end it.
process.stdout.write(JSON.stringify(result), () => process.exit(0));
