//! The worst places of a trace, as lanes before and after.

use catalog::RawKind;
use std::collections::BTreeMap;

use repair::{CrossingGroup, RepairPlan};
use report::units;
use serde::{Deserialize, Serialize};
use trace::{Flags, Phase, Row, Trace};

use crate::repair_rows::lane_name;

/// How many places are drawn.
const N_PLACES: usize = 5;
/// Slices drawn in one place.
const N_SLICES: usize = 400;

/// A stretch of time on some lanes, before and after the repair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where it is and what happens there.
    pub title: String,
    /// A slice that the repair moves there: its event, by the number in the file.
    pub event: u32,
    /// When it starts, on the file's clock, in ns.
    pub start_ns: i64,
    /// How long it is, in ns.
    pub dur_ns: i64,
    /// Lanes as Perfetto v51 to v56 show them, with what they drop.
    pub before: Vec<DrawnLane>,
    /// Lanes of the repaired file.
    pub after: Vec<DrawnLane>,
}

/// A row of slices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DrawnLane {
    /// Name of the thread.
    pub name: String,
    /// Its slices, from left to right.
    pub slices: Vec<DrawnSlice>,
}

/// What becomes of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It stays where it is.
    #[default]
    Kept,
    /// Perfetto v51 to v56 drop it.
    Dropped,
    /// The repair gives it another lane.
    Moved,
    /// It is the one that the drawing is about.
    Chosen,
}

/// A slice in a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DrawnSlice {
    /// Its name.
    pub name: String,
    /// Category id, for the colour; empty for CPU slices.
    pub category: String,
    /// Start, relative to the place's, in ns. Negative when it starts before the place.
    pub start_ns: i64,
    /// Duration in ns.
    pub dur_ns: i64,
    /// How deep it is nested in its lane.
    pub depth: u32,
    /// What becomes of it.
    pub fate: Fate,
}

/// The places with the most crossing pairs.
pub(crate) fn worst(trace: &Trace, plan: &RepairPlan) -> Vec<Place> {
    plan.crossings.iter().take(N_PLACES).filter_map(|group| place(trace, plan, group)).collect()
}

fn place(trace: &Trace, plan: &RepairPlan, group: &CrossingGroup) -> Option<Place> {
    let first = *group.leaving.first()?;
    let track = trace.track(first);
    // The window shows where the first pair lies over each other, with twice as much on either side.
    // (Sorted lists, as collecting into a set compiles another sort.)
    let rows = sorted(group.leaving.iter().chain(&group.staying));
    let (from, to) = crossing_window(trace, group);
    let margin = to.saturating_sub(from).saturating_mul(2).max(1_000);
    let (from, to) = (from.saturating_sub(margin), to.saturating_add(margin));
    let drawn: Vec<Row> = trace
        .rows()
        .filter(|row| trace.phase(*row) == Phase::Complete && trace.track(*row) == track)
        .filter(|row| trace.flags(*row).has(Flags::HAS_DUR) && trace.flags(*row).has(Flags::HAS_TS))
        .filter(|row| {
            rows.binary_search(row).is_ok() || (trace.ts_ns(*row) < to && trace.end_ns(*row) > from)
        })
        .take(N_SLICES)
        .collect();
    let dropped = sorted(plan.dropped.iter());
    let home = trace
        .track_info(track)
        .name
        .map(|name| trace.strings.get(name).trim().to_owned())
        .unwrap_or_else(|| format!("tid {}", trace.track_info(track).tid.display(&trace.strings)));
    let slice = |row: Row, fate: Fate| DrawnSlice {
        name: trace.name_text(row).to_owned(),
        category: category(trace, row).to_owned(),
        start_ns: trace.ts_ns(row) - from,
        dur_ns: trace.dur_ns(row),
        depth: 0,
        fate,
    };
    let before = drawn
        .iter()
        .map(|row| (*row, dropped.binary_search(row).is_ok()))
        .map(|(row, is_dropped)| slice(row, if is_dropped { Fate::Dropped } else { Fate::Kept }))
        .collect();
    let mut after: BTreeMap<Option<u32>, Vec<DrawnSlice>> = BTreeMap::new();
    after.entry(None).or_default();
    for row in &drawn {
        let tid = plan.edit(*row).and_then(|edit| edit.tid);
        let fate = if tid.is_some() { Fate::Moved } else { Fate::Kept };
        after.entry(tid).or_default().push(slice(*row, fate));
    }
    let lane_of = |tid: Option<u32>| match tid {
        None => home.clone(),
        Some(tid) => plan
            .lanes
            .iter()
            .find(|lane| lane.tid == tid)
            .map_or_else(|| format!("tid {tid}"), |lane| lane_name(trace, lane)),
    };
    Some(Place {
        title: format!(
            "{home}: {} ({} in this group)",
            units::plural(group.pairs as u64, "crossing pair", "crossing pairs"),
            units::plural(rows.len() as u64, "slice", "slices"),
        ),
        event: first,
        start_ns: i64::try_from(trace.origin_ns + i128::from(from)).unwrap_or(from),
        dur_ns: to - from,
        before: vec![nested(DrawnLane { name: home.clone(), slices: before })],
        after: after
            .into_iter()
            .map(|(tid, slices)| nested(DrawnLane { name: lane_of(tid), slices }))
            .collect(),
    })
}

