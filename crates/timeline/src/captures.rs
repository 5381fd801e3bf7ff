//! When graphs are captured, and when that is prepared.
//!
//! Before PyTorch begins a capture it waits for the device, collects what Python no longer uses, and gives memory back
//! (`torch.cuda.graph`, `torch/cuda/graphs.py`); graphs of torch.compile first run their warm-up and copy inputs to fixed memory
//! (`torch/_inductor/cudagraph_trees.py`). Few of these steps are events, so that most of it looks like unexplained work of the CPU.

use dialect::calls::{self, Does};
use dialect::{Records, inductor};
use trace::{Flags, Phase, Trace, TrackId, each_row};

use crate::intervals::{Interval, union};

/// What runs this long before a capture prepares it: the state of random numbers is set.
const PREPARES_NS: i64 = 1_000_000;
/// A longer time between a wait and a capture is no preparation of it, outside of compiled code. (The collection of garbage took 0.15 to
/// 0.35 s where it was measured.)
const MOST_NS: i64 = 1_000_000_000;

/// What a thread does that tells where a capture begins and ends.
#[derive(Default)]
struct Thread {
    /// Begins of captures.
    begins: Vec<i64>,
    /// Ends of captures.
    ends: Vec<i64>,
    /// Launches of graphs.
    graphs: Vec<Interval>,
    /// Calls that wait for the device.
    waits: Vec<Interval>,
    /// Begins of other launches and copies, and of ops and annotations.
    works: Vec<i64>,
    /// When compiled code runs: disjoint.
    compiled: Vec<Interval>,
}

/// When graphs are captured on any thread, each from where it is prepared to where it is launched: sorted and disjoint.
#[must_use]
pub fn recording(trace: &Trace) -> Vec<Interval> {
    if !trace.strings.marked(&calls::begins_capture).contains(&true) {
        return Vec::new();
    }
    let threads = threads(trace);
    let captures = threads
        .iter()
        .flat_map(|(_, thread)| thread.begins.iter().filter_map(|begin| thread.around(*begin)));
    union(captures.collect())
}

/// The threads, each list by begin.
fn threads(trace: &Trace) -> Vec<(TrackId, Thread)> {
    let strings = &trace.strings;
    let begins = strings.marked(&calls::begins_capture);
    let ends = strings.marked(&calls::ends_capture);
    let compiled = strings.marked(&inductor::is_compiled);
    let does: Vec<Option<Does>> =
        (0..strings.len() as u32).map(|id| calls::does(strings.get(trace::StringId(id)))).collect();
    let kinds = trace.by_raw_category(dialect::known);
    let (mut threads, mut last): (Vec<(TrackId, Thread)>, usize) = (Vec::new(), 0);
    each_row(trace, |row| {
        let flags = trace.flags(row);
        if trace.phase(row) != Phase::Complete || !flags.has(Flags::HAS_TS) {
            return;
        }
        let name = trace.name(row).0 as usize;
        let times = (trace.ts_ns(row), trace.end_ns(row));
        let is_call = matches!(kinds.of(trace, row), Some(Records::Call(_)));
        let is_host = matches!(kinds.of(trace, row), Some(Records::Op | Records::Annotation));
        let is_told = is_call && (does[name].is_some() || begins[name] || ends[name]);
        if !is_told && !is_host {
            return;
        }
        let track = trace.track(row);
        // (Events of a thread follow each other.)
        let is_last = |at: &usize| threads.get(*at).is_some_and(|(known, _)| *known == track);
        let known = || threads.iter().position(|(known, _)| *known == track);
        let at = Some(last).filter(is_last).or_else(known).unwrap_or_else(|| {
            threads.push((track, Thread::default()));
            threads.len() - 1
        });
        last = at;
        let thread = &mut threads[at].1;
        match does[name] {
            _ if !is_call && compiled[name] => thread.compiled.push(times),
            _ if !is_call => thread.works.push(times.0),
            _ if begins[name] => thread.begins.push(times.0),
            _ if ends[name] => thread.ends.push(times.1),
            Some(Does::LaunchGraph) => thread.graphs.push(times),
            Some(Does::Synchronize) => thread.waits.push(times),
            Some(Does::Launch | Does::Copy | Does::Fill) => thread.works.push(times.0),
            _ => {}
        }
    });
    for (_, thread) in &mut threads {
        let Thread { begins, ends, graphs, waits, works, compiled } = thread;
        [begins, ends, works].into_iter().for_each(|list| trace::sort(list));
        [graphs, waits].into_iter().for_each(|list| trace::sort(list));
        *compiled = union(std::mem::take(compiled));
    }
    threads
}

