//! Graph replay, kernel by kernel: what a graph's launch runs is what its capture launched, in that order.
//!
//! One launch of a graph has one correlation, and all its kernels share it: alone they say nothing of where they
//! came from. A trace of the capture does. Between `hipStreamBeginCapture` and `hipStreamEndCapture` ROCm's profiler
//! writes one runtime call per captured launch, with the name of its kernel; in order these names are those of the
//! replay (measured on the two pairs of the corpus: 421 of 421 and 544 of 544). CUDA's calls do not name their kernel:
//! there the position alone tells, and only when the numbers agree.

use std::cmp::Reverse;
use std::collections::HashMap;

use catalog::RawKind;
use serde::{Deserialize, Serialize};
use trace::{BuildIdHasher, Flags, Row, StringId, Trace, each_row};

use super::Sources;
use super::attribution::{Linker, launches_graph};
use super::site::{Attribution, Confidence, Site};
use super::stages::{self, Stages};
use crate::before_window::each_launch;
use crate::gpu::Gpu;
use crate::launches::Launches;
use crate::recorded::{Recorded, recorded};

/// Cells of the table that aligns two orders of names; beyond, only what they share at both ends is found.
const MAX_CELLS: usize = 16_000_000;
/// Cells of all such tables of one run.
const ALL_CELLS: usize = 20 * MAX_CELLS;

/// The name of every copy, and of every fill: calls and GPU slices do not call them alike.
const COPY: &str = "Memcpy";
const FILL: &str = "Memset";
/// A name that no GPU slice of the replaying trace has.
const ELSEWHERE: u32 = u32::MAX;

/// The launches between the begin and the end of one capture, in order.
pub(super) struct Capture {
    pub(super) launches: Vec<Row>,
    /// The number of each launch's kernel; `None` where a launch does not name its kernel.
    names: Option<Vec<u32>>,
    /// Requests that the graph is for.
    batch: Option<u64>,
}

/// What is known of a capture trace beside the trace itself.
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
    /// What is known of the graph, in words: `FULL, batch 32`; empty where nothing is.
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
    /// Graph launches whose kernels it told.
    pub replays: u64,
    /// Of these, those for which another capture would have told as much.
    pub tied: u64,
    /// Of these, those in which the batch size decided.
    pub by_batch: u64,
}

impl CaptureUse {
    /// Its name and what is known of its graph: `bs_32.json.gz (FULL, batch 32)`. `at` is its place among the captures,
    /// which stands for a name that is not known.
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
    /// Of these, those whose place a capture told.
    pub mapped: u64,
    /// Graph launches whose order of kernels is that of a capture without a difference.
    pub identical: u64,
    /// The capture traces, in the order given.
    pub captures: Vec<CaptureUse>,
}

