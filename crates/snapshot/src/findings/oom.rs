//! What is said of an allocation that failed.

use report::units::{count, plural};
use report::{Confidence, Finding};

use super::{LEAST_CLASS, LEVERS, STABLE};
use crate::amounts::{percent, size};
use crate::claim::put;
use crate::classes::function_of;
use crate::report::{OomRow, SnapshotReport, Timeline};
use crate::site::NO_STACK;
use crate::whatif::WhatIf;

/// A finding for each allocation that failed.
pub(super) fn out_of_memory(
    report: &SnapshotReport,
    device: &str,
    timeline: &Timeline,
    to: &mut Vec<Finding>,
) {
    for oom in &timeline.ooms {
        one(report, device, oom, timeline, to);
    }
}

fn one(
    report: &SnapshotReport,
    device: &str,
    oom: &OomRow,
    timeline: &Timeline,
    to: &mut Vec<Finding>,
) {
    let free = oom.device_free.map_or("an unrecorded amount".to_owned(), size);
    let mut observation = format!(
        "Device {device}, event {}: the request of {}{} found {free} free on the device and {} in free ranges of its stream.",
        count(oom.index as u64),
        size(oom.size),
        at(oom),
        match oom.cached_free_same_stream {
            0 => "nothing".to_owned(),
            bytes => format!("at most {}", size(bytes)),
        }
    );
    if oom.cached_free_same_stream > 0 {
        let largest = size(oom.largest_cached_free);
        observation.push_str(&format!(" The largest free range has {largest}."));
    }
    // (Of the last failure the first sentence of the report says it.)
    if timeline.ooms.len() > 1 {
        observation.push_str(&format!(
            " {} of the {} reserved were in use.",
            size(oom.live_requested),
            size(oom.reserved)
        ));
    }
    if let Some((at, bytes)) = given_back(report, device, oom, timeline) {
        observation.push_str(&format!(
            " At event {}, the allocator had already given {} of its cache back to the driver.",
            count(at as u64),
            size(bytes)
        ));
    }
    // The narrower test: default pool and segment type of the request.
    let fits = oom.size <= oom.cached_free_same_pool.saturating_add(oom.device_free.unwrap_or(0));
    // Events do not record the pool: only when all free ranges of the stream are too small, the pool does not matter.
    let is_certain = !oom.fits_if_defragmented && oom.device_free.is_some();
    let expandable = report.what_if.get(device).and_then(WhatIf::expandable);
    let (hypothesis, action, validation) = if fits {
        (
            "Fragmentation: the free ranges of the same stream and pool would hold the request if they were one range (upper \
             bound: the rounded size of blocks that were freed later is not recorded)."
                .to_owned(),
            match expandable.is_some_and(|run| run.served_ooms.contains(&oom.index)) {
                true => {
                    "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: a model that reproduces the run has room for the request \
                     (an estimate). Or keep tensor shapes stable."
                        .to_owned()
                }
                false => STABLE.to_owned(),
            },
            String::new(),
        )
    } else {
        let (holder, less) = less(timeline);
        let mut action = less;
        let mut validation = format!(
            "The run needs at least {}: what was in use and requested at this event.",
            size(oom.live_requested.saturating_add(oom.size))
        );
        if let Some(uneven) = uneven(report, device, timeline) {
            observation.push_str(&uneven.what);
            validation.push_str(&uneven.need);
            action = format!("Give each device an equal part of the input. {action}");
        }
        let hypothesis = format!(
            "Capacity: the free ranges of the same stream and pool together are smaller than the request.{holder}"
        );
        (hypothesis, action, validation)
    };
    let confidence = if is_certain { Confidence::High } else { Confidence::Medium };
    let evidence = format!("devices.{device}.ooms");
    put(
        to,
        "out-of-memory",
        confidence,
        [&observation, &hypothesis, &action, &validation, &evidence],
    );
}

/// Where an allocation failed, as a part of a sentence; empty where its stack was not recorded.
#[inline(never)]
pub(crate) fn at(oom: &OomRow) -> String {
    if oom.site == NO_STACK { String::new() } else { format!(" at {}", oom.site) }
}

