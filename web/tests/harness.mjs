// A browser for the tests: a fresh profile, a page served from any path, and everything that the page says or asks for.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import axe from "axe-core";
import playwright from "playwright-core";

import { TESTS } from "./chromium-only.mjs";
import { chromium, firefox, pageFolder, scratch } from "./environment.mjs";
import { serveFolder, serveForeign } from "./server.mjs";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
  // Names are never looked up: what is not on this machine is not reached, whatever a test does wrong.
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
  `--disable-features=${[
    // A new profile would start two more processes: of two pages for suggestions under its address bar, and a spare one.
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess",
    // What Playwright 1.60 turns off: only the last such list counts.
    "AvoidUnnecessaryBeforeUnloadCheckSync", "BoundaryEventDispatchTracksNodeRemoval", "DestroyProfileOnBrowserClose",
    "DialMediaRouteProvider", "GlobalMediaControls", "HttpsUpgrades", "LensOverlay", "MediaRouter", "PaintHolding",
    "ThirdPartyStoragePartitioning", "Translate", "AutoDeElevate", "RenderDocument", "OptimizationHints",
  ].join()}`,
];

// The same for Firefox: whatever is not on this machine is asked of a proxy that does not exist.
const NO_PROXY = { host: "127.0.0.1", port: 9 };
const saved = scratch();
const PREFERENCES = {
  // A test may read what a button copied.
  "dom.events.testing.asyncClipboard": true,
  // As UNOPTIMISED below, for Firefox; and its cache needs no disk: every page of a test has an origin of its own.
  "javascript.options.wasm_optimizingjit": false,
  "browser.cache.disk.enable": false,
  "network.proxy.type": 1,
  "network.proxy.http": NO_PROXY.host, "network.proxy.http_port": NO_PROXY.port,
  "network.proxy.ssl": NO_PROXY.host, "network.proxy.ssl_port": NO_PROXY.port,
};

// A test ends before optimised wasm pays: V8 compiles it on other threads, a quarter of all the time of the processor.
const UNOPTIMISED = "--js-flags=--liftoff-only";

// The browser that all files of a lane share.
let lent;

/// The browser, for all tests of a file. Close it in `after`. Firefox is any that is installed, by WebDriver BiDi. With `optimises`
/// Chromium compiles as it does for a person: for measurements. `own` is for a test that no other file may have used the browser of.
export async function launch({ optimises = false, own = false } = {}) {
  return lent !== undefined && !own && !optimises ? lent.browser() : start(optimises);
}

/// From now on the files of this process share one browser, and closing it does nothing: Firefox takes 4 s of processor time to start.
/// Every page still has a context of its own. `settle` closes the contexts that a file left open and gives their number.
export function shareBrowser() {
  let browser;
  let close = async () => {};
  lent = {
    async browser() {
      if (browser?.isConnected()) return browser;
      browser = await start(false);
      close = browser.close.bind(browser);
      browser.close = async () => {};
      return browser;
    },
  };
  const settle = async () => {
    const left = browser?.contexts() ?? [];
    for (const context of left) await context.close();
    return left.length;
  };
  return { settle, close: () => close() };
}

function start(optimises) {
  const executablePath = firefox();
  if (executablePath !== undefined) {
    const options = { channel: "moz-firefox", headless: true, downloadsPath: saved, firefoxUserPrefs: PREFERENCES };
    return playwright.firefox.launch({ executablePath, ...options });
  }
  return playwright.chromium.launch({ executablePath: chromium(), headless: true, args: optimises ? FLAGS : [...FLAGS, UNOPTIMISED] });
}

/// A test that Firefox skips, as the list says.
export function chromiumOnly(name, act) {
  assert.ok(TESTS[name], `the list has no test called ${name}`);
  return test(name, { skip: firefox() !== undefined && TESTS[name] }, act);
}

/// A page of the app in a profile of its own, with a server for it at `prefix` and one of a foreign origin.
///
///     const session = await open(browser, { prefix: "/a/b/" });
///     ...
///     await session.close();      // fails if the console or the network was not clean
///
/// Without `copied` the page does not keep its copy of itself for use without a network, as while that is being made: 8 MB, which take
/// Firefox 0.5 s of processor time.
export async function open(browser, { prefix = "/", viewport, colorScheme, folder = pageFolder(), copied = true } = {}) {
  const server = await serveFolder(folder, prefix);
  const foreign = await serveForeign();
  const context = await browser.newContext({ viewport: viewport ?? { width: 1280, height: 800 }, colorScheme, acceptDownloads: true });
  // (Of every wait that names no time of its own: other programs of the suite have the processors, too.)
  context.setDefaultTimeout(60_000);
  if (!copied) await context.addInitScript(neverCopied);
  const page = await context.newPage();
  const session = { browser, context, page, server, foreign, console: [], requests: [] };
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) session.console.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => session.console.push(`uncaught: ${error.message}`));
  page.on("crash", () => session.console.push("the page crashed"));
  context.on("request", (request) => session.requests.push(request.url()));
  session.close = ({ clean = true } = {}) => closeSession(session, clean);
  await page.goto(server.url);
  await started(page);
  return session;
}

function neverCopied() {
  // (Firefox has none in about:blank.)
  if (navigator.serviceWorker) navigator.serviceWorker.register = () => new Promise(() => {});
}

/// Waits until the app has replaced the "Loading" text.
export async function started(page) {
  await page.waitForFunction(() => document.querySelector("#app .boot") === null && document.querySelector("#app > *") !== null);
  assert.equal(await page.locator("#boot-error").count(), 0, "the app could not start");
}

