// The pictures of README.md and docs/tour.md, from the running page with the example trace.
//
//   node pictures.mjs FOLDER
import path from "node:path";

import { launch } from "./harness.mjs";
import { PATIENCE, dropped, example, id, settled, view } from "./page.mjs";

const [folder] = process.argv.slice(2);
const browser = await launch();
const session = await dropped(browser, [example()], { viewport: { width: 1280, height: 800 } });
const { page } = session;
const take = async (name) => {
  // (Drawing goes on for a moment in a worker.)
  await page.waitForTimeout(1_000);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
};

await settled(page);
await view(page, "diagnosis");
await id(page, "baseline").waitFor(PATIENCE);
await view(page, "overview");
await id(page, "wall").waitFor(PATIENCE);
await take("screenshot");

await view(page, "gaps");
await id(page, "table-gaps").getByRole("gridcell").first().click();
await page.keyboard.press("Enter");
await id(page, "in-timeline").waitFor(PATIENCE);
await take("tour-gap");

await id(page, "in-timeline").click();
await id(page, "chapter-range").waitFor(PATIENCE);
await page.waitForFunction(() => document.querySelector("canvas.lanes")?.width > 300);
await page.mouse.move(0, 0);
await take("tour-timeline");

await id(page, "chapter-range").locator("svg[role=img]").first().scrollIntoViewIfNeeded();
await take("tour-calls");

await view(page, "triage");
await page.locator("main h1").focus();
await page.keyboard.press("t");
await id(page, "table-kernel-table").getByRole("gridcell").first().click();
await id(page, "kernel-launches").waitFor(PATIENCE);
await id(page, "show-slice").first().click();
await page.waitForFunction(() => document.querySelector(".dock canvas.lanes")?.width > 300);
await take("tour-dock");

await session.close();
await browser.close();
