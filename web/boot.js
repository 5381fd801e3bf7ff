// Starts the app. The page's Content-Security-Policy forbids an inline script.
// The file names are attributes of our script element in index.html.
const { js, wasm, ...scripts } = document.querySelector("script[data-wasm]").dataset;
const absolute = (name) => new URL(name, document.baseURI).href;

// What the app does not need to start is in scripts that are loaded when it first calls a function of theirs: late.js, chart.js.
// Calls of one script happen in their order. A button with `data-call` does nothing but call: "late reopen".
globalThis.late = (script, name, ...values) => import(absolute(scripts[script])).then((functions) => functions[name](...values))
  .catch((error) => { alert(`This did not work: ${error.message ?? error}. Reload the page if it is of an older build.`); });
addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-call]");
  if (button) globalThis.late(...button.dataset.call.split(" "), button);
});

/// How long the browser may take to begin reading a file that it saves. The data of a blob URL stays in use until it is revoked.
const KEEP_MS = 120_000;

// Has the browser save a blob under a name.
globalThis.save = (blob, name) => {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
};

// The policy allows no text as HTML or script; as the address of a script it allows the page's own files, and the workers
// that the page makes of them (browsers without Trusted Types have the rest of the policy).
globalThis.trustedTypes?.createPolicy("default", {
  createScriptURL: (url) => [document.baseURI, `blob:${location.origin}/`].some((own) => url.startsWith(own)) ? url : null,
});

try {
  const app = await import(absolute(js));
  await app.default({ module_or_path: absolute(wasm) });
} catch (error) {
  showFailure(error);
}

// Caches the page for use without a network. A failure affects only that, so it is said only where the page speaks of it.
if (document.querySelector("meta[name=build]").content !== "dev") {
  const none = () => { document.documentElement.dataset.copy = "none"; };
  try {
    const registration = await navigator.serviceWorker.register(absolute("sw.js"));
    // It stores the page's files while it is installed. Where an older one is there, so is its copy.
    registration.installing?.addEventListener("statechange", ({ target }) => target.state === "redundant" && !registration.active && none());
  } catch {
    none();
  }
}

function showFailure(error) {
  const card = document.createElement("section");
  card.id = "boot-error";
  card.className = "boot-error";
  card.setAttribute("role", "alert");
  const line = (tag, text) => card.appendChild(document.createElement(tag)).textContent = text;
  line("h1", "Kinetoscope could not start");
  line("p", "It needs Chrome 123, Firefox 120, Safari 17.5 or newer. If yours is newer, reload the page: "
    + "part of it may not have arrived.");
  line("pre", String(error));
  document.getElementById("app").replaceChildren(card);
}
