//! What the launching threads do in one long call while a device waits for them: recording adds nothing to it, and one change takes it away.

use std::cmp::Reverse;

use catalog::cpu_work::{CpuWork, of_frame, of_op};
use host::HostSlice;
use host::idle::idle_parts;
use host::slices::{Begins, Nested, ThreadId};
use report::units::time;
use timeline::intervals::{Interval, length_within, union, without};
use trace::StringId;

use super::{Device, Facts};

/// Recording adds 1 to 2 us to each call that it records: what calls nothing recorded for so long is as slow without it, within 2%.
const LONG_NS: i64 = 100_000;
/// One kind of work is the cause of late launches from this part of them on.
const MOST: f64 = 0.5;
/// Names that a sentence has.
const NAMES: usize = 3;

/// The late time of a device in which its launching threads are in one long call each.
#[derive(Default)]
pub(super) struct LongCalls {
    /// All of it, in ns.
    total_ns: i64,
    works: Vec<OneWork>,
}

/// One kind of such work.
pub(crate) struct OneWork {
    pub(crate) kind: CpuWork,
    /// How long the device waits for it, in ns.
    pub(crate) ns: i64,
    /// When the threads do it.
    pub(crate) times: Vec<Interval>,
    /// What does it, the most time first.
    names: Vec<String>,
}

impl OneWork {
    /// A sentence, after a space.
    pub(crate) fn sentence(&self) -> String {
        let ns = time(self.ns);
        match self.kind {
            CpuWork::Collects => format!(" For {ns} of it the CPU is in gc.collect."),
            CpuWork::Random => format!(
                " For {ns} of it the CPU generates random numbers in host memory ({}).",
                self.names.join(", ")
            ),
            CpuWork::Computes => format!(
                " For {ns} of it the CPU computes on CPU tensors ({}).",
                self.names.join(", ")
            ),
        }
    }

    /// A part of the first sentence.
    pub(crate) fn part(&self) -> String {
        let does = match self.kind {
            CpuWork::Collects => "collects garbage (gc.collect)",
            CpuWork::Random => "generates random numbers",
            CpuWork::Computes => "computes on CPU tensors",
        };
        format!(", for {} of it while the CPU {does}", time(self.ns))
    }
}

impl Device<'_> {
    fn long_calls(&self) -> Option<&LongCalls> {
        let of_each = || {
            let launches = self.facts.work_begins();
            self.facts.of_each(|device| LongCalls::of(device, &launches))
        };
        self.facts.long_calls.get_or_init(of_each).get(self.id as usize)
    }

    /// The late time in which its launching threads are in one long call, in ns.
    pub(super) fn in_long_calls_ns(&self) -> i64 {
        self.long_calls().map_or(0, |found| found.total_ns)
    }

    /// How much sooner it would be done without such work, in ns: with what comes before its own first work and after its last.
    #[must_use]
    pub(crate) fn saved_without_work_ns(&self, work: &OneWork) -> i64 {
        let late = self.late_times();
        let busy = self.facts.gpu.busy(self.id);
        let span = busy.first().zip(busy.last()).map(|(first, last)| (first.0, last.1));
        let outside = without(&work.times, span.as_slice());
        let outside_ns: i64 = outside.iter().map(|part| length_within(&late, *part)).sum();
        self.saved_without_times_ns(&work.times).saturating_add(outside_ns)
    }

    /// The work that most late launches wait for, where that is of one kind.
    #[must_use]
    pub(crate) fn one_work(&self) -> Option<&OneWork> {
        let (late_ns, _) = self.late();
        let most = self.long_calls()?.works.iter().max_by_key(|work| work.ns)?;
        (most.ns > 0 && most.ns as f64 >= MOST * late_ns as f64).then_some(most)
    }
}

