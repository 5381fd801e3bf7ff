//! Finds the ranges of the CPU that are iterations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::HostSlice;
use host::links::DeviceId;
use serde::Serialize;
use timeline::intervals::{Interval, holds, length, union};
use trace::Row;

use super::Run;
use crate::stages::stage_of_pass;

/// Of fewer ranges none is an iteration.
const FEWEST: usize = 3;
/// A number that counts comes at most so many times as often as most of them.
const OFTEN: usize = 2;
/// Ranges fill this part of the time from the first to the last, unless an engine names them.
const TILES: f64 = 0.8;
/// Parts of names of ranges that PyTorch records by itself, which are no iterations: compiled code, loaders, optimizers.
const OF_PYTORCH: [&str; 7] = [
    "CompiledFxGraph",
    "Torch-Compiled Region",
    "TorchDynamo",
    "DataLoader",
    "Optimizer.",
    "nccl:",
    "autograd::",
];

/// What PyTorch names the steps of its optimizers.
const OPTIMIZER: &str = "Optimizer.step#";

/// Steps of optimizers with this part of an iteration's launches between them, or less, belong to one iteration.
const BETWEEN: usize = 20;

/// What iterations launch differs by this factor at most.
const ALIKE: usize = 2;

/// What iterations are told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The profiler's steps.
    ProfilerSteps,
    /// A serving engine's annotations.
    EnginePasses,
    /// From the end of one step of the optimizer to the end of the next.
    OptimizerSteps,
    /// A range of one name that comes again and again.
    RepeatedRange,
}

/// An iteration that is not marked launches at least nine tenths of what the median marked one does, and at most twice that: the first of a run
/// sets things up. Of few launches nothing is told.
const UNMARKED_MOST: usize = 2;
const UNMARKED_FEWEST: usize = 10;

/// What of a thread with steps comes before the first of them, if that may be an iteration which the profiler does not mark: versions before
/// 1.10 record the first of a run so.
pub(super) fn before(run: &Run<'_>, steps: &[HostSlice]) -> Option<HostSlice> {
    let slices = run.slices;
    let first = steps.first()?;
    let thread = slices.thread(first.row);
    let all = slices.annotations.iter().chain(&slices.ops.slices).chain(&slices.calls);
    let own = all.filter(|slice| slices.thread(slice.row) == thread);
    let start_ns = own.map(|slice| slice.start_ns).min().filter(|from| *from < first.start_ns)?;
    let launches = Launched::of(run);
    let mut counts: Vec<usize> =
        steps.iter().map(|step| launches.between(step.start_ns, step.end_ns)).collect();
    trace::sort(&mut counts);
    let median = *counts.get(counts.len() / 2)?;
    let n = launches.between(start_ns, first.start_ns);
    let is_alike = n >= UNMARKED_FEWEST && n <= UNMARKED_MOST * median && 9 * median <= 10 * n;
    is_alike.then_some(HostSlice { start_ns, end_ns: first.start_ns, ..*first })
}

/// The iterations, by start.
pub(super) fn iterations(run: &Run<'_>) -> Option<(Kind, Vec<HostSlice>)> {
    // (A file merged from several ranks has the steps of each: those of the thread with most are told of.)
    let steps = without_empty_end(run, of_one_thread(run, run.slices.steps.clone()));
    if steps.len() >= 2 {
        return Some((Kind::ProfilerSteps, steps));
    }
    let of_ranges = passes(run)
        .map(|slices| (Kind::EnginePasses, slices))
        .or_else(|| to_optimizer(run).map(|slices| (Kind::OptimizerSteps, slices)))
        .or_else(|| repeated(run).map(|slices| (Kind::RepeatedRange, slices)));
    of_ranges.or_else(|| (!steps.is_empty()).then_some((Kind::ProfilerSteps, steps)))
}

