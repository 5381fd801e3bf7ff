// Every chart can be saved as a picture: a PNG, and an SVG that needs no stylesheet and refers to nothing outside.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessibilityFaults, download, launch } from "./harness.mjs";
import { PATIENCE, dropped, example, id, settled, until, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// The charts of the view that is shown: their names, and whether each has both buttons.
const charts = (page) => page.locator("main [data-chart]").evaluateAll((all) => all.map((chart) => {
  const buttons = [...chart.querySelectorAll("[data-testid^=chart-]")].map((button) => button.textContent);
  return { name: chart.dataset.chart, buttons };
}));

/// What a picture is made of. (The page itself would not load it: its policy allows no Blob as an image.)
async function look(page, file) {
  return page.evaluate(async (text) => {
    const image = new Image();
    image.src = text;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const colour = data.slice(at, at + 3).join();
      colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
    const often = [...colours].filter(([, n]) => n > data.length / 4 / 200).map(([colour]) => colour);
    return { width: canvas.width, height: canvas.height, often, opaque: data.every((value, at) => at % 4 < 3 || value === 255) };
  }, `data:image/${file.name.endsWith(".svg") ? "svg+xml" : "png"};base64,${file.bytes.toString("base64")}`);
}

async function saved(page, chart, kind) {
  const button = page.locator(`main [data-chart="${chart}"]`).first().getByTestId(`chart-${kind}`);
  await button.scrollIntoViewIfNeeded();
  return download(page, () => button.click());
}

for (const colorScheme of ["light", "dark"]) {
  test(`charts are saved as they are seen, ${colorScheme}`, async () => {
    const session = await dropped(browser, [example()], { colorScheme });
    const { page } = session;
    await settled(page);
    await view(page, "diagnosis");
    await id(page, "baseline").waitFor(PATIENCE);
    await view(page, "overview");
    await id(page, "wall").waitFor(PATIENCE);
    for (const chart of ["wall-time", "gpu-time"]) {
      const svg = await saved(page, chart, "svg");
      assert.equal(svg.name, `example-${chart}.svg`);
      const text = svg.bytes.toString("utf8");
      assert.ok(!/\bclass=|var\(|<style|href=/.test(text), "it needs no stylesheet and refers to nothing outside");
      // The title, and every part of the legend with its share.
      const legend = await page.locator(`[data-chart="${chart}"] .legend li > span`).allTextContents();
      assert.ok(legend.length > 3);
      const texts = [...text.matchAll(/<text\b[^>]*>([^<]*)/g)].map(([, of]) => of.replaceAll("&lt;", "<").replaceAll("&amp;", "&"));
      for (const wanted of [...legend, chart === "wall-time" ? "Share of the wall time" : "Share of GPU time"]) {
        assert.ok(texts.join(" ").includes(wanted.trim()), `${wanted} in ${texts.join(" | ")}`);
      }
      const [png, ofSvg] = [await saved(page, chart, "png"), await look(page, svg)];
      assert.equal(png.name, `example-${chart}.png`);
      const ofPng = await look(page, png);
      assert.deepEqual([ofPng.width, ofPng.height], [2 * ofSvg.width, 2 * ofSvg.height]);
      assert.ok(ofPng.opaque && ofSvg.opaque, "it has a ground");
      assert.ok(ofSvg.often.length >= 3, `colours of the parts: ${ofSvg.often}`);
      const ground = await page.locator("main .panel").first().evaluate((panel) => getComputedStyle(panel).backgroundColor.match(/\d+/g).join());
      assert.ok(ofPng.often.includes(ground) && ofSvg.often.includes(ground), `${ofPng.often}`);
      // Its hatches are in it.
      const hatches = [...text.matchAll(/url\(#([\w-]+)\)/g)].map(([, name]) => name);
      for (const name of hatches) assert.ok(text.includes(`id="${name}"`), name);
    }
    await session.close();
  });
}

test("every chart of the views has both buttons, and each picture can be opened", async () => {
  const session = await dropped(browser, [example()]);
  const { page } = session;
  await settled(page);
  await view(page, "diagnosis");
  await id(page, "baseline").waitFor(PATIENCE);
  const names = new Set();
  for (const of of ["overview", "breakdown", "steps", "modules", "diagnosis", "memory", "roofline"]) {
    if (await id(page, `nav-${of}`).count() === 0) continue;
    await view(page, of);
    const drawn = () => page.locator("main figure svg[role=img], main .window svg[role=img]").evaluateAll((svgs) => new Set(svgs.map((svg) => svg.closest("[data-chart]"))).size);
    // (Some come with what is analysed later.)
    let all;
    await until(async () => {
      all = await charts(page);
      return all.length === await drawn();
    }, () => `${of}: ${all.length} charts have buttons, and more are drawn`);
    for (const { name, buttons } of all) {
      assert.deepEqual(buttons, ["PNG", "SVG"], name);
      if (names.has(name)) continue;
      names.add(name);
      const { width, height, often } = await look(page, await saved(page, name, "png"));
      assert.ok(width > 400 && height > 60 && often.length > 1, `${name}: ${width} × ${height}, ${often}`);
    }
  }
  assert.ok(names.has("wall-time") && names.has("gpu-time") && names.size >= 4, [...names].join());
  assert.deepEqual(await accessibilityFaults(page), []);
  await view(page, "overlap");
  await session.close();
});