/// Events in file order, each once.
fn sorted<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.copied().collect();
    trace::sort_numbers(&mut rows, &|a, b| a.cmp(&b));
    rows.dedup();
    rows
}

/// The stretch in which the first crossing pair of the group lies over each other.
fn crossing_window(trace: &Trace, group: &CrossingGroup) -> (i64, i64) {
    for leaving in group.leaving.iter().take(8) {
        for staying in group.staying.iter().take(64) {
            let (a, b) = if trace.ts_ns(*leaving) < trace.ts_ns(*staying) {
                (*leaving, *staying)
            } else {
                (*staying, *leaving)
            };
            if trace.ts_ns(b) < trace.end_ns(a) && trace.end_ns(b) > trace.end_ns(a) {
                return (trace.ts_ns(b), trace.end_ns(a));
            }
        }
    }
    // Only the importer's arithmetic makes these cross: show where the first of them ends.
    let rows = || group.leaving.iter().chain(&group.staying);
    let from = rows().map(|row| trace.ts_ns(*row)).min().unwrap_or_default();
    (from, rows().map(|row| trace.end_ns(*row)).min().unwrap_or(from))
}

/// Sorts a lane's slices and gives each its depth.
fn nested(mut lane: DrawnLane) -> DrawnLane {
    trace::sort_by_key(&mut lane.slices, |slice| (slice.start_ns, std::cmp::Reverse(slice.dur_ns)));
    let mut open: Vec<i64> = Vec::new();
    for slice in &mut lane.slices {
        open.retain(|end| *end > slice.start_ns);
        // A dropped slice is drawn where it would have been.
        slice.depth = open.len() as u32;
        if slice.fate != Fate::Dropped {
            open.push(slice.start_ns.saturating_add(slice.dur_ns));
        }
    }
    lane
}

/// The category a slice is drawn in: the kernel's, or nothing for CPU slices.
fn category(trace: &Trace, row: Row) -> &'static str {
    let flags = trace.flags(row);
    let raw = if flags.has(Flags::KERNEL) {
        RawKind::Kernel
    } else if flags.has(Flags::GPU_MEMORY) {
        RawKind::Memcpy
    } else {
        return "";
    };
    catalog::classify(raw, trace.name_text(row), catalog::Platform::Unknown).category.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_that_ends_after_all_time_is_drawn() {
        let slice = |start_ns, dur_ns| DrawnSlice {
            name: "a".to_owned(),
            category: String::new(),
            start_ns,
            dur_ns,
            depth: 0,
            fate: Fate::Kept,
        };
        let slices = vec![slice(i64::MAX - 1, 2), slice(0, i64::MAX)];
        let lane = nested(DrawnLane { name: String::new(), slices });
        assert_eq!(lane.slices.iter().map(|slice| slice.depth).collect::<Vec<_>>(), [0, 1]);
    }
}
