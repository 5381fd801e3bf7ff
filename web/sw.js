// Keeps one whole build of the page for use without a network. `cargo xtask seal` fills in the two constants.
//
// Every file but index.html is named by its content, so a kept copy can never be stale. The page itself is asked of the
// network first: a new deployment is seen at once, and its files, which this build does not know, pass through. This
// build's copy is used only when the network does not answer, and is dropped once no tab uses it any more.
const BUILD = "__BUILD__";
const FILES = new Map(__FILES__); // path -> Subresource Integrity digest
const CACHE_PREFIX = `kinetoscope ${self.registration.scope} `;
const CACHE = CACHE_PREFIX + BUILD;
const NAVIGATION_TIMEOUT_MS = 3000;

// Some hosts redirect index.html to its folder, and a redirected answer may not be shown as a page: ask for the folder.
const PAGE = self.registration.scope;
const keyOf = (path) => path === "index.html" ? PAGE : new URL(path, PAGE).href;
const KEYS = new Set([...FILES.keys()].map(keyOf));

// The digests make sure that files of two deployments are never kept as one build.
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
  const signal = kept ? AbortSignal.timeout(NAVIGATION_TIMEOUT_MS) : undefined;
  try {
    return await fetch(request.url, { signal, cache: "no-cache", redirect: "manual" });
  } catch (error) {
    if (kept) return kept;
    throw error;
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
