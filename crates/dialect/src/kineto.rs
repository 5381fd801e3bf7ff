//! Kineto and PyTorch's profiler on any device: what CUDA and ROCm have in common.
//!
//! Sources: `libkineto/src/ActivityType.cpp` and `output_json.cpp` of Kineto (2025) for raw categories; for the spellings of
//! PyTorch 1.8 and 1.9 (`Kernel`, `Memcpy`, `Operator`, `Runtime`), traces of these versions.

use crate::{Accelerator, RawCategory, Records, row};

/// What runs on a GPU. (XPU and PrivateUse1 devices write these categories, too.)
pub(crate) const ON_GPU: &[RawCategory] = &[
    row("kernel", Records::Kernel),
    row("gpu_memcpy", Records::GpuCopy),
    row("gpu_memset", Records::GpuFill),
    // PyTorch 1.8 and 1.9.
    row("memcpy", Records::GpuCopy),
    row("memset", Records::GpuFill),
];

/// Everything else that does not depend on the device.
pub(crate) const RAW_CATEGORIES: &[RawCategory] = &[
    row("cpu_op", Records::Op),
    // PyTorch 1.8 and 1.9.
    row("operator", Records::Op),
    row("python_function", Records::Frame),
    row("user_annotation", Records::Annotation),
    row("gpu_user_annotation", Records::GpuAnnotation),
    row("overhead", Records::Overhead),
    // PyTorch 1.8 and 1.9, on either platform.
    row("runtime", Records::Call(Accelerator::Gpu)),
    row("driver", Records::Call(Accelerator::Gpu)),
];

/// Processes in which the profiler of autograd writes what it recorded, in a format without raw categories
/// (`torch/csrc/autograd/profiler_legacy.cpp` and `EventList.export_chrome_trace`, PyTorch 1.8 and before): the CPU and the GPU.
pub const BEFORE_KINETO: [&str; 2] = ["CPU functions", "CUDA functions"];

/// Raw category of the arrows from an op to its backward op (`torch/csrc/autograd/profiler_kineto.cpp`).
pub const FORWARD_BACKWARD: &str = "fwdbwd";

/// Name of the instants that record a change of allocated memory (`torch/csrc/autograd/profiler_kineto.cpp`).
pub const MEMORY: &str = "[memory]";

/// Name of the metadata events that name a thread (Trace Event Format).
pub const THREAD_NAME: &str = "thread_name";

/// How the names of frames begin that run a module (`torch/csrc/autograd/profiler_python.cpp`).
pub const MODULE: &str = "nn.Module: ";

/// How the names of the profiler's steps begin (`torch/profiler/profiler.py`).
pub const STEP: &str = "ProfilerStep";

/// The same with the mark before the number, as every PyTorch since 1.8 writes it.
pub const NUMBERED_STEP: &str = "ProfilerStep#";

/// How the names of PyTorch's own annotations begin. The profilers of PyTorch 1.8 and 1.9 write them as `Operator` or
/// `cpu_op`, so the raw category alone does not identify them (measured: `Optimizer.step#SGD.step` with cat `Operator`).
pub const ANNOTATIONS: &[&str] = &[
    NUMBERED_STEP,
    "Optimizer.step#",
    "Optimizer.zero_grad#",
    "enumerate(DataLoader)#",
    "enumerate(DataPipe)#",
    "DistributedDataParallel.forward",
    "DataParallel.forward",
    "FullyShardedDataParallel.",
    "FSDP::",
];

/// Raw category of the span in which a profiler records, and how the name of that of PyTorch's begins
/// (`libkineto/src/output_json.cpp`, `handleTraceSpan`; `torch/csrc/autograd/profiler_kineto.cpp`).
const SPAN: (&str, &str) = ("Trace", "PyTorch Profiler");

/// Whether a slice is the span in which PyTorch's profiler records: it begins where the recording does.
#[must_use]
pub fn is_recording(raw_category: &str, name: &str) -> bool {
    let (category, start) = SPAN;
    raw_category == category && name.starts_with(start)
}

/// Whether a step, or another annotation, of this raw category is the copy around the work on the GPU.
#[must_use]
pub fn is_gpu_side(raw_category: &str) -> bool {
    raw_category.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("gpu"))
}

/// Whether a name is that of a profiler step.
#[must_use]
pub fn is_step(name: &str) -> bool {
    name.starts_with(STEP)
}

/// Where frames of PyTorch's profiler are.
const PROFILER: [&str; 2] = ["torch/autograd/profiler.py(", "torch/profiler/profiler.py("];

/// Whether a frame is of PyTorch's profiler: it starts or stops, or a `record_function` begins or ends. A function that the profiler
/// calls for the program is none.
#[must_use]
pub fn is_of_profiler(frame: &str) -> bool {
    let wraps = frame.ends_with("__call__") || frame.ends_with(": wrapper");
    !wraps && PROFILER.iter().any(|file| frame.contains(file))
}

/// The number of a step: 12 of `ProfilerStep#12`.
#[must_use]
pub fn step_number(name: &str) -> Option<u64> {
    name.strip_prefix(STEP)?.trim_start_matches('#').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_profiler_are_told_by_their_file() {
        assert!(is_of_profiler("torch/autograd/profiler.py(918): __enter__"));
        assert!(is_of_profiler("torch/profiler/profiler.py(811): step"));
        assert!(!is_of_profiler("torch/profiler/profiler.py(9): __call__"));
        assert!(!is_of_profiler("my/profiler.py(3): step"));
    }

    #[test]
    fn the_span_of_the_profiler_is_no_other_event_of_its_name() {
        assert!(is_recording("Trace", "PyTorch Profiler (0)"));
        assert!(!is_recording("python_function", "PyTorch Profiler (0)"));
        assert!(!is_recording("Trace", "NCCL Profiler (0)"));
    }

    #[test]
    fn steps_have_numbers() {
        assert_eq!(step_number("ProfilerStep#12"), Some(12));
        assert_eq!(step_number("ProfilerStep*"), None);
        assert!(is_gpu_side("gpu_user_annotation") && !is_gpu_side("user_annotation"));
        assert!(!is_gpu_side("é€") && !is_gpu_side(""), "a cut inside a character is no match");
        assert!(is_step("ProfilerStep*") && !is_step("Step#1") && is_step(NUMBERED_STEP));
    }
}