/// The captures of a trace; `number` gives the number of a name.
#[inline(never)]
pub(super) fn captures(trace: &Trace, number: impl Fn(&str) -> u32) -> Vec<Capture> {
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    let recorded = recorded(trace);
    // Whether a name begins a capture (or ends one), told once.
    let mut known: HashMap<StringId, Option<bool>, BuildIdHasher> = HashMap::default();
    each_row(trace, |row| {
        // (Runtime calls only: frames of Python have such names, too.)
        let flags = trace.flags(row);
        if *recorded.of(trace, row) != Recorded::Other
            || flags.has(Flags::PYTHON_IDS)
            || !flags.has(Flags::HAS_TS)
        {
            return;
        }
        let begins_one = known.entry(trace.name(row)).or_insert_with_key(|name| {
            let name = trace.strings.get(*name);
            let begins = name.contains("StreamBeginCapture");
            (begins || name.contains("StreamEndCapture")).then_some(begins)
        });
        match begins_one {
            Some(true) => begins.push(row),
            Some(false) => ends.push(row),
            None => {}
        }
    });
    let by_time = |row: &Row| (trace.track(*row).0, trace.ts_ns(*row));
    let compare = |a: Row, b: Row| by_time(&a).cmp(&by_time(&b));
    trace::sort_numbers(&mut begins, &compare);
    trace::sort_numbers(&mut ends, &compare);
    if begins.is_empty() {
        return Vec::new();
    }
    let mut launches: Vec<Row> = Vec::new();
    each_launch(trace, |row, _| {
        if trace.launched_kernel(row).is_some() || is_launch(trace.name_text(row)) {
            launches.push(row);
        }
    });
    trace::sort_numbers(&mut launches, &compare);
    let windows = stages::windows_of(trace);
    let captured = |begin: &Row| {
        let track = trace.track(*begin);
        let end = ends[ends.partition_point(|end| by_time(end) < by_time(begin))..].first();
        let end = end.filter(|end| trace.track(**end) == track)?;
        let from = launches.partition_point(|row| by_time(row) < by_time(begin));
        let to = launches.partition_point(|row| by_time(row) < by_time(end));
        let launches = launches.get(from..to)?.to_vec();
        let name = |row: &Row| match trace.launched_kernel(*row) {
            Some(id) => Some(number(trace.strings.get(id))),
            None => {
                let call = trace.name_text(*row);
                [COPY, FILL].into_iter().find(|name| call.contains(name)).map(&number)
            }
        };
        let names = launches.iter().map(name).collect();
        let batch = stages::requests_at(&windows, track, trace.ts_ns(*begin));
        Some(Capture { launches, names, batch })
    };
    begins.iter().filter_map(captured).filter(|capture| !capture.launches.is_empty()).collect()
}

/// Whether a runtime call puts work on a stream.
fn is_launch(name: &str) -> bool {
    (name.contains("Launch") || name.contains("Memcpy") || name.contains("Memset"))
        && !launches_graph(name)
}

/// Gives the slices that graphs launched the places of the captures that they replay. Calls `told` with each of these
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
    let mut captured = Captured::of(gpu, given);
    replayed.captures = uses(given);
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

/// The requests in the batch that a graph was launched for, as the annotation around its launch tells.
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
fn replays(gpu: &Gpu<'_>, launches: &Launches, places: &Attribution) -> Vec<Vec<usize>> {
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
            // The trace's own word counts before what is written beside it.
            let beside = given.capture_facts.get(at).and_then(|details| details.batch_size);
            captures.iter_mut().for_each(|capture| capture.batch = capture.batch.or(beside));
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

/// The longest common subsequence of two orders of names, as pairs of places. What they have in common at both ends is
/// taken first: it is nearly everything. `cells` is what a table for the rest may cost, and is less afterwards.
#[inline(never)]
fn align(a: &[u32], b: &[u32], cells: &mut usize) -> Vec<(usize, usize)> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[head..], &b[head..]);
    let tail = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (mid_a, mid_b) = (&rest_a[..rest_a.len() - tail], &rest_b[..rest_b.len() - tail]);
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    let size = (mid_a.len() + 1).saturating_mul(mid_b.len() + 1);
    if !mid_a.is_empty() && !mid_b.is_empty() && size <= (*cells).min(MAX_CELLS) {
        *cells -= size;
        pairs.extend(middle(mid_a, mid_b).into_iter().map(|(x, y)| (head + x, head + y)));
    }
    let ends = (0..tail).rev().map(|from_end| (a.len() - 1 - from_end, b.len() - 1 - from_end));
    pairs.extend(ends);
    pairs
}