/// Without a last step in which nothing begins, or no work of a GPU as in the others: `prof.step()` after the last iteration begins one more.
fn without_empty_end(run: &Run<'_>, mut steps: Vec<HostSlice>) -> Vec<HostSlice> {
    let slices = run.slices;
    let begins = |step: &HostSlice| {
        let all = slices.ops.slices.iter().chain(&slices.calls);
        // (Profilers before 1.10 record steps as ops.)
        all.filter(|one| one.row != step.row).any(|one| step.holds(one.start_ns))
    };
    let launches = |step: &HostSlice| {
        let mut devices = (0..run.gpu.devices.len()).map(|device| device as DeviceId);
        devices.any(|device| !run.gpu.launched_in(device, step).is_empty())
    };
    let is_less = |does: &dyn Fn(&HostSlice) -> bool| {
        steps.last().is_some_and(|last| !does(last)) && steps.iter().any(does)
    };
    // (Of steps that all launch nothing, the last one is no other.)
    let one_before = steps.len().checked_sub(2).is_some_and(|at| launches(&steps[at]));
    if is_less(&begins) || (one_before && is_less(&launches)) {
        steps.pop();
    }
    steps
}

/// The class of an iteration: the stage of an engine's pass, else the name without its numbers.
#[must_use]
pub fn class(name: &str) -> String {
    match stage_of_pass(name) {
        Some(stage) => stage.id().to_owned(),
        None => without_numbers(name),
    }
}

/// `step 12 of 30` becomes `step # of #`; a number at the end, with what separates it, goes.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for char in name.chars() {
        match char {
            char if !char.is_ascii_digit() => out.push(char),
            _ if out.ends_with('#') => {}
            _ => out.push('#'),
        }
    }
    let trimmed = out.trim_end_matches(['#', '_', ' ', ':', '-', '/']);
    if trimmed.is_empty() { out } else { trimmed.to_owned() }
}

/// The passes of an engine.
fn passes(run: &Run<'_>) -> Option<Vec<HostSlice>> {
    let mut is_pass: BTreeMap<u32, bool> = BTreeMap::new();
    let mut own = run.slices.annotations.clone();
    own.retain(|slice| {
        let name = run.slices.trace.name(slice.row).0;
        let read = || stage_of_pass(run.slices.name(slice)).is_some();
        *is_pass.entry(name).or_insert_with(read)
    });
    let mut outermost = outermost(of_one_thread(run, own));
    outermost.retain(|slice| slice.dur_ns() > 0);
    is_most(run, &outermost).then_some(outermost)
}

/// From the end of one step of the optimizer to the end of the next; the first from the first op or annotation of its thread.
fn to_optimizer(run: &Run<'_>) -> Option<Vec<HostSlice>> {
    let slices = run.slices;
    let is_step = |slice: &&HostSlice| slices.name(slice).starts_with(OPTIMIZER);
    // (Profilers before 2021 write annotations as ops.)
    let all = || slices.annotations.iter().chain(&slices.ops.slices);
    let own = one_an_iteration(
        run,
        outermost(of_one_thread(run, all().filter(is_step).copied().collect())),
    );
    let first = own.first()?;
    let thread = slices.thread(first.row);
    let begun =
        all().filter(|slice| slices.thread(slice.row) == thread).map(|slice| slice.start_ns);
    let mut start_ns = begun.min()?;
    let until = |step: &HostSlice| {
        let from_ns = std::mem::replace(&mut start_ns, step.end_ns);
        HostSlice { start_ns: from_ns, ..*step }
    };
    let own: Vec<HostSlice> = own.iter().map(until).collect();
    is_most(run, &own).then_some(own)
}

