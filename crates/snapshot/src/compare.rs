//! What differs between two snapshots: totals by device, and what each call site holds at the peak and at the end.
//!
//! A call site is matched by file, line and function; where the line moved, by file and function, if both snapshots have it once.

use std::collections::BTreeMap;

use report::{Cell, Column, Row, Section, Table, Unit};
use serde::{Deserialize, Serialize};

use crate::amounts::{amount, percent, size};
use crate::report::{DeviceReport, SnapshotReport};
use crate::site::SiteRow;

/// Rows of the list of sites per device.
const MOST_ROWS: usize = 200;

/// What a comparison needs of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    devices: BTreeMap<String, DeviceSummary>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DeviceSummary {
    /// Name and bytes; `None` where the file does not tell.
    totals: Vec<(String, Option<i64>)>,
    has_peak: bool,
    /// Bytes at the peak (requested) and at the end (rounded) by call site.
    sites: BTreeMap<String, (i64, i64)>,
}

/// One figure in both snapshots, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct TotalChange {
    device: String,
    what: String,
    before: Option<i64>,
    after: Option<i64>,
    change: Option<i64>,
}

/// How the call sites of a row were matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Matched {
    SameLine,
    LineMoved,
    OnlyBefore,
    OnlyAfter,
}

impl Matched {
    fn label(self) -> &'static str {
        match self {
            Self::SameLine => "same line",
            Self::LineMoved => "line moved",
            Self::OnlyBefore => "holds nothing after",
            Self::OnlyAfter => "held nothing before",
        }
    }
}

/// A call site in both snapshots, in bytes; 0 where it holds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct SiteChange {
    site: String,
    matched: Matched,
    /// Requested bytes at the peak; missing where a snapshot has no peak.
    peak_before: Option<i64>,
    peak_after: Option<i64>,
    peak_change: Option<i64>,
    /// Rounded bytes in use at the time of the snapshot.
    end_before: i64,
    end_after: i64,
    end_change: i64,
}

/// What differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    totals: Vec<TotalChange>,
    /// By device, the largest change first.
    sites: BTreeMap<String, Vec<SiteChange>>,
    /// Call sites that changed and are not listed.
    omitted_sites: usize,
    /// The device of each snapshot, where each has one and they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<(String, String)>,
}

impl SnapshotReport {
    /// What a comparison needs of it.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let is_partial = self.reading.is_partial();
        let of = |(device, figures): (&String, &DeviceReport)| {
            (device.clone(), DeviceSummary::of(figures, is_partial))
        };
        Summary { devices: self.devices.iter().map(of).collect() }
    }
}

impl DeviceSummary {
    fn of(figures: &DeviceReport, is_partial: bool) -> Self {
        let replay = figures.timeline.as_ref().map(|timeline| &timeline.replay);
        let replay =
            replay.filter(|it| !is_partial && it.timeline_usable && it.trace_matches_snapshot);
        let mut sites: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        let add = |sites: &mut BTreeMap<String, (i64, i64)>, rows: &[SiteRow], is_peak: bool| {
            for row in rows {
                let sums = sites.entry(row.site.clone()).or_default();
                let sum = if is_peak { &mut sums.0 } else { &mut sums.1 };
                *sum = sum.saturating_add(row.bytes);
            }
        };
        add(&mut sites, replay.map_or(&[][..], |replay| &replay.peak_sites), true);
        add(&mut sites, &figures.live_sites, false);
        let totals = [
            ("in use at the peak (requested)", replay.map(|replay| replay.peak_requested)),
            ("reserved at the peak", replay.map(|replay| replay.peak_reserved)),
            ("in use before the first event (requested)", replay.map(|it| it.start_requested)),
            ("in use at the end (rounded sizes)", Some(figures.totals.active)),
            ("reserved at the end", Some(figures.totals.reserved)),
        ];
        Self {
            totals: totals.into_iter().map(|(what, bytes)| (what.to_owned(), bytes)).collect(),
            has_peak: replay.is_some(),
            sites,
        }
    }
}

/// Compares an earlier snapshot with a later one.
#[must_use]
pub fn compare(before: &Summary, after: &Summary) -> Comparison {
    let mut comparison = Comparison::default();
    let ranks = ranks(before, after);
    let mut devices: Vec<&String> = before.devices.keys().chain(after.devices.keys()).collect();
    devices.sort_unstable();
    devices.dedup();
    // (A pair has one chapter, under the device of the later snapshot.)
    devices.retain(|device| ranks.is_none_or(|(first, _)| *device != first));
    let none = DeviceSummary::default();
    for device in devices {
        let other = ranks.filter(|(_, second)| *second == device).map_or(device, |pair| pair.0);
        let (before, after) =
            (before.devices.get(other).cloned(), after.devices.get(device).cloned());
        let names = before.iter().chain(&after).next().map_or(&[][..], |any| &any.totals);
        for (at, (what, _)) in names.iter().enumerate() {
            let bytes = |of: &Option<DeviceSummary>| of.as_ref()?.totals.get(at)?.1;
            let (first, second) = (bytes(&before), bytes(&after));
            comparison.totals.push(TotalChange {
                device: device.clone(),
                what: what.clone(),
                before: first,
                after: second,
                change: first.zip(second).map(|(first, second)| second.saturating_sub(first)),
            });
        }
        let (before, after) = (before.as_ref().unwrap_or(&none), after.as_ref().unwrap_or(&none));
        let mut rows = site_changes(before, after);
        comparison.omitted_sites += rows.len().saturating_sub(MOST_ROWS);
        rows.truncate(MOST_ROWS);
        comparison.sites.insert(device.clone(), rows);
    }
    comparison.ranks = ranks.map(|(first, second)| (first.clone(), second.clone()));
    comparison
}

