//! The role of a trace among others: which one is measured, and which ones map its kernels to ops and lines.
//!
//! Only content counts, not the file name. A capture trace records graph captures. A mapping trace runs without graphs the
//! kernels that another one replays with them. Kernel names decide which of several measured traces is meant, then the rank.

use dialect::Records;
use dialect::calls::{begins_capture, launches_graph};
use serde::{Deserialize, Serialize};
use trace::{Flags, StringId, Trace, each_row};

use super::kernel_map::KernelMap;
use super::replay::captures;
use timeline::before_window::{each_launch, is_gpu_slice};

/// Of the kernel names that a measured trace replays, this part must occur in a trace that belongs to it, in percent.
const LEAST_COMMON_PCT: usize = 50;

/// The same where a capture has the length of a replay: then it is that graph, whatever else its trace ran. Not all,
/// because a graph's copies and fills have no name at their launch.
const EXACT_COMMON_PCT: usize = 90;

/// Names of a measured trace that are looked for in others: a sample is enough, and quick among many traces.
const MOST_ASKED: usize = 64;

/// What a trace shows of the role that it can have. Names are digests of 32 bits: enough to compare, small to send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signs {
    /// The rank; whoever knows the file's name fills it in.
    pub rank: Option<i64>,
    /// Kernels, copies and fills that ran.
    pub n_ran: u64,
    /// Launches inside captures of graphs.
    pub n_captured: u64,
    /// Whether ops are recorded, to which kernels can be mapped.
    pub has_ops: bool,
    /// Kernels and copies of each launch of a graph, ascending, each number once.
    pub replays: Vec<u32>,
    /// Launches of each capture, ascending, each number once.
    pub captures: Vec<u32>,
    /// Names of what graphs ran, ascending; of many the first ones, which is a sample without a bias.
    pub replayed_names: Vec<u32>,
    /// Names of what ran without a graph, ascending.
    pub ran_names: Vec<u32>,
    /// Names of what was captured, ascending; empty where launches do not name their kernel (CUDA).
    pub captured_names: Vec<u32>,
}

/// The role that a trace seems to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoleGuess {
    /// It is measured.
    #[default]
    Own,
    /// It is the capture of the graphs that the trace at this place replays.
    Capture(usize),
    /// It ran without graphs what the trace at this place replays with them.
    Mapping(usize),
}

