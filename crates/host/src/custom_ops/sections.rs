//! Custom ops as tables.

use report::units::{count, plural, time};
use report::{Cell, Column, Row, Section, Table, Unit};

use super::{Bound, CustomOpRow, CustomOps, UncountedRow};
use crate::rates::{OF_PEAKS, RateRow};

/// Rows that a document prints.
const PREVIEW: u32 = 15;

const NO_TIME: &str = "no GPU time";
const NO_PEAK: &str = "the device or the number format is not known, or the bound exceeds the peak";

fn text(value: Option<String>, reason: &'static str) -> Cell<'static> {
    value.map_or(Cell::missing(reason), Cell::from)
}

impl Row for CustomOpRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Op",
            unit: Unit::Name,
            help: "Innermost custom op with a formula.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "format",
            title: "Format",
            unit: Unit::Text,
            help: "Number format of the operands, by Input type.",
            cell: |row| match row.format {
                Some(format) => format.into(),
                None => Cell::missing("operands differ, or their types do not show it"),
            },
        },
        Column {
            key: "bound",
            title: "Bound",
            unit: Unit::Text,
            help: "exact: the arguments determine the operations. at most: the lengths of sequences or the tokens of experts are in GPU memory; the largest number that the arguments allow.",
            cell: |row| row.bound.words().into(),
        },
        Column {
            key: "calls",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls with known sizes.",
            cell: |row| Cell::Count(row.calls),
        },
        Column {
            key: "flops",
            title: "TFLOP",
            unit: Unit::Text,
            help: "Operations of these calls.",
            cell: |row| format!("{:.3}", row.flops as f64 / 1e12).into(),
        },
        Column {
            key: "device_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "GPU time of these calls.",
            cell: |row| Cell::Ns(row.device_ns),
        },
        Column {
            key: "tflops",
            title: "TFLOP/s",
            unit: Unit::Text,
            help: "Operations / GPU time, of calls that launched GPU work. Of a bound: at most.",
            cell: |row| text(row.tflops.map(|rate| format!("{rate:.1}")), NO_TIME),
        },
        Column {
            key: "peak_pct",
            title: "Of the dense peak",
            unit: Unit::Percent,
            help: "The rate in percent of the device's dense peak of the format.",
            cell: |row| Cell::or_missing(row.peak_pct, Cell::Percent, NO_PEAK),
        },
        Column {
            key: "intensity",
            title: "FLOP per byte, at most",
            unit: Unit::Text,
            help: "Operations / the least bytes that they move.",
            cell: |row| {
                let reason = "the operations are a bound, or a part of an operand may be left out";
                text(row.intensity.map(|of| format!("{of:.1}")), reason)
            },
        },
    ];
}

impl Row for UncountedRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Op",
            unit: Unit::Name,
            help: "Custom op with a formula.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "why",
            title: "Why",
            unit: Unit::Text,
            help: "What the formula misses in the recorded arguments.",
            cell: |row| row.why.as_str().into(),
        },
        Column {
            key: "calls",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls.",
            cell: |row| Cell::Count(row.calls),
        },
        Column {
            key: "device_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "GPU time of these calls.",
            cell: |row| Cell::Ns(row.device_ns),
        },
    ];
}

impl CustomOps {
    /// The exact rows with GPU time, for the roofline.
    pub(crate) fn exact_rates(&self) -> Vec<RateRow> {
        let exact = self.rows.iter().filter(|row| row.bound == Bound::Exact);
        exact
            .filter_map(|row| {
                Some(RateRow {
                    name: row.name.clone(),
                    format: row.format,
                    calls: row.calls,
                    flops: row.flops_with_device,
                    device_ns: row.device_ns,
                    tflops: row.tflops?,
                    peak_tflops: row.peak_tflops,
                    peak_pct: row.peak_pct,
                    bytes_at_least: row.bytes_at_least,
                    gb_per_s: None,
                    intensity: row.intensity,
                    limit: None,
                    limit_pct: None,
                })
            })
            .collect()
    }

    /// Adds the sentences and the tables.
    pub(crate) fn add_to(&self, section: &mut Section) {
        if !self.rows.is_empty() {
            let ns = self.rows.iter().map(|row| row.device_ns).sum();
            section.intro.push(match ns {
                0 => "Custom ops with recorded sizes launched no GPU work in this file.".to_owned(),
                _ => format!(
                    "Custom ops with recorded sizes take {} of GPU time. Their operations are not in the totals of PyTorch's ops.",
                    time(ns)
                ),
            });
            let table = Table::of("custom_ops", "Custom ops with recorded sizes", &self.rows);
            section.tables.push(table.without_missing(OF_PEAKS).preview(PREVIEW));
        }
        if self.outer_not_counted > 0 {
            section.intro.push(format!(
                "{} of custom ops {} not counted, because an op inside is.",
                plural(self.outer_not_counted, "call", "calls"),
                if self.outer_not_counted == 1 { "is" } else { "are" }
            ));
        }
        if !self.uncounted.is_empty() {
            let n: u64 = self.uncounted.iter().map(|row| row.calls).sum();
            section.intro.push(format!("{} calls of custom ops have no usable sizes.", count(n)));
            let table = Table::of(
                "custom_ops_uncounted",
                "Custom ops without usable sizes",
                &self.uncounted,
            );
            section.tables.push(table.preview(PREVIEW));
        }
    }
}
