// Counters of a file on the timeline.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { scratch } from "./environment.mjs";
import { accessibilityFaults, launch } from "./harness.mjs";
import { PATIENCE, drawn, dropped, id, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

test("counters are lanes with their values at the pointer and in tables", async () => {
  const folder = scratch();
  const file = path.join(folder, "counters.json");
  const events = [{ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: 0, dur: 1000 }];
  for (let at = 0; at < 500; at += 1) {
    events.push({ ph: "C", name: "GPU utilisation", pid: 1, ts: 100 + at, args: { percent: at % 50 } });
  }
  fs.writeFileSync(file, JSON.stringify({ traceEvents: events }));
  const session = await dropped(browser, [file], { colorScheme: "dark" });
  const { page } = session;
  await settled(page);
  await view(page, "timeline");
  const picture = page.locator("canvas.over");
  await drawn(page);
  const box = await picture.boundingBox();
  // (50 px of map and axis, 38 px of idle time, a head of 20 px.)
  await picture.click({ position: { x: box.width * 0.3, y: 50 + 38 + 20 + 20 } });
  const chapter = id(page, "chapter-levels");
  await chapter.waitFor(PATIENCE);
  const said = await chapter.locator("p").first().textContent();
  const [, moment, value] = /^At ([\d.]+) µs after the first slice: (\d+)\.$/.exec(said) ?? assert.fail(said);
  // (The moment is rounded to three digits.)
  const near = [-1, 0, 1].map((by) => (Math.round(Number(moment)) - 100 + by) % 50);
  assert.ok(near.includes(Number(value)), said);
  const changes = await rows(page, "lane-levels");
  assert.equal(changes.length, 500);
  assert.deepEqual(changes.slice(0, 2).map((row) => Number(row.level)), [0, 1]);
  assert.deepEqual(await accessibilityFaults(page), []);
  await picture.focus();
  await page.keyboard.press("ArrowRight");
  await id(page, "chapter-slice").waitFor(PATIENCE);
  await page.keyboard.press("r");
  const [counter] = await rows(page, "range-counters");
  assert.deepEqual([counter.lowest, counter.highest].map(Number), [0, 49]);
  await session.close();
});