/// Several optimizers step one after the other in one iteration: steps with next to no launch between them become one.
fn one_an_iteration(run: &Run<'_>, steps: Vec<HostSlice>) -> Vec<HostSlice> {
    let launches = Launched::of(run);
    let per_step = launches.0.len() / steps.len().max(1);
    let goes_on = |last: &HostSlice, step: &HostSlice| {
        let n = launches.between(last.end_ns, step.start_ns);
        !launches.0.is_empty() && n * BETWEEN <= per_step
    };
    let mut merged: Vec<HostSlice> = Vec::with_capacity(steps.len());
    for step in steps {
        match merged.last_mut() {
            Some(last) if goes_on(last, &step) => last.end_ns = step.end_ns,
            _ => merged.push(step),
        }
    }
    merged
}

/// The ranges of one name without its numbers that tile their time; of several such names the one that holds most.
fn repeated(run: &Run<'_>) -> Option<Vec<HostSlice>> {
    let slices = run.slices;
    let mut families: BTreeMap<(u32, String), Vec<HostSlice>> = BTreeMap::new();
    let mut template: BTreeMap<u32, Option<String>> = BTreeMap::new();
    for slice in &slices.annotations {
        let name = run.slices.trace.name(slice.row).0;
        let family = template.entry(name).or_insert_with(|| {
            let text = slices.name(slice);
            let is_own = OF_PYTORCH.iter().any(|part| text.contains(part));
            (!is_own && !dialect::kineto::is_step(text)).then(|| without_numbers(text))
        });
        if let Some(family) = family {
            let key = (slices.thread(slice.row), family.clone());
            families.entry(key).or_default().push(*slice);
        }
    }
    let tiles = |own: &Vec<HostSlice>| {
        let covered = union(own.iter().map(HostSlice::interval).collect());
        let first = covered.first().map_or(0, |(start, _)| *start);
        let last = covered.last().map_or(0, |(_, end)| *end);
        length(&covered) as f64 >= TILES * (last - first) as f64 && is_disjoint(own)
    };
    let launches = Launched::of(run);
    let of_families = families.into_values().flat_map(|own| counted(run, own)).map(outermost);
    let fit = of_families.filter(|own| {
        own.len() >= FEWEST && tiles(own) && is_most(run, own) && are_alike(&launches, own)
    });
    fit.max_by_key(|own| own.iter().map(HostSlice::dur_ns).sum::<i64>())
}

/// Whether half of the ranges launch about as much as the median one. Numbers may name the parts of one iteration, which differ in that.
fn are_alike(launches: &Launched, own: &[HostSlice]) -> bool {
    let launched = |slice: &HostSlice| launches.between(slice.start_ns, slice.end_ns);
    let mut counts: Vec<usize> = own.iter().map(launched).collect();
    trace::sort(&mut counts);
    let Some(median) = counts.get(counts.len().saturating_sub(1) / 2) else { return false };
    let is_alike = |n: &&usize| **n <= ALIKE * median && *median <= ALIKE * **n;
    2 * counts.iter().filter(is_alike).count() >= counts.len()
}

/// When the calls begin that launch the work of a run, in order.
struct Launched(Vec<i64>);

impl Launched {
    fn of(run: &Run<'_>) -> Self {
        let mut all: Vec<i64> =
            run.gpu.linked().filter_map(|one| Some(one.launch?.start_ns)).collect();
        trace::sort(&mut all);
        Self(all)
    }

    /// How many begin from one moment to another.
    fn between(&self, from: i64, to: i64) -> usize {
        let before = |ns: i64| self.0.partition_point(|at| *at < ns);
        before(to).saturating_sub(before(from))
    }
}

/// Ranges of one name but for its numbers: all of them where the numbers count, else those of each name by itself. Numbers that count come
/// about equally often; one that labels a part of the program comes as often as that part runs.
fn counted(run: &Run<'_>, own: Vec<HostSlice>) -> Vec<Vec<HostSlice>> {
    let mut by_name: BTreeMap<u32, Vec<HostSlice>> = BTreeMap::new();
    for slice in &own {
        by_name.entry(run.slices.trace.name(slice.row).0).or_default().push(*slice);
    }
    let mut often: Vec<usize> = by_name.values().map(Vec::len).collect();
    trace::sort(&mut often);
    let (most, middle) = (often.last(), often.get((often.len().max(1) - 1) / 2));
    let counts = most.zip(middle).is_none_or(|(most, middle)| *most <= OFTEN * middle);
    if counts { vec![own] } else { by_name.into_values().collect() }
}