impl Signs {
    /// The signs of a trace, but for its rank.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut signs = Self { has_ops: has_ops(trace), ..Self::default() };
        let mut graphs: Vec<(i64, u32)> = Vec::new();
        if any_text(trace, launches_graph) {
            each_launch(trace, |row, correlation| {
                if launches_graph(trace.name_text(row)) {
                    graphs.push((correlation, 0));
                }
            });
            graphs.sort_unstable();
            graphs.dedup();
        }
        let (mut ran, mut replayed) = (Names::of(trace), Names::of(trace));
        each_row(trace, |row| {
            if !is_gpu_slice(trace, row) {
                return;
            }
            signs.n_ran += 1;
            let graph = trace.link(row).filter(|_| !graphs.is_empty()).and_then(|correlation| {
                graphs.binary_search_by_key(&correlation, |(of, _)| *of).ok()
            });
            match graph.and_then(|at| graphs.get_mut(at)) {
                Some((_, n)) => {
                    *n += 1;
                    replayed.note(trace.name(row));
                }
                None => ran.note(trace.name(row)),
            }
        });
        signs.replays = distinct(graphs.iter().map(|(_, n)| *n).filter(|n| *n > 0).collect());
        (signs.ran_names, signs.replayed_names) = (ran.digests(trace), replayed.digests(trace));
        signs.replayed_names.truncate(MOST_ASKED);
        if any_text(trace, begins_capture) {
            let captures = captures(trace, |_| 0);
            let mut captured = Names::of(trace);
            let launches = captures.iter().flat_map(|capture| &capture.launches);
            for kernel in launches.filter_map(|row| trace.launched_kernel(*row)) {
                captured.note(kernel);
            }
            let lengths = captures.iter().map(|capture| capture.launches.len() as u32);
            signs.n_captured = lengths.clone().map(u64::from).sum();
            signs.captures = distinct(lengths.collect());
            signs.captured_names = captured.digests(trace);
        }
        signs
    }

    /// Whether the trace is that of a capture by its numbers: it launched more into graphs than it ran.
    #[must_use]
    pub fn is_capture(&self) -> bool {
        self.n_captured > self.n_ran
    }

    /// Whether it replays kernels that a capture or a mapping trace could map.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.replayed_names.is_empty() && !self.is_capture()
    }

    /// Whether every graph that it replays was captured in it, too: then it needs no other capture.
    fn captured_all(&self) -> bool {
        self.replays.iter().all(|n| self.captures.binary_search(n).is_ok())
    }

    /// How well this trace fits as a capture of what `measured` replays; `None` if it does not.
    fn captures_of(&self, measured: &Self) -> Option<Fit> {
        if self.captures.is_empty() {
            return None;
        }
        let equal = self.captures.iter().any(|n| measured.replays.binary_search(n).is_ok());
        // Launches name their kernels on ROCm. Elsewhere a warm-up shows what was captured: it ran the same kernels.
        let mut known = self.captured_names.clone();
        if known.is_empty() {
            known = distinct([&self.ran_names[..], &self.replayed_names].concat());
        }
        let pct = common_pct(&measured.replayed_names, &known);
        if equal && pct >= EXACT_COMMON_PCT && !measured.captured_all() {
            return Some(Fit { exact: true, pct });
        }
        if !self.is_capture() {
            return None;
        }
        let pct = match (self.captured_names.is_empty(), equal) {
            (false, _) => pct,
            // Without names only an equal number of launches counts.
            (true, true) => 100,
            (true, false) => 0,
        };
        (pct >= LEAST_COMMON_PCT).then_some(Fit { exact: false, pct })
    }
}

/// How well a trace fits another; the larger, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// Length and names are equal.
    exact: bool,
    /// Names of the measured trace that occur in it, in percent.
    pct: usize,
}

/// The role that each of some traces seems to have beside the others.
#[must_use]
pub fn guess_roles(traces: &[&Signs]) -> Vec<RoleGuess> {
    let best = |of: usize, fit: &dyn Fn(&Signs) -> Option<Fit>| -> Option<usize> {
        let others = traces.iter().enumerate().filter(|(at, other)| *at != of && other.asks());
        let scored =
            others.filter_map(|(at, other)| Some((fit(other)?, same_rank(traces[of], other), at)));
        // Of equals the first.
        let best = scored.max_by_key(|(fit, rank, at)| (*fit, *rank, std::cmp::Reverse(*at)));
        best.map(|(.., at)| at)
    };
    let mut roles = vec![RoleGuess::Own; traces.len()];
    for (at, signs) in traces.iter().enumerate() {
        if let Some(measured) = best(at, &|measured| signs.captures_of(measured)) {
            roles[at] = RoleGuess::Capture(measured);
        }
    }
    // A capture that is used as one is measured by nobody.
    let is_own = |roles: &[RoleGuess], at: usize| roles[at] == RoleGuess::Own;
    for at in 0..roles.len() {
        if let RoleGuess::Capture(measured) = roles[at]
            && !is_own(&roles, measured)
        {
            roles[at] = RoleGuess::Own;
        }
    }
    // A capture says more than names do, and of several mapping traces one is enough.
    let mut served: Vec<bool> = vec![false; traces.len()];
    for role in &roles {
        if let RoleGuess::Capture(measured) = role {
            served[*measured] = true;
        }
    }
    for (at, signs) in traces.iter().enumerate() {
        let runs_alone = signs.has_ops && signs.replays.is_empty() && signs.captures.is_empty();
        let known = |measured: &Signs| {
            let pct = common_pct(&measured.replayed_names, &signs.ran_names);
            (pct >= LEAST_COMMON_PCT).then_some(Fit { exact: false, pct })
        };
        if runs_alone
            && let Some(measured) = best(at, &known)
            && !served[measured]
            && is_own(&roles, measured)
        {
            served[measured] = true;
            roles[at] = RoleGuess::Mapping(measured);
        }
    }
    roles
}

