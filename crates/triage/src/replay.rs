//! Graph replay, kernel by kernel: a graph launch runs the kernels that its capture launched, in that order.
//!
//! One launch of a graph has one correlation, and all its kernels share it: alone they say nothing of where they
//! came from. A trace of the capture does. Between `hipStreamBeginCapture` and `hipStreamEndCapture` ROCm's profiler
//! writes one runtime call per captured launch, with the name of its kernel; in order these names are those of the
//! replay (measured on the two pairs of the corpus: 421 of 421 and 544 of 544). CUDA's calls do not name their kernel:
//! there kernels are matched by position, if the numbers of launches agree.

mod align;
mod capture;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;

use catalog::RawKind;
use serde::{Deserialize, Serialize};
use trace::Row;

pub(super) use self::capture::captures;

use self::align::{ALL_CELLS, align};
use self::capture::{COPY, Capture, FILL};
use super::Sources;
use super::attribution::Linker;
use super::site::{Attribution, Confidence, Site};
use super::stages::{self, Stages};
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// A name that no GPU slice of the replaying trace has.
const ELSEWHERE: u32 = u32::MAX;

/// Facts about a capture trace that are not in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureFacts {
    /// Its file's name.
    pub name: String,
    /// Requests that its graph is for.
    pub batch_size: Option<u64>,
    /// How much of the model its graph holds, in the framework's word: `FULL`, `PIECEWISE`.
    pub mode: Option<String>,
}

impl CaptureFacts {
    /// Mode and batch size of the graph: `FULL, batch 32`; empty if neither is known.
    #[must_use]
    pub fn in_words(&self) -> String {
        known_of_graph(self.mode.as_deref(), self.batch_size)
    }
}

fn known_of_graph(mode: Option<&str>, batch_size: Option<u64>) -> String {
    let batch = batch_size.map(|n| format!("batch {n}"));
    let words: Vec<String> = mode.map(str::to_owned).into_iter().chain(batch).collect();
    words.join(", ")
}

/// What a capture trace was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureUse {
    /// Its file's name; empty where it is not known.
    pub name: String,
    /// Requests that its graph is for, where that is known: of several graphs the last one used.
    pub batch_size: Option<u64>,
    /// How much of the model its graph holds, in the framework's word, where that is known.
    #[serde(default)]
    pub mode: Option<String>,
    /// Graph launches whose kernels were mapped with it.
    pub replays: u64,
    /// Of these, those for which another capture matches equally well.
    pub tied: u64,
    /// Of these, those in which the batch size decided.
    pub by_batch: u64,
}

impl CaptureUse {
    /// Its name, and mode and batch size of its graph: `bs_32.json.gz (FULL, batch 32)`. `at` is its index among the
    /// captures, used if the name is not known.
    #[must_use]
    pub(crate) fn title(&self, at: usize) -> String {
        let name = match self.name.as_str() {
            "" => format!("capture {}", at + 1),
            name => name.to_owned(),
        };
        match known_of_graph(self.mode.as_deref(), self.batch_size) {
            known if known.is_empty() => name,
            known => format!("{name} ({known})"),
        }
    }
}

/// What replay mapping did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Graph launches with kernels.
    pub graphs: u64,
    /// GPU slices that graphs launched.
    pub slices: u64,
    /// Of these, those mapped by a capture.
    pub mapped: u64,
    /// Graph launches whose order of kernels is that of a capture without a difference.
    pub identical: u64,
    /// The capture traces, in the order given.
    pub captures: Vec<CaptureUse>,
}

