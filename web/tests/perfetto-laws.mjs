// What must hold for any trace, checked on the traces of perfetto-grammar.mjs: the prediction is what Perfetto counts, the
// repaired file is whole, a second repair changes nothing, and nothing is lost.
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";

import { traceOf } from "./perfetto-grammar.mjs";
import { difference, readTrace, resolveFlows } from "./reference.mjs";

const run = promisify(execFile);

/// Perfetto's error statistics, and the counters of a prediction that say the same.
export const STATS = {
  slice_drop_overlapping_complete_event: "crossing_slices",
  misplaced_end_event: "misplaced_ends",
  slice_negative_duration: "negative_durations",
  trace_sorter_negative_timestamp_dropped: "negative_times",
  json_tokenizer_failure: "unreadable_events",
  json_parser_failure: "rejected_events",
  flow_no_enclosing_slice: "flows_without_slice",
  flow_duplicate_id: "duplicate_flow_starts",
  flow_invalid_id: "unreadable_flow_ids",
  flow_without_direction: "flows_without_direction",
};

/// Checks every law on the trace of a seed; what does not hold is in `failures`.
export async function check(seed, cli, folder, engine) {
  const failures = [];
  const law = (name, holds, detail) => holds || failures.push({ law: name, detail });
  const file = path.join(folder, `${seed}.json`);
  const repaired = path.join(folder, `${seed}.repaired.json`);
  const again = path.join(folder, `${seed}.again.json`);
  const log = path.join(folder, `${seed}.log`);
  const text = traceOf(seed);
  fs.writeFileSync(file, text);
  let stdout;
  try {
    const said = await run(cli, ["perfetto-fix", file, "-o", repaired, "--log", log]);
    stdout = said.stdout + said.stderr;
  } catch (error) {
    // Exit code 3: no trace. Perfetto must then not show slices either.
    const found = await engine.inspect(file);
    law("refused", error.code === 3 && (found.rejected !== undefined || found.nSlices === 0), `${error.code} ${error.stderr}`);
    return { failures, noTrace: true };
  }
  const { before, after, proof, problems } = JSON.parse(fs.readFileSync(log));
  const found = await engine.inspect(file);
  if (before.stops === null) {
    law("stops", found.rejected === undefined, `Perfetto stops: ${found.rejected}`);
    if (found.rejected === undefined) {
      const counted = Object.fromEntries(Object.keys(STATS).map((stat) => [stat, found.errors[stat] ?? 0]));
      const predicted = Object.fromEntries(Object.entries(STATS).map(([stat, key]) => [stat, before[key] ?? 0]));
      const wrong = Object.keys(STATS).filter((stat) => counted[stat] !== predicted[stat]);
      law("prediction", wrong.length === 0, wrong.map((stat) => `${stat}: ${predicted[stat]} predicted, ${counted[stat]} counted`).join("; "));
      const others = Object.keys(found.errors).filter((stat) => !(stat in STATS));
      law("other errors", others.length === 0, others.join(", "));
    }
  } else {
    law("stops in vain", found.rejected !== undefined || !/rejects|incomplete|unknown/i.test(before.stops), before.stops);
  }
  law("proof", proof.holds, JSON.stringify(proof.rows.filter((row) => !row.holds)));
  const repairedText = fs.readFileSync(repaired, "utf8");
  if (after.stops !== null) {
    // Perfetto does not know an array without events for a trace, and nothing can be added to it.
    law("nothing left", /the array contains no events/.test(after.stops) && JSON.parse(repairedText).length === 0, after.stops);
    return { failures, stops: before.stops };
  }
  const shown = await engine.inspect(repaired);
  law("repaired", shown.rejected === undefined && isDeepStrictEqual(shown.errors, {}), JSON.stringify(shown.rejected ?? shown.errors));
  law("predicted after", Object.values(STATS).every((key) => !after[key]) && after.too_deep === 0, JSON.stringify(after));
  // A time far behind all others cannot be read exactly; then the report says so.
  if (after.misread_times > 0) law("rounded times are reported", /rounded/.test(stdout), stdout);
  await run(cli, ["perfetto-fix", repaired, "-o", again]);
  law("twice", fs.readFileSync(again, "utf8") === repairedText, "a second repair changes the file");
  // What is not readable JSON is reported, and skipped.
  const malformed = problems.filter(({ kind }) => kind === "malformed-event");
  nothingLost(text, repairedText, malformed.reduce((sum, { count }) => sum + count, 0), law);
  if (problems.length === 0) arrowsEndWhereMeant(text, repairedText, shown.flows, law);
  for (const path of [file, repaired, again, log]) fs.rmSync(path, { force: true });
  return { failures, stops: before.stops };
}

const isTime = (ns) => ns !== undefined && BigInt.asIntN(64, ns) === ns;

/// Every complete slice with a time and a duration is in the repaired file, as long as it was; but for at most so many as
/// there are events that are no JSON.
function nothingLost(inputText, outputText, nMalformed, law) {
  let output;
  try {
    JSON.parse(outputText);
    output = readTrace(outputText);
  } catch (error) {
    law("json", false, String(error));
    return;
  }
  const isSpan = ({ ph, ts, dur }) => ph?.[0] === "X" && isTime(ts) && dur >= 0n && isTime(dur);
  const spans = ({ events }) => events.filter(isSpan).map(({ name, cat, dur }) => [name.toWellFormed(), cat, String(dur)]);
  // The second reading gives up at junk, so what it does not find in the input does not matter.
  const lost = difference(spans(readTrace(inputText)), spans(output)).filter((row) => "onlyLeft" in row);
  const nLost = lost.reduce((sum, { onlyLeft }) => sum + onlyLeft, 0);
  law("spans", nLost <= nMalformed, JSON.stringify(lost.slice(0, 3)));
}

/// Every arrow of the input is drawn, from and to the slices that it means. Where the second reading does not share the
/// importer's notion of an arrow, nothing is said: instants and async slices that are end points, `bind_id`s, odd pids and tids.
/// A flow event in no slice means none, but Perfetto draws its arrow from the slice before; both are right.
function arrowsEndWhereMeant(inputText, outputText, shown, law) {
  const input = readTrace(inputText);
  const isPlain = ({ ph, pid, tid, ts, bind }) =>
    /^[XCMBEiIRstfPNODpvcS]$/.test(ph ?? "") && isId(pid) && isId(tid) && (ts === undefined || isTime(ts)) && bind === undefined;
  if (!input.events.every(isPlain)) return;
  const base = (trace) => BigInt(trace.top.get("baseTimeNanoseconds") ?? 0);
  const moved = base(readTrace(outputText)) - base(input);
  const wrong = (loose) => {
    const meant = resolveFlows(input.events, { loose });
    return difference(meant.map(([a, ats, b, bts]) => [a, String(BigInt(ats) - moved), b, String(BigInt(bts) - moved)]), shown);
  };
  const strictly = wrong(false);
  law("arrows", strictly.length === 0 || wrong(true).length === 0, JSON.stringify(strictly.slice(0, 3)));
}

const isId = (raw) => /^[1-9]\d{0,8}$/.test(raw ?? "");
