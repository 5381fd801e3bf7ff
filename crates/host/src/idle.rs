//! What the launching thread did while a device stood still before the launch of what came next: by line of Python, and by op.
//!
//! Each gap of a device ([`crate::gaps`]) that a GPU slice with a launch ends has a part before the end of that launch. In this
//! part the device waited for the launching thread. So it did from the start of the first step to its first work, and from its
//! last work to the end of the last step (then for the thread of the last launch); this counts where it is a tenth of the steps
//! or more. Each moment of these parts belongs to the innermost frame and to the innermost op of the thread, so that the rows of
//! a table and the time outside add up to them.

mod others;
mod sections;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dialect::kineto;
use serde::Serialize;
use timeline::absolute_ns;
use timeline::intervals::{Interval, both, length, length_within, union, without};
use trace::{StringId, Trace};

use crate::by_name::ByName;
use crate::gaps::{Starts, between};
use crate::lines::Lines;
use crate::links::{DeviceId, GpuSide, GpuSlice};
use crate::slices::{Begins, HostSlice, Nested, Slices, ThreadId, is_step};
use others::Others;

pub use others::waits_for_others_within;
pub(crate) use sections::add;

/// Where the launching threads of one device were while it waited for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdlePlaces {
    /// Time in which it waited for a launching thread, in ns: `host_ns` of its gaps, and what the steps have before its first
    /// work and after its last, where that is much.
    pub host_ns: i64,
    /// The same by line of Python, most first: the line that says most of those around the innermost frame.
    pub lines: Vec<IdlePlace>,
    /// The innermost line of Python that a person wrote and that is open for three quarters of that time or more, with the time in
    /// which it is.
    pub around: Option<IdlePlace>,
    /// The part outside frames, or in frames without a line that says anything.
    pub outside_lines_ns: i64,
    /// The same by the innermost op, most first.
    pub ops: Vec<IdlePlace>,
    /// The part outside ops.
    pub outside_ops_ns: i64,
    /// The same by the outermost op that says something, with all that it calls, most first.
    #[serde(skip)]
    pub calls: Vec<IdlePlace>,
    /// The same by the outermost function that a person wrote and that launches nothing, most first. Not those of a data loader, nor those
    /// that wait for another process or thread.
    #[serde(skip)]
    pub without_launch: Vec<IdlePlace>,
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
    /// Of the slice with most of it: the start of the gap that it holds most of, on the clock of the file. None where the place is
    /// no single line or op.
    pub longest_start_ns: Option<i64>,
    /// The part of it in functions that wait for another process or thread; 0 for ops.
    #[serde(skip)]
    pub others_ns: i64,
    /// The part of it inside calls of modules that have launched before; 0 for places that may launch.
    #[serde(skip)]
    pub in_pass_ns: i64,
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

    /// The start of the part that intervals (disjoint, by start) have most of; of equal ones the first.
    fn longest_start(&self, own: &[Interval]) -> Option<i64> {
        let (first, last) = (own.first()?.0, own.last()?.1);
        let from = self.0.partition_point(|((_, end), _)| *end <= first);
        let those = self.0.get(from..).unwrap_or_default().iter().map(|(part, _)| *part);
        let those = those.take_while(|(start, _)| *start < last);
        let most = those.map(|part| (length_within(own, part), Reverse(part.0))).max();
        most.map(|(_, Reverse(start))| start)
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
    let of_device =
        |(id, name): (DeviceId, &String)| (name.clone(), idle_places_on(slices, gpu, id, within));
    (0..).zip(&gpu.devices).map(of_device).collect()
}

/// The same of one device.
#[must_use]
pub fn idle_places_on(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    id: DeviceId,
    within: Option<&[Interval]>,
) -> IdlePlaces {
    let mut lines = Lines::of(slices.trace);
    let parts = parts(slices, gpu, id, within);
    let host_ns = parts.values().map(|parts| parts.within(i64::MIN, i64::MAX)).sum();
    let mut found = IdlePlaces { host_ns, ..IdlePlaces::default() };
    found.lines = by_line(slices, &mut lines, &parts);
    found.around = around(slices, &mut lines, &parts, host_ns);
    found.ops = by_op(slices, &parts);
    found.calls = by_outer_op(slices, &parts);
    found.without_launch = without_launch(slices, gpu, (id, &mut lines), &parts);
    let sum = |places: &[IdlePlace]| places.iter().map(|place| place.total_ns).sum::<i64>();
    found.outside_lines_ns = host_ns - sum(&found.lines);
    found.outside_ops_ns = host_ns - sum(&found.ops);
    found
}

