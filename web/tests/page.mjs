// What a person does on the page, for tests of several files, and what the command line makes of the same files.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";

import { cli, pageFolder, samples, scratch } from "./environment.mjs";
import { allowClipboard, copied, drop, open } from "./harness.mjs";

export const PATIENCE = { timeout: 60_000 };

export const id = (page, name) => page.getByTestId(name);

/// Shows a view and waits for it. Files are read first: a line that a file's card gets then moves the navigation down by an item, and a click
/// that is on its way meets another one.
export async function view(page, name) {
  await settled(page);
  await id(page, `nav-${name}`).click();
  await id(page, `view-${name}`).waitFor(PATIENCE);
}

/// A table as it is copied: one object per row, with all columns. Of kernels, the rows by stage, unless `merged`.
export async function rows(page, name, { merged = false } = {}) {
  await id(page, `table-${name}`).waitFor(PATIENCE);
  if (name === "kernel-table" && await id(page, "kernel-scope").count() > 0) {
    await id(page, merged ? "kernels-merged" : "kernels-by-stage").click();
  }
  // By name and not by place: tables above may still come in, and move the button away from the pointer.
  const press = (button) => id(page, button).dispatchEvent("click");
  // The buttons of a single row are in a menu; without rows there is nothing to copy.
  if (await id(page, `copy-tsv-${name}`).count() === 0) {
    if (await id(page, `copy-${name}`).count() === 0) return [];
    await press(`copy-${name}`);
  }
  const text = await copied(page, () => press(`copy-tsv-${name}`));
  if (await id(page, `copy-${name}`).count() > 0) await page.keyboard.press("Escape");
  const [head, ...lines] = text.trimEnd().split("\n").map((line) => line.split("\t"));
  return lines.map((cells) => Object.fromEntries(head.map((key, at) => [key, cells[at]])));
}

/// A sample trace, by its name.
export const sample = (name) => samples("traces").find((file) => path.basename(file) === name);

/// The trace that comes with the page: a prompt and a generation, with graphs, on two streams.
export const example = () => path.join(pageFolder(), "assets", "example.json.gz");

/// Its events. (PyTorch writes NaN, which is no JSON.)
export function exampleEvents() {
  const text = gunzipSync(fs.readFileSync(example())).toString();
  return JSON.parse(text.replace(/\bNaN\b/g, "null")).traceEvents;
}

/// A page where these files were dropped together. (Tests that are about files need no copy of the page.)
export async function dropped(browser, files, options) {
  const session = await open(browser, { copied: false, ...options });
  await allowClipboard(session.context);
  await drop(session.page, "body", files);
  return session;
}

export const card = (page, name) => page.getByTestId("file-card").filter({ has: page.locator("bdi", { hasText: name }) });
export const role = (page, name) => card(page, name).getByTestId("role");

/// The colours of a picture that a worker draws, each with how many pixels it has, the most frequent first: `["0,114,178,255", 2310]`. What
/// is transparent has none. `undefined` where there is no such canvas, or it has no size yet.
export const colours = async (page, selector = "canvas.lanes", nth = 0) => (await look(page, selector, nth))?.colours;

/// The same, with a sum over all pixels and their places.
const look = (page, selector, nth) => page.evaluate(([selector, nth]) => {
  const canvas = document.querySelectorAll(selector)[nth];
  if (!(canvas?.width > 200)) return undefined;
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d");
  context.drawImage(canvas, 0, 0);
  const found = new Map();
  let sum = 0;
  for (const pixel of new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer)) {
    found.set(pixel, (found.get(pixel) ?? 0) + 1);
    sum = (Math.imul(sum, 31) + pixel) | 0;
  }
  const text = (pixel) => [pixel, pixel >>> 8, pixel >>> 16, pixel >>> 24].map((byte) => byte & 255).join();
  const colours = [...found].filter(([pixel]) => pixel >>> 24 > 0).sort((a, b) => b[1] - a[1]).map(([pixel, n]) => [text(pixel), n]);
  return { colours, sum };
}, [selector, nth]);

/// Waits until this is true. It may take as long as anything on a page may. `what` is said where it does not become so: a text, or a
/// function that gives one. Times are in ms.
export async function until(isTrue, what, { timeout = PATIENCE.timeout, every = 50 } = {}) {
  for (const ends = Date.now() + timeout; !(await isTrue());) {
    if (Date.now() >= ends) assert.fail(typeof what === "function" ? what() : what);
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

/// Gives the page time, in ms, for what it must not do, or for what it shows nothing of.
export const meanwhile = (page, ms = 500) => page.waitForTimeout(ms);

/// Waits until a picture that a worker draws hears what a person does: where a rendering takes long, the browser does other things between
/// that and this. (Its canvas is handed over in the same moment, and is 300 px wide until the worker knows better.)
export async function hears(page, name) {
  await id(page, `surface-${name}`).first().waitFor(PATIENCE);
  await page.waitForFunction((name) =>
    [...document.querySelectorAll(`[data-testid=surface-${name}]`)].every((canvas) => canvas.width !== 300), name, PATIENCE);
}

/// Waits until a picture that a worker draws is there, with more than a background and a frame, and is the same in two looks at it.
export async function drawn(page, selector = "canvas.lanes", nth = 0) {
  let before;
  await until(async () => {
    const now = await look(page, selector, nth);
    const stays = now !== undefined && now.colours.length > 3 && now.sum === before;
    before = now?.sum;
    return stays;
  }, `${selector} is drawn`, { every: 100 });
}

/// Waits until a select field shows this option. The page sets it after a rendering, and lets the browser do other things between
/// the two where the rendering took long: the text around it can be there before.
export async function showsOption(field, label) {
  let shown;
  await until(async () => {
    shown = await field.evaluate((field) => field.selectedOptions[0]?.label);
    return shown === label;
  }, () => `the field shows ${shown}, not ${label}`);
}

/// Waits until no file is being worked on.
export async function settled(page) {
  await page.waitForFunction(() => {
    const cards = [...document.querySelectorAll("[data-testid=file-card]")];
    return cards.length > 0 && cards.every((card) => !card.querySelector("progress"));
  }, null, PATIENCE);
}

/// Waits until a file has its companions, as many as that.
export async function accompanied(page, n) {
  await page.waitForFunction((n) => document.querySelectorAll(".companion.read, .companion.unused").length === n, n, PATIENCE);
  await settled(page);
}

/// What `kinetoscope triage` writes, as a function from a file's name to its bytes.
export async function triaged(...options) {
  const folder = scratch();
  await promisify(execFile)(cli(), ["triage", ...options, "--out", folder, "--zip"], { maxBuffer: 1 << 26 });
  return (name) => fs.readFileSync(path.join(folder, name));
}

export const TEXTS = ["profile_summary.md", "profile_metadata.json", "kernel_table.json", "overlap_opportunities.json", "fuse_opportunities.json"];
export const TRACE = "perfetto_fixed_trace.json.gz";
export const ZIP = "kinetoscope_artifacts.zip";

const ns = (us) => Math.round(us * 1000);

/// A row of the kernel table on the page and one of kernel_table.json, as the same few facts.
export const ofPage = (row) => [row.kernel_name, Number(row.launches), Number(row.total_ns), row.python_location || "unresolved", row.cpu_op || "unresolved", row.mapping_confidence];
export const ofCli = (row) => [row.kernel_name, row.launches, ns(row.total_us), row.python_location, row.cpu_op, row.mapping_confidence];