#[inline(never)]
fn middle(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    // length[i][j]: of the longest common subsequence of a[i..] and b[j..]; within MAX_CELLS the shorter of the two
    // has at most 4,000 names.
    let mut length = vec![0_u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            length[i * width + j] = if a[i] == b[j] {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if length[(i + 1) * width + j] >= length[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::before_window::BeforeWindowSlices;
    use crate::fixture::{Fixture, Slice, kernel, slice};
    use crate::triage::attribution::attribute;
    use crate::triage::{Coverage, TriageOptions, triage};

    #[test]
    fn orders_are_aligned_over_what_differs() {
        let pairs = |a: &str, b: &str| {
            let numbers = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
            align(&numbers(a), &numbers(b), &mut ALL_CELLS.clone())
        };
        assert_eq!(pairs("abc", "abc"), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(pairs("abxcd", "abcd"), [(0, 0), (1, 1), (3, 2), (4, 3)]);
        assert_eq!(pairs("abcbd", "aebd"), [(0, 0), (3, 2), (4, 3)]);
        assert_eq!(pairs("", "a"), []);
        assert_eq!(pairs("aa", "a"), [(0, 0)]);
        assert_eq!(pairs("xyz", "abc"), []);
        let mut cells = 11;
        assert_eq!(align(&[1, 2, 3], &[1, 9, 2, 8, 3], &mut cells), [(0, 0), (1, 2), (2, 4)]);
        assert_eq!(cells, 3, "a table of two by four");
        assert_eq!(align(&[1, 2, 3], &[1, 9, 2, 8, 3], &mut cells), [(0, 0), (2, 4)]);
    }

    /// A trace with a capture for each text, a launch for each letter: its kernel's name, `.` for one that is not
    /// told, `=` for a copy.
    fn capture(texts: &[&str]) -> Trace {
        let mut fixture = Fixture::default();
        let call = |name, at| slice("cuda_runtime", name).at(at, 1).on(1, 1);
        let mut at = 0;
        for text in texts {
            fixture.push(call("hipStreamBeginCapture", at));
            for letter in text.split("").filter(|letter| !letter.is_empty()) {
                at += 10;
                fixture.push(slice("cpu_op", letter).at(at - 5, 9).on(1, 1).external(at));
                let launch = match letter {
                    "=" => call("hipMemcpyAsync", at),
                    "." => call("cudaLaunchKernel", at),
                    name => call("hipLaunchKernel", at).launching(name),
                };
                fixture.push(launch.link(at).external(at));
            }
            fixture.push(call("hipStreamEndCapture", at + 5));
            at += 10;
        }
        fixture.finish()
    }

    /// Ops and confidence of a replay of `letters` by these captures, and what mapping did.
    fn replayed(letters: &str, captures: &[&str]) -> (String, &'static str, Replayed) {
        let mut fixture = Fixture::default();
        fixture.push(slice("cuda_runtime", "hipGraphLaunch").at(0, 2).on(1, 1).link(1));
        let letters: Vec<String> = letters.chars().map(String::from).collect();
        for (letter, at) in letters.iter().zip(1_i64..) {
            let new: Slice<'_> =
                if letter == "=" { slice("gpu_memcpy", "Memcpy DtoD") } else { kernel(letter) };
            fixture.push(new.at(at * 10, 5).link(1));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Rocm, &before, &Options::default());
        let launches = Launches::of(&gpu);
        let mut places = attribute(&gpu, &launches, &mut Linker::of(&trace, None));
        let capture = capture(captures);
        let stages = Stages::of(&gpu, &launches, None);
        let given = Sources { captures: &[&capture], ..Sources::default() };
        let done = map(&gpu, &launches, &mut places, &stages, &given, &mut |_, _, _, _| {});
        let op = |at: usize| places.site(at).cpu_op.clone().unwrap_or_else(|| "-".to_owned());
        ((0..gpu.len()).map(op).collect(), places.site(0).confidence.id(), done)
    }

    #[test]
    fn a_capture_tells_by_names_by_place_or_not_at_all() {
        for (letters, captures, ops, confidence, identical) in [
            ("abca", &["abca"][..], "abca", "replay", 1),
            ("ab=a", &["ab=a"], "ab=a", "replay", 1),
            // The one of its length, though a longer one has all its names, too.
            ("abca", &["aabxca", "abca"], "abca", "replay", 1),
            ("abca", &["abxca"], "abca", "replay", 0),
            ("abza", &["abca"], "ab-a", "replay", 0),
            // Names are not told: the place alone tells, and only where the numbers agree.
            ("abca", &["...."], "....", "position", 0),
            ("abca", &["..."], "----", "launch", 0),
            // Less than half in common is another graph.
            ("abca", &["axyz"], "----", "launch", 0),
        ] {
            let (found, sure, done) = replayed(letters, captures);
            assert_eq!((found.as_str(), sure, done.identical), (ops, confidence, identical));
            assert_eq!((done.graphs, done.slices), (1, letters.len() as u64));
            assert_eq!(done.mapped, ops.chars().filter(|op| *op != '-').count() as u64);
        }
    }

    /// A launch of a graph for `requests`, which runs `names`.
    fn formal(requests: &str, names: &[&str]) -> Trace {
        let mut fixture = Fixture::default();
        let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
        let step = format!("step[DECODE bs={requests}]");
        fixture.push(cpu("user_annotation", &step).at(0, 100));
        fixture.push(cpu("cuda_runtime", "cudaGraphLaunch").at(10, 2).link(7));
        for (at, name) in (0..).zip(names) {
            fixture.push(kernel(name).at(50 + at * 10, 5).link(7));
        }
        fixture.finish()
    }

    /// A capture of `n` launches, which do not name their kernels; `annotated` is the batch that it tells.
    fn unnamed(n: i64, annotated: Option<u64>) -> Trace {
        let mut fixture = Fixture::default();
        let cpu = |raw_category, name: &'static str| -> Slice<'static> {
            slice(raw_category, name).on(1, 1)
        };
        match annotated {
            Some(16) => fixture.push(cpu("user_annotation", "capture_16_FULL").at(0, 900)),
            Some(_) => fixture.push(cpu("user_annotation", "capture_32_FULL").at(0, 900)),
            None => {}
        }
        fixture.push(cpu("cuda_runtime", "cudaStreamBeginCapture_v10000").at(1, 1));
        for n in 0..n {
            fixture.push(cpu("cpu_op", "aten::mm").at(10 + n * 10, 8));
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(12 + n * 10, 2).link(n + 1));
        }
        fixture.push(cpu("cuda_runtime", "cudaStreamEndCapture_v10000").at(800, 1));
        fixture.finish()
    }

    fn coverage(formal: &Trace, captures: &[&Trace], details: &[CaptureFacts]) -> Coverage {
        let sources = Sources { captures, capture_facts: details, ..Sources::default() };
        triage(formal, &TriageOptions::default(), &sources).coverage
    }

    #[test]
    fn the_capture_with_the_same_number_of_launches_is_used() {
        let (two, three) = (unnamed(2, None), unnamed(3, None));
        let found = coverage(&formal("32", &["a", "b"]), &[&three, &two], &[]);
        let replays: Vec<u64> = found.captures.iter().map(|capture| capture.replays).collect();
        assert_eq!((replays, found.graph_mapped), (vec![0, 1], 2));
        assert_eq!(coverage(&formal("32", &["a"]), &[&three, &two], &[]).graph_mapped, 0);
    }

    #[test]
    fn of_equal_captures_the_batch_size_decides() {
        let (small, large) = (unnamed(2, Some(16)), unnamed(2, Some(32)));
        let used = |requests: &str, captures: &[&Trace], details: &[CaptureFacts]| {
            let found = coverage(&formal(requests, &["a", "b"]), captures, details).captures;
            let uses = found.iter().map(|of| (of.replays, of.tied, of.by_batch));
            uses.collect::<Vec<_>>()
        };
        assert_eq!(used("16", &[&large, &small], &[]), [(0, 0, 0), (1, 1, 1)]);
        // 17 requests run in the graph for 32.
        assert_eq!(used("17", &[&small, &large], &[]), [(0, 0, 0), (1, 1, 1)]);
        // What stands beside the traces tells where they do not tell themselves.
        let (one, other) = (unnamed(2, None), unnamed(2, None));
        let details = |sizes: [u64; 2]| {
            sizes.map(|size| CaptureFacts {
                name: format!("bs_{size}"),
                batch_size: Some(size),
                mode: None,
            })
        };
        assert_eq!(used("32", &[&one, &other], &details([16, 32])), [(0, 0, 0), (1, 1, 1)]);
        assert_eq!(used("32", &[&one, &other], &details([32, 16])), [(1, 1, 1), (0, 0, 0)]);
        // Nothing tells: the first, and it is said.
        assert_eq!(used("32", &[&one, &other], &[]), [(1, 1, 0), (0, 0, 0)]);
    }
}
