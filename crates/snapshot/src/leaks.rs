//! Memory that grows from step to step.

use std::collections::HashMap;

use serde::Serialize;

use crate::model::{Action, Annotation, Event, Snapshot};
use crate::site::{Sites, WORKSPACE};

/// A site whose live bytes grow in every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeakRow {
    /// Where the memory is allocated.
    pub(crate) site: String,
    /// Mean growth.
    pub(crate) bytes_per_step: i64,
    /// Steps in which it grew.
    pub(crate) steps: u64,
    /// Growth over all of them.
    pub(crate) total: i64,
}

/// Leaks and the number of steps; `None` when fewer than three steps are annotated.
pub(crate) struct Leaks {
    pub(crate) leaks: Vec<LeakRow>,
    pub(crate) steps: u64,
}

const PROFILER: &str = "ProfilerStep#";
const OPTIMIZER: &str = "Optimizer.step#";

/// Ends of steps on a device, in us: those of the profiler, else those of the optimizer. If only a range of the events was read, those
/// within its times.
pub(crate) fn step_ends(snapshot: &Snapshot, device: i64) -> Vec<i64> {
    let annotations = &snapshot.annotations;
    let has_profiler = annotations.iter().any(|mark| mark.name.starts_with(PROFILER));
    let is_step = |mark: &&Annotation| {
        mark.is_end
            && mark.device.is_none_or(|of| of == device)
            && (mark.name.starts_with(PROFILER)
                || !has_profiler && mark.name.starts_with(OPTIMIZER))
    };
    let mut ends: Vec<i64> = annotations.iter().filter(is_step).map(|mark| mark.time_us).collect();
    ends.sort_unstable();
    if usize::try_from(device).is_ok_and(|device| snapshot.reading.left_out.contains_key(&device)) {
        let mut times = snapshot.trace(device).iter().filter_map(Event::time);
        let first = times.next().unwrap_or(i64::MAX);
        let last = times.next_back().unwrap_or(first);
        ends.retain(|end| (first..=last).contains(end));
    }
    ends
}

/// Live bytes per site at the end of each step.
#[inline(never)]
fn rows(trace: &[Event], ends: &[i64], sites: &Sites) -> Vec<Vec<i64>> {
    let mut current = vec![0i64; sites.len()];
    let mut live: HashMap<u64, (usize, i64)> = HashMap::new();
    let mut ends = ends.iter().peekable();
    let mut rows = Vec::new();
    for event in trace {
        while ends.next_if(|end| event.time().unwrap_or_default() > **end).is_some() {
            rows.push(current.clone());
        }
        match event.action {
            Action::Alloc => {
                let site = sites.site(event.stack);
                live.insert(event.address, (site, event.size));
                if let Some(bytes) = current.get_mut(site) {
                    *bytes = bytes.saturating_add(event.size);
                }
            }
            Action::FreeCompleted => {
                let Some((site, size)) = live.remove(&event.address) else { continue };
                if let Some(bytes) = current.get_mut(site) {
                    *bytes = bytes.saturating_sub(size);
                }
            }
            _ => {}
        }
    }
    rows.extend(ends.map(|_| current.clone()));
    rows
}

/// `sum / count`, rounded to the nearest, ties to even.
fn mean(sum: i64, count: i64) -> i64 {
    let (down, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
    let is_up = rest * 2 > count || rest * 2 == count && down % 2 != 0;
    down + i64::from(is_up)
}

/// The sites whose live bytes grow in every step but the first, in which parameters and optimizer states are made.
#[inline(never)]
pub(crate) fn leaks(snapshot: &Snapshot, device: i64, sites: &Sites) -> Option<Leaks> {
    let trace = snapshot.trace(device);
    let ends = step_ends(snapshot, device);
    if ends.len() < 3 || !trace.iter().any(|event| event.time().is_some()) {
        return None;
    }
    let rows = rows(trace, &ends, sites);
    let rows = rows.get(1..).unwrap_or_default();
    let mut leaks = Vec::new();
    for site in 0..sites.len() {
        let levels: Vec<i64> = rows.iter().filter_map(|row| row.get(site)).copied().collect();
        let deltas: Vec<i64> =
            levels.iter().zip(levels.iter().skip(1)).map(|(a, b)| b.saturating_sub(*a)).collect();
        // (A library makes one per stream.)
        let is_workspace = sites.name(site) == WORKSPACE;
        if is_workspace || deltas.len() < 2 || deltas.iter().any(|delta| *delta <= 0) {
            continue;
        }
        let total = deltas.iter().fold(0i64, |sum, delta| sum.saturating_add(*delta));
        leaks.push(LeakRow {
            site: sites.name(site).to_owned(),
            bytes_per_step: mean(total, deltas.len() as i64),
            steps: deltas.len() as u64,
            total,
        });
    }
    leaks.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.site.cmp(&b.site)));
    Some(Leaks { leaks, steps: ends.len() as u64 })
}
