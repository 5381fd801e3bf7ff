//! Bytes as tables.

use report::{Cell, Column, Row, Section, Table, Unit};

use super::{Traffic, TrafficRow, UncoveredRow};

/// Rows that a document prints.
const PREVIEW: u32 = 15;

impl Row for TrafficRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Op",
            unit: Unit::Name,
            help: "Innermost op that launched the kernels.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "calls",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls with known sizes that launched kernels.",
            cell: |row| Cell::Count(row.calls),
        },
        Column {
            key: "device_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "GPU time of these calls.",
            cell: |row| Cell::Ns(row.device_ns),
        },
        Column {
            key: "bytes_at_least",
            title: "Bytes, at least",
            unit: Unit::Bytes,
            help: "Each operand read once and the result written once. What the inputs do not show is left out.",
            cell: |row| match u64::try_from(row.bytes_at_least) {
                Ok(bytes) => Cell::Bytes(bytes),
                Err(_) => Cell::missing("out of range"),
            },
        },
        Column {
            key: "gb_per_s",
            title: "GB/s, at least",
            unit: Unit::Text,
            help: "These bytes / GPU time.",
            cell: |row| format!("{:.1}", row.gb_per_s).into(),
        },
        Column {
            key: "bandwidth_pct",
            title: "Of the bandwidth",
            unit: Unit::Percent,
            help: "In percent of the device's memory bandwidth. Above 100% a cache served a part of the bytes.",
            cell: |row| {
                Cell::or_missing(row.bandwidth_pct, Cell::Percent, "the device is not known")
            },
        },
    ];
}

impl Row for UncoveredRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Op",
            unit: Unit::Name,
            help: "Innermost op that launched the kernels.",
            cell: |row| match row.name.as_deref() {
                Some(name) => name.into(),
                None => Cell::missing("no op launched it"),
            },
        },
        Column {
            key: "device_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "GPU time of kernels without operations or bytes.",
            cell: |row| Cell::Ns(row.device_ns),
        },
        Column {
            key: "why",
            title: "Why",
            unit: Unit::Text,
            help: "Why neither operations nor bytes are counted.",
            cell: |row| row.why.words().into(),
        },
    ];
}

impl Traffic {
    /// Adds the tables.
    pub(crate) fn add_to(&self, section: &mut Section) {
        if !self.rows.is_empty() {
            let table = Table::of("traffic", "Memory traffic by op", &self.rows);
            section.tables.push(table.without_missing(&["bandwidth_pct"]).preview(PREVIEW));
        }
        if !self.uncovered.is_empty() {
            let table =
                Table::of("uncovered", "Kernels without operations or bytes", &self.uncovered);
            section.tables.push(table.preview(PREVIEW));
        }
    }
}
