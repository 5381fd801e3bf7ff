//! What ran around an instance, ready to be drawn: lanes in which nothing lies over anything else.

use kinetoscope::report::{Cell, Column, Row, Table, Unit};

use crate::protocol::{DrawnLane, DrawnSlice, Fate, OverlapWindow, WindowSlice};

/// The streams of a window as lanes, times relative to its begin.
#[must_use]
pub fn lanes(window: &OverlapWindow) -> Vec<DrawnLane> {
    let lanes = window.lanes.iter().map(|lane| {
        // Where each level of the lane is free again.
        let mut ends_ns: Vec<i64> = Vec::new();
        let slices = lane.slices.iter().map(|slice| {
            let free = ends_ns.iter().position(|end_ns| *end_ns <= slice.start_ns);
            let depth = free.unwrap_or_else(|| {
                ends_ns.push(i64::MIN);
                ends_ns.len() - 1
            });
            ends_ns[depth] = slice.end_ns();
            let chosen = slice.row == window.representative;
            DrawnSlice {
                name: label(slice),
                category: slice.category.clone(),
                start_ns: slice.start_ns.saturating_sub(window.start_ns),
                dur_ns: slice.dur_ns,
                depth: depth as u32,
                fate: if chosen { Fate::Chosen } else { Fate::Kept },
            }
        });
        let slices = slices.collect();
        let name = match lane.stream.as_str() {
            "" => "no stream known".to_owned(),
            stream => format!("stream {stream}"),
        };
        DrawnLane { name, slices }
    });
    lanes.collect()
}

/// `A gemm`: the letter of the list and the name.
fn label(slice: &WindowSlice) -> String {
    match slice.letter {
        Some(letter) => format!("{letter} {}", slice.name),
        None => slice.name.clone(),
    }
}

/// Five moments of the window, relative to the begin of the instance, in ns.
#[must_use]
pub fn ruler(window: &OverlapWindow) -> Vec<i64> {
    let slices = window.lanes.iter().flat_map(|lane| &lane.slices);
    let mut instance = slices.filter(|slice| slice.row == window.representative);
    let zero_ns = instance.next().map_or(window.start_ns, |slice| slice.start_ns);
    let dur_ns = window.end_ns.saturating_sub(window.start_ns);
    let moments = (0..=4).map(|quarter| i128::from(dur_ns) * quarter / 4);
    moments.map(|ns| window.start_ns.saturating_sub(zero_ns).saturating_add(ns as i64)).collect()
}

/// One slice of a window, in the table beside its drawing.
struct SliceRow<'a> {
    stream: &'a str,
    slice: &'a WindowSlice,
    from_ns: i64,
}

struct WindowRow {
    letter: String,
    kernel_name: String,
    category: String,
    stream: String,
    start_ns: i64,
    dur_ns: i64,
}

impl Row for WindowRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "letter",
            title: "Letter",
            unit: Unit::Text,
            help: "A is the instance itself, B to H the longest others; as in the drawing and in the text timeline.",
            cell: |row| row.letter.as_str().into(),
        },
        Column {
            key: "kernel_name",
            title: "Kernel",
            unit: Unit::Name,
            help: "What ran.",
            cell: |row| row.kernel_name.as_str().into(),
        },
        Column {
            key: "category",
            title: "Category",
            unit: Unit::Category,
            help: "What it does.",
            cell: |row| row.category.as_str().into(),
        },
        Column {
            key: "stream",
            title: "Stream",
            unit: Unit::Text,
            help: "Where it ran.",
            cell: |row| row.stream.as_str().into(),
        },
        Column {
            key: "start_ns",
            title: "Start",
            unit: Unit::Time,
            help: "From the begin of the window.",
            cell: |row| Cell::Ns(row.start_ns),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "How long it ran.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
    ];
}

/// The drawing as a table, for those who cannot see it and for copying.
#[must_use]
pub fn table(window: &OverlapWindow) -> Table {
    let slices = window.lanes.iter().flat_map(|lane| {
        let from_ns = window.start_ns;
        lane.slices.iter().map(move |slice| SliceRow { stream: &lane.stream, slice, from_ns })
    });
    let rows: Vec<WindowRow> = slices
        .map(|SliceRow { stream, slice, from_ns }| WindowRow {
            letter: slice.letter.map(String::from).unwrap_or_default(),
            kernel_name: slice.name.clone(),
            category: slice.category.clone(),
            stream: stream.to_owned(),
            start_ns: slice.start_ns.saturating_sub(from_ns),
            dur_ns: slice.dur_ns,
        })
        .collect();
    Table::of("window", "What ran around it", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::WindowLane;

    fn slice(row: u32, start_ns: i64, dur_ns: i64, letter: Option<char>) -> WindowSlice {
        WindowSlice {
            row,
            name: format!("k{row}"),
            category: "gemm".into(),
            start_ns,
            dur_ns,
            letter,
            before_window: false,
        }
    }

    fn window() -> OverlapWindow {
        let lane = |stream: &str, slices| WindowLane { stream: stream.into(), slices };
        OverlapWindow {
            device: "0".into(),
            representative: 2,
            start_ns: 1_000,
            end_ns: 1_400,
            file_start_ns: None,
            lanes: vec![
                lane("7", vec![slice(1, 900, 200, Some('B')), slice(2, 1_050, 100, Some('A'))]),
                lane("9", vec![slice(3, 1_100, 10, None), slice(4, 1_110, 10, None)]),
            ],
            n_left_out: 0,
        }
    }

    #[test]
    fn what_overlaps_on_a_stream_lies_on_levels_and_the_instance_is_marked() {
        let lanes = lanes(&window());
        let drawn: Vec<_> = lanes
            .iter()
            .flat_map(|lane| {
                lane.slices.iter().map(|of| (&*of.name, of.start_ns, of.depth, of.fate))
            })
            .collect();
        assert_eq!(
            drawn,
            [
                ("B k1", -100, 0, Fate::Kept),
                ("A k2", 50, 1, Fate::Chosen),
                ("k3", 100, 0, Fate::Kept),
                ("k4", 110, 0, Fate::Kept),
            ]
        );
        assert_eq!(lanes[0].name, "stream 7");
    }

    #[test]
    fn the_ruler_has_its_nought_at_the_instance() {
        assert_eq!(ruler(&window()), [-50, 50, 150, 250, 350]);
        assert_eq!(table(&window()).rows.len(), 4);
    }
}
