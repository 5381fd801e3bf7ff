//! What the launching thread did while a device stood still before the launch of what came next: by line of Python, and by op.
//!
//! Each gap of a device ([`crate::gaps`]) that a GPU slice with a launch ends has a part before the end of that launch. In this
//! part the device waited for the launching thread. So it did from the start of the first step to its first work, and from its
//! last work to the end of the last step (then for the thread of the last launch); this counts where it is a tenth of the steps
//! or more. Each moment of these parts belongs to the innermost frame and to the innermost op of the thread, so that the rows of
//! a table and the time outside add up to them.

mod sections;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dialect::processes::{loads_data, waits_for_others};
use serde::Serialize;
use timeline::intervals::{Interval, both, length, union, without};
use trace::{StringId, Trace};

use crate::by_name::ByName;
use crate::gaps::{Starts, between};
use crate::lines::Lines;
use crate::links::{DeviceId, GpuSide, GpuSlice};
use crate::slices::{HostSlice, Nested, Slices, ThreadId};

pub(crate) use sections::add;

/// Where the launching threads of one device were while it waited for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdlePlaces {
    /// Time in which it waited for a launching thread, in ns: `host_ns` of its gaps, and what the steps have before its first
    /// work and after its last, where that is much.
    pub host_ns: i64,
    /// The same by line of Python, most first: the line that says most of those around the innermost frame.
    pub lines: Vec<IdlePlace>,
    /// The innermost line of Python that is open for three quarters of that time or more, with the time in which it is.
    pub around: Option<IdlePlace>,
    /// The part outside frames, or in frames without a line that says anything.
    pub outside_lines_ns: i64,
    /// The same by the innermost op, most first.
    pub ops: Vec<IdlePlace>,
    /// The part outside ops.
    pub outside_ops_ns: i64,
}

/// A place on the launching threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdlePlace {
    /// `path:line function`, or the name of the op.
    pub name: String,
    /// Time in which the device waited while the thread was here, in ns.
    pub total_ns: i64,
    /// Slices with such a time: of a line its innermost frames.
    pub n: u64,
    /// The innermost frame with the most of it, where it is another than the line's own; empty for ops.
    pub inside: String,
    /// The part of it in functions that wait for another process or thread; 0 for ops.
    #[serde(skip)]
    pub others_ns: i64,
}

impl IdlePlace {
    /// A place whose innermost frame is its own.
    fn new(name: String, total_ns: i64, n: u64) -> Self {
        Self { name, total_ns, n, ..Self::default() }
    }
}

/// Parts of gaps on one thread: disjoint, by start, each with the sum of those before it.
#[derive(Default)]
struct Parts(Vec<(Interval, i64)>);

impl Parts {
    fn of(mut parts: Vec<Interval>) -> Self {
        trace::sort(&mut parts);
        let mut sum = 0;
        let with_sum = |part: Interval| {
            let before = sum;
            sum += part.1 - part.0;
            (part, before)
        };
        Self(parts.into_iter().map(with_sum).collect())
    }

    /// Time of the parts before `at_ns`.
    fn before(&self, at_ns: i64) -> i64 {
        let next = self.0.partition_point(|((start, _), _)| *start <= at_ns);
        let last = next.checked_sub(1).and_then(|at| self.0.get(at));
        last.map_or(0, |((start, end), before)| before + end.min(&at_ns) - start)
    }

    /// Time of the parts within an interval.
    fn within(&self, start_ns: i64, end_ns: i64) -> i64 {
        self.before(end_ns) - self.before(start_ns)
    }
}

/// Where the launching threads were, by device: in all of the recording, or within some windows (disjoint, by start).
#[must_use]
pub fn idle_places(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    within: Option<&[Interval]>,
) -> BTreeMap<String, IdlePlaces> {
    let mut lines = Lines::of(slices.trace);
    let of_device = |(id, name): (DeviceId, &String)| {
        let parts = parts(slices, gpu, id, within);
        let host_ns = parts.values().map(|parts| parts.within(i64::MIN, i64::MAX)).sum();
        let mut found = IdlePlaces { host_ns, ..IdlePlaces::default() };
        found.lines = by_line(slices, &mut lines, &parts);
        found.around = around(slices, &mut lines, &parts, host_ns);
        found.ops = by_op(slices, &parts);
        let sum = |places: &[IdlePlace]| places.iter().map(|place| place.total_ns).sum::<i64>();
        found.outside_lines_ns = host_ns - sum(&found.lines);
        found.outside_ops_ns = host_ns - sum(&found.ops);
        (name.clone(), found)
    };
    (0..).zip(&gpu.devices).map(of_device).collect()
}

