// Files that the browser keeps for the next visit: only if a person wants that, on this machine, until they are cleared.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";

import { ownTrace } from "./environment.mjs";
import { accessibilityFaults, chromiumOnly, drop, launch, open, started } from "./harness.mjs";
import { PATIENCE, card, dropped, example, id, meanwhile, settled, until } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// Every file of the origin's private file system, as `[name, size, digest]`.
const stored = (page) => page.evaluate(async () => {
  const found = [];
  const walk = async (folder) => {
    for await (const entry of folder.values()) {
      if (entry.kind === "directory") {
        await walk(entry);
      } else {
        const bytes = await (await entry.getFile()).arrayBuffer();
        const digest = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].map((byte) => byte.toString(16)).join();
        found.push([entry.name, bytes.byteLength, digest]);
      }
    }
  };
  await walk(await navigator.storage.getDirectory());
  return found.sort(([a], [b]) => a < b ? -1 : 1);
});

/// Waits until as many files are stored.
async function storedFiles(page, n) {
  let found;
  await until(async () => {
    found = await stored(page).catch(() => []);
    return found.length === n && found.every(([, size]) => size > 0);
  }, () => `${found.length} files are stored, not ${n}`);
  return found;
}

async function setKeep(page, on) {
  await id(page, "help").click();
  await id(page, "setting-keep").setChecked(on);
  await id(page, "dialog-close").click();
}

/// Another visit: the files of the last one are closed with their page.
async function visit(session) {
  const page = await session.context.newPage();
  await page.goto(session.server.url);
  await started(page);
  return page;
}

const leave = (page) => page.close({ runBeforeUnload: false });
const names = (page) => page.locator("[data-testid=file-card] bdi").allTextContents();

test("without the setting nothing is kept", async () => {
  const session = await dropped(browser, [example()]);
  await settled(session.page);
  assert.deepEqual(await stored(session.page), []);
  await leave(session.page);
  const page = await visit(session);
  await meanwhile(page);
  assert.equal(await id(page, "kept").count(), 0);
  assert.deepEqual(await stored(page), []);
  await session.close();
});

test("with it, opened files are offered on the next visit, and are the same bytes", async () => {
  const session = await open(browser, { prefix: "/a/b/" });
  const sent = [];
  session.context.on("request", (request) => {
    if (request.method() !== "GET" || request.postData() !== null) sent.push(`${request.method()} ${request.url()}`);
  });
  await setKeep(session.page, true);
  const files = [example(), ownTrace("cpu_mlp_train")];
  await drop(session.page, "body", files);
  await settled(session.page);
  const kept = await storedFiles(session.page, files.length);
  const bytes = await session.page.evaluate(async (texts) => Promise.all(texts.map(async (text) => {
    const own = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return [...new Uint8Array(await crypto.subtle.digest("SHA-256", own))].map((byte) => byte.toString(16)).join();
  })), files.map((file) => fs.readFileSync(file).toString("base64")));
  assert.deepEqual(kept.map(([, , digest]) => digest).sort(), bytes.sort());
  await id(session.page, "help").click();
  assert.match(await id(session.page, "kept-size").textContent(), new RegExp(`Kept on this machine: ${files.length} files?, .*B`));
  assert.deepEqual(await accessibilityFaults(session.page), []);
  await leave(session.page);

  const page = await visit(session);
  await id(page, "kept").waitFor(PATIENCE);
  assert.match(await id(page, "reopen").textContent(), new RegExp(`^Open again: ${files.length} files?, [0-9.]+ .?B$`));
  assert.deepEqual(await accessibilityFaults(page), []);
  assert.equal(await id(page, "file-card").count(), 0, "nothing is opened unless a person wants it");
  await id(page, "reopen").click();
  await settled(page);
  assert.equal(await id(page, "file-card").count(), files.length);
  assert.deepEqual(await stored(page), kept, "a copy is not copied");
  // A file that is closed is no part of the next visit.
  await card(page, (await names(page))[0]).getByTestId("remove").click();
  await storedFiles(page, files.length - 1);
  // What was kept went to no server, the page's own included.
  assert.deepEqual(sent, []);
  assert.ok(session.requests.every((url) => url.startsWith(session.server.origin) || url.startsWith("blob:")), session.requests.join(" "));
  await session.close();
});

