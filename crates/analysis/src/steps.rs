//! The profiler's own steps: slices called `ProfilerStep#N`, on the CPU and on the GPU.

use report::{Cell, Column, Row, Unit};
use serde::{Deserialize, Serialize};
use trace::{Flags, Phase, StringId, Trace, each_row};

use crate::before_window::duration_ns;

/// One `ProfilerStep` slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// `ProfilerStep#12`.
    pub name: String,
    /// The file's `cat`: `user_annotation` on the CPU, `gpu_user_annotation` on the GPU.
    pub raw_category: String,
    /// The process it stands in, as the file spells it.
    pub pid: String,
    /// The thread (or stream) it stands on.
    pub tid: String,
    /// Start on the file's clock; `None` when that is beyond 64-bit nanoseconds.
    pub ts_ns: Option<i64>,
    /// How long it took.
    pub dur_ns: i64,
}

#[inline(never)]
pub(crate) fn steps(trace: &Trace) -> Vec<StepRow> {
    // Asked once a name, not once an event.
    let names = 0..trace.strings.len() as u32;
    let is_step: Vec<bool> =
        names.map(|id| trace.strings.get(StringId(id)).starts_with("ProfilerStep")).collect();
    let mut rows: Vec<trace::Row> = Vec::new();
    each_row(trace, |row| {
        if is_step[trace.name(row).0 as usize]
            && trace.phase(row) == Phase::Complete
            && trace.flags(row).has(Flags::HAS_TS)
        {
            rows.push(row);
        }
    });
    let key = |row: trace::Row| (trace.ts_ns(row), trace.raw_category_text(row));
    trace::sort_numbers(&mut rows, &|a, b| key(a).cmp(&key(b)));
    rows.into_iter()
        .map(|row| StepRow {
            name: trace.name_text(row).to_owned(),
            raw_category: trace.raw_category_text(row).to_owned(),
            pid: trace.process_of(trace.track(row)).pid.display(&trace.strings),
            tid: trace.track_info(trace.track(row)).tid.display(&trace.strings),
            ts_ns: absolute_ns(trace, trace.ts_ns(row)),
            dur_ns: duration_ns(trace, row),
        })
        .collect()
}

/// A point of the trace on the file's own clock, when that fits 64 bits.
pub(crate) fn absolute_ns(trace: &Trace, ts_ns: i64) -> Option<i64> {
    i64::try_from(trace.origin_ns.checked_add(i128::from(ts_ns))?).ok()
}

impl Row for StepRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Step",
            unit: Unit::Name,
            help: "The step's name as the profiler wrote it.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "raw_category",
            title: "Side",
            unit: Unit::Text,
            help: "The file's cat: user_annotation is the CPU's view, gpu_user_annotation the GPU's.",
            cell: |row| row.raw_category.as_str().into(),
        },
        Column {
            key: "pid",
            title: "Process",
            unit: Unit::Text,
            help: "The pid as the file spells it.",
            cell: |row| row.pid.as_str().into(),
        },
        Column {
            key: "tid",
            title: "Thread",
            unit: Unit::Text,
            help: "The tid as the file spells it.",
            cell: |row| row.tid.as_str().into(),
        },
        Column {
            key: "ts_ns",
            title: "Start",
            unit: Unit::Instant,
            help: "When it began, on the file's own clock.",
            cell: |row| Cell::or_missing(row.ts_ns, Cell::Instant, "beyond 64-bit nanoseconds"),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "How long it took.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, slice};

    #[test]
    fn steps_come_by_start_then_by_raw_category() {
        let mut fixture = Fixture::default();
        fixture.push(slice("user_annotation", "ProfilerStep#2").at(50, 9));
        fixture.push(slice("user_annotation", "ProfilerStep#1").at(10, 40));
        fixture.push(slice("gpu_user_annotation", "ProfilerStep#1").at(10, -3));
        fixture.push(slice("user_annotation", "a ProfilerStep").at(0, 5));
        let rows = steps(&fixture.finish());
        let found: Vec<_> =
            rows.iter().map(|row| (row.raw_category.as_str(), row.ts_ns, row.dur_ns)).collect();
        assert_eq!(
            found,
            [
                ("gpu_user_annotation", Some(10), 0),
                ("user_annotation", Some(10), 40),
                ("user_annotation", Some(50), 9)
            ]
        );
    }
}