/// Digests of the kernels' names in a map, ascending: what [`guess_map`] goes by.
#[must_use]
pub fn map_names(map: &KernelMap) -> Vec<u32> {
    distinct(map.global.iter().map(|kernel| digest(&kernel.name)).collect())
}

/// Which of some traces a kernel map of these names belongs to: the one with most kernels that the map has, of equals the
/// first; `None` where it has none. Unlike a mapping trace, a map is of use to a trace without graphs, too: that may
/// have been recorded without stacks.
#[must_use]
pub fn guess_map(names: &[u32], traces: &[&Signs]) -> Option<usize> {
    let known = |signs: &Signs| {
        let all = signs.replayed_names.iter().chain(&signs.ran_names);
        all.filter(|name| names.binary_search(name).is_ok()).count()
    };
    let scored = traces.iter().enumerate().map(|(at, signs)| (known(signs), at));
    let best = scored.filter(|(n, _)| *n > 0).max_by_key(|(n, at)| (*n, std::cmp::Reverse(*at)));
    best.map(|(_, at)| at)
}

/// 2 for the same rank, 0 for another, 1 where nobody knows.
fn same_rank(a: &Signs, b: &Signs) -> u8 {
    match (a.rank, b.rank) {
        (Some(a), Some(b)) => {
            if a == b {
                2
            } else {
                0
            }
        }
        _ => 1,
    }
}

/// The part of `wanted` that is in `known`, in percent. Both ascend.
fn common_pct(wanted: &[u32], known: &[u32]) -> usize {
    let common = wanted.iter().filter(|name| known.binary_search(name).is_ok()).count();
    100 * common / wanted.len().max(1)
}

fn distinct(mut numbers: Vec<u32>) -> Vec<u32> {
    trace::sort(&mut numbers);
    numbers.dedup();
    numbers
}

/// Whether a text of the trace is so: far fewer than events.
fn any_text(trace: &Trace, is_so: impl Fn(&str) -> bool) -> bool {
    (0..trace.strings.len() as u32).any(|id| is_so(trace.strings.get(StringId(id))))
}

fn has_ops(trace: &Trace) -> bool {
    any_text(trace, |text| dialect::known(text) == Some(Records::Op))
        || trace.seen_flags().has(Flags::PYTHON_IDS)
}

/// A set of interned names.
struct Names(Vec<bool>);

impl Names {
    fn of(trace: &Trace) -> Self {
        Self(vec![false; trace.strings.len()])
    }

    fn note(&mut self, name: StringId) {
        if let Some(noted) = self.0.get_mut(name.0 as usize) {
            *noted = true;
        }
    }

    fn digests(&self, trace: &Trace) -> Vec<u32> {
        let noted = (0_u32..).zip(&self.0).filter(|(_, noted)| **noted);
        distinct(noted.map(|(id, _)| digest(trace.strings.get(StringId(id)))).collect())
    }
}

