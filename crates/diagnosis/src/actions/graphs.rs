//! Whether a graph can launch what is launched one by one.

use host::HostSlice;
use host::class::Class;
use host::slices::{Begins, ThreadId};
use report::units::{count, percent, plural};
use timeline::intervals::Interval;

use crate::Facts;
use crate::facts::unseen;
use crate::rules::reads::n_read;

/// Why no graph can launch most of an iteration.
#[derive(Clone, Copy)]
pub(super) enum Obstacle {
    /// The launches of most of the GPU's work are not in the file: an engine's, such as TensorRT's, which PyTorch does not launch. A share of
    /// the kernels' time, in percent, and the engine, where the names of its kernels tell it.
    Elsewhere(f64, Option<&'static str>),
    /// The CPU reads the sizes of an all-to-all from the GPU, so many times.
    Sizes(usize),
    /// Ranks communicate through the CPU, so many times.
    OnCpu(usize),
    /// An iteration has so few launches that one of a graph takes as long.
    Few,
    /// The CPU reads from the GPU so many times, and this share of the launches, in percent, is in pieces between reads that hold few.
    Reads(usize, f64),
    /// The same of the idle time before late launches, where graphs run already: what is launched outside them is late after reads.
    LateReads(usize, f64),
    /// The same with the calls that wait for the GPU, and how many of these wait for all of the device.
    Waits(usize, f64, usize),
}

impl Obstacle {
    /// What a reader is told beside its remedy, where graphs run or not; `None` where it has none.
    pub(super) fn sentence(self, has_graphs: bool) -> Option<String> {
        Some(match self {
            Self::Few => return None,
            Self::Elsewhere(pct, engine) => format!(
                "The launches of {} of the kernel time are not in the file, {}: graphs of PyTorch's own launches would save little.",
                percent(pct),
                match engine {
                    Some(engine) => format!("because {engine} launches its own kernels"),
                    None => "as with an engine that PyTorch does not launch, such as TensorRT"
                        .to_owned(),
                }
            ),
            Self::Sizes(n) => format!(
                "A graph cannot capture this step: the CPU reads from the GPU {} between the launches, probably the sizes of its all-to-all.",
                plural(n as u64, "time", "times")
            ),
            Self::OnCpu(n) => format!(
                "A graph cannot capture this step: the CPU communicates with other ranks {} between the launches.",
                plural(n as u64, "time", "times")
            ),
            Self::Reads(n, pct) => format!(
                "{}: the CPU reads a value from the GPU {} between the launches, and {} of the launches come in bursts of fewer \
                 than {LEAST_LAUNCHES} between two reads.",
                match has_graphs {
                    true => "Graphs could capture little of what is launched outside them",
                    false => "A graph could capture little of this step",
                },
                plural(n as u64, "time", "times"),
                percent(pct)
            ),
            Self::LateReads(n, pct) => format!(
                "Graphs could capture little of what is launched outside them: the CPU reads a value from the GPU {}, and {} of the idle \
                 time before late launches lies before bursts of fewer than {LEAST_LAUNCHES} between two reads.",
                plural(n as u64, "time", "times"),
                percent(pct)
            ),
            Self::Waits(n, pct, of_device) => format!(
                "A graph cannot capture this step: the CPU waits for the GPU {} between the launches, and {} of the launches come in \
                 bursts of fewer than {LEAST_LAUNCHES} between two waits.{}",
                plural(n as u64, "time", "times"),
                percent(pct),
                match of_device {
                    0 => String::new(),
                    1 => " One wait is for the whole device (torch.cuda.synchronize): remove it if it is only for timing.".to_owned(),
                    n => format!(
                        " {} waits are for the whole device (torch.cuda.synchronize): remove those that are only for timing.",
                        count(n as u64)
                    ),
                }
            ),
        })
    }

    /// The remedy for what graphs cannot launch. What is late before few launches is not the launches themselves.
    pub(super) fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Few => None,
            Self::Sizes(..) => Some(super::FIXED_SIZES),
            Self::Reads(..) | Self::LateReads(..) => Some(super::FEWER_READS),
            _ => Some(super::LARGER_BATCH),
        }
    }
}

/// A graph of fewer launches, from one read to the next, is little faster than they are.
const LEAST_LAUNCHES: usize = 25;
/// Such pieces keep graphs from a step where they hold this part of its launches.
const MOST: f64 = 0.5;