/// The idle parts of a device before the launches that end them, by launching thread.
fn parts(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    device: DeviceId,
    within: Option<&[Interval]>,
) -> BTreeMap<ThreadId, Parts> {
    let members: Vec<&GpuSlice> = gpu.on(device).collect();
    let last = members.iter().filter(|one| one.launch.is_some()).max_by_key(|one| one.slice.end_ns);
    let last = last.and_then(|one| one.launch);
    let starts = Starts::of(members);
    let mut of_thread: BTreeMap<ThreadId, Vec<Interval>> = BTreeMap::new();
    let mut add = |launch: &HostSlice, start: i64, end: i64| {
        if end > start {
            of_thread.entry(slices.thread(launch.row)).or_default().push((start, end));
        }
    };
    let busy = gpu.busy(device);
    let (before, after) = edges(slices, gpu, busy).unzip();
    for (start, end) in before.into_iter().chain(between(busy)) {
        if let Some(launch) = starts.at(end).and_then(|next| next.launch) {
            add(&launch, start, launch.end_ns.min(end));
        }
    }
    if let (Some(launch), Some((start, end))) = (last, after) {
        add(&launch, start, end);
    }
    let mut found = BTreeMap::new();
    found.extend(of_thread.into_iter().map(|(thread, parts)| {
        let parts = match within {
            Some(windows) => both(&union(parts), windows),
            None => parts,
        };
        (thread, Parts::of(parts))
    }));
    found
}

/// The time of the steps before the first work of a device and after its last, where that is a tenth of the steps or more: then
/// the bar of the wall time is of the steps, too. Not where most of its work runs outside the steps.
fn edges(slices: &Slices<'_>, gpu: &GpuSide, busy: &[Interval]) -> Option<(Interval, Interval)> {
    let steps = union(slices.steps.iter().map(HostSlice::interval).collect());
    let steps = until_last_work(slices, gpu, steps);
    let (first, last) = (busy.first()?.0, busy.last()?.1);
    // (Of work that runs after the steps, they are no window.)
    if length(&both(busy, &steps)).saturating_mul(2) < length(busy) {
        return None;
    }
    let outside = without(&steps, &[(first, last)]);
    let before = (steps.first()?.0.min(first), first);
    let after = (last, steps.last()?.1.max(last));
    (length(&outside).saturating_mul(10) >= length(&steps)).then_some((before, after))
}

/// The steps without what the profiler does at the end of the last one: up to the last op, call or GPU slice that begins in it. (The
/// profiler waits for the GPU when it stops.)
fn until_last_work(slices: &Slices<'_>, gpu: &GpuSide, mut steps: Vec<Interval>) -> Vec<Interval> {
    let Some(last) = steps.last_mut() else { return steps };
    let (from, until) = *last;
    let calls = slices.calls.iter();
    let calls = calls.filter(|call| !dialect::calls::synchronizes_device(slices.name(call)));
    let on_gpu = gpu.slices.iter().map(|one| &one.slice);
    let work = slices.ops.slices.iter().chain(calls).chain(on_gpu);
    let begun = work.filter(|one| from <= one.start_ns && one.start_ns < until);
    let last_ns = begun.map(|one| one.end_ns.min(until)).max().unwrap_or(until);
    if last_ns > from {
        last.1 = last_ns;
    }
    steps
}

/// Time of the parts in each slice of a thread that no slice inside has; with the number of the slice, where there is any.
fn own_parts(nested: &Nested, thread: ThreadId, parts: &Parts) -> Vec<(usize, i64)> {
    let range = nested.on(thread);
    let first = range.start;
    let mut own = vec![0_i64; range.len()];
    for at in range {
        let HostSlice { start_ns, end_ns, .. } = nested.slices[at];
        own[at - first] += parts.within(start_ns, end_ns);
        if let Some(parent) = nested.parent(at) {
            let within_ns = end_ns.min(nested.slices[parent].end_ns);
            own[parent - first] -= parts.within(start_ns, within_ns);
        }
    }
    own.into_iter()
        .enumerate()
        .filter(|(_, ns)| *ns != 0)
        .map(|(at, ns)| (first + at, ns))
        .collect()
}

