// Saves what is drawn on the page as pictures. Loaded when a person first asks for one.
//
// A chart is saved as it is seen, with its title and its legend, in the colours of the theme. It is an element with `data-chart`, the name of its picture. Its shapes are SVG already; the text around them is HTML, and
// becomes SVG text where it stands.
const NS = "http://www.w3.org/2000/svg";
/// What stylesheets set on shapes and texts; a picture has no stylesheet.
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity",
  "font-size", "font-weight", "text-anchor", "dominant-baseline", "letter-spacing"];
const MARGIN = 16;
/// Pixels of a PNG for each of the page.
const SCALE = 2;

/// Saves the chart around a button as a file of `kind` ("png" or "svg"), whose name begins with that of the trace.
export async function save(kind, button) {
  const chart = button.closest("[data-chart]");
  // (The title of the page is "view · file · Kinetoscope".)
  const trace = document.title.split(" · ").slice(1, -1).join(" · ");
  const picture = drawn(chart);
  const text = new XMLSerializer().serializeToString(picture);
  const name = `${trace.replace(/(\.json)?(\.gz)?$/, "")}-${chart.dataset.chart}.${kind}`;
  if (kind === "svg") saveText(text, name);
  else globalThis.save(await painted(picture, text), name);
}

/// Saves the canvases of an element, one on the other, as a PNG.
export async function saveCanvases(element, name) {
  const layers = [...element.querySelectorAll("canvas")];
  const [{ width, height }] = layers;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  for (const layer of layers) context.drawImage(layer, 0, 0);
  globalThis.save(await blobOf(canvas), name);
}

/// Saves an SVG.
export function saveText(text, name) {
  globalThis.save(new Blob([text], { type: "image/svg+xml" }), name);
}

const blobOf = (canvas) => new Promise((resolve) => canvas.toBlob(resolve));

/// The chart as one SVG.
function drawn(chart) {
  const { left, top } = chart.getBoundingClientRect();
  const root = document.createElementNS(NS, "svg");
  const style = getComputedStyle(chart);
  const size = { left, top, right: left, bottom: top };
  parts(chart, root, size);
  titled(chart, root, size);
  const [x, y] = [size.left - MARGIN, size.top - MARGIN];
  const [width, height] = [size.right - x + MARGIN, size.bottom - y + MARGIN].map(Math.ceil);
  set(root, { width, height, viewBox: `${x} ${y} ${width} ${height}`, "font-family": style.fontFamily });
  const ground = set(document.createElementNS(NS, "rect"), { x, y, width, height, fill: groundOf(chart) });
  root.prepend(definitions(root), ground);
  return root;
}

/// A chart whose title is not in it is named by what it says to a screen reader: "Share of GPU time: ...".
function titled(chart, picture, size) {
  const [title] = chart.querySelector("svg[role=img]")?.getAttribute("aria-label")?.split(":") ?? [];
  if (title === undefined || chart.querySelector("figcaption, h2") !== null) return;
  const style = getComputedStyle(chart);
  const text = document.createElementNS(NS, "text");
  text.textContent = title;
  picture.append(set(text, { x: size.left, y: size.top - MARGIN / 2, fill: style.color, "font-size": style.fontSize, "font-weight": 600 }));
  size.top -= 1.5 * MARGIN;
}

/// Adds what an element has to a picture, and what room that takes to `size`.
function parts(element, picture, size) {
  for (const node of element.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) {
      lines(node, picture, size);
    } else if (node.localName === "svg") {
      const { left, top, right, bottom, width, height } = node.getBoundingClientRect();
      if (width === 0) continue;
      const shapes = styled(node);
      picture.append(set(shapes, { x: left, y: top, width, height }));
      grow(size, { right, bottom });
    } else if (node.nodeType === Node.ELEMENT_NODE && !node.matches(".chart-tools, .visually-hidden, button:not(.legend *), details, table")) {
      parts(node, picture, size);
    }
  }
}

/// The lines of a text where they stand.
function lines(node, picture, size) {
  const style = getComputedStyle(node.parentElement);
  const range = document.createRange();
  let line = null;
  for (const { index, 0: word } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const { left, top, right, bottom, width } = range.getBoundingClientRect();
    if (width === 0) continue;
    if (line === null || line.top !== top) {
      line = { top, text: document.createElementNS(NS, "text") };
      const y = top + ascent(style);
      picture.append(set(line.text, { x: left, y, fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight }));
    }
    line.text.textContent += (line.text.textContent === "" ? "" : " ") + word;
    grow(size, { right, bottom });
  }
}

function grow(size, { right, bottom }) {
  size.right = Math.max(size.right, right);
  size.bottom = Math.max(size.bottom, bottom);
}

/// px from the top of a line of text to its base.
function ascent({ fontWeight, fontSize, fontFamily }) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  return context.measureText("x").fontBoundingBoxAscent;
}

/// A copy of a shape with everything in it, that needs no stylesheet.
function styled(shape) {
  const copy = shape.cloneNode(false);
  for (const { name } of [...copy.attributes]) {
    if (/^(class|id|role|tabindex|data-.*|aria-.*|focusable)$/.test(name)) copy.removeAttribute(name);
  }
  const style = getComputedStyle(shape);
  for (const name of STYLES) {
    const value = style.getPropertyValue(name).replaceAll('"', "");
    if (value !== "" && shape.localName !== "svg" && shape.localName !== "title") copy.setAttribute(name, value);
  }
  if (shape.id.startsWith("hatch")) copy.id = shape.id;
  for (const child of shape.childNodes) {
    const isShown = child.nodeType === Node.TEXT_NODE || child.localName === "title" || getComputedStyle(child).display !== "none";
    if (isShown) copy.append(child.nodeType === Node.TEXT_NODE ? child.cloneNode() : styled(child));
  }
  return copy;
}

/// The hatches that shapes of a picture refer to; on the page they are of all charts.
function definitions(picture) {
  const names = new Set();
  for (const shape of picture.querySelectorAll("[fill^=url]")) names.add(/#([\w-]+)/.exec(shape.getAttribute("fill"))?.[1]);
  const all = document.createElementNS(NS, "defs");
  const hatches = [...names].map((name) => document.getElementById(name)).filter((hatch) => hatch !== null);
  all.append(...hatches.map(styled));
  return all;
}

/// What the page has below the chart.
function groundOf(element) {
  for (let at = element; at !== null; at = at.parentElement) {
    const { backgroundColor } = getComputedStyle(at);
    if (!/^(transparent|rgba\(.*, 0\))$/.test(backgroundColor)) return backgroundColor;
  }
  return "Canvas";
}

function set(element, values) {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
  return element;
}

/// A picture as a PNG.
async function painted(picture, text) {
  const image = new Image();
  // (The page's policy allows an image as text, and none of a Blob.)
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.getAttribute("width") * SCALE;
  canvas.height = picture.getAttribute("height") * SCALE;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return blobOf(canvas);
}
