//! M11: calls that allocate or free in the steps: after the first steps there should be none. Where there is one for each tensor, the
//! cache is off.

use dialect::calls::FREES;
use host::HostSlice;
use host::class::Class;
use host::slices::ThreadId;
use report::units::{count, percent, plural, time};
use timeline::intervals::{both, holds, length, union};
use trace::StringId;
use triage::WallPart;

use crate::facts::Device;
use crate::{Facts, Finding, Level, Rule};

/// Fewer may be those of a library, or of a context that is made.
const FEWEST_FREES: u64 = 3;

/// Memory is short where driver calls that allocate and free take one part in so many of the steps.
const SHORT_PART: i64 = 20;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    if let Some((n_mallocs, malloc)) = facts.uncached {
        let found = without_cache(facts, n_mallocs, malloc);
        if !found.is_empty() {
            return found;
        }
    }
    let calls = &facts.host.runtime.alloc_calls_in_cpu_step;
    if calls.n == 0 {
        return facts.devices().filter_map(|device| grows(facts, &device)).collect();
    }
    let of_device = |device: Device<'_>| {
        (device.figures.idle.cover_ns.malloc_free, holds_up_more(facts, &device))
    };
    let devices = facts.devices().map(of_device);
    let (idle_ns, exposed_ns) =
        devices.max_by_key(|(idle_ns, more_ns)| idle_ns + more_ns).unwrap_or_default();
    let covered = idle_ns.saturating_add(exposed_ns);
    let steps: i64 = facts.slices.steps.iter().map(host::HostSlice::dur_ns).sum();
    let share = covered as f64 / steps.max(1) as f64;
    let others = match exposed_ns {
        0 => String::new(),
        ns => format!(", and {} in which the GPU only communicates", time(ns)),
    };
    let text = format!(
        "{} driver calls in the steps allocate or free memory ({}); they cover {} of idle time{others}.",
        count(calls.n),
        time(calls.total_ns),
        time(idle_ns)
    );
    let n_frees = frees_in_ops(facts);
    let (verdict, meaning) = match retries(n_frees) {
        true => (
            "retries",
            format!(
                "{} calls free cached memory inside ops that allocate: PyTorch does so when an allocation fails, before it retries.",
                count(n_frees)
            ),
        ),
        false => (
            "in_steps",
            "PyTorch's cache grows or is emptied. In a steady state neither happens.".to_owned(),
        ),
    };
    let finding = Finding::fact(Rule::Allocator, verdict, text).with(
        "runtime.alloc_calls_in_cpu_step",
        "share of the steps",
        percent(100.0 * share),
    );
    // (A first step fills the cache, as the later ones show.)
    let is_once = verdict == "in_steps" && is_in_first_of_several(facts);
    vec![match is_once {
        true => finding,
        false => finding.level(Level::of_share(share)).bound(covered).means(meaning),
    }]
}

/// Whether so many calls that free memory in ops show that allocations fail.
fn retries(n_frees: u64) -> bool {
    n_frees >= FEWEST_FREES
}

/// How long the device only communicates while a thread that launches its work allocates memory or frees it, and what comes next is not
/// launched.
fn holds_up_more(facts: &Facts<'_>, device: &Device<'_>) -> i64 {
    let slices = facts.slices;
    let is_own = |call: &&HostSlice| matches!(slices.class(call), Class::Malloc | Class::Free);
    let calls = slices.calls.iter().filter(is_own).map(HostSlice::interval);
    let steps = union(slices.steps.iter().map(HostSlice::interval).collect());
    let calls = both(&union(calls.collect()), &steps);
    device.held(&device.exposed()).map_or(0, |held| length(&both(&held.times, &calls)))
}

/// Whether allocations fail, and driver calls that allocate and free take much of the steps.
pub(crate) fn is_short(facts: &Facts<'_>) -> bool {
    let calls = &facts.host.runtime.alloc_calls_in_cpu_step;
    let steps: i64 = facts.slices.steps.iter().map(HostSlice::dur_ns).sum();
    calls.total_ns.saturating_mul(SHORT_PART) >= steps && retries(frees_in_ops(facts))
}

/// Whether the file has several steps of the profiler, and the CPU allocates memory of the driver or frees it in the first one only.
fn is_in_first_of_several(facts: &Facts<'_>) -> bool {
    let slices = facts.slices;
    let is_own = |call: &&HostSlice| matches!(slices.class(call), Class::Malloc | Class::Free);
    let first_ns = slices.steps.iter().map(|step| step.end_ns).min().unwrap_or_default();
    let mut later = slices.calls.iter().filter(is_own).filter(|call| call.start_ns >= first_ns);
    let steps = union(slices.steps.iter().map(HostSlice::interval).collect());
    slices.steps.len() > 1 && !later.any(|call| holds(&steps, call.start_ns))
}

/// From this share of the wall time of a device on, in percent.
const LEAST_GROWTH_PCT: f64 = 5.0;

