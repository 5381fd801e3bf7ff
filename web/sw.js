// Caches one complete build of the page for use without a network. `cargo xtask seal` fills in the two constants.
//
// File names contain a digest of the content, except index.html and assets/example.json.gz, so most copies are never
// stale. The page is fetched from the network first: a new deployment shows at once, and its files, which are not in this
// build's list, are not intercepted. The cached page is used only when the host does not answer or fails, and is deleted once no
// tab uses it. The example comes from the cached build until then.
//
// This script is started from a URL, so the page's Content-Security-Policy does not bind it. It requests only the page's
// own files and never receives a trace.
const BUILD = "__BUILD__";
const FILES = new Map(__FILES__); // path -> Subresource Integrity digest
const CACHE_PREFIX = `kinetoscope ${self.registration.scope} `;
const CACHE = CACHE_PREFIX + BUILD;
const NAVIGATION_TIMEOUT_MS = 3000;

// Some hosts redirect index.html to its folder, and a redirected response cannot be used as a page: request the folder.
const PAGE = self.registration.scope;
const keyOf = (path) => path === "index.html" ? PAGE : new URL(path, PAGE).href;
const KEYS = new Set([...FILES.keys()].map(keyOf));

// The digests ensure that files of two deployments are never cached as one build.
async function keepBuild() {
  const cache = await caches.open(CACHE);
  await cache.addAll([...FILES].map(([path, integrity]) => new Request(keyOf(path), { integrity, cache: "no-cache" })));
}

async function dropOtherBuilds() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(CACHE_PREFIX) && name !== CACHE).map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function page(request) {
  const kept = await caches.match(PAGE, { cacheName: CACHE });
  // The time limit is for the answer to begin: a slow body may take longer.
  const late = new AbortController();
  const timer = kept && setTimeout(() => late.abort(), NAVIGATION_TIMEOUT_MS);
  try {
    const answer = await fetch(request.url, { signal: late.signal, cache: "no-cache", redirect: "manual" });
    return kept && answer.status >= 500 ? kept : answer;
  } catch (error) {
    if (kept) return kept;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function asset(request) {
  return (await caches.match(request.url, { cacheName: CACHE, ignoreSearch: true })) ?? fetch(request);
}

self.addEventListener("install", (event) => event.waitUntil(keepBuild()));
self.addEventListener("activate", (event) => event.waitUntil(dropOtherBuilds()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  const url = new URL(request.url);
  const path = url.origin + url.pathname;
  if (request.mode === "navigate" && (path === PAGE || path === `${PAGE}index.html`)) {
    event.respondWith(page(request));
  } else if (KEYS.has(path)) {
    event.respondWith(asset(request));
  }
});
