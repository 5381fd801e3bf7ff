//! The rows of impossible durations.

use repair::RepairPlan;
use report::{Cell, Column, RowKey, Unit};
use serde::Serialize;
use trace::Trace;

/// A kernel that runs impossibly far past its stream's next start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ImpossibleRow {
    /// Number of the event in the file, from 0.
    pub event: u64,
    /// Its name.
    pub name: String,
    /// Its duration in the file.
    pub dur_ns: i64,
    /// How far it runs past the next start.
    pub overrun_ns: i64,
    /// Later kernels wholly inside it.
    pub swallowed: u64,
    /// Device and stream.
    pub stream: String,
    /// The overrun against the stream's other kernel time.
    pub share_pct: f64,
    /// Whether it is clipped, as asked.
    pub clipped: bool,
}

impl ImpossibleRow {
    /// A row for each, in file order.
    pub(crate) fn all(trace: &Trace, plan: &RepairPlan) -> Vec<Self> {
        let rows = plan.impossible.iter().map(|bad| {
            let stream = trace.streams[usize::from(bad.stream.0)];
            Self {
                event: u64::from(bad.row),
                name: trace.name_text(bad.row).to_owned(),
                dur_ns: trace.dur_ns(bad.row),
                overrun_ns: bad.overrun_ns,
                swallowed: u64::from(bad.swallowed),
                stream: format!(
                    "{} / {}",
                    stream.device.display(&trace.strings),
                    stream.stream.display(&trace.strings)
                ),
                share_pct: 100.0 * bad.overrun_ns as f64 / (bad.stream_sum_ns.max(1)) as f64,
                clipped: plan.options.clip_impossible,
            }
        });
        rows.collect()
    }
}

impl report::Row for ImpossibleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Index of the event in the file, from 0.",
            cell: |row| Cell::Count(row.event),
        },
        Column {
            key: "name",
            title: "Kernel",
            unit: Unit::Name,
            help: "Name of the kernel.",
            cell: |row| Cell::from(&row.name),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "The kernel's duration in the file.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
        Column {
            key: "overrun_ns",
            title: "Overrun",
            unit: Unit::Time,
            help: "Time by which the kernel runs past the next start on its stream.",
            cell: |row| Cell::Ns(row.overrun_ns),
        },
        Column {
            key: "swallowed",
            title: "Kernels inside",
            unit: Unit::Count,
            help: "Number of later kernels of the stream that lie completely inside it (counted up to 4,096).",
            cell: |row| Cell::Count(row.swallowed),
        },
        Column {
            key: "stream",
            title: "Stream",
            unit: Unit::Text,
            help: "Device and stream.",
            cell: |row| Cell::from(&row.stream),
        },
        Column {
            key: "share_pct",
            title: "Overrun, share of stream",
            unit: Unit::Percent,
            help: "Overrun as a percentage of the summed time of the stream's other kernels.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "clipped",
            title: "Clipped",
            unit: Unit::Flag,
            help: "Whether the repaired file clips the kernel to the next start, as requested.",
            cell: |row| Cell::Flag(row.clipped),
        },
    ];

    fn key(&self) -> Option<RowKey<'_>> {
        u32::try_from(self.event).ok().map(RowKey::Event)
    }
}
