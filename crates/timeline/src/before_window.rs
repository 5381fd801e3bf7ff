//! GPU slices that were launched before profiling started.
//!
//! A kernel carries the correlation of the runtime call that launched it. When no such call is in the file,
//! the call was made before profiling started: the kernel belongs to earlier work. In three real traces these
//! are 30% of the GPU time. The start of the CPU's `ProfilerStep` does not identify them (8 of 463 start
//! before it); the correlation does, and the order of a stream: a kernel that comes after one whose launch is in the file was launched
//! later (profilers before 2.2 record no launches of Triton's kernels).

use serde::{Deserialize, Serialize};
use trace::{Flags, Phase, Row, Trace, each_of, each_row};

use crate::recorded::Recorded::{Annotation, GpuAnnotation, Sync};
use crate::recorded::{is_gpu, recorded};

/// Which GPU slices were launched before profiling started.
pub struct BeforeWindowSlices {
    launches: Correlations,
    /// By track: the start of the first slice whose launch is in the file. A stream runs its work in the order of the launches, so
    /// what comes later was launched while profiling, even if its launch is not in the file.
    linked_ns: Vec<i64>,
    /// Whether the file has launch calls, also outside the step that the trace is narrowed to.
    has_launches: bool,
    /// All GPU slices, in file order.
    pub gpu_rows: Vec<Row>,
    /// Counted separately.
    pub summary: BeforeWindow,
}

/// Less than this part of the time of all changes no figure that is printed: a twentieth.
const LEAST_PART: i64 = 20;

/// Whether `own_ns` of work from before the window is enough of all the GPU time beside it to be told.
#[must_use]
pub fn is_much(own_ns: i64, all_ns: i64) -> bool {
    own_ns.saturating_mul(LEAST_PART) >= all_ns
}

/// GPU work that was launched before profiling started, counted separately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeWindow {
    /// Kernels whose launch is not in the file, nor an earlier one on their stream.
    pub n_kernels: u64,
    /// The sum of their durations.
    pub kernel_ns: i64,
    /// Copies and fills of that kind.
    pub n_memory_ops: u64,
    /// The sum of their durations.
    pub memory_ns: i64,
    /// Kernels without a correlation: their launch is not recorded.
    pub n_unlinked_kernels: u64,
    /// Runtime calls with a correlation in the file.
    pub n_launches: u64,
    /// Why this is not known, if so.
    pub unknown: Option<String>,
}

impl BeforeWindowSlices {
    /// Finds them by the correlations of the calls in the file.
    #[inline(never)]
    pub fn of(trace: &Trace) -> Self {
        let launches = Correlations::of_launches(trace);
        let mut gpu_rows = Vec::new();
        each_row(trace, |row| {
            if is_gpu_slice(trace, row) {
                gpu_rows.push(row);
            }
        });
        let n_launches = launches.len();
        let has_launches = n_launches > 0 || trace.part.as_ref().is_some_and(|of| of.has_launches);
        let mut summary = BeforeWindow { n_launches, ..Default::default() };
        let mut linked_ns = vec![i64::MAX; trace.tracks.len()];
        each_of(&gpu_rows, |row| {
            let is_linked =
                trace.link(row).is_some_and(|correlation| launches.contains(correlation));
            let first = linked_ns.get_mut(trace.track(row).0 as usize).filter(|_| is_linked);
            if let Some(first) = first {
                *first = (*first).min(trace.ts_ns(row));
            }
        });
        let mut found =
            Self { launches, linked_ns, has_launches, gpu_rows, summary: summary.clone() };
        let mut any_linked = false;
        each_of(&found.gpu_rows, |row| {
            let kernel = trace.flags(row).has(Flags::KERNEL);
            any_linked |= trace.link(row).is_some();
            summary.n_unlinked_kernels += u64::from(kernel && trace.link(row).is_none());
            if !found.contains(trace, row) {
                return;
            }
            let (n, ns) = if kernel {
                (&mut summary.n_kernels, &mut summary.kernel_ns)
            } else {
                (&mut summary.n_memory_ops, &mut summary.memory_ns)
            };
            *n += 1;
            *ns = ns.saturating_add(duration_ns(trace, row));
        });
        if !has_launches {
            summary.unknown = Some(
                if any_linked {
                    "no launch call is in the file (only the GPU was recorded)"
                } else {
                    "the file has neither launch calls nor correlations"
                }
                .to_owned(),
            );
        }
        found.summary = summary;
        found
    }

    /// Whether the GPU slice `row` was launched before the window. Never, when no launch at all is in the
    /// file: then every kernel would be, and that would say nothing.
    pub fn contains(&self, trace: &Trace, row: Row) -> bool {
        let is_first = || {
            let linked_ns = self.linked_ns.get(trace.track(row).0 as usize);
            linked_ns.is_none_or(|linked_ns| trace.ts_ns(row) <= *linked_ns)
        };
        self.has_launches
            && trace.link(row).is_some_and(|correlation| !self.launches.contains(correlation))
            && is_first()
    }
}

/// A set of correlations. Profilers number their calls one after the other, so a bit for every number of
/// the range is far smaller than a hash set; where they do not, the numbers are sorted.
enum Correlations {
    Dense { first: i64, bits: Vec<u64>, len: u64 },
    Sorted(Vec<i64>),
}