/// What keeps graphs from launching most of an iteration.
pub(super) fn obstacle(facts: &Facts<'_>) -> Option<Obstacle> {
    if let Some(pct) = facts.launched_elsewhere() {
        return Some(Obstacle::Elsewhere(pct, unseen::engine(facts)));
    }
    if facts.has_few_launches() {
        return Some(Obstacle::Few);
    }
    let annotations = || facts.slices.annotations.iter();
    let named = |part: &str| facts.slices.names_with(part);
    let is_of = |names: &[bool], one: &HostSlice| names[facts.trace.name(one.row).0 as usize];
    let gloo = named("gloo:");
    let on_cpu = annotations().filter(|one| is_of(&gloo, one)).map(|one| one.start_ns);
    match n_between_launches(facts, on_cpu, &facts.windows()) {
        0 => {}
        n => return Some(Obstacle::OnCpu(n)),
    }
    let exchanges = [named("alltoall"), named("all_to_all")];
    let is_exchange = |one: &HostSlice| exchanges.iter().any(|names| is_of(names, one));
    if !facts.slices.ops.slices.iter().chain(annotations()).any(is_exchange) {
        return by_reads(facts).or_else(|| by_waits(facts));
    }
    let is_read = |one: &&host::links::GpuSlice| {
        let name = facts.slices.name(&one.slice);
        !one.is_kernel && (name.contains("DtoH") || name.contains("DeviceToHost"))
    };
    let reads = facts.gpu.linked().filter(is_read);
    let reads = reads.filter_map(|one| Some(one.launch?.start_ns));
    let n = n_between_launches(facts, reads, &facts.windows());
    (n > 0).then_some(Obstacle::Sizes(n))
}

/// What keeps a graph from being captured: a capture ends with an error where the CPU reads a value (documentation of `torch.cuda.graph`),
/// and torch.compile splits its graph there.
pub(super) fn broken_by_reads(facts: &Facts<'_>) -> String {
    let (between, all) = (reads_between_launches(facts) as u64, n_read(facts));
    let count = report::units::count;
    let of_all = if between < all { format!(" of {}", count(all)) } else { String::new() };
    let (which, those) = match between {
        0 => return String::new(),
        1 if of_all.is_empty() => ("one is".to_owned(), "before and after it, or move it"),
        // (M6 counts all.)
        1 => (format!("1{of_all} is"), "before and after it, or move it"),
        n => (format!("{}{of_all} are", count(n)), "between them, or move them"),
    };
    let launches =
        if facts.windows().len() > 1 { "the launches of an iteration" } else { "launches" };
    format!(
        " A graph cannot span a read from the GPU, and {which} between {launches}: capture the parts {those}."
    )
}

/// Of the launches of an iteration, so many percent at least come before and after what interrupts it.
const APART_PCT: usize = 5;

/// Reads, where most launches of the iterations are in short pieces between them.
fn by_reads(facts: &Facts<'_>) -> Option<Obstacle> {
    let times = read_times(facts);
    let (n, pct) = match in_pieces(facts, &times, &facts.windows()) {
        Some((n, pct)) => return Some(Obstacle::Reads(n, pct)),
        None => late_in_pieces(facts, &times)?,
    };
    Some(Obstacle::LateReads(n, pct))
}

/// How many values are read, and the share of the idle time before late launches that ends with launches in short pieces between two
/// reads, in percent, where that is most of it. Only where graphs run: of a step that is launched one by one, the launches tell.
fn late_in_pieces(facts: &Facts<'_>, reads: &[i64]) -> Option<(usize, f64)> {
    let windows = facts.windows();
    let n = n_between_launches(facts, reads.iter().copied(), &windows);
    if !facts.has_graphs() || n == 0 || n < MANY_READS * windows.len() {
        return None;
    }
    let launches = facts.launch_times();
    // The launches between two reads, around a moment. (Before the first read and after the last are no pieces.)
    let is_short = |ns: i64| {
        let at = reads.partition_point(|read| *read < ns);
        let piece = at.checked_sub(1).and_then(|before| Some((reads[before], *reads.get(at)?)));
        let n = |(from, to): (i64, i64)| {
            let of = |ns: i64| launches.partition_point(|launch| *launch < ns);
            of(to).saturating_sub(of(from))
        };
        piece.is_some_and(|piece| n(piece) < LEAST_LAUNCHES)
    };
    let (mut all_ns, mut short_ns) = (0_i64, 0_i64);
    let late = facts.devices().flat_map(|device| device.late_times());
    for (from, to) in late.filter(|(_, to)| timeline::intervals::holds(&windows, *to)) {
        let ns = to.saturating_sub(from);
        all_ns = all_ns.saturating_add(ns);
        short_ns = short_ns.saturating_add(if is_short(to) { ns } else { 0 });
    }
    let is_most = all_ns > 0 && short_ns as f64 >= MOST * all_ns as f64;
    is_most.then(|| (n, timeline::percent(short_ns, all_ns)))
}

/// The same with the calls that wait: no stream can wait for the CPU while it is captured. Without iterations they count within calls of
/// outermost modules, because between two steps a wait is in no graph's way.
fn by_waits(facts: &Facts<'_>) -> Option<Obstacle> {
    let slices = facts.slices;
    let windows = match facts.iterations {
        Some(_) => facts.windows(),
        None => host::modules::outermost_calls(slices),
    };
    let is_launch = |call: &&HostSlice| slices.class(call) == Class::Launch;
    let launches = slices.calls.iter().filter(is_launch).map(|call| slices.thread(call.row));
    let mut threads: Vec<ThreadId> = launches.collect();
    trace::sort(&mut threads);
    threads.dedup();
    let (_, mut waits) = host::calls::syncs(slices);
    waits.retain(|call| threads.binary_search(&slices.thread(call.row)).is_ok());
    // (One for both kinds of waits: with an iterator of its own for each, the program of triage is 2 kB larger, compressed.)
    let times = |waits: &mut dyn Iterator<Item = &HostSlice>| -> Vec<i64> {
        waits.map(|call| call.start_ns).collect()
    };
    let (n, pct) = in_pieces(facts, &times(&mut waits.iter()), &windows)?;
    let of_device = |call: &&HostSlice| dialect::calls::synchronizes_device(slices.name(call));
    let of_device = times(&mut waits.iter().filter(of_device));
    Some(Obstacle::Waits(n, pct, n_between_launches(facts, of_device.into_iter(), &windows)))
}

