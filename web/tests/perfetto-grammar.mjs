// Random traces for the importer model: small, and wrong in the ways that files are wrong. A seed names a trace for ever.

// A small generator (mulberry32).
export function random(seed) {
  let state = Math.imul(seed, 0x9e3779b9);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  return { chance: (p) => next() < p, below, between: (a, b) => a + below(b - a + 1), pick: (list) => list[below(list.length)] };
}

// Whole us, small times with decimals, Kineto's own base, absolute us since 1970, and just below 2^42 us.
const BASES = [null, 100n, 4909733314358n, 1712195495406752n, 4398046511000n];

// Raw JSON values, by what they are the value of. `undefined` leaves the member out.
const TIDS = ["1", "2", "7", "10", "0", "-1", "4294967306", "4294967295", "7.5", "-0.5", "1e1", "1e3", '"7"', '"w"', '""', "null", "true", "18446744073709551617", "99999999999999999999", "{}", undefined];
const PIDS = ["1", "2", "10", "0", "-3", "4294967306", '"10"', '"Spans"', '""', "null", "1.0", undefined];
const NAMES = ['"a"', '"b"', '"c"', '"[No name]"', '""', "null", "5", undefined];
const CATEGORIES = ['"q"', '"r"', '""', "null", "7", undefined];
const ODD_TIMES = ['"12"', '"12.5"', '"1e1"', "1e1", "1.5e1", "12.0005", "1.23456789012345678901234", "-4.5", "-1", "0", "null", '"abc"', '""', '"+5"', '"5."', '".5"', '"007"', '" 5"', '"5 "', '"-2"', '"1e400"', "true", "[]", "1e20", "9223372036854775807", "9223372036854775", "12345678901234567890", "1e-3", "12E0", undefined];
const ODD_DURS = ['"2"', '"2.5"', "1e0", "2.5e0", "0.0005", "-1", "-0.5", "1e15", "9007199254740993", "1e-3", undefined];
const STOPPING = ["null", '"x"', '""', "true", "[]", '"+5"', '".5"', '"5."', "{}"];
const IDS = ["1", "2", "3", '"1"', '"0x2"', '"3"', '"zz"', '""', "1.5", "1e0", "null", "-1", '"-1"', "18446744073709551615", '" 2"', '"2 "', "true", undefined];
const FLAGS = ["true", "true", "true", "false", "null", '"true"', "1", undefined];
const PHASES = ["T", "T", "P", "N", "O", "D", "Q", "F", "p", "v", "c", "S", "XX", "Ex", "Bq"];
const COUNTERS = [undefined, "{}", '{"v":1}', '{"v":1.5,"w":2}', '{"v":"1"}', '{"v":"x"}', '{"v":null}', '{"v":[1],"w":{}}', '{"v":"inf"}', '{"v":"0x10"}', '{"v":true,"w":"y"}', '{"v":"1e5"}', '{"v":""}', "[1]", '{"v":" 5"}', '{"v":"5 "}', '{"v":"+5","w":".5"}', '{"v":"1e400"}', '{"v":"nan"}', '{"v":"x","v":1}', "null", "5"];
const SORT_INDEXES = ["7", '"7"', "1e3", "1.5", "null", '"x"', "-1", "[]", '"1e3"', '"-2.5"', "99999999999999999999", "true", undefined];
const META_NAMES = ['"t"', '"t2"', '""', "5", "null", "{}", undefined];
const SCOPES = ['"t"', '"p"', '"g"', '""', '"x"', "null", "5", undefined];
const ID2S = ['{"local":"0x1"}', '{"global":1}', "{}", '{"local":null}', '{"local":1.5,"global":"a"}', "5", '{"other":1}'];
const ARGS = [undefined, "{}", '{"k":1}', '{"External id":3,"correlation":3}', '{"k":[1,{"a":null}]}', '{"k":"}{"}', "null", "[1]", '"x"', "5"];

// What a trace of a seed may hold beside complete slices; each seed has a few.
const KINDS = ["begins", "begins", "flows", "flows2", "instants", "counters", "metadata", "async", "phases", "odd", "threads", "times", "outlier", "twice", "stop"];

