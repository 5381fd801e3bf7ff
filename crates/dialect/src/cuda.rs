//! Kineto on CUDA (CUPTI).
//!
//! Source of the raw categories: `libkineto/src/ActivityType.cpp` of Kineto (2025). ROCm's calls have them, too.

use crate::{Accelerator, RawCategory, Records, row};

/// Raw categories that Kineto names after CUDA.
pub(crate) const RAW_CATEGORIES: &[RawCategory] = &[
    row("cuda_runtime", Records::Call(Accelerator::Gpu)),
    row("cuda_driver", Records::Call(Accelerator::Gpu)),
    row("cuda_sync", Records::Sync),
];

/// Launch calls whose name shows that the GPU is one of NVIDIA's.
pub const LAUNCHES: &[&str] =
    &["cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cudaGraphLaunch"];

/// The event on a stream that waits for another stream (`CuptiActivity.cpp`, of `cuda_sync`).
pub const STREAM_WAIT: &str = "Stream Wait Event";
