// What the page does besides showing files, loaded once it is there: it keeps opened files in the browser if a person wants that,
// takes files from the system where the page is installed, and looks for newer builds.
//
// The app calls these functions by `late` (boot.js), and hears of them by the function that it gives to `begin`.
//
// Kept files are copies in the origin's private file system: on this machine, in this browser. Each has a folder of its own,
// since files of several folders may share a name. An open file holds a lock of its folder's name, so that another tab
// neither offers nor opens what is in use here, nor removes it, unless a person clears all copies.
const FOLDER = "kinetoscope files";
/// Names the folders that this tab opens after it has loaded a newer build.
const RELOADED = "kinetoscope.reloaded";
/// How often an open page looks for a newer build.
const HOUR_MS = 3_600_000;
const SOON_MS = 100;
/// So long after a tab has let a copy go, it is known whether it is closed or only loaded anew.
const SETTLED_MS = 1_000;
/// A lock that every copying tab shares: a tab that removes all copies waits until the others have stopped.
const COPYING = `${FOLDER}: copying`;

/// What tabs of this page tell each other.
const tabs = new BroadcastChannel(FOLDER);

let hear = () => {};
let keeps = false;
/// The open files by their jobs: `{ file, id, copying, stop }`. `id` is the folder of the copy, once that is complete.
const open = new Map();
/// Copies of earlier visits by their folders, as long as they are not open.
let waiting = new Map();
/// Files that are copies, and their folders.
const copies = new WeakMap();
/// The folders that this tab holds, or waits for.
const holds = new Map();
let n_folders = 0;
/// How often every copy was removed.
let n_forgotten = 0;
/// What the app heard last of kept files.
let told = "0,0,0,0";

export async function begin(heard, on) {
  hear = heard;
  keeps = on;
  tabs.onmessage = async ({ data }) => {
    // Another tab has opened a copy, has made one, removes every one, or has switched the setting.
    waiting.delete(data.taken);
    if (data.copied !== undefined) offerOnceFree(data.copied);
    if (data.cleared) await forgotten();
    if (data.keeps !== undefined) {
      keeps = data.keeps;
      hear("keeps", [keeps]);
      await keepOpen();
    }
    tell();
  };
  globalThis.launchQueue?.setConsumer(({ files }) => launched(files));
  keepCurrentInView();
  await lookAtKept().catch(() => {});
  await watchBuilds();
}

/// On a narrow screen views and files are strips that scroll: the view that a link led to, and the file whose view is shown, stay
/// in the part that is seen.
function keepCurrentInView() {
  const show = ({ target }) => {
    const strip = target.closest(".nav, .file-cards");
    const isCurrent = target.hasAttribute("aria-current") || target.getAttribute("aria-pressed") === "true";
    if (!strip || !isCurrent) return;
    const [item, seen] = [target, strip].map((of) => of.getBoundingClientRect());
    if (item.left < seen.left || item.right > seen.right) strip.scrollLeft += item.left - seen.left - 8;
  };
  const changed = new MutationObserver((changes) => changes.forEach(show));
  changed.observe(document.body, { subtree: true, attributeFilter: ["aria-current", "aria-pressed"] });
}

/// A person wants files to be kept, or no longer. Then nothing stays.
export async function keep(on) {
  // (Heard from another tab.)
  if (on === keeps) return;
  keeps = on;
  tabs.postMessage({ keeps });
  if (!on) return clear();
  await keepOpen();
  tell();
}

async function keepOpen() {
  for (const entry of open.values()) {
    // (Switched off meanwhile.)
    if (!keeps) return;
    await copied(entry).catch(refused);
  }
}

/// The app has opened a file.
export async function opened(job, file) {
  const entry = { file, id: copies.get(file), stop: new AbortController() };
  open.set(job, entry);
  if (entry.id !== undefined) {
    hold(entry.id);
    waiting.delete(entry.id);
    tabs.postMessage({ taken: entry.id });
  } else if (keeps) {
    await copied(entry).catch(refused);
  }
  tell();
}

/// The app has closed a file: it is no part of the next visit.
export async function closed(job) {
  const entry = open.get(job);
  open.delete(job);
  entry?.stop.abort();
  // (One that is nearly complete ends all the same.)
  await entry?.copying?.catch(() => {});
  if (entry?.id !== undefined) await removed(entry.id);
  tell();
}

