// Several ranks of one run in files of their own: the page compares them as the command line does with their folder.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { cli, scratch } from "./environment.mjs";
import { accessibilityFaults, download, drop, launch } from "./harness.mjs";
import { PATIENCE, card, dropped, id, rows, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const REPORTS = ["report.md", "report.json", "report.html"];
const WORLD = 4;
/// When each rank joins the two collectives, in us; the third is the last.
const JOINS = [[100, 1_100], [150, 1_200], [800, 1_900], [300, 1_000]];

/// A rank: a product until it joins, then a collective until the last has joined, twice; and a call in which its CPU waits.
function ofRank(rank, { world = WORLD, base = 1_700_000_000_000_000_000n } = {}) {
  const events = [];
  const launched = (name, correlation, ts, dur, args = {}) => {
    events.push({ ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: correlation, dur: 0.5, args: { correlation } });
    events.push({ ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts, dur, args: { device: 0, stream: 7, correlation, ...args } });
  };
  const group = {
    "Collective name": "allreduce", dtype: "Float", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": world,
    "Process Group Name": "0", "Process Group Ranks": `[${Array.from({ length: world }, (_, at) => at).join(", ")}]`,
  };
  JOINS[rank].forEach((joins, nth) => {
    const [from, to] = [nth * 1_000 + 20, nth * 1_000 + 950];
    launched("gemm", 3 * nth + 1, from, joins - from);
    launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 3 * nth + 2, joins, to - joins, group);
    launched("gemm", 3 * nth + 3, to, 50);
  });
  events.push({ ph: "X", cat: "python_function", name: "sglang/srt/utils/common.py(1401): broadcast_pyobj", pid: 1, tid: 1, ts: 30 + 10 * rank, dur: 100 - 10 * rank });
  return `{"baseTimeNanoseconds":${base},"distributedInfo":{"backend":"nccl","rank":${rank},"world_size":${world}},"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3"}],"traceEvents":${JSON.stringify(events)}}`;
}

/// A folder with these ranks, and what else is put there.
function folderOf(ranks, others = {}) {
  const folder = scratch();
  for (const rank of ranks) fs.writeFileSync(path.join(folder, `run-rank${rank}.json`), ofRank(rank));
  for (const [name, text] of Object.entries(others)) fs.writeFileSync(path.join(folder, name), text);
  return folder;
}

