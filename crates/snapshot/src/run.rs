//! What a snapshot writes down of its run, so that a trace of the same run is recognised and can say more of it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::model::{Action, Event, Snapshot};
use crate::report::SnapshotReport;
use crate::site::Sites;

/// Allocations by which a trace is recognised, per device.
const MOST_DRAWN: usize = 4_096;
/// Call sites at the peak that a trace is asked about.
const MOST_SITES: usize = 8;
/// Blocks of a call site that a trace is asked about: the largest.
const MOST_BLOCKS: usize = 256;
/// Steps of the profiler by which a trace is recognised.
const MOST_STEPS: usize = 1_000;
const STEP: &str = "ProfilerStep#";

/// What a trace of the same run is recognised by, and what it is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Devices that the allocator knew.
    pub n_devices: usize,
    /// Times of the first and the last event, in us since 1970; `None` where events have no time.
    pub span_us: Option<(i64, i64)>,
    /// Allocations of blocks by device and time; where there are many, each nth.
    pub allocations: Vec<Allocated>,
    /// Starts of the profiler's steps: name, and time in us since 1970.
    pub steps: Vec<(String, i64)>,
    /// What a trace can say more of.
    pub questions: Vec<Question>,
}

/// An allocation of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocated {
    /// Device number.
    pub device: i64,
    /// First byte; 0 of an allocation that failed.
    pub address: u64,
    /// Requested bytes.
    pub bytes: i64,
    /// When, in us since 1970.
    pub time_us: i64,
}

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The allocation that failed.
    Failed,
    /// The allocation that reaches the peak.
    Peak,
    /// What a call site holds at the peak.
    AtPeak,
    /// What a call site holds at the end, which grows from step to step.
    Grows,
}

/// A question to the trace: which ops allocated these blocks, and in which steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked about.
    pub asked: Asked,
    /// Device number.
    pub device: i64,
    /// Who allocated, by the stacks of the snapshot.
    pub site: String,
    /// Requested bytes of all its blocks, those from before the first event, too.
    pub bytes: i64,
    /// The largest of its recorded blocks, by time.
    pub blocks: Vec<Allocated>,
}

/// What a trace can be asked.
pub(crate) fn run_facts(snapshot: &Snapshot, report: &SnapshotReport) -> RunFacts {
    let mut facts = RunFacts { n_devices: snapshot.traces.len(), ..RunFacts::default() };
    let sites = Sites::of(snapshot);
    for (device, trace) in (0..).zip(&snapshot.traces) {
        let times = || trace.iter().filter_map(Event::time);
        let Some((first, last)) = times().min().zip(times().max()) else { continue };
        let (from, to) = facts.span_us.unwrap_or((first, last));
        facts.span_us = Some((from.min(first), to.max(last)));
        let is_drawn = |event: &&Event| event.action == Action::Alloc && event.time().is_some();
        let n = trace.iter().filter(is_drawn).count();
        let drawn = trace.iter().filter(is_drawn).step_by(n.div_ceil(MOST_DRAWN).max(1));
        facts.allocations.extend(drawn.filter_map(|event| allocated(device, event)));
        // (Blocks of a part of a file are those of no run.)
        if !snapshot.reading.is_partial() {
            questions(report, device, trace, &sites, &mut facts.questions);
        }
    }
    facts.steps = steps(snapshot);
    facts
}

/// Starts of the profiler's steps: name, and time in us since 1970.
pub(crate) fn steps(snapshot: &Snapshot) -> Vec<(String, i64)> {
    let is_step = |mark: &&crate::Annotation| !mark.is_end && mark.name.starts_with(STEP);
    let steps = snapshot.annotations.iter().filter(is_step).take(MOST_STEPS);
    let mut steps: Vec<_> = steps.map(|mark| (mark.name.clone(), mark.time_us)).collect();
    // (Each device has them.)
    steps.dedup();
    steps
}

fn allocated(device: i64, event: &Event) -> Option<Allocated> {
    let (address, bytes) = (event.address, event.size);
    Some(Allocated { device, address, bytes, time_us: event.time()? })
}

fn questions(
    report: &SnapshotReport,
    device: i64,
    trace: &[Event],
    sites: &Sites,
    questions: &mut Vec<Question>,
) {
    let site = |event: &Event| sites.name(sites.site(event.stack)).to_owned();
    for event in trace.iter().filter(|event| event.action == Action::Oom) {
        let blocks = allocated(device, event).into_iter().collect();
        let (asked, bytes) = (Asked::Failed, event.size);
        questions.push(Question { asked, device, site: site(event), bytes, blocks });
    }
    let number = device.to_string();
    let Some(figures) = report.devices.get(&number) else { return };
    let of_sites = |asked, at: usize, wanted: Vec<(&str, i64)>| {
        let mut blocks = held(trace, at, sites);
        let question = |(site, bytes): (&str, i64)| {
            let mut blocks: Vec<&Event> = blocks.remove(site).unwrap_or_default();
            blocks.sort_by_key(|event| std::cmp::Reverse(event.size));
            blocks.truncate(MOST_BLOCKS);
            blocks.sort_by_key(|event| event.time_us);
            let blocks = blocks.into_iter().filter_map(|event| allocated(device, event)).collect();
            Question { asked, device, site: site.to_owned(), bytes, blocks }
        };
        wanted.into_iter().map(question).collect::<Vec<_>>()
    };
    if let Some(at) = report.peak_index(&number)
        && let Some(timeline) = &figures.timeline
    {
        if let Some(event) = at.checked_sub(1).and_then(|at| trace.get(at))
            && event.action == Action::Alloc
        {
            let (asked, bytes) = (Asked::Peak, timeline.replay.peak_requested);
            let blocks = allocated(device, event).into_iter().collect();
            questions.push(Question { asked, device, site: site(event), bytes, blocks });
        }
        let sites = timeline.replay.peak_sites.iter().take(MOST_SITES);
        let wanted = sites.map(|row| (row.site.as_str(), row.bytes)).collect();
        questions.extend(of_sites(Asked::AtPeak, at, wanted));
    }
    let growing = figures.leaks.iter().flatten().take(MOST_SITES);
    let wanted: Vec<_> = growing.map(|row| (row.site.as_str(), row.total)).collect();
    if !wanted.is_empty() {
        questions.extend(of_sites(Asked::Grows, trace.len(), wanted));
    }
}

/// The allocations before event `at` that are not freed before it, by call site.
fn held<'a>(trace: &'a [Event], at: usize, sites: &Sites) -> HashMap<String, Vec<&'a Event>> {
    let mut open: HashMap<u64, &Event> = HashMap::new();
    for event in trace.iter().take(at) {
        match event.action {
            Action::Alloc => {
                open.insert(event.address, event);
            }
            Action::FreeCompleted => {
                open.remove(&event.address);
            }
            _ => {}
        }
    }
    let mut found: HashMap<String, Vec<&Event>> = HashMap::new();
    let mut events: Vec<&Event> = open.into_values().collect();
    events.sort_by_key(|event| (event.time_us, event.address));
    for event in events {
        found.entry(sites.name(sites.site(event.stack)).to_owned()).or_default().push(event);
    }
    found
}
