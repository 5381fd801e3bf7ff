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
pub const GRID_IN_THREADS: &[&str] = &["hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"];
