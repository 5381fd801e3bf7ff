// An independent trace reader, written from the Trace Event Format and Perfetto's behaviour, without code of the product.
// The tests compare the product and Perfetto with it. Exact: times are nanoseconds as BigInt, from the decimal text.
import fs from "node:fs";
import zlib from "node:zlib";

/// The JSON text of a trace file. A gzip file that is cut short gives what is there; broken UTF-8 becomes U+FFFD.
export function textOf(file) {
  let bytes = fs.readFileSync(file);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    bytes = zlib.gunzipSync(bytes, { finishFlush: zlib.constants.Z_SYNC_FLUSH });
  }
  const text = bytes.toString("utf8");
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/// The events of a trace text, and the raw text of its other top-level members. Reads what a JSON reader would refuse:
/// missing ends, stray commas, several documents one after the other.
export function readTrace(text) {
  const reader = new Reader(text);
  const trace = { events: [], top: new Map() };
  try {
    while (reader.peek() !== undefined) readDocument(reader, trace);
  } catch (error) {
    if (!(error instanceof NoMore)) throw error;
  }
  return trace;
}

function readDocument(reader, trace) {
  if (reader.peek() === "[") {
    readEvents(reader, trace);
    return;
  }
  reader.take("{");
  for (const key of reader.keys("}")) {
    if (key === "traceEvents") readEvents(reader, trace);
    else trace.top.set(key, reader.raw());
  }
}

function readEvents(reader, trace) {
  reader.take("[");
  while (!reader.end("]")) {
    const event = {};
    if (reader.peek() !== "{") throw new NoMore();
    reader.take("{");
    for (const key of reader.keys("}")) event[key] = reader.raw();
    trace.events.push(decode(event));
  }
}

class NoMore extends Error {}

class Reader {
  constructor(text) { this.text = text; this.at = 0; }

  // Commas count as blanks: too many of them, and too few, are then no matter.
  peek() {
    const { text } = this;
    while (this.at < text.length && " \t\r\n,".includes(text[this.at])) this.at += 1;
    return text[this.at];
  }

  take(char) {
    if (this.peek() !== char) throw new NoMore();
    this.at += 1;
  }

  end(char) {
    const found = this.peek();
    if (found === undefined) throw new NoMore();
    if (found === char) this.at += 1;
    return found === char;
  }

  *keys(close) {
    while (!this.end(close)) {
      const key = unquote(this.raw());
      this.take(":");
      yield key;
    }
  }

  // The text of one value.
  raw() {
    const first = this.peek();
    const start = this.at;
    if (first === "\"") this.string();
    else if (first === "{" || first === "[") this.nested();
    else this.word();
    return this.text.slice(start, this.at);
  }

  string() {
    for (let quote = this.at; ;) {
      quote = this.text.indexOf("\"", quote + 1);
      if (quote < 0) throw new NoMore();
      let backslash = quote - 1;
      while (this.text[backslash] === "\\") backslash -= 1;
      if ((quote - backslash) % 2 === 1) {
        this.at = quote + 1;
        return;
      }
    }
  }

  nested() {
    let depth = 0;
    const interesting = /["{}[\]]/g;
    interesting.lastIndex = this.at;
    for (let match; (match = interesting.exec(this.text)) !== null;) {
      this.at = match.index;
      if (match[0] === "\"") {
        this.string();
        interesting.lastIndex = this.at;
        continue;
      }
      depth += match[0] === "{" || match[0] === "[" ? 1 : -1;
      if (depth === 0) {
        this.at += 1;
        return;
      }
    }
    throw new NoMore();
  }

  word() {
    const end = /[,}\]\s:]|$/g;
    end.lastIndex = this.at;
    const { index } = end.exec(this.text);
    if (index === this.at) throw new NoMore();
    this.at = index;
    // Cut off in the middle, as far as anyone can know.
    if (index === this.text.length) throw new NoMore();
  }
}

function unquote(raw) {
  try {
    return JSON.parse(raw);
  } catch {
    return raw.slice(1, -1);
  }
}

function decode(raw) {
  const string = (value) => value?.startsWith("\"") ? unquote(value) : undefined;
  return {
    ph: string(raw.ph), name: string(raw.name) ?? "", cat: string(raw.cat) ?? "", bp: string(raw.bp), scope: string(raw.s),
    id: raw.id, args: raw.args,
    ts: nanoseconds(raw.ts), dur: nanoseconds(raw.dur), hasDur: raw.dur !== undefined,
    bind: binding(raw),
    // As written: "7" and 7 are two threads.
    pid: raw.pid, tid: raw.tid,
  };
}

