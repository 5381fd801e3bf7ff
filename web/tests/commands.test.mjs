// The command dialog: opened by a key and a button, filtered by words, obeyed by Enter and by a click.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { accessibilityFaults, download, launch, open } from "./harness.mjs";
import { PATIENCE, card, id, settled } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const kernel = { ph: "X", pid: 0, tid: 7, ts: 1, dur: 2, cat: "kernel", name: "gemm_kernel", args: { device: 0, stream: 7 } };
const file = (name, events = [kernel]) => ({ name, mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ traceEvents: events })) });
const put = (page, files) => id(page, "file-input").setInputFiles(files);
const text = (page) => id(page, "commands-text");
const titles = (page) => id(page, "command").locator("span").allTextContents();
const focused = (page) => page.evaluate(() => document.activeElement?.dataset.testid ?? document.activeElement?.tagName);
const gone = (page) => id(page, "commands").waitFor({ state: "detached" });

/// Opens the dialog by its key and runs the first command that has these words.
async function run(page, words) {
  await page.keyboard.press("Control+k");
  await text(page).fill(words);
  await page.keyboard.press("Enter");
  await gone(page);
}

test("Ctrl+K opens the commands, Escape closes them, and the focus is where it was", async () => {
  const session = await open(browser);
  const { page } = session;
  await id(page, "theme").focus();
  await page.keyboard.press("Control+k");
  assert.equal(await focused(page), "commands-text");
  assert.deepEqual(await accessibilityFaults(page), []);
  await page.keyboard.press("Escape");
  await gone(page);
  assert.equal(await focused(page), "theme");

  const button = id(page, "find-command");
  assert.match(await button.getAttribute("title"), /Ctrl\+K/);
  await button.click();
  assert.equal(await focused(page), "commands-text");
  await page.keyboard.press("Control+k");
  await gone(page);
  assert.equal(await focused(page), "find-command", "the key closes it, too");

  await page.keyboard.press("?");
  assert.match(await id(page, "dialog").textContent(), /Ctrl\/⌘ K/);
  await page.keyboard.press("Control+k");
  assert.equal(await id(page, "commands").count(), 0, "not above another dialog");
  await session.close();
});

test("arrows move, words filter, and a screen reader is told which line is meant", async () => {
  const session = await open(browser);
  const { page } = session;
  await put(page, [file("one.json"), file("two.json")]);
  await settled(page);
  await page.keyboard.press("Control+k");
  const active = () => page.evaluate(() => {
    const line = document.getElementById(document.activeElement.getAttribute("aria-activedescendant"));
    return line?.getAttribute("aria-selected") === "true" ? line.querySelector("span").textContent : undefined;
  });
  assert.equal(await active(), "Go to Overview");
  await page.keyboard.press("ArrowDown");
  assert.equal(await active(), "Go to Timeline");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  assert.equal(await active(), (await titles(page)).at(-1), "from the first to the last");
  const inSight = await page.evaluate(() => {
    const [list, line] = ["[role=listbox]", "[aria-selected=true]"].map((of) => document.querySelector(of).getBoundingClientRect());
    return line.top >= list.top && line.bottom <= list.bottom;
  });
  assert.ok(inSight, "the list scrolls along");
  await text(page).fill("health GO");
  assert.deepEqual(await titles(page), ["Go to File health"]);
  assert.equal(await active(), "Go to File health");
  assert.deepEqual(await accessibilityFaults(page), []);
  await text(page).fill("moon");
  assert.deepEqual(await titles(page), []);
  assert.match(await id(page, "commands").textContent(), /No command matches/);
  assert.deepEqual(await accessibilityFaults(page), []);
  await page.keyboard.press("Enter");
  assert.equal(await id(page, "commands").count(), 1, "there is nothing to run");
  await session.close();
});

test("a command goes to a view, a file, a theme, a dialog and a download", async () => {
  const session = await open(browser);
  const { page } = session;
  await put(page, [file("one.json"), file("two.json")]);
  await settled(page);
  await run(page, "go downloads");
  await id(page, "view-downloads").waitFor(PATIENCE);
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");

  await run(page, "two.json");
  await page.waitForFunction(() => document.querySelector(".file-card.selected bdi")?.textContent === "two.json");
  assert.equal(await card(page, "two.json").locator("[aria-pressed=true]").count(), 1);

  await run(page, "dark theme");
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  await page.keyboard.press("Control+k");
  assert.deepEqual(await accessibilityFaults(page), []);
  await text(page).fill("record");
  await id(page, "command").first().click();
  await id(page, "dialog").waitFor();
  assert.match(await id(page, "dialog").textContent(), /with_stack=True/);
  assert.equal(await id(page, "commands").count(), 0);
  await page.keyboard.press("Escape");
  await id(page, "dialog").waitFor({ state: "detached" });

  const saved = await download(page, () => run(page, "download repaired .json)"));
  assert.match(saved.name, /^two.*\.json$/);
  await run(page, "go health");
  await id(page, "written").waitFor(PATIENCE);
  const zip = await download(page, () => run(page, "artifacts zip"));
  assert.match(zip.name, /\.zip$/);
  await session.close();
});

describe("400 px", () => {
  test("the commands fit, and so does their button", async () => {
    const session = await open(browser, { viewport: { width: 400, height: 700 } });
    const { page } = session;
    await put(page, [file("one.json"), file(`${"a_very_long_name_without_a_blank_".repeat(4)}.json`)]);
    await settled(page);
    await id(page, "find-command").click();
    const wide = await page.evaluate(() => {
      const parts = [document.documentElement, document.querySelector(".header"), document.querySelector("dialog"), document.querySelector("[role=listbox]")];
      return parts.map((part) => part.scrollWidth - part.clientWidth);
    });
    assert.ok(wide.every((px) => px <= 0), `${wide}`);
    const box = await id(page, "commands").boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 700, "no part is out of sight");
    assert.deepEqual(await accessibilityFaults(page), []);
    await session.close();
  });
});
