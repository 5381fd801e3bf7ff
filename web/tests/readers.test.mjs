// The page as it is without its picture: what a screen reader says, with the few colours of a person's own, and on paper.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessibilityFaults, chromiumOnly, launch } from "./harness.mjs";
import { PATIENCE, colours, drawn, dropped, example, id, settled, until, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// The main views by their names, and what each must have for a person who hears it.
const VIEWS = [
  ["Overview", ["img"]], ["Diagnosis", []], ["Triage", ["grid"]], ["Breakdown", ["img", "grid"]], ["Overlap", ["grid"]], ["Fuse", []],
  ["Idle gaps", ["grid"]], ["Ops and calls", ["grid"]], ["Steps", []], ["Modules and FLOPs", []], ["File health", []], ["Downloads", []],
];

async function opened(options) {
  const session = await dropped(browser, [example()], options);
  await settled(session.page);
  return session;
}

const says = (page, name, text) => page.waitForFunction(
  ([name, text]) => document.querySelector(`[role=status][data-testid=${name}]`)?.textContent.includes(text), [name, text], PATIENCE);

/// The levels of the headings that are seen, in the order of the page.
const levels = (page) => page.getByRole("heading").evaluateAll((all) =>
  all.filter((heading) => heading.checkVisibility()).map((heading) => [Number(heading.tagName[1]), heading.textContent]));

/// Every grid: its name, the names of its columns, and how many cells each row has.
const grids = (page) => page.getByRole("grid").evaluateAll((all) => all.map((grid) => ({
  name: grid.getAttribute("aria-label"),
  n_rows: Number(grid.getAttribute("aria-rowcount")),
  heads: [...grid.querySelectorAll("thead th")].map((head) => [head.scope || head.getAttribute("role"), head.textContent.trim()]),
  rows: [...grid.querySelectorAll("tbody [role=row]")].map((row) => row.querySelectorAll("[role=gridcell]").length),
})));

test("a screen reader finds every view, its headings, tables and pictures by role and name", async () => {
  const session = await opened();
  const { page } = session;
  for (const role of ["banner", "main", "contentinfo"]) assert.equal(await page.getByRole(role).count(), 1, role);
  const nav = page.getByRole("navigation", { name: "Views" });
  for (const [name, roles] of VIEWS) {
    const button = nav.getByRole("button", { name });
    await button.click();
    const title = page.getByRole("main").getByRole("heading", { level: 1, name, exact: true });
    await title.waitFor(PATIENCE);
    assert.equal(await button.getAttribute("aria-current"), "page", name);
    for (const role of roles) await page.getByRole("main").getByRole(role).first().waitFor(PATIENCE);
    const found = await levels(page);
    assert.equal(found.filter(([level]) => level === 1).length, 1, `${name}: one heading of the view`);
    found.reduce((last, [level, text]) => {
      assert.ok(level <= last + 1, `${name}: a heading of level ${level} after one of level ${last}: ${text}`);
      return level;
    }, 1);
    for (const { name: grid, n_rows, heads, rows } of await grids(page)) {
      assert.ok(grid?.length > 2, `${name}: a table has a name`);
      assert.ok(heads.length > 0 && heads.every(([role, text]) => /^col/.test(role) && text !== ""), `${grid}: ${JSON.stringify(heads)}`);
      assert.ok(n_rows >= rows.length + 1 && rows.every((n) => n === heads.length), `${grid}: a cell for each column`);
    }
    // (Their parts are pictures without a role.)
    const pictures = page.locator("main [role=img]");
    for (let at = 0; at < await pictures.count(); at += 1) {
      assert.match(await pictures.nth(at).getAttribute("aria-label") ?? "", /\w{3,}/, `${name}: a picture says what it shows`);
    }
    const unnamed = await page.locator("main").evaluate((main) => [...main.querySelectorAll("button, a, input, select")].filter((control) =>
      control.checkVisibility() && !(control.textContent.trim() || control.ariaLabel || control.labels?.length)).map((control) => control.outerHTML));
    assert.deepEqual(unnamed, [], name);
  }
  await session.close();
});

test("what a person does is announced", async () => {
  const session = await opened();
  const { page } = session;
  const live = page.getByRole("status");
  assert.ok(await live.count() >= 2, "the status bar is a live region");
  await view(page, "triage");
  const filter = page.getByRole("searchbox", { name: /^Filter / }).first();
  await filter.fill("gemm");
  await says(page, "summary-kernel-table", " of ");
  await page.getByRole("button", { name: / as TSV$/ }).first().click();
  await says(page, "announcement", "Copied");
  await page.getByRole("button", { name: "Undo filter" }).click();
  await says(page, "announcement", "Filter undone.");
  await page.getByRole("button", { name: /theme/i }).first().click();
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("dialog").waitFor(PATIENCE);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached", ...PATIENCE });
  await session.close();
});

test("the timeline is heard: slices as they are selected, and the lane as a table", async () => {
  const session = await opened();
  const { page } = session;
  await page.getByRole("navigation", { name: "Views" }).getByRole("button", { name: "Timeline" }).click();
  const picture = page.getByRole("application", { name: /^Slices over time/ });
  await picture.waitFor(PATIENCE);
  await picture.focus();
  const heard = [];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight"]) {
    const before = await id(page, "announcement").textContent();
    await page.keyboard.press(key);
    await page.waitForFunction((before) => {
      const now = document.querySelector("[data-testid=announcement]").textContent;
      return now !== "" && now !== before;
    }, before, PATIENCE);
    heard.push(await id(page, "announcement").textContent());
  }
  assert.equal(new Set(heard).size, heard.length, `each slice is told: ${heard.join(" | ")}`);
  await page.getByRole("heading", { name: /, lane \d+$/ }).waitFor(PATIENCE);
  const table = page.getByRole("grid", { name: "Slices" });
  const names = await table.getByRole("gridcell").allTextContents();
  assert.ok(names.some((name) => name && heard.at(-1).includes(name.slice(0, 12))), "the table of the lane has the slice");
  await session.close();
});

