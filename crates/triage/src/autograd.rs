//! Maps ops of the backward pass to ops of the forward pass.
//!
//! The backward pass runs on threads of the autograd engine, where no line of the user's code is open. The link is
//! the number that autograd gives each node of its graph: the op of the forward pass that made the node carries it as
//! `Sequence number`, and so do the ops that evaluate the node, with the forward thread as `Fwd thread id`. Of several
//! ops of one number the last that began made the node; the others began before the number went up (the profiler's own
//! rule, `generateForwardBackwardLink` of `torch/csrc/profiler/collection.cpp`). Newer profilers also draw an arrow
//! (`fwdbwd`) between the two.
//!
//! Numbers count within one thread of one process. `Fwd thread id` is a count of PyTorch's own, not a `tid`: which
//! thread it means is what the arrows say, else the one thread of the process that has most of the numbers. Where two
//! have equally many, no line is given.
//!
//! The sum of two gradients belongs to no op of the forward pass: the engine adds what two nodes give for a tensor that was
//! used twice, in the op that evaluates the second of them. What else is launched there (a sum over what was broadcast, a
//! conversion of the result) is the node's.

use std::collections::BTreeMap;

use dialect::kineto::FORWARD_BACKWARD;
use trace::{Details, Phase, ProcessId, Row, Trace, TrackId, each_row};

use super::nest::{DEPTH, Nest};

/// A number that more threads of a process have than this is not used: no program runs so many forward passes.
const MOST_THREADS: usize = 64;

/// Ops of the backward pass, each with its op of the forward pass.
#[derive(Debug, Default)]
pub(crate) struct Autograd {
    /// (backward op, forward op), by the first.
    pub(super) links: Vec<(Row, Row)>,
    /// Ops that add gradients: what lies around them has no part in them. Sorted.
    sums: Vec<Row>,
}

/// A number within a process, and the thread, start and row of an op of the forward pass that has it.
type Numbered = (ProcessId, i64, TrackId, i64, Row);

impl Autograd {
    /// What the arrows of the trace say, and the numbers, if the arguments of its ops were read. `ops` holds its ops.
    #[inline(never)]
    pub(crate) fn of(trace: &Trace, ops: &Nest<'_>, details: Option<&Details>) -> Self {
        let links = links(trace, ops, details);
        let mut sums = sums(ops);
        // (A backward pass that is differentiated itself has nodes for them.)
        sums.retain(|sum| find(&links, *sum).is_none());
        Self { links, sums }
    }

    /// Where the innermost op of the backward pass that is open on `track` at `ts_ns` came from: that op, and the one of
    /// the forward pass.
    pub(crate) fn forward_of(
        &self,
        ops: &Nest<'_>,
        track: TrackId,
        ts_ns: i64,
    ) -> Option<(Row, Row)> {
        if self.links.is_empty() {
            return None;
        }
        let mut at = ops.innermost(track, ts_ns)?;
        for _ in 0..DEPTH {
            let row = ops.rows[at];
            if ops.is_open(at, ts_ns) {
                if let Some(forward) = find(&self.links, row) {
                    return Some((row, forward));
                }
                if self.sums.binary_search(&row).is_ok() {
                    return None;
                }
            }
            at = ops.around(at)?;
        }
        None
    }
}

/// The ops of a trace.
pub(crate) fn nest_of_ops(trace: &Trace) -> Nest<'_> {
    let recorded = timeline::recorded::recorded(trace);
    Nest::of(trace, |row| *recorded.of(trace, row) == timeline::recorded::Recorded::Op)
}

/// Ops of the backward pass, each with the op of the forward pass that it belongs to; sorted by the first. The sum of two
/// gradients has none, and does not belong to what lies around it.
#[must_use]
pub fn backward_links(trace: &Trace, details: Option<&Details>) -> Vec<(Row, Option<Row>)> {
    let ops = nest_of_ops(trace);
    let Autograd { links, sums } = Autograd::of(trace, &ops, details);
    let linked = links.into_iter().map(|(backward, forward)| (backward, Some(forward)));
    let mut found: Vec<(Row, Option<Row>)> =
        linked.chain(sums.into_iter().map(|sum| (sum, None))).collect();
    found.sort_unstable();
    found
}

