//! Memory over events or time at any zoom: what is drawn in each column of a window.

use std::collections::HashMap;

use report::palette;

use crate::births::Births;
use crate::model::{Action, Event, Snapshot};
use crate::replay::{self, Levels, Replay};
use crate::site::Sites;

/// Call sites with a layer of their own: those with most bytes at the peak.
pub(crate) const SITES: usize = palette::SERIES;
/// The layers below those of call sites.
pub(crate) const BEFORE: usize = 0;
pub(crate) const OTHER: usize = 1;
pub(crate) const FIRST_SITE: usize = 2;
/// All layers.
const LAYERS: usize = FIRST_SITE + SITES;
/// The sums of the layers are kept before every event with a multiple of this number.
const KEPT: usize = 256;

/// Bytes by layer, from the bottom.
pub type Stack = [i64; LAYERS];

/// What an axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Events.
    #[default]
    Event,
    /// µs since the first event.
    Time,
}

/// What one column shows: the moment with most requested bytes among those that fall into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// It is the state before this event.
    pub at: usize,
    /// The most reserved bytes of the column.
    pub reserved: i64,
    /// Requested bytes by layer at that moment.
    pub layers: Stack,
}

/// A layer of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// A call site, or what else it sums up.
    pub label: String,
    /// Its category in the palette.
    pub category: &'static str,
}

/// A change of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// When; `None` before the recording.
    pub(crate) time_ns: Option<i64>,
    /// Which layer.
    pub(crate) layer: u8,
    /// By how much.
    pub(crate) bytes: i64,
    /// Reserved bytes after it.
    pub(crate) reserved: i64,
}

/// A moment that is marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// It is the state before this event.
    pub at: usize,
    /// Whether memory ran out there; else it is the peak or a step's end.
    pub is_oom: bool,
    /// What it says.
    pub text: String,
}

/// Memory of a device over its recorded events.
#[derive(Clone, Debug)]
pub struct Chart {
    layers: Vec<Layer>,
    levels: Levels,
    requested: Tops,
    reserved: Tops,
    /// Per event, its layer and by how much it changes.
    steps: Vec<(u8, i64)>,
    kept: Vec<Stack>,
    /// Per event, µs since the first one; empty where the file has no times, or times that go back.
    times: Vec<i64>,
    marks: Vec<Mark>,
}

impl Chart {
    /// The chart of a device; `None` where it has no events, or events that contradict the segments.
    #[must_use]
    pub fn of(snapshot: &Snapshot, device: i64) -> Option<Self> {
        let sites = Sites::of(snapshot);
        let trace = snapshot.trace(device);
        let (replay, levels) = replay::replay(snapshot, device, &sites);
        (replay.timeline_usable && replay.trace_matches_snapshot)
            .then(|| Self::new(trace, levels, &replay, &sites))
    }

    /// A chart of changes, in file order.
    pub(crate) fn of_changes(layers: Vec<Layer>, changes: &[Change]) -> Self {
        let mut requested = vec![0_i64];
        let mut level = 0_i64;
        for change in changes {
            level = level.saturating_add(change.bytes);
            requested.push(level);
        }
        let first_reserved = changes.first().map_or(0, |change| change.reserved);
        let reserved = std::iter::once(first_reserved);
        let reserved = reserved.chain(changes.iter().map(|change| change.reserved)).collect();
        let steps: Vec<(u8, i64)> = changes.iter().map(|of| (of.layer, of.bytes)).collect();
        let first = changes.iter().find_map(|change| change.time_ns).unwrap_or_default();
        // What was there before counts as there from the first time on.
        let us = |change: &Change| change.time_ns.map_or(0, |at| at.saturating_sub(first) / 1000);
        let times: Vec<i64> = changes.iter().map(us).collect();
        let is_usable = times.is_sorted() && times.last().is_some_and(|last| *last > 0);
        let levels = Levels { requested, reserved };
        let tops = Tops::of(&levels.requested);
        let peak = tops.highest(&levels.requested, 0..levels.requested.len());
        let most = levels.requested.get(peak).copied().unwrap_or_default();
        let text = format!("Peak: {} before row {peak}", report::units::bytes(most.max(0) as u64));
        Self {
            layers,
            requested: tops,
            reserved: Tops::of(&levels.reserved),
            levels,
            kept: kept(&steps, [0; LAYERS]),
            steps,
            times: if is_usable { times } else { Vec::new() },
            marks: vec![Mark { at: peak, is_oom: false, text }],
        }
    }