/// Opens the files of the last visit, but those that another tab has opened meanwhile.
export async function reopen() {
  const files = [];
  for (const [id, file] of waiting) {
    if (await hold(id, { ifAvailable: true })) {
      files.push(file);
    } else {
      waiting.delete(id);
      offerOnceFree(id);
    }
  }
  hear("files", files);
  tell();
}

/// Removes every copy, those of open files too.
export async function clear() {
  tabs.postMessage({ cleared: true });
  await forgotten();
  try {
    await locked(COPYING, "exclusive", async () => (await navigator.storage.getDirectory()).removeEntry(FOLDER, { recursive: true }));
  } catch (error) {
    if (error.name !== "NotFoundError" && navigator.storage) refused(error);
  }
  tell();
}

/// No file that is open now has a copy, or gets the one that is being made.
async function forgotten() {
  n_forgotten += 1;
  waiting = new Map();
  const entries = [...open.values()];
  for (const entry of entries) {
    entry.stop.abort();
    entry.stop = new AbortController();
  }
  await Promise.allSettled(entries.map((entry) => entry.copying));
  for (const entry of entries) entry.id = undefined;
}

/// Loads the newer build, and opens the open files again there.
export async function renew() {
  try {
    for (const entry of open.values()) await copied(entry);
  } catch (error) {
    refused(error, "The page was not reloaded, because the open files would be closed. ");
    for (const entry of keeps ? [] : open.values()) {
      if (entry.id === undefined || copies.has(entry.file)) continue;
      await removed(entry.id);
      entry.id = undefined;
    }
    return;
  }
  sessionStorage.setItem(RELOADED, JSON.stringify([...open.values()].map(({ id }) => id)));
  // The page asks before it is left with open files, but these are opened again. It has a moment to do without.
  hear("leaving", []);
  setTimeout(() => location.reload(), SOON_MS);
}

/// Tells how many files of the last visit can be opened again, and how much all copies take.
function tell() {
  const sum = (files) => files.reduce((bytes, { size }) => bytes + size, 0);
  const own = [...open.values()].filter(({ id }) => id !== undefined).map(({ file }) => file);
  const before = [...waiting.values()];
  const now = [before.length, sum(before), own.length + before.length, sum(own) + sum(before)];
  if (now.join() !== told) hear("kept", now);
  told = now.join();
}

function refused(error, before = "") {
  // A file that was closed while it was copied.
  if (error.name === "AbortError") return;
  const isFull = error.name === "QuotaExceededError";
  const hasNone = !navigator.storage || error.name === "SecurityError" || error instanceof TypeError;
  const why = isFull ? "The browser has no room left for it."
    : hasNone ? "This browser gives the page no private file system here." : "A file could not be copied or removed.";
  hear("failed", [isFull ? "The disk is full" : "Files cannot be kept", `${before}${why}`,
    "Nothing else changes: open files stay open. The setting is in “Keys and settings”.", String(error.message ?? error)]);
}

/// Where the copies are.
async function folders(create) {
  return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create });
}

/// Has a copy of a file, if it has none.
async function copied(entry) {
  if (entry.id !== undefined) return;
  const { signal } = entry.stop;
  entry.copying ??= locked(COPYING, "shared", () => copy(entry, signal)).finally(() => { entry.copying = undefined; });
  await entry.copying;
}

async function copy(entry, signal) {
  signal.throwIfAborted();
  n_folders += 1;
  // (Another tab may copy in the same moment.)
  const id = `${Date.now()}-${String(n_folders).padStart(5, "0")}-${crypto.randomUUID()}`;
  await hold(id);
  try {
    const folder = await (await folders(true)).getDirectoryHandle(id, { create: true });
    const handle = await folder.getFileHandle(entry.file.name, { create: true });
    // The file appears once it is complete.
    await entry.file.stream().pipeTo(await handle.createWritable(), { signal });
    signal.throwIfAborted();
    entry.id = id;
    tabs.postMessage({ copied: id });
  } catch (error) {
    await removed(id);
    throw error;
  }
}

async function removed(id) {
  await folders(false).then((of) => of.removeEntry(id, { recursive: true })).catch(() => {});
}

