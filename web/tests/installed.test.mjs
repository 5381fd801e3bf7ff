// The page as an installed app, and builds that follow one another.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { pageFolder, scratch } from "./environment.mjs";
import { accessibilityFaults, chromiumOnly, drop, launch, open, started } from "./harness.mjs";
import { PATIENCE, example, id, meanwhile, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

chromiumOnly("it can be installed from any path, with a handler for traces", async () => {
  for (const prefix of ["/", "/a/b/"]) {
    const session = await open(browser, { prefix });
    const { page, context, server } = session;
    await page.evaluate(() => navigator.serviceWorker.ready);
    const devtools = await context.newCDPSession(page);
    const { data, errors, url } = await devtools.send("Page.getAppManifest");
    assert.deepEqual(errors, []);
    assert.ok(url.startsWith(server.url), url);
    const manifest = JSON.parse(data);
    assert.equal(new URL(manifest.start_url, url).href, server.url);
    assert.equal(new URL(manifest.scope, url).href, server.url);
    const [handler] = manifest.file_handlers;
    assert.equal(new URL(handler.action, url).href, server.url);
    assert.deepEqual(Object.values(handler.accept).flat(), [".json", ".gz", ".json.gz"]);
    const icon = await page.evaluate((url) => fetch(url).then((answer) => answer.ok), new URL(manifest.icons[0].src, url).href);
    assert.ok(icon, "the icon is there");
    const { installabilityErrors } = await devtools.send("Page.getInstallabilityErrors");
    // (A window of a test is one of a guest, which installs nothing.)
    assert.deepEqual(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito"), []);
    await session.close();
  }
});

test("files that the system opens with it are opened", async () => {
  const session = await open(browser);
  const { page, context, server } = session;
  await context.addInitScript(() => {
    globalThis.consumer = new Promise((resolve) => {
      Object.defineProperty(globalThis, "launchQueue", { value: { setConsumer: resolve } });
    });
  });
  await page.goto(server.url);
  await started(page);
  await page.evaluate(async (text) => {
    const file = new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], "from-system.json.gz");
    const consumer = await globalThis.consumer;
    await consumer({ files: [{ getFile: async () => file }] });
    await consumer({ files: [] });
  }, fs.readFileSync(example()).toString("base64"));
  await settled(page);
  assert.deepEqual(await page.locator("[data-testid=file-card] bdi").allTextContents(), ["from-system.json.gz"]);
  await session.close();
});

/// The same page as another build, as `cargo xtask seal` would write it.
function nextBuild() {
  const next = scratch();
  fs.cpSync(pageFolder(), next, { recursive: true });
  const [file, script] = ["index.html", "sw.js"].map((name) => path.join(next, name));
  const digest = (bytes) => `sha256-${createHash("sha256").update(bytes).digest("base64")}`;
  const html = fs.readFileSync(file, "utf8");
  const changed = html.replace(/name="build" content="[^"]*"/, 'name="build" content="next"');
  fs.writeFileSync(file, changed);
  const worker = fs.readFileSync(script, "utf8").replace(/^const BUILD = ".*";$/m, 'const BUILD = "next";');
  assert.ok(worker.includes(digest(html)), "the service worker has the digest of the page");
  fs.writeFileSync(script, worker.replace(digest(html), digest(changed)));
  return next;
}

const build = (page) => page.locator("meta[name=build]").getAttribute("content");
/// Names of what is in the folder of kept files, there or not.
const stored = (page) => page.evaluate(async () => {
  const names = [];
  for await (const folder of (await navigator.storage.getDirectory()).values()) {
    for await (const name of folder.keys()) names.push(name);
  }
  return names;
});

test("a newer build is offered, and the open files are open in it", async () => {
  const session = await open(browser, { prefix: "/a/b/" });
  const { page, server } = session;
  await drop(page, "body", [example()]);
  await settled(page);
  await view(page, "triage");
  await page.evaluate(() => navigator.serviceWorker.ready);
  assert.equal(await id(page, "newer").count(), 0);
  const first = await build(page);
  server.folder = nextBuild();
  // A person comes back to the tab.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await id(page, "newer").waitFor(PATIENCE);
  assert.equal(await build(page), first, "nothing is loaded unless a person wants it");
  assert.deepEqual(await accessibilityFaults(page), []);
  page.on("dialog", () => assert.fail("the page asks before it is left"));
  await Promise.all([page.waitForEvent("load"), id(page, "renew").click()]);
  await started(page);
  assert.equal(await build(page), "next");
  await id(page, "file-card").waitFor(PATIENCE);
  await settled(page);
  await id(page, "view-triage").waitFor(PATIENCE);
  assert.equal(await id(page, "file-card").count(), 1);
  assert.equal(await id(page, "newer").count(), 0, "it is the newest");
  // The repair reads the file again: the copy is there as long as the file is open.
  await view(page, "downloads");
  await page.waitForFunction(() => !document.querySelector("[data-testid=view-downloads] progress"), null, PATIENCE);
  await meanwhile(page);
  // Without the setting, no copy stays for another visit.
  const again = await session.context.newPage();
  await page.close({ runBeforeUnload: false });
  await again.goto(server.url);
  await started(again);
  await again.waitForFunction(async () => {
    for await (const folder of (await navigator.storage.getDirectory()).values()) {
      for await (const _ of folder.keys()) return false;
    }
    return true;
  }, null, PATIENCE);
  assert.equal(await id(again, "kept").count(), 0);
  await session.close();
});

test("a page whose files cannot be kept is not reloaded", async () => {
  const session = await open(browser);
  const { page, server } = session;
  await drop(page, "body", [example()]);
  await settled(page);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.evaluate(() => {
    FileSystemFileHandle.prototype.createWritable = () => Promise.reject(new DOMException("no room", "QuotaExceededError"));
  });
  server.folder = nextBuild();
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await id(page, "renew").click(PATIENCE);
  await page.getByText("The page was not reloaded").waitFor(PATIENCE);
  assert.notEqual(await build(page), "next");
  assert.equal(await id(page, "file-card").count(), 1);
  assert.deepEqual(await stored(page), []);
  await session.close();
});
