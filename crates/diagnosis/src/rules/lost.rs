//! Launches without GPU work in the file: the profiler lost it, or stopped before it had run. Nothing counts it.

use dialect::calls::{begins_capture, ends_capture};
use host::HostSlice;
use host::class::Class;
use report::units::{count, percent, time};
use timeline::intervals::length;
use trace::Row;
use triage::LostCalls;

use crate::{Facts, Finding, Rule};

/// Of all launches; fewer are those of the last moments of a recording.
const LEAST_SHARE: f64 = 0.01;

/// Where the count is in the figures of the host.
const PATH: &str = "links.runtime_calls_without_gpu_slice.launch";

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = without_work(facts);
    found.extend(calls(facts));
    found
}

/// Calls that were lost in the middle of the recording.
fn calls(facts: &Facts<'_>) -> Option<Finding> {
    let lost = &facts.triage.lost_calls;
    let clause = LostCalls::clause(lost).filter(|_| facts.has_gpu())?;
    let meaning = "The profiler lost the calls and what they launched. Idle time then is left out.";
    let finding = Finding::fact(Rule::Lost, "no_calls", format!("{clause}.")).means(meaning);
    Some(lost.iter().fold(finding, |finding, of_rank| {
        let what = match &of_rank.devices[..] {
            [] => "time without a call in which ops go on".to_owned(),
            devices => format!("the same on the rank of GPU {}", devices.join(", ")),
        };
        finding.with("wall", &what, time(length(&of_rank.times)))
    }))
}

/// Launches without GPU work.
fn without_work(facts: &Facts<'_>) -> Vec<Finding> {
    let links = &facts.host.links;
    let lost = links.runtime_calls_without_gpu_slice.get(&Class::Launch).copied().unwrap_or(0);
    let all = facts.host.runtime.classes.get(&Class::Launch).map_or(0, |calls| calls.count);
    let share = lost as f64 / all.max(1) as f64;
    // (While a graph is captured, and where nothing is recorded of the GPU, other rules say so.)
    if !facts.has_gpu() || facts.is_capture() || lost == 0 || share < LEAST_SHARE {
        return Vec::new();
    }
    if let Some(cut) = &facts.triage.cut {
        // (The headline has it.)
        let finding = Finding::fact(Rule::Lost, "cut", cut.sentence());
        return vec![finding.aside(true).with(PATH, "launch calls", count(lost))];
    }
    let text = format!(
        "{} of {} launch calls ({}) have no GPU work in the file.",
        count(lost),
        count(all),
        percent(100.0 * share)
    );
    let meaning = "The profiler lost it, it ran after the recording, or a graph was captured. No figure of the GPU counts it.";
    let finding = Finding::fact(Rule::Lost, "no_gpu_work", text).means(meaning);
    let at_edges = lost <= MOST_AT_EDGES && is_at_edges(facts);
    let is_known = at_edges || captured(facts).saturating_mul(10) >= lost.saturating_mul(9);
    vec![finding.aside(is_known).with(PATH, "launch calls", count(lost))]
}

/// Launches without GPU work on a thread that captures a graph then: they launch nothing by themselves.
fn captured(facts: &Facts<'_>) -> u64 {
    let slices = facts.slices;
    let place = |call: &HostSlice| (slices.thread(call.row), call.start_ns);
    let of = |is: fn(&str) -> bool| {
        let own = slices.calls.iter().filter(|call| is(slices.name(call)));
        let mut places: Vec<_> = own.map(place).collect();
        trace::sort(&mut places);
        places
    };
    let (begins, ends) = (of(begins_capture), of(ends_capture));
    let captures = |(thread, ns)| {
        let begin = begins.partition_point(|begin| *begin < (thread, ns)).checked_sub(1);
        let begin = begin.map(|at| begins[at]).filter(|(of, _)| *of == thread);
        begin.is_some_and(|begin| {
            let end = ends.get(ends.partition_point(|end| *end < begin));
            end.is_some_and(|end| end.0 == thread && end.1 > ns)
        })
    };
    let mut with: Vec<Row> =
        facts.gpu.linked().filter_map(|one| one.launch).map(|call| call.row).collect();
    trace::sort(&mut with);
    let is_without = |call: &&HostSlice| {
        slices.class(call) == Class::Launch && with.binary_search(&call.row).is_err()
    };
    slices.calls.iter().filter(is_without).filter(|call| captures(place(call))).count() as u64
}

/// As many launches may be without work at the edges of any recording.
const MOST_AT_EDGES: u64 = 10;

/// Whether all launches without work come before the first launch that has some, or after the last one: the recording of the GPU began
/// later than that of the CPU, or ended earlier.
fn is_at_edges(facts: &Facts<'_>) -> bool {
    let launches = facts.gpu.linked().filter_map(|one| one.launch);
    let mut with: Vec<(i64, Row)> = launches.map(|call| (call.start_ns, call.row)).collect();
    trace::sort(&mut with);
    with.dedup();
    let (Some((first_ns, _)), Some((last_ns, _))) = (with.first(), with.last()) else {
        return false;
    };
    let inside = facts.slices.calls.iter().filter(|call| {
        facts.slices.class(call) == Class::Launch && (*first_ns..=*last_ns).contains(&call.start_ns)
    });
    let mut inside = inside.map(|call| (call.start_ns, call.row));
    inside.all(|call| with.binary_search(&call).is_ok())
}