export function trace(seed) {
  const r = random(seed);
  const base = BASES[seed % BASES.length];
  const has = new Set();
  for (let n = r.between(1, 5); n > 0; n -= 1) has.add(r.pick(KINDS));
  if (has.has("stop") && r.chance(0.7)) has.delete("stop");
  const us = (n, from) => from === null ? String(n) : `${n < 0 ? "-" : ""}${from + BigInt(Math.floor(Math.abs(n) / 1000))}.${String(Math.abs(n) % 1000).padStart(3, "0")}`;
  const span = r.pick([6, 12, 30, 400, 4000]);
  const events = [];
  const odd = (p) => has.has("odd") && r.chance(p);
  const thread = () => {
    const wild = has.has("threads") && r.chance(0.3);
    return { pid: wild ? r.pick(PIDS) : r.pick(["1", "1", "2"]), tid: wild ? r.pick(TIDS) : r.pick(["7", "7", "8"]) };
  };
  const ts = (n) => {
    if (has.has("times") && r.chance(0.06)) return r.pick(ODD_TIMES);
    if (has.has("outlier") && r.chance(0.04)) return r.pick(["0", "-4.5", "1", "151.411", "0.001", "9000000000000000"]);
    return us(n, base);
  };
  const dur = (n) => {
    if (has.has("stop") && r.chance(0.02)) return r.pick(STOPPING);
    if (has.has("times") && r.chance(0.06)) return r.pick(ODD_DURS);
    return us(n, base === null ? null : 0n);
  };
  const push = (members) => {
    const list = Object.entries(members).filter(([, value]) => value !== undefined);
    if (odd(0.1)) list.push(["args", r.pick(ARGS)]);
    if (odd(0.03)) list.push([r.pick(["tts", "tdur"]), r.pick(["5", '"5"', "1.5", ...(has.has("stop") ? ["null"] : [])])]);
    if (odd(0.03)) list.push(["foo", r.pick(["true", "null", "-0", "1e5", '[1,{"a":"}"}]', '"\\u00e9\\n"', '"\\q"'])]);
    if (has.has("twice") && r.chance(0.1)) {
      const [key, value] = r.pick(list.filter(([key]) => key !== "dur" && key !== "args"));
      list.push([key, r.pick([value, "null", '"7"', "5"])]);
    }
    if (odd(0.03)) list.reverse();
    events.push(`{${list.filter(([, value]) => value !== undefined).map(([key, value]) => `"${key}":${value}`).join(",")}}`);
  };
  const id = () => r.chance(0.6) ? r.pick(["1", "2", "3"]) : r.pick(IDS);
  const v2 = () => has.has("flows2") && r.chance(0.4)
    ? { bind_id: id(), flow_out: r.chance(0.5) ? r.pick(FLAGS) : undefined, flow_in: r.chance(0.5) ? r.pick(FLAGS) : undefined } : {};
  const makers = {
    X: (at) => push({ ph: '"X"', name: odd(0.1) ? r.pick(NAMES) : r.pick(['"a"', '"b"']), cat: odd(0.1) ? r.pick(CATEGORIES) : r.pick(['"kernel"', '"cpu_op"', '"user_annotation"']), ...thread(), ts: ts(at), dur: dur(r.pick([0, 1, 2, 3, 5, 8, r.below(span + 1)])), ...v2() }),
    begins: (at) => {
      const on = r.chance(0.8) ? { pid: "1", tid: "7" } : thread();
      const name = () => r.pick([...NAMES, '"a"', '"b"']);
      const cat = () => r.chance(0.3) ? r.pick(CATEGORIES) : undefined;
      if (r.chance(0.6)) push({ ph: '"B"', name: name(), cat: cat(), ...on, ts: ts(at), ...v2() });
      if (r.chance(0.6)) push({ ph: '"E"', name: name(), cat: cat(), ...on, ts: ts(r.chance(0.2) ? at : at + r.below(span)) });
    },
    flows: (at) => push({ ph: r.pick(['"s"', '"s"', '"t"', '"f"', '"f"']), id: id(), name: r.pick(['"f"', '"f"', '"g"', "null", "5", undefined]), cat: r.pick(['"f"', '"f"', '""', undefined]), ...thread(), ts: ts(at), bp: r.chance(0.5) ? '"e"' : r.pick(['"x"', "true", undefined]), bind_id: r.chance(0.05) ? id() : undefined }),
    flows2: (at) => makers.X(at),
    instants: (at) => push({ ph: r.pick(['"i"', '"I"', '"R"']), name: r.pick(NAMES), s: r.pick(SCOPES), ...(r.chance(0.3) ? { pid: r.pick(PIDS), tid: r.pick(TIDS) } : thread()), ts: ts(at), ...v2() }),
    counters: (at) => push({ ph: '"C"', name: r.pick(NAMES), id: r.chance(0.2) ? id() : undefined, ...thread(), ts: ts(at), args: r.pick(COUNTERS) }),
    metadata: (at) => {
      const name = r.pick(["thread_name", "process_name", "thread_sort_index", "process_sort_index", "process_labels", "other"]);
      const args = name.endsWith("index") ? r.pick(SORT_INDEXES) : r.pick(META_NAMES);
      const key = name.endsWith("index") ? "sort_index" : name === "process_labels" ? "labels" : "name";
      const text = args === undefined ? r.pick([undefined, "{}", "null", '{"x":1}']) : r.chance(0.1) ? `{"${key}":${args},"${key}":${r.pick(SORT_INDEXES) ?? 1}}` : `{"${key}":${args}}`;
      push({ ph: '"M"', name: `"${name}"`, ...thread(), ts: r.pick([undefined, "0", us(at, base), "-5", "null", '"x"']), args: text });
    },
    async: (at) => push({ ph: r.pick(['"b"', '"b"', '"n"', '"e"', '"e"']), name: r.pick(NAMES), cat: r.pick(CATEGORIES), ...thread(), ...(r.chance(0.15) ? { pid: r.pick(PIDS) } : {}), ts: ts(at), id: r.chance(0.8) ? id() : undefined, id2: r.chance(0.3) ? r.pick(ID2S) : undefined, ...v2() }),
    phases: (at) => push({ ph: r.chance(0.15) ? r.pick(["null", "5", '""', undefined]) : `"${r.pick(PHASES)}"`, name: r.pick(NAMES), ...thread(), ts: ts(at), dur: r.chance(0.4) ? dur(3) : undefined, id: r.chance(0.2) ? r.pick(["1", '"a"', '"zz"']) : undefined, args: r.pick([undefined, '{"a":1}', '{"cpu":1}', "{}"]) }),
  };
  const kinds = [...has].filter((kind) => kind in makers);
  for (let n = r.pick([3, 8, 20, 50]); n > 0; n -= 1) {
    makers[kinds.length > 0 && r.chance(0.55) ? r.pick(kinds) : r.chance(0.97) || !has.has("begins") ? "X" : "begins"](r.below(span + 1));
  }
  if (r.chance(0.5)) {
    for (let n = events.length - 1; n > 0; n -= 1) {
      const other = r.below(n + 1);
      [events[n], events[other]] = [events[other], events[n]];
    }
  }
  return contained(r, events, seed);
}