/// A colour of a picture as the styles of a page have it.
const rgb = (colour) => `rgb(${colour.split(",").slice(0, 3).join(", ")})`;

/// A colour of the system, as the browser computes it.
const system = (page, name) => page.evaluate((name) => {
  const probe = document.body.appendChild(Object.assign(document.createElement("i"), { style: "" }));
  probe.attributeStyleMap.set("color", name);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}, name);

chromiumOnly("forced colours: pictures have the system's ground and ink, and hues with edges and patterns", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const session = await opened({ colorScheme });
    const { page } = session;
    await page.emulateMedia({ forcedColors: "active", colorScheme });
    const [ground, ink] = [await system(page, "Canvas"), await system(page, "CanvasText")];
    assert.notEqual(ground, ink);
    await page.locator("main .segment").first().waitFor(PATIENCE);
    const segments = await page.locator("main .segment").evaluateAll((all) => all.map((segment) => {
      const { fill, stroke } = getComputedStyle(segment);
      return { fill, stroke };
    }));
    assert.ok(segments.every(({ fill, stroke }) => fill !== ground && stroke === ink), JSON.stringify(segments[0]));
    assert.ok(new Set(segments.map(({ fill }) => fill)).size > 1, "hues stay");
    assert.ok(await page.locator("main [fill^='url(#hatch']").count() > 0, "categories of one hue have patterns");
    assert.deepEqual(await accessibilityFaults(page), []);
    await view(page, "timeline");
    await id(page, "surface-over").waitFor(PATIENCE);
    await drawn(page);
    const lanes = (await colours(page)).map(([colour]) => rgb(colour));
    assert.ok(lanes.slice(0, 2).includes(ground), "the lanes lie on the system's ground");
    assert.ok(lanes.includes(ink), "and are labelled in its ink");
    assert.ok(lanes.includes("rgb(0, 114, 178)"), "GEMM is blue");
    // Switched off while the picture is there, it is drawn anew.
    await page.emulateMedia({ forcedColors: "none", colorScheme: colorScheme === "dark" ? "light" : "dark" });
    await until(async () => {
      const often = (await colours(page))?.slice(0, 2).map(([colour]) => rgb(colour));
      return often?.length === 2 && !often.includes(ground);
    }, "the theme's ground");
    await session.close();
  }
});

chromiumOnly("on paper there is the view, and nothing that is only for a screen", async () => {
  const session = await opened({ colorScheme: "dark" });
  const { page } = session;
  for (const name of ["overview", "triage", "breakdown", "timeline", "diagnosis"]) {
    await view(page, name);
    await page.emulateMedia({ media: "print" });
    const seen = await page.evaluate(() => {
      const isSeen = (selector) => [...document.querySelectorAll(selector)].some((element) => element.checkVisibility());
      const main = document.querySelector("main");
      return {
        screen: [".header", ".nav", ".files", ".status-bar", ".surface-tools", ".table-filter", ".chart-tools"].filter(isSeen),
        heading: isSeen("main h1"),
        isCut: getComputedStyle(main).overflow !== "visible" || document.documentElement.scrollHeight < main.scrollHeight - 1,
        ground: getComputedStyle(document.documentElement).backgroundColor,
      };
    });
    assert.deepEqual(seen, { screen: [], heading: true, isCut: false, ground: "rgb(255, 255, 255)" }, name);
    const paper = await page.pdf({ format: "A4", printBackground: true });
    assert.ok(paper.length > 5_000, `${name}: ${paper.length} bytes`);
    await page.emulateMedia({ media: "screen" });
  }
  await session.close();
});