fn by_op(slices: &Slices<'_>, parts: &BTreeMap<ThreadId, Parts>) -> Vec<IdlePlace> {
    let trace = slices.trace;
    let mut sums: ByName<(i64, u64)> = ByName::new(trace);
    for (thread, parts) in parts {
        let nested = slices.closed_ops();
        for (at, ns) in own_parts(nested, *thread, parts) {
            let sum = sums.entry(trace.name(nested.slices[at].row));
            *sum = (sum.0 + ns, sum.1 + 1);
        }
    }
    let place = |(name, (total_ns, n)): (StringId, &(i64, u64))| {
        IdlePlace::new(trace.strings.get(name).to_owned(), *total_ns, *n)
    };
    most_first(sums.iter().map(place).collect())
}

/// A function of PyTorch that says nothing of what it calls.
const PASSES: &str = "_disabled_torch_function_impl";

/// Times of a line by its innermost frames.
#[derive(Default)]
struct LineSum {
    total_ns: i64,
    n: u64,
    others_ns: i64,
    inside: BTreeMap<StringId, i64>,
}

fn by_line(
    slices: &Slices<'_>,
    lines: &mut Lines<'_>,
    parts: &BTreeMap<ThreadId, Parts>,
) -> Vec<IdlePlace> {
    let trace = slices.trace;
    let nested = slices.closed_frames();
    let others = Others::of(trace);
    let mut sums: ByName<LineSum> = ByName::new(trace);
    for (thread, parts) in parts {
        for (at, ns) in own_parts(nested, *thread, parts) {
            let Some(best) = lines.best(nested, at) else { continue };
            let sum = sums.entry(best);
            sum.total_ns += ns;
            sum.n += 1;
            if others.are_waited_for(trace, nested, at) {
                sum.others_ns += ns;
            }
            *sum.inside.entry(trace.name(nested.slices[at].row)).or_default() += ns;
        }
    }
    let place = |(name, sum): (StringId, &LineSum)| {
        // (What takes less than half of it is not where it mostly is.)
        let most = sum.inside.iter().max_by_key(|(_, ns)| **ns);
        let inside = most.filter(|(_, ns)| ns.saturating_mul(2) >= sum.total_ns);
        // (PyTorch calls every function of a subclass of Tensor through it.)
        let inside = inside.filter(|(name, _)| !trace.strings.get(**name).contains(PASSES));
        let inside = inside.map(|(inside, _)| *inside);
        IdlePlace {
            name: lines.shown(name),
            total_ns: sum.total_ns,
            n: sum.n,
            others_ns: sum.others_ns,
            inside: inside.filter(|it| *it != name).map(|it| lines.shown(it)).unwrap_or_default(),
        }
    };
    most_first(sums.iter().map(place).collect())
}

/// The innermost line that is open for most of the parts: of the lines with that much, the one with least.
fn around(
    slices: &Slices<'_>,
    lines: &mut Lines<'_>,
    parts: &BTreeMap<ThreadId, Parts>,
    host_ns: i64,
) -> Option<IdlePlace> {
    let trace = slices.trace;
    let nested = slices.closed_frames();
    let mut sums: ByName<(i64, u64)> = ByName::new(trace);
    for (thread, parts) in parts {
        for at in nested.on(*thread) {
            let slice = &nested.slices[at];
            let ns = parts.within(slice.start_ns, slice.end_ns);
            let name = trace.name(slice.row);
            let is_open = |outer: usize| trace.name(nested.slices[outer].row) == name;
            // (A call of itself counts once.)
            if ns > 0 && lines.says(name) && !nested.chain(at).skip(1).any(is_open) {
                let sum = sums.entry(name);
                *sum = (sum.0 + ns, sum.1 + 1);
            }
        }
    }
    let most = sums.iter().filter(|(_, (ns, _))| ns.saturating_mul(4) >= host_ns.saturating_mul(3));
    // (Of equal ones the last to appear is the innermost.)
    let innermost = most.enumerate().min_by_key(|(at, (_, (ns, _)))| (*ns, Reverse(*at)));
    let (_, (name, (total_ns, n))) = innermost?;
    let name = lines.shown(name);
    (host_ns > 0).then(|| IdlePlace::new(name, *total_ns, *n))
}

