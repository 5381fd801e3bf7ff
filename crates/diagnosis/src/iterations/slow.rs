//! What the CPU spends the time of a slow iteration on.

use std::collections::BTreeMap;

use host::HostSlice;
use host::class::Class;
use host::slices::{Family, ThreadId};
use report::units::time;
use serde::Serialize;
use timeline::intervals::{Interval, both, length, union};
use trace::StringId;
use triage::WallPart;

use super::{Iteration, Run};

/// Of those that grew most, ranges around each other have this part of the growth each.
const ALIKE: f64 = 0.8;
/// A range of this part of an iteration says nothing of where its time goes.
const WHOLE: f64 = 0.8;
/// Work and idle time of the GPU are the same where they differ by no more than one of so many parts of the difference on the CPU, and of half
/// the median duration.
const SAME_PARTS: u64 = 5;

/// An iteration that waits longer for a GPU whose work is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnlyWaits {
    /// How much longer its launching threads wait for the GPU.
    pub longer_ns: i64,
    /// The call in which they wait that much longer, if it is one name.
    pub call: Option<String>,
    /// Time that the GPU is busy with the work of the slow one, and of the median one.
    pub busy_ns: (i64, i64),
    /// How long the GPU is idle while each lasts on the CPU.
    pub idle_ns: (i64, i64),
}

impl OnlyWaits {
    /// What follows the difference on the CPU.
    pub(super) fn clause(&self) -> String {
        let call = self.call.as_ref().map_or_else(String::new, |call| format!(", in {call}"));
        format!(
            ", but it does not delay the GPU: the CPU waits {} longer for it{call}; the GPU is busy with its work for {} ({} with that of \
             the median one), and idle for {} during it ({})",
            time(self.longer_ns),
            time(self.busy_ns.0),
            time(self.busy_ns.1),
            time(self.idle_ns.0),
            time(self.idle_ns.1)
        )
    }
}

/// The range, op or call whose time grew most from the median iteration to the slow one, on the threads that launch GPU work in it; `None`
/// below half of the difference.
pub(super) fn on_cpu(
    run: &Run<'_>,
    slow: &Iteration,
    median: &Iteration,
    longer_ns: i64,
) -> Option<(String, i64)> {
    let threads = launching(run, slow.window);
    let is_step = |name: StringId| {
        let name = run.trace.strings.get(name);
        host::slices::is_step(name) || triage::class(name) == slow.class
    };
    // By name: its time in the slow iteration, and in the median one.
    let mut times = vec![(0_i64, 0_i64); run.trace.strings.len()];
    let others = run.slices.all.iter();
    let others = others.filter(|(_, family)| matches!(family, Family::Call | Family::Annotation));
    for slice in
        outermost_ops(run, [slow.window, median.window]).chain(others.map(|(slice, _)| slice))
    {
        if threads.binary_search(&run.slices.thread(slice.row)).is_err() {
            continue;
        }
        let inside = |window: Interval| {
            slice.end_ns.min(window.1).saturating_sub(slice.start_ns.max(window.0)).max(0)
        };
        let (in_slow, in_median) = (inside(slow.window), inside(median.window));
        if in_slow > 0 || in_median > 0 {
            let sum = &mut times[run.trace.name(slice.row).0 as usize];
            *sum = (sum.0.saturating_add(in_slow), sum.1.saturating_add(in_median));
        }
    }
    let grew = |(in_slow, in_median): &(i64, i64)| in_slow.saturating_sub(*in_median);
    let all = (0_u32..).map(StringId).zip(&times).filter(|(_, times)| grew(times) > 0);
    // (What is nearly all of the iteration is another name of it.)
    let fills = |ns: i64, one: &Iteration| ns as f64 >= WHOLE * one.dur_ns as f64;
    let whole = |times: &(i64, i64)| fills(times.0, slow) && fills(times.1, median);
    let all = all.filter(|(name, times)| !is_step(*name) && !whole(times));
    let all: Vec<(StringId, &(i64, i64))> = all.collect();
    let most = all.iter().map(|(_, times)| grew(times)).max();
    let most = most.filter(|ns| ns.saturating_mul(2) >= longer_ns)?;
    let alike = all.iter().filter(|(_, times)| grew(times) as f64 >= ALIKE * most as f64);
    // (More than the difference: it counts ranges inside each other, or of several threads.)
    let alike = alike.filter(|(_, times)| grew(times) <= longer_ns.saturating_mul(2));
    let (name, times) = alike.min_by_key(|(_, (in_slow, _))| *in_slow)?;
    Some((run.trace.strings.get(*name).to_owned(), grew(times)))
}

/// The ops in some windows that are in none of their own name: one that calls itself has its time once.
fn outermost_ops<'a>(run: &Run<'a>, windows: [Interval; 2]) -> impl Iterator<Item = &'a HostSlice> {
    let (trace, ops) = (run.trace, &run.slices.ops);
    let is_outermost = move |at: &usize| {
        let name = trace.name(ops.slices[*at].row);
        ops.chain(*at).skip(1).all(|outer| trace.name(ops.slices[outer].row) != name)
    };
    let is_within = move |at: &usize| {
        let op = &ops.slices[*at];
        windows.iter().any(|(from, to)| op.start_ns < *to && *from < op.end_ns)
    };
    (0..ops.slices.len()).filter(is_within).filter(is_outermost).map(|at| &ops.slices[at])
}

/// Whether a part of the wall time is the doing of the CPU.
pub(super) fn is_of_cpu(part: WallPart) -> bool {
    matches!(
        part,
        WallPart::DataLoading
            | WallPart::HostCompute
            | WallPart::Launch
            | WallPart::Start
            | WallPart::Allocation
            | WallPart::Loading
            | WallPart::Profiler
            | WallPart::Unexplained
    )
}

