//! Kineto on ROCm (roctracer, rocprofiler-sdk).

use crate::{Accelerator, RawCategory, Records, row};

/// Raw categories of HIP's own. (Kineto writes the calls of HIP as `cuda_runtime`.)
pub(crate) const RAW_CATEGORIES: &[RawCategory] = &[
    row("hip_runtime", Records::Call(Accelerator::Gpu)),
    row("hip_driver", Records::Call(Accelerator::Gpu)),
];

/// Launch calls whose name shows that the GPU is one of AMD's.
pub const LAUNCHES: &[&str] =
    &["hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel", "hipGraphLaunch"];

/// Calls whose grid is counted in threads, not in blocks (`globalWorkSizeX` of HIP's `hip_ext.h`: "in work-items").
/// ROCm's profiler writes it as it was passed, and copies it to the kernel: in the corpus every one of these grids but
/// 12 of 5,364 is a multiple of its block, as grids of other calls are not.
pub(crate) const GRID_IN_THREADS: &[&str] =
    &["hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"];

/// Threads of a block at most, on AMD's GPUs and on NVIDIA's (`maxThreadsPerBlock`).
const MOST_THREADS: u64 = 1024;

/// Grid and block of a launch, from what the profiler wrote under these names and the call; `None` where they say nothing.
///
/// A block has at most 1,024 threads. Where `block` has more, `grid` is the block and `block` counts the threads of the whole grid:
/// so some profilers of ROCm 7 write it (seen on MI350X: grid 256, block 65536 for a matrix product of 256 tiles with 256 threads each).
#[must_use]
pub fn grid_and_block(
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    call: &str,
) -> (Option<[u32; 3]>, Option<[u32; 3]>) {
    let (Some(first), Some(second)) = (grid, block) else { return (grid, block) };
    let n_threads =
        |sizes: [u32; 3]| sizes.iter().fold(1_u64, |all, n| all.saturating_mul(u64::from(*n)));
    let divided = |threads: [u32; 3], by: [u32; 3]| {
        let blocks = |at: usize| (by[at] > 0).then(|| threads[at].div_ceil(by[at]));
        Some([blocks(0)?, blocks(1)?, blocks(2)?])
    };
    if n_threads(second) > MOST_THREADS {
        let is_whole = (0..3).all(|at| first[at] > 0 && second[at].is_multiple_of(first[at]));
        return match is_whole && n_threads(first) <= MOST_THREADS {
            true => (divided(second, first), Some(first)),
            false => (None, None),
        };
    }
    match GRID_IN_THREADS.contains(&call) {
        true => (divided(first, second), block),
        false => (grid, block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_told_in_blocks() {
        let of = |grid, block, call| grid_and_block(Some(grid), Some(block), call);
        let blocks = (Some([4, 1, 1]), Some([256, 1, 1]));
        assert_eq!(of([4, 1, 1], [256, 1, 1], "hipLaunchKernel"), blocks);
        assert_eq!(of([1024, 1, 1], [256, 1, 1], "hipExtModuleLaunchKernel"), blocks, "in threads");
        // Another profiler writes the block as the grid, and all threads as the block.
        assert_eq!(of([256, 1, 1], [1024 * 64, 1, 1], "hipLaunchKernel").0, Some([256, 1, 1]));
        assert_eq!(
            of([512, 1, 1], [512, 128, 1], "hipExtModuleLaunchKernel"),
            (Some([1, 128, 1]), Some([512, 1, 1]))
        );
        assert_eq!(of([300, 1, 1], [65_536, 1, 1], "hipLaunchKernel"), (None, None), "no multiple");
        assert_eq!(grid_and_block(None, Some([9, 1, 1]), ""), (None, Some([9, 1, 1])));
    }
}
