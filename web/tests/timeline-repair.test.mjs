// The timeline of a damaged file before and after its repair; the order of its tracks; fingers; the picture as an SVG.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import zlib from "node:zlib";

import { own } from "./environment.mjs";
import { accessibilityFaults, download, launch } from "./harness.mjs";
import { PATIENCE, drawn, dropped, example, id, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const damaged = () => own("traces").find((file) => file.endsWith("dependent_launch.json.gz"));

async function opened(file, options) {
  const session = await dropped(browser, [file], options);
  await settled(session.page);
  await view(session.page, "timeline");
  await id(session.page, "surface-over").waitFor(PATIENCE);
  await drawn(session.page);
  return session;
}

async function press(page, key) {
  await id(page, "surface-over").focus();
  await page.keyboard.press(key);
}

const status = (page, text) => page.waitForFunction(
  (text) => document.querySelector(".status-bar").textContent.includes(text), text, PATIENCE);

const slice = async (page) => (await id(page, "chapter-slice").textContent());

/// The slices that cross one that is still open on their thread, in the order of Perfetto's importer: a plain reading of the file.
function crossing(file) {
  const { traceEvents } = JSON.parse(zlib.gunzipSync(fs.readFileSync(file)));
  const threads = new Map();
  for (const event of traceEvents) {
    if (event.ph !== "X") continue;
    const key = `${event.pid} ${event.tid}`;
    threads.set(key, [...(threads.get(key) ?? []), event]);
  }
  const ns = (us) => Math.round(us * 1000);
  let found = 0;
  for (const events of threads.values()) {
    const open = [];
    for (const { ts, dur } of events.sort((a, b) => a.ts - b.ts || b.dur - a.dur)) {
      while (open.length > 0 && open.at(-1) <= ns(ts)) open.pop();
      if (open.length > 0 && open.at(-1) < ns(ts + dur)) found += 1;
      else open.push(ns(ts + dur));
    }
  }
  return found;
}

test("a damaged file is shown before and after its repair", async () => {
  const session = await opened(damaged());
  const { page } = session;
  const n = crossing(damaged());
  assert.ok(n > 0, "the sample is damaged");
  await press(page, "n");
  await id(page, "chapter-slice").waitFor(PATIENCE);
  const dropped = await slice(page);
  assert.match(dropped, /Perfetto v51 to v56 drop this slice/);
  await status(page, "Place 1 of ");
  await press(page, "v");
  await status(page, "After the repair: ");
  await page.waitForFunction(() => document.querySelector("[data-testid=chapter-slice]"), null, PATIENCE);
  assert.deepEqual(await accessibilityFaults(page), []);
  // The repair moves a slice of each place to a lane.
  await press(page, "n");
  await page.waitForFunction(() => /The repair moves it to the lane/.test(document.querySelector("[data-testid=chapter-slice]")?.textContent), null, PATIENCE);
  assert.match(await slice(page), /lane of the repair: /);
  await page.getByRole("button", { name: "Before / after" }).click();
  await status(page, `Before the repair: Perfetto v51 to v56 do not show ${n} slice`);
  await session.close();
});

test("a sound file has nothing to compare", async () => {
  const sound = path.join(os.tmpdir(), `kinetoscope-sound-${process.pid}.json.gz`);
  const traceEvents = [{ ph: "X", cat: "cpu_op", name: "op", pid: 1, tid: 1, ts: 0, dur: 10 }];
  fs.writeFileSync(sound, zlib.gzipSync(JSON.stringify({ traceEvents })));
  const session = await opened(sound);
  const { page } = session;
  await page.getByRole("button", { name: "Next damage" }).click();
  await status(page, "Perfetto shows every slice of this file in its place.");
  fs.rmSync(sound);
  await session.close();
});

test("tracks are moved and hidden, and the order is there after a reload", async () => {
  const session = await opened(example());
  const { page } = session;
  const first = async () => {
    await press(page, "Escape");
    await id(page, "chapter-slice").waitFor({ state: "detached" });
    await press(page, "ArrowRight");
    await id(page, "chapter-slice").waitFor(PATIENCE);
    return (await slice(page)).split(" on ").slice(1).join(" on ").split(".")[0];
  };
  await press(page, "ArrowRight");
  await id(page, "chapter-slice").waitFor(PATIENCE);
  const was = await first();
  await press(page, "j");
  await status(page, "is below");
  const is = await first();
  assert.notEqual(is, was, "another track is the first");
  const kept = await page.evaluate(() => localStorage.getItem("kinetoscope.tracks"));
  assert.match(kept, /^"?([psatmc]\d+ ?)+"?$/, "kinds and numbers, nothing of the trace");
  await press(page, "h");
  await status(page, "is hidden.");
  const hidden = await first();
  assert.ok(hidden !== is, "it is not shown");
  await session.close();

  const next = await dropped(browser, []);
  await next.page.evaluate((kept) => localStorage.setItem("kinetoscope.tracks", kept), kept);
  await next.page.reload();
  await next.page.locator("body").waitFor();
  await id(next.page, "file-input").setInputFiles(example());
  await settled(next.page);
  await view(next.page, "timeline");
  await id(next.page, "surface-over").waitFor(PATIENCE);
  await press(next.page, "ArrowRight");
  await id(next.page, "chapter-slice").waitFor(PATIENCE);
  assert.ok((await slice(next.page)).includes(` on ${is}.`), `${await slice(next.page)}: ${is}`);
  await press(next.page, "x");
  await status(next.page, "All tracks are shown, in their first order.");
  assert.match(await next.page.evaluate(() => localStorage.getItem("kinetoscope.tracks")), /^(""|)$/);
  await next.close();
});

/// The picture as an SVG, read by the browser: its title and its texts.
async function svg(page) {
  // (The page may make no documents: another one reads it.)
  const saved = await download(page, () => id(page, "svg").click());
  const reader = await page.context().newPage();
  const read = await reader.evaluate(({ text, name }) => {
    const read = new DOMParser().parseFromString(text, "image/svg+xml");
    const texts = [...read.querySelectorAll("text")].map((of) => of.textContent);
    const [width, height] = ["width", "height"].map((of) => Number(read.documentElement.getAttribute(of)));
    return {
      name, texts, width, height,
      wrong: read.querySelectorAll("parsererror, script, image").length,
      title: read.querySelector("title").textContent,
      bytes: text.length,
      blue: read.querySelectorAll("[fill='rgb(0, 114, 178)']").length,
    };
  }, { text: saved.bytes.toString(), name: saved.name });
  await reader.close();
  return read;
}

test("the picture is saved as an SVG whose text is text", async () => {
  const session = await opened(example());
  const { page } = session;
  const picture = await svg(page);
  assert.equal(picture.name, "example-lanes.svg");
  assert.equal(picture.wrong, 0);
  assert.ok(picture.texts.some((text) => /GPU 0, stream \d+/.test(text)), picture.texts.join("|"));
  assert.ok(picture.blue > 0, "GEMM is blue");
  const size = await page.evaluate(() => { const { clientWidth, clientHeight } = document.querySelector("canvas.over"); return [clientWidth, clientHeight]; });
  assert.deepEqual([picture.width, picture.height], size);
  assert.ok(picture.bytes < 2e6, `${picture.bytes} bytes`);
  await session.close();
});

/// A time as it is written, in ns.
function ns(text) {
  const [, number, unit] = /^([\d.]+)\s*(ns|µs|ms|s)\b/u.exec(text.replaceAll(/[\u2009\u202f\u00a0]/g, " "));
  return Number(number) * { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[unit];
}

test("two fingers zoom about the point between them, one moves the picture", async () => {
  const session = await opened(example(), { viewport: { width: 400, height: 800 } });
  const { page } = session;
  const fingers = (steps) => page.evaluate((steps) => {
    const canvas = document.querySelector("canvas.over");
    const box = canvas.getBoundingClientRect();
    for (const [type, pointerId, x, y] of steps) {
      canvas.dispatchEvent(new PointerEvent(type, {
        pointerId, pointerType: "touch", isPrimary: pointerId === 11, bubbles: true, cancelable: true,
        clientX: box.left + x, clientY: box.top + y, buttons: type === "pointerup" ? 0 : 1,
      }));
    }
  }, steps);
  const span = async () => ns((await svg(page)).title);
  const whole = await span();
  await fingers([
    ["pointerdown", 11, 150, 120], ["pointerdown", 12, 200, 120],
    ["pointermove", 11, 125, 120], ["pointermove", 12, 225, 120],
    ["pointerup", 12, 225, 120], ["pointerup", 11, 125, 120],
  ]);
  const half = await span();
  assert.ok(Math.abs(half / whole - 0.5) < 0.01, `${half} of ${whole}`);
  assert.equal(await id(page, "chapter-slice").count(), 0, "a pinch is no click");
  const from = async () => (await svg(page)).title.split(" from ")[1];
  const was = await from();
  await fingers([["pointerdown", 11, 100, 120], ["pointermove", 11, 200, 120], ["pointerup", 11, 200, 120]]);
  assert.notEqual(await from(), was, "one finger moves it");
  assert.ok(Math.abs(await span() / half - 1) < 0.01, "and does not zoom");
  assert.equal(await id(page, "chapter-range").count(), 0, "and selects no range");
  await session.close();
});