/// That the cache grows while the device stands still, where no steps tell whether later ones do without.
fn grows(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    // (Where iterations tell, or memory goes back to the driver, it need not be the first pass alone.)
    let slices = facts.slices;
    let frees = slices.calls.iter().any(|call| FREES.contains(&slices.name(call)));
    if !slices.steps.is_empty() || facts.iterations.is_some() || !facts.has_one_device() || frees {
        return None;
    }
    let row = device.wall(WallPart::Allocation).filter(|row| row.share_pct >= LEAST_GROWTH_PCT)?;
    let n = mallocs_of_cache(facts);
    let text = format!(
        "{} is idle for {} ({} of {}) while the CPU is in driver calls that allocate or free memory ({}).",
        device.title(),
        time(row.total_ns),
        percent(row.share_pct),
        facts.whole(),
        plural(n, "call allocates", "calls allocate"),
    );
    let finding = Finding::fact(Rule::Allocator, "grows", text)
        .level(Level::of_share(row.share_pct / 100.0))
        .on(device.name)
        .means(
            "PyTorch caches what it has allocated, so later passes with the same sizes make no such calls: record after a few passes."
                .to_owned(),
        )
        .with("wall", "idle while memory is allocated or freed", time(row.total_ns));
    (n > 0).then_some(finding)
}

/// Calls in ops that allocate memory of the driver, as PyTorch's cache does when it has none. (Others may be of a library, or of a pool of
/// the driver, which are cheap.)
fn mallocs_of_cache(facts: &Facts<'_>) -> u64 {
    let slices = facts.slices;
    let ops = slices.closed_ops();
    let mallocs = slices.calls.iter().filter(|call| slices.class(call) == Class::Malloc);
    let mut mallocs: Vec<_> =
        mallocs.map(|call| (slices.thread(call.row), call.start_ns)).collect();
    trace::sort(&mut mallocs);
    let of_thread = |own: &[(ThreadId, i64)]| {
        let thread = own.first().map(|(thread, _)| *thread);
        let starts = own.iter().map(|(_, start_ns)| *start_ns);
        let around = thread.map(|thread| ops.innermost(thread, starts)).unwrap_or_default();
        let names = around.into_iter().flatten().map(|at| slices.name(&ops.slices[at]));
        names.filter(|op| op.starts_with("aten::")).count() as u64
    };
    mallocs.chunk_by(|a, b| a.0 == b.0).map(of_thread).sum()
}

/// Calls in the steps that give memory back to the driver inside an op that allocates after that: the program does not ask for it there.
/// Not those of linear algebra, whose libraries have workspaces of their own.
fn frees_in_ops(facts: &Facts<'_>) -> u64 {
    let slices = facts.slices;
    let steps = union(slices.steps.iter().map(HostSlice::interval).collect());
    let frees = slices.calls.iter().filter(|call| FREES.contains(&slices.name(call)));
    let mut frees: Vec<&HostSlice> = frees.filter(|call| holds(&steps, call.start_ns)).collect();
    let place = |call: &HostSlice| (slices.thread(call.row), call.start_ns);
    trace::sort_by_key(&mut frees, |call| place(call));
    let mallocs = slices.calls.iter().filter(|call| slices.class(call) == Class::Malloc);
    let mallocs = mallocs.filter(|call| holds(&steps, call.start_ns));
    let mut mallocs: Vec<_> = mallocs.map(place).collect();
    trace::sort(&mut mallocs);
    let in_ops = |of_thread: &[&HostSlice]| {
        let thread = of_thread.first().map(|call| slices.thread(call.row));
        let ops = slices.closed_ops();
        let starts = of_thread.iter().map(|call| call.start_ns);
        let around = thread.map(|thread| ops.innermost(thread, starts)).unwrap_or_default();
        let is_retry = |(free, at): (&&HostSlice, Option<usize>)| {
            let Some(op) = at.map(|at| &ops.slices[at]) else { return false };
            let name = slices.name(op);
            let of_thread = slices.thread(free.row);
            let next = mallocs.partition_point(|malloc| *malloc < (of_thread, free.end_ns));
            let next = mallocs.get(next).filter(|malloc| **malloc < (of_thread, op.end_ns));
            name.starts_with("aten::") && !name.contains("linalg") && next.is_some()
        };
        of_thread.iter().zip(around).filter(|pair| is_retry(*pair)).count() as u64
    };
    frees.chunk_by(|a, b| slices.thread(a.row) == slices.thread(b.row)).map(in_ops).sum()
}

/// What is said where each tensor is a call of the driver.
fn without_cache(facts: &Facts<'_>, n_mallocs: u64, malloc: StringId) -> Vec<Finding> {
    let of_device = |device: Device<'_>| {
        let row = device.wall(WallPart::Allocation)?;
        let text = format!(
            "{} calls of {} allocate memory from the driver: PyTorch's caching allocator is off. {} is idle for {} ({} of {}) while the \
             CPU allocates or frees.",
            count(n_mallocs),
            facts.slices.trace.strings.get(malloc),
            device.title(),
            time(row.total_ns),
            percent(row.share_pct),
            facts.whole(),
        );
        // (Where launches are not recorded, the replay knows less than the idle time.)
        let saved_ns = device.saved_without_calls_ns(|call| {
            matches!(facts.slices.class(call), Class::Malloc | Class::Free)
        });
        let bound_ns = saved_ns.max(row.total_ns);
        let meaning = match time(bound_ns) == time(row.total_ns) {
            true => String::new(),
            false => {
                "The bound is higher than the idle time during these calls, because launches after them also come earlier."
                    .to_owned()
            }
        };
        let finding = Finding::fact(Rule::Allocator, "uncached", text)
            .level(Level::of_share(row.share_pct / 100.0))
            .on(device.name)
            .bound(bound_ns)
            .means(meaning)
            .with("wall", "idle while memory is allocated or freed", time(row.total_ns));
        Some(finding)
    };
    facts.devices().filter_map(of_device).collect()
}