/// By name: whether a frame or an annotation waits for another process or thread, and whether it is of a data loader, which waits for its
/// own workers.
struct Others {
    waits: Vec<bool>,
    loads: Vec<bool>,
}

impl Others {
    fn of(trace: &Trace) -> Self {
        let marks = |is: fn(&str) -> bool| trace.strings.marked(&is);
        Self { waits: marks(waits_for_others), loads: marks(loads_data) }
    }

    fn is_known(&self, name: StringId) -> bool {
        self.waits[name.0 as usize] || self.loads[name.0 as usize]
    }

    /// Whether the outermost of these that slice `at` lies in waits for another process or thread.
    fn are_waited_for(&self, trace: &Trace, nested: &Nested, at: usize) -> bool {
        let names = nested.chain(at).map(|at| trace.name(nested.slices[at].row));
        let outermost = names.filter(|name| self.is_known(*name)).last();
        outermost.is_some_and(|name| self.waits[name.0 as usize])
    }
}

/// How long the launching threads of a device wait for another process or thread, such as one that gives them work, while it waits for them
/// within these windows (disjoint, by start); with the function that has most of it. Not for the workers of a data loader.
#[must_use]
pub fn waits_for_others_within(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    device: DeviceId,
    within: &[Interval],
) -> Option<IdlePlace> {
    let trace = slices.trace;
    let lines = Lines::of(trace);
    let parts = &parts(slices, gpu, device, Some(within));
    let others = Others::of(trace);
    let mut found: ByName<(i64, u64)> = ByName::new(trace);
    let mut total_ns = 0_i64;
    for (thread, parts) in parts {
        let before_ns = total_ns;
        // (An annotation of gloo lies inside a frame that counts, where frames are recorded.)
        for nested in [slices.closed_frames(), slices.closed_ops()] {
            for at in nested.on(*thread) {
                let name = |at: usize| trace.name(nested.slices[at].row);
                let mut around = nested.chain(at).skip(1);
                if !others.waits[name(at).0 as usize]
                    || around.any(|outer| others.is_known(name(outer)))
                {
                    continue;
                }
                let ns = parts.within(nested.slices[at].start_ns, nested.slices[at].end_ns);
                let sum = found.entry(name(at));
                *sum = (sum.0 + ns, sum.1 + 1);
                total_ns += ns;
            }
            if total_ns > before_ns {
                break;
            }
        }
    }
    let (name, (_, n)) = found.iter().max_by_key(|(_, (ns, _))| *ns)?;
    let name = lines.shown(name);
    (total_ns > 0).then(|| IdlePlace::new(name, total_ns, *n))
}

