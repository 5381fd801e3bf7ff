//! What is said of a trace and a snapshot.

use report::units::{bytes, count, plural, time};
use report::{Cell, Column, Row, Section, Table, Unit};
use snapshot::Asked;

use crate::same_run::{Evidence, Located, SameRun, Verdict};

impl SameRun {
    /// The sentence that says whether the files are of one run, and by what.
    #[must_use]
    pub fn sentence(&self, trace: &str) -> String {
        let apart = |by: &i64| time(by.saturating_abs());
        match (&self.evidence, self.verdict) {
            (Evidence::Allocations { wanted, same, apart_ns }, Verdict::Shown) => format!(
                "{trace} is of the same run: {} of {} allocations within the time that both record have the same address at the same time ({} apart).",
                count(*same as u64),
                count(*wanted as u64),
                apart(apart_ns)
            ),
            (Evidence::Allocations { wanted, same, .. }, _) => format!(
                "{trace} is not shown to be of the same run: both record the same time, but {} of {} allocations have the same address \
                 at the same time. Another rank or process wrote it.",
                count(*same as u64),
                count(*wanted as u64)
            ),
            (Evidence::Clocks { overlap_ns, n_devices, step }, _) => {
                let devices = n_devices.map_or_else(String::new, |n| {
                    format!(" and list {}", plural(n as u64, "device", "devices"))
                });
                let step = step.as_ref().map_or_else(String::new, |(name, by)| {
                    format!("; {name} begins in both, {} apart", apart(by))
                });
                format!(
                    "{trace} is probably of the same run: both record the same {}{devices}{step}. The file of another rank would look \
                     the same. [memory] events in the trace make it certain: record it with profile_memory=True.",
                    time(*overlap_ns)
                )
            }
            (Evidence::Apart { ns }, _) => format!(
                "{trace} is not of the same time: {} lie between the two recordings. Record both around the same steps.",
                time(*ns)
            ),
            (Evidence::Devices { trace: of_trace, snapshot }, _) => format!(
                "{trace} is not shown to be of the same run: it lists {}, the snapshot {}.",
                plural(*of_trace as u64, "device", "devices"),
                plural(*snapshot as u64, "device", "devices")
            ),
            (Evidence::NoTime { is_trace: true }, _) => format!(
                "{trace} is not shown to be of the same run: its times do not count from 1970, and it has no baseTimeNanoseconds."
            ),
            (Evidence::NoTime { is_trace: false }, _) => format!(
                "{trace} is not shown to be of the same run: the events of the snapshot have no time."
            ),
        }
    }

    /// The chapter; `trace` is the name of the trace's file.
    #[must_use]
    pub fn section(&self, trace: &str) -> Section {
        let mut section = Section::new("same-run", "In the trace");
        section.intro.push(self.sentence(trace));
        if !self.places.is_empty() {
            if self.is_estimate {
                section.intro.push(
                    "Estimate: ops are found by time alone. The clocks of the two files can differ by some microseconds, so the op before \
                     or after is possible."
                        .to_owned(),
                );
            }
            section.tables.push(Table::of(
                "same-run-places",
                "Ops that allocated it",
                &self.places,
            ));
        }
        section
    }
}

fn amount(bytes: i64) -> Cell<'static> {
    Cell::Bytes(u64::try_from(bytes).unwrap_or_default())
}

fn text(of: Option<&String>, row: &Located) -> Cell<'static> {
    let why = row.missing.map_or("no frames around it", crate::Why::words);
    of.map_or(Cell::missing(why), |text| Cell::Text(text.clone().into()))
}

impl Row for Located {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "asked",
            title: "Memory",
            unit: Unit::Text,
            help: "Which memory of the snapshot.",
            cell: |row| match row.asked {
                Asked::Failed => "allocation that failed".into(),
                Asked::Peak => "the peak, by its last allocation".into(),
                Asked::AtPeak => "in use at the peak".into(),
                Asked::Grows => "grows from step to step".into(),
            },
        },
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "Number of the device.",
            cell: |row| Cell::Text(row.device.to_string().into()),
        },
        Column {
            key: "site",
            title: "Call site",
            unit: Unit::Path,
            help: "File, line and function that allocated, by the stacks of the snapshot.",
            cell: |row| Cell::Text(row.site.clone().into()),
        },
        Column {
            key: "bytes",
            title: "Size",
            unit: Unit::Bytes,
            help: "Requested bytes: of the call site, of the allocation that failed, or of all memory at the peak.",
            cell: |row| amount(row.bytes),
        },
        Column {
            key: "op",
            title: "Op",
            unit: Unit::Text,
            help: "The op of the trace that allocated most of it: the innermost that does more than allocate.",
            cell: |row| text(row.op.as_ref(), row),
        },
        Column {
            key: "op_bytes",
            title: "By the op",
            unit: Unit::Text,
            help: "What the op allocated, of the bytes that the trace places in ops. (Of a call site its 256 largest blocks are looked for.)",
            cell: |row| match row.op {
                Some(_) => {
                    let size = |of: i64| bytes(u64::try_from(of).unwrap_or_default());
                    let text = format!("{} of {}", size(row.op_bytes), size(row.placed_bytes));
                    Cell::Text(text.into())
                }
                None => text(None, row),
            },
        },
        Column {
            key: "line",
            title: "Line of Python",
            unit: Unit::Path,
            help: "The line of the trace around most of what the op allocated.",
            cell: |row| text(row.line.as_ref(), row),
        },
        Column {
            key: "steps",
            title: "Steps",
            unit: Unit::Text,
            help: "The profiler's steps in which the op allocated it.",
            cell: |row| match (row.steps.first(), row.steps.last()) {
                (Some(first), Some(last)) if first != last => {
                    Cell::Text(format!("{first} to {last}").into())
                }
                (Some(first), _) => Cell::Text(first.clone().into()),
                _ => Cell::missing("in no step of the profiler"),
            },
        },
    ];
}