/// The idle parts of a device before the launches that end them, within some windows (disjoint, by start): of each launching thread, disjoint
/// and by start.
#[must_use]
pub fn idle_parts(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    device: DeviceId,
    within: &[Interval],
) -> Vec<(ThreadId, Vec<Interval>)> {
    let of_threads = parts(slices, gpu, device, Some(within)).into_iter();
    of_threads
        .map(|(thread, Parts(all))| (thread, all.into_iter().map(|(part, _)| part).collect()))
        .collect()
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

/// Times of a place.
#[derive(Default)]
struct PlaceSum {
    total_ns: i64,
    n: u64,
    /// The slice with most of it: its time, its thread and its number.
    most: Option<(i64, ThreadId, usize)>,
}

impl PlaceSum {
    fn add(&mut self, thread: ThreadId, at: usize, ns: i64) {
        self.total_ns += ns;
        self.n += 1;
        if self.most.is_none_or(|(most_ns, ..)| ns > most_ns) {
            self.most = Some((ns, thread, at));
        }
    }

    fn longest_start(
        &self,
        trace: &Trace,
        nested: &Nested,
        parts: &BTreeMap<ThreadId, Parts>,
    ) -> Option<i64> {
        let (_, thread, at) = self.most?;
        let whole = nested.slices[at].interval();
        // (What it calls has gaps of its own.)
        let later = at + 1..nested.on(thread).end;
        let within = later.take_while(|one| nested.slices[*one].start_ns < whole.1);
        let inside = within.filter(|one| nested.parent(*one) == Some(at));
        let inside = union(inside.map(|one| nested.slices[one].interval()).collect());
        let own = without(&[whole], &inside);
        absolute_ns(trace, parts.get(&thread)?.longest_start(&own)?)
    }
}

fn by_op(slices: &Slices<'_>, parts: &BTreeMap<ThreadId, Parts>) -> Vec<IdlePlace> {
    let trace = slices.trace;
    let nested = slices.closed_ops();
    let mut sums: ByName<PlaceSum> = ByName::new(trace);
    for (thread, parts) in parts {
        for (at, ns) in own_parts(nested, *thread, parts) {
            sums.entry(trace.name(nested.slices[at].row)).add(*thread, at, ns);
        }
    }
    let place = |(name, sum): (StringId, &PlaceSum)| IdlePlace {
        longest_start_ns: sum.longest_start(trace, nested, parts),
        ..IdlePlace::new(trace.strings.get(name).to_owned(), sum.total_ns, sum.n)
    };
    most_first(sums.iter().map(place).collect())
}

/// How the names of ops begin with which the engine of autograd calls others.
const EVALUATES: &str = "autograd::engine::evaluate_function: ";

/// Whether the name of an op says more than that a program runs. (Old profilers record steps and the data loader as ops.)
fn says(op: &str) -> bool {
    !is_step(op) && !op.contains("DataLoader")
}

/// A single call with more than this part of the waiting is around the program, and no part of it.
const MOST: f64 = 0.8;

fn by_outer_op(slices: &Slices<'_>, parts: &BTreeMap<ThreadId, Parts>) -> Vec<IdlePlace> {
    let trace = slices.trace;
    let says = trace.strings.marked(&says);
    let nested = slices.closed_ops();
    let mut sums: ByName<(i64, u64)> = ByName::new(trace);
    for (thread, parts) in parts {
        // (Nor does one call that holds most of the waiting: old profilers record ranges as ops.)
        let all_ns = parts.within(i64::MIN, i64::MAX);
        let holds_most =
            |op: &HostSlice| parts.within(op.start_ns, op.end_ns) as f64 > MOST * all_ns as f64;
        for (at, ns) in own_parts(nested, *thread, parts) {
            let told = nested.chain(at).take_while(|at| !holds_most(&nested.slices[*at]));
            let names = told.map(|at| trace.name(nested.slices[at].row));
            if let Some(outer) = names.filter(|name| says[name.0 as usize]).last() {
                let sum = sums.entry(outer);
                *sum = (sum.0 + ns, sum.1 + 1);
            }
        }
    }
    let place = |(name, (total_ns, n)): (StringId, &(i64, u64))| {
        let name = trace.strings.get(name);
        let name = name.strip_prefix(EVALUATES).unwrap_or(name);
        IdlePlace::new(name.to_owned(), *total_ns, *n)
    };
    most_first(sums.iter().map(place).collect())
}

/// A function of PyTorch that says nothing of what it calls.
const PASSES: &str = "_disabled_torch_function_impl";

/// Times of a line by its innermost frames.
#[derive(Default)]
struct LineSum {
    of_all: PlaceSum,
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
            sum.of_all.add(*thread, at, ns);
            if others.are_waited_for(trace, nested, at) {
                sum.others_ns += ns;
            }
            *sum.inside.entry(trace.name(nested.slices[at].row)).or_default() += ns;
        }
    }
    let place = |(name, sum): (StringId, &LineSum)| {
        // (What takes less than half of it is not where it mostly is.)
        let most = sum.inside.iter().max_by_key(|(_, ns)| **ns);
        let inside = most.filter(|(_, ns)| ns.saturating_mul(2) >= sum.of_all.total_ns);
        // (PyTorch calls every function of a subclass of Tensor through it.)
        let inside = inside.filter(|(name, _)| !trace.strings.get(**name).contains(PASSES));
        let inside = inside.map(|(inside, _)| *inside);
        IdlePlace {
            name: lines.shown(name),
            total_ns: sum.of_all.total_ns,
            n: sum.of_all.n,
            longest_start_ns: sum.of_all.longest_start(trace, nested, parts),
            others_ns: sum.others_ns,
            in_pass_ns: 0,
            inside: inside.filter(|it| *it != name).map(|it| lines.shown(it)).unwrap_or_default(),
        }
    };
    most_first(sums.iter().map(place).collect())
}