/// The one device of each snapshot, where they differ: two ranks of a run.
fn ranks<'a>(before: &'a Summary, after: &'a Summary) -> Option<(&'a String, &'a String)> {
    let one = |of: &'a Summary| of.devices.keys().next().filter(|_| of.devices.len() == 1);
    let (first, second) = (one(before)?, one(after)?);
    (first != second).then_some((first, second))
}

/// `file:function` of `file:line:function`.
fn without_line(site: &str) -> Option<String> {
    let mut from = 0;
    while let Some(colon) = site.get(from..)?.find(':') {
        let start = from + colon + 1;
        let rest = site.get(start..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && rest.as_bytes().get(digits) == Some(&b':') {
            return Some(format!("{}:{}", site.get(..start - 1)?, rest.get(digits + 1..)?));
        }
        from = start;
    }
    None
}

/// The sites of one snapshot that the other one does not have, by file and function; only those that are there once.
fn alone(own: &DeviceSummary, other: &DeviceSummary) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for site in own.sites.keys().filter(|site| !other.sites.contains_key(*site)) {
        let Some(key) = without_line(site) else { continue };
        found.entry(key).and_modify(|known| *known = None).or_insert_with(|| Some(site.clone()));
    }
    found.into_iter().filter_map(|(key, site)| Some((key, site?))).collect()
}

fn site_changes(before: &DeviceSummary, after: &DeviceSummary) -> Vec<SiteChange> {
    let has_peaks = before.has_peak && after.has_peak;
    let row = |site: String, matched, first: (i64, i64), second: (i64, i64)| SiteChange {
        site,
        matched,
        peak_before: has_peaks.then_some(first.0),
        peak_after: has_peaks.then_some(second.0),
        peak_change: has_peaks.then_some(second.0.saturating_sub(first.0)),
        end_before: first.1,
        end_after: second.1,
        end_change: second.1.saturating_sub(first.1),
    };
    let (first_alone, second_alone) = (alone(before, after), alone(after, before));
    let moved: BTreeMap<&String, &String> = first_alone
        .iter()
        .filter_map(|(key, first)| Some((second_alone.get(key)?, first)))
        .collect();
    let mut rows = Vec::new();
    for (site, second) in &after.sites {
        let (matched, first) = match (before.sites.get(site), moved.get(site)) {
            (Some(first), _) => (Matched::SameLine, *first),
            (None, Some(old)) => {
                (Matched::LineMoved, before.sites.get(*old).copied().unwrap_or_default())
            }
            (None, None) => (Matched::OnlyAfter, (0, 0)),
        };
        rows.push(row(site.clone(), matched, first, *second));
    }
    for (site, first) in &before.sites {
        let is_matched = after.sites.contains_key(site) || moved.values().any(|old| *old == site);
        if !is_matched {
            rows.push(row(site.clone(), Matched::OnlyBefore, *first, (0, 0)));
        }
    }
    rows.retain(|row| row.end_change != 0 || row.peak_change.is_some_and(|change| change != 0));
    let weight = |row: &SiteChange| {
        (row.peak_change.unwrap_or_default().unsigned_abs(), row.end_change.unsigned_abs())
    };
    rows.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.site.cmp(&b.site)));
    rows
}

fn change(bytes: i64) -> String {
    match bytes {
        0 => "none".to_owned(),
        1.. => format!("{} more", size(bytes)),
        _ => format!("{} less", size(bytes.saturating_neg())),
    }
}

fn known(bytes: Option<i64>, why: &'static str) -> Cell<'static> {
    bytes.map_or(Cell::missing(why), amount)
}

const NO_PEAK: &str = "no events, or events that contradict the segments";

impl Row for TotalChange {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "Number of the device.",
            cell: |row| row.device.as_str().into(),
        },
        Column {
            key: "what",
            title: "Memory",
            unit: Unit::Text,
            help: "Which bytes.",
            cell: |row| row.what.as_str().into(),
        },
        Column {
            key: "before",
            title: "Before",
            unit: Unit::Bytes,
            help: "In the earlier snapshot.",
            cell: |row| known(row.before, NO_PEAK),
        },
        Column {
            key: "after",
            title: "After",
            unit: Unit::Bytes,
            help: "In the later snapshot.",
            cell: |row| known(row.after, NO_PEAK),
        },
        Column {
            key: "change",
            title: "Change",
            unit: Unit::Text,
            help: "After - before.",
            cell: |row| {
                row.change.map_or(Cell::missing(NO_PEAK), |by| Cell::Text(change(by).into()))
            },
        },
    ];
}

