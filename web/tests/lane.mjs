// One lane of a group of tests: takes the next file of the group, until none is left, and runs it in a browser that all its files share.
// The folder KINETOSCOPE_QUEUE has an empty file for each that is left; who removes it runs it.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { afterEach, test } from "node:test";

import { runs } from "./environment.mjs";
import { shareBrowser } from "./harness.mjs";

const queue = process.env.KINETOSCOPE_QUEUE;
/// `cargo xtask test` asks for an end here: another check has failed.
const beside = process.env.KINETOSCOPE_BESIDE;
const mustStop = () => beside !== undefined && fs.existsSync(path.join(beside, "stop"));

/// Takes the first file that the other lane has not taken.
function next() {
  for (const entry of fs.readdirSync(queue).sort()) {
    try {
      fs.unlinkSync(path.join(queue, entry));
      return entry.replace(/^\d+-/, "");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  return undefined;
}

// A test that fails leaves its page open: its own message is the one to read.
let isWhole = true;
afterEach((of) => { isWhole &&= of.passed; });

const browser = shareBrowser();
for (let file = next(); file !== undefined && !mustStop(); file = next()) {
  runs(file);
  // (One that cannot be loaded fails, and the others go on.)
  await import(`./${file}`).catch((error) => test(file, () => assert.fail(error)));
  // (Tests run in order: when this one is done, so are those of the file.)
  await test(`${file} closed its pages`, async (of) => {
    const n = await browser.settle();
    if (isWhole) assert.equal(n, 0);
    else of.diagnostic(`a test failed, and pages left open: ${n}`);
  });
  isWhole = true;
}
await browser.close();
