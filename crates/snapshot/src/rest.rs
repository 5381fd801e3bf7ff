//! What a report has beyond the figures of the reference program: purposes, steps, releases, other settings, pictures, findings.
//!
//! It takes longer than those figures, and nothing of them depends on it. A page shows them first.

use crate::chart::Chart;
use crate::classes::{Marks, classes};
use crate::findings::findings;
use crate::model::{Segment, Snapshot};
use crate::modules::modules;
use crate::pictures;
use crate::releases::releases;
use crate::report::{ShownPeak, SnapshotReport, Timeline};
use crate::site::Sites;
use crate::steps::{has_varying_sizes, steps};
use crate::whatif::what_if;

/// Adds the rest to the figures of the same snapshot.
pub(crate) fn complete(snapshot: &Snapshot, mut report: SnapshotReport) -> SnapshotReport {
    if report.is_complete {
        return report;
    }
    report.is_complete = true;
    let sites = Sites::of(snapshot);
    let marks = Marks::all(&snapshot.stacks, &sites);
    let SnapshotReport {
        devices,
        classes,
        memory_by_module,
        memory_by_step,
        what_if: replays,
        cache_releases,
        shown_peak,
        ..
    } = &mut report;
    for (name, figures) in devices {
        let Ok(device) = name.parse() else { continue };
        let segments: Vec<&Segment> =
            snapshot.segments.iter().filter(|segment| segment.device == device).collect();
        figures.segments_picture = pictures::segments(name, snapshot, &segments);
        let reserved = figures.timeline.as_ref().map_or(&[][..], |it| &it.levels.reserved);
        let found = releases(snapshot, device, reserved, &sites);
        let retries = found.as_ref().map_or(Vec::new(), |found| found.retry_places.clone());
        if let Some(found) = found {
            cache_releases.insert(name.clone(), found);
        }
        let Some(timeline) = &mut figures.timeline else { continue };
        add(timeline, snapshot, (name, device), (&sites, &marks));
        let figures = (&timeline.replay, &timeline.levels);
        replays.insert(name.clone(), what_if(snapshot, device, figures, &retries));
        if !timeline.classes.rows.is_empty() {
            classes.insert(name.clone(), timeline.classes.rows.clone());
        }
        let shown = &timeline.replay.shown;
        if shown.nth > 1 {
            let row = ShownPeak { index: shown.index, nth: shown.nth, times: shown.times };
            shown_peak.insert(name.clone(), row);
        }
        if !timeline.by_module.is_empty() {
            memory_by_module.insert(name.clone(), timeline.by_module.clone());
        }
        if !timeline.by_step.is_empty() {
            memory_by_step.insert(name.clone(), timeline.by_step.clone());
        }
    }
    report.findings = findings(snapshot, &report);
    report
}

/// What the events of a device show beyond their levels.
#[inline(never)]
fn add(
    timeline: &mut Timeline,
    snapshot: &Snapshot,
    (name, device): (&str, i64),
    (sites, marks): (&Sites, &[Marks]),
) {
    let trace = snapshot.trace(device);
    if timeline.is_usable() {
        let levels = (&*timeline.levels.requested, &timeline.replay.shown);
        timeline.classes = classes(snapshot, device, levels, sites, marks);
        timeline.by_step = steps(snapshot, device, &timeline.levels);
        timeline.by_module =
            modules(&snapshot.stacks, sites, trace, &timeline.replay.shown.by_stack);
        timeline.has_varying_sizes = has_varying_sizes(trace, &timeline.by_step);
    }
    let chart = Chart::new(trace, timeline.levels.clone(), &timeline.replay, sites);
    timeline.picture = pictures::over_events(name, &chart, &timeline.replay);
}
