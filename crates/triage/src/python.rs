//! Python frames: which line was running on a thread at a given time, and its callers.

use std::collections::HashMap;

use catalog::python::{FrameRank, Roots, frame, frame_parts};
use trace::{BuildIdHasher, Flags, Phase, Row, StringId, Trace, TrackId};

use super::nest::{DEPTH, Nest};
use super::site::Location;
use timeline::recorded::{Recorded, recorded};

/// The frames of all threads.
pub(crate) struct Frames<'a> {
    nest: Nest<'a>,
    /// Where the packages of its files begin.
    roots: Roots,
    /// The line that each name is, and how much it says; `None` when it is no line. Read once: on a stack most are known.
    lines: HashMap<StringId, Option<(Location, FrameRank)>, BuildIdHasher>,
    /// What was asked before, by the innermost frame: neighbours on a thread are called from one place.
    known: HashMap<u32, Calls, BuildIdHasher>,
    /// The first name of each class of modules: `Linear_0` represents every `Linear`.
    classes: HashMap<&'a str, StringId>,
}

/// Lines of a stack that are kept.
const STACK: usize = 8;

/// Modules around a call that are kept.
const MODULES: usize = 3;

/// The frames that were open at a moment, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Calls {
    /// The line that says most.
    best: Option<StringId>,
    /// How much that line says.
    pub(crate) rank: Option<FrameRank>,
    /// Lines that say anything, innermost first.
    stack: [Option<StringId>; STACK],
    /// Modules, innermost first; one name represents its class.
    modules: [Option<StringId>; MODULES],
}

impl Calls {
    /// Classes of the modules that were running, outermost first: `Qwen3DecoderLayer > RMSNorm`.
    #[inline(never)]
    pub(crate) fn modules(&self, trace: &Trace) -> Option<String> {
        let names = self.modules.iter().rev().flatten();
        let classes: Vec<&str> =
            names.filter_map(|name| module_class(trace.strings.get(*name))).collect();
        (!classes.is_empty()).then(|| classes.join(" > "))
    }
}

impl<'a> Frames<'a> {
    /// All frames of the trace: 8 bytes each.
    pub(crate) fn of(trace: &'a Trace) -> Self {
        let recorded = recorded(trace);
        let is_frame = |row: Row| {
            trace.phase(row) == Phase::Complete
                && trace.flags(row).has(Flags::HAS_TS)
                && (trace.flags(row).has(Flags::PYTHON_IDS)
                    || *recorded.of(trace, row) == Recorded::Frame)
        };
        Self {
            nest: Nest::of(trace, is_frame),
            roots: roots(trace),
            lines: HashMap::default(),
            known: HashMap::default(),
            classes: HashMap::new(),
        }
    }

    /// What the frames say that were open on `track` at `ts_ns`.
    #[inline(never)]
    pub(crate) fn calls(&mut self, track: TrackId, ts_ns: i64) -> Calls {
        let Some(innermost) = self.nest.innermost(track, ts_ns) else { return Calls::default() };
        if let Some(known) = self.known.get(&(innermost as u32)) {
            return *known;
        }
        let calls = self.chain(innermost);
        self.known.insert(innermost as u32, calls);
        calls
    }

    /// The frames that are open on `track` at `ts_ns`, innermost first.
    pub(crate) fn open_at(&self, track: TrackId, ts_ns: i64) -> impl Iterator<Item = Row> {
        let innermost = self.nest.innermost(track, ts_ns);
        let chain = std::iter::successors(innermost, |at| self.nest.around(*at)).take(DEPTH);
        chain.filter(move |at| self.nest.is_open(*at, ts_ns)).map(|at| self.nest.rows[at])
    }

    /// Whether any are recorded.
    pub(crate) fn has_any(&self) -> bool {
        !self.nest.rows.is_empty()
    }

    /// The most informative line of these calls.
    pub(crate) fn location(&self, calls: &Calls) -> Option<Location> {
        self.line(calls.best?).cloned()
    }

    /// The informative lines of these calls, outermost first.
    pub(crate) fn stack(&self, calls: &Calls) -> Vec<String> {
        let names = calls.stack.iter().rev().flatten();
        names.filter_map(|name| self.line(*name)).map(ToString::to_string).collect()
    }

    fn line(&self, name: StringId) -> Option<&Location> {
        self.lines.get(&name)?.as_ref().map(|(location, _)| location)
    }

