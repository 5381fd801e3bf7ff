//! Where tracks and lanes are, from the top.

use std::collections::BTreeSet;

use kinetoscope::lanes::{Kind, Lanes};

/// px of the picture of the whole trace above the lanes.
pub(super) const MINIMAP: f32 = 28.0;
/// px of the axis below that.
const AXIS: f32 = 22.0;
/// px above the lanes.
pub(super) const TOP: f32 = MINIMAP + AXIS;
/// px of a track's head.
pub(super) const HEAD: f32 = 20.0;
/// px of a device's idle time below the axis with its head, and how many devices have it.
pub(super) const BAND: f32 = HEAD + 18.0;
pub(super) const MOST_BANDS: usize = 3;
/// px of a lane of steps and streams; of a thread, whose lanes are many.
const WIDE: f32 = 22.0;
const NARROW: f32 = 16.0;
/// px of the memory of a device and of a counter, whose level is a height.
const HIGH: f32 = 40.0;
/// px between tracks.
const GAP: f32 = 6.0;

/// A head or a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// px from the top of all lanes.
    pub(super) y: f32,
    pub(super) height: f32,
    pub(super) track: usize,
    /// `None` of a head.
    pub(super) lane: Option<usize>,
}

/// All rows, from top to bottom.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) rows: Vec<Row>,
    /// px of all.
    pub(super) height: f32,
}

impl Layout {
    /// Heads of the tracks of an order, and the lanes of those that are not folded. A folded track shows its first lane.
    pub(super) fn of(lanes: &Lanes, order: &[usize], folded: &BTreeSet<usize>) -> Self {
        let mut found = Self::default();
        for (track, of) in order.iter().filter_map(|at| Some((*at, lanes.tracks.get(*at)?))) {
            found.push(track, None, HEAD);
            let height = match of.kind {
                Kind::Thread => NARROW,
                Kind::Memory | Kind::Counter => HIGH,
                _ => WIDE,
            };
            let n = if folded.contains(&track) { of.lanes.len().min(1) } else { of.lanes.len() };
            (0..n).for_each(|lane| found.push(track, Some(lane), height));
            found.height += GAP;
        }
        found
    }

    fn push(&mut self, track: usize, lane: Option<usize>, height: f32) {
        self.rows.push(Row { y: self.height, height, track, lane });
        self.height += height;
    }

    /// The tracks that are shown, from the top.
    pub(super) fn tracks(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().filter(|row| row.lane.is_none()).map(|row| row.track)
    }

    /// The row of a lane, if it is shown.
    pub(super) fn lane(&self, track: usize, lane: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.track == track && row.lane == Some(lane))
    }

    /// The row of a track's head, if it is shown.
    pub(super) fn head(&self, track: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.track == track && row.lane.is_none())
    }

    /// The rows between two heights.
    pub(super) fn between(&self, from: f32, to: f32) -> &[Row] {
        let first = self.rows.partition_point(|row| row.y + row.height <= from);
        let last = self.rows.partition_point(|row| row.y < to);
        &self.rows[first..last.max(first)]
    }

    /// The row at a height.
    pub(super) fn at(&self, y: f32) -> Option<&Row> {
        self.between(y, y + 0.5).first().filter(|row| row.y <= y)
    }
}
