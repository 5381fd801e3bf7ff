// How long a frame takes while a person zooms, moves and points in a timeline, for `cargo xtask bench --timeline`: ours, drawing every
// slice in each frame (naive), and speedscope, on one file in one Chromium. The same of the memory of a snapshot, ours only, and what
// the page does with a snapshot of a gigabyte, for `cargo xtask bench --snapshots`.
//
//   node frames.mjs timeline FOLDER [TRACE]     FOLDER is for the trace of a million slices, which is made if it is not there
//   node frames.mjs snapshot FILE
//   node frames.mjs large FILE
//
// Prints a JSON object: by file, program and what is done, the 95th percentile and the longest of the frames in which any script ran, in
// ms: `main` on the page's thread, `worker` in the program that draws (ours only).
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { gunzipSync } from "node:zlib";

import { chromium } from "playwright-core";

import { processMegabytes } from "./processes.mjs";

const SLICES = 1_000_000;
const LANES = 8;
const VIEWPORT = { width: 1400, height: 950 };
const PATIENCE = { timeout: 300_000 };

/// A million kernels on eight streams, 1 to 21 us each; the same ones every time.
function million(folder) {
  const file = path.join(folder, "million.json");
  if (fs.existsSync(file)) return file;
  const out = fs.openSync(`${file}.part`, "w");
  let seed = 1;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  fs.writeSync(out, '{"traceEvents":[\n');
  const ends = new Array(LANES).fill(0);
  for (let n = 0; n < SLICES; n += 10_000) {
    const part = [];
    for (let at = n; at < n + 10_000; at++) {
      const stream = at % LANES;
      const [ts, dur] = [ends[stream] + Math.floor(random() * 10), 1 + Math.floor(random() * 20)];
      ends[stream] = ts + dur;
      part.push(`{"ph":"X","cat":"kernel","name":"kernel_${at % 97}","pid":0,"tid":${stream},"ts":${ts},"dur":${dur},"args":{"device":0,"stream":${stream}}}`);
    }
    fs.writeSync(out, part.join(",\n") + (n + 10_000 < SLICES ? ",\n" : "\n"));
  }
  fs.writeSync(out, "]}");
  fs.closeSync(out);
  fs.renameSync(`${file}.part`, file);
  return file;
}

/// In a page: adds up the time of all callbacks between two frames.
function instrument() {
  let [spent, depth] = [0, 0];
  const timed = (call) => function (...given) {
    const begun = performance.now();
    depth++;
    try {
      return call.apply(this, given);
    } finally {
      depth--;
      if (depth === 0) spent += performance.now() - begun;
    }
  };
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (call) => frame(timed(call));
  const known = new WeakMap();
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (type, call, options) {
    if (typeof call !== "function") return addEventListener.call(this, type, call, options);
    if (!known.has(call)) known.set(call, timed(call));
    return addEventListener.call(this, type, known.get(call), options);
  };
  EventTarget.prototype.removeEventListener = function (type, call, options) {
    return removeEventListener.call(this, type, known.get(call) ?? call, options);
  };
  const { get, set } = Object.getOwnPropertyDescriptor(Worker.prototype, "onmessage");
  Object.defineProperty(Worker.prototype, "onmessage", { get, set(call) { set.call(this, call && timed(call)); } });
  window.frames_of_test = [];
  const tick = () => { window.frames_of_test.push(spent); spent = 0; frame(tick); };
  frame(tick);
}

/// In a worker: the same for its frames.
function instrumentWorker() {
  const frame = self.requestAnimationFrame.bind(self);
  self.frames_of_test = [];
  self.requestAnimationFrame = (call) => frame((now) => {
    const begun = performance.now();
    call(now);
    self.frames_of_test.push(performance.now() - begun);
  });
}

function figures(times) {
  const own = times.filter((ms) => ms > 0.02).sort((a, b) => a - b);
  if (own.length < 5) return null;
  return { n: own.length, p95: own[Math.floor((own.length - 1) * 0.95)], max: own.at(-1) };
}

function serve(folder) {
  const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".css": "text/css", ".svg": "image/svg+xml" };
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(request.url.split("?")[0]);
    const file = path.join(folder, name === "/" ? "index.html" : name);
    if (!file.startsWith(folder) || !fs.existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[path.extname(file)] ?? "application/octet-stream" });
    response.end(fs.readFileSync(file));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/// Zooms, moves and points in a picture, and takes the frames of each.
