//! Why each device stands still, as a lane: the parts of its wall time, which another program has computed.

use report::palette;
use report::{Cell, Column, Row as TableRow, Table, Unit};
use serde::{Deserialize, Serialize};
use timeline::intervals::Interval;
use timeline::percent;

use crate::lane::Lane;

/// Pieces of idle time that are added up in each frame.
const MOST_ADDED: usize = 20_000;

/// The wall time of a device as it goes from one program to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The device: "GPU 0".
    pub label: String,
    /// Its parts.
    pub parts: Vec<RecordedPart>,
}

/// A part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPart {
    /// Its id, which the palette knows.
    id: String,
    /// What a person reads.
    title: String,
    /// Whether the device stands still.
    is_idle: bool,
    /// Its times: how long after the end of the one before each begins, and how long it is, in ns. Small numbers take few bytes.
    times: Vec<(i64, i64)>,
}

impl RecordedPart {
    /// A part with its times on the clock of the trace, sorted and disjoint.
    #[must_use]
    pub fn new(id: &str, title: &str, is_idle: bool, times: &[Interval]) -> Self {
        let mut last_ns = 0;
        let after = |(from, until): &Interval| {
            let begun = from.saturating_sub(last_ns);
            last_ns = *until;
            (begun, until.saturating_sub(*from))
        };
        let times = times.iter().map(after).collect();
        Self { id: id.to_owned(), title: title.to_owned(), is_idle, times }
    }

    /// The times, counted from `origin_ns`.
    fn intervals(&self, origin_ns: i64) -> impl Iterator<Item = Interval> + '_ {
        let mut last_ns = 0_i64.saturating_sub(origin_ns);
        self.times.iter().map(move |(after, ns)| {
            let from = last_ns.saturating_add(*after);
            last_ns = from.saturating_add(*ns);
            (from, last_ns)
        })
    }
}

/// The wall time of a device.
#[derive(Clone, Debug, Default)]
pub struct Band {
    /// The device.
    pub label: String,
    /// When it stands still. The slices are no events: [`Lane::row`] is the number of the part.
    pub idle: Lane,
    /// When it works, in the same way.
    work: Lane,
    /// Titles of the parts.
    titles: Vec<String>,
}

impl Band {
    /// Reads one; its times are then counted from `origin_ns`, as those of the lanes.
    #[must_use]
    pub fn of(recorded: &Recorded, origin_ns: i64) -> Self {
        let lane = |is_idle: bool| {
            let mut all: Vec<(Interval, u32)> = Vec::new();
            for (number, part) in (0..).zip(&recorded.parts) {
                if part.is_idle == is_idle {
                    all.extend(part.intervals(origin_ns).map(|times| (times, number)));
                }
            }
            trace::sort(&mut all);
            let mut lane = Lane::default();
            let mut last_ns = i64::MIN;
            for ((from, until), number) in all {
                // (Parts share no moment; a lane relies on it.)
                if from < last_ns || until <= from {
                    continue;
                }
                let id = recorded.parts.get(number as usize).map_or("", |part| &part.id);
                lane.push(number, from, until, palette::paint(id).hue);
                last_ns = until;
            }
            lane
        };
        Self {
            label: recorded.label.clone(),
            idle: lane(true),
            work: lane(false),
            titles: recorded.parts.iter().map(|part| part.title.clone()).collect(),
        }
    }

    /// Whether nothing is known of a time: it lies outside of the window of which the wall time is.
    #[must_use]
    pub fn is_outside(&self, from: f64, to: f64) -> bool {
        self.idle.slices(from, to).is_empty() && self.work.slices(from, to).is_empty()
    }

    /// What a piece of idle time is.
    #[must_use]
    pub fn title(&self, at: usize) -> &str {
        self.titles.get(self.idle.row(at) as usize).map_or("", String::as_str)
    }

    /// When the device works again after a piece of idle time that ends at `end_ns`.
    #[must_use]
    pub fn until(&self, piece: usize, end_ns: i64) -> i64 {
        let later = (piece + 1..self.idle.len()).map(|at| self.idle.times(at));
        later
            .scan(end_ns, |last, (start, end)| {
                let goes_on = start == *last;
                *last = end;
                goes_on.then_some(end)
            })
            .last()
            .unwrap_or(end_ns)
    }

    /// The whole time around a piece in which the device stands still, whatever the causes.
    #[must_use]
    pub fn whole(&self, piece: usize) -> Interval {
        let (mut start, end) = self.idle.times(piece);
        for at in (0..piece).rev() {
            let (before, over) = self.idle.times(at);
            if over != start {
                break;
            }
            start = before;
        }
        (start, self.until(piece, end))
    }

