//! M5: calls that wait for the GPU. They explain the idle time that the bar gives them: in a wait, and in a short gap after it for as
//! long as the wait took; a wait under a busy GPU is a symptom. Waits at the edges of the recording do not count.

use std::collections::BTreeMap;

use host::HostSlice;
use host::slices::ThreadId;
use report::units::{percent, plural, time};
use timeline::intervals::{Interval, both, holds, length, union};
use trace::Row;

use triage::WallPart;

use crate::facts::{Device, SMALL};
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Waits of less than this share of the window are not worth a word.
const LEAST_SHARE: f64 = 0.01;
/// They cost time from this share of the window on.
const COSTS_SHARE: f64 = 0.05;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let calls = &facts.host.runtime;
    let (edges, waits) = host::calls::syncs(facts.slices);
    let copies = waiting_copies(facts);
    let n_copies = copies.len() as u64;
    let copies_ns = copies.values().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
    let (n_edges, edges_ns) = edges_in_steps(facts, &edges);
    let n = calls.sync.trimmed.n + calls.blocking_memcpy.all.n + n_copies;
    let all = with_copies(facts, &waits, &copies);
    let of_copies = of_copies(facts, &all);
    let waited = calls.sync.trimmed.total_ns + calls.blocking_memcpy.all.total_ns + copies_ns;
    facts
        .devices()
        .filter(|device| device.is_told() && device.cold().is_none())
        // (There the same waits are told, with all that the device stands still after them.)
        .filter(|device| super::between_graphs::check(facts, device).is_none())
        .filter_map(|device| {
            let idle = &device.figures.idle;
            let window = idle.window_ns.max(1) as f64;
            // (What comes before its first work in the file waits for work that is not.)
            let (n_early, early_ns) = early(&device, &waits);
            let (n, waited) = (n.saturating_sub(n_early), waited.saturating_sub(early_ns));
            if (waited as f64) < LEAST_SHARE * window {
                return None;
            }
            // (What the device does not wait for the CPU for is no cost of the wait: pauses between queued kernels.)
            let caused = device.wall(WallPart::HostWaits);
            let covered = caused.map_or(0, |row| row.total_ns);
            let copied_ns = length(&after_waits(&device, &all, &of_copies, true)).min(covered);
            let own_ns = covered - copied_ns;
            let share = own_ns as f64 / window;
            let gpu = device.name_within();
            // (What the CPU does after a wait before it launches is work of its own, which the wait lets the device see.)
            let until_next_ns = until_next_work(&device, &all);
            let is_more = until_next_ns as f64 - covered as f64 >= LEAST_SHARE * window;
            let cost = match covered {
                _ if is_more => format!(
                    "{gpu} is idle for {} before its next work, {} of it during or right after these calls",
                    time(until_next_ns),
                    time(covered)
                ),
                0 => format!("{gpu} is never idle during or after these calls"),
                ns => format!("{gpu} is idle for {} during or right after these calls", time(ns)),
            };
            let text = format!(
                "The CPU waits for the GPU in {} for {}; {cost}{}.",
                plural(n + n_edges, "call", "calls"),
                time(waited + edges_ns),
                match copied_ns {
                    0 => String::new(),
                    // (A little that nobody advises against needs no share.)
                    _ if (covered as f64) < COSTS_SHARE * window => String::new(),
                    ns => format!(" ({} of that is of copies to it from pageable memory)", time(ns)),
                }
            );
            let finding = if share >= COSTS_SHARE && device.is_starved() {
                let found =
                    Finding::fact(Rule::Sync, "sync_bound", text).level(Level::of_share(share));
                let others = || after_waits(&device, &all, &of_copies, false);
                match Loops::of(facts, &device) {
                    Some(loops) => loops.bounding(found, others(), &gpu),
                    None => found.bound(own_ns),
                }
            } else {
                // (A GPU that goes on working loses nothing by a wait.)
                let costs = caused.is_some_and(|row| row.share_pct >= 100.0 * LEAST_SHARE);
                Finding::fact(Rule::Sync, "host_blocked", text).aside(!is_more && !costs)
            };
            let finding = match longest(facts, &copies) {
                Some((name, ns)) => finding.with(
                    "runtime.sync.longest",
                    "the longest",
                    format!("{name} {}", time(ns)),
                ),
                None => finding,
            };
            Some(finding.on(device.name).with("runtime.sync.trimmed", "waits", time(waited)).with(
                "wall",
                "idle time in or after them",
                percent(100.0 * share),
            ))
        })
        .collect()
}