/// Those of the thread with most of them, of several the first.
fn of_one_thread(run: &Run<'_>, all: Vec<HostSlice>) -> Vec<HostSlice> {
    let mut by_thread: BTreeMap<u32, Vec<HostSlice>> = BTreeMap::new();
    for slice in all {
        by_thread.entry(run.slices.thread(slice.row)).or_default().push(slice);
    }
    let most = by_thread.into_iter().max_by_key(|(thread, own)| (own.len(), Reverse(*thread)));
    most.map(|(_, own)| own).unwrap_or_default()
}

/// By start, without those inside others.
fn outermost(mut own: Vec<HostSlice>) -> Vec<HostSlice> {
    trace::sort_by_key(&mut own, |slice| (slice.start_ns, std::cmp::Reverse(slice.end_ns)));
    let mut end = i64::MIN;
    own.retain(|slice| {
        let is_outside = slice.end_ns > end;
        end = end.max(slice.end_ns);
        is_outside
    });
    own
}

fn is_disjoint(own: &[HostSlice]) -> bool {
    own.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns)
}

/// Whether there are three ranges or more, and they hold at least half of the launches of their process; without a GPU half of its
/// ops.
fn is_most(run: &Run<'_>, own: &[HostSlice]) -> bool {
    if own.len() < FEWEST {
        return false;
    }
    let threads = &run.slices.threads;
    let pid = |row: Row| threads.get(run.slices.thread(row) as usize).map(|thread| &thread.pid);
    let process = own.first().and_then(|slice| pid(slice.row));
    let times: Vec<Interval> = union(own.iter().map(HostSlice::interval).collect());
    let share = |starts: &mut dyn Iterator<Item = i64>| {
        let (mut inside, mut all) = (0_u64, 0_u64);
        for at in starts {
            all += 1;
            inside += u64::from(holds(&times, at));
        }
        all > 0 && 2 * inside >= all
    };
    if run.gpu.slices.is_empty() {
        let ops = run.slices.ops.slices.iter().filter(|op| pid(op.row) == process);
        share(&mut ops.map(|op| op.start_ns))
    } else {
        let launches = run.gpu.linked().filter_map(|one| one.launch);
        let own = launches.filter(|launch| pid(launch.row) == process);
        share(&mut own.map(|launch| launch.start_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_iteration_that_launch_different_work_are_no_iterations() {
        let range = |from: i64| HostSlice { row: 0, start_ns: from, end_ns: from + 100 };
        let alike = |counts: [i64; 3]| {
            let starts =
                (0..).zip(counts).flat_map(|(nth, n)| (0..n).map(move |at| nth * 100 + at));
            are_alike(&Launched(starts.collect()), &[range(0), range(100), range(200)])
        };
        assert!(alike([10, 12, 9]));
        assert!(alike([90, 12, 12]), "a prefill and two decodes");
        assert!(!alike([9, 29, 90]));
    }

    #[test]
    fn a_class_is_a_stage_or_a_name_without_numbers() {
        for (name, class_of) in [
            ("step[DECODE bs=64]", "decode"),
            ("step[EXTEND bs=4 toks=2048]", "extend"),
            ("execute_context_3(1024)_generation_16(16)", "mixed"),
            ("ProfilerStep#12", "ProfilerStep"),
            ("iter 7", "iter"),
            ("batch_3_of_30 train", "batch_#_of_# train"),
            ("12", "#"),
        ] {
            assert_eq!(class(name), class_of, "{name}");
        }
    }
}
