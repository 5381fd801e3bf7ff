// A person's way through the page: drop a trace, read it, download it repaired, open it in Perfetto.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { cli, samples, scratch, shared } from "./environment.mjs";
import { accessibilityFaults, download, drop, launch, open, started } from "./harness.mjs";
import { inspect } from "./perfetto.mjs";
import { countSlices, readTrace, textOf } from "./reference.mjs";

const run = promisify(execFile);
const PATIENCE = { timeout: 60_000 };
let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const id = (page, name) => page.getByTestId(name);
const exact = async (page, name) => (await id(page, name).locator("[data-exact]").first().getAttribute("data-exact"));
const sample = (name) => samples("traces").find((file) => path.basename(file) === name);
/// A file as Playwright sets it on an input.
const made = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });

async function ready(page) {
  await page.waitForFunction(() => /: ready, /.test(document.querySelector("[data-testid=status]")?.textContent ?? ""), null, PATIENCE);
}

async function view(page, name) {
  await id(page, `nav-${name}`).click();
  await id(page, `view-${name}`).waitFor(PATIENCE);
}

/// Downloads the repaired trace of the selected file and holds it to Perfetto and to the command line.
async function repairedAsByCli(page, original) {
  await view(page, "repair");
  await id(page, "download-gz").waitFor(PATIENCE);
  const saved = await download(page, () => id(page, "download-gz").click());
  assert.match(saved.name, /\.json\.gz$/);
  const folder = scratch();
  const byCli = path.join(folder, "cli.json.gz");
  await run(cli(), ["perfetto-fix", original, "-o", byCli]);
  assert.ok(fs.readFileSync(byCli).equals(saved.bytes), "the download is what the command line writes, byte for byte");
  const perfetto = await inspect(saved.path);
  assert.deepEqual(perfetto.errors, {});
  assert.equal(perfetto.nSlices, countSlices(readTrace(textOf(saved.path)).events));
  await id(page, "proof-holds").waitFor(PATIENCE);
  return perfetto;
}