/// The waits and the copies that wait, by their ends.
fn with_copies(
    facts: &Facts<'_>,
    waits: &[HostSlice],
    copies: &BTreeMap<Row, (&str, i64)>,
) -> Vec<HostSlice> {
    let slices = facts.slices;
    let copies = slices.calls.iter().filter(|c| slices.blocks(c) || copies.contains_key(&c.row));
    let mut all: Vec<HostSlice> = waits.iter().chain(copies).copied().collect();
    trace::sort_by_key(&mut all, |call| (call.end_ns, call.start_ns));
    all
}

/// Which of these waits are those of copies to the GPU from pageable memory: the op that copies waits until the copy is done. They go away
/// with the copy, and not with what the program reads.
fn of_copies(facts: &Facts<'_>, waits: &[HostSlice]) -> Vec<bool> {
    let slices = facts.slices;
    let copies = facts.gpu.linked().filter(|one| {
        let name = slices.name(&one.slice);
        !one.is_kernel && name.contains("HtoD") && name.contains("Pageable")
    });
    let mut ops: Vec<(ThreadId, i64, i64)> = copies
        .filter_map(|one| {
            let op = slices.ops.slices.get(one.owner?)?;
            Some((slices.thread(op.row), op.start_ns, op.end_ns))
        })
        .collect();
    trace::sort(&mut ops);
    let is_within = |wait: &HostSlice| {
        let thread = slices.thread(wait.row);
        let after =
            ops.partition_point(|(of, start_ns, _)| (*of, *start_ns) <= (thread, wait.start_ns));
        let op = after.checked_sub(1).and_then(|at| ops.get(at));
        op.is_some_and(|(of, _, end_ns)| *of == thread && wait.end_ns <= *end_ns)
    };
    waits.iter().map(is_within).collect()
}

/// When a device stands still in or after waits, of copies to it or of others.
fn after_waits(
    device: &Device<'_>,
    waits: &[HostSlice],
    of_copies: &[bool],
    are_copies: bool,
) -> Vec<Interval> {
    let starts = waits.iter().map(|wait| wait.start_ns);
    let mut starts: Vec<(i64, bool)> = starts.zip(of_copies.iter().copied()).collect();
    trace::sort(&mut starts);
    // (The last wait that has begun by then.)
    let is_copys = |(_, to): &Interval| {
        let begun = starts.partition_point(|(start_ns, _)| start_ns < to);
        begun.checked_sub(1).and_then(|at| starts.get(at)).is_some_and(|(_, is_copys)| *is_copys)
    };
    let mut times = device.waits_told();
    times.retain(|times| is_copys(times) == are_copies);
    times
}

/// How many waits end before the first GPU work of a device, and how long all of them are before it.
fn early(device: &Device<'_>, waits: &[HostSlice]) -> (u64, i64) {
    let Some(first_ns) = device.slices().map(|one| one.slice.start_ns).min() else { return (0, 0) };
    let of_one = |(n, ns): (u64, i64), wait: &HostSlice| {
        let before_ns = wait.end_ns.min(first_ns).saturating_sub(wait.start_ns).max(0);
        (n + u64::from(wait.end_ns <= first_ns), ns.saturating_add(before_ns))
    };
    waits.iter().fold((0, 0), of_one)
}

/// Loops that read one small value after the other: so many, so soon after each other, in ns.
const LOOP: usize = 20;
const SOON_NS: i64 = 1_000_000;

/// The loops of a device that read its values one by one.
struct Loops {
    n: u64,
    reads: u64,
    /// When the device is idle from the first read of each to its last.
    idle: Vec<Interval>,
}