fn most_first(mut places: Vec<IdlePlace>) -> Vec<IdlePlace> {
    places.retain(|place| place.total_ns > 0);
    trace::sort_by(&mut places, |a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name))
    });
    places
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel, slice};

    use super::*;
    use crate::report::HostIndex;

    /// A thread that works for 60 ns in one function and 20 ns in an op of another before it launches.
    fn waits() -> Fixture {
        let mut fixture = Fixture::default();
        let frame = |name| slice("python_function", name).on(1, 1);
        let call = |at: i64, id: i64| {
            slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 5).link(id)
        };
        fixture.push(frame("train.py(3): main").at(0, 200));
        fixture.push(call(5, 1));
        fixture.push(frame("data.py(7): decode").at(30, 60));
        fixture.push(frame("<built-in method zoom of Image object at 0x7f>").at(40, 45));
        fixture.push(frame("model.py(9): forward").at(95, 40));
        fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(110, 20));
        fixture.push(call(125, 2));
        fixture.push(kernel("a").at(15, 10).link(1));
        fixture.push(kernel("b").at(140, 10).link(2));
        fixture
    }

    fn places(fixture: Fixture) -> IdlePlaces {
        let trace = fixture.finish();
        let index = HostIndex::of(&trace);
        idle_places(&index.slices, &index.gpu, None).remove("0").expect("a device")
    }

    fn rows(places: &[IdlePlace]) -> Vec<(&str, i64, &str)> {
        places.iter().map(|one| (&*one.name, one.total_ns, &*one.inside)).collect()
    }

    #[test]
    fn idle_time_until_a_launch_belongs_to_the_line_that_the_thread_is_in() {
        let found = places(waits());
        // From the end of the first kernel, 25, to the end of the second launch, 130.
        assert_eq!(found.host_ns, 105);
        assert_eq!(
            rows(&found.lines),
            [
                ("data.py:7 decode", 60, "built-in method zoom of Image object"),
                ("model.py:9 forward", 35, ""),
                ("train.py:3 main", 10, ""),
            ]
        );
        assert_eq!(rows(&found.ops), [("aten::mm", 20, "")]);
        assert_eq!((found.outside_lines_ns, found.outside_ops_ns), (0, 85));
        let around = found.around.expect("main is open all the time");
        assert_eq!((&*around.name, around.total_ns), ("train.py:3 main", 105));
    }

    #[test]
    fn within_windows_only_their_time_counts() {
        let trace = waits().finish();
        let index = HostIndex::of(&trace);
        let found = idle_places(&index.slices, &index.gpu, Some(&[(0, 45), (100, 120)]));
        let found = &found["0"];
        assert_eq!(found.host_ns, 20 + 20);
        assert_eq!(
            rows(&found.lines),
            [
                ("model.py:9 forward", 20, ""),
                // (Half of the time is in the frame itself.)
                ("data.py:7 decode", 15, ""),
                ("train.py:3 main", 5, ""),
            ]
        );
    }

    #[test]
    fn a_frame_that_lost_its_end_ends_with_the_one_around_it() {
        let mut fixture = Fixture::default();
        let frame = |name| slice("python_function", name).on(1, 1);
        let call = |at: i64, id: i64| {
            slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 5).link(id)
        };
        fixture.push(frame("train.py(3): main").at(0, 1_000));
        fixture.push(call(5, 1));
        fixture.push(frame("data.py(7): decode").at(30, 60));
        fixture.push(frame("data.py(9): close").at(40, 5_000));
        // After both: it lies in the outermost alone.
        fixture.push(frame("model.py(9): forward").at(95, 20));
        fixture.push(call(200, 2));
        fixture.push(kernel("a").at(15, 10).link(1));
        fixture.push(kernel("b").at(210, 10).link(2));
        let found = places(fixture);
        let forward = found.lines.iter().find(|line| line.name == "model.py:9 forward").unwrap();
        assert_eq!((found.host_ns, forward.total_ns), (205 - 25, 20));
        let sum: i64 = found.lines.iter().map(|line| line.total_ns).sum();
        assert_eq!(sum, found.host_ns);
        let close = found.lines.iter().find(|line| line.name == "data.py:9 close").unwrap();
        assert_eq!(close.total_ns, 90 - 40);
    }

    #[test]
    fn a_thread_that_waits_for_work_is_told_apart() {
        let mut fixture = waits();
        let of = |fixture: Fixture, within: Interval| {
            let trace = fixture.finish();
            let index = HostIndex::of(&trace);
            waits_for_others_within(&index.slices, &index.gpu, 0, &[within])
        };
        assert_eq!(of(waits(), (0, 200)), None);
        let frame = "vllm/distributed/device_communicators/shm_broadcast.py(680): acquire_read";
        fixture.push(slice("python_function", frame).on(1, 1).at(32, 50));
        let found = of(fixture, (0, 72)).expect("it waits");
        assert_eq!((found.total_ns, found.n), (40, 1));
        assert!(found.name.ends_with("acquire_read"), "{}", found.name);
    }

    #[test]
    fn a_queued_launch_waits_for_no_line() {
        let mut fixture = Fixture::default();
        for (id, at) in [(1, 0), (2, 6)] {
            let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1);
            fixture.push(call.at(at, 5).link(id));
        }
        fixture.push(kernel("a").at(20, 10).link(1));
        fixture.push(kernel("b").at(40, 10).link(2));
        let found = places(fixture);
        assert_eq!((found.host_ns, found.lines.len(), found.ops.len()), (0, 0, 0));
    }

    #[test]
    fn a_step_that_begins_long_before_its_first_kernel_waits_from_its_start() {
        let mut fixture = waits();
        fixture.push(slice("user_annotation", "ProfilerStep#1").on(1, 1).at(-40, 240));
        let found = places(fixture);
        // 50 until the first launch is over; after the last kernel only the profiler works.
        assert_eq!(found.host_ns, 105 + 50);
        let main = found.lines.iter().find(|line| line.name == "train.py:3 main").unwrap();
        // (The first 40 are before it.)
        assert_eq!((main.total_ns, found.outside_lines_ns), (10 + 10, 40));
    }
}
