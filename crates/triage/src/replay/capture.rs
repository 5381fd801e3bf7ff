//! Finds graph captures in a trace: the launches of each, in order.

use std::collections::HashMap;

use dialect::calls;
use trace::{BuildIdHasher, Flags, Row, StringId, Trace, each_row};

use crate::stages;
use timeline::before_window::each_launch;
use timeline::recorded::{Recorded, recorded};

/// The name of every copy, and of every fill: calls and GPU slices do not call them alike.
pub(super) const COPY: &str = "Memcpy";
pub(super) const FILL: &str = "Memset";

/// The launches between the begin and the end of one capture, in order.
pub(crate) struct Capture {
    pub(crate) launches: Vec<Row>,
    /// The number of each launch's kernel; `None` where a launch does not name its kernel.
    pub(super) names: Option<Vec<u32>>,
    /// Requests that the graph is for.
    pub(super) batch: Option<u64>,
}

/// The captures of a trace; `number` gives the number of a name.
#[inline(never)]
pub(crate) fn captures(trace: &Trace, number: impl Fn(&str) -> u32) -> Vec<Capture> {
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    let recorded = recorded(trace);
    // Whether a name begins a capture (or ends one), computed once.
    let mut known: HashMap<StringId, Option<bool>, BuildIdHasher> = HashMap::default();
    each_row(trace, |row| {
        // (Runtime calls only: frames of Python have such names, too.)
        let flags = trace.flags(row);
        if *recorded.of(trace, row) != Recorded::Other
            || flags.has(Flags::PYTHON_IDS)
            || !flags.has(Flags::HAS_TS)
        {
            return;
        }
        let begins_one = known.entry(trace.name(row)).or_insert_with_key(|name| {
            let name = trace.strings.get(*name);
            let begins = calls::begins_capture(name);
            (begins || calls::ends_capture(name)).then_some(begins)
        });
        match begins_one {
            Some(true) => begins.push(row),
            Some(false) => ends.push(row),
            None => {}
        }
    });
    let by_time = |row: &Row| (trace.track(*row).0, trace.ts_ns(*row));
    let compare = |a: Row, b: Row| by_time(&a).cmp(&by_time(&b));
    trace::sort_numbers(&mut begins, &compare);
    trace::sort_numbers(&mut ends, &compare);
    if begins.is_empty() {
        return Vec::new();
    }
    let mut launches: Vec<Row> = Vec::new();
    each_launch(trace, |row, _| {
        if trace.launched_kernel(row).is_some() || calls::is_captured(trace.name_text(row)) {
            launches.push(row);
        }
    });
    trace::sort_numbers(&mut launches, &compare);
    let windows = stages::windows_of(trace);
    let captured = |begin: &Row| {
        let track = trace.track(*begin);
        let end = ends[ends.partition_point(|end| by_time(end) < by_time(begin))..].first();
        let end = end.filter(|end| trace.track(**end) == track)?;
        let from = launches.partition_point(|row| by_time(row) < by_time(begin));
        let to = launches.partition_point(|row| by_time(row) < by_time(end));
        let launches = launches.get(from..to)?.to_vec();
        let name = |row: &Row| match trace.launched_kernel(*row) {
            Some(id) => Some(number(trace.strings.get(id))),
            None => {
                let call = trace.name_text(*row);
                [COPY, FILL].into_iter().find(|name| call.contains(name)).map(&number)
            }
        };
        let names = launches.iter().map(name).collect();
        let batch = stages::requests_at(&windows, track, trace.ts_ns(*begin));
        Some(Capture { launches, names, batch })
    };
    begins.iter().filter_map(captured).filter(|capture| !capture.launches.is_empty()).collect()
}