describe("a real trace", { skip: shared() === undefined }, () => {
  test("dropped, read, downloaded, whole in Perfetto", async () => {
    const file = sample("mi300_resnet_training.json.gz");
    const truth = JSON.parse(fs.readFileSync(path.join(shared(), "corpus/truth/mi300_resnet_training.truth.json"), "utf8"));
    const session = await open(browser, { prefix: "/tools/kinetoscope/" });
    const { page } = session;
    await drop(page, "body", file);
    await ready(page);
    await view(page, "overview");
    assert.equal(Number(await exact(page, "figure-kernels")), truth.gpu.n_kernels);
    assert.equal(Number(await exact(page, "figure-span")), truth.gpu.span_ns);

    await view(page, "triage");
    const top = truth.gpu.kernels_all[0];
    const first = id(page, "table-kernel-table").getByRole("row").nth(1);
    assert.ok((await first.innerHTML()).includes(top[0].slice(0, 20)), "the kernel with most time is first");

    await view(page, "repair");
    const oracle = await inspect(file);
    const drops = Number(await id(page, "drops-before").getAttribute("data-exact"));
    assert.equal(drops, oracle.errors.slice_drop_overlapping_complete_event);
    const perfetto = await repairedAsByCli(page, file);
    assert.equal(perfetto.nSlices, oracle.nSlices + drops);
    await session.close();
  });

  test("cancelled in the middle, and the page goes on", async () => {
    const session = await open(browser);
    const { page } = session;
    // The page's own script clicks as soon as a part is read: a click from outside may come when the whole is.
    await page.evaluate(() => {
      const observer = new MutationObserver(() => {
        const progress = document.querySelector("[data-testid=file-card] progress");
        if (!(progress?.value > 0)) return;
        observer.disconnect();
        document.querySelector("[data-testid=cancel]").click();
      });
      observer.observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    await id(page, "file-input").setInputFiles(sample("mi300_xdit_sd35.json.gz"));
    await page.getByTestId("file-card").and(page.locator(".stopped")).waitFor(PATIENCE);
    await id(page, "file-input").setInputFiles(sample("torch_compile_triton.json.gz"));
    await ready(page);
    await session.close();
  });
});

test("the example, one click from the empty page", async () => {
  const session = await open(browser);
  const { page } = session;
  await id(page, "example").click();
  await ready(page);
  assert.ok(Number(await exact(page, "figure-kernels")) > 1000);
  const response = await page.request.get(new URL("assets/example.json.gz", session.server.url).href);
  const original = path.join(scratch(), "example.json.gz");
  fs.writeFileSync(original, await response.body());
  const before = await inspect(original);
  assert.ok(before.errors.slice_drop_overlapping_complete_event > 0, "there is something to repair in it");
  await repairedAsByCli(page, original);
  await session.close();
});

for (const [name, text, wanted] of [
  ["empty.json", "", /empty/i],
  ["page.html", "<!DOCTYPE html><html><body>Sign in</body></html>", /HTML/i],
  ["printed.json", "{'traceEvents': []}", /Python/i],
]) {
  test(`${name} is named for what it is`, async () => {
    const session = await open(browser);
    const { page } = session;
    await id(page, "file-input").setInputFiles(made(name, text));
    const failure = id(page, "failure").first();
    await failure.waitFor(PATIENCE);
    assert.match(await failure.innerText(), wanted);
    await session.close();
  });
}

test("a damaged trace is read, and its problems are listed", async () => {
  const session = await open(browser);
  const { page } = session;
  const kernel = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}';
  const text = `{"traceEvents": [${kernel},, ${kernel}, {"ph":"X","na`;
  await id(page, "file-input").setInputFiles(made("cut.json", text));
  await ready(page);
  await view(page, "repair");
  const kinds = await id(page, "problem").evaluateAll((cards) => cards.map((card) => card.dataset.kind));
  assert.ok(kinds.includes("truncated") && kinds.includes("extra-comma"), kinds.join(" "));
  await session.close();
});

test("the keyboard is enough", async () => {
  const session = await open(browser);
  const { page } = session;
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  const focusOn = async (name, key = "Tab") => {
    for (let n = 0; n < 120; n += 1) {
      if (await page.evaluate((wanted) => document.activeElement?.dataset.testid === wanted, name)) return;
      await press(key);
    }
    assert.fail(`${name} is not reached by Tab`);
  };
  await focusOn("example");
  await press("Enter");
  await ready(page);
  await focusOn("nav-triage");
  await press("Enter");
  await id(page, "view-triage").waitFor(PATIENCE);
  await focusOn("filter-kernel-table");
  await page.keyboard.type("gemm");
  await page.waitForFunction(() => / of /.test(document.querySelector("[data-testid=summary-kernel-table]")?.textContent ?? ""));
  // (Backwards: forwards is through the browser's own controls.)
  await focusOn("nav-repair", "Shift+Tab");
  await press("Enter");
  await id(page, "view-repair").waitFor(PATIENCE);
  await focusOn("download-gz");
  const saved = await download(page, () => press("Enter"));
  assert.ok(saved.bytes.length > 1000);
  await session.close();
});

test("Open in Perfetto hands the repaired trace to the window it opened", async () => {
  // A stand-in for a self-hosted Perfetto: it answers PING and keeps what it is given.
  const stand = http.createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(`<!DOCTYPE html><link rel="icon" href="data:,"><script>
      addEventListener("message", (event) => {
        if (event.data === "PING") event.source.postMessage("PONG", "*");
        else if (event.data.perfetto) globalThis.given = event.data.perfetto;
      });
    </script>`);
  });
  await new Promise((resolve) => stand.listen(0, "127.0.0.1", resolve));
  const session = await open(browser);
  const { page, context } = session;
  const url = `http://127.0.0.1:${stand.address().port}`;
  await id(page, "help").click();
  await id(page, "setting-perfetto").fill(url);
  await id(page, "dialog-close").click();
  await id(page, "example").click();
  await ready(page);
  await view(page, "repair");
  const [popup] = await Promise.all([context.waitForEvent("page"), id(page, "open-perfetto").click()]);
  await popup.waitForFunction(() => globalThis.given !== undefined, null, PATIENCE);
  const given = await popup.evaluate(() => ({ bytes: given.buffer.byteLength, head: [...new Uint8Array(given.buffer).slice(0, 2)], title: given.title }));
  assert.ok(given.bytes > 1000);
  assert.deepEqual(given.head, [0x1f, 0x8b]);
  assert.match(given.title, /example/);

  // In the next visit the address comes from the store: it is shown before anything is passed to it.
  const next = await context.newPage();
  await next.goto(session.server.url);
  await started(next);
  await id(next, "example").click();
  await ready(next);
  await view(next, "repair");
  await id(next, "open-perfetto").click();
  assert.equal(await id(next, "hand-over-url").textContent(), url);
  assert.equal(context.pages().length, 3, "no window is open yet");
  const [shown] = await Promise.all([context.waitForEvent("page"), id(next, "hand-over").click()]);
  await shown.waitForFunction(() => globalThis.given !== undefined, null, PATIENCE);
  await session.close({ clean: false });
  stand.closeAllConnections();
  await new Promise((resolve) => stand.close(resolve));
});

for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 400]]) {
  test(`accessible in ${scheme}, ${width} px wide`, async () => {
    const session = await open(browser, { colorScheme: scheme, viewport: { width, height: 800 } });
    const { page } = session;
    assert.deepEqual(await accessibilityFaults(page), [], "empty page");
    await id(page, "example").click();
    await ready(page);
    for (const name of ["overview", "triage", "breakdown", "overlap", "fuse", "compare", "repair", "downloads"]) {
      await view(page, name);
      assert.deepEqual(await accessibilityFaults(page), [], name);
      const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
      assert.ok(scroll <= inner, `${name} scrolls sideways: ${scroll} > ${inner}`);
    }
    await session.close();
  });
}
