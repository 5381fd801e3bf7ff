//! What a person would say first about a snapshot.

use report::units::count;

use crate::amounts::{percent, size};
use crate::report::{OomRow, SnapshotReport, Timeline};
use crate::site::{NO_STACK, SiteRow, of_it_in};

/// A call site is named from this share of the bytes on, in percent.
const LEAST_SHARE: f64 = 20.0;

/// A second call site is named from this share of the first one's bytes on, in percent.
const LEAST_EQUAL: f64 = 99.0;

/// The sentence; `None` where nothing is recorded, or where only a part of the file was read.
pub(crate) fn headline(report: &SnapshotReport) -> Option<String> {
    if report.reading.is_partial() {
        return None;
    }
    let timelines =
        || report.devices.iter().filter_map(|(device, it)| Some((device, it.timeline.as_ref()?)));
    // The last failure of a device is the one that ended the run; the largest says most.
    let failed = timelines().filter_map(|(device, it)| Some((device, it, it.ooms.last()?)));
    if let Some((device, timeline, oom)) = failed.max_by_key(|(_, _, oom)| oom.size) {
        return Some(ran_out(device, timeline, oom));
    }
    let usable = timelines().filter(|(_, it)| it.is_usable());
    if let Some((device, timeline)) = usable.max_by_key(|(_, it)| it.replay.peak_requested) {
        return Some(peak(device, timeline, report));
    }
    let mut contradicted = timelines().filter(|(_, it)| it.replay.timeline_usable);
    if let Some((device, _)) = contradicted.next() {
        return Some(format!(
            "The events of device {device} contradict its segments: its levels and its peak are not reliable."
        ));
    }
    let (device, figures) = report.devices.iter().max_by_key(|(_, it)| it.totals.allocated)?;
    let whole = figures.totals.allocated;
    Some(format!(
        "Device {device} has {} in use at the time of the snapshot{}.",
        size(whole),
        holder(&figures.live_sites, whole)
    ))
}

impl Timeline {
    /// Whether levels and peaks can be told.
    pub(crate) fn is_usable(&self) -> bool {
        self.replay.trace_matches_snapshot && self.replay.timeline_usable
    }
}

fn ran_out(device: &str, timeline: &Timeline, oom: &OomRow) -> String {
    let mut text = format!(
        "Device {device} ran out of memory: an allocation of {} failed at {}, with {} of the {} reserved in use",
        size(oom.size),
        oom.site,
        size(oom.live_requested),
        size(oom.reserved)
    );
    if timeline.is_usable() {
        let replay = &timeline.replay;
        let top = holder(&replay.peak_sites, replay.peak_requested);
        if !top.is_empty() {
            text = format!("{text}. The peak was {}{top}", size(replay.peak_requested));
        }
    }
    text.push('.');
    text
}

fn peak(device: &str, timeline: &Timeline, report: &SnapshotReport) -> String {
    let replay = &timeline.replay;
    let at = match replay.peak_index {
        0 => "before the first event".to_owned(),
        index => format!("at event {}", count(index as u64)),
    };
    format!(
        "Memory in use peaks at {} on device {device}, {at} of {}{}{}.",
        size(replay.peak_requested),
        count(timeline.levels.requested.len().saturating_sub(1) as u64),
        if report.reading.left_out_of(device).is_some() { " in the chosen range" } else { "" },
        holder(&replay.peak_sites, replay.peak_requested)
    )
}

/// The call site that holds most, where that says something.
fn holder(sites: &[SiteRow], whole: i64) -> String {
    let first = sites.first().filter(|top| top.bytes > 0);
    if let Some(first) = first.filter(|first| first.site == NO_STACK && first.bytes < whole) {
        // What is known of the rest, which is what the recording is about.
        let share = percent(first.bytes, whole);
        let next =
            sites.get(1).filter(|next| percent(next.bytes, whole - first.bytes) >= LEAST_SHARE);
        let next = next.map_or_else(String::new, |next| {
            format!(
                "; {} of the rest from {}{}",
                size(next.bytes),
                next.site,
                of_it_in(next.inside.as_ref())
            )
        });
        return format!(
            ", {} ({share:.0}%) of it without a recorded stack{next}",
            size(first.bytes)
        );
    }
    match first.filter(|top| top.site != NO_STACK) {
        Some(top) if top.bytes == whole => {
            format!(", all of it from {}{}", top.site, of_it_in(top.inside.as_ref()))
        }
        Some(top) if percent(top.bytes, whole) >= LEAST_SHARE => {
            let next = sites.get(1).filter(|next| next.site != NO_STACK);
            let equal = next.filter(|next| percent(next.bytes, top.bytes) >= LEAST_EQUAL);
            format!(
                ", {} ({:.0}%) of it from {}{}{}",
                size(top.bytes),
                percent(top.bytes, whole),
                top.site,
                of_it_in(top.inside.as_ref()),
                equal.map_or_else(String::new, |next| {
                    format!(", and {} from {}", size(next.bytes), next.site)
                })
            )
        }
        _ => String::new(),
    }
}
