// Why the time is lost: the bar, the actions and the CPU's views, against what the command line says of the same file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { cli, firefox, ownTrace } from "./environment.mjs";
import { accessibilityFaults, allowClipboard, copied, launch } from "./harness.mjs";
import { PATIENCE, dropped, example, exampleEvents, id, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const said = (command, file, ...options) => JSON.parse(execFileSync(cli(), [command, file, "--json", ...options], { encoding: "utf8", maxBuffer: 1 << 28 }));

/// A page with a file whose diagnosis is there.
async function diagnosed(file, options) {
  const session = await dropped(browser, [file], options);
  await allowClipboard(session.context);
  await settled(session.page);
  await view(session.page, "diagnosis");
  await id(session.page, "baseline").waitFor();
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
  // Each card begins with what to do.
  const cards = id(page, "finding").filter({ has: page.locator("dt", { hasText: "Saves" }) });
  const first = wanted.actions.slice(0, 3).map((action) => action.first || action.action);
  const titles_of_cards = await cards.locator("h2").allTextContents();
  assert.equal(titles_of_cards.length, first.length);
  assert.ok(first.every((text, at) => titles_of_cards[at].startsWith(text)), `${titles_of_cards} are not ${first}`);
  assert.deepEqual(await accessibilityFaults(page), []);
  // What the actions tell is not told again below them; triage alone has it.
  const told = async () => (await page.locator("main").textContent()).includes("The GPU is idle for");
  await id(page, "takeaways").waitFor();
  assert.equal(await told(), false);
  await view(page, "triage");
  assert.equal(await told(), true);
  await view(page, "overview");
  // Each part leads to its evidence: by its name, and by its place in the bar.
  const names = id(page, "wall").locator(".legend button");
  const titles = await names.allTextContents();
  assert.equal(titles.length, shares.length);
  await names.nth(titles.indexOf("Compute")).click();
  await id(page, "view-triage").waitFor();
  await view(page, "overview");
  const widest = titles.findIndex((title, at) => title.startsWith("Idle") && shares[at] > 1);
  await id(page, "wall").locator("svg[role=img] > svg").nth(widest).click();
  await id(page, "view-gaps").waitFor();
  await session.close();
});