impl Row for SiteChange {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "site",
            title: "Call site",
            unit: Unit::Path,
            help: "File, line and function that allocated; as in the later snapshot, where it has it.",
            cell: |row| row.site.as_str().into(),
        },
        Column {
            key: "peak_change",
            title: "Change at the peak",
            unit: Unit::Text,
            help: "Requested bytes in use at the peak, after - before.",
            cell: |row| {
                row.peak_change.map_or(Cell::missing(NO_PEAK), |by| Cell::Text(change(by).into()))
            },
        },
        Column {
            key: "peak_before",
            title: "Peak, before",
            unit: Unit::Bytes,
            help: "Requested bytes in use at the peak of the earlier snapshot.",
            cell: |row| known(row.peak_before, NO_PEAK),
        },
        Column {
            key: "peak_after",
            title: "Peak, after",
            unit: Unit::Bytes,
            help: "Requested bytes in use at the peak of the later snapshot.",
            cell: |row| known(row.peak_after, NO_PEAK),
        },
        Column {
            key: "end_change",
            title: "Change at the end",
            unit: Unit::Text,
            help: "Bytes in use at the time of the snapshot, after - before.",
            cell: |row| Cell::Text(change(row.end_change).into()),
        },
        Column {
            key: "end_before",
            title: "End, before",
            unit: Unit::Bytes,
            help: "Bytes in use at the time of the earlier snapshot (rounded sizes).",
            cell: |row| amount(row.end_before),
        },
        Column {
            key: "end_after",
            title: "End, after",
            unit: Unit::Bytes,
            help: "Bytes in use at the time of the later snapshot (rounded sizes).",
            cell: |row| amount(row.end_after),
        },
        Column {
            key: "matched",
            title: "Matched by",
            unit: Unit::Text,
            help: "Same line: file, line and function. Line moved: file and function, which each snapshot has once.",
            cell: |row| row.matched.label().into(),
        },
    ];
}

impl Comparison {
    /// The sentence that says most: of the device whose peak (or else end) changed most.
    fn headline(&self) -> Option<String> {
        let changed = |what: &str| {
            let rows = self.totals.iter().filter(|row| row.what.starts_with(what));
            rows.filter(|row| row.change.is_some())
                .max_by_key(|row| row.change.unwrap_or_default().unsigned_abs())
        };
        let (row, is_peak) = match changed("in use at the peak") {
            Some(row) => (row, true),
            None => (changed("in use at the end")?, false),
        };
        let (before, after, by) = (row.before?, row.after?, row.change?);
        let place = if is_peak { "at the peak" } else { "at the end" };
        if by == 0 {
            return Some(format!("Memory in use {place} is the same in both: {}.", size(after)));
        }
        let of_site =
            |site: &&SiteChange| if is_peak { site.peak_change } else { Some(site.end_change) };
        let sites = self.sites.get(&row.device).into_iter().flatten();
        let same_way =
            sites.filter(|site| of_site(site).is_some_and(|it| it.signum() == by.signum()));
        let most = same_way.max_by_key(|site| of_site(site).unwrap_or_default().unsigned_abs());
        let most = most.map_or_else(String::new, |site| {
            format!(
                " The largest part: {} from {}.",
                change(of_site(&site).unwrap_or_default()),
                site.site
            )
        });
        Some(format!(
            "Memory in use {place} of device {}: {}, {} than before ({}, {:+.1}%).{most}",
            row.device,
            size(after),
            change(by),
            size(before),
            percent(by, before)
        ))
    }

    /// The comparison as a chapter.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let mut section = Section::new("memory-compare", "What changed");
        section.intro.extend(self.headline());
        if let Some((first, second)) = &self.ranks {
            section.intro.push(format!(
                "The earlier snapshot is of device {first}, the later one of device {second}: they are compared as two ranks, by call site."
            ));
        }
        if self.omitted_sites > 0 {
            section.intro.push(format!(
                "{} call sites with smaller changes are not listed.",
                report::units::count(self.omitted_sites as u64)
            ));
        }
        section.tables.push(Table::of("memory-totals", "Totals", &self.totals));
        for (device, rows) in &self.sites {
            let mut table = Table::of("memory-sites", "", rows);
            table.id = format!("memory-sites-{device}").into();
            table.title = format!("Device {device}: call sites that changed").into();
            section.tables.push(table);
        }
        vec![section]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_known_without_its_line() {
        for (site, short) in [
            ("/a/b.py:12:f", Some("/a/b.py:f")),
            (r"C:\a.py:7:<module>", Some(r"C:\a.py:<module>")),
            ("/a.cpp:3:torch::f", Some("/a.cpp:torch::f")),
            ("<autograd> MmBackward0", None),
            ("<no stack>", None),
        ] {
            assert_eq!(without_line(site).as_deref(), short, "{site}");
        }
    }
}