    /// The chart of events that are already replayed.
    pub(crate) fn new(trace: &[Event], levels: Levels, replay: &Replay, sites: &Sites) -> Self {
        let top: Vec<String> =
            replay.peak_sites.iter().take(SITES).map(|row| row.site.clone()).collect();
        let of_site: HashMap<usize, usize> = (0..sites.len())
            .filter_map(|site| {
                let at = top.iter().position(|name| name == sites.name(site))?;
                Some((site, FIRST_SITE + at))
            })
            .collect();
        let layer_of =
            |event: &Event| of_site.get(&sites.site(event.stack)).copied().unwrap_or(OTHER);
        let births = Births::of(trace);
        let step = |(at, event): (usize, &Event)| match event.action {
            Action::Alloc => (layer_of(event) as u8, event.size),
            Action::FreeCompleted => match births.of_free(at).and_then(|birth| trace.get(birth)) {
                Some(birth) => (layer_of(birth) as u8, birth.size.saturating_neg()),
                None => (BEFORE as u8, event.size.saturating_neg()),
            },
            _ => (OTHER as u8, 0),
        };
        let steps: Vec<(u8, i64)> = trace.iter().enumerate().map(step).collect();
        let mut sums = [0; LAYERS];
        sums[BEFORE] = replay.start_requested;
        let named = [("allocated before the first event", ""), ("other call sites", "other")];
        let named = named.map(|(label, category)| Layer { label: label.to_owned(), category });
        let own = top.into_iter().enumerate();
        let own = own.map(|(at, label)| Layer { label, category: palette::series(at) });
        Self {
            layers: named.into_iter().chain(own).collect(),
            requested: Tops::of(&levels.requested),
            reserved: Tops::of(&levels.reserved),
            levels,
            kept: kept(&steps, sums),
            steps,
            times: times(trace),
            marks: marks(trace, replay),
        }
    }

    /// Stacks it by other layers: the layer and the change of every event, and the bytes before the first one.
    pub(crate) fn stack_by(&mut self, layers: Vec<Layer>, steps: Vec<(u8, i64)>, start: Stack) {
        self.kept = kept(&steps, start);
        (self.layers, self.steps) = (layers, steps);
    }

    /// The layers, from the bottom.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Which layers have bytes at any moment.
    #[must_use]
    pub fn used_layers(&self) -> [bool; LAYERS] {
        let mut used = self.stack(0).map(|bytes| bytes > 0);
        for (layer, bytes) in &self.steps {
            if let Some(used) = used.get_mut(usize::from(*layer)) {
                *used |= *bytes > 0;
            }
        }
        used
    }

    /// The peak and where memory ran out.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// States: one before each event, and one after the last.
    #[must_use]
    pub fn len(&self) -> usize {
        self.levels.requested.len()
    }

    /// Whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether the events have times.
    #[must_use]
    pub fn has_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// Where the axis ends, in its units; it begins at 0.
    #[must_use]
    pub fn end(&self, by: By) -> f64 {
        match by {
            By::Event => self.len() as f64,
            By::Time => self.times.last().copied().unwrap_or_default().max(1) as f64,
        }
    }

    /// Where a state lies on the axis.
    #[must_use]
    pub fn place(&self, at: usize, by: By) -> f64 {
        match by {
            By::Event => at as f64,
            By::Time => {
                let before = at.checked_sub(1).and_then(|before| self.times.get(before));
                before.copied().unwrap_or_default() as f64
            }
        }
    }

    /// The states that fall between two places of the axis: at least one.
    #[must_use]
    pub fn states(&self, from: f64, to: f64, by: By) -> std::ops::Range<usize> {
        let last = self.len().saturating_sub(1);
        let (first, end) = match by {
            By::Event => (from.max(0.0) as usize, to.max(0.0) as usize),
            By::Time => {
                let upto = |place: f64, at_it: bool| {
                    self.times.partition_point(|time| {
                        let time = *time as f64;
                        time < place || at_it && time == place
                    })
                };
                // (The first and the last moment have several states, where events have one time.)
                let first = if from <= 0.0 { 0 } else { upto(from, true) };
                let end = if to >= self.end(by) { self.len() } else { upto(to, false) + 1 };
                (first, end)
            }
        };
        let first = first.min(last);
        first..end.clamp(first + 1, last + 1)
    }

    /// Requested and reserved bytes before an event.
    #[must_use]
    pub fn level(&self, at: usize) -> (i64, i64) {
        let of = |levels: &[i64]| levels.get(at).copied().unwrap_or_default();
        (of(&self.levels.requested), of(&self.levels.reserved))
    }

    /// The state with most requested bytes among some, the first of equal ones.
    #[must_use]
    pub fn highest(&self, states: std::ops::Range<usize>) -> usize {
        self.requested.highest(&self.levels.requested, states)
    }

    /// The most reserved bytes of some states.
    #[must_use]
    pub fn most_reserved(&self, states: std::ops::Range<usize>) -> i64 {
        self.level(self.reserved.highest(&self.levels.reserved, states)).1
    }

    /// Requested bytes by layer before an event.
    #[must_use]
    pub fn stack(&self, at: usize) -> Stack {
        let piece = (at / KEPT).min(self.kept.len().saturating_sub(1));
        let mut sums = self.kept.get(piece).copied().unwrap_or_default();
        let after = self.steps.get(piece * KEPT..at.min(self.steps.len())).unwrap_or_default();
        after.iter().for_each(|step| add(&mut sums, *step));
        sums
    }

