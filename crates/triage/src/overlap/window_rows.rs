//! The work around one instance as a table, for screen readers and for copying.

use report::{Cell, Column, Row, Table, Unit};

use super::window::{OverlapWindow, WindowSlice};
use analysis::columns;

/// One slice of a window.
struct SliceRow {
    stream: String,
    slice: WindowSlice,
    /// Begin of the window.
    from_ns: i64,
}

impl Row for SliceRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "letter",
            title: "Label",
            unit: Unit::Text,
            help: "A is the instance itself, B to H the longest of the others, as in the drawing and in the text timeline.",
            cell: |row| row.slice.letter.map(String::from).unwrap_or_default().into(),
        },
        columns::kernel_name("Kernel name.", |row| row.slice.name.as_str().into()),
        columns::category("What the kernel does.", |row| {
            analysis::words::category(&row.slice.category)
        }),
        columns::stream(|row| row.stream.as_str().into()),
        Column {
            key: "start_ns",
            title: "Start",
            unit: Unit::Time,
            help: "Time since the start of the window.",
            cell: |row| Cell::Ns(row.slice.start_ns.saturating_sub(row.from_ns)),
        },
        columns::dur_ns(|row| Cell::Ns(row.slice.dur_ns)),
    ];
}

impl OverlapWindow {
    /// Its slices, stream by stream.
    #[must_use]
    pub fn table(&self) -> Table {
        let from_ns = self.start_ns;
        let rows = self.lanes.iter().flat_map(|lane| {
            let row = move |slice: &WindowSlice| SliceRow {
                stream: lane.stream.clone(),
                slice: slice.clone(),
                from_ns,
            };
            lane.slices.iter().map(row)
        });
        Table::of("window", "What ran around it", &rows.collect::<Vec<_>>())
    }
}