test("Clear removes all of them, and so does switching the setting off", async () => {
  const session = await open(browser);
  await setKeep(session.page, true);
  await drop(session.page, "body", [example()]);
  await storedFiles(session.page, 1);
  await leave(session.page);
  let page = await visit(session);
  await id(page, "kept").getByTestId("clear").click();
  await id(page, "kept").waitFor({ state: "detached" });
  assert.deepEqual(await stored(page), []);

  await drop(page, "body", [example()]);
  await storedFiles(page, 1);
  await settled(page);
  await setKeep(page, false);
  await storedFiles(page, 0);
  assert.equal(await id(page, "file-card").count(), 1, "the file stays open");
  await leave(page);
  page = await visit(session);
  await meanwhile(page);
  assert.equal(await id(page, "kept").count(), 0);
  await session.close();
});

test("files that are open in another tab are neither offered nor removed, until it is closed", async () => {
  const session = await open(browser);
  await setKeep(session.page, true);
  await drop(session.page, "body", [example()]);
  await storedFiles(session.page, 1);
  const page = await visit(session);
  await meanwhile(page);
  assert.equal(await id(page, "kept").count(), 0);
  assert.equal((await stored(page)).length, 1);
  await leave(session.page);
  await id(page, "reopen").click();
  await settled(page);
  assert.equal(await id(page, "file-card").count(), 1);
  assert.equal((await stored(page)).length, 1);
  await session.close();
});

test("a file that another tab opens meanwhile is offered once that one is closed", async () => {
  const session = await open(browser);
  await setKeep(session.page, true);
  const page = await visit(session);
  await drop(session.page, "body", [example()]);
  await settled(session.page);
  await storedFiles(session.page, 1);
  await meanwhile(page);
  assert.equal(await id(page, "kept").count(), 0);
  await leave(session.page);
  await id(page, "reopen").click();
  await settled(page);
  assert.equal(await id(page, "file-card").count(), 1);
  await session.close();
});

test("a copy is open in one tab at a time", async () => {
  const session = await open(browser);
  await setKeep(session.page, true);
  const files = [example(), ownTrace("cpu_mlp_train")];
  await drop(session.page, "body", files);
  await settled(session.page);
  await storedFiles(session.page, files.length);
  await leave(session.page);
  const tabs = [await visit(session), await visit(session)];
  for (const page of tabs) await id(page, "kept").waitFor(PATIENCE);
  // In the same moment, mostly before either can hear of the other. (Where one is faster, the other has no button any more, and
  // a click that waits for one would never end.)
  await Promise.all(tabs.map((page) => id(page, "reopen").evaluateAll((buttons) => buttons.forEach((button) => button.click()))));
  for (const page of tabs) await id(page, "kept").waitFor({ state: "detached", ...PATIENCE });
  let cards;
  await until(async () => {
    cards = await Promise.all(tabs.map(names));
    return cards.flat().length >= files.length;
  }, () => `the tabs show ${JSON.stringify(cards)}`);
  await meanwhile(tabs[0]);
  cards = await Promise.all(tabs.map(names));
  assert.equal(cards.flat().length, files.length, JSON.stringify(cards));
  assert.equal((await stored(tabs[0])).length, files.length);
  await session.close();
});

test("what one tab opens, another one offers no longer", async () => {
  const session = await open(browser);
  await setKeep(session.page, true);
  await drop(session.page, "body", [example()]);
  await settled(session.page);
  await storedFiles(session.page, 1);
  await leave(session.page);
  const [first, second] = [await visit(session), await visit(session)];
  for (const page of [first, second]) await id(page, "kept").waitFor(PATIENCE);
  await id(first, "reopen").click();
  await id(second, "kept").waitFor({ state: "detached", ...PATIENCE });
  await settled(first);
  await session.close();
});

