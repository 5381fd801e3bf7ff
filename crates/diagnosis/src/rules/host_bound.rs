//! M3: the GPU waits for work of the CPU that is not the launches themselves. Gaps count with the part before the launch.

use report::units::{percent, time};
use triage::WallPart;

use crate::facts::{Device, FirstStep, OneWork};
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = late(facts);
    found.extend(super::cpu_work::check(facts));
    for device in facts.devices() {
        found.extend(super::in_annotations::check(facts, &device));
        found.extend(super::unrecorded::check(facts, &device));
        found.extend(super::one_call::check(facts, &device));
        found.extend(super::ddp_buffers::check(&device));
        found.extend(super::without_launch::check(&device));
    }
    found
}

/// What is late of a step that the profiler starts in: what the CPU takes longer than the device.
fn in_stream(facts: &Facts<'_>, device: &Device<'_>, step: &FirstStep) -> Option<Finding> {
    let (late_ns, late_pct) = device.late();
    let bound_ns = step.excess_ns();
    let share = bound_ns as f64 / facts.wall_ns() as f64;
    (bound_ns > 0 && late_pct >= 100.0 * LEAST_SHARE).then(|| {
        Finding::fact(Rule::HostBound, "host_bound", step.cost())
            .level(Level::of_share(share))
            .confidence(Confidence::Low)
            .on(device.name)
            .bound(bound_ns)
            .means(device.where_it_waits())
            .with("wall", "idle until late launches", time(late_ns))
    })
}

/// Devices that wait for late launches.
fn late(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .devices()
        .filter(|device| device.is_told())
        .filter_map(|device| {
            if let Some(step) = device.first_step() {
                return in_stream(facts, &device, &step);
            }
            if device.is_launch_bound() {
                return None;
            }
            let again = super::between_graphs::captured_again(facts, &device);
            let (late_ns, _) = device.late();
            let is_most =
                |one: &Finding| one.bound_ns.unwrap_or_default().saturating_mul(2) >= late_ns;
            if let Some(again) = again.filter(|one| device.cold().is_none() && is_most(one)) {
                return Some(again);
            }
            if let Some(between) = super::between_graphs::check(facts, &device) {
                return Some(between);
            }
            // (The same late launches, and more.)
            let hidden = || super::hidden_launches::check(facts, &device);
            if device.cold().is_some() || hidden().is_some() {
                return None;
            }
            let gaps = &device.gaps.all;
            let (late, late_pct) = device.late();
            let share = late_pct / 100.0;
            // (What comes late before a few launches is their copies, or the recording itself.)
            let ns = |part| device.wall(part).map_or(0, |row| row.total_ns);
            let of_few =
                ns(WallPart::Launch) > ns(WallPart::HostCompute) && facts.has_few_launches();
            if share < LEAST_SHARE || of_few {
                return None;
            }
            let (left_ns, _, in_graph) =
                super::launch_bound::without_graph_launch(&device, (late, late_pct));
            let places = if in_graph.is_empty() { device.where_it_waits() } else { String::new() };
            let work = device.one_work();
            let bound_ns = match work {
                Some(work) => left_ns.min(device.saved_without_work_ns(work)),
                None => left_ns,
            };
            let observation = format!(
                "{} is idle for {} because the CPU launches the next work late ({} of {}).",
                device.title(),
                time(late),
                percent(late_pct),
                facts.whole(),
            );
            let finding = Finding::fact(Rule::HostBound, "host_bound", observation)
                .level(Level::of_share(share))
                .confidence(device.confidence_of_launches().min(Confidence::Medium))
                .on(device.name)
                .bound(bound_ns)
                .with("wall", "idle until late launches", time(late))
                .with(
                    format!("gaps.{}.all.host_ns", device.name),
                    "gaps before the launch",
                    time(gaps.host_ns),
                )
                .with(
                    format!("gaps.{}.all.bins", device.name),
                    "gaps above 100 µs",
                    time(gaps.bins.gt_100us.ns),
                );
            let late = [WallPart::Launch, WallPart::HostCompute];
            let text = format!(
                "{places}{in_graph}{}{}{}{}",
                work.map_or_else(String::new, OneWork::sentence),
                device.late_kernel().map_or_else(String::new, |kernel| kernel.sentence()),
                facts.in_one_iteration(&late),
                device.costs_unrecorded()
            );
            Some(finding.means(text.trim()))
        })
        .collect()
}