impl Correlations {
    /// The correlations of all runtime calls.
    fn of_launches(trace: &Trace) -> Self {
        let (mut all, mut first, mut last) = (Vec::new(), i64::MAX, i64::MIN);
        each_launch(trace, |_, correlation| {
            all.push(correlation);
            first = first.min(correlation);
            last = last.max(correlation);
        });
        let range = i128::from(last) - i128::from(first) + 1;
        if !all.is_empty() && range <= 64 * all.len() as i128 {
            let mut bits = vec![0_u64; (range / 64) as usize + 1];
            each_of(&all, |correlation| {
                let bit = correlation.abs_diff(first);
                bits[(bit / 64) as usize] |= 1 << (bit % 64);
            });
            let len = bits.iter().map(|word| u64::from(word.count_ones())).sum();
            return Self::Dense { first, bits, len };
        }
        trace::sort(&mut all);
        all.dedup();
        Self::Sorted(all)
    }

    fn len(&self) -> u64 {
        match self {
            Self::Dense { len, .. } => *len,
            Self::Sorted(sorted) => sorted.len() as u64,
        }
    }

    fn contains(&self, correlation: i64) -> bool {
        match self {
            Self::Dense { first, bits, .. } => {
                let bit = correlation.abs_diff(*first);
                correlation >= *first
                    && bits.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
            }
            Self::Sorted(sorted) => sorted.binary_search(&correlation).is_ok(),
        }
    }
}

/// Calls `each` with every slice that may have launched GPU work, and its correlation.
#[inline(never)]
pub fn each_launch(trace: &Trace, mut each: impl FnMut(Row, i64)) {
    let recorded = recorded(trace);
    each_row(trace, |row| {
        const NOT_CALLS: Flags = Flags(Flags::KERNEL.0 | Flags::GPU_MEMORY.0 | Flags::PYTHON_IDS.0);
        if !trace.is_complete(row, Flags::default(), NOT_CALLS) {
            return;
        }
        let Some(correlation) = trace.link(row) else { return };
        // `cuda_runtime`, `cuda_driver` (ROCm uses these too), `hip_runtime`, `Runtime`. Annotations and
        // synchronisations carry a correlation as well, but they are records of the GPU's side.
        let of_gpu = matches!(recorded.of(trace, row), Annotation | GpuAnnotation | Sync);
        if !of_gpu {
            each(row, correlation);
        }
    });
}

/// A slice of the GPU's: kernel, copy or fill, with a start.
pub fn is_gpu_slice(trace: &Trace, row: Row) -> bool {
    let flags = trace.flags(row);
    is_gpu(flags) && trace.phase(row) == Phase::Complete && flags.has(Flags::HAS_TS)
}

/// A duration as the reference figures count it: a missing or negative one is 0.
pub fn duration_ns(trace: &Trace, row: Row) -> i64 {
    if trace.flags(row).has(Flags::HAS_DUR) { trace.dur_ns(row).max(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel, slice};

    #[test]
    fn a_kernel_without_its_launch_came_before_the_window() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cuda_runtime", "cudaLaunchKernel").at(0, 5).link(1));
        fixture.push(kernel("k").at(10, 3).link(1));
        fixture.push(kernel("k").at(2, 4).link(2));
        fixture.push(kernel("k").at(30, 5));
        fixture.push(slice("gpu_memcpy", "Memcpy HtoD").at(4, 6).link(3));
        fixture.push(slice("cuda_sync", "Stream Sync").at(50, 6).link(2));
        let summary = BeforeWindowSlices::of(&fixture.finish()).summary;
        assert_eq!(
            summary,
            BeforeWindow {
                n_kernels: 1,
                kernel_ns: 4,
                n_memory_ops: 1,
                memory_ns: 6,
                n_unlinked_kernels: 1,
                n_launches: 1,
                unknown: None
            }
        );
    }

    #[test]
    fn what_follows_a_launched_kernel_on_its_stream_was_launched_later() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cuda_runtime", "cudaLaunchKernel").at(0, 5).link(1));
        fixture.push(kernel("k").at(10, 3).link(1));
        // (The driver call is not in the file.)
        fixture.push(kernel("triton_poi_fused_add_0").at(20, 4).link(2));
        fixture.push(kernel("k").on(0, 9).at(20, 4).link(3));
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        assert_eq!(before.summary.n_kernels, 1, "only that of the other stream may be earlier");
        assert!(!before.contains(&trace, before.gpu_rows[1]));
    }

    #[test]
    fn correlations_far_apart_are_found_too() {
        let mut fixture = Fixture::default();
        for correlation in [i64::MIN, -7, 0, 1 << 40, i64::MAX] {
            fixture.push(slice("cuda_runtime", "cudaLaunchKernel").link(correlation));
            fixture.push(kernel("k").at(1, 1).link(correlation));
        }
        fixture.push(kernel("k").at(0, 1).link(1));
        let summary = BeforeWindowSlices::of(&fixture.finish()).summary;
        assert_eq!((summary.n_launches, summary.n_kernels), (5, 1));

        let mut fixture = Fixture::default();
        for correlation in [70, 7, 135, 7] {
            fixture.push(slice("cuda_runtime", "cudaLaunchKernel").link(correlation));
        }
        for correlation in [6, 7, 8, 70, 135, 136, i64::MIN, i64::MAX] {
            fixture.push(kernel("k").at(1, 1).link(correlation));
        }
        let summary = BeforeWindowSlices::of(&fixture.finish()).summary;
        assert_eq!((summary.n_launches, summary.n_kernels), (3, 5));
    }

    #[test]
    fn without_any_launch_nothing_is_called_early() {
        let mut fixture = Fixture::default();
        fixture.push(kernel("k").at(10, 3).link(1));
        let summary = BeforeWindowSlices::of(&fixture.finish()).summary;
        assert_eq!((summary.n_kernels, summary.kernel_ns), (0, 0));
        assert!(summary.unknown.unwrap().contains("only the GPU was recorded"));
    }
}
