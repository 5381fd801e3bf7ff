//! The tables of copies.

use std::collections::BTreeMap;

use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;

use super::{Copies, CopyKind, CopyPlace, Purpose};
use crate::columns::{PREVIEW, columns, or_missing};

/// Copies of one kind, as the page shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyTableRow {
    /// Name of the slices.
    pub kind: String,
    /// Slices.
    pub count: u64,
    /// Sum of their bytes, where recorded.
    pub bytes: Option<u64>,
    /// Sum of durations, in ns.
    pub time_ns: i64,
    /// Time in which no kernel ran on the same device.
    pub exposed_ns: i64,
}

impl CopyTableRow {
    fn of(kind: &CopyKind) -> Self {
        Self {
            kind: kind.kind.clone(),
            count: kind.count,
            bytes: (kind.n_bytes > 0).then_some(kind.bytes.max(0) as u64),
            time_ns: kind.time_ns,
            exposed_ns: kind.exposed_ns,
        }
    }
}

impl Row for CopyTableRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        kind "Copy" Text "Kind of copy on the GPU, as recorded." |row| row.kind.as_str().into();
        count "Copies" Count "Copies." |row| Cell::Count(row.count);
        bytes "Bytes" Bytes "Sum of the copied bytes." |row| or_missing(row.bytes, Cell::Bytes);
        time_ns "Time" Time "Sum of the durations." |row| Cell::Ns(row.time_ns);
        exposed_ns "Exposed" Time "Time in which no kernel ran on the same device." |row| Cell::Ns(row.exposed_ns);
    };
}

/// What copies of one purpose took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PurposeRow {
    /// Purpose.
    pub purpose: Purpose,
    /// Ops.
    pub count: u64,
    /// Sum of durations on the host, in ns.
    pub cpu_ns: i64,
    /// GPU time.
    pub device_ns: i64,
}

impl Row for PurposeRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        purpose "aten::copy_ for" Text "What the copy is for, from the GPU's copy or from types, sizes and strides." |row| row.purpose.title().into();
        count "Calls" Count "Calls of aten::copy_." |row| Cell::Count(row.count);
        cpu_ns "CPU" Time "Sum of the durations on the CPU." |row| Cell::Ns(row.cpu_ns);
        device_ns "GPU" Time "GPU time." |row| Cell::Ns(row.device_ns);
    };
}

/// Copies of one purpose that one place makes, as the page shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyPlaceRow {
    /// Purpose.
    pub purpose: Purpose,
    /// Where, how many and how long.
    pub made: CopyPlace,
}

impl Row for CopyPlaceRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        place "Made in" Path "The Python line around the op; without frames, the op that makes the copy." |row| row.made.place.as_str().into();
        purpose "aten::copy_ for" Text "What the copy is for." |row| row.purpose.title().into();
        count "Calls" Count "Calls of aten::copy_ with GPU work." |row| Cell::Count(row.made.count);
        device_ns "GPU" Time "GPU time." |row| Cell::Ns(row.made.device_ns);
    };
}

/// The section about copies.
pub(crate) fn section(copies: &Copies, places: &BTreeMap<Purpose, Vec<CopyPlace>>) -> Section {
    let mut section = Section::new("copies", "Copies");
    let rows: Vec<CopyTableRow> = copies.memcpy_kinds.iter().map(CopyTableRow::of).collect();
    let kinds = Table::of("copy_kinds", "Copies on the GPU", &rows)
        .without_missing(&["bytes"])
        .when_empty("The file has no copy that the copy engines of a GPU ran (Memcpy). Kernels that copy are among the kernels.");
    section.tables.push(kinds.preview(PREVIEW));
    let rows: Vec<PurposeRow> = copies
        .copy_diag
        .iter()
        .map(|(purpose, sum)| PurposeRow {
            purpose: *purpose,
            count: sum.count,
            cpu_ns: sum.cpu_ns,
            device_ns: sum.device_ns,
        })
        .collect();
    let purposes = Table::of("copy_purposes", "What aten::copy_ is for", &rows)
        .when_empty("The file has no aten::copy_.");
    section.tables.push(purposes.preview(PREVIEW));
    let made = places.iter().flat_map(|(purpose, places)| {
        places.iter().map(|made| CopyPlaceRow { purpose: *purpose, made: made.clone() })
    });
    let mut rows: Vec<CopyPlaceRow> = made.collect();
    trace::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.made.device_ns));
    let table = Table::of("copy_places", "Where aten::copy_ is called", &rows)
        .when_empty("No aten::copy_ has GPU work.");
    section.tables.push(table.preview(PREVIEW));
    section
}
