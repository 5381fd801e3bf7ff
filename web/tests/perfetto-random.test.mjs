// Random traces, wrong in many ways at once: what the built-in model predicts is what the real Perfetto counts, stat for
// stat, and what is repaired is whole.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";

import { cli, scratch } from "./environment.mjs";
import { check } from "./perfetto-laws.mjs";
import { inspect, openEngine } from "./perfetto.mjs";

const run = promisify(execFile);
const folder = scratch();

// A small generator (mulberry32), so that a seed names a trace for ever.
function random(seed) {
  let state = seed * 0x9e3779b9;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  return { chance: (p) => next() < p, below, between: (a, b) => a + below(b - a + 1), pick: (list) => list[below(list.length)] };
}

// Whole us, absolute us since 1970 with three decimals, Kineto's own base, and small times with decimals.
const BASES = [null, 1712195495406752n, 4909733314358n, 100n];

function trace(seed) {
  const r = random(seed);
  const base = BASES[seed % BASES.length];
  const us = (n, from) => (base === null ? String(n) : `${from + BigInt(Math.floor(n / 1000))}.${String(n % 1000).padStart(3, "0")}`);
  const ts = (n) => us(n, base);
  const dur = (n) => us(n, 0n);
  const events = [];
  const push = (members) => events.push(`{${Object.entries(members).map(([key, value]) => `"${key}":${value}`).join(",")}}`);
  const text = (value) => JSON.stringify(value);
  let flow = 1;
  for (let thread = 0; thread < 150; thread += 1) {
    const on = { pid: r.pick([1, 2, 3]), tid: 1000 + thread };
    const kinds = r.pick(["X", "X", "X", "XBE", "XBEi", "XF", "XFBEi"]);
    const span = r.pick([6, 12, 30, 400]);
    for (let n = r.between(2, 14); n > 0; n -= 1) {
      const at = r.below(span + 1);
      const name = text(r.pick(["a", "b", "c"]));
      switch (r.pick([...kinds])) {
        case "X":
          push({ ph: '"X"', name, cat: text(r.pick(["kernel", "cpu_op", "user_annotation", "python_function"])), ...on, ts: ts(at), dur: dur(r.pick([0, 1, 2, 3, 5, 8, r.below(span + 1)])) });
          break;
        case "B":
          push({ ph: '"B"', name, ...on, ts: ts(at), ...(r.chance(0.5) ? { cat: text(r.pick(["q", "r"])) } : {}) });
          if (r.chance(0.8)) push({ ph: '"E"', ...on, ts: ts(at + r.below(span + 1)), ...(r.chance(0.6) ? { name: r.chance(0.8) ? name : text(r.pick(["a", "b", "c"])) } : {}) });
          break;
        case "E":
          push({ ph: '"E"', ...on, ts: ts(at) });
          break;
        case "i":
          push({ ph: '"i"', s: '"t"', name: '"i"', ...on, ts: ts(at) });
          break;
        default: {
          const shared = { name: '"f"', cat: '"f"' };
          push({ ph: '"s"', id: r.chance(0.95) ? flow : r.between(1, flow), ...shared, ...on, ts: ts(at) });
          push({ ph: text(r.pick(["f", "f", "t"])), id: flow, ...shared, pid: r.pick([1, 2, 3]), tid: 1000 + r.below(150), ts: ts(at + r.below(span + 1)), ...(r.chance(0.7) ? { bp: '"e"' } : {}) });
          flow += 1;
        }
      }
    }
  }
  // Threads that fold into one.
  for (const tid of [-1, 0, -7, 4294967301, 7.5]) {
    for (let n = r.below(5); n > 0; n -= 1) push({ ph: '"X"', name: '"fold"', cat: '"cpu_op"', pid: r.pick([1, 2]), tid, ts: ts(r.below(41)), dur: dur(r.below(21)) });
  }
  // Deeper than the importer goes.
  if (r.chance(0.5)) for (let depth = 0; depth < 530; depth += 1) push({ ph: '"X"', name: `"deep${depth}"`, cat: '"python_function"', pid: 9, tid: 9, ts: ts(depth), dur: dur(2000 - 2 * depth) });
  for (let n = events.length - 1; n > 0; n -= 1) {
    const other = r.below(n + 1);
    [events[n], events[other]] = [events[other], events[n]];
  }
  return `{"traceEvents":[${events.join(",\n")}]}`;
}

const STATS = {
  slice_drop_overlapping_complete_event: "crossing_slices",
  misplaced_end_event: "misplaced_ends",
  flow_no_enclosing_slice: "flows_without_slice",
  flow_duplicate_id: "duplicate_flow_starts",
  trace_sorter_negative_timestamp_dropped: "negative_times",
};

describe("random traces", { concurrency: 2 }, () => {
  for (let seed = 1; seed <= 12; seed += 1) {
    test(`seed ${seed}`, async () => {
      const file = path.join(folder, `${seed}.json`);
      const repaired = path.join(folder, `${seed}.repaired.json`);
      fs.writeFileSync(file, trace(seed));
      const { stdout } = await run(cli(), ["breakdown", "--json", file], { maxBuffer: 1 << 28 });
      const { prediction } = JSON.parse(stdout).perfetto;
      const found = await inspect(file);
      const counted = Object.fromEntries(Object.keys(STATS).map((stat) => [stat, found.errors[stat] ?? 0]));
      const predicted = Object.fromEntries(Object.entries(STATS).map(([stat, key]) => [stat, prediction[key]]));
      assert.deepEqual(predicted, counted);
      assert.deepEqual(Object.keys(found.errors).filter((stat) => !(stat in STATS)), [], "no other error");
      await run(cli(), ["perfetto-fix", file, "-o", repaired]);
      assert.deepEqual((await inspect(repaired)).errors, {});
    });
  }
});

// Small traces with free begins and ends, odd flows, ids, phases, tokens and documents (perfetto-grammar.mjs).
// KINETOSCOPE_SEEDS=FIRST:COUNT runs other seeds; docs/fuzzing.md has the run of 1 to 10,000.
const [first, count] = (process.env.KINETOSCOPE_SEEDS ?? "1:200").split(":").map(Number);
const AT_ONCE = 2;

// What failed once, and is mended (docs/fuzzing.md has the defects).
const ONCE_FAILED = [528, 1526, 1605, 2124, 2301, 2345, 2366, 3150, 4931, 5655, 7580, 7686, 8565, 9563];

function* every(step, from, end) {
  for (let seed = from; seed < end; seed += step) yield seed;
}

/// Every law on the trace of every seed. Each failure is printed at once, and the other seeds run all the same.
async function checkAll(seeds) {
  const engine = openEngine();
  const failed = [];
  try {
    for (const seed of seeds) {
      const { failures } = await check(seed, cli(), folder, engine).catch((error) => ({ failures: [{ law: "runs", detail: error.stack }] }));
      const said = failures.map(({ law, detail }) => `seed ${seed}: ${law}: ${detail}`);
      said.forEach((line) => console.error(line));
      failed.push(...said);
    }
  } finally {
    engine.close();
  }
  assert.deepEqual(failed, []);
}

describe("odd traces", { concurrency: AT_ONCE }, () => {
  const timeout = 4 * 3600_000;
  test("seeds that failed once", { timeout }, () => checkAll(ONCE_FAILED));
  for (let part = 0; part < AT_ONCE; part += 1) {
    const end = first + count;
    test(`seeds ${first + part} to ${end - 1}, every ${AT_ONCE}`, { timeout }, () => checkAll(every(AT_ONCE, first + part, end)));
  }
});