/// The backward ops that have a forward op, each with it; sorted by the first.
pub(crate) fn links(trace: &Trace, ops: &Nest<'_>, details: Option<&Details>) -> Vec<(Row, Row)> {
    let mut links = by_arrow(trace, ops);
    trace::sort(&mut links);
    links.dedup_by_key(|(backward, _)| *backward);
    if let Some(details) = details {
        let found = by_number(trace, details, &links);
        links.extend(found);
        trace::sort(&mut links);
    }
    links
}

/// How the names of ops begin in which the engine evaluates a node (`torch/csrc/autograd/engine.cpp`).
const EVALUATES: &str = "autograd::engine::evaluate_function";
/// What adds gradients (`torch/csrc/autograd/input_buffer.cpp`). It is called by the engine itself, and by no node.
const ADDS: [&str; 2] = ["aten::add_", "aten::add"];

/// The ops that add gradients, sorted.
fn sums(ops: &Nest<'_>) -> Vec<Row> {
    let trace = ops.trace;
    let adds = trace.strings.marked(&|name| ADDS.contains(&name));
    let evaluates = |row: Row| trace.name_text(row).starts_with(EVALUATES);
    let is_sum = |at: usize| {
        adds[trace.name(ops.rows[at]).0 as usize]
            && ops.around(at).is_some_and(|around| evaluates(ops.rows[around]))
    };
    let mut found: Vec<Row> =
        (0..ops.rows.len()).filter(|at| is_sum(*at)).map(|at| ops.rows[at]).collect();
    found.sort_unstable();
    found
}

fn find(links: &[(Row, Row)], backward: Row) -> Option<Row> {
    let at = links.binary_search_by_key(&backward, |(row, _)| *row).ok()?;
    links.get(at).map(|(_, forward)| *forward)
}

/// Both ends of every arrow that begin with an op.
fn by_arrow(trace: &Trace, ops: &Nest<'_>) -> Vec<(Row, Row)> {
    let Some(arrows) = trace.strings.find(FORWARD_BACKWARD) else { return Vec::new() };
    let mut ends: Vec<(i64, bool, Row)> = Vec::new();
    each_row(trace, |row| {
        if trace.raw_category(row) != arrows {
            return;
        }
        let is_end = match trace.phase(row) {
            Phase::FlowStart => false,
            Phase::FlowEnd => true,
            _ => return,
        };
        ends.extend(trace.link(row).map(|id| (id, is_end, row)));
    });
    trace::sort(&mut ends);
    let process = |row: Row| trace.track_info(trace.track(row)).process;
    let link = |ends: &[(i64, bool, Row)]| {
        // (An id that is there more than once, as in merged files, does not identify a pair.)
        let [(_, false, start), (_, true, end)] = ends else { return None };
        (process(*start) == process(*end)).then_some(())?;
        Some((begun_at(trace, ops, *end)?, begun_at(trace, ops, *start)?))
    };
    ends.chunk_by(|a, b| a.0 == b.0).filter_map(link).collect()
}

/// The op that begins at the very time of an arrow's end; the outermost, if several do.
fn begun_at(trace: &Trace, ops: &Nest<'_>, arrow: Row) -> Option<Row> {
    let ts_ns = trace.ts_ns(arrow);
    let mut at = ops.innermost(trace.track(arrow), ts_ns)?;
    if trace.ts_ns(ops.rows[at]) != ts_ns {
        return None;
    }
    for _ in 0..DEPTH {
        match ops.around(at) {
            Some(around) if trace.ts_ns(ops.rows[around]) == ts_ns => at = around,
            _ => break,
        }
    }
    Some(ops.rows[at])
}

