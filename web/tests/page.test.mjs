// Properties of the page that do not depend on its content: policy, privacy, sub-paths, and use without a network.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { pageFolder, scratch } from "./environment.mjs";
import { accessibilityFaults, chromiumOnly, drop, launch, open, startWorker, started } from "./harness.mjs";
import { PATIENCE, id, until, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

test("the policy allows the page's own origin and nothing else", async () => {
  const html = fs.readFileSync(path.join(pageFolder(), "index.html"), "utf8");
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html);
  assert.ok(policy, "the page has a policy");
  const firstLoad = html.search(/<(link|script|style|img)\b/);
  assert.ok(policy.index < firstLoad, "the policy stands before everything that is loaded");
  const directives = new Map(policy[1].split(";").map((part) => part.trim().split(/\s+/)).map(([name, ...values]) => [name, values]));
  assert.deepEqual(directives.get("default-src"), ["'none'"]);
  assert.deepEqual(directives.get("require-trusted-types-for"), ["'script'"]);
  assert.deepEqual(directives.get("trusted-types"), ["default"]);
  const ofTypes = ["require-trusted-types-for", "trusted-types"];
  const allowed = new Set(["'none'", "'self'", "'wasm-unsafe-eval'", "blob:", "data:"]);
  for (const [name, values] of [...directives].filter(([name]) => !ofTypes.includes(name))) {
    for (const value of values) assert.ok(allowed.has(value), `${name} ${value}`);
  }
  assert.deepEqual(directives.get("script-src"), ["'self'", "'wasm-unsafe-eval'"]);
  assert.deepEqual(directives.get("connect-src"), ["'self'"]);
});

for (const prefix of ["/", "/a/b/"]) {
  test(`the page and its worker run from ${prefix}`, async () => {
    const session = await open(browser, { prefix });
    await startWorker(session.page);
    assert.ok(session.server.hits.every((hit) => hit.startsWith(prefix)), session.server.hits.join(" "));
    await session.close();
  });
}

// APIs of pages and workers that send a request to another origin, as source text. Each gets an address of another server. Their results are ignored (some report nothing
// when they are blocked); the test checks the requests that the server receives. Navigation (`location`, `window.open`,
// links) and WebRTC are missing, because the policy does not restrict them (docs/adr/0008-worker-from-a-blob.md).
const WAYS_OUT = {
  fetch: (url) => fetch(url, { method: "POST", mode: "no-cors", body: "a trace" }),
  xhr: (url) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    request.send("a trace");
  },
  webSocket: (url) => new WebSocket(url.replace("http", "ws")),
  // (Firefox reports no violation in a worker.)
  eventSource: (url) => new Promise((_, reject) => { new EventSource(url).onerror = reject; }),
};
const WAYS_OUT_OF_WORKERS = {
  importScripts: (url) => importScripts(url),
};
const WAYS_OUT_OF_PAGES = {
  beacon: (url) => navigator.sendBeacon(url, "a trace"),
  image: (url) => document.body.append(Object.assign(new Image(), { src: url })),
  script: (url) => document.body.append(Object.assign(document.createElement("script"), { src: url })),
  module: (url) => import(url),
  style: (url) => document.body.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: url })),
  // (Firefox reports no violation.)
  preload: (url) => new Promise((_, reject) => {
    document.body.append(Object.assign(document.createElement("link"), { rel: "preload", as: "image", href: url, onerror: reject }));
  }),
  frame: (url) => document.body.append(Object.assign(document.createElement("iframe"), { src: url })),
  object: (url) => document.body.append(Object.assign(document.createElement("object"), { data: url })),
  video: (url) => document.body.append(Object.assign(document.createElement("video"), { src: url })),
  font: (url) => new FontFace("foreign", `url(${url})`).load(),
  // Last: if it succeeds, the page navigates away.
  form: (url) => {
    const form = Object.assign(document.createElement("form"), { action: url, method: "post" });
    document.body.append(form);
    form.submit();
  },
};

// Source text that calls an API, and waits until the attempt is refused: an error, or a violation of the policy that names its
// address; of a frame, its origin.
const attempt = (way) => `(url) => new Promise((resolve) => {
  const blocked = [url, new URL(url).origin, url.replace("http", "ws")];
  self.addEventListener("securitypolicyviolation", (event) => blocked.includes(event.blockedURI) && resolve("violation"));
  Promise.resolve().then(() => (${way})(url)).catch(() => resolve("error"));
})`;
const attempts = (ways) => Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, attempt(way)]));

// Tries each API until the attempt is refused or its request arrives. `call(name, url)` does it.
async function tryAll(ways, foreign, call) {
  for (const name of Object.keys(ways)) {
    const refused = call(name, `${foreign.origin}/${name}`).catch(() => "the page has navigated away");
    await Promise.race([refused, arrives(foreign, name)]);
  }
}

