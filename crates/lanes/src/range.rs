//! What a range of time holds.

use std::collections::BTreeMap;

use report::palette::Hue;
use report::{Cell, Column, Row as TableRow, Section, Table, Unit, units};
use timeline::intervals::{length, union, without};
use timeline::percent;
use trace::{StringId, Trace};

use crate::arrows::Arrows;
use crate::bands::{self, Band};
use crate::build::{Kind, Lanes, Spot, Track};
use crate::flame::flame;
use crate::levels;

/// Names in the table of a range.
const MOST_NAMES: usize = 20;

/// A stream in a range.
struct StreamRow {
    stream: String,
    slices: u64,
    busy_ns: i64,
    share_pct: f64,
    idle_ns: i64,
}

impl TableRow for StreamRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stream",
            title: "Stream",
            unit: Unit::Text,
            help: "Device and stream.",
            cell: |row| row.stream.as_str().into(),
        },
        Column {
            key: "slices",
            title: "Slices",
            unit: Unit::Count,
            help: "Kernels, copies and fills in the range, also those that only reach into it.",
            cell: |row| Cell::Count(row.slices),
        },
        Column {
            key: "busy_ns",
            title: "Busy",
            unit: Unit::Time,
            help: "Time of the range in which the stream runs something.",
            cell: |row| Cell::Ns(row.busy_ns),
        },
        Column {
            key: "share_pct",
            title: "Busy share",
            unit: Unit::Percent,
            help: "Busy time as a share of the range.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "idle_ns",
            title: "Idle",
            unit: Unit::Time,
            help: "The range less its busy time.",
            cell: |row| Cell::Ns(row.idle_ns),
        },
    ];
}

/// A name in a range.
struct NameRow {
    name: String,
    slices: u64,
    total_ns: i64,
    share_pct: f64,
}

impl TableRow for NameRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Name,
            help: "Kernel, copy or fill.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "slices",
            title: "Slices",
            unit: Unit::Count,
            help: "How many lie in the range or reach into it.",
            cell: |row| Cell::Count(row.slices),
        },
        Column {
            key: "total_ns",
            title: "Total",
            unit: Unit::Time,
            help: "Sum of the parts of their durations that lie in the range.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "share_pct",
            title: "Share of GPU time",
            unit: Unit::Percent,
            help: "Share of the sum over all GPU slices in the range.",
            cell: |row| Cell::Percent(row.share_pct),
        },
    ];
}

/// GPU work of a device in a range.
#[derive(Default)]
struct Device {
    all: Vec<(i64, i64)>,
    communication: Vec<(i64, i64)>,
    other: Vec<(i64, i64)>,
}

impl Lanes {
    /// Busy and idle time of each stream and device from `from` to `to` (ns from the first start), where their time goes by `bands`,
    /// exposed communication, the names that take most, and the calls of a thread: that of the selected slice, else the one with most slices.
    /// Callers and callees are those of names with `text`; without one, of the selected slice.
    #[must_use]
    pub fn range(
        &self,
        trace: &Trace,
        arrows: &Arrows,
        bands: &[Band],
        (selected, text): (Option<Spot>, &str),
        (from, to): (i64, i64),
    ) -> Section {
        let mut section = Section::new("range", "Selected range");
        let span = to.saturating_sub(from);
        let mut devices: BTreeMap<&str, Device> = BTreeMap::new();
        let mut names: BTreeMap<StringId, (u64, i64)> = BTreeMap::new();
        let mut streams = Vec::new();
        let mut sum_ns = 0_i64;
        for track in self.tracks.iter().filter(|track| track.kind == Kind::Stream) {
            let device = devices.entry(device_of(track)).or_default();
            let (mut own, mut n) = (Vec::new(), 0);
            for lane in &track.lanes {
                for at in lane.slices(from as f64, to as f64) {
                    let (start, end) = lane.times(at);
                    let part = (start.max(from), end.min(to));
                    let ns = (part.1 - part.0).max(0);
                    let of_name = names.entry(trace.name(lane.row(at))).or_default();
                    *of_name = (of_name.0 + 1, of_name.1.saturating_add(ns));
                    sum_ns = sum_ns.saturating_add(ns);
                    n += 1;
                    own.push(part);
                    match lane.hue(at) {
                        Hue::Communication => device.communication.push(part),
                        _ => device.other.push(part),
                    }
                }
            }
            device.all.extend(&own);
            let busy_ns = length(&union(own));
            streams.push(StreamRow {
                stream: track.label.clone(),
                slices: n,
                busy_ns,
                share_pct: percent(busy_ns, span),
                idle_ns: span - busy_ns,
            });
        }
        section.intro.push(format!(
            "{} from {} to {}.",
            units::time(span),
            units::moment(from, span),
            units::moment(to, span)
        ));
        section
            .intro
            .extend(devices.into_iter().map(|(label, device)| device.sentence(label, span)));
        let mut rows: Vec<NameRow> = names
            .into_iter()
            .map(|(name, (slices, total_ns))| NameRow {
                name: trace.strings.get(name).to_owned(),
                slices,
                total_ns,
                share_pct: percent(total_ns, sum_ns),
            })
            .collect();
        trace::sort_by(&mut rows, |a, b| {
            b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name))
        });
        if rows.len() > MOST_NAMES {
            section.intro.push(format!(
                "The table of names has the {MOST_NAMES} of {} that take most time.",
                rows.len()
            ));
            rows.truncate(MOST_NAMES);
        }
        section.tables.extend(bands::table(bands, from, to));
        let levels = self.tracks.iter().filter_map(|track| track.levels.as_ref());
        section.tables.extend(levels::table(levels.clone(), from, to));
        section.tables.extend(levels::counters(levels, from, to));
        if !streams.is_empty() {
            section.tables.push(Table::of("range-streams", "Streams", &streams));
            section.tables.push(Table::of("range-names", "GPU work", &rows));
        }
        flame(&mut section, (self, trace, arrows), (selected, text), (from, to));
        section
    }
}

/// The label of the device of a stream: all of the stream's before the comma.
fn device_of(track: &Track) -> &str {
    track.label.split_once(',').map_or(&*track.label, |(device, _)| device)
}

impl Device {
    fn sentence(self, label: &str, span: i64) -> String {
        let busy = length(&union(self.all));
        let communication = union(self.communication);
        let exposed = length(&without(&communication, &union(self.other)));
        let mut text = format!(
            "{label} is busy for {} ({}) and idle for {}.",
            units::time(busy),
            units::percent(percent(busy, span)),
            units::time(span - busy)
        );
        if !communication.is_empty() {
            text += &format!(
                " Communication runs for {}, {} of it while nothing else runs on the device.",
                units::time(length(&communication)),
                units::time(exposed)
            );
        }
        text
    }
}