impl Loops {
    /// `None` where the file has no such loop, or its copies to the CPU are mostly others.
    fn of(facts: &Facts<'_>, device: &Device<'_>) -> Option<Self> {
        super::copies::small_reads(facts)?;
        let reads = device.slices().filter(|one| {
            let name = facts.slices.name(&one.slice);
            let is_small =
                || facts.details.copied_bytes(one.slice.row).is_some_and(|bytes| bytes <= SMALL);
            !one.is_kernel && name.contains("DtoH") && name.contains("Pageable") && is_small()
        });
        let mut reads: Vec<HostSlice> = reads.filter_map(|one| one.launch).collect();
        trace::sort_by_key(&mut reads, |call| (facts.slices.thread(call.row), call.start_ns));
        let goes_on = |before: &HostSlice, next: &HostSlice| {
            facts.slices.thread(before.row) == facts.slices.thread(next.row)
                && next.start_ns.saturating_sub(before.end_ns) < SOON_NS
        };
        let loops = || reads.chunk_by(goes_on).filter(|own| own.len() >= LOOP);
        let times = loops().filter_map(|own| Some((own.first()?.start_ns, own.last()?.end_ns)));
        let idle = both(&device.gaps_told(), &union(times.collect()));
        let reads = loops().map(|own| own.len() as u64).sum();
        Some(Self { n: loops().count() as u64, reads, idle }).filter(|loops| loops.n > 0)
    }

    /// The finding with the bound of its loops and of the `others`, when the device stands still in or after other waits.
    fn bounding(&self, found: Finding, mut others: Vec<Interval>, gpu: &str) -> Finding {
        others.extend(&self.idle);
        let found = found.bound(length(&union(others))).means(self.sentence(gpu));
        found.confidence(Confidence::Medium)
    }

    fn sentence(&self, gpu: &str) -> String {
        let Self { n, reads, idle } = self;
        format!(
            "In {}, of {} less than 1 ms apart, {gpu} is idle for {}. On a copy the CPU needs none of their launches, so the bound has all of that; \
             what it then computes itself is not known.",
            match n {
                1 => "one loop".to_owned(),
                n => plural(*n, "loop", "loops"),
            },
            plural(*reads, "read", "reads"),
            time(length(idle))
        )
    }
}

/// How long a device stands still in the gaps in which a wait ends, from the wait on: it has its next work when the CPU has launched it.
fn until_next_work(device: &Device<'_>, waits: &[HostSlice]) -> i64 {
    let of_gap = |(from, to): &Interval| {
        let first = waits.partition_point(|wait| wait.end_ns < *from);
        let wait = waits.get(first).filter(|wait| wait.end_ns <= *to);
        wait.map_or(0, |wait| to.saturating_sub(wait.start_ns.max(*from)))
    };
    device.gaps_told().iter().map(of_gap).sum()
}

/// Waits before the first or after the last launch of the recording that are those of a step: the others are the profiler's.
fn edges_in_steps(facts: &Facts<'_>, edges: &[HostSlice]) -> (u64, i64) {
    let steps = union(facts.slices.steps.iter().map(HostSlice::interval).collect());
    let own = edges.iter().filter(|call| holds(&steps, call.start_ns));
    own.fold((0, 0), |(n, ns), call| (n + 1, ns + call.dur_ns()))
}

/// The longest of the calls that are counted: those that wait by their name, copies that block by theirs, and copies to pageable memory.
fn longest<'a>(facts: &Facts<'a>, copies: &BTreeMap<Row, (&'a str, i64)>) -> Option<(String, i64)> {
    let waits =
        facts.host.runtime.sync.longest.iter().map(|call| (call.name.as_str(), call.dur_ns));
    let blocking = facts.slices.calls.iter().filter(|call| facts.slices.blocks(call));
    let blocking = blocking.map(|call| (facts.slices.name(call), call.dur_ns()));
    let all = waits.chain(blocking).chain(copies.values().copied());
    all.max_by_key(|(_, ns)| *ns).map(|(name, ns)| (name.to_owned(), ns))
}

/// Calls that are asynchronous by their name and wait nevertheless, because the copy goes to pageable memory of the host: names and
/// times ("API synchronization behavior" in NVIDIA's CUDA Runtime API).
fn waiting_copies<'a>(facts: &Facts<'a>) -> BTreeMap<Row, (&'a str, i64)> {
    let calls = facts.gpu.slices.iter().filter_map(|one| {
        let name = facts.slices.name(&one.slice);
        let to_host = !one.is_kernel && name.contains("DtoH") && name.contains("Pageable");
        let launch = one.launch.filter(|_| to_host)?;
        let call = facts.slices.name(&launch);
        // (The launch of a graph waits for none of its copies, and the others are counted already.)
        let counts = !dialect::calls::blocks(call) && !dialect::calls::launches_graph(call);
        counts.then(|| (launch.row, (call, launch.dur_ns())))
    });
    calls.collect()
}