/// Maps the slices that graphs launched to the places in the captures that they replay. Calls `told` with each of these
/// slices, the number of its capture's trace, and the launch there.
#[inline(never)]
pub(crate) fn map(
    gpu: &Gpu<'_>,
    launches: &Launches,
    places: &mut Attribution,
    stages: &Stages,
    given: &Sources<'_>,
    told: &mut dyn FnMut(usize, usize, &Linker<'_>, Row),
) -> Replayed {
    let mut replayed = Replayed::default();
    let replays = replays(gpu, launches, places);
    replayed.graphs = replays.len() as u64;
    replayed.slices = replays.iter().map(|replay| replay.len() as u64).sum();
    replayed.captures = uses(given);
    if replays.is_empty() {
        return replayed;
    }
    let mut captured = Captured::of(gpu, given);
    // A server replays one graph a thousand times: equal orders of names are looked up once, and so is each place.
    let mut matches: HashMap<(Vec<u32>, Option<u64>), Option<Match>> = HashMap::new();
    let mut sites: HashMap<(usize, Row, u32), u32> = HashMap::new();
    for replay in &replays {
        let names: Vec<u32> = replay.iter().map(|at| captured.name_of(gpu, *at)).collect();
        let batch = requests_of(gpu, launches, stages, replay);
        let found = matches
            .entry((names, batch))
            .or_insert_with_key(|(names, batch)| captured.best(names, *batch));
        let Some(found) = found else { continue };
        let (linker, captures) = &mut captured.sources[found.source];
        let capture = &captures[found.capture];
        replayed.identical += u64::from(found.identical);
        if let Some(used) = replayed.captures.get_mut(found.source) {
            used.replays += 1;
            used.batch_size = capture.batch.or(used.batch_size);
            used.tied += u64::from(found.tied);
            used.by_batch += u64::from(found.by_batch);
        }
        for (slice, launch) in &found.pairs {
            let (slice, launch) = (replay[*slice], capture.launches[*launch]);
            let own = places.site_of[slice];
            let site = *sites.entry((found.source, launch, own)).or_insert_with(|| {
                let origin = linker.origin(launch, None, true);
                places.index_of(Site {
                    graph: true,
                    launch: places.sites[own as usize].launch.clone(),
                    confidence: found.confidence,
                    ..linker.site(&origin)
                })
            });
            places.site_of[slice] = site;
            told(slice, found.source, linker, launch);
            replayed.mapped += 1;
        }
    }
    replayed
}

#[inline(never)]
fn uses(given: &Sources<'_>) -> Vec<CaptureUse> {
    let details =
        given.capture_facts.iter().cloned().chain(std::iter::repeat(CaptureFacts::default()));
    let use_of = |CaptureFacts { name, batch_size, mode }| CaptureUse {
        name,
        batch_size,
        mode,
        ..CaptureUse::default()
    };
    details.take(given.captures.len()).map(use_of).collect()
}

/// The requests in the batch that a graph was launched for, from the annotation around its launch.
fn requests_of(
    gpu: &Gpu<'_>,
    launches: &Launches,
    stages: &Stages,
    replay: &[usize],
) -> Option<u64> {
    let launch = launches.of_slice(*replay.first()?)?;
    stages::requests_at(&stages.windows, gpu.trace.track(launch), gpu.trace.ts_ns(launch))
}

/// The GPU slices of every graph launch, in the order in which they ran.
#[inline(never)]
pub(super) fn replays(gpu: &Gpu<'_>, launches: &Launches, places: &Attribution) -> Vec<Vec<usize>> {
    let mut by_launch: Vec<(Row, usize)> = Vec::new();
    for slice in 0..gpu.len() {
        if places.site(slice).graph
            && let Some(launch) = launches.of_slice(slice)
        {
            by_launch.push((launch, slice));
        }
    }
    trace::sort(&mut by_launch);
    by_launch
        .chunk_by(|a, b| a.0 == b.0)
        .map(|slices| slices.iter().map(|(_, slice)| *slice).collect())
        .collect()
}

/// How a replay matches a capture.
struct Match {
    source: usize,
    capture: usize,
    /// (place in the replay, place in the capture).
    pairs: Vec<(usize, usize)>,
    confidence: Confidence,
    /// Whether every kernel is, name by name, that of the capture.
    identical: bool,
    /// Another capture explains as much.
    tied: bool,
    /// The batch size decided between them.
    by_batch: bool,
}

/// How far a graph's batch is from that of its launch: not at all, then the least padding, then what is not known. A
/// graph never runs more requests than it was captured for.
fn misfit(of_launch: Option<u64>, of_capture: Option<u64>) -> u64 {
    match (of_launch, of_capture) {
        (Some(launch), Some(capture)) if capture >= launch => (capture - launch).min(u64::MAX - 2),
        (Some(_), Some(_)) => u64::MAX,
        _ => u64::MAX - 1,
    }
}

/// What every capture launched.
struct Captured<'a> {
    sources: Vec<(Linker<'a>, Vec<Capture>)>,
    /// A number for each of [`Gpu::works`]; works of one name, and all copies, share one.
    names: Vec<u32>,
    /// Cells that aligning may still cost.
    cells: usize,
}

impl<'a> Captured<'a> {
    fn of(gpu: &Gpu<'_>, given: &Sources<'a>) -> Self {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let names = gpu.works.iter().map(|work| {
            let name = match work.kind {
                RawKind::Kernel => gpu.trace.strings.get(work.name),
                RawKind::Memcpy => COPY,
                RawKind::Memset => FILL,
            };
            let next = known.len() as u32;
            *known.entry(name).or_insert(next)
        });
        let names = names.collect();
        let sources = given.captures.iter().enumerate().map(|(at, trace)| {
            let number = |name: &str| known.get(name).copied().unwrap_or(ELSEWHERE);
            let mut captures = captures(trace, number);
            // The batch size in the trace comes before the one in a related file.
            let beside = given.capture_facts.get(at).and_then(|details| details.batch_size);
            captures.iter_mut().for_each(|capture| capture.batch = capture.batch.or(beside));
            // (Nobody says that a capture of the trace itself is that of a graph: its kernels do, where they have names.)
            captures.retain(|capture| !std::ptr::eq(*trace, gpu.trace) || capture.names.is_some());
            let details = given.capture_details.get(at).copied().flatten();
            (Linker::of(trace, details), captures)
        });
        Self { sources: sources.collect(), names, cells: ALL_CELLS }
    }

    fn name_of(&self, gpu: &Gpu<'_>, slice: usize) -> u32 {
        self.names[gpu.slice(slice).work]
    }

    /// The capture that explains most of a replay; of several that explain as much the one of its length, then the
    /// one whose batch fits best, then the first. One that explains less than half is another graph's.
    #[inline(never)]
    fn best(&mut self, replay: &[u32], batch: Option<u64>) -> Option<Match> {
        let same = |capture: &Capture| capture.names.as_deref() == Some(replay);
        // Where a capture is the same, no other need be aligned.
        let only_same = self.sources.iter().any(|(_, captures)| captures.iter().any(same));
        let (mut best, mut least_misfit) = (None, u64::MAX);
        let mut found: Option<Match> = None;
        for (source, (_, captures)) in self.sources.iter().enumerate() {
            for (index, capture) in captures.iter().enumerate() {
                let (pairs, confidence) = match &capture.names {
                    Some(_) if only_same && !same(capture) => continue,
                    Some(names) => (align(replay, names, &mut self.cells), Confidence::Replay),
                    None if !only_same && capture.launches.len() == replay.len() => {
                        ((0..replay.len()).map(|at| (at, at)).collect(), Confidence::Position)
                    }
                    None => continue,
                };
                let apart = capture.launches.len().abs_diff(replay.len());
                let named = confidence == Confidence::Replay;
                let rank = (pairs.len(), named, Reverse(apart));
                if 2 * pairs.len() < replay.len() {
                    continue;
                }
                let misfit = misfit(batch, capture.batch);
                let (tied, by_batch) = match (best, &mut found) {
                    (Some(other), _) if rank < other => continue,
                    (Some(other), Some(found)) if rank == other => {
                        found.tied = true;
                        found.by_batch |= misfit != least_misfit;
                        if misfit >= least_misfit {
                            continue;
                        }
                        (true, true)
                    }
                    _ => (false, false),
                };
                (best, least_misfit) = (Some(rank), misfit);
                let identical = only_same;
                let capture = index;
                found =
                    Some(Match { source, capture, pairs, confidence, identical, tied, by_batch });
            }
        }
        found
    }
}