/// Ops of equal numbers beyond those that arrows link, which are `known` (by the first of them).
pub(super) fn by_number(trace: &Trace, details: &Details, known: &[(Row, Row)]) -> Vec<(Row, Row)> {
    let process = |row: Row| trace.track_info(trace.track(row)).process;
    let mut forward: Vec<Numbered> = Vec::new();
    let mut backward: Vec<(Row, ProcessId, i64, i64)> = Vec::new();
    for (row, sequence) in &details.sequences {
        let of = process(*row);
        if sequence.forward_thread == 0 {
            forward.push((of, sequence.number, trace.track(*row), trace.ts_ns(*row), *row));
        } else {
            backward.push((*row, of, sequence.number, sequence.forward_thread));
        }
    }
    if backward.is_empty() {
        return Vec::new();
    }
    trace::sort(&mut forward);
    // The ops of one number on one thread, so that a number that all ops have is not walked for each of them.
    let threads: Vec<&[Numbered]> =
        forward.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)).collect();
    let of_number = |process: ProcessId, number: i64| {
        let key = |of: &&[Numbered]| (of[0].0, of[0].1);
        let from = threads.partition_point(|of| key(of) < (process, number));
        let to = threads.partition_point(|of| key(of) <= (process, number));
        let found = &threads[from..to];
        if found.len() > MOST_THREADS { &[] } else { found }
    };
    // The last op of a thread that had begun.
    let last = |of_thread: &[Numbered], row: Row| {
        let begun = of_thread.partition_point(|of| of.3 <= trace.ts_ns(row));
        Some(of_thread.get(begun.checked_sub(1)?)?.4)
    };
    let mut arrows: Votes = BTreeMap::new();
    let mut numbers: Votes = BTreeMap::new();
    for (row, process, number, thread) in &backward {
        let key = (*process, *thread);
        if let Some(forward) = find(known, *row) {
            *arrows.entry(key).or_default().entry(trace.track(forward)).or_default() += 1;
        }
        for of_thread in of_number(*process, *number) {
            if last(of_thread, *row).is_some() {
                *numbers.entry(key).or_default().entry(of_thread[0].2).or_default() += 1;
            }
        }
    }
    let thread_of = |key: &(ProcessId, i64)| elected(arrows.get(key).or_else(|| numbers.get(key))?);
    let elected: BTreeMap<(ProcessId, i64), TrackId> =
        numbers.keys().filter_map(|key| Some((*key, thread_of(key)?))).collect();
    let link = |(row, process, number, thread): &(Row, ProcessId, i64, i64)| {
        let track = *elected.get(&(*process, *thread))?;
        let of_thread = of_number(*process, *number).iter().find(|of| of[0].2 == track)?;
        Some((*row, last(of_thread, *row)?))
    };
    backward.iter().filter(|(row, ..)| find(known, *row).is_none()).filter_map(link).collect()
}

/// For each `Fwd thread id` of a process: how many ops speak for which thread.
type Votes = BTreeMap<(ProcessId, i64), BTreeMap<TrackId, u64>>;