// Some seeds have no complete slice at all: the importer sorts such a file in another way.
export function traceOf(seed) {
  const text = trace(seed);
  return seed % 7 === 0 ? text.replaceAll('"ph":"X"', () => '"ph":"B"') : text;
}

const TOPS = ['"schemaVersion":1', '"deviceProperties":[{"id":0,"name":"{"}]', '"displayTimeUnit":"ms"', '"displayTimeUnit":5', '"baseTimeNanoseconds":1712000000000000000', '"other":"a\\u00e9,]"', '"x":null', '"x":NaN', '"x":-1.5e3', '"x":"a\nb"', '"x":"\\ud83d"', '"x":{"traceEvents":[1]}', '"systemTraceEvents":5', '"x":[1,2}', '"x":"\\q"', '"traceEvents":[]', '"a":"\u007f"'];
const BETWEEN = ["null", "5", '"text"', "/* c */", "[]", "true", "{}", "{}", "NaN", "[{}]"];
const TEXTS = [
  ['"name":"a"', '"name":"\\ud83d\\ude00"'], ['"name":"a"', '"name":"\\ud83dx"'], ['"name":"a"', '"name":"a\tb\u0001"'], ['"name":"a"', '"name":"C:\\q"'],
  ['"name":"a"', '"name":"a","args":{"k":"\\ud83d","later":1}'], ['"name":"a"', '"name":"a","args":{"k":NaN,"later":1}'], ['"name":"a"', '"name":"a","w":NaN'],
  ['"name":"a"', '"name":"a","w":01'], ['"name":"a"', '"name":"a","w":1e400'], ['"name":"a"', '"name":"a","args":{"w":1e400,"x":1}'], ['"name":"a"', '"name":"a" "w":1'],
  ['"name":"a"', '"name":"a",,"w":1'], ['"name":"a"', '"name":"a",'], ['"name":"a"', '"name":"a","args":{"k":[1,2},"l":1]}'], ['"name":"a"', '"\\ud83d":1,"name":"a"'],
  ['"name":"a"', '"name":"a","args":{"\\ud83d":1,"l":2}'], ['"name":"a"', '"name":"a","w":+5'], ['"name":"a"', '"name":"a","w":.5'], ['"name":"a"', '"name":"\\u12"'],
  ['"name":"a"', '"name":"a","id2":{"local":NaN}'], ['"name":"a"', '"n\\u0061me":"a"'], ['"name":"a"', '"name":"a","w":tru'],
];