/// The last time that the allocator gave its cache back before a failed allocation: the event, and the bytes.
fn given_back(
    report: &SnapshotReport,
    device: &str,
    oom: &OomRow,
    timeline: &Timeline,
) -> Option<(usize, i64)> {
    let places = &report.cache_releases.get(device)?.retry_places;
    let (from, to) = *places.iter().rfind(|(_, next)| *next <= oom.index)?;
    let level = |at: usize| timeline.levels.reserved.get(at).copied().unwrap_or_default();
    Some((from, level(from).saturating_sub(level(to))))
}

/// A call site whose blocks are much larger on one device.
struct Uneven {
    what: String,
    /// What the device would need for as many blocks as another has.
    need: String,
}

/// What the call site with most bytes at the peak of a device holds at the peaks of the others, where its blocks are less than half as
/// large on each of them.
fn uneven(report: &SnapshotReport, device: &str, timeline: &Timeline) -> Option<Uneven> {
    let sites = &timeline.replay.peak_sites;
    let top = sites.first().filter(|top| !top.site.starts_with('<') && top.count > 0)?;
    let mean = |bytes: i64, count: u64| bytes / i64::try_from(count.max(1)).unwrap_or(i64::MAX);
    let own = mean(top.bytes, top.count);
    let blocks = |count: u64| plural(count, "block", "blocks");
    let (mut others, mut most) = (String::new(), 0);
    for (other, figures) in report.devices.iter().filter(|(other, _)| *other != device) {
        let sites = &figures.timeline.as_ref()?.replay.peak_sites;
        let row = sites.iter().find(|row| row.site == top.site)?;
        let each = mean(row.bytes, row.count);
        if each.saturating_mul(2) > own {
            return None;
        }
        most = most.max(row.count);
        others.push_str(&format!(
            ", {} of {} at that of device {other}",
            blocks(row.count),
            size(each)
        ));
    }
    if others.is_empty() {
        return None;
    }
    let what = format!(
        " {} makes larger blocks on this device: {} of {} on average at its peak{others}.",
        top.site,
        blocks(top.count),
        size(own)
    );
    let mut need = String::new();
    if most > top.count {
        let name = function_of(&top.site);
        let of_it = sites.iter().filter(|row| name.is_some() && function_of(&row.site) == name);
        let bytes = of_it.fold(0_i64, |sum, row| sum.saturating_add(row.bytes)).max(top.bytes);
        let scaled = bytes / i64::try_from(top.count).unwrap_or(i64::MAX);
        need = format!(
            " With {} of that line, as on another device, its function would hold about {} (an estimate: {} now, with {}).",
            blocks(most),
            size(scaled.saturating_mul(i64::try_from(most).unwrap_or(i64::MAX))),
            size(bytes),
            blocks(top.count)
        );
    }
    Some(Uneven { what, need })
}

/// What most of the memory in use is for, as a sentence, and what makes it smaller, as far as the file tells.
fn less(timeline: &Timeline) -> (String, String) {
    let replay = &timeline.replay;
    if let Some((class, bytes, ..)) = timeline.classes.largest()
        && percent(bytes, replay.peak_requested) >= LEAST_CLASS
        && let Some(lever) = LEVERS.iter().find(|lever| lever.class == class)
    {
        let holder = format!(
            " {} of the {} in use at the peak are {} (confidence: {}).",
            size(bytes),
            size(replay.peak_requested),
            class.label(),
            timeline.classes.confidence(class).id()
        );
        return (holder, lever.action.to_owned());
    }
    let action = match replay.peak_sites.first().filter(|top| top.site != NO_STACK) {
        Some(top) => format!(
            "Reduce the memory in use, first what {} holds: {} at the peak.",
            top.site,
            size(top.bytes)
        ),
        None => "Reduce the memory in use: a smaller batch, or shorter sequences.".to_owned(),
    };
    (String::new(), action)
}
