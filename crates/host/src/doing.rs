//! What a thread of the host did at a moment: the op, and the line of Python.

use std::collections::BTreeMap;

use trace::Row;

use crate::lines::Lines;
use crate::slices::{Slices, Thread, ThreadId};

/// Ops that only allocate: the op around them says for what.
const ALLOCATE: [&str; 4] = ["aten::empty", "aten::new_empty", "aten::resize_", "aten::_resize"];

/// What a thread did at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doing<'a> {
    /// The innermost op that does more than allocate; the innermost one if none does.
    pub op: Option<&'a str>,
    /// The line of Python that says most of those around the moment, as `path:line function`.
    pub line: Option<String>,
}

/// What threads did at moments.
#[must_use]
pub fn doing<'a>(slices: &Slices<'a>, moments: &[(ThreadId, i64)]) -> Vec<Doing<'a>> {
    let mut found = vec![Doing::default(); moments.len()];
    let mut by_thread: BTreeMap<ThreadId, Vec<(i64, usize)>> = BTreeMap::new();
    for (place, (thread, at_ns)) in moments.iter().enumerate() {
        by_thread.entry(*thread).or_default().push((*at_ns, place));
    }
    let mut lines = Lines::of(slices.trace);
    for (thread, mut places) in by_thread {
        trace::sort(&mut places);
        let instants = || places.iter().map(|(at, _)| *at);
        let frames = slices.closed_frames().innermost(thread, instants());
        let ops = slices.closed_ops().innermost(thread, instants());
        for ((frame, op), (_, place)) in frames.into_iter().zip(ops).zip(&places) {
            let line = frame.and_then(|at| lines.best(slices.closed_frames(), at));
            found[*place] = Doing {
                op: op.map(|op| said_op(slices, op)),
                line: line.map(|line| lines.shown(line)),
            };
        }
    }
    found
}

/// The thread of an event that is no slice. Old files spell the ids of such events as numbers and those of slices as text: what is
/// spelled alike is one thread.
#[must_use]
pub fn thread_of(slices: &Slices<'_>, row: Row) -> Option<ThreadId> {
    let (trace, track) = (slices.trace, slices.trace.track(row));
    slices.thread_of(track).or_else(|| {
        let pid = trace.process_of(track).pid.display(&trace.strings);
        let tid = trace.track_info(track).tid.display(&trace.strings);
        let is_own = |thread: &Thread| thread.pid == pid && thread.tid == tid;
        slices.threads.iter().position(is_own).map(|at| at as ThreadId)
    })
}

fn said_op<'a>(slices: &Slices<'a>, innermost: usize) -> &'a str {
    let name = |at: usize| slices.name(&slices.ops.slices[at]);
    let does_more = |at: &usize| !ALLOCATE.iter().any(|op| name(*at).starts_with(op));
    name(slices.closed_ops().chain(innermost).find(does_more).unwrap_or(innermost))
}
