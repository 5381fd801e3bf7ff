// Every sample is repaired by the command line and loaded into the real Perfetto. What must be seen there is worked out
// from the input by a second reading of it (reference.mjs), not by the product.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import zlib from "node:zlib";

import { cli, own, ownTruth, samples, scratch, shared, tally } from "./environment.mjs";
import { STATS } from "./perfetto-laws.mjs";
import { inspect, openEngine } from "./perfetto.mjs";
import { countSlices, difference, nanoseconds, readTrace, resolveFlows, textOf } from "./reference.mjs";

const run = promisify(execFile);
const folder = scratch();

// Python's notation, not JSON: nothing that reads JSON can read it.
const UNREADABLE = new Set(["49_single_quotes.json"]);
const PROCESSES_AT_ONCE = 2;

/// A file as the subject of a test, and of a line in the tally.
const sampleTest = (what, file, body) => test(path.basename(file), () => {
  tally(what, path.basename(file));
  return body();
});

const DROPPED = "slice_drop_overlapping_complete_event";
// The errors that Perfetto counts in our own traces as they are, each with the defect that it is made for, where the slices that cross in the
// file are not what tells.
const DEFECTS = { epoch_times: DROPPED, folded_tids: DROPPED, merged_ranks: "flow_duplicate_id" };

/// Tests of small traces, with one engine for all of them: most of the time of a small trace is the start of an engine.
function withOneEngine(name, body) {
  describe(name, () => {
    const engine = openEngine();
    after(() => engine.close());
    // An engine loads one file after the other.
    let last = Promise.resolve();
    body((file) => {
      last = last.catch(() => {}).then(() => engine.inspect(file));
      return last;
    });
  });
}

withOneEngine("our own samples", (look) => {
  for (const file of own("traces")) {
    sampleTest("own", file, async () => {
      const { input, output, before } = await repairedIsWhole(file, look);
      const truth = ownTruth(file);
      assert.equal(spans(output).length, truth.by_ph.X - truth.x_without_dur, "every X event of the reference");
      everyByteButTimeAndThread(input, output);
      const crosses = truth.tracks.crossing_pairs > 0 ? DROPPED : undefined;
      const defect = DEFECTS[path.basename(file, ".json.gz")] ?? crosses;
      assert.deepEqual(Object.keys(before.errors), defect === undefined ? [] : [defect]);
    });
  }
  for (const file of [...own("nasty"), ...own("counterexamples")]) sampleTest("own", file, () => isMended(file, look));
});

withOneEngine("nasty traces and counterexamples of the corpus", (look) => {
  for (const file of [...samples("nasty"), ...samples("counterexamples")]) sampleTest("shared", file, () => isMended(file, look));
});

describe("real traces", { concurrency: PROCESSES_AT_ONCE }, () => {
  for (const file of samples("traces")) {
    sampleTest("shared", file, async () => {
      const { input, output } = await repairedIsWhole(file);
      const truth = JSON.parse(fs.readFileSync(path.join(shared(), "corpus/truth", path.basename(file).replace(/\.json\.gz$/, ".truth.json"))));
      assert.equal(spans(output).length, truth.by_ph.X - truth.x_without_dur, "every X event of the reference");
      everyByteButTimeAndThread(input, output);
    });
  }
});

describe("training traces", { concurrency: PROCESSES_AT_ONCE }, () => {
  for (const file of samples("training")) {
    sampleTest("shared", file, async () => {
      const { input, output } = await repairedIsWhole(file);
      everyByteButTimeAndThread(input, output);
    });
  }
});

/// A file that is wrong in one way comes out whole, unless nothing that reads JSON can read it.
function isMended(file, look) {
  return UNREADABLE.has(path.basename(file)) ? isNoTrace(file) : repairedIsWhole(file, look);
}

async function isNoTrace(file) {
  const failure = await run(cli(), ["perfetto-fix", file, "-o", path.join(folder, "none.json")]).catch((error) => error);
  assert.equal(failure.code, 3);
  assert.match(failure.stderr, /\S/);
}