const files = (folder) => fs.readdirSync(folder).sort().map((name) => path.join(folder, name));
const print = (...options) => execFileSync(cli(), options, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
const diagnosed = (folder, rank) => JSON.parse(print("diagnose", folder, "--rank", `${rank}`, "--json"));

/// The section about ranks that the command line prints: its sentences, and the cells of its tables.
function ranksOf(folder, rank) {
  const [section] = print("diagnose", folder, "--rank", `${rank}`).split("\n# run-rank");
  const plain = (text) => text.replaceAll("\\", "");
  const lines = section.split("\n").slice(4);
  const sentences = lines.filter((line) => line && line !== "None." && !line.startsWith("|") && !line.startsWith("#")).map(plain);
  const cells = lines.filter((line) => line.startsWith("|") && !line.startsWith("| ---")).map((line) => plain(line).slice(2, -2).split(" | "));
  return { sentences, cells };
}

/// Waits until the diagnosis names so many sentences about ranks.
async function compared(page, sentences) {
  await view(page, "diagnosis");
  await page.waitForFunction((wanted) => {
    const said = [...document.querySelectorAll("[data-testid=ranks] > p")].map((line) => line.textContent);
    return JSON.stringify(said) === JSON.stringify(wanted);
  }, sentences, PATIENCE);
}

const headline = (page) => id(page, "finding-line").textContent();
const findings = async (page) => {
  const of = async (name) => (await id(page, name).locator("dd").allTextContents()).map((text) => text.trim());
  return [...await of("findings"), ...await of("baseline")];
};

/// The page says of a rank what the command line says of it with the whole folder.
async function sameAs(page, folder, rank) {
  const { sentences, cells } = ranksOf(folder, rank);
  await compared(page, sentences);
  const wanted = diagnosed(folder, rank);
  assert.equal(await headline(page), wanted.headline);
  const communication = wanted.findings.find((finding) => finding.rule === "M10");
  const said = [await headline(page), ...await findings(page), ...await id(page, "finding").allTextContents()].join("\n");
  assert.ok(said.includes(communication.observation), said);
  const shown = await page.locator("[data-testid=ranks] table").evaluateAll((tables) => tables.map((table) => table.querySelectorAll("tbody tr").length));
  assert.equal(shown.reduce((sum, n) => sum + n, 0), cells.length - shown.length, "every row of the command line, without its heads");
}

test("four ranks that are dropped together are compared, in views and reports, as the command line compares their folder", async () => {
  const folder = folderOf([0, 1, 2, 3]);
  const session = await dropped(browser, files(folder));
  const { page } = session;
  await settled(page);
  await card(page, "run-rank0").click();
  await sameAs(page, folder, 0);
  assert.match(await headline(page), /because rank 2 joins later/);
  // Exact times: who joins when is known.
  const table = await rows(page, "ranks");
  assert.deepEqual(table.map((row) => [row.rank, Number(row.n), Number(row.n_last)]), [["0", 2, 0], ["1", 2, 0], ["2", 2, 2], ["3", 2, 0]]);
  const waits = JOINS.map((joins) => joins.reduce((sum, at, nth) => sum + JOINS[2][nth] - at, 0) * 1_000);
  assert.deepEqual(table.map((row) => Number(row.exposed_ns)), waits);
  const onCpu = await rows(page, "cpu_waits");
  assert.deepEqual(onCpu.map((row) => [row.call, row.rank, Number(row.waits_ns)]), [0, 1, 2, 3].map((rank) => ["broadcast_pyobj", `${rank}`, (3 - rank) * 10_000]));
  assert.deepEqual(await accessibilityFaults(page), []);
  for (const rank of [0, 2]) {
    await card(page, `run-rank${rank}`).click();
    await sameAs(page, folder, rank);
    const out = scratch();
    const outputs = REPORTS.flatMap((name) => [`--${name.split(".")[1]}-out`, path.join(out, name)]);
    print("report", "--cpu-trace", folder, "--rank", `${rank}`, ...outputs);
    await view(page, "downloads");
    for (const name of REPORTS) {
      const saved = await download(page, () => id(page, `artifact-${name}`).getByRole("button", { name: `Download ${name}` }).click());
      assert.ok(saved.bytes.equals(fs.readFileSync(path.join(out, name))), `${name} of rank ${rank}`);
    }
    assert.match(fs.readFileSync(path.join(out, "report.md"), "utf8"), /wait for rank 2, the last to join 2 of 2 collectives/);
  }
  await session.close();
});

test("a rank that is closed or added makes the diagnosis anew, and a file of another run is named", async () => {
  const folder = folderOf([0, 1, 2, 3]);
  const session = await dropped(browser, files(folder), { viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const { page } = session;
  await settled(page);
  await card(page, "run-rank0").click();
  await sameAs(page, folder, 0);
  assert.deepEqual(await accessibilityFaults(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is cut at 400 px");
  await card(page, "run-rank2").getByTestId("remove").click();
  await sameAs(page, folderOf([0, 1, 3]), 0);
  assert.doesNotMatch(await headline(page), /joins later/);
  // It comes back; and with it a rank of another run.
  await drop(page, "body", [path.join(folder, "run-rank2.json")]);
  await settled(page);
  await card(page, "run-rank0").click();
  await sameAs(page, folder, 0);
  const other = { "run-rank5.json": ofRank(1, { world: 1 }).replace('"rank":1', '"rank":5') };
  const both = folderOf([0, 1, 2, 3], other);
  await drop(page, "body", [path.join(both, "run-rank5.json")]);
  await settled(page);
  await card(page, "run-rank0").click();
  await sameAs(page, both, 0);
  const said = await id(page, "ranks").textContent();
  assert.match(said, /run-rank5\.json \(rank 5\) is not compared: its run has 1 rank, and that of the others 4\./);
  // Alone it says nothing of others.
  await card(page, "run-rank5").click();
  await view(page, "diagnosis");
  await id(page, "baseline").waitFor(PATIENCE);
  assert.equal(await id(page, "ranks").count(), 0);
  await session.close();
});