impl Thread {
    /// The capture that begins at `begin_ns`, with what prepares it and what follows up to the launch of the graph; `None` where it does
    /// not end.
    fn around(&self, begin_ns: i64) -> Option<Interval> {
        let end_ns = *self.ends.get(self.ends.partition_point(|end| *end < begin_ns))?;
        let again = self.begins.get(self.begins.partition_point(|begin| *begin <= begin_ns));
        if again.is_some_and(|again| *again < end_ns) {
            return None;
        }
        // (In compiled code, all but the launches of other graphs.)
        let code = self.compiled.partition_point(|(from, _)| *from <= begin_ns).checked_sub(1);
        let code = code.and_then(|at| self.compiled.get(at)).filter(|(_, to)| begin_ns < *to);
        if let Some((from, to)) = code {
            let before = self.graphs.partition_point(|graph| graph.0 < begin_ns);
            let last = before.checked_sub(1).and_then(|at| self.graphs.get(at));
            let from_ns = last.map_or(*from, |graph| graph.1.max(*from));
            let next = self.graphs.get(self.graphs.partition_point(|graph| graph.0 < end_ns));
            let until_ns = next.map_or(end_ns, |graph| graph.0);
            return Some((from_ns, if until_ns < *to { until_ns } else { end_ns }));
        }
        // (Elsewhere what follows a wait, if nothing runs until shortly before the capture.)
        let before = self.waits.partition_point(|wait| wait.1 <= begin_ns);
        let wait_ns = before.checked_sub(1).and_then(|at| self.waits.get(at)).map(|wait| wait.1);
        let earlier = self.begins.partition_point(|begin| *begin < begin_ns).checked_sub(1);
        let earlier_ns = earlier.and_then(|at| self.begins.get(at));
        let prepares = wait_ns.filter(|wait_ns| {
            let first = self.works.get(self.works.partition_point(|work| work < wait_ns));
            let graph = self.graphs.get(self.graphs.partition_point(|graph| graph.0 < *wait_ns));
            let is_short = begin_ns.saturating_sub(*wait_ns) <= MOST_NS;
            is_short
                && earlier_ns.is_none_or(|earlier| earlier < wait_ns)
                && graph.is_none_or(|graph| graph.0 > begin_ns)
                && first.is_none_or(|work| *work >= begin_ns.saturating_sub(PREPARES_NS))
        });
        Some((prepares.unwrap_or(begin_ns), end_ns))
    }
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;

    const MS: i64 = 1_000_000;

    /// A wait until 10 ms, a capture from 100 to 120 ms, and the launch of its graph at 125 ms; with other events.
    fn found(others: &[(&'static str, &'static str, i64, i64)]) -> Vec<Interval> {
        let mut fixture = Fixture::default();
        let call = |name| slice("cuda_runtime", name).on(1, 1);
        fixture.push(call("cudaDeviceSynchronize").at(9 * MS, MS));
        fixture.push(call("cudaLaunchKernel").at(100 * MS - 50_000, 5_000));
        fixture.push(call("cudaStreamBeginCapture").at(100 * MS, 0));
        fixture.push(call("cudaStreamEndCapture").at(119 * MS, MS));
        fixture.push(call("cudaGraphLaunch").at(125 * MS, MS));
        for (category, name, at, dur) in others {
            fixture.push(slice(category, name).on(1, 1).at(at * MS, dur * MS));
        }
        recording(&fixture.finish())
    }

    #[test]
    fn a_capture_is_prepared_from_the_wait_before_it_on() {
        assert_eq!(found(&[]), [(10 * MS, 120 * MS)]);
        // Not where something is launched in between: the program does something else.
        let copy = ("cuda_runtime", "cudaMemcpyAsync", 50, 1);
        let load = ("user_annotation", "load_checkpoint", 20, 70);
        for other in [copy, load] {
            assert_eq!(found(&[other]), [(100 * MS, 120 * MS)], "{other:?}");
        }
        // Nor for so long.
        let mut late = Fixture::default();
        let call = |name| slice("cuda_runtime", name).on(1, 1);
        late.push(call("cudaDeviceSynchronize").at(0, MS));
        late.push(call("cudaStreamBeginCapture").at(3_000 * MS, 0));
        late.push(call("cudaStreamEndCapture").at(3_019 * MS, MS));
        assert_eq!(recording(&late.finish()), [(3_000 * MS, 3_020 * MS)]);
    }

    #[test]
    fn a_capture_whose_end_is_lost_is_none() {
        // One begins at 50 ms, and the next one has the end.
        let lost = ("cuda_runtime", "cudaStreamBeginCapture", 50, 0);
        assert_eq!(found(&[lost]), [(100 * MS, 120 * MS)]);
    }

    #[test]
    fn in_compiled_code_all_belongs_to_it_but_other_graphs() {
        let region = ("cpu_op", "Torch-Compiled Region", 5, 140);
        let copy = ("cuda_runtime", "cudaMemcpyAsync", 50, 1);
        assert_eq!(found(&[region, copy]), [(5 * MS, 125 * MS)]);
        let graph = ("cuda_runtime", "cudaGraphLaunch", 30, 1);
        assert_eq!(found(&[region, graph]), [(31 * MS, 125 * MS)]);
        // The graph is launched by another call.
        let short = ("cpu_op", "CompiledFunction", 5, 118);
        assert_eq!(found(&[short]), [(5 * MS, 120 * MS)]);
    }

    #[test]
    fn without_a_capture_there_is_none() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "CompiledFunction").on(1, 1).at(0, MS));
        assert_eq!(recording(&fixture.finish()), []);
    }
}