/// The innermost line, of those that a person wrote, that is open for most of the parts: of the lines with that much, the one with
/// least.
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
            if ns > 0 && lines.is_written(name) && !nested.chain(at).skip(1).any(is_open) {
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

fn without_launch(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    (device, lines): (DeviceId, &mut Lines<'_>),
    parts: &BTreeMap<ThreadId, Parts>,
) -> Vec<IdlePlace> {
    let trace = slices.trace;
    let nested = slices.closed_frames();
    let others = Others::of(trace);
    let launches = Begins::of(slices, gpu.on(device).filter_map(|one| one.launch));
    let is_module = trace.strings.marked(&|name| name.starts_with(kineto::MODULE));
    let mut sums: ByName<(i64, i64, u64)> = ByName::new(trace);
    for (thread, parts) in parts {
        let mut until_ns = i64::MIN;
        for at in nested.on(*thread) {
            let frame = &nested.slices[at];
            let name = trace.name(frame.row);
            if frame.start_ns < until_ns {
                continue;
            }
            if others.is_known(name) {
                until_ns = frame.end_ns;
                continue;
            }
            let ns = parts.within(frame.start_ns, frame.end_ns);
            if !launches.any_within(*thread, frame) && ns > 0 && lines.is_written(name) {
                let mut around = nested.chain(at).skip(1).map(|outer| nested.slices[outer]);
                let in_pass = around.any(|outer| {
                    let so_far = HostSlice { end_ns: frame.start_ns, ..outer };
                    is_module[trace.name(outer.row).0 as usize]
                        && launches.any_within(*thread, &so_far)
                });
                let sum = sums.entry(name);
                *sum = (sum.0 + ns, sum.1 + if in_pass { ns } else { 0 }, sum.2 + 1);
                until_ns = frame.end_ns;
            }
        }
    }
    let place = |(name, (ns, in_pass_ns, n)): (StringId, &(i64, i64, u64))| IdlePlace {
        in_pass_ns: *in_pass_ns,
        ..IdlePlace::new(lines.shown(name), *ns, *n)
    };
    most_first(sums.iter().map(place).collect())
}

fn most_first(mut places: Vec<IdlePlace>) -> Vec<IdlePlace> {
    places.retain(|place| place.total_ns > 0);
    trace::sort_by(&mut places, |a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name))
    });
    places
}

#[cfg(test)]
mod tests;
