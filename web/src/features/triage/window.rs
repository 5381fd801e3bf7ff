//! The slices around an instance as lanes, ready to be drawn: no slice of a lane covers another.

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
            "" => "stream not recorded".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use kinetoscope::WindowLane;

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
        assert_eq!(window().table().n_rows(), 4);
    }
}
