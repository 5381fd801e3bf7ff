//! Ranks in one file: processes that launch work on devices of their own.
//!
//! A merger puts the traces of several ranks into one file. What a thread of one rank does keeps no device of another waiting, so
//! whatever tells why a device stands still must ask the threads of its own rank alone. [`ranks`] finds them by the launches, and
//! [`narrow_to`] hides the others.

use trace::{Flags, Phase, Row, Trace, TracePart, each_row};

use crate::Options;
use crate::before_window::BeforeWindowSlices;
use crate::gpu::Gpu;
use crate::launches::Launches;

/// More processes than a merger puts into one file are not told apart.
const MOST_RANKS: usize = 256;

/// One rank of a file with several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its devices as the file spells them, sorted.
    pub devices: Vec<String>,
    /// By process of the trace: whether it is another rank's.
    others: Vec<bool>,
    /// By stream of the trace: whether it is another rank's.
    other_streams: Vec<bool>,
}

impl Rank {
    /// Whether an event is another rank's. What no rank owns is nobody's alone, and stays.
    fn is_others(&self, trace: &Trace, row: Row) -> bool {
        let is_others = match trace.stream(row) {
            Some(stream) => self.other_streams.get(usize::from(stream.0)),
            None => self.others.get(trace.track_info(trace.track(row)).process.0 as usize),
        };
        is_others == Some(&true)
    }
}

/// Sets that are joined; each is named by its first member.
struct Joined(Vec<usize>);

impl Joined {
    fn first(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            // (Ways grow shorter as they are walked.)
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// The ranks of a trace, in the order of their devices; empty where the file has fewer than two. A device belongs to the processes
/// that launch its work, and processes that share a device are one rank.
#[must_use]
#[inline(never)]
pub fn ranks(trace: &Trace) -> Vec<Rank> {
    // (What is narrowed to a rank has no others: finding that out again would index the whole trace.)
    if trace.part.as_ref().is_some_and(|part| part.step.is_none()) {
        return Vec::new();
    }
    let names: Vec<String> =
        trace.streams.iter().map(|stream| stream.device.display(&trace.strings)).collect();
    let mut devices: Vec<&String> = names.iter().collect();
    trace::sort(&mut devices);
    devices.dedup();
    if trace.processes.len() < 2 || devices.len() < 2 {
        return Vec::new();
    }
    let before = BeforeWindowSlices::of(trace);
    // (Which platform it is matters to the categories of kernels alone.)
    let gpu = Gpu::new(trace, catalog::Platform::Cuda, &before, &Options::default());
    let launches = Launches::of(&gpu);
    let device_of: Vec<usize> =
        names.iter().map(|name| devices.binary_search(&name).unwrap_or_default()).collect();
    let process_of = |row: Row| trace.track_info(trace.track(row)).process.0 as usize;
    let n = devices.len();
    // Devices first, then processes.
    let mut joined = Joined((0..n + trace.processes.len()).collect());
    let mut launching = vec![false; trace.processes.len()];
    let mut at = 0;
    gpu.each_row(|row| {
        let launch = launches.of_slice(at);
        at += 1;
        let Some(stream) = trace.stream(row) else { return };
        let device = device_of[usize::from(stream.0)];
        if let Some(launch) = launch {
            let process = process_of(launch);
            launching[process] = true;
            joined.join(device, n + process);
        }
    });
    let firsts: Vec<usize> = (0..n + launching.len()).map(|at| joined.first(at)).collect();
    let mut owners: Vec<usize> =
        (0..launching.len()).filter(|at| launching[*at]).map(|at| firsts[n + at]).collect();
    trace::sort(&mut owners);
    owners.dedup();
    if !(2..=MOST_RANKS).contains(&owners.len()) {
        return Vec::new();
    }
    // The rank of each device and process, if it has one. (Each rank is named by its first device.)
    let rank_of = |at: usize| owners.binary_search(&firsts[at]).ok();
    let rank = |own: usize| {
        let is_other = |at: usize| rank_of(at).is_some_and(|rank| rank != own);
        // (Work of a device without launches is told once.)
        let is_device_of_other = |device: usize| rank_of(device).unwrap_or(0) != own;
        let is_own = |device: &usize| !is_device_of_other(*device);
        Rank {
            devices: (0..n).filter(is_own).map(|device| devices[device].clone()).collect(),
            others: (0..launching.len()).map(|process| is_other(n + process)).collect(),
            other_streams: device_of.iter().map(|device| is_device_of_other(*device)).collect(),
        }
    };
    (0..owners.len()).map(rank).collect()
}

/// The trace without the work of other ranks. Rows keep their numbers, so that arguments that were read of the whole trace hold;
/// metadata stays.
#[must_use]
#[inline(never)]
pub fn narrow_to(trace: &Trace, rank: &Rank) -> Trace {
    let mut narrowed = trace.clone();
    let mut file_start_ns = None;
    each_row(trace, |row| {
        if trace.phase(row) == Phase::Metadata {
            return;
        }
        if trace.flags(row).has(Flags::HAS_TS) {
            let ts_ns = trace.ts_ns(row);
            file_start_ns = Some(file_start_ns.map_or(ts_ns, |first: i64| first.min(ts_ns)));
        }
        if rank.is_others(trace, row) {
            narrowed.hide(row);
        }
    });
    narrowed.part.get_or_insert_with(|| TracePart {
        step: None,
        file_start_ns: file_start_ns.unwrap_or_default(),
        has_launches: false,
    });
    narrowed
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, Slice, kernel, slice};

    use super::*;

    fn call(pid: &str, at: i64, id: i64) -> Slice<'_> {
        slice("cuda_runtime", "cudaLaunchKernel").in_process(pid).at(at, 5).link(id)
    }

