// What `cargo xtask test` tells the tests.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

function told(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests by \`cargo xtask test --only browser\` or \`--only perfetto\``);
  return value;
}

/// The built page.
export const pageFolder = () => told("KINETOSCOPE_PAGE");
/// The browser.
export const chromium = () => told("KINETOSCOPE_CHROMIUM");
/// Firefox, where the tests run in it; else undefined.
export const firefox = () => process.env.KINETOSCOPE_FIREFOX || undefined;
/// The command line, built with optimisation.
export const cli = () => told("KINETOSCOPE_CLI");

/// The corpus of real traces, which is not part of the repository; undefined, and said so, where it is not there.
export function shared() {
  const folder = process.env.KINETOSCOPE_SHARED;
  if (folder) return folder;
  console.error("SKIPPED (no ../shared): tests on the real traces");
  tally("skipped", "the real traces");
  return undefined;
}

/// The files of a folder of the corpus, as full paths.
export function samples(kind) {
  const folder = shared();
  return folder === undefined ? [] : traces(path.join(folder, "corpus", kind));
}

/// The files of a kind of our own samples (crates/testkit), as full paths. They are always there.
export function own(kind) {
  const files = traces(path.join(told("KINETOSCOPE_SAMPLES"), kind));
  if (files.length === 0) throw new Error(`there are no samples of the kind ${kind}`);
  return files;
}

/// A trace of our own samples.
export const ownTrace = (name) => path.join(told("KINETOSCOPE_SAMPLES"), "traces", `${name}.json.gz`);

/// The reference figures of one of our own traces.
export function ownTruth(file) {
  const name = path.basename(file).replace(/\.json\.gz$/, ".truth.json");
  return JSON.parse(fs.readFileSync(path.join(told("KINETOSCOPE_SAMPLES"), "truth", name), "utf8"));
}

const traces = (folder) => fs.readdirSync(folder).sort().filter((name) => /\.json(\.gz)?$/.test(name)).map((name) => path.join(folder, name));

let running = path.basename(process.argv[1] ?? "");

/// Tells which file of tests runs now, where one process runs several.
export const runs = (file) => { running = file; };

/// Notes on what a test runs, for the sums at the end of `cargo xtask test`.
export function tally(what, name) {
  const file = process.env.KINETOSCOPE_TALLY;
  if (file) fs.appendFileSync(file, `${what}\t${running}\t${name}\n`);
}

const scratches = [];
process.on("exit", () => scratches.forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));

/// A new folder for what a test writes; removed at the end of the process.
export function scratch() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kinetoscope-test-"));
  scratches.push(folder);
  return folder;
}