/// The thread with most votes; none if two have as many.
fn elected(votes: &BTreeMap<TrackId, u64>) -> Option<TrackId> {
    let most = votes.values().max()?;
    let mut first = votes.iter().filter(|(_, n)| *n == most);
    let (track, _) = first.next()?;
    first.next().is_none().then_some(*track)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, slice};
    use timeline::recorded::{Recorded, recorded};
    use trace::Sequence;

    /// Ops as (process, thread, start, duration, number, `Fwd thread id`), and arrows as (thread, start) of both ends.
    fn forward_ops(
        ops: &[(i64, i64, i64, i64, i64, i64)],
        arrows: &[[(i64, i64); 2]],
        read: bool,
    ) -> Vec<Option<Row>> {
        let mut fixture = Fixture::default();
        let mut details = Details::default();
        for (row, (pid, tid, at, dur, number, forward_thread)) in (0..).zip(ops) {
            fixture.push(slice("cpu_op", "op").at(*at, *dur).on(*pid, *tid));
            let sequence = Sequence { number: *number, forward_thread: *forward_thread };
            details.sequences.push((row, sequence));
        }
        for (id, ends) in (0..).zip(arrows) {
            for (phase, (tid, at)) in [Phase::FlowStart, Phase::FlowEnd].into_iter().zip(ends) {
                fixture
                    .push(slice(FORWARD_BACKWARD, "").at(*at, 0).on(1, *tid).link(id).arrow(phase));
            }
        }
        let trace = fixture.finish();
        let ops_of = recorded(&trace);
        let nest = Nest::of(&trace, |row| *ops_of.of(&trace, row) == Recorded::Op);
        let found = Autograd::of(&trace, &nest, read.then_some(&details));
        let of = |(row, (_, _, at, dur, ..)): (u32, &(i64, i64, i64, i64, i64, i64))| {
            let (backward, forward) = found.forward_of(&nest, trace.track(row), at + dur - 1)?;
            assert_eq!(backward, row);
            Some(forward)
        };
        (0..).zip(ops).map(of).collect()
    }

    #[test]
    fn the_last_op_of_the_number_on_the_forward_thread_of_the_process() {
        let ops = [
            (1, 11, 0, 50, 4, 0),
            (1, 11, 10, 30, 4, 0),
            // Begins after the backward pass: the next step's.
            (1, 11, 300, 30, 4, 0),
            // Another process.
            (2, 11, 20, 30, 4, 0),
            (1, 12, 100, 50, 4, 1),
            (2, 12, 100, 50, 5, 1),
            (1, 12, 200, 50, 9, 1),
        ];
        let expected = [None, None, None, None, Some(1), None, None];
        assert_eq!(forward_ops(&ops, &[], true), expected);
        assert_eq!(forward_ops(&ops, &[], false), [None; 7]);
    }

    #[test]
    fn the_sum_of_two_gradients_belongs_to_no_op_of_the_forward_pass() {
        let mut fixture = Fixture::default();
        let ops = [
            ("aten::addmm", 11, 0, 50),
            ("autograd::engine::evaluate_function: AddmmBackward0", 12, 100, 90),
            ("AddmmBackward0", 12, 110, 20),
            ("aten::add_", 12, 115, 10),
            ("aten::sum", 12, 140, 10),
            ("aten::add_", 12, 160, 20),
        ];
        for (name, tid, at, dur) in ops {
            fixture.push(slice("cpu_op", name).at(at, dur).on(1, tid));
        }
        let trace = fixture.finish();
        let ops_of = recorded(&trace);
        let nest = Nest::of(&trace, |row| *ops_of.of(&trace, row) == Recorded::Op);
        let sequence = |forward_thread| Sequence { number: 4, forward_thread };
        let sequences = vec![(0, sequence(0)), (1, sequence(1)), (2, sequence(1))];
        let details = Details { sequences, ..Details::default() };
        let found = Autograd::of(&trace, &nest, Some(&details));
        let of = |row, ts_ns| found.forward_of(&nest, trace.track(row), ts_ns);
        assert_eq!((of(3, 120), of(4, 145), of(5, 165)), (Some((2, 0)), Some((1, 0)), None));
        assert_eq!(backward_links(&trace, Some(&details)), [(1, Some(0)), (2, Some(0)), (5, None)]);
    }

    #[test]
    fn of_two_threads_with_the_same_numbers_only_an_arrow_tells() {
        let ops = [
            (1, 11, 0, 50, 1, 0),
            (1, 12, 0, 50, 1, 0),
            (1, 11, 60, 30, 2, 0),
            (1, 12, 60, 30, 2, 0),
            (1, 13, 100, 50, 2, 3),
            (1, 13, 200, 50, 1, 3),
        ];
        assert_eq!(forward_ops(&ops, &[], true), [None; 6]);
        let arrow = [(12, 60), (13, 100)];
        let linked = [None, None, None, None, Some(3), None];
        assert_eq!(forward_ops(&ops, &[arrow], false), linked);
        // What one arrow says of the thread counts for all its numbers.
        let all = [None, None, None, None, Some(3), Some(1)];
        assert_eq!(forward_ops(&ops, &[arrow], true), all);
    }

    #[test]
    fn a_number_that_every_thread_has_tells_nothing() {
        let told = |n: i64| {
            let mut ops: Vec<_> = (0..n).map(|tid| (1, tid, 0, 50, 1, 0)).collect();
            ops.push((1, 500, 100, 50, 1, 3));
            ops.push((1, 500, 200, 50, 1, 3));
            let found = forward_ops(&ops, &[[(7, 0), (500, 100)]], true);
            (found[n as usize], found[n as usize + 1])
        };
        let most = MOST_THREADS as i64;
        assert_eq!(told(most), (Some(7), Some(7)));
        assert_eq!(told(most + 1), (Some(7), None), "the arrow alone");
    }

    #[test]
    fn one_more_number_decides_between_threads() {
        let ops = [
            (1, 11, 0, 50, 1, 0),
            (1, 12, 0, 50, 1, 0),
            (1, 12, 60, 30, 2, 0),
            (1, 13, 100, 50, 2, 3),
            (1, 13, 200, 50, 1, 3),
        ];
        assert_eq!(forward_ops(&ops, &[], true), [None, None, None, Some(2), Some(1)]);
    }
}
