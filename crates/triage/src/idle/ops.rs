//! The ops that the CPU runs while a device is idle.

use report::units;
use trace::{Flags, Phase, Row, StringId, Trace, each_row};

use super::cause::Explained;
use super::{Kind, kind, named};
use timeline::intervals::{Interval, length, union};
use timeline::percent;

/// An op is named from this share of the time on, in percent.
const LEAST_PCT: f64 = 10.0;
/// Ops that a sentence names.
const MOST: usize = 3;
/// An op of this share of the window is around everything, in percent.
const WHOLE_PCT: i64 = 80;

/// The ops that take much of the time that the CPU runs ops, in brackets with a space before them; empty where none does.
pub(super) fn told(trace: &Trace, explained: &Explained) -> String {
    let mut ops = outermost(trace, &explained.times, explained.window_ns);
    ops.retain(|(_, ns)| percent(*ns, explained.ns()) >= LEAST_PCT);
    ops.truncate(MOST);
    let named =
        |(name, ns): &(StringId, i64)| format!("{} {}", trace.strings.get(*name), units::time(*ns));
    let named: Vec<String> = ops.iter().map(named).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// The outermost ops in these times, which are sorted and disjoint, with the time of each name, the most first.
#[inline(never)]
fn outermost(trace: &Trace, times: &[Interval], window_ns: i64) -> Vec<(StringId, i64)> {
    let n_names = trace.strings.len();
    let is_step: Vec<bool> =
        (0..n_names as u32).map(|id| named(trace.strings.get(StringId(id))).step).collect();
    let kinds = trace.by_raw_category(kind);
    let mut ops: Vec<Row> = Vec::new();
    each_row(trace, |row| {
        let complete = trace.phase(row) == Phase::Complete;
        let is_op = *kinds.of(trace, row) == Kind::Op && !is_step[trace.name(row).0 as usize];
        let around = (trace.end_ns(row) - trace.ts_ns(row)) / WHOLE_PCT >= window_ns / 100;
        if complete && is_op && !around && trace.flags(row).has(Flags::HAS_TS) {
            ops.push(row);
        }
    });
    let key = |row: Row| (trace.track(row), trace.ts_ns(row), -trace.end_ns(row));
    trace::sort_numbers(&mut ops, &|a, b| key(a).cmp(&key(b)));
    let mut parts: Vec<(u32, Interval)> = Vec::new();
    let mut until = None;
    for row in ops {
        let (track, from, to) = (trace.track(row), trace.ts_ns(row), trace.end_ns(row));
        if until.is_some_and(|(on, end_ns)| on == track && from < end_ns) {
            continue;
        }
        until = Some((track, to));
        let first = times.partition_point(|(_, end_ns)| *end_ns <= from);
        let own = times[first..].iter().take_while(|(start_ns, _)| *start_ns < to);
        parts.extend(own.map(|(a, b)| (trace.name(row).0, ((*a).max(from), (*b).min(to)))));
    }
    // (Several threads may be in one op at a time.)
    trace::sort_by_key(&mut parts, |(name, _)| *name);
    let by_name = parts.chunk_by(|a, b| a.0 == b.0);
    let mut found: Vec<(StringId, i64)> = by_name
        .map(|own| {
            (StringId(own[0].0), length(&union(own.iter().map(|(_, part)| *part).collect())))
        })
        .collect();
    trace::sort_by_key(&mut found, |(_, ns)| std::cmp::Reverse(*ns));
    found
}