/// How many of these times (sorted) lie between the launches of these windows, and the share of the launches in short pieces between them,
/// in percent, where that is most of them.
fn in_pieces(facts: &Facts<'_>, times: &[i64], windows: &[Interval]) -> Option<(usize, f64)> {
    let launches = facts.launch_times();
    let (mut all, mut short) = (0, 0);
    for (from, to) in windows {
        let at = |ns: i64| launches.partition_point(|launch| *launch < ns);
        let first = times.partition_point(|time| time < from);
        let own = times[first..].iter().copied().take_while(|time| time < to);
        let mut begun = at(*from);
        for end in own.chain([*to]) {
            let n = at(end).saturating_sub(begun);
            all += n;
            short += if n < LEAST_LAUNCHES { n } else { 0 };
            begun = begun.max(at(end));
        }
    }
    let n = n_between_launches(facts, times.iter().copied(), windows);
    let is_obstacle = n > 0 && short as f64 >= MOST * all as f64 && n >= MANY_READS * windows.len();
    is_obstacle.then(|| (n, timeline::percent(short as i64, all as i64)))
}

/// With fewer reads in an iteration its pieces are graphs that can be made by hand.
const MANY_READS: usize = 3;

/// How many values are read from the GPU in the middle of an iteration: after the last launch, as a loss is, one is in no graph's way.
fn reads_between_launches(facts: &Facts<'_>) -> usize {
    n_between_launches(facts, read_times(facts).into_iter(), &facts.windows())
}

/// When values are read from the GPU, sorted.
fn read_times(facts: &Facts<'_>) -> Vec<i64> {
    let ops = &facts.slices.ops;
    let is_read = |op: &usize| {
        matches!(facts.slices.name(&ops.slices[*op]), "aten::_local_scalar_dense" | "aten::nonzero")
    };
    let copies = facts.gpu.linked().filter(|one| !one.is_kernel).filter_map(|one| one.owner);
    let mut reads: Vec<usize> = copies.filter_map(|owner| ops.chain(owner).find(is_read)).collect();
    trace::sort(&mut reads);
    reads.dedup();
    let mut times: Vec<i64> = reads.into_iter().map(|read| ops.slices[read].start_ns).collect();
    trace::sort(&mut times);
    times
}

/// How many of these times lie in the middle of one of these windows.
fn n_between_launches(
    facts: &Facts<'_>,
    times: impl Iterator<Item = i64>,
    windows: &[Interval],
) -> usize {
    let mut times = times.peekable();
    if times.peek().is_none() {
        return 0;
    }
    let launches = facts.launch_times();
    let lies_between = |at_ns: &i64| {
        let after = windows.partition_point(|(from, _)| from <= at_ns);
        let window = after.checked_sub(1).and_then(|at| windows.get(at));
        window.filter(|(_, to)| at_ns < to).is_some_and(|(from, to)| {
            let at = |ns: i64| launches.partition_point(|launch| *launch < ns);
            let (first, own, last) = (at(*from), at(*at_ns), at(*to));
            let least = (last - first) * APART_PCT / 100;
            own - first > least && last - own > least
        })
    };
    times.filter(lies_between).count()
}

/// Whether `generate` of Hugging Face Transformers runs with a cache that grows by `aten::cat` with each token.
pub(super) fn grows_cache(facts: &Facts<'_>) -> bool {
    let slices = facts.slices;
    let is_update = slices.names_with("transformers/cache_utils.py");
    let generates = slices.names_with("transformers/generation/utils.py");
    if !is_update.contains(&true) || !generates.contains(&true) {
        return false;
    }
    let name = |slice: &HostSlice| facts.trace.name(slice.row);
    let cats = slices.ops.slices.iter().filter(|op| slices.name(op) == "aten::cat");
    let cats = Begins::of(slices, cats.copied());
    let grows = |frame: &&HostSlice| cats.any_within(slices.thread(frame.row), frame);
    let updates = || slices.frames.slices.iter().filter(|frame| is_update[name(frame).0 as usize]);
    // (An update may call others of the same file.)
    updates().filter(grows).count() * 2 >= updates().count()
}

/// Whether SGLang applies adapters (LoRA), by its kernels or frames: then it switches piecewise graphs off
/// (`server_args.py`, `_handle_piecewise_cuda_graph`).
pub(super) fn has_lora(facts: &Facts<'_>) -> bool {
    let parts = ["_chunked_lora_", "sglang/srt/lora/"];
    parts.iter().any(|part| facts.slices.names_with(part).contains(&true))
}