/// Holds a folder until the tab is closed. Resolves once other tabs can see that; with `ifAvailable`, to whether none of them holds it.
function hold(id, options = {}) {
  if (!holds.has(id)) holds.set(id, new Promise((held) => {
    if (!navigator.locks) return held(true);
    navigator.locks.request(lockOf(id), options, (lock) => {
      // (It may be free the next time.)
      if (lock === null) holds.delete(id);
      held(lock !== null);
      return lock && new Promise(() => {});
    });
  }));
  return holds.get(id);
}

/// Does something while the tab holds a lock.
const locked = (name, mode, act) => navigator.locks ? navigator.locks.request(name, { mode }, act) : act();

const lockOf = (id) => `${FOLDER} ${id}`;

/// Finds the copies of earlier visits. Without the setting there are some only after a reload, for the tab that was reloaded.
async function lookAtKept() {
  const reloaded = JSON.parse(sessionStorage.getItem(RELOADED) ?? "[]");
  sessionStorage.removeItem(RELOADED);
  for (const id of reloaded) hold(id);
  const root = await folders(false).catch(() => undefined);
  if (root === undefined) return;
  // Before the locks: another tab holds a folder before it makes it, so that one that is found in use by nobody is left over.
  const all = [];
  for await (const entry of root.entries()) all.push(entry);
  const inUse = new Set((await navigator.locks?.query())?.held.map(({ name }) => name));
  const found = [];
  for (const [id, folder] of all) {
    if (inUse.has(lockOf(id)) && !reloaded.includes(id)) {
      offerOnceFree(id);
      continue;
    }
    try {
      const file = await fileOf(folder);
      if (file && (keeps || reloaded.includes(id))) found.push([id, file]);
      else await removed(id);
    } catch {
      // (Another tab that starts has removed it.)
    }
  }
  found.sort(([a], [b]) => a < b ? -1 : 1);
  for (const [id, file] of found) offer(id, file);
  const again = found.filter(([id]) => reloaded.includes(id)).map(([, file]) => file);
  if (again.length > 0) hear("files", again);
  else tell();
}

/// The file that is in a folder, if its copy is complete.
async function fileOf(folder) {
  for await (const handle of folder.values()) {
    const file = await handle.getFile();
    if (file.size > 0) return file;
  }
  return undefined;
}

/// Offers a copy that another tab has open, once that tab is closed. (The locks of one that was just closed may outlive it for a moment.)
async function offerOnceFree(id) {
  try {
    for (;;) {
      await navigator.locks.request(lockOf(id), { mode: "shared" }, () => {});
      await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
      const before = n_forgotten;
      const file = await fileOf(await (await folders(false)).getDirectoryHandle(id));
      const { held } = await navigator.locks.query();
      if (held.some(({ name }) => name === lockOf(id))) continue;
      // (Its tab was closed while it made the copy.)
      if (file === undefined) await removed(id);
      else if (keeps && before === n_forgotten) offer(id, file);
      return tell();
    }
  } catch {
    // It is gone: the file was closed before its tab, or every copy was removed.
  }
}

/// Has a copy wait to be opened again.
function offer(id, file) {
  copies.set(file, id);
  waiting.set(id, file);
}

/// Files that the system opens with the installed page.
async function launched(handles) {
  const files = await Promise.all(handles.map((handle) => handle.getFile()));
  if (files.length > 0) hear("files", files);
}

/// Looks for a newer build whenever the page comes into view, and every hour. The page is then told once that build is complete.
async function watchBuilds() {
  const registration = await navigator.serviceWorker?.ready;
  if (registration === undefined) return;
  const look = () => registration.update().catch(() => {});
  registration.addEventListener("updatefound", () => {
    const { installing } = registration;
    installing.addEventListener("statechange", () => installing.state === "installed" && compareBuilds());
  });
  if (registration.waiting) await compareBuilds();
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && look());
  setInterval(look, HOUR_MS);
}

/// A page that was reloaded may be newer than its service worker, which waits until no tab uses it: builds are compared by name.
async function compareBuilds() {
  const own = document.querySelector("meta[name=build]").content;
  const text = await fetch(new URL("sw.js", document.baseURI), { cache: "no-cache" }).then((answer) => answer.text(), () => "");
  const [, newest] = /^const BUILD = "(.*)";$/m.exec(text) ?? [];
  if (newest !== undefined && newest !== own) hear("newer", []);
}
