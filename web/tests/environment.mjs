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
/// The command line, built with optimisation.
export const cli = () => told("KINETOSCOPE_CLI");

/// The folder of sample traces; undefined, and said so, where it is not there.
export function shared() {
  const folder = process.env.KINETOSCOPE_SHARED;
  if (folder) return folder;
  console.error("SKIPPED (no ../shared): tests on the sample traces");
  return undefined;
}

/// The files of a folder of the samples, as full paths.
export function samples(kind) {
  const folder = shared();
  if (folder === undefined) return [];
  const files = fs.readdirSync(path.join(folder, "corpus", kind)).sort();
  return files.filter((name) => /\.json(\.gz)?$/.test(name)).map((name) => path.join(folder, "corpus", kind, name));
}

const scratches = [];
process.on("exit", () => scratches.forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));

/// A new folder for what a test writes; removed at the end of the process.
export function scratch() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kinetoscope-test-"));
  scratches.push(folder);
  return folder;
}