    /// What each of `n` columns of equal width between two places shows.
    #[must_use]
    pub fn columns(&self, from: f64, to: f64, n: usize, by: By) -> Vec<Column> {
        let place = |column: usize| from + (to - from) * column as f64 / n as f64;
        let mut last: Option<Column> = None;
        (0..n)
            .map(|column| {
                let states = self.states(place(column), place(column + 1), by);
                let at = self.highest(states.clone());
                // (Where a column is narrower than an event, its neighbours show the same state.)
                let layers = match last.filter(|last| last.at == at) {
                    Some(last) => last.layers,
                    None => self.stack(at),
                };
                let column = Column { at, reserved: self.most_reserved(states), layers };
                last = Some(column);
                column
            })
            .collect()
    }
}

/// The sums before every event whose number is a multiple of [`KEPT`].
fn kept(steps: &[(u8, i64)], mut sums: Stack) -> Vec<Stack> {
    let mut kept = Vec::with_capacity(steps.len() / KEPT + 1);
    for piece in steps.chunks(KEPT) {
        kept.push(sums);
        piece.iter().for_each(|step| add(&mut sums, *step));
    }
    if kept.is_empty() {
        kept.push(sums);
    }
    kept
}

fn add(sums: &mut Stack, (layer, bytes): (u8, i64)) {
    if let Some(sum) = sums.get_mut(usize::from(layer)) {
        *sum = sum.saturating_add(bytes);
    }
}

/// µs since the first event, if all events have a time and none goes back.
fn times(trace: &[Event]) -> Vec<i64> {
    let all: Option<Vec<i64>> = trace.iter().map(Event::time).collect();
    let all = all.unwrap_or_default();
    let first = all.first().copied().unwrap_or_default();
    let is_usable = all.is_sorted() && all.last().is_some_and(|last| *last > first);
    if is_usable { all.into_iter().map(|time| time - first).collect() } else { Vec::new() }
}

fn marks(trace: &[Event], replay: &Replay) -> Vec<Mark> {
    let size = |of: i64| report::units::bytes(of.max(0) as u64);
    let peak = Mark {
        at: replay.shown.index,
        is_oom: false,
        text: format!(
            "Peak: {} before event {}",
            size(replay.peak_requested),
            report::units::count(replay.shown.index as u64)
        ),
    };
    let ooms = trace.iter().enumerate().filter(|(_, event)| event.action == Action::Oom);
    let oom = |(at, event): (usize, &Event)| Mark {
        at,
        is_oom: true,
        text: format!("Event {at}: no memory for {}", size(event.size)),
    };
    std::iter::once(peak).chain(ooms.map(oom)).collect()
}

/// Entries of a level below one entry of the next.
const FAN: usize = 32;

/// Where the highest of many levels is, for any range of them: per level of the pyramid, the index of the highest among `FAN`
/// entries below.
#[derive(Clone, Debug, Default)]
struct Tops(Vec<Vec<u32>>);

impl Tops {
    fn of(levels: &[i64]) -> Self {
        let higher = |best: u32, at: u32| {
            let level = |at: u32| levels.get(at as usize);
            if level(at) > level(best) { at } else { best }
        };
        let mut pyramid: Vec<Vec<u32>> = Vec::new();
        let count = u32::try_from(levels.len()).unwrap_or(u32::MAX);
        let mut below: Vec<u32> = (0..count).collect();
        while below.len() > FAN {
            let top = |piece: &[u32]| piece.iter().copied().reduce(higher).unwrap_or_default();
            below = below.chunks(FAN).map(top).collect();
            pyramid.push(below.clone());
        }
        Self(pyramid)
    }

    /// The first of the highest levels in a range.
    fn highest(&self, levels: &[i64], range: std::ops::Range<usize>) -> usize {
        let (mut at, end) = (range.start, range.end.min(levels.len()));
        let mut best = at;
        while at < end {
            // The largest block that begins here and ends in the range.
            let mut size = 1;
            let mut found = at;
            for blocks in &self.0 {
                let next = size * FAN;
                if at % next != 0 || at + next > end {
                    break;
                }
                size = next;
                found = blocks.get(at / next).map_or(at, |top| *top as usize);
            }
            if levels.get(found) > levels.get(best) {
                best = found;
            }
            at += size;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_a_range_is_that_of_a_search() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 40
        };
        let levels: Vec<i64> = (0..5000).map(|_| (next() % 97) as i64).collect();
        let tops = Tops::of(&levels);
        for _ in 0..500 {
            let (a, b) = (next() as usize % levels.len(), next() as usize % levels.len());
            let range = a.min(b)..a.max(b) + 1;
            let search = range.clone().max_by_key(|at| (levels[*at], std::cmp::Reverse(*at)));
            assert_eq!(Some(tops.highest(&levels, range.clone())), search, "{range:?}");
        }
    }
}
