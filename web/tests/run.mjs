// Runs one group of the tests under Node's own runner: `perfetto` (perfetto*.test.mjs), `browser` (all others), or `firefox`
// (the same in Firefox, but what chromium-only.mjs lists).
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { FILES } from "./chromium-only.mjs";

const [group, ...options] = process.argv.slice(2);
const folder = fileURLToPath(new URL(".", import.meta.url));
const tests = fs.readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).sort();
const isPerfetto = (name) => name.startsWith("perfetto");
const groups = {
  perfetto: tests.filter(isPerfetto),
  browser: tests.filter((name) => !isPerfetto(name)),
  firefox: tests.filter((name) => !isPerfetto(name) && !FILES[name]),
};

if (!groups[group]?.length) {
  console.error(`usage: node run.mjs ${Object.keys(groups).join("|")} [options of node --test]`);
  process.exit(2);
}
// Long ones first, so that the lanes end together.
const LONG = ["companions", "app", "timeline", "host", "shell", "goldens", "maps", "kept", "triage"].map((name) => `${name}.test.mjs`);
const rank = (name) => (LONG.includes(name) ? LONG.indexOf(name) : LONG.length);

/// A folder with an empty file for each of these files of tests, in the order in which lane.mjs takes them.
function queueOf(files) {
  const queue = fs.mkdtempSync(path.join(os.tmpdir(), "kinetoscope-queue-"));
  const ordered = files.toSorted((a, b) => rank(a) - rank(b));
  for (const [at, name] of ordered.entries()) fs.writeFileSync(path.join(queue, `${String(at).padStart(3, "0")}-${name}`), "");
  return queue;
}

// Two processes at a time: a test also waits, and none asserts a time of the clock. (Four take longer on two cores, as drawing takes
// the processor: 461 s for 389 in Chromium.) One process runs the files of Perfetto one by one, or a lane of the others.
const inBrowser = group !== "perfetto";
const queue = inBrowser ? queueOf(groups[group]) : undefined;
const files = inBrowser ? ["lanes/first.mjs", "lanes/second.mjs"] : groups[group];
// A file of Perfetto has 20 minutes, a lane an hour; with the many seeds of KINETOSCOPE_SEEDS, four hours.
const minutes = process.env.KINETOSCOPE_SEEDS ? 240 : inBrowser ? 60 : 20;
const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=./failures.mjs", "--test-reporter-destination=stderr"];
const runner = ["--test", ...reporters, "--test-concurrency=2", `--test-timeout=${minutes * 60_000}`, ...options, ...files];
const env = { ...process.env, ...(queue && { KINETOSCOPE_QUEUE: queue }) };
const { status } = spawnSync(process.execPath, runner, { cwd: folder, stdio: "inherit", env });
if (queue) fs.rmSync(queue, { recursive: true });
process.exit(status ?? 1);
