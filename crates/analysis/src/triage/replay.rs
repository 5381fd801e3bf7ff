//! Graph replay, kernel by kernel: what a graph's launch runs is what its capture launched, in that order.
//!
//! One launch of a graph has one correlation, and all its kernels share it: alone they say nothing of where they
//! came from. A trace of the capture does. Between `hipStreamBeginCapture` and `hipStreamEndCapture` ROCm's profiler
//! writes one runtime call per captured launch, with the name of its kernel; in order these names are those of the
//! replay (measured on the two pairs of the corpus: 421 of 421 and 544 of 544). CUDA's calls do not name their kernel:
//! there the position alone tells, and only when the numbers agree.

use trace::{Flags, Row, Trace, each_row};

use super::attribution::{Linker, launches_graph};
use super::site::{Attribution, Confidence};
use crate::before_window::each_launch;
use crate::gpu::Gpu;

/// Cells of the table that aligns two orders of names; beyond, only equal orders are found.
const MAX_CELLS: usize = 16_000_000;

/// The launches between the begin and the end of one capture, in order.
struct Capture {
    launches: Vec<Row>,
    /// Whether every launch names its kernel.
    named: bool,
}

/// What replay mapping did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Graph launches with kernels.
    pub graphs: u64,
    /// GPU slices that graphs launched.
    pub slices: u64,
    /// Of these, those whose place a capture told.
    pub mapped: u64,
    /// Graph launches whose order of kernels is that of a capture without a difference.
    pub identical: u64,
}

fn captures(trace: &Trace) -> Vec<Capture> {
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    each_row(trace, |row| {
        // (Runtime calls only: frames of Python have such names, too.)
        if trace.flags(row).has(Flags::PYTHON_IDS) || !trace.flags(row).has(Flags::HAS_TS) {
            return;
        }
        let name = trace.name_text(row);
        if name.contains("StreamBeginCapture") {
            begins.push(row);
        } else if name.contains("StreamEndCapture") {
            ends.push(row);
        }
    });
    let by_time = |row: &Row| (trace.track(*row).0, trace.ts_ns(*row));
    begins.sort_by_key(by_time);
    ends.sort_by_key(by_time);
    if begins.is_empty() {
        return Vec::new();
    }
    let mut launches: Vec<Row> = Vec::new();
    each_launch(trace, |row, _| {
        if trace.launched_kernel(row).is_some() || is_launch(trace.name_text(row)) {
            launches.push(row);
        }
    });
    launches.sort_by_key(by_time);
    let captured = |begin: &Row| {
        let track = trace.track(*begin);
        let end = ends[ends.partition_point(|end| by_time(end) < by_time(begin))..].first();
        let end = end.filter(|end| trace.track(**end) == track)?;
        let from = launches.partition_point(|row| by_time(row) < by_time(begin));
        let to = launches.partition_point(|row| by_time(row) < by_time(end));
        let launches = launches.get(from..to)?.to_vec();
        let named = launches.iter().all(|row| trace.launched_kernel(*row).is_some());
        Some(Capture { launches, named })
    };
    begins.iter().filter_map(captured).filter(|capture| !capture.launches.is_empty()).collect()
}

/// Whether a runtime call puts work on a stream.
fn is_launch(name: &str) -> bool {
    (name.contains("Launch") || name.contains("Memcpy") || name.contains("Memset"))
        && !launches_graph(name)
}

