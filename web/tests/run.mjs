// Runs one group of the tests under Node's own runner: `perfetto` (perfetto*.test.mjs), `browser` (all others), or `firefox`
// (those of the others that use the page as a person does, in Firefox).
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const [group, ...options] = process.argv.slice(2);
const folder = fileURLToPath(new URL(".", import.meta.url));
const tests = fs.readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).sort();
const isPerfetto = (name) => name.startsWith("perfetto");
const IN_FIREFOX = [
  "charts.test.mjs", "clock.test.mjs", "counters.test.mjs", "details.test.mjs", "dock.test.mjs", "installed.test.mjs", "kept.test.mjs", "shell.test.mjs",
  "snapshot.test.mjs", "timeline-repair.test.mjs", "timeline.test.mjs", "triage.test.mjs",
];
const groups = {
  perfetto: tests.filter(isPerfetto),
  browser: tests.filter((name) => !isPerfetto(name)),
  firefox: tests.filter((name) => IN_FIREFOX.includes(name)),
};

if (!groups[group]?.length) {
  console.error(`usage: node run.mjs ${Object.keys(groups).join("|")} [options of node --test]`);
  process.exit(2);
}
// A test file has 20 minutes; with the many seeds of KINETOSCOPE_SEEDS, four hours.
const minutes = process.env.KINETOSCOPE_SEEDS ? 240 : 20;
// Three files at a time: a test mostly waits for the browser, and none asserts a time of the clock.
const runner = ["--test", "--test-reporter=spec", "--test-concurrency=3", `--test-timeout=${minutes * 60_000}`, ...options, ...groups[group]];
const { status } = spawnSync(process.execPath, runner, { cwd: folder, stdio: "inherit" });
process.exit(status ?? 1);
