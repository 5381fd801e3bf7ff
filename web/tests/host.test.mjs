// Why the time is lost: the bar, the actions and the CPU's views, against what the command line says of the same file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { cli, ownTrace } from "./environment.mjs";
import { accessibilityFaults, allowClipboard, launch } from "./harness.mjs";
import { dropped, example, id, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const said = (command, file) => JSON.parse(execFileSync(cli(), [command, file, "--json"], { encoding: "utf8", maxBuffer: 1 << 28 }));

/// A page with a file whose diagnosis is there.
async function diagnosed(file, options) {
  const session = await dropped(browser, [file], options);
  await allowClipboard(session.context);
  await settled(session.page);
  await view(session.page, "diagnosis");
  await id(session.page, "findings").waitFor();
  return session;
}

test("the overview begins with the sentence, the bar and the actions of the command line", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const wanted = said("diagnose", example());
  await view(page, "overview");
  assert.equal(await id(page, "finding-line").textContent(), wanted.headline);
  const shares = await id(page, "wall").locator("svg[role=img] > svg").evaluateAll((parts) => parts.map((part) => parseFloat(part.getAttribute("width"))));
  assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) < 0.01, `the parts add up: ${shares}`);
  assert.ok(wanted.actions.length > 0, "the example has something to do");
  const cards = await id(page, "finding").filter({ hasText: "Saves at most" }).count();
  assert.equal(cards, Math.min(3, wanted.actions.length));
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("the diagnosis has every finding of the command line, in full", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const wanted = said("diagnose", example());
  const shown = await id(page, "findings").locator("dd").allTextContents();
  assert.deepEqual(shown.map((text) => text.trim()), wanted.findings.map((of) => `${of.observation} ${of.meaning}`.trim()));
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("ops, functions, steps and modules are those of the command line", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const wanted = said("cpu", example());
  await view(page, "cpu");
  const ops = await rows(page, "ops");
  assert.equal(ops.length, Object.keys(wanted.key_averages).length);
  for (const op of ops) {
    const { count, self_cpu_ns, cpu_total_ns } = wanted.key_averages[op.name];
    assert.deepEqual([Number(op.count), Number(op.self_cpu_ns), Number(op.cpu_total_ns)], [count, self_cpu_ns, cpu_total_ns], op.name);
  }
  assert.deepEqual(await accessibilityFaults(page), []);
  await view(page, "python");
  const frames = await rows(page, "frames");
  assert.deepEqual(frames.slice(0, 5).map((row) => Number(row.self_ns)), wanted.python.frames.slice(0, 5).map((row) => row.self_ns));
  await view(page, "steps");
  const steps = await rows(page, "steps");
  assert.deepEqual(steps.map((row) => Number(row.dur_ns)), wanted.steps.cpu.map((step) => step.dur_ns));
  await view(page, "modules");
  assert.deepEqual(await accessibilityFaults(page), []);
  await view(page, "gaps");
  assert.ok(await id(page, "table-gaps").count());
  await view(page, "memory");
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("a trace without a GPU has the CPU's views and no empty ones of the GPU", async () => {
  const file = ownTrace("cpu_item_syncs");
  const session = await diagnosed(file, { viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const { page } = session;
  await view(page, "overview");
  assert.equal(await id(page, "wall").count(), 0);
  await view(page, "cpu");
  assert.ok((await rows(page, "ops")).length > 10);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.ok(!wide, "nothing is cut at 400 px");
  await session.close();
});
