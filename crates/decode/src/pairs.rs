//! Launches of files without correlations, as converters and older profilers for AMD write them: there the `External id` of a launch is also
//! that of what it launched, and the arrows between them (`ac2g`) have it, too.
//!
//! Mostly an `External id` is that of the op around a launch, so that several launches have it: only a pair without a rival is one.

use dialect::calls::{Does, does};
use dialect::{Records, known};
use trace::{Flags, Row, Trace};

/// Makes the `External id` the correlation of each launch and its GPU work. For a file in which no GPU work has a correlation.
// Not inlined: V8 compiles a loop over all events twice, with all of the function around it.
#[inline(never)]
pub(crate) fn link(trace: &mut Trace) {
    let is_work = |row: &Row| {
        let is_gpu = |of| trace.is_complete(*row, Flags(of | Flags::HAS_TS.0), Flags::default());
        is_gpu(Flags::KERNEL.0) || is_gpu(Flags::GPU_MEMORY.0)
    };
    let work = trace.rows().filter(is_work);
    let mut work: Vec<(i64, Row)> =
        work.filter_map(|row| Some((trace.external(row)?, row))).collect();
    if work.is_empty() {
        return;
    }
    let records = trace.by_raw_category(known);
    let launches = trace.strings.marked(&|name| {
        matches!(does(name), Some(Does::Launch | Does::LaunchGraph | Does::Copy | Does::Fill))
    });
    let is_call = |row: &Row| {
        trace.is_complete(*row, Flags::HAS_TS, Flags::default())
            && launches[trace.name(*row).0 as usize]
            && matches!(records.of(trace, *row), Some(Records::Call(_)))
    };
    let calls = trace.rows().filter(is_call);
    let mut calls: Vec<(i64, Row)> =
        calls.filter_map(|row| Some((trace.external(row)?, row))).collect();
    let (work, calls) = (without_rivals(&mut work), without_rivals(&mut calls));
    let pairs: Vec<(Row, Row)> = work
        .into_iter()
        .filter_map(|(id, row)| {
            let at = calls.binary_search_by_key(&id, |(of, _)| *of).ok()?;
            Some((calls.get(at)?.1, row))
        })
        .filter(|(call, row)| trace.ts_ns(*call) <= trace.ts_ns(*row))
        .collect();
    for (call, row) in pairs {
        trace.link_by_external(call);
        trace.link_by_external(row);
    }
}

/// Those whose id no other has, by id.
fn without_rivals(all: &mut [(i64, Row)]) -> Vec<(i64, Row)> {
    trace::sort(all);
    let same = all.chunk_by(|a, b| a.0 == b.0);
    same.filter_map(|same| if let [only] = same { Some(*only) } else { None }).collect()
}
