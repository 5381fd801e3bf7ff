// Stages and work from before the window in pair mode: the page's figures are the command line's.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { cli, scratch, shared } from "./environment.mjs";
import { accessibilityFaults, download, launch } from "./harness.mjs";
import { PATIENCE, ZIP, accompanied, dropped, example, id, ofCli, ofPage, role, rows, sample, settled, triaged, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const ns = (us) => Math.round(us * 1000);
const hash = (page) => page.evaluate(() => location.hash);

/// The tables of triage as the page shows them, and as the command line wrote them, as the same few facts.
async function tablesAre(page, wanted, what) {
  const json = (name) => JSON.parse(wanted(name));
  await view(page, "triage");
  // (The page shows the rows of all stages by their time.)
  assert.deepEqual((await rows(page, "kernel-table")).map(ofPage).sort(), json("kernel_table.json").map(ofCli).sort(), `kernels, ${what}`);
  await view(page, "overlap");
  const overlap = (await rows(page, "overlap")).map((row) => [row.kernel_name, row.priority, row.verdict, Number(row.exclusive_ns), row.python_scope]);
  assert.deepEqual(overlap, json("overlap_opportunities.json").map((row) => [row.kernel_name, row.priority, row.verdict, ns(row.exclusive_us), row.python_scope]), `overlap, ${what}`);
  await view(page, "fuse");
  const fuse = (await rows(page, "fuse")).map((row) => [row.pattern, row.status, Number(row.related_ns), row.confidence]);
  assert.deepEqual(fuse, json("fuse_opportunities.json").map((row) => [row.pattern, row.status, ns(row.related_us), row.confidence]), `fuse, ${what}`);
  return { overlap: overlap.length, fuse: fuse.length };
}

/// Chooses every stage in turn; the tables are those of `--stage`.
async function everyStage(page, stages, ...options) {
  const shown = await id(page, "stages").getByRole("button").evaluateAll((buttons) => buttons.map((button) => button.dataset.testid));
  assert.deepEqual(shown, ["stages-all", ...stages.map((stage) => `stage-${stage}`)]);
  const all = await tablesAre(page, await triaged(...options), "all stages");
  const sum = { overlap: 0, fuse: 0 };
  for (const stage of stages) {
    await id(page, `stage-${stage}`).click();
    const found = await tablesAre(page, await triaged(...options, "--stage", stage), stage);
    for (const key of Object.keys(sum)) sum[key] += found[key];
    assert.equal(await hash(page), `#v=1&view=fuse&stage=${stage}`);
    await view(page, "triage");
  }
  assert.deepEqual(sum, all, "every row is of one of the stages");
  await id(page, "stages-all").click();
}

test("a stage of a trace with a kernel map is the command line's stage", async () => {
  const map = path.join(scratch(), "kernel_map.json");
  await promisify(execFile)(cli(), ["triage", example(), "--export-map", map], { maxBuffer: 1 << 26 });
  const session = await dropped(browser, [example(), map]);
  const { page } = session;
  await view(page, "triage");
  await accompanied(page, 1);
  await everyStage(page, ["extend", "decode"], example(), "--map", map);
  await session.close();
});

describe("with real traces", { skip: shared() === undefined }, () => {
  test("a stage of a trace with a mapping trace is the command line's stage", async () => {
    const [formal, mapping] = [sample("mi300_resnet_training.json.gz"), sample("mi300_qwen15_0.5b.json.gz")];
    const session = await dropped(browser, [formal, mapping]);
    const { page } = session;
    await settled(page);
    await role(page, path.basename(mapping)).selectOption({ label: `Mapping trace for ${path.basename(formal)}` });
    await view(page, "triage");
    await accompanied(page, 1);
    await everyStage(page, ["forward", "backward", "optimizer"], formal, "--mapping", mapping);
    await session.close();
  });

  test("work from before the window is apart, and counts in every view and file when that is switched on", async () => {
    const file = sample("h100_qwen15_0.5b.json.gz");
    const session = await dropped(browser, [file]);
    const { page } = session;
    await settled(page);
    await view(page, "triage");
    const said = () => id(page, "before-window-sum").textContent();
    assert.match(await said(), /^509 GPU slices, 13\.7 ms\. Excluded by default: /);
    await view(page, "breakdown");
    await page.getByText("Includes 509 GPU slices (13.7 ms) launched before profiling started").first().waitFor(PATIENCE);
    await view(page, "triage");
    const launches = async () => (await rows(page, "kernel-table")).reduce((n, row) => n + Number(row.launches), 0);
    const apart = await launches();
    await tablesAre(page, await triaged(file), "apart");

    await view(page, "triage");
    await id(page, "count-before-window").check();
    await page.waitForFunction(() => location.hash === "#v=1&view=triage&before-window=counted");
    await page.waitForFunction(() => / Included now\.$/.test(document.querySelector("[data-testid=before-window-sum]").textContent), null, PATIENCE);
    assert.equal(await launches() - apart, 509);
    const counted = await triaged(file, "--count-before-window");
    await tablesAre(page, counted, "counted");
    assert.ok(await id(page, "count-before-window").isChecked(), "one switch for all views");
    assert.deepEqual(await accessibilityFaults(page), []);
    await view(page, "downloads");
    assert.ok(await id(page, "count-before-window").isChecked(), "and for the files");
    const zip = await download(page, () => id(page, "artifact-zip").click());
    assert.ok(zip.bytes.equals(counted(ZIP)), "the archive");
    await id(page, "download-options").locator("summary").click();
    await id(page, "count-before-window").uncheck();
    await page.waitForFunction(() => location.hash === "#v=1&view=downloads");
    await settled(page);
    await view(page, "triage");
    assert.match(await said(), /Excluded by default: /);
    assert.equal(await launches(), apart);
    await session.close();
  });

  test("an address that counts it is obeyed from the first triage on", async () => {
    const session = await dropped(browser, []);
    const { page } = session;
    await page.goto(`${session.server.url}#v=1&view=triage&before-window=counted`);
    await page.reload();
    await id(page, "file-input").setInputFiles(sample("h100_qwen15_0.5b.json.gz"));
    await id(page, "before-window-sum").getByText("Included now.").waitFor(PATIENCE);
    await settled(page);
    assert.ok(await id(page, "count-before-window").isChecked());
    await session.close();
  });

  test("where nothing is from before the window there is no switch", async () => {
    const session = await dropped(browser, [sample("mi300_xdit_sd35.json.gz")]);
    await settled(session.page);
    await view(session.page, "triage");
    await id(session.page, "table-kernel-table").waitFor(PATIENCE);
    assert.equal(await id(session.page, "before-window").count(), 0);
    await session.close();
  });
});