async function journey(page, box, workers, pans) {
  const of = async (act) => {
    const clear = () => { globalThis.frames_of_test = globalThis.frames_of_test && []; };
    // (A worker may have ended.)
    await Promise.all([page, ...workers].map((where) => where.evaluate(clear).catch(() => null)));
    await act();
    await page.waitForTimeout(200);
    const taken = () => globalThis.frames_of_test ?? [];
    const [main, ...others] = await Promise.all([page, ...workers].map((where) => where.evaluate(taken).catch(() => [])));
    return { main: figures(main), worker: figures(others.flat()) };
  };
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  const zoom = await of(async () => {
    await page.keyboard.down("Control");
    for (let n = 0; n < 40; n++) {
      await page.mouse.wheel(0, n % 10 < 6 ? -120 : 120);
      await page.waitForTimeout(25);
    }
    await page.keyboard.up("Control");
  });
  const pan = await of(() => pans(x, y));
  const hover = await of(async () => {
    for (let n = 0; n < 40; n++) {
      await page.mouse.move(box.x + 100 + n * 20, y + (n % 5) * 10);
      await page.waitForTimeout(25);
    }
  });
  return { zoom, pan, hover };
}

async function visit(browser, url) {
  const page = await (await browser.newContext({ viewport: VIEWPORT })).newPage();
  const workers = [];
  page.on("worker", (worker) => workers.push(worker));
  await page.addInitScript(instrument);
  await page.goto(url);
  return { page, workers };
}

const LANES_PICTURE = { view: "#v=1&view=timeline", surface: "surface-over", drawn: "canvas.lanes" };
const MEMORY_PICTURE = { view: "", surface: "surface-memory", drawn: "canvas.memory" };

async function ours(browser, file, picture) {
  const server = await serve(process.env.KINETOSCOPE_PAGE);
  const { page, workers } = await visit(browser, `http://127.0.0.1:${server.address().port}/${picture.view}`);
  await page.getByTestId("file-input").first().setInputFiles(file);
  const surface = page.getByTestId(picture.surface);
  await surface.waitFor(PATIENCE);
  const begun = Date.now();
  const isDrawn = (drawn) => document.querySelector(drawn)?.width > 300;
  await page.waitForFunction(isDrawn, picture.drawn, { polling: "raf", ...PATIENCE });
  const first_ms = Date.now() - begun;
  // (Triage goes on for a while, in a worker of its own, and then the lanes have why the GPU is idle.)
  await page.waitForTimeout(8_000);
  const drawing = [];
  for (const worker of workers) {
    try {
      await worker.evaluate(instrumentWorker);
      drawing.push(worker);
    } catch { /* it has ended */ }
  }
  const found = await journey(page, await surface.boundingBox(), drawing, async (x, y) => {
    await page.keyboard.down("Shift");
    await page.mouse.down();
    for (let n = 0; n < 40; n++) {
      await page.mouse.move(x - n * 8, y);
      await page.waitForTimeout(25);
    }
    await page.mouse.up();
    await page.keyboard.up("Shift");
  });
  await page.context().close();
  server.close();
  return { first_ms, ...found };
}

/// Every slice in the time shown is a box, in each frame.
async function naive(browser, file) {
  const folder = fs.mkdtempSync(path.join(path.dirname(file), "naive-"));
  fs.writeFileSync(path.join(folder, "index.html"), `<!DOCTYPE html><canvas width="1400" height="700"></canvas><input type="file"><script>
    const canvas = document.querySelector("canvas"), context = canvas.getContext("2d");
    let lanes = [], from = 0, to = 1, dirty = false, drag = null;
    document.querySelector("input").onchange = async (event) => {
      const bytes = event.target.files[0].stream();
      const text = await new Response(event.target.files[0].name.endsWith("gz") ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes).text();
      const byLane = new Map();
      for (const of of JSON.parse(text).traceEvents) {
        if (of.ph !== "X" || of.ts === undefined) continue;
        const key = of.pid + "/" + of.tid;
        if (!byLane.has(key)) byLane.set(key, []);
        byLane.get(key).push([of.ts, of.ts + (of.dur ?? 0), 0]);
      }
      let y = 0;
      for (const own of byLane.values()) {
        own.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
        const open = [];
        let deepest = 0;
        for (const slice of own) {
          while (open.length && open.at(-1) <= slice[0]) open.pop();
          slice[2] = y + open.length;
          deepest = Math.max(deepest, open.length + 1);
          open.push(slice[1]);
        }
        y += deepest;
        lanes.push(own);
      }
      from = Math.min(...lanes.map((own) => own[0][0]));
      to = lanes.reduce((most, own) => own.reduce((most, slice) => Math.max(most, slice[1]), most), 0);
      draw();
      document.title = "ready";
    };
    function draw() {
      dirty = false;
      context.clearRect(0, 0, 1400, 700);
      const scale = 1400 / (to - from);
      for (const own of lanes) {
        for (const [start, end, y] of own) {
          if (end < from || start > to) continue;
          context.fillStyle = y % 2 ? "#0072b2" : "#e69f00";
          context.fillRect((start - from) * scale, y * 16, Math.max(1, (end - start) * scale), 15);
        }
      }
    }
    const later = () => { if (!dirty) { dirty = true; requestAnimationFrame(draw); } };
    addEventListener("wheel", (event) => {
      const at = from + (event.offsetX / 1400) * (to - from), factor = 2 ** (event.deltaY / 300);
      [from, to] = [at - (at - from) * factor, at + (to - at) * factor];
      later();
      event.preventDefault();
    }, { passive: false });
    addEventListener("mousedown", (event) => { drag = event.offsetX; });
    addEventListener("mouseup", () => { drag = null; });
    addEventListener("mousemove", (event) => {
      if (drag === null) return;
      const by = ((drag - event.offsetX) / 1400) * (to - from);
      [from, to, drag] = [from + by, to + by, event.offsetX];
      later();
    });
  </script>`);
  const server = await serve(folder);
  const { page } = await visit(browser, `http://127.0.0.1:${server.address().port}/`);
  await page.locator("input").setInputFiles(file);
  await page.waitForFunction(() => document.title === "ready", null, PATIENCE);
  const found = await journey(page, await page.locator("canvas").boundingBox(), [], async (x, y) => {
    await page.mouse.down();
    for (let n = 0; n < 40; n++) {
      await page.mouse.move(x - n * 8, y);
      await page.waitForTimeout(25);
    }
    await page.mouse.up();
  });
  await page.context().close();
  server.close();
  fs.rmSync(folder, { recursive: true });
  return found;
}