test("the diagnosis has every finding of the command line, in full and once", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const wanted = said("diagnose", example());
  const said_on = async (name) => (await id(page, name).locator("dd").allTextContents()).map((text) => text.trim());
  const [costs, figures] = [await said_on("findings"), await said_on("baseline")];
  const reasons = wanted.actions.map((of) => of.observation);
  const isSaid = (of) => reasons.includes(of.observation) || wanted.headline.includes(of.observation);
  // (That ops and modules of graphs are not in the file follows from the share of the kernels that graphs launch.)
  // (The table of iterations has the figures of steps.)
  const isImplied = (of) => (["M14", "M15"].includes(of.rule) && of.verdict === "not_coverable")
    || (of.rule === "M13" && of.verdict !== "unstable")
    // (The wall time has it, or it limits nothing.)
    || of.aside === true
    // (Nothing follows from it.)
    || (of.meaning === "" && of.bound_ns === null);
  const said_above = wanted.findings.filter(isSaid);
  const others = wanted.findings.filter((of) => !isSaid(of) && !isImplied(of));
  assert.ok(others.length > 0 && wanted.findings.some(isImplied), "the example has both");
  assert.deepEqual([...costs, ...figures].sort(), others.map((of) => `${of.observation} ${of.meaning}`.trim()).sort());
  const cards = (await id(page, "finding").allTextContents()).join(" ");
  assert.ok(said_above.every((of) => cards.includes(of.observation) || wanted.headline.includes(of.observation)), cards);
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("a step that was timed without the profiler tells what launches cost", async () => {
  const file = ownTrace("fuse_eager");
  const session = await diagnosed(file);
  const { page } = session;
  const sentence = id(page, "finding-line");
  const before = await sentence.textContent();
  assert.equal(before, said("diagnose", file).headline);
  const field = id(page, "iteration-ms");
  await field.fill("1.956");
  await field.press("Enter");
  const wanted = said("diagnose", file, "--iteration-ms", "1.956");
  assert.match(wanted.headline, /^Without the profiler the GPU's own work takes 9\d/);
  await page.waitForFunction((text) => document.querySelector("[data-testid=finding-line]")?.textContent === text, wanted.headline);
  const cards = (await id(page, "finding").allTextContents()).join(" ");
  assert.ok(wanted.actions.every((action) => cards.includes(action.hypothesis)), cards);
  assert.equal(await field.inputValue(), "1.956", "it is kept");
  assert.deepEqual(await accessibilityFaults(page), []);
  await field.fill("");
  await field.press("Enter");
  await page.waitForFunction((text) => document.querySelector("[data-testid=finding-line]")?.textContent === text, before);
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

test("the overview shows the bar of the stage that is chosen", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const wanted = said("diagnose", example());
  await view(page, "overview");
  const whole = await id(page, "wall").locator("h2").textContent();
  // (The bar of work from before the recording has no button.)
  const stages = wanted.wall_stages.filter((wall) => wall.stage !== "all");
  assert.deepEqual(stages.map((wall) => wall.stage), ["extend", "decode"]);
  for (const wall of stages) {
    await id(page, `stage-${wall.stage}`).click();
    const title = await id(page, "wall").locator("h2").textContent();
    assert.ok(title.includes(`${wall.share_pct.toFixed(1)}% of the wall time`), title);
    const shares = await id(page, "wall").locator("svg[role=img] > svg").evaluateAll((parts) => parts.map((part) => parseFloat(part.getAttribute("width"))));
    const parts = Object.values(wall.parts).map((ns) => 100 * ns / wall.total_ns);
    assert.equal(shares.length, parts.length);
    assert.ok(Math.abs(Math.max(...shares) - Math.max(...parts)) < 0.01, `${shares} ${parts}`);
  }
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "stages-all").click();
  assert.equal(await id(page, "wall").locator("h2").textContent(), whole);
  await session.close();
});

test("idle time by line, copies by place, iterations and modules are those of the command line, and are drawn", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const [cpu, diagnosis] = [said("cpu", example()), said("diagnose", example())];
  await view(page, "gaps");
  const idle = Object.values(cpu.idle_places)[0];
  const lines = await rows(page, "idle_lines");
  const known = lines.filter((row) => !row.name.startsWith("("));
  assert.deepEqual(known.map((row) => [row.name, Number(row.total_ns)]), idle.lines.map((line) => [line.name, line.total_ns]));
  assert.equal(lines.reduce((sum, row) => sum + Number(row.total_ns), 0), idle.host_ns);
  assert.deepEqual(await accessibilityFaults(page), []);
  await view(page, "steps");
  const iterations = await rows(page, "iterations");
  assert.deepEqual(iterations.map((row) => Number(row.dur_ns)), diagnosis.iterations.list.map((one) => one.dur_ns));
  assert.ok(await id(page, "view-steps").locator("svg[role=img]").count() > 0, "iterations are drawn");
  await view(page, "modules");
  assert.equal((await rows(page, "module_tree")).length, diagnosis.modules.rows.length);
  assert.ok(await id(page, "view-modules").locator("svg[role=img]").count() > 0, "modules are drawn");
  await view(page, "memory");
  const places = await rows(page, "copy_places");
  const made = Object.values(cpu.copy_places).flat();
  assert.equal(places.length, made.length);
  await session.close();
});

test("a step that is chosen narrows the views of the diagnosis to it", async () => {
  const session = await diagnosed(example());
  const { page } = session;
  const all = said("diagnose", example()).iterations.list;
  const { name } = all[all.length - 1];
  const of_step = (command) => JSON.parse(execFileSync(cli(), [command, example(), "--step", name, "--json"], { encoding: "utf8", maxBuffer: 1 << 28 }));
  const [cpu, diagnosis] = [of_step("cpu"), of_step("diagnose")];
  await view(page, "overview");
  const whole = await id(page, "wall").locator("h2").textContent();
  await id(page, "step").selectOption({ label: name });
  // The bar of the whole trace goes at once; that of the step comes with its diagnosis.
  await page.waitForFunction((whole) => {
    const title = document.querySelector("[data-testid=wall] h2");
    return title !== null && title.textContent !== whole;
  }, whole, PATIENCE);
  assert.equal(await id(page, "finding-line").textContent(), diagnosis.headline);
  await view(page, "cpu");
  const ops = await rows(page, "ops");
  assert.deepEqual(Object.fromEntries(ops.map((op) => [op.name, Number(op.count)])), Object.fromEntries(Object.entries(cpu.key_averages).map(([op, { count }]) => [op, count])));
  assert.deepEqual(await accessibilityFaults(page), []);
  const sentence = `All figures are of ${name} alone`;
  for (const of_triage of ["triage", "overlap", "fuse"]) {
    await view(page, of_triage);
    assert.ok((await id(page, "finding-line").textContent()).startsWith(sentence), of_triage);
    assert.equal(await id(page, "before-window").count(), 0, "work of earlier steps is in no table of a step");
  }
  await view(page, "triage");
  assert.deepEqual(await accessibilityFaults(page), []);
  // A plain sum over the file: the GPU slices whose launch calls begin in the step.
  const events = exampleEvents().filter(({ ph }) => ph === "X");
  const step = events.find((event) => event.name === name && event.cat !== "gpu_user_annotation");
  const launched = new Set(events.filter(({ cat, ts }) => /^(cuda|hip)_(runtime|driver)$/.test(cat) && ts >= step.ts && ts < step.ts + step.dur).map(({ args }) => args.correlation));
  const sums = {};
  for (const { name: kernel, dur } of events.filter(({ cat, args }) => ["kernel", "gpu_memcpy", "gpu_memset"].includes(cat) && launched.has(args.correlation))) {
    sums[kernel] = (sums[kernel] ?? 0) + Math.round(dur * 1000);
  }
  const shown = {};
  for (const { kernel_name, total_ns } of await rows(page, "kernel-table")) shown[kernel_name] = (shown[kernel_name] ?? 0) + Number(total_ns);
  assert.deepEqual(shown, sums);
  await view(page, "breakdown");
  assert.match(await id(page, "whole").textContent(), /of the whole trace/);
  await view(page, "steps");
  assert.equal((await rows(page, "iterations")).length, 1);
  await id(page, "step").selectOption({ label: "All" });
  await page.waitForFunction((n) => document.querySelectorAll("[data-testid=table-iterations] tbody tr").length >= n, Math.min(3, all.length), PATIENCE);
  await view(page, "overview");
  assert.equal(await id(page, "wall").locator("h2").textContent(), whole);
  await session.close();
});

test("the benchmark of an op is copied as the command line prints it", async () => {
  const file = ownTrace("cpu_mlp_train");
  const session = await diagnosed(file);
  const { page } = session;
  await view(page, "cpu");
  const open = async (name) => {
    await id(page, "filter-ops").fill(name);
    const cell = id(page, "table-ops").getByRole("gridcell", { name, exact: true }).first();
    // (Two clicks by WebDriver BiDi may come too far apart.)
    if (firefox() === undefined) return cell.dblclick();
    await cell.click();
    await page.keyboard.press("Enter");
  };
  for (const op of ["aten::mm", "aten::addmm"]) {
    await open(op);
    const text = await copied(page, () => id(page, "copy-benchmark").click());
    assert.equal(text, execFileSync(cli(), ["bench-op", file, "--op", op], { encoding: "utf8" }), op);
  }
  assert.deepEqual(await accessibilityFaults(page), []);
  // An annotation is no op.
  await open("## forward ##");
  await id(page, "details-ops").waitFor();
  assert.equal(await id(page, "copy-benchmark").count(), 0);
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