    /// The first time of at least `least_ns` in which the device stands still, from a moment on, whatever the causes.
    #[must_use]
    pub fn after(&self, ns: f64, least_ns: f64) -> Option<Interval> {
        let mut at =
            self.idle.slices(ns, f64::MAX).find(|at| self.idle.times(*at).0 as f64 >= ns)?;
        while at < self.idle.len() {
            let (start, end) = self.idle.times(at);
            let until = self.until(at, end);
            if (until - start) as f64 >= least_ns {
                return Some((start, until));
            }
            while at < self.idle.len() && self.idle.times(at).1 <= until {
                at += 1;
            }
        }
        None
    }

    /// The last such time that is over at a moment.
    #[must_use]
    pub fn before(&self, ns: f64, least_ns: f64) -> Option<Interval> {
        let mut rest =
            self.idle.slices(f64::MIN, ns).rev().filter(|at| self.idle.times(*at).1 as f64 <= ns);
        let mut open: Option<Interval> = None;
        loop {
            let next = rest.next().map(|at| self.idle.times(at));
            match (open, next) {
                (Some((start, until)), Some((from, end))) if end == start => {
                    open = Some((from, until))
                }
                (Some((start, until)), _) if (until - start) as f64 >= least_ns => {
                    return Some((start, until));
                }
                (_, None) => return None,
                (_, Some(next)) => open = Some(next),
            }
        }
    }

    /// The parts of the idle time between two moments with the most time; empty where that would take long to add up.
    #[must_use]
    pub fn largest(&self, from: f64, to: f64) -> Vec<(&str, i64)> {
        let own = self.idle.slices(from, to);
        if own.len() > MOST_ADDED {
            return Vec::new();
        }
        let named = self.titles.iter().map(String::as_str).zip(self.sums(&[&self.idle], from, to));
        let mut named: Vec<(&str, i64)> = named.filter(|(_, ns)| *ns > 0).collect();
        trace::sort_by_key(&mut named, |(_, ns)| std::cmp::Reverse(*ns));
        named
    }

    /// The time of each part between two moments.
    fn sums(&self, lanes: &[&Lane], from: f64, to: f64) -> Vec<i64> {
        let mut sums = vec![0_i64; self.titles.len()];
        for lane in lanes {
            for at in lane.slices(from, to) {
                let (start, end) = lane.times(at);
                let ns = ((end as f64).min(to) - (start as f64).max(from)).max(0.0);
                if let Some(sum) = sums.get_mut(lane.row(at) as usize) {
                    *sum = sum.saturating_add(ns as i64);
                }
            }
        }
        sums
    }

    /// The parts between two moments, in the order of the bar.
    fn within(&self, from: i64, to: i64) -> Vec<PartRow> {
        let sums = self.sums(&[&self.work, &self.idle], from as f64, to as f64);
        let span = to.saturating_sub(from);
        let rows = sums.into_iter().zip(&self.titles).filter(|(ns, _)| *ns > 0);
        rows.map(|(total_ns, title)| PartRow {
            device: self.label.clone(),
            part: title.clone(),
            total_ns,
            share_pct: percent(total_ns, span),
        })
        .collect()
    }
}

/// Where the time of a range goes; `None` where no device's is known in it.
#[must_use]
pub(crate) fn table(bands: &[Band], from: i64, to: i64) -> Option<Table> {
    let rows: Vec<PartRow> = bands.iter().flat_map(|band| band.within(from, to)).collect();
    let table = Table::of("range-wall", "Where the time of the range goes", &rows);
    (!rows.is_empty()).then(|| if bands.len() > 1 { table } else { table.without("device") })
}

/// A part of the wall time in a range.
struct PartRow {
    device: String,
    part: String,
    total_ns: i64,
    share_pct: f64,
}

impl TableRow for PartRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "The GPU.",
            cell: |row| row.device.as_str().into(),
        },
        Column {
            key: "part",
            title: "Part",
            unit: Unit::Text,
            help: "What the device does, or why it is idle: the parts of the bar in Overview.",
            cell: |row| row.part.as_str().into(),
        },
        Column {
            key: "total_ns",
            title: "Time",
            unit: Unit::Time,
            help: "Time of the range.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "share_pct",
            title: "Share of the range",
            unit: Unit::Percent,
            help: "Time in percent of the range. What is missing lies outside the steps, or outside the recorded work of the device.",
            cell: |row| Cell::Percent(row.share_pct),
        },
    ];
}