/// The flow that a slice is an end point of itself (`bind_id`), as the flow event that would say the same.
function binding({ bind_id: id, flow_in: flowIn, flow_out: flowOut }) {
  if (flowId(id) === undefined) return undefined;
  if (flowIn === "true" && flowOut === "true") return { ph: "t", id };
  if (flowIn !== "true" && flowOut !== "true") return undefined;
  return { ph: flowOut === "true" ? "s" : "f", id };
}

/// The nanoseconds of a number of microseconds; undefined if it is none. Digits below 1 ns are cut.
export function nanoseconds(raw) {
  const text = raw?.startsWith("\"") ? raw.slice(1, -1) : raw;
  const parts = /^([-+]?)(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?$/.exec(text ?? "");
  if (parts === null || parts[2] + parts[3] === "") return undefined;
  const [, sign, whole, fraction, exponent] = parts;
  const shift = 3 + Number(exponent ?? 0) - fraction.length;
  const digits = BigInt(whole + fraction);
  const value = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift);
  return sign === "-" ? -value : value;
}

/// How many slices Perfetto must show for these events: X, B and instant events with a valid time, and the asynchronous
/// ones, of which a start and an instant each make one.
export function countSlices(events) {
  const counted = { X: (event) => event.dur !== undefined && event.dur >= 0n };
  for (const ph of ["B", "i", "I", "R", "b", "n"]) counted[ph] = () => true;
  return events.filter((event) => event.ts !== undefined && event.ts >= 0n && counted[event.ph]?.(event)).length;
}

/// The end points of every arrow, `[source name, source ts, target name, target ts]`, as the flow events mean them
/// whatever Perfetto makes of them: each belongs to the slice of its thread that starts at its very nanosecond, the
/// shortest of these that begin before it, else to the innermost that is open. If its thread has none, it belongs to the
/// slice that starts at its very nanosecond on the thread of the same number in the other spelling (Kineto of 2021: slices
/// on "7", flow events on 7). Any other flow event lies in no slice and draws nothing; or, if `loose`, what Perfetto draws:
/// it belongs to the slice of its thread that began last, though that is over.
export function resolveFlows(events, { loose = false } = {}) {
  const threads = new Map();
  events.forEach((event, index) => {
    if (event.ts === undefined) return;
    const key = `${event.pid}\n${event.tid}`;
    if (!threads.has(key)) threads.set(key, []);
    threads.get(key).push({ event, index });
  });
  const bound = [];
  for (const [key, items] of threads) {
    const slices = slicesOf(items);
    for (const slice of slices.filter(({ bind }) => bind !== undefined)) {
      bound.push({ event: { ts: slice.start, ph: slice.bind.ph, id: slice.bind.id, cat: "bind_id", name: "bind_id" }, index: slice.index, slice });
    }
    let free = bindThread(items, slices, bound);
    const other = twin(key);
    if (free.length > 0 && other !== undefined && threads.has(other)) {
      const there = slicesOf(threads.get(other));
      const starts = new Set(there.map(({ start }) => start));
      bindThread(free.filter(({ event }) => starts.has(event.ts)), there, bound);
      free = free.filter(({ event }) => !starts.has(event.ts));
    }
    if (loose) {
      // (The end of a slice that was begun by itself takes it away at once.)
      const lasting = slices.filter(({ isBegun }) => !isBegun);
      for (const { event, index } of free) {
        const slice = innermost(lasting.filter(({ start }) => start <= event.ts));
        if (slice !== undefined) bound.push({ event, index, slice });
      }
    }
  }
  bound.sort((a, b) => compare(a.event.ts, b.event.ts) || a.index - b.index);
  return chain(bound);
}

// The key of the thread whose tid is the same number with quotes, or without.
function twin(key) {
  const parts = /^([^\n]*\n)(?:(-?\d+)|"(-?\d+)")$/.exec(key);
  if (parts === null) return undefined;
  const [, pid, plain, quoted] = parts;
  return plain !== undefined ? `${pid}"${plain}"` : `${pid}${quoted}`;
}

const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
const FLOW = new Set(["s", "t", "f"]);