async function closeSession(session, clean) {
  await session.context.close();
  await session.server.close();
  await session.foreign.close();
  if (!clean) return;
  assert.deepEqual(session.console, [], "the console is clean");
  assert.deepEqual(foreignRequests(session), [], "nothing is asked of another origin");
  assert.deepEqual(session.foreign.hits, [], "another origin hears nothing");
}

/// What the page asked of anyone but its own server.
export function foreignRequests(session) {
  const isLocal = (url) => url.startsWith(`${session.server.origin}/`) || url.startsWith("blob:") || url.startsWith("data:");
  return session.requests.filter((url) => !isLocal(url));
}

/// Drops files of this machine on an element of the page, as a person does with the mouse.
export async function drop(page, selector, files) {
  await page.evaluate(() => {
    const input = document.createElement("input");
    input.type = "file";
    input.multiple = true;
    input.id = "test-files";
    input.hidden = true;
    document.body.append(input);
  });
  await page.locator("#test-files").setInputFiles([files].flat());
  await page.evaluate((target) => {
    const input = document.getElementById("test-files");
    const dataTransfer = new DataTransfer();
    for (const file of input.files) dataTransfer.items.add(file);
    input.remove();
    const element = document.querySelector(target);
    for (const type of ["dragenter", "dragover", "drop"]) {
      element.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, composed: true, dataTransfer }));
    }
  }, selector);
}

/// Does `action` and saves the file that the browser then downloads: `{ name, path, bytes }`.
export async function download(page, action) {
  if (firefox() !== undefined) return savedByFirefox(action);
  const [started] = await Promise.all([page.waitForEvent("download"), action()]);
  const name = started.suggestedFilename();
  const file = path.join(scratch(), name);
  await started.saveAs(file);
  return { name, path: file, bytes: fs.readFileSync(file) };
}

// WebDriver BiDi tells nothing of a download of a Blob, so the file is waited for.
async function savedByFirefox(action) {
  fs.readdirSync(saved).forEach((name) => fs.rmSync(path.join(saved, name)));
  await action();
  for (let tries = 0; tries < 600; tries += 1) {
    const names = fs.readdirSync(saved);
    // (What Firefox writes into has another name before, and may be gone.)
    const bytes = (name) => fs.statSync(path.join(saved, name), { throwIfNoEntry: false })?.size ?? 0;
    const name = names.find((name) => !name.endsWith(".part") && bytes(name) > 0);
    if (name !== undefined && !names.some((name) => name.endsWith(".part"))) {
      const file = path.join(scratch(), name);
      try {
        fs.renameSync(path.join(saved, name), file);
      } catch (error) {
        if (error.code === "ENOENT") continue;
        throw error;
      }
      return { name, path: file, bytes: fs.readFileSync(file) };
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("Firefox saved no file");
}

/// Lets the page's scripts read the clipboard.
export async function allowClipboard(context) {
  if (firefox() === undefined) await context.grantPermissions(["clipboard-read", "clipboard-write"]);
}

/// The text that `press` makes the page copy. Read once, after the page's own write is done: Firefox refuses a read during which
/// the clipboard changes.
export async function copied(page, press) {
  await page.evaluate(() => {
    const { clipboard } = navigator;
    globalThis.textCopied = new Promise((resolve, reject) => {
      clipboard.writeText = (text) => {
        delete clipboard.writeText;
        const written = clipboard.writeText(text);
        written.then(resolve, reject);
        return written;
      };
    });
  });
  await press();
  await page.evaluate(() => globalThis.textCopied);
  return page.evaluate(() => navigator.clipboard.readText());
}

/// What an automatic check of accessibility (WCAG 2.2 A and AA) finds wrong, one line each.
export async function accessibilityFaults(page) {
  // The source has 1.5 MB: a page gets it once. Only faults are listed and sent: a selector for every element that is in
  // order, and all of them as JSON, take three quarters of the time.
  if (!await page.evaluate(() => "axe" in globalThis)) await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      resultTypes: ["violations"],
    });
    return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.target.join(" ")}`));
  });
}

/// Starts a worker in the page just as the app does (see web/src), and waits until its wasm runs. It also has `functions`, by name, as
/// source text: the policy binds what they do. Gives a function that calls one of them in it. (No debugger: Firefox has none for workers.)
export async function startWorker(page, functions = {}) {
  const source = Object.entries(functions).map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(",\n");
  await page.evaluate((functions) => {
    const { worker, workerWasm } = document.querySelector("script[data-worker]").dataset;
    const text = (name) => JSON.stringify(new URL(name, document.baseURI).href);
    const source = `const script=${text(worker)};` +
      "self.trustedTypes?.createPolicy('default',{createScriptURL:(url)=>url===script?url:null});" +
      `importScripts(script);const functions={${functions}};` +
      "self.addEventListener('message',({data})=>{if(data.test){data.port.start();Promise.resolve().then(()=>functions[data.test](data.value))" +
      ".then((said)=>data.port.postMessage({said}),(error)=>data.port.postMessage({failed:String(error)}));}});" +
      `wasm_bindgen({module_or_path:${text(workerWasm)}}).then(()=>postMessage("the wasm runs"),(error)=>setTimeout(()=>{throw error;}));`;
    globalThis.testWorker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    return new Promise((resolve, reject) => {
      globalThis.testWorker.addEventListener("message", ({ data }) => data === "the wasm runs" && resolve());
      globalThis.testWorker.addEventListener("error", ({ message }) => reject(new Error(`the worker: ${message}`)));
    });
  }, source);
  return (name, value) => page.evaluate(([name, value]) => new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => "failed" in data ? reject(new Error(data.failed)) : resolve(data.said);
    globalThis.testWorker.postMessage({ test: name, value, port: port2 }, [port2]);
  }), [name, value]);
}