/// speedscope, in its own order of time. It shows one thread at a time: the first one of the file.
async function speedscope(browser, file) {
  const server = await serve(process.env.KINETOSCOPE_SPEEDSCOPE);
  const { page } = await visit(browser, `http://127.0.0.1:${server.address().port}/`);
  await page.locator("input[type=file]").first().setInputFiles(file);
  const isShown = () => [...document.querySelectorAll("canvas")].some((canvas) => canvas.width > 300);
  const failed = await page.waitForFunction(isShown, null, PATIENCE).then(() => null, (error) => String(error).split("\n")[0]);
  if (failed) {
    await page.context().close();
    server.close();
    return { failed };
  }
  await page.waitForTimeout(3_000);
  const box = { x: 0, y: 60, width: VIEWPORT.width, height: 500 };
  const found = await journey(page, box, [], async (x, y) => {
    await page.mouse.move(x, y);
    for (let n = 0; n < 40; n++) {
      await page.mouse.wheel(20, 0);
      await page.waitForTimeout(25);
    }
  });
  await page.context().close();
  server.close();
  return found;
}

/// Not every viewer reads compressed files.
function plain(folder, file) {
  if (!file?.endsWith(".gz")) return file;
  const to = path.join(folder, path.basename(file, ".gz"));
  fs.writeFileSync(to, gunzipSync(fs.readFileSync(file)));
  return to;
}

/// What the page does with a snapshot that is larger than most: how long until a person can look at it, or what it says instead; how
/// long it needs to answer at most meanwhile; the memory of the browser's processes.
async function large(browser, file) {
  const server = await serve(process.env.KINETOSCOPE_PAGE);
  const { page } = await visit(browser, `http://127.0.0.1:${server.address().port}/`);
  await page.getByTestId("file-input").first().setInputFiles(file);
  const begun = Date.now();
  let [answered_ms, said, most_bytes] = [0, null, 0];
  while (said === null && Date.now() - begun < PATIENCE.timeout) {
    await page.waitForTimeout(200);
    const asked = performance.now();
    said = await page.evaluate(() => {
      if (document.querySelector("[data-testid=chapter-moment] p")) return "shown";
      const other = document.querySelector("[data-testid=part-of-failed], [data-testid=large-snapshot]");
      return other && document.querySelector("main").innerText.slice(0, 300);
    });
    answered_ms = Math.max(answered_ms, performance.now() - asked);
    most_bytes = Math.max(most_bytes, 1e6 * processMegabytes());
  }
  const shown_s = (Date.now() - begun) / 1000;
  await page.context().close();
  server.close();
  return { file_bytes: fs.statSync(file).size, said, shown_s, answered_ms, most_bytes };
}

const [what, folder, trace] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.KINETOSCOPE_CHROMIUM,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const result = {};
if (what === "snapshot") Object.assign(result, await ours(browser, folder, MEMORY_PICTURE));
if (what === "large") Object.assign(result, await large(browser, folder));
for (const file of what === "timeline" ? [million(folder), plain(folder, trace)].filter(Boolean) : []) {
  const own = { ours: await ours(browser, file, LANES_PICTURE), naive: await naive(browser, file) };
  if (process.env.KINETOSCOPE_SPEEDSCOPE) own.speedscope = await speedscope(browser, file);
  result[path.basename(file)] = own;
}
await browser.close();
console.log(JSON.stringify(result));
