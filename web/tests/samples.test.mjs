// Our own samples on the page: figures against their reference, the download, a pair with a capture.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { ownTrace, ownTruth, tally } from "./environment.mjs";
import { download, drop, launch, open } from "./harness.mjs";
import { PATIENCE, accompanied, dropped, id, ofCli, ofPage, role, rows, settled, showsOption, triaged, view } from "./page.mjs";
import { inspect } from "./perfetto.mjs";
import { countSlices, readTrace, textOf } from "./reference.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const exact = async (page, name) => Number(await id(page, name).locator("[data-exact]").first().getAttribute("data-exact"));

describe("our own samples", () => {
  for (const name of ["dependent_launch", "folded_tids", "rocm_overrun"]) {
    test(`${name}: dropped, read, downloaded, whole in Perfetto`, async () => {
      tally("own", name);
      const file = ownTrace(name);
      const { gpu } = ownTruth(file);
      const session = await open(browser);
      const { page } = session;
      await drop(page, "body", file);
      await settled(page);
      await view(page, "overview");
      assert.equal(await exact(page, "figure-kernels"), gpu.n_kernels);
      assert.equal(await exact(page, "figure-span"), gpu.span_ns);
      await view(page, "repair");
      await id(page, "download-gz").waitFor(PATIENCE);
      const saved = await download(page, () => id(page, "download-gz").click());
      const [original, repaired] = [await inspect(file), await inspect(saved.path)];
      assert.ok(original.errors.slice_drop_overlapping_complete_event > 0, "there is something to repair in it");
      assert.deepEqual(repaired.errors, {});
      assert.equal(repaired.nSlices, countSlices(readTrace(textOf(saved.path)).events));
      await id(page, "proof-holds").waitFor(PATIENCE);
      await session.close();
    });
  }

  test("a capture maps every kernel that its graph replays", async () => {
    tally("own", "graph_replay");
    const [formal, capture] = [ownTrace("graph_replay"), ownTrace("graph_capture")];
    const session = await dropped(browser, [capture, formal]);
    const { page } = session;
    await page.waitForSelector("[data-testid=role]", PATIENCE);
    await view(page, "triage");
    await accompanied(page, 1);
    await showsOption(role(page, path.basename(capture)), `Capture for ${path.basename(formal)}`);
    const table = await rows(page, "kernel-table");
    const replayed = table.filter((row) => row.mapping_confidence === "replay");
    assert.equal(replayed.reduce((n, row) => n + Number(row.launches), 0), ownTruth(formal).gpu.n_kernels);
    const wanted = await triaged(formal, "--capture", capture);
    assert.deepEqual(table.map(ofPage), JSON.parse(wanted("kernel_table.json")).map(ofCli));
    await session.close();
  });
});
