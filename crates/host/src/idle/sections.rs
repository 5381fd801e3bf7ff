//! The tables of idle time by line of Python and by op.

use std::collections::BTreeMap;

use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;
use timeline::percent;

use super::{IdlePlace, IdlePlaces};

/// Rows that a Markdown document prints of a table.
const PREVIEW: u32 = 12;

/// A place of one device's idle time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleRow {
    /// The device, as the file spells it.
    pub device: String,
    /// The line of Python, or the op.
    pub name: String,
    /// Time in which the device waited while the launching thread was here, in ns.
    pub total_ns: i64,
    /// Share of the time in which the device waited for launches, in percent.
    pub share_pct: f64,
    /// The innermost function with most of it.
    pub inside: String,
    /// The start of the gap that the slice with most of it is in, on the clock of the file.
    pub longest_start_ns: Option<i64>,
}

impl Row for IdleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "Device id.",
            cell: |row| row.device.as_str().into(),
        },
        Column {
            key: "name",
            title: "The launching thread is in",
            unit: Unit::Path,
            help: "The most telling Python line around the innermost function, or the innermost op.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "total_ns",
            title: "GPU waits",
            unit: Unit::Time,
            help: "Time in which the device is idle until the launch of what comes next, while the launching thread is here. Steps count from their start to their end.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "share_pct",
            title: "Share of waiting for the CPU",
            unit: Unit::Percent,
            help: "Of all time in which the device is idle until a launch.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "inside",
            title: "Mostly in",
            unit: Unit::Path,
            help: "The innermost function with most of this time.",
            cell: |row| match row.inside.as_str() {
                "" => Cell::Missing { reason: "in the line itself".into() },
                inside => inside.into(),
            },
        },
        Column {
            key: "longest_start_ns",
            title: "Longest gap from",
            unit: Unit::Instant,
            help: "Start of the gap with most of this time in one call, on the clock of the file.",
            cell: |row| match row.longest_start_ns {
                Some(ns) => Cell::Instant(ns),
                None => Cell::Missing { reason: "several places".into() },
            },
        },
    ];
}

fn rows(device: &str, of: &IdlePlaces, places: &[IdlePlace], rest: (&str, i64)) -> Vec<IdleRow> {
    let row = |name: &str, total_ns: i64| IdleRow {
        device: device.to_owned(),
        name: name.to_owned(),
        total_ns,
        share_pct: percent(total_ns, of.host_ns),
        inside: String::new(),
        longest_start_ns: None,
    };
    let known = places.iter().map(|place| IdleRow {
        inside: place.inside.clone(),
        longest_start_ns: place.longest_start_ns,
        ..row(&place.name, place.total_ns)
    });
    let rest = (rest.1 > 0).then(|| row(rest.0, rest.1));
    let mut rows: Vec<IdleRow> = known.chain(rest).collect();
    trace::sort_by(&mut rows, |a, b| b.total_ns.cmp(&a.total_ns));
    rows
}

/// Adds both tables to the section about gaps.
pub(crate) fn add(
    by_device: &BTreeMap<String, IdlePlaces>,
    has_frames: bool,
    section: &mut Section,
) {
    let of = |table: fn(&str, &IdlePlaces) -> Vec<IdleRow>| -> Vec<IdleRow> {
        by_device.iter().flat_map(|(device, places)| table(device, places)).collect()
    };
    let one = by_device.len() < 2;
    let mut push = |table: Table| {
        let table = if one { table.without("device") } else { table };
        section.tables.push(table.preview(PREVIEW));
    };
    if has_frames {
        let lines = of(|device, places| {
            rows(device, places, &places.lines, ("(no telling line)", places.outside_lines_ns))
        });
        let table = Table::of("idle_lines", "The GPU waits for the CPU, by line of Python", &lines)
            .when_empty("No device waits for the CPU.");
        push(table);
    }
    let ops = of(|device, places| {
        rows(device, places, &places.ops, ("(outside ops)", places.outside_ops_ns))
    });
    let table = Table::of("idle_ops", "The GPU waits for the CPU, by op", &ops)
        .without("inside")
        .when_empty("No device waits for the CPU.");
    push(table);
}
