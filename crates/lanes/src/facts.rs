//! What is known about one slice, and a lane as a table.

use report::{Cell, Column, Row as TableRow, Section, Table, Unit, units};
use trace::{Row, Trace};

use crate::arrows::Arrows;
use crate::build::{Kind, Lanes, Spot};
use crate::told::Places;

/// Rows of a table of slices.
const MOST_ROWS: usize = 500;

/// A slice in a table.
struct Listed {
    name: String,
    raw_category: String,
    start_ns: i64,
    dur_ns: i64,
    event: u64,
}

/// A call of Python that leads to a place.
struct Call(String);

impl TableRow for Call {
    const COLUMNS: &'static [Column<Self>] = &[Column {
        key: "call",
        title: "Call",
        unit: Unit::Name,
        help: "File, line and function.",
        cell: |row| row.0.as_str().into(),
    }];
}

impl TableRow for Listed {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Name,
            help: "Name of the slice.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "raw_category",
            title: "Kind",
            unit: Unit::Text,
            help: "Category of the event in the file.",
            cell: |row| row.raw_category.as_str().into(),
        },
        Column {
            key: "start_ns",
            title: "Start",
            unit: Unit::Time,
            help: "Time from the first slice of the trace to its start.",
            cell: |row| Cell::Ns(row.start_ns),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "Duration in the file.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Number of the event in the file, from 0.",
            cell: |row| Cell::Count(row.event),
        },
    ];
}

impl Lanes {
    /// A slice in one sentence: what it is, how long and where.
    #[must_use]
    pub fn sentence(&self, trace: &Trace, spot: Spot) -> String {
        let (Some(row), Some((start, end))) = (self.row(spot), self.times(spot)) else {
            return String::new();
        };
        format!(
            "{}: {} at {} on {}.",
            trace.name_text(row),
            units::time(end - start),
            units::moment(start, end - start),
            self.tracks[spot.track].label
        )
    }

    /// What is known about a slice: where it was launched from, what it launched, and what encloses it.
    #[must_use]
    pub fn facts(&self, trace: &Trace, arrows: &Arrows, places: &Places, spot: Spot) -> Section {
        let mut section = Section::new("slice", "Selected slice");
        let Some(row) = self.row(spot) else { return section };
        section.intro.push(self.sentence(trace, spot));
        let mut of = spot;
        if let Some(launch) = arrows.launch_of(row) {
            section.intro.push(self.launched_after(trace, spot, launch));
            of = self.spot(trace, launch).unwrap_or(spot);
        } else if self.tracks[spot.track].kind == Kind::Stream {
            section.intro.push("The call that launched it is not in the file.".to_owned());
        } else {
            section.intro.extend(self.launched_within(trace, arrows, spot));
        }
        let mut around = self.around(of);
        if of != spot {
            around.insert(0, of);
        }
        let title = if of == spot { "Around it" } else { "Launched from" };
        if !around.is_empty() {
            let rows: Vec<_> =
                around.into_iter().filter_map(|spot| self.listed(trace, spot)).collect();
            section.tables.push(Table::of("around-slice", title, &rows));
        }
        if let Some(place) = places.place(row) {
            section.intro.insert(1, place.sentence());
            let calls: Vec<Call> = place.stack.iter().map(|call| Call(call.clone())).collect();
            if !calls.is_empty() {
                let table =
                    Table::of("place-calls", "Calls that lead there, innermost first", &calls);
                section.tables.insert(0, table);
            }
        }
        section
    }

    fn launched_after(&self, trace: &Trace, spot: Spot, launch: Row) -> String {
        let name = trace.name_text(launch);
        let (Some((start, _)), Some((from, to))) =
            (self.times(spot), self.spot(trace, launch).and_then(|launch| self.times(launch)))
        else {
            return format!("Launched by {name}.");
        };
        let delay = |from: i64| match start - from {
            ns if ns < 0 => format!("{} before", units::time(-ns)),
            ns => format!("{} after", units::time(ns)),
        };
        format!(
            "Launched by {name}: it starts {} the call begins and {} the call returns.",
            delay(from),
            delay(to)
        )
    }

    /// GPU work of the launches inside a slice of the CPU.
    fn launched_within(&self, trace: &Trace, arrows: &Arrows, spot: Spot) -> Option<String> {
        let (mut n, mut sum_ns) = (0_u64, 0_i64);
        self.each_launched(trace, arrows, spot, |_, slice| {
            n += 1;
            sum_ns = sum_ns.saturating_add(self.times(slice).map_or(0, |(from, to)| to - from));
        });
        let work = units::plural(n, "GPU slice", "GPU slices");
        (n > 0).then(|| {
            format!("Calls in it launched {work} with {} of GPU time in sum.", units::time(sum_ns))
        })
    }

    /// Calls `each` with every launch inside a slice of the CPU (or the slice itself), and the GPU slice that it launched.
    pub fn each_launched(
        &self,
        trace: &Trace,
        arrows: &Arrows,
        spot: Spot,
        mut each: impl FnMut(Spot, Spot),
    ) {
        let Some((start, end)) = self.times(spot) else { return };
        let Some(track) = self.tracks.get(spot.track) else { return };
        for lane in spot.lane..track.lanes.len() {
            let of = &track.lanes[lane];
            for at in of.slices(start as f64, end as f64) {
                let (from, to) = of.times(at);
                if from < start || end < to {
                    continue;
                }
                for slice in arrows.launched_by(of.row(at)) {
                    if let Some(slice) = self.spot(trace, slice) {
                        each(Spot { track: spot.track, lane, at }, slice);
                    }
                }
            }
        }
    }

    /// The slices of a lane in a part of the time, as a table: the first 500, and how many there are.
    #[must_use]
    pub fn lane_table(&self, trace: &Trace, spot: Spot, from: f64, to: f64) -> Section {
        let mut section = Section::new("lane", "Lane as a table");
        let Some(lane) = self.lane(spot.track, spot.lane) else { return section };
        let slices = lane.slices(from, to);
        let n = slices.len();
        let label = &self.tracks[spot.track].label;
        section.title = format!("{label}, lane {}", spot.lane + 1).into();
        let shown = units::plural(n as u64, "slice", "slices");
        section.intro.push(match n > MOST_ROWS {
            true => format!("{shown} in the time shown. The table has the first {MOST_ROWS}; zoom in for the others."),
            false => format!("{shown} in the time shown."),
        });
        let rows: Vec<_> = slices
            .take(MOST_ROWS)
            .filter_map(|at| self.listed(trace, Spot { at, ..spot }))
            .collect();
        section.tables.push(Table::of("lane-slices", "Slices", &rows));
        section
    }

    fn listed(&self, trace: &Trace, spot: Spot) -> Option<Listed> {
        let (row, (start, end)) = (self.row(spot)?, self.times(spot)?);
        Some(Listed {
            name: trace.name_text(row).to_owned(),
            raw_category: trace.raw_category_text(row).to_owned(),
            start_ns: start,
            dur_ns: end - start,
            event: u64::from(row),
        })
    }
}
