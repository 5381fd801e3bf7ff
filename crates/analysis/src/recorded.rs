//! What an event records, as its raw category says: one place for the producers' spellings.

use trace::{ByRawCategory, Trace};

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// An operator of PyTorch.
    Op,
    /// A frame of Python.
    Frame,
    /// A range that somebody named, around calls.
    Annotation,
    /// The profiler's copy of it, around the work on the GPU.
    GpuAnnotation,
    /// Waiting, on a stream or for one.
    Sync,
    /// Runtime calls, GPU work and everything else.
    Other,
}

impl Recorded {
    /// What is recorded under a raw category, in any letter case. (`Operator` is that of old profilers.)
    fn of(raw_category: &str) -> Self {
        let lower = raw_category.to_ascii_lowercase();
        match lower.as_str() {
            "cpu_op" | "operator" => Self::Op,
            "python_function" => Self::Frame,
            gpu if gpu.contains("annotation") && gpu.starts_with("gpu") => Self::GpuAnnotation,
            cpu if cpu.contains("annotation") => Self::Annotation,
            sync if sync.contains("sync") => Self::Sync,
            _ => Self::Other,
        }
    }
}

/// What each event of a trace records.
pub(crate) fn recorded(trace: &Trace) -> ByRawCategory<Recorded> {
    trace.by_raw_category(Recorded::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn producers_spell_it_in_their_own_ways() {
        for (raw_category, expected) in [
            ("cpu_op", Recorded::Op),
            ("Operator", Recorded::Op),
            ("python_function", Recorded::Frame),
            ("user_annotation", Recorded::Annotation),
            ("gpu_user_annotation", Recorded::GpuAnnotation),
            ("cuda_sync", Recorded::Sync),
            ("cuda_runtime", Recorded::Other),
            ("Runtime", Recorded::Other),
            ("", Recorded::Other),
        ] {
            assert_eq!(Recorded::of(raw_category), expected, "{raw_category}");
        }
    }
}