// The same in a page, by the debugger, which the policy does not bind; what the text does is bound.
const inPage = (page, ways) => (name, url) => page.evaluate(`(${attempt(ways[name])})(${JSON.stringify(url)})`);

async function arrives(foreign, name) {
  const deadline = Date.now() + 20_000;
  while (!foreign.hits.some((hit) => hit.endsWith(`/${name}`))) {
    if (Date.now() > deadline) throw new Error(`${name} was neither refused nor did its request arrive`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("no byte leaves from the page", async () => {
  const session = await open(browser);
  const ways = { ...WAYS_OUT, ...WAYS_OUT_OF_PAGES };
  await tryAll(ways, session.foreign, inPage(session.page, ways));
  assert.deepEqual(session.foreign.hits, []);
  assert.ok(session.page.url().startsWith(session.server.url), "the page is still there");
  await session.close({ clean: false });
});

test("no byte leaves from the worker", async () => {
  const session = await open(browser);
  const ways = { ...WAYS_OUT, ...WAYS_OUT_OF_WORKERS };
  await tryAll(ways, session.foreign, await startWorker(session.page, attempts(ways)));
  assert.deepEqual(session.foreign.hits, []);
  await session.close({ clean: false });
});

chromiumOnly("no byte leaves from the worker that the app starts", async () => {
  const session = await open(browser, { prefix: "/a/b/" });
  const appeared = session.page.waitForEvent("worker");
  const file = { name: "one.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(TRACE)) };
  await session.page.locator("input[type=file]").first().setInputFiles(file);
  const ways = { ...WAYS_OUT, ...WAYS_OUT_OF_WORKERS };
  await tryAll(ways, session.foreign, inPage(await appeared, ways));
  assert.deepEqual(session.foreign.hits, []);
  await session.close({ clean: false });
});

const TRACE = { traceEvents: [{ ph: "X", cat: "kernel", name: "k", pid: 0, tid: 7, ts: 1, dur: 2, args: { stream: 7 } }] };
const BLOCK = { address: 4096, size: 1024, requested_size: 1000, state: "active_allocated", frames: [] };
const SNAPSHOT = {
  segments: [{ device: 0, address: 4096, total_size: 1024, allocated_size: 1024, active_size: 1024, stream: 0, segment_type: "small", blocks: [BLOCK] }],
  device_traces: [[
    { action: "segment_alloc", addr: 4096, size: 1024, stream: 0, time_us: 1, frames: [] },
    { action: "alloc", addr: 4096, size: 1000, stream: 0, time_us: 2, frames: [] },
  ]],
};

function written(name, content) {
  const file = path.join(scratch(), name);
  fs.writeFileSync(file, JSON.stringify(content));
  return file;
}

// The programs that are loaded later are workers of their own.
for (const [what, content, looks, programs] of [
  ["memory snapshot", SNAPSHOT, (page) => id(page, "view-snapshot").waitFor(PATIENCE), ["snapshot-"]],
  ["trace", TRACE, (page) => view(page, "timeline"), ["triage-", "lanes-"]],
]) {
  chromiumOnly(`no byte leaves from the programs that a ${what} starts`, async () => {
    const session = await open(browser, { prefix: "/a/b/" });
    const { page, foreign } = session;
    const workers = [];
    page.on("worker", (worker) => workers.push(worker));
    await drop(page, "body", [written("a.json", content)]);
    await looks(page);
    for (const program of programs) {
      // (A worker names its script; one that has ended answers nothing.)
      const scriptOf = (worker) => worker.evaluate("script").catch(() => "");
      const found = async () => {
        for (const worker of workers) if ((await scriptOf(worker)).includes(`/${program}`)) return worker;
        return undefined;
      };
      let worker;
      await until(async () => {
        worker = await found();
        return worker !== undefined;
      }, `${program} is started`);
      const ways = { ...WAYS_OUT, ...WAYS_OUT_OF_WORKERS };
      await tryAll(ways, foreign, inPage(worker, ways));
      assert.deepEqual(foreign.hits, [], program);
    }
    await session.close({ clean: false });
  });
}

test("text is neither HTML nor the address of a foreign script", async () => {
  const session = await open(browser);
  const tried = await session.page.evaluate((foreign) => {
    const refused = (act) => {
      try {
        act();
        return false;
      } catch {
        return true;
      }
    };
    return {
      html: refused(() => { document.body.innerHTML = "<p>text</p>"; }),
      script: refused(() => { document.createElement("script").src = foreign; }),
      worker: refused(() => new Worker(foreign)),
      own: refused(() => { document.createElement("script").src = new URL("boot.js", document.baseURI).href; }),
    };
  }, `${session.foreign.origin}/script.js`);
  assert.deepEqual(tried, { html: true, script: true, worker: true, own: false });
  await session.close({ clean: false });
});

test("the probes work: without the policy every one of them gets out", async () => {
  const folder = scratch();
  fs.cpSync(pageFolder(), folder, { recursive: true });
  const file = path.join(folder, "index.html");
  fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, ""));
  const session = await open(browser, { folder });
  const heard = (ways) => Object.keys(ways).filter((name) => session.foreign.hits.some((hit) => hit.endsWith(`/${name}`)));

  const ofWorkers = { ...WAYS_OUT, ...WAYS_OUT_OF_WORKERS };
  await tryAll(ofWorkers, session.foreign, await startWorker(session.page, attempts(ofWorkers)));
  assert.deepEqual(heard(ofWorkers), Object.keys(ofWorkers), "from the worker");

  session.foreign.hits.length = 0;
  const ofPages = { ...WAYS_OUT, ...WAYS_OUT_OF_PAGES };
  await tryAll(ofPages, session.foreign, inPage(session.page, ofPages));
  assert.deepEqual(heard(ofPages), Object.keys(ofPages), "from the page");
  await session.close({ clean: false });
});

// What the README names as not covered: the day a browser refuses one of these, the README can say so.
test("the policy holds neither navigation nor windows", async () => {
  const elsewhere = {
    window: (url) => void window.open(url),
    link: (url) => Object.assign(document.createElement("a"), { href: url, target: "_blank" }).click(),
    // Last: the page is gone then.
    location: (url) => { location.href = url; },
  };
  const session = await open(browser);
  const { page, foreign } = session;
  for (const [name, way] of Object.entries(elsewhere)) {
    await page.evaluate(`(${way})(${JSON.stringify(`${foreign.origin}/${name}`)})`).catch(() => {});
    await arrives(foreign, name);
  }
  await session.close({ clean: false });
});

chromiumOnly("the policy does not hold the service worker", async () => {
  const session = await open(browser);
  const { page, context, foreign } = session;
  await page.evaluate(() => navigator.serviceWorker.ready);
  const [worker] = context.serviceWorkers();
  const tried = worker.evaluate((url) => fetch(url, { mode: "no-cors" }).then(() => {}, () => {}), `${foreign.origin}/worker`);
  await arrives(foreign, "worker");
  await tried;
  await session.close({ clean: false });
});

test("after one visit the page works without a network, and a new deployment is seen at once", async () => {
  const session = await open(browser, { prefix: "/a/b/" });
  const { page, server } = session;
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (navigator.serviceWorker.controller === null) {
      await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
    }
  });

  const next = scratch();
  fs.cpSync(pageFolder(), next, { recursive: true });
  const file = path.join(next, "index.html");
  fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace(/name="build" content="[^"]*"/, 'name="build" content="next"'));
  server.folder = next;
  await page.reload();
  await started(page);
  assert.equal(await page.locator("meta[name=build]").getAttribute("content"), "next");

  server.folder = pageFolder();
  server.fails = true;
  await page.reload();
  await started(page);
  assert.notEqual(await page.locator("meta[name=build]").getAttribute("content"), "next", "the cached page is used");
  server.fails = false;

  // (As without a network: a browser that is only told to be offline may refuse workers, too.)
  await server.close();
  await page.reload();
  await started(page);
  await startWorker(page);
  // Programs that nobody has used yet are there, too.
  await drop(page, "body", [written("offline.json", SNAPSHOT)]);
  await id(page, "view-snapshot").waitFor(PATIENCE);
  await page.waitForFunction(() => document.querySelector("[data-testid=chapter-moment] p")?.textContent.startsWith("Before event"), null, PATIENCE);
  await session.close();
});

test("where the browser keeps no copy of the page, it says so", async () => {
  const session = await open(browser);
  const { page } = session;
  const said = page.getByTestId("no-copy");
  await page.getByTestId("privacy").click();
  await said.waitFor({ state: "hidden" });
  await page.addInitScript(() => {
    ServiceWorkerContainer.prototype.register = () => Promise.reject(new Error("refused"));
  });
  await page.reload();
  await started(page);
  await page.getByTestId("privacy").click();
  await said.waitFor();
  await session.close();
});

test("the empty page has no fault of accessibility that a machine can find, light or dark, wide or narrow", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
      const session = await open(browser, { colorScheme, viewport: { width, height: 800 } });
      assert.deepEqual(await accessibilityFaults(session.page), [], `${colorScheme}, ${width} px`);
      const overflow = await session.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(overflow <= 0, `the page is ${overflow} px wider than ${width} px`);
      await session.close();
    }
  }
});