    /// What a frame and its callers say.
    #[inline(never)]
    fn chain(&mut self, innermost: usize) -> Calls {
        let mut calls = Calls::default();
        let mut best = FrameRank::PassesOn;
        let (mut n, mut n_modules) = (0, 0);
        let trace = self.nest.trace;
        let since_ns = trace.ts_ns(self.nest.rows[innermost]);
        let mut next = Some(innermost);
        for _ in 0..DEPTH {
            let Some(frame) = next else { break };
            next = self.nest.around(frame);
            let row = self.nest.rows[frame];
            // Without ids, a frame that ended before the innermost one began is not a caller.
            if !trace.flags(row).has(Flags::PYTHON_IDS) && !self.nest.is_open(frame, since_ns) {
                continue;
            }
            let id = trace.name(row);
            let line =
                self.lines.entry(id).or_insert_with(|| parse(&self.roots, trace.strings.get(id)));
            let Some((_, rank)) = *line else {
                if n_modules < MODULES
                    && let Some(class) = module_class(trace.strings.get(id))
                {
                    calls.modules[n_modules] = Some(*self.classes.entry(class).or_insert(id));
                    n_modules += 1;
                }
                continue;
            };
            if rank >= FrameRank::Compiled && n < STACK {
                calls.stack[n] = Some(id);
                n += 1;
            }
            // Of the user's code and a model's the innermost: a script that calls a model is on every chain.
            let rank = rank.min(FrameRank::Model);
            if rank > best {
                best = rank;
                (calls.best, calls.rank) = (Some(id), Some(rank));
            }
        }
        calls
    }
}

/// The class of a module's frame: `Linear` of `nn.Module: Linear_3`.
fn module_class(name: &str) -> Option<&str> {
    let instance = name.strip_prefix("nn.Module: ")?;
    let (class, number) = instance.rsplit_once('_').unwrap_or((instance, ""));
    Some(if number.bytes().all(|byte| byte.is_ascii_digit()) { class } else { instance })
}

/// Where the packages begin that the frames of a trace are in.
#[inline(never)]
fn roots(trace: &Trace) -> Roots {
    let texts = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    Roots::of_frames(texts)
}

/// `path(line): function`; modules (`nn.Module: Linear_3`) and built-ins are no lines.
#[inline(never)]
fn parse(roots: &Roots, name: &str) -> Option<(Location, FrameRank)> {
    let (full_path, line, function) = frame_parts(name)?;
    let (path, rank) = frame(roots, full_path, function);
    let full_path = (path != full_path).then(|| full_path.to_owned());
    Some((Location { path, full_path, line, function: function.to_owned() }, rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, slice};

    #[test]
    fn the_line_that_says_most_is_shown() {
        let mut fixture = Fixture::default();
        let frame = |name| slice("python_function", name).on(1, 1);
        fixture.push(frame("threading.py(9): _bootstrap").at(0, 100));
        fixture.push(frame("vllm/worker.py(7): execute_model").at(10, 80));
        fixture.push(frame("vllm/models/llama.py(70): forward").at(20, 40));
        fixture.push(frame("nn.Module: Layer_17").at(21, 39));
        fixture.push(frame("nn.Module: Linear_0").at(24, 35));
        fixture.push(frame("torch/nn/modules/module.py(1): _call_impl").at(25, 30));
        fixture.push(frame("<built-in function linear>").at(30, 10));
        fixture.push(frame("torch/nn/functional.py(5): linear").at(70, 5));
        let trace = fixture.finish();
        let mut frames = Frames::of(&trace);
        let track = trace.track(0);
        let inside = frames.calls(track, 32);
        assert_eq!(
            frames.stack(&inside),
            ["vllm/worker.py:7 execute_model", "vllm/models/llama.py:70 forward"]
        );
        let mut line = |ns| {
            let calls = frames.calls(track, ns);
            frames.location(&calls).map(|location| location.to_string())
        };
        assert_eq!(line(32).as_deref(), Some("vllm/models/llama.py:70 forward"));
        assert_eq!(inside.modules(&trace).as_deref(), Some("Layer > Linear"));
        assert_eq!(line(72).as_deref(), Some("vllm/worker.py:7 execute_model"));
        assert_eq!(line(95), None, "threads are no place");
        assert_eq!(frames.calls(track, 101), Calls::default());
        assert_eq!(frames.calls(TrackId(99), 32), Calls::default());
    }

    #[test]
    fn a_frame_that_is_over_called_nobody() {
        let mut fixture = Fixture::default();
        for (at, name) in (0..).zip(["a.py(1): f", "b.py(2): g", "c.py(3): h"]) {
            fixture.push(slice("python_function", name).on(1, 1).at(at * 10, 15));
        }
        let trace = fixture.finish();
        let mut frames = Frames::of(&trace);
        let calls = frames.calls(trace.track(0), 22);
        assert_eq!(
            frames.stack(&calls),
            ["b.py:2 g", "c.py:3 h"],
            "the first ended when the third had not begun"
        );
    }

    #[test]
    fn names_of_frames() {
        let told = |name| parse(&Roots::default(), name).map(|(location, _)| location.to_string());
        assert_eq!(told("a/b.py(12): f").as_deref(), Some("a/b.py:12 f"));
        assert_eq!(told("a (x)/b.py(12): <lambda>").as_deref(), Some("a (x)/b.py:12 <lambda>"));
        assert_eq!(told("nn.Module: Linear_3"), None);
        assert_eq!(told("<built-in method a of b object at 0x7>"), None);
        assert_eq!(module_class("nn.Module: Linear_3"), Some("Linear"));
        assert_eq!(module_class("nn.Module: My_Block_x"), Some("My_Block_x"));
        assert_eq!(module_class("nn.Module: Linear"), Some("Linear"));
        assert_eq!(module_class("a/b.py(12): f"), None);
    }
}