impl LongCalls {
    fn of(device: &Device<'_>, launches: &Begins) -> Self {
        let facts = device.facts;
        let late = device.late_times();
        let mut total_ns = 0_i64;
        let mut sums: Vec<Sum> = Vec::new();
        // (A thread that waits for the one that launches, as for a backward pass, does nothing meanwhile.)
        for (thread, own) in idle_parts(facts.slices, facts.gpu, device.id, &late) {
            for (stretch, inner) in stretches(facts, thread, &own) {
                let ns = length_within(&own, stretch);
                total_ns = total_ns.saturating_add(ns);
                let ops = &facts.slices.ops;
                let is_on_cpu = |at: usize| !launches.any_within(thread, &ops.slices[at]);
                let (row, known) = match inner {
                    Inner::Frame(at) => {
                        let row = facts.slices.frames.slices[at].row;
                        (row, of_frame(facts.trace.name_text(row)))
                    }
                    Inner::Op(at) if is_on_cpu(at) => {
                        // (A person knows the outermost one, as long as it launches nothing.)
                        let outer = ops.chain(at).take_while(|at| is_on_cpu(*at)).last();
                        let kind = of_op(facts.slices.name(&ops.slices[at]));
                        (ops.slices[outer.unwrap_or(at)].row, kind)
                    }
                    Inner::Op(_) | Inner::Call => continue,
                };
                let known = known.map(|kind| (facts.trace.name(row), kind));
                if let Some((name, kind)) = known {
                    Sum::add(&mut sums, kind, name, (stretch, ns));
                }
            }
        }
        let works = sums.into_iter().map(|mut sum| {
            trace::sort_by_key(&mut sum.names, |(_, ns)| Reverse(*ns));
            let names = sum.names.iter().take(NAMES);
            OneWork {
                kind: sum.kind,
                ns: sum.names.iter().map(|(_, ns)| *ns).sum(),
                names: names.map(|(name, _)| facts.trace.strings.get(*name).to_owned()).collect(),
                times: union(sum.times),
            }
        });
        Self { works: works.collect(), total_ns }
    }
}

/// The stretches of a kind, and its names, each with what late time they have.
struct Sum {
    kind: CpuWork,
    times: Vec<Interval>,
    names: Vec<(StringId, i64)>,
}

impl Sum {
    fn add(all: &mut Vec<Self>, kind: CpuWork, name: StringId, (time, ns): (Interval, i64)) {
        let at = all.iter().position(|sum| sum.kind == kind).unwrap_or_else(|| {
            all.push(Self { kind, times: Vec::new(), names: Vec::new() });
            all.len() - 1
        });
        let sum = &mut all[at];
        sum.times.push(time);
        match sum.names.iter_mut().find(|(of, _)| *of == name) {
            Some((_, all_ns)) => *all_ns = all_ns.saturating_add(ns),
            None => sum.names.push((name, ns)),
        }
    }
}

/// What a thread is in, from the inside.
#[derive(Clone, Copy)]
enum Inner {
    Frame(usize),
    Op(usize),
    /// A call of a runtime or driver.
    Call,
}

/// The times from which on a thread calls nothing recorded for long, that share a point with `within`; with the innermost slice that is open
/// then. (Nothing is told of times outside all slices.)
fn stretches(facts: &Facts<'_>, thread: ThreadId, within: &[Interval]) -> Vec<(Interval, Inner)> {
    let slices = facts.slices;
    let (ops, frames) = (&slices.ops, &slices.frames);
    let mut calls: Vec<HostSlice> =
        slices.calls.iter().filter(|call| slices.thread(call.row) == thread).copied().collect();
    trace::sort_by_key(&mut calls, |call| call.start_ns);
    let mut bounds = Vec::new();
    let mut add = |slice: &HostSlice| bounds.extend([slice.start_ns, slice.end_ns]);
    for nested in [ops, frames] {
        nested.slices[nested.on(thread)].iter().for_each(&mut add);
    }
    calls.iter().for_each(add);
    trace::sort(&mut bounds);
    bounds.dedup();
    let long: Vec<Interval> = bounds
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|(from, to)| to - from >= LONG_NS && length_within(within, (*from, *to)) > 0)
        .collect();
    let at = || long.iter().map(|(from, _)| *from);
    let in_ops = ops.innermost(thread, at());
    let in_frames = frames.innermost(thread, at());
    let mut found = Vec::new();
    for ((stretch, op), frame) in long.iter().zip(in_ops).zip(in_frames) {
        let before = calls.partition_point(|call| call.start_ns <= stretch.0);
        let in_call = before.checked_sub(1).is_some_and(|at| calls[at].holds(stretch.0));
        let start = |nested: &Nested, at: Option<usize>| at.map(|at| nested.slices[at].start_ns);
        let inner = match (op, frame) {
            _ if in_call => Inner::Call,
            (Some(op), _) if start(ops, Some(op)) >= start(frames, frame) => Inner::Op(op),
            (_, Some(frame)) => Inner::Frame(frame),
            (Some(op), None) => Inner::Op(op),
            (None, None) => continue,
        };
        found.push((*stretch, inner));
    }
    found
}