    /// Two ranks, each with a thread and a device, and a process that launches nothing.
    fn two_ranks() -> Fixture {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::one").in_process("71").at(3, 20));
        fixture.push(call("71", 5, 1));
        fixture.push(slice("cpu_op", "aten::two").in_process("72").at(5, 20));
        fixture.push(call("72", 7, 2));
        fixture.push(slice("cpu_op", "router").in_process("9").at(5, 20));
        fixture.push(kernel("a").on(0, 7).at(12, 5).link(1));
        fixture.push(kernel("b").on(1, 7).at(13, 5).link(2));
        fixture
    }

    fn left(trace: &Trace) -> Vec<&str> {
        let rows = trace.rows().filter(|row| trace.phase(*row) == Phase::Complete);
        rows.map(|row| trace.name_text(row)).collect()
    }

    #[test]
    fn each_rank_has_its_threads_its_device_and_what_is_nobodys() {
        let trace = two_ranks().finish();
        let found = ranks(&trace);
        let devices: Vec<_> = found.iter().map(|rank| rank.devices.join(",")).collect();
        assert_eq!(devices, ["0", "1"]);
        let of = |at: usize| narrow_to(&trace, &found[at]);
        assert_eq!(left(&of(0)), ["aten::one", "cudaLaunchKernel", "router", "a"]);
        assert_eq!(left(&of(1)), ["aten::two", "cudaLaunchKernel", "router", "b"]);
        let part = of(1).part.expect("it is a part");
        assert_eq!((part.step, part.file_start_ns), (None, 3));
    }

    #[test]
    fn a_device_without_launches_is_of_one_rank() {
        let mut fixture = two_ranks();
        fixture.push(kernel("alone").on(2, 7).at(14, 5));
        let trace = fixture.finish();
        let n: usize = ranks(&trace)
            .iter()
            .map(|rank| {
                left(&narrow_to(&trace, rank)).iter().filter(|name| **name == "alone").count()
            })
            .sum();
        assert_eq!(n, 1);
    }

    #[test]
    fn a_process_with_two_devices_is_one_rank() {
        let mut fixture = two_ranks();
        fixture.push(call("71", 8, 3));
        fixture.push(kernel("c").on(1, 7).at(20, 5).link(3));
        assert!(ranks(&fixture.finish()).is_empty());
    }
}
