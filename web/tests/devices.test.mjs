// Several devices in one file: tables narrow to one of them, and its figures are those of the device alone.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { cli, scratch } from "./environment.mjs";
import { accessibilityFaults, allowClipboard, download, launch, open } from "./harness.mjs";
import { PATIENCE, id, rows } from "./page.mjs";

const run = promisify(execFile);
let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// Twenty steps on two devices: each computes, and communicates on a second stream; device 1 computes while both communicate.
function trace(devices) {
  const events = [];
  for (let step = 0; step < 20; step += 1) {
    for (const device of devices) {
      const at = (name, ts, dur, stream) => events.push({ ph: "X", cat: "kernel", name, pid: device, tid: stream, ts: 1000 + step * 100 + ts, dur, args: { device, stream } });
      at("nvjet_tst_128x64", device * 30, 20 + device, 7);
      at("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)", 30, 20, 9);
    }
  }
  return JSON.stringify({ traceEvents: events });
}

async function opened(devices, options) {
  const session = await open(browser, { copied: false, ...options });
  const { page } = session;
  await allowClipboard(session.context);
  await id(page, "file-input").setInputFiles({ name: "devices.json", mimeType: "application/json", buffer: Buffer.from(trace(devices)) });
  await page.waitForFunction(() => /: ready, /.test(document.querySelector("[data-testid=status]")?.textContent ?? ""), null, PATIENCE);
  await id(page, "nav-triage").click();
  await id(page, "table-kernel-table").waitFor(PATIENCE);
  return session;
}

test("a device holds for all views, stands in the address, and its rows are the device's own", async () => {
  const session = await opened([0, 1]);
  const { page } = session;
  const both = await rows(page, "kernel-table");
  const heads = await id(page, "table-kernel-table").locator("th button").evaluateAll((buttons) => buttons.map((button) => button.dataset.key));
  assert.deepEqual(heads.slice(0, 3), ["kernel_name", "device", "total_ns"], "the device is next to the name");
  const total = await id(page, "table-stages").locator("tfoot").textContent();
  assert.match(total, /1.620/);
  assert.ok(!total.includes("%"), "shares of two devices have no sum");
  assert.deepEqual(both.map((row) => row.device).sort(), ["0", "0", "1", "1"]);
  await id(page, "device-1").click();
  await page.waitForFunction(() => location.hash === "#v=1&view=triage&device=1");
  const own = await rows(page, "kernel-table");
  assert.deepEqual(own.map((row) => [row.kernel_name.slice(0, 5), row.launches, row.total_ns, row.exposed_ns]), [["nvjet", "20", "420000", "20000"], ["ncclD", "20", "400000", "0"]]);
  assert.ok(!("device" in own[0]), "all rows are of one device, so no column says it");

  await id(page, "table-kernel-table").getByRole("gridcell").first().click();
  await id(page, "kernel-launches").waitFor(PATIENCE);
  assert.equal(await id(page, "launch").count(), 20, "the launches of this device alone");
  await id(page, "nav-overlap").click();
  assert.equal(await id(page, "device-1").getAttribute("aria-pressed"), "true");
  assert.deepEqual(await accessibilityFaults(page), []);
  await id(page, "devices-all").click();
  await page.waitForFunction(() => location.hash === "#v=1&view=overlap");
  await id(page, "device-0").click();
  await id(page, "table-overlap").getByText("ncclDevKernel").first().click();
  await id(page, "window").waitFor(PATIENCE);
  await id(page, "window").getByText("of device 0").waitFor(PATIENCE);
  await session.close();
});

test("artifacts of a device are the command line's", async () => {
  const session = await opened([0, 1]);
  const { page } = session;
  await id(page, "device-0").click();
  await id(page, "nav-downloads").click();
  const zip = await download(page, () => id(page, "artifact-zip").click());
  const folder = scratch();
  const file = path.join(folder, "devices.json");
  fs.writeFileSync(file, trace([0, 1]));
  await run(cli(), ["triage", file, "--device", "0", "--out", path.join(folder, "out"), "--zip"]);
  assert.ok(fs.readFileSync(path.join(folder, "out", zip.name)).equals(zip.bytes));
  const rows = JSON.parse(fs.readFileSync(path.join(folder, "out/kernel_table.json"), "utf8"));
  assert.deepEqual(rows.map((row) => row.device), ["0", "0"]);
  await assert.rejects(run(cli(), ["triage", file, "--device", "7"]), /its devices: 0, 1/);
  await session.close();
});

test("one device leaves nothing to choose", async () => {
  const session = await opened([3]);
  const { page } = session;
  assert.equal(await id(page, "devices").count(), 0);
  assert.ok((await rows(page, "kernel-table")).every((row) => !("device" in row)));
  await session.close();
});
