//! Places of the CPU in words.

use catalog::python::{FrameRank, Roots, frame, frame_parts, is_built_in, without_address};
use trace::{Row, Trace};

use super::place::Place;
use crate::attribution::Linker;
use timeline::intervals::Interval;

/// A place of this time in words, with a comma before it; nothing where none is known.
pub(crate) fn in_words(
    trace: &Trace,
    linker: &mut Linker<'_>,
    times: Interval,
    place: &Place,
) -> String {
    let cpu = cpu_in(trace, linker, times, place);
    cpu.map_or_else(String::new, |cpu| format!(", with {cpu}"))
}

/// Where the CPU is in this time; `None` where that is not known.
pub(super) fn cpu_in(
    trace: &Trace,
    linker: &mut Linker<'_>,
    times: Interval,
    place: &Place,
) -> Option<String> {
    // (What it calls, such as imports of its own, is no work of the program.)
    if place.profiler.is_some() {
        return Some("the CPU in the profiler itself".to_owned());
    }
    let mut names: Vec<String> = [place.call, place.range]
        .into_iter()
        .flatten()
        .map(|row| trace.name_text(row).to_owned())
        .collect();
    // Where a call is known, its function; else the frame of Python that covers most of the time: at its start it is the
    // innermost one.
    let line = place.call.or(place.frame).and_then(|row| {
        let from = trace.ts_ns(row).max(times.0);
        let to = trace.end_ns(row).min(times.1);
        let at = if place.call.is_some() { from.midpoint(to) } else { trace.ts_ns(row) };
        linker.line_at(trace.track(row), at)
    });
    // (A built-in has no line of its own: where it takes the time, its name says more than its caller's line.)
    let built_in = place.frame.filter(|_| names.is_empty()).map(|row| trace.name_text(row));
    let built_in = built_in.filter(|name| is_built_in(name));
    names.extend(built_in.map(|name| without_address(name).to_owned()));
    // (Of a function of a library that the line calls, the same holds.)
    let library = place.frame.filter(|_| names.is_empty()).and_then(|row| {
        let (path, number, function) = frame_parts(trace.name_text(row))?;
        let (shown, rank) = frame(&Roots::default(), path, function);
        let says_more = rank > FrameRank::Stdlib && rank < FrameRank::User;
        says_more.then(|| format!("{shown}:{number} {function}"))
    });
    let is_line = |name: &String| line.as_ref().is_none_or(|line| name.ends_with(line.as_str()));
    names.extend(library.filter(|name| !is_line(name)));
    names.extend(line);
    (!names.is_empty()).then(|| format!("the CPU in {}", names.join(" in ")))
}

/// A call with its op and its Python function, in words.
pub(super) fn origin(trace: &Trace, linker: &mut Linker<'_>, call: Row) -> String {
    let mut names = vec![trace.name_text(call).to_owned()];
    let (op, _) = linker.op_of(call, None, true);
    names.extend(op.map(|op| trace.name_text(op).to_owned()));
    names.extend(linker.line_at(trace.track(call), trace.ts_ns(call)));
    names.join(" in ")
}
