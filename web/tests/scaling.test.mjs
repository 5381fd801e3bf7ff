// Several traces of one model with batches of different sizes: the page compares them as `kinetoscope scaling` does.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { cli, ownTrace, scratch } from "./environment.mjs";
import { accessibilityFaults, drop, launch } from "./harness.mjs";
import { PATIENCE, card, dropped, id, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// A sample whose iterations take a tensor of [32, 64].
const SAMPLE = "cpu_mlp_train";

/// The sample, and a copy for each other size: its first dimension is written anew, and each iteration takes so many times as long.
function folderOf(sizes) {
  const folder = scratch();
  const trace = JSON.parse(gunzipSync(fs.readFileSync(ownTrace(SAMPLE))));
  for (const [name, batch, times] of sizes) {
    const events = trace.traceEvents.map((event) => {
      const dims = event.args?.["Input Dims"];
      const scaled = dims && { ...event.args, "Input Dims": JSON.parse(JSON.stringify(dims).replaceAll("[32,64]", `[${batch},64]`)) };
      return {
        ...event,
        ...(scaled && { args: scaled }),
        ...(typeof event.ts === "number" && { ts: event.ts * times }),
        ...(typeof event.dur === "number" && { dur: event.dur * times }),
      };
    });
    fs.writeFileSync(path.join(folder, name), JSON.stringify({ ...trace, traceEvents: events }));
  }
  return folder;
}

const files = (folder) => fs.readdirSync(folder).sort().map((name) => path.join(folder, name));
const print = (...options) => execFileSync(cli(), ["scaling", ...options], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/// The page shows of these files what the command line prints: the sentence, and every row with all its figures.
async function sameAs(page, traces) {
  await view(page, "diagnosis");
  const sentence = print(...traces).split("\n").find((line) => line.startsWith("From batch size"));
  await page.waitForFunction((wanted) => {
    const said = [...document.querySelectorAll("[data-testid=scaling] > p")].map((line) => line.textContent);
    return said.length === 1 && said[0] === wanted;
  }, sentence, PATIENCE);
  const wanted = JSON.parse(print(...traces, "--json")).rows.map((row) => ({
    name: row.name, batch: `${row.batch}`, input: `[${row.input.join(", ")}] of ${row.op}`, n: `${row.n}`, p50_ns: `${row.p50_ns}`,
    item_ns: `${row.item_ns}`, per_s: row.per_s.toFixed(1), gain: `${row.gain.toFixed(2)}x`,
  }));
  assert.deepEqual(await rows(page, "scaling"), wanted);
  return wanted;
}

test("runs with batches of three sizes are compared as the command line compares them, whichever is shown", async () => {
  const folder = folderOf([["large.json", 128, 3], ["medium.json", 64, 1.25], ["small.json", 32, 1]]);
  const session = await dropped(browser, files(folder));
  const { page } = session;
  await settled(page);
  for (const name of ["small", "large"]) {
    await card(page, name).click();
    const table = await sameAs(page, files(folder));
    assert.deepEqual(table.map((row) => [row.name, row.batch]), [["small.json", "32"], ["medium.json", "64"], ["large.json", "128"]]);
    assert.equal(table[0].gain, "1.00x");
    // The chart: two marks of each run, its batch size below them, and the same figures in words.
    const chart = id(page, "drawing-scaling");
    assert.equal(await chart.locator("circle.segment").count(), 6);
    const labels = await chart.locator("text").allTextContents();
    assert.ok(["32", "64", "128"].every((size) => labels.includes(size)), labels.join(" "));
    const said = await chart.locator("svg[role=img]").getAttribute("aria-label");
    assert.match(said, /32: .*, .* per item; 64: .*; 128: /);
  }
  assert.deepEqual(await accessibilityFaults(page), []);
  assert.equal(await id(page, "ranks").count(), 0);
  await card(page, "medium").getByTestId("remove").click();
  await sameAs(page, files(folder).filter((file) => !file.includes("medium")));
  await session.close();
});

test("a run with a batch of the same size is no other size, until one is added", async () => {
  const folder = folderOf([["again.json", 32, 2], ["large.json", 128, 3], ["small.json", 32, 1]]);
  const [again, large, small] = files(folder);
  const session = await dropped(browser, [again, small], { viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const { page } = session;
  await settled(page);
  await card(page, "small").click();
  await view(page, "diagnosis");
  await id(page, "baseline").waitFor(PATIENCE);
  assert.equal(await id(page, "scaling").count(), 0);
  await drop(page, "body", [large]);
  await settled(page);
  await card(page, "small").click();
  await sameAs(page, [again, large, small]);
  assert.deepEqual(await accessibilityFaults(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is cut at 400 px");
  await session.close();
});