test("the setting is one of all tabs, and no copy that another tab makes outlives it", async () => {
  const session = await open(browser);
  const other = await visit(session);
  const said = [];
  other.on("console", (message) => said.push(message.text()));
  await drop(other, "body", [example()]);
  await settled(other);
  await setKeep(session.page, true);
  await storedFiles(other, 1);
  await id(other, "help").click();
  assert.ok(await id(other, "setting-keep").isChecked());
  await id(other, "dialog-close").click();

  await other.evaluate(() => {
    const { createWritable } = FileSystemFileHandle.prototype;
    FileSystemFileHandle.prototype.createWritable = async function slow(...options) {
      globalThis.isCopying = true;
      const writable = await createWritable.apply(this, options);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return writable;
    };
  });
  await drop(other, "body", [ownTrace("cpu_mlp_train")]);
  await other.waitForFunction(() => globalThis.isCopying);
  await setKeep(session.page, false);
  await settled(other);
  await meanwhile(other, 1_500);
  assert.deepEqual(await stored(other), []);
  for (const page of [session.page, other]) assert.equal(await id(page, "failure").count(), 0);
  await id(other, "help").click();
  assert.ok(!await id(other, "setting-keep").isChecked());
  assert.equal(await id(other, "file-card").count(), 2, "the files stay open");
  assert.deepEqual(said, []);
  await session.close();
});

test("a tab that starts does not remove the folder that another tab is making", async () => {
  const session = await open(browser);
  await setKeep(session.page, true);
  // Some folder has to be there to look at.
  await drop(session.page, "body", [example()]);
  await storedFiles(session.page, 1);
  await session.page.evaluate(() => {
    const { createWritable } = FileSystemFileHandle.prototype;
    FileSystemFileHandle.prototype.createWritable = async function slow(...options) {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return createWritable.apply(this, options);
    };
  });
  const starting = await session.context.newPage();
  await starting.addInitScript(() => {
    const { query } = LockManager.prototype;
    LockManager.prototype.query = async function slow() {
      const known = await query.call(this);
      globalThis.hasAsked = true;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return known;
    };
  });
  await starting.goto(session.server.url);
  await starting.waitForFunction(() => globalThis.hasAsked);
  await drop(session.page, "body", [ownTrace("cpu_mlp_train")]);
  await settled(session.page);
  await storedFiles(session.page, 2);
  assert.equal(await id(session.page, "failure").count(), 0);
  assert.equal(await id(starting, "kept").count(), 0);
  await session.close();
});

for (const [name, title] of [["QuotaExceededError", "The disk is full"], ["TypeError", "Files cannot be kept"]]) {
  test(`the page says that ${title.toLowerCase()}`, async () => {
    const session = await open(browser);
    await session.page.evaluate((name) => {
      if (name === "TypeError") {
        Object.defineProperty(navigator, "storage", { value: undefined });
      } else {
        FileSystemFileHandle.prototype.createWritable = () => Promise.reject(new DOMException("no room", name));
      }
    }, name);
    await setKeep(session.page, true);
    await drop(session.page, "body", [example()]);
    await session.page.getByRole("heading", { name: title }).waitFor(PATIENCE);
    await settled(session.page);
    assert.deepEqual(await accessibilityFaults(session.page), []);
    if (name !== "TypeError") assert.deepEqual(await stored(session.page), [], "no part of a file stays");
    await session.close();
  });
}

chromiumOnly("a disk that is really full is said", async () => {
  const session = await open(browser);
  const devtools = await session.context.newCDPSession(session.page);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin: session.server.origin, quotaSize: 20_000 });
  await setKeep(session.page, true);
  await drop(session.page, "body", [example()]);
  await session.page.getByRole("heading", { name: "The disk is full" }).waitFor(PATIENCE);
  await session.close();
});