async function repairedIsWhole(file, look = inspect) {
  const name = path.basename(file).replace(/\.gz$/, "");
  const repaired = path.join(fs.mkdtempSync(path.join(folder, "run-")), name);
  await run(cli(), ["perfetto-fix", file, "-o", repaired, "--log", `${repaired}.log`]);
  const [before, after] = await Promise.all([look(file), look(repaired)]);
  const inputText = textOf(file);
  const outputText = textOf(repaired);
  const input = readTrace(inputText);
  const output = readTrace(outputText);

  assert.doesNotThrow(() => JSON.parse(outputText), "the repaired file is JSON");
  assert.equal(after.rejected, undefined);
  assert.deepEqual(after.errors, {}, "Perfetto has nothing to say against it");
  assert.equal(after.nSlices, countSlices(output.events), "Perfetto shows every slice of the file");
  const log = JSON.parse(fs.readFileSync(`${repaired}.log`));
  const changed = (rule) => log.changes.filter((change) => change.rule === rule);
  const outliers = new Set(changed("outlier").map(({ old_ts }) => nanoseconds(old_ts)));
  sameSpans(input, output, outliers);
  assert.deepEqual([log.after.misread_times, log.after.stops], [0, null]);

  const base = movedBy(input, output);
  const arrows = resolveFlows(input.events).map(([a, ats, b, bts]) => [a, String(BigInt(ats) - base), b, String(BigInt(bts) - base)]);
  assert.deepEqual(difference(arrows, after.flows).slice(0, 5), [], "every arrow ends where the input means it to");
  if (before.rejected === undefined) {
    assert.ok(after.nCounters >= before.nCounters, "counters");
    assert.deepEqual(before.threadNames.filter((thread) => !after.threadNames.includes(thread)), [], "thread names");
  }

  predicts(log.before, before);
  await twiceIsOnce(repaired, outputText);
  if (isUndamaged(input, inputText, before)) {
    assert.equal(outputText, inputText, "what is whole is not touched");
  }
  return { input, output, before };
}

/// X events with a time and a duration: all of them, in the order of the file, each as long as it was and all moved alike.
/// But for outliers, which keep their own time (0 if that is negative) and are in the log.
function sameSpans(input, output, outliers) {
  const before = spans(input);
  const after = spans(output);
  assert.equal(after.length, before.length, "no span is lost or made");
  const base = movedBy(input, output);
  for (const [at, event] of before.entries()) {
    assert.equal(after[at].dur, event.dur, `duration of span ${at}`);
    if (outliers.has(event.ts)) assert.equal(after[at].ts, event.ts < 0n ? 0n : event.ts, `time of outlier ${at}`);
    else assert.equal(after[at].ts + base, event.ts, `time of span ${at}`);
  }
}

/// For files whose text had no defect.
function everyByteButTimeAndThread(input, output) {
  const rest = ({ ph, name, cat, id, bp, scope, args, pid }) => ({ ph, name, cat, id, bp, scope, args, pid });
  for (const [at, event] of spans(input).entries()) assert.deepEqual(rest(spans(output)[at]), rest(event));
}

const kept = new WeakMap();
function spans(trace) {
  if (!kept.has(trace)) kept.set(trace, trace.events.filter((event) => event.ph === "X" && event.ts !== undefined && event.dur >= 0n));
  return kept.get(trace);
}

/// The nanoseconds by which the repair moved every event, as the file itself tells.
function movedBy(input, output) {
  const base = (trace) => BigInt(trace.top.get("baseTimeNanoseconds") ?? 0);
  return base(output) - base(input);
}

/// Every counter of the prediction is what Perfetto counts, unless the prediction says that Perfetto's reader stops.
function predicts(prediction, found) {
  if (prediction.stops !== null) return;
  assert.equal(found.rejected, undefined, "Perfetto reads the file");
  const counted = Object.fromEntries(Object.entries(STATS).map(([stat, key]) => [key, found.errors[stat] ?? 0]));
  assert.deepEqual(Object.fromEntries(Object.keys(counted).map((key) => [key, prediction[key]])), counted);
}

/// A repaired file needs no repair; and compressed output is the same text.
async function twiceIsOnce(repaired, outputText) {
  const again = `${repaired}.again.json.gz`;
  await run(cli(), ["perfetto-fix", repaired, "-o", again]);
  assert.ok(zlib.gunzipSync(fs.readFileSync(again)).equals(Buffer.from(outputText)), "repairing twice is repairing once");
}

/// True if Perfetto shows the input as it is meant: no error, no thread folded into another, every time exact, and no
/// text that makes it forget args without a word.
function isUndamaged(input, text, before) {
  if (before.rejected !== undefined || Object.keys(before.errors).length > 0) return false;
  if (!isJson(text) || /\\u[dD][89a-fA-F]/.test(text)) return false;
  const timed = input.events.filter((event) => event.ts !== undefined);
  const isPlainThread = ({ tid }) => tid === undefined || /^("|[1-9])/.test(tid);
  // Up to 2^42 us (2^52 ns) a double holds three decimals exactly enough.
  const isExact = ({ ts, dur = 0n }) => ts >= 0n && dur >= 0n && ts < (1000n << 42n) && ts + dur < (1000n << 42n);
  const hasDuration = (event) => event.ph !== "X" || event.dur !== undefined;
  return timed.every((event) => isPlainThread(event) && isExact(event) && hasDuration(event))
    && difference(resolveFlows(input.events), before.flows).length === 0;
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