/// FNV-1a of 32 bits (Fowler, Noll, Vo).
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MappedKernel;
    use fixture::{Fixture, kernel, slice};

    /// A trace that replays `names` by one launch of a graph.
    fn replaying(names: &[&str]) -> Signs {
        let mut fixture = Fixture::default();
        fixture.push(slice("cuda_runtime", "hipGraphLaunch").at(0, 5).on(1, 1).link(1));
        for (at, name) in (1..).zip(names) {
            fixture.push(kernel(name).at(at * 10, 5).link(1));
        }
        Signs::of(&fixture.finish())
    }

    /// A trace that launches `names` one by one; `n_captured` of them in a capture, so that they do not run.
    fn launching(names: &[&str], n_captured: usize) -> Signs {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::mm").at(0, 5).on(1, 1));
        fixture.push(slice("cuda_runtime", "cudaStreamBeginCapture").at(5, 1).on(1, 1));
        for (at, name) in (1..).zip(names) {
            if at == n_captured as i64 + 1 {
                fixture.push(slice("cuda_runtime", "cudaStreamEndCapture").at(at * 10, 1).on(1, 1));
            }
            let launch = slice("cuda_runtime", "cudaLaunchKernel").at(at * 10 + 2, 1).on(1, 1);
            fixture.push(launch.link(at));
            if at > n_captured as i64 {
                fixture.push(kernel(name).at(at * 10 + 5, 5).link(at));
            }
        }
        let end = names.len() as i64 * 10 + 20;
        fixture.push(slice("cuda_runtime", "cudaStreamEndCapture").at(end, 1).on(1, 1));
        Signs::of(&fixture.finish())
    }

    /// A trace without graphs.
    fn plain(names: &[&str]) -> Signs {
        Signs { captures: Vec::new(), n_captured: 0, ..launching(names, 0) }
    }

    #[test]
    fn a_capture_launches_more_than_it_runs() {
        let capture = launching(&["a", "b", "c"], 3);
        assert_eq!((capture.n_captured, capture.n_ran, capture.is_capture()), (3, 0, true));
        assert_eq!(capture.captures, [3]);
        let run = launching(&["a", "b", "c"], 1);
        assert_eq!((run.n_captured, run.n_ran, run.is_capture()), (1, 2, false));
        assert!(!run.asks() && replaying(&["a"]).asks());
    }

    #[test]
    fn a_capture_without_names_goes_by_its_number_of_launches() {
        let (one, two) = (replaying(&["a", "b"]), replaying(&["a", "b", "c"]));
        let capture = launching(&["x", "y", "z"], 3);
        let own = RoleGuess::Own;
        assert_eq!(guess_roles(&[&capture, &one, &two]), [RoleGuess::Capture(2), own, own]);
        assert_eq!(guess_roles(&[&capture, &one]), [own, own], "nobody replays three");
    }

    /// A trace that captures `names` after a warm-up and replays its own graph: it runs more than it captures.
    fn warmed_up(names: &[&str], launches_named: bool) -> Signs {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::mm").at(0, 5).on(1, 1));
        let mut at = 10;
        let mut launch = |fixture: &mut Fixture, name: &str, link: i64, runs: bool| {
            let call = slice("cuda_runtime", "hipLaunchKernel").at(at, 1).on(1, 1).link(link);
            fixture.push(if launches_named { call.launching(name) } else { call });
            if runs {
                fixture.push(kernel(name).at(at + 2, 2).link(link));
            }
            at += 10;
        };
        for (link, name) in (1..).zip(names) {
            launch(&mut fixture, name, link, true);
        }
        fixture.push(slice("cuda_runtime", "hipStreamBeginCapture").at(5_000, 1).on(1, 1));
        at = 5_010;
        let mut launch = |fixture: &mut Fixture, name: &str, link: i64| {
            let call = slice("cuda_runtime", "hipLaunchKernel").at(at, 1).on(1, 1).link(link);
            fixture.push(if launches_named { call.launching(name) } else { call });
            at += 10;
        };
        for (link, name) in (1_000..).zip(names) {
            launch(&mut fixture, name, link);
        }
        fixture.push(slice("cuda_runtime", "hipStreamEndCapture").at(8_000, 1).on(1, 1));
        fixture.push(slice("cuda_runtime", "hipGraphLaunch").at(9_000, 5).on(1, 1).link(9_000));
        for (n, name) in (0..).zip(names) {
            fixture.push(kernel(name).at(9_010 + n * 10, 5).link(9_000));
        }
        Signs::of(&fixture.finish())
    }

    #[test]
    fn a_capture_with_a_warm_up_and_a_replay_of_its_own_is_a_capture() {
        let own = RoleGuess::Own;
        for launches_named in [true, false] {
            let capture = warmed_up(&["a", "b", "c"], launches_named);
            assert_eq!((capture.n_captured, capture.n_ran), (3, 6), "counting says no");
            assert_eq!(capture.captured_names.is_empty(), !launches_named);
            let measured = replaying(&["a", "b", "c"]);
            assert_eq!(guess_roles(&[&capture, &measured]), [RoleGuess::Capture(1), own]);
            assert_eq!(guess_roles(&[&measured, &capture]), [own, RoleGuess::Capture(0)]);
            // Another length, or other names, are another graph.
            for other in [replaying(&["a", "b"]), replaying(&["a", "x", "y"])] {
                assert_eq!(guess_roles(&[&capture, &other]), [own, own]);
            }
            // Two such runs need nothing of each other.
            let again = warmed_up(&["a", "b", "c"], launches_named);
            assert_eq!(guess_roles(&[&capture, &again]), [own, own]);
        }
    }

    #[test]
    fn names_tell_which_trace_a_mapping_trace_is_of() {
        let (llama, whisper) = (replaying(&["a", "b", "c"]), replaying(&["x", "y"]));
        let mapping = plain(&["x", "y", "z"]);
        let own = RoleGuess::Own;
        assert_eq!(guess_roles(&[&llama, &whisper, &mapping]), [own, own, RoleGuess::Mapping(1)]);
        assert_eq!(guess_roles(&[&llama, &mapping]), [own, own]);
        let second = plain(&["x", "y"]);
        let roles = guess_roles(&[&mapping, &second, &whisper]);
        assert_eq!(roles, [RoleGuess::Mapping(2), own, own], "one mapping trace is enough");
    }

    #[test]
    fn of_equal_traces_the_one_of_the_same_rank_is_meant() {
        let with = |rank: i64, signs: Signs| Signs { rank: Some(rank), ..signs };
        let (zero, one) = (with(0, replaying(&["a"])), with(1, replaying(&["a"])));
        let capture = with(1, launching(&["a"], 1));
        let roles = guess_roles(&[&zero, &capture, &one]);
        assert_eq!(roles, [RoleGuess::Own, RoleGuess::Capture(2), RoleGuess::Own]);
    }

    #[test]
    fn a_map_is_of_the_trace_whose_kernels_it_knows() {
        let (llama, whisper) = (replaying(&["a", "b"]), plain(&["x", "y"]));
        let names = |names: &[&str]| distinct(names.iter().map(|name| digest(name)).collect());
        let traces = [&llama, &whisper];
        assert_eq!(guess_map(&names(&["y", "x", "a"]), &traces), Some(1));
        assert_eq!(guess_map(&names(&["b", "x"]), &traces), Some(0), "of equals the first");
        assert_eq!(guess_map(&names(&["moon"]), &traces), None);
        let kernels =
            ["a", "x"].map(|name| MappedKernel { name: name.into(), ..Default::default() });
        let map = KernelMap { stages: Vec::new(), global: kernels.to_vec() };
        assert_eq!(map_names(&map), names(&["a", "x"]));
    }

    #[test]
    fn a_trace_alone_stands_for_itself() {
        assert_eq!(guess_roles(&[&launching(&["a"], 1)]), [RoleGuess::Own]);
        assert_eq!(guess_roles(&[]), []);
        let two = [&replaying(&["a"]), &replaying(&["a"])];
        assert_eq!(guess_roles(&two), [RoleGuess::Own; 2]);
    }
}