// The document around the events: sound, or damaged in one or two places.
function contained(r, events, seed) {
  const damage = r.chance(0.35);
  const list = [...events];
  if (damage && r.chance(0.3) && list.length > 0) {
    const at = r.below(list.length);
    const [from, to] = r.pick(TEXTS);
    list[at] = list[at].replace(from, () => to);
  }
  const separators = list.map(() => r.pick([",", ",\n"]));
  if (damage && r.chance(0.3) && list.length > 1) {
    const at = r.between(1, list.length - 1);
    separators[at] = r.pick([",,", " ", "\n", ",/**/", ";", ",\t", ",\u000b"]);
  }
  if (damage && r.chance(0.3)) {
    const at = r.between(0, list.length);
    list.splice(at, 0, r.pick(BETWEEN));
    separators.splice(at, 0, ",");
  }
  let inside = list.map((event, at) => (at === 0 ? "" : separators[at]) + event).join("");
  if (damage && r.chance(0.15)) inside += r.pick([",", ",\n", ",,", " ", "]"]);
  if (damage && r.chance(0.1)) inside = r.pick([",", " \n", "\u000b"]) + inside;
  const array = seed % 3 === 0;
  let text;
  if (array) {
    text = `[${inside}]`;
  } else {
    const tops = damage && r.chance(0.5) ? TOPS : TOPS.slice(0, 3);
    const before = r.chance(0.4) ? `${r.pick(tops)},` : "";
    const after = r.chance(0.4) ? `,${r.pick(tops)}` : "";
    text = `{${before}"traceEvents":[${inside}]${after}}`;
  }
  if (!damage) return r.chance(0.1) ? `\n ${text}\n` : text;
  switch (r.below(12)) {
    case 0: return text.slice(0, -1);
    case 1: return text.slice(0, -2);
    case 2: return text.slice(0, r.between(Math.floor(text.length / 2), text.length));
    case 3: return `${text}\n${text}`;
    case 4: return text + r.pick(["}", "]", "x", ",", "{}", "{", "[", "\u0000"]);
    case 5: return `\ufeff${text}`;
    case 6: return array ? text : text.replace(/}$/, ",}");
    case 7: return array ? text : text.replace(/]([^\]]*)$/, "}$1");
    case 8: return text.replace(/},{/, "}{");
    default: return text;
  }
}
