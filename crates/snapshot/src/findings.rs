//! What follows from the figures of a snapshot.
//!
//! The thresholds are heuristics of this project: no project publishes a level at which fragmentation matters. Each needs a gate in
//! bytes, because the ratio alone is high on healthy runs.

mod classes;
mod oom;
mod pair;
mod peak;
mod space;

use report::units::{count, plural};
use report::{Confidence, Finding};

use crate::amounts::size;
use crate::claim::put;
use crate::model::Snapshot;
use crate::report::{SnapshotReport, Timeline};
use crate::site::ANOMALY;

pub(crate) use classes::within_activations;
pub(crate) use oom::at;
pub(crate) use peak::LEAST_CLASS;

/// What helps against fragmentation where sizes differ from step to step.
const SHAPES: &str = " Or keep tensor shapes stable: sizes of the same lines differ between steps.";

/// What helps against fragmentation without a setting.
fn stable(has_varying_sizes: bool) -> &'static str {
    match has_varying_sizes {
        true => {
            "Keep tensor shapes stable: sizes of the same lines differ between steps. Allocate what stays before temporaries, so that \
             free memory fits."
        }
        false => "Allocate what stays before temporaries, so that free memory fits.",
    }
}

/// Every finding, the worst first per device.
pub(crate) fn findings(snapshot: &Snapshot, report: &SnapshotReport) -> Vec<Finding> {
    let settings = snapshot.settings.as_deref().unwrap_or_default();
    let is_expandable = report.format.expandable
        || settings.replace(' ', "").contains("\"expandable_segments\":true");
    let mut findings = Vec::new();
    if report.reading.is_partial() {
        // Sums and levels of a part of a file would be read as those of the run.
        return findings;
    }
    for (device, figures) in &report.devices {
        // Where another device ran out of memory, nothing of this one is what ended the run.
        if report.is_bystander(figures) {
            continue;
        }
        let has_failed = figures.has_failed();
        if let Some(timeline) = &figures.timeline {
            inconsistent(device, timeline, &mut findings);
            oom::out_of_memory(report, device, timeline, &mut findings);
            if timeline.is_usable() {
                if let Some(cut) = &timeline.cut {
                    crate::cut::finding(device, cut, &timeline.replay, &mut findings);
                }
                classes::unused_graph(device, timeline, &mut findings);
                classes::attention(device, timeline, &mut findings);
                classes::temporaries(device, timeline, &mut findings);
                pair::pair(device, timeline, &mut findings);
                // (A failed allocation has a finding that says what most of the memory is for.)
                if !has_failed {
                    let leaks = figures.leaks.as_deref().unwrap_or_default();
                    peak::peak(device, timeline, leaks, &mut findings);
                    peak::copies(device, timeline, &mut findings);
                }
                classes::stale(device, timeline, &mut findings);
                classes::replaced(device, timeline, &mut findings);
                anomaly(device, timeline, &mut findings);
            }
        }
        if let Some(releases) = report.cache_releases.get(device) {
            let setting = report.what_if.get(device).and_then(|it| it.fewer_retries());
            releases.findings(device, has_failed, setting, &mut findings);
        }
        space::leaking(device, figures, &mut findings);
        let what_if = report.what_if.get(device);
        // (Of a chosen range of events the state at the end is no finding, and none behind an error that freed most of it.)
        if report.reading.left_out_of(device).is_none()
            && !figures.timeline.as_ref().is_some_and(Timeline::is_unwound)
        {
            space::fragmentation(device, figures, is_expandable, what_if, &mut findings);
            space::rounding(device, figures, &mut findings);
        }
        if let Some(what_if) = what_if.filter(|_| !has_failed) {
            findings.extend(crate::whatif::advice(device, what_if));
        }
    }
    // A failed allocation is why the snapshot was written.
    findings.sort_by_key(|finding| finding.rule != "out-of-memory");
    findings
}

/// A trace that contradicts the segments.
fn inconsistent(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let replay = &timeline.replay;
    if replay.trace_matches_snapshot || !replay.timeline_usable {
        return;
    }
    let mut observation = format!("Device {device}: the events contradict the segments");
    if replay.trace_live_end > 0 {
        observation.push_str(&format!(
            "; {} of {} allocations alive at the end match a block",
            count(replay.agree),
            count(replay.trace_live_end)
        ));
    }
    if replay.max_live_over_reserved > 0 {
        let over = size(replay.max_live_over_reserved);
        observation.push_str(&format!("; live memory exceeds reserved memory by up to {over}"));
    }
    for (n, one, several) in [
        (replay.backward_orphan_allocs, "allocation without an end", "allocations without an end"),
        (replay.double_alloc, "double allocation", "double allocations"),
        (replay.backward_double_frees, "double free", "double frees"),
        (replay.size_mismatch, "size mismatch", "size mismatches"),
        (replay.negative_levels, "negative level", "negative levels"),
    ] {
        if n > 0 {
            observation.push_str(&format!("; {}", plural(n, one, several)));
        }
    }
    observation.push('.');
    put(
        to,
        "inconsistent-trace",
        Confidence::High,
        [
            &observation,
            "The file was edited, cut or assembled from several runs, or actions were skipped while recording. The \
                     timeline and the peak are not reliable; the totals of the segments do not depend on the events.",
            "Record the snapshot again in one process with torch.cuda.memory._record_memory_history().",
            "",
            &format!("devices.{device}.replay"),
        ],
    );
}

/// Checks for NaN by the engine of autograd.
fn anomaly(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let Some(checks) = timeline.alloc_sites.iter().find(|row| row.site == ANOMALY) else { return };
    let all = timeline.churn.alloc_count;
    let at_peak = timeline.replay.peak_sites.iter().find(|row| row.site == ANOMALY);
    let observation = format!(
        "Device {device}: {} of {} allocations ({}) are NaN checks that the autograd engine makes after each backward op: anomaly \
         detection is on.{}",
        count(checks.count),
        count(all),
        size(checks.bytes),
        at_peak.map_or_else(String::new, |row| {
            format!(" They hold {} at the peak.", size(row.bytes))
        }),
    );
    put(
        to,
        "anomaly-detection",
        Confidence::High,
        [
            &observation,
            "Each check launches kernels and waits for their result on the GPU, and forward records a Python stack for each op: training \
                     takes longer.",
            "Turn anomaly detection off once the NaN is found: torch.autograd.set_detect_anomaly, torch.autograd.detect_anomaly, in \
                 Lightning Trainer(detect_anomaly=...).",
            "A new snapshot has no such allocations.",
            &format!("devices.{device}.alloc_by_site"),
        ],
    );
}
