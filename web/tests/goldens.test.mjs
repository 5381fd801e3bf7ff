// What a few stable views look like, in both themes and three widths, against pictures of this repository. Fonts and drawing differ
// between machines, so pictures are compared in small: what this finds is a part that is gone, moved, or of another colour.
//
//   UPDATE_EXPECT=1 node --test goldens.test.mjs        takes the pictures again; look at them before they are committed
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { FILES } from "./chromium-only.mjs";
import { firefox } from "./environment.mjs";
import { launch, open } from "./harness.mjs";
import { PATIENCE, drawn, dropped, example, id, settled, until, view } from "./page.mjs";

const FOLDER = fileURLToPath(new URL("goldens", import.meta.url));
/// px of a view for one of the picture that is compared. Pictures are kept in half their size.
const CELL = 16;
/// How much a channel of such a px may differ, of 255, and the share of them that may differ by more.
const TOLERANCE = 24;
const MOST_PCT = 3;
/// The same on a machine with other fonts, where lines of text lie elsewhere: the other theme, or an empty page, is still found.
const OTHER_FONTS_PCT = 40;
/// A recording of this repository: three steps of training.
const SNAPSHOT = fileURLToPath(new URL("../../samples/gpu/memory_train.json.gz", import.meta.url));
const FONTS = path.join(FOLDER, "fonts.json");

const skip = firefox() !== undefined && FILES["goldens.test.mjs"];
let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// A picture in half its size.
async function halved(page, png) {
  const text = await page.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth / 2, height: image.naturalHeight / 2 });
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png").split(",")[1];
  }, png.toString("base64"));
  return Buffer.from(text, "base64");
}

/// The mean colour of each cell of a picture in half its size: `{ width, height, cells }`.
const small = (page, png) => page.evaluate(async ([text, cell]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${text}`;
  await image.decode();
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const cells = [];
  for (let top = 0; top < height; top += cell) {
    for (let left = 0; left < width; left += cell) {
      const sums = [0, 0, 0];
      let n = 0;
      for (let y = top; y < Math.min(top + cell, height); y += 1) {
        for (let x = left; x < Math.min(left + cell, width); x += 1) {
          for (let channel = 0; channel < 3; channel += 1) sums[channel] += data[4 * (y * width + x) + channel];
          n += 1;
        }
      }
      cells.push(sums.map((sum) => sum / n));
    }
  }
  return { width, height, cells };
}, [png.toString("base64"), CELL / 2]);

/// Widths of text in the fonts of the page, which differ where the fonts do.
const fonts = (page) => page.evaluate(() => {
  const context = document.createElement("canvas").getContext("2d");
  const families = [getComputedStyle(document.body).fontFamily, "monospace"];
  return families.map((family) => {
    context.font = `16px ${family}`;
    return Math.round(10 * context.measureText("Kinetoscope 0123456789 µs, GPU time").width);
  });
});

/// Compares the page with a picture, until they are alike: on a busy machine a view is drawn later. `patience` is in ms.
async function compare(page, name, { strict = false, patience = 20_000 } = {}) {
  const file = path.join(FOLDER, `${name}.png`);
  const picture = async () => halved(page, await page.screenshot({ animations: "disabled", caret: "hide" }));
  if (process.env.UPDATE_EXPECT) {
    fs.mkdirSync(FOLDER, { recursive: true });
    let before;
    let taken = await picture();
    await until(async () => {
      [before, taken] = [taken, await picture()];
      return taken.equals(before);
    }, `${name} stays as it is`, { every: 500 });
    fs.writeFileSync(file, taken);
    fs.writeFileSync(FONTS, `${JSON.stringify(await fonts(page))}\n`);
    return;
  }
  assert.ok(fs.existsSync(file), `${name} has no picture: UPDATE_EXPECT=1`);
  const wanted = await small(page, fs.readFileSync(file));
  const known = fs.existsSync(FONTS) && fs.readFileSync(FONTS, "utf8").trim();
  const alike = strict || JSON.stringify(await fonts(page)) === known;
  const most = alike ? MOST_PCT : OTHER_FONTS_PCT;
  let fault;
  await until(async () => {
    const now = await small(page, await picture());
    assert.deepEqual([now.width, now.height], [wanted.width, wanted.height], name);
    const others = now.cells.flatMap((cell, at) => (differs(cell, wanted.cells[at]) ? [at] : []));
    const pct = 100 * others.length / now.cells.length;
    fault = `${name}: ${pct.toFixed(1)}% of the picture is another, ${place(others, now.width)}`;
    return pct <= most;
  }, () => fault, { timeout: patience, every: 500 });
}

const differs = (cell, wanted) => cell.some((value, channel) => Math.abs(value - wanted[channel]) > TOLERANCE);

/// Where these cells lie in the view, in px.
function place(cells, width) {
  const columns = Math.ceil(width / (CELL / 2));
  const [xs, ys] = [cells.map((at) => at % columns), cells.map((at) => Math.floor(at / columns))];
  const range = (of) => `${CELL * Math.min(...of)} to ${CELL * (Math.max(...of) + 1)}`;
  return `x ${range(xs)} px, y ${range(ys)} px`;
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 768, 400]) {
    test(`views look as they did, ${colorScheme}, ${width} px`, { skip }, async () => {
      const options = { colorScheme, viewport: { width, height: 800 } };
      const empty = await open(browser, options);
      await compare(empty.page, `empty-${colorScheme}-${width}`);
      await empty.close();
      const session = await dropped(browser, [example()], options);
      const { page } = session;
      await settled(page);
      await view(page, "breakdown");
      await id(page, "stacked-bar").waitFor(PATIENCE);
      await page.mouse.move(0, 0);
      await compare(page, `breakdown-${colorScheme}-${width}`);
      await view(page, "timeline");
      await drawn(page);
      await compare(page, `timeline-${colorScheme}-${width}`);
      await session.close();
      const memory = await dropped(browser, [SNAPSHOT], options);
      await id(memory.page, "view-snapshot").waitFor(PATIENCE);
      for (const surface of ["memory", "blocks"]) await drawn(memory.page, `canvas.${surface}`);
      await settled(memory.page);
      await compare(memory.page, `memory-${colorScheme}-${width}`);
      await id(memory.page, "looking").evaluate((section) => section.scrollIntoView({ block: "start" }));
      await compare(memory.page, `memory-pictures-${colorScheme}-${width}`);
      await memory.close();
    });
  }
}

test("a part of another colour is found", { skip }, async () => {
  if (process.env.UPDATE_EXPECT) return;
  const session = await open(browser, { colorScheme: "light", viewport: { width: 1280, height: 800 } });
  await session.page.evaluate(() => document.querySelector(".drop-zone").style.setProperty("background", "black"));
  await assert.rejects(compare(session.page, "empty-light-1280", { strict: true, patience: 0 }), /of the picture is another, x \d+ to \d+ px/);
  await session.close();
});