/// How long calls of an iteration's launching threads wait for the GPU in it.
pub(super) fn waits_ns(run: &Run<'_>, one: &Iteration) -> i64 {
    covered_ns(&waits(run, one.window), one.window)
}

/// When calls of the threads that launch in a window wait for the GPU.
pub(super) fn awaited(run: &Run<'_>, window: Interval) -> Vec<Interval> {
    union(waits(run, window).into_iter().map(|(_, times)| times).collect())
}

/// How much of a window these calls cover.
fn covered_ns(calls: &[(&str, Interval)], window: Interval) -> i64 {
    let times = calls.iter().map(|(_, interval)| *interval);
    length(&both(&union(times.collect()), &[window]))
}

/// Names and times of the calls which wait for the GPU, of the threads that launch in a window: calls that synchronise, copies that block
/// by name, and those during which the copy runs (of pageable memory the CPU waits for it).
fn waits<'a>(run: &Run<'a>, window: Interval) -> Vec<(&'a str, Interval)> {
    let threads = launching(run, window);
    let is_own = |call: &HostSlice| threads.binary_search(&run.slices.thread(call.row)).is_ok();
    let blocks =
        |call: &&HostSlice| run.slices.class(call) == Class::Sync || run.slices.blocks(call);
    let by_name = run.slices.calls.iter().filter(blocks).filter(|call| is_own(call));
    let by_name = by_name.map(|call| (run.slices.name(call), call.interval()));
    let copies = run.gpu.linked().filter_map(|one| {
        let call = one.launch?;
        let waits = run.slices.class(&call) == Class::Memcpy && one.slice.start_ns < call.end_ns;
        let is_new = waits && !run.slices.blocks(&call) && is_own(&call);
        is_new.then(|| (run.slices.name(&call), (call.start_ns, call.end_ns)))
    });
    by_name.chain(copies).collect()
}

/// How a slow iteration waits longer for the GPU, if that is half of the difference while the GPU's work and idle time are those of the
/// median one: then the CPU is behind the GPU, and where in its loop it waits decides how long each iteration takes on it.
pub(super) fn only_waits(
    run: &Run<'_>,
    (before, slow): (Option<&Iteration>, &Iteration),
    median: &Iteration,
    longer_ns: i64,
) -> Option<OnlyWaits> {
    let busy_ns = (slow.gpu_busy_ns, median.gpu_busy_ns);
    let idle = |one: &Iteration| -> i64 {
        let of = |part: WallPart| one.parts.get(part.id()).copied().unwrap_or(0);
        WallPart::ALL.into_iter().filter(|part| part.is_idle()).map(of).sum()
    };
    let idle_ns = (idle(slow), idle(median));
    let most_ns = longer_ns.min(median.dur_ns / 2).unsigned_abs();
    let is_same =
        |(slow, median): (i64, i64)| slow.abs_diff(median).saturating_mul(SAME_PARTS) <= most_ns;
    let outside_ns = (slow.outside_ns, median.outside_ns);
    // (It may wait for the work of the one before it.)
    let before_ns = before.map_or(busy_ns, |before| (before.gpu_busy_ns, median.gpu_busy_ns));
    let all_same = [busy_ns, before_ns, idle_ns, outside_ns].into_iter().all(is_same);
    if !all_same {
        return None;
    }
    let calls = [slow, median].map(|one| (waits(run, one.window), one.window));
    let [slow_ns, median_ns] = calls.each_ref().map(|(calls, window)| covered_ns(calls, *window));
    let waited_ns = slow_ns - median_ns;
    if waited_ns.saturating_mul(2) < longer_ns {
        return None;
    }
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for ((calls, window), sign) in calls.into_iter().zip([1, -1]) {
        for (name, call) in calls {
            let of = by_name.entry(name).or_default();
            *of = of.saturating_add(sign * length(&both(&[call], &[window])));
        }
    }
    let most = by_name.into_iter().max_by_key(|(_, ns)| *ns);
    let most = most.filter(|(_, ns)| *ns as f64 >= ALIKE * waited_ns as f64);
    let call = most.map(|(name, _)| name.to_owned());
    Some(OnlyWaits { longer_ns: waited_ns, call, busy_ns, idle_ns })
}

/// The threads whose calls in this window launch GPU work, sorted.
fn launching(run: &Run<'_>, window: Interval) -> Vec<ThreadId> {
    let calls = run.gpu.slices.iter().filter_map(|one| one.launch);
    let inside = calls.filter(|call| window.0 <= call.start_ns && call.start_ns < window.1);
    let mut threads: Vec<ThreadId> = inside.map(|call| run.slices.thread(call.row)).collect();
    trace::sort(&mut threads);
    threads.dedup();
    threads
}

/// The op whose own time differs most between two windows, and by how much.
pub(super) fn op(run: &Run<'_>, slow: Interval, median: Interval) -> Option<(String, i64)> {
    let ops = &run.slices.ops;
    let mut grew: BTreeMap<&str, i64> = BTreeMap::new();
    for (op, own_ns) in ops.slices.iter().zip(ops.self_ns()) {
        let is_in = |window: Interval| window.0 <= op.start_ns && op.start_ns < window.1;
        let sign = i64::from(is_in(slow)) - i64::from(is_in(median));
        if sign != 0 {
            *grew.entry(run.slices.name(op)).or_default() += sign * own_ns;
        }
    }
    let most = grew.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns);
    most.map(|(name, ns)| (name.to_owned(), ns))
}
