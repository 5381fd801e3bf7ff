//! The runtime call that launched each GPU slice, by correlation.
//!
//! A correlation is a number within one process. A file that was put together from several ranks or recordings has it
//! more than once: then the label that a merger writes before the pid (`[TP00] 4711`, SGLang's) identifies
//! the rank, and of several that are left the last one before the slice counts. Such a match is not certain.

use trace::{IdToken, Row, SmallIndex, Trace};

use crate::before_window::each_launch;
use crate::gpu::Gpu;

/// The launch of every GPU slice, parallel to [`Gpu`]'s order.
pub struct Launches {
    of_slice: Vec<Option<SmallIndex>>,
    /// Slices whose correlation several launches have, sorted.
    unsure: Vec<u32>,
}

impl Launches {
    /// Finds the launch of every GPU slice by its correlation.
    #[inline(never)]
    pub fn of(gpu: &Gpu<'_>) -> Self {
        let trace = gpu.trace;
        let labels = labels(trace);
        let label = |row: Row| labels[trace.track_info(trace.track(row)).process.0 as usize];
        let mut launches: Vec<(i64, Row)> = Vec::new();
        each_launch(trace, |row, correlation| launches.push((correlation, row)));
        launches.sort_unstable_by(|(a, row), (b, other)| {
            let key = |row: Row| (label(row), trace.ts_ns(row), row);
            a.cmp(b).then_with(|| key(*row).cmp(&key(*other)))
        });
        let mut found = Self { of_slice: Vec::with_capacity(gpu.len()), unsure: Vec::new() };
        gpu.each_row(|row| {
            let at = found.of_slice.len() as u32;
            let launch = trace.link(row).and_then(|correlation| {
                let from = launches.partition_point(|(other, _)| *other < correlation);
                let to = launches.partition_point(|(other, _)| *other <= correlation);
                let same = &launches[from..to];
                if let [(_, only)] = same {
                    return Some(*only);
                }
                if !same.is_empty() {
                    found.unsure.push(at);
                }
                let begun = |(_, other): &(i64, Row)| {
                    (label(*other), trace.ts_ns(*other)) <= (label(row), trace.ts_ns(row))
                };
                let (_, last) = same[..same.partition_point(begun)].last()?;
                (label(*last) == label(row)).then_some(*last)
            });
            found.of_slice.push(launch.and_then(SmallIndex::new));
        });
        found
    }

    /// The launch of a GPU slice.
    pub fn of_slice(&self, slice: usize) -> Option<Row> {
        self.of_slice.get(slice).copied().flatten().map(SmallIndex::get)
    }

    /// Whether no other launch has the same correlation.
    pub fn is_sure(&self, slice: usize) -> bool {
        self.unsure.binary_search(&(slice as u32)).is_err()
    }
}

/// By process: the label in brackets before its pid.
fn labels(trace: &Trace) -> Vec<Option<&str>> {
    let label = |pid: IdToken| match pid {
        IdToken::Text(id) => {
            trace.strings.get(id).strip_prefix('[')?.split_once(']').map(|(label, _)| label)
        }
        _ => None,
    };
    trace.processes.iter().map(|process| label(process.pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::before_window::BeforeWindowSlices;
    use fixture::{Fixture, kernel, slice};

    /// Start of each slice's launch, and whether it is sure.
    fn launched(fixture: Fixture) -> Vec<(Option<i64>, bool)> {
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
        let launches = Launches::of(&gpu);
        (0..gpu.len())
            .map(|at| (launches.of_slice(at).map(|row| trace.ts_ns(row)), launches.is_sure(at)))
            .collect()
    }

    #[test]
    fn the_one_launch_with_the_correlation_even_if_clocks_disagree() {
        let mut fixture = Fixture::default();
        for (at, correlation) in [(5, 1), (30, 2)] {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").at(at, 2).on(1, 1);
            fixture.push(launch.link(correlation));
        }
        for (at, correlation) in [(10, 1), (20, 2), (40, 3)] {
            fixture.push(kernel("k").at(at, 5).link(correlation));
        }
        fixture.push(kernel("k").at(50, 5));
        let expected = [(Some(5), true), (Some(30), true), (None, true), (None, true)];
        assert_eq!(launched(fixture), expected);
    }

    #[test]
    fn of_two_recordings_in_one_file_the_launch_before() {
        let mut fixture = Fixture::default();
        for at in [5, 105] {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").at(at, 2).on(1, 1);
            fixture.push(launch.link(1));
        }
        for at in [2, 10, 110] {
            fixture.push(kernel("k").at(at, 5).link(1));
        }
        assert_eq!(launched(fixture), [(None, false), (Some(5), false), (Some(105), false)]);
    }

    #[test]
    fn of_merged_ranks_the_launch_of_the_same_rank() {
        let mut fixture = Fixture::default();
        for (at, pid) in [(5, "[TP00] 71"), (7, "[TP01] 72"), (8, "[TP02] 73")] {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").at(at, 2).in_process(pid);
            fixture.push(launch.link(1));
        }
        for (at, pid) in [(10, "[TP00] 0"), (20, "[TP01] 1"), (30, "[TP03] 3")] {
            fixture.push(kernel("k").at(at, 5).in_process(pid).link(1));
        }
        assert_eq!(launched(fixture), [(Some(5), false), (Some(7), false), (None, false)]);
    }
}