/// Binds the flow events among the items of a thread to its slices; those that found none.
function bindThread(items, slices, bound) {
  const free = [];
  const flows = items.filter(({ event }) => FLOW.has(event.ph)).sort((a, b) => compare(a.event.ts, b.event.ts));
  let next = 0;
  let open = [];
  for (const { event, index } of flows) {
    while (next < slices.length && slices[next].start <= event.ts) open.push(slices[next++]);
    open = open.filter((slice) => slice.end > event.ts || slice.start === event.ts);
    const here = open.filter((slice) => slice.start === event.ts);
    // Profilers write a flow event behind its slice; and a complete slice with a length begins before all else of its ns.
    const before = here.filter((slice) => slice.goesFirst || slice.index < index);
    const instant = before.length > 0 ? undefined : here.find((slice) => slice.end === event.ts);
    const slice = instant ?? innermost([before, here, open].find((some) => some.length > 0) ?? []);
    if (slice !== undefined) bound.push({ event, index, slice });
    else free.push({ event, index });
  }
  return free;
}

// The latest start, and of equal ones the shortest, is the innermost.
function innermost(slices) {
  return slices.reduce((best, one) => best === undefined || isInside(one, best) ? one : best, undefined);
}

function isInside(one, other) {
  if (one.start !== other.start) return one.start > other.start;
  return one.end !== other.end ? one.end < other.end : one.index > other.index;
}

function slicesOf(items) {
  const slices = [];
  const begun = [];
  const sorted = items.slice().sort((a, b) =>
    compare(a.event.ts, b.event.ts) || (b.event.ph === "E") - (a.event.ph === "E") || a.index - b.index);
  for (const { event, index } of sorted) {
    const slice = { name: event.name, start: event.ts, index, bind: event.bind };
    if (event.ph === "X" && event.dur >= 0n) slices.push({ ...slice, end: event.ts + event.dur, goesFirst: event.dur > 0n });
    if (event.ph === "B") {
      // Never ended: open for good.
      slices.push(slice);
      slice.isBegun = true;
      slice.end = 1n << 62n;
      begun.push(slice);
    }
    if (event.ph === "E" && begun.length > 0) begun.pop().end = event.ts;
  }
  return slices;
}

// A key that is started again before it ended is another arrow with the same key: an end belongs to the oldest start
// that has none yet, else to the latest.
function chain(bound) {
  const started = new Map();
  const ends = [];
  for (const { event, slice } of bound.filter(({ event }) => flowId(event.id) !== undefined)) {
    const key = `${flowId(event.id)}\n${event.cat}\n${event.name}`;
    const arrows = started.get(key) ?? [];
    if (event.ph === "s") {
      started.set(key, [...arrows, { source: slice, ended: false }]);
      continue;
    }
    const arrow = arrows.find((one) => !one.ended) ?? arrows.at(-1);
    if (arrow === undefined) continue;
    ends.push([arrow.source, slice]);
    if (event.ph === "t") arrow.source = slice;
    else arrow.ended = true;
  }
  // Perfetto draws an arrow forwards in time whichever end was named first.
  return ends.map(([a, b]) => b.start < a.start ? [b, a] : [a, b])
    .map(([a, b]) => [a.name, String(a.start), b.name, String(b.start)]);
}

function flowId(raw) {
  if (raw === undefined) return undefined;
  if (!raw.startsWith("\"")) return /^-?\d+$/.test(raw) ? BigInt.asUintN(64, BigInt(raw)) : undefined;
  const parts = /^\s*([-+]?)(?:0x)?([0-9a-f]+)$/i.exec(unquote(raw));
  if (parts === null) return undefined;
  const value = BigInt(`0x${parts[2]}`);
  return BigInt.asUintN(64, parts[1] === "-" ? -value : value);
}

/// What is in one list and not in the other, each as often as it is; for messages, the first few.
export function difference(left, right) {
  const counts = new Map();
  for (const row of left) counts.set(row.join("\n"), (counts.get(row.join("\n")) ?? 0) + 1);
  for (const row of right) counts.set(row.join("\n"), (counts.get(row.join("\n")) ?? 0) - 1);
  const rows = [...counts].filter(([, count]) => count !== 0);
  return rows.map(([row, count]) => ({ row: row.split("\n"), [count > 0 ? "onlyLeft" : "onlyRight"]: Math.abs(count) }));
}