/// Gives the slices that graphs launched the places of the captures that they replay.
pub(crate) fn map(gpu: &Gpu<'_>, places: &mut Attribution, capture_traces: &[&Trace]) -> Replayed {
    let mut replayed = Replayed::default();
    let replays = replays(gpu, places);
    replayed.graphs = replays.len() as u64;
    replayed.slices = replays.iter().map(|replay| replay.len() as u64).sum();
    let mut sources: Vec<(Linker<'_>, Vec<Capture>)> =
        capture_traces.iter().map(|trace| (Linker::of(trace), captures(trace))).collect();
    for replay in &replays {
        let Some(found) = best(gpu, replay, &sources) else { continue };
        let Some((linker, captures)) = sources.get_mut(found.source) else { continue };
        let Some(capture) = captures.get(found.capture) else { continue };
        replayed.identical += u64::from(found.pairs.len() == replay.len());
        for (slice, launch) in &found.pairs {
            let Some(launch) = capture.launches.get(*launch) else { continue };
            let origin = linker.origin(*launch, None);
            let mut site = linker.site(&origin);
            site.graph = true;
            site.launch = places.site(replay[*slice]).launch.clone();
            site.confidence = found.confidence;
            places.place(replay[*slice], site);
            replayed.mapped += 1;
        }
    }
    replayed
}

/// The GPU slices of every graph launch, in the order in which they ran.
fn replays(gpu: &Gpu<'_>, places: &Attribution) -> Vec<Vec<usize>> {
    let mut by_launch: Vec<(i64, usize)> = Vec::new();
    for slice in 0..gpu.len() {
        if places.site(slice).graph
            && let Some(correlation) = gpu.trace.link(gpu.row(slice))
        {
            by_launch.push((correlation, slice));
        }
    }
    by_launch.sort_unstable();
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
}

/// The capture that explains most of a replay.
fn best(gpu: &Gpu<'_>, replay: &[usize], sources: &[(Linker<'_>, Vec<Capture>)]) -> Option<Match> {
    let names: Vec<&str> =
        replay.iter().map(|slice| gpu.trace.name_text(gpu.row(*slice))).collect();
    let mut best: Option<Match> = None;
    for (source, (linker, captures)) in sources.iter().enumerate() {
        for (index, capture) in captures.iter().enumerate() {
            let (pairs, confidence) = if capture.named {
                let launched: Vec<&str> =
                    capture.launches.iter().map(|row| linker.launched(*row)).collect();
                (align(&names, &launched), Confidence::Replay)
            } else if capture.launches.len() == names.len() {
                ((0..names.len()).map(|at| (at, at)).collect(), Confidence::Position)
            } else {
                continue;
            };
            if pairs.len() > best.as_ref().map_or(0, |best| best.pairs.len()) {
                let done = pairs.len() == names.len() && capture.launches.len() == names.len();
                best = Some(Match { source, capture: index, pairs, confidence });
                if done {
                    return best;
                }
            }
        }
    }
    best
}

/// The longest common subsequence of two orders of names, as pairs of places. What they have in common at both ends is
/// taken first: it is nearly everything.
fn align(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[head..], &b[head..]);
    let tail = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (mid_a, mid_b) = (&rest_a[..rest_a.len() - tail], &rest_b[..rest_b.len() - tail]);
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    pairs.extend(middle(mid_a, mid_b).into_iter().map(|(x, y)| (head + x, head + y)));
    let ends = (0..tail).rev().map(|from_end| (a.len() - 1 - from_end, b.len() - 1 - from_end));
    pairs.extend(ends);
    pairs
}

fn middle(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    if a.is_empty() || b.is_empty() || (a.len() + 1).saturating_mul(width) > MAX_CELLS {
        return Vec::new();
    }
    // length[i][j]: of the longest common subsequence of a[i..] and b[j..].
    let mut length = vec![0_u32; (a.len() + 1) * width];
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
    use super::align;

    #[test]
    fn orders_are_aligned_over_what_differs() {
        let pairs = |a: &str, b: &str| {
            let split = |text: &str| text.chars().map(|c| c.to_string()).collect::<Vec<_>>();
            let (a, b) = (split(a), split(b));
            let a: Vec<&str> = a.iter().map(String::as_str).collect();
            let b: Vec<&str> = b.iter().map(String::as_str).collect();
            align(&a, &b)
        };
        assert_eq!(pairs("abc", "abc"), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(pairs("abxcd", "abcd"), [(0, 0), (1, 1), (3, 2), (4, 3)]);
        assert_eq!(pairs("abcbd", "aebd"), [(0, 0), (3, 2), (4, 3)]);
        assert_eq!(pairs("", "a"), []);
        assert_eq!(pairs("aa", "a"), [(0, 0)]);
        assert_eq!(pairs("xyz", "abc"), []);
    }
}
