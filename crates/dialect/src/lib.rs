//! How programs spell what they record: raw categories, keys of arguments, names of calls and of annotations.
//!
//! Constraints of this crate:
//!
//! * it is the only place for such spellings; a file per producer, with the source of each fact;
//! * tables and lookups only: what follows from an event that is spelled so belongs to the crate that uses it;
//! * raw categories are compared in any letter case: the profilers of PyTorch 1.8 and 1.9 write `Kernel`, `Memcpy` and `Runtime`.
//!
//! Kineto writes the traces of CUDA and ROCm alike. What both have is in [`kineto`]; [`cuda`] and [`rocm`] have what is
//! theirs.

#![warn(unreachable_pub)]

pub mod accelerators;
mod args;
pub mod calls;
pub mod cuda;
pub mod inductor;
pub mod kineto;
pub mod onnxruntime;
pub mod processes;
pub mod python;
pub mod rocm;
pub mod torchscript;
pub mod xla;

use trace::Flags;

pub use accelerators::Accelerator;
pub use args::Arg;

/// A raw category and what is recorded under it.
#[derive(Clone, Copy, Debug)]
pub struct RawCategory {
    /// The category, in lower case.
    pub name: &'static str,
    /// What its events are.
    pub records: Records,
}

/// What an event records, by its raw category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// A kernel on a GPU.
    Kernel,
    /// A copy on a GPU.
    GpuCopy,
    /// A fill on a GPU.
    GpuFill,
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
    /// Work of the profiler itself, or lazy loading.
    Overhead,
    /// A call of an accelerator's runtime or driver.
    Call(Accelerator),
    /// Work on an accelerator whose events are not those of a GPU.
    Work(Accelerator),
}

const fn row(name: &'static str, records: Records) -> RawCategory {
    RawCategory { name, records }
}

/// The tables of all producers.
const TABLES: [&[RawCategory]; 5] = [
    kineto::ON_GPU,
    kineto::RAW_CATEGORIES,
    cuda::RAW_CATEGORIES,
    rocm::RAW_CATEGORIES,
    accelerators::RAW_CATEGORIES,
];

/// What is recorded under a raw category of some producer; `None` for a category that is in no table.
#[must_use]
pub fn known(raw_category: &str) -> Option<Records> {
    TABLES.iter().find_map(|table| find(table, raw_category))
}

/// What is recorded under a raw category; of one that is in no table, as far as its words show.
#[must_use]
pub fn records(raw_category: &str) -> Option<Records> {
    known(raw_category).or_else(|| {
        let lower = raw_category.to_ascii_lowercase();
        match lower.as_str() {
            gpu if gpu.contains("annotation") && gpu.starts_with("gpu") => {
                Some(Records::GpuAnnotation)
            }
            cpu if cpu.contains("annotation") => Some(Records::Annotation),
            sync if sync.contains("sync") => Some(Records::Sync),
            _ => None,
        }
    })
}

/// The flag of events that run on a GPU; none of other raw categories. (Decoding asks this for each event without a category,
/// so the table is short.)
#[must_use]
pub fn class(raw_category: &str) -> Flags {
    match find(kineto::ON_GPU, raw_category) {
        Some(Records::Kernel) => Flags::KERNEL,
        Some(_) => Flags::GPU_MEMORY,
        None => Flags::default(),
    }
}

// Not inlined: once for every name of every table it is a function of 13 kB, which a browser compiles twice.
#[inline(never)]
fn find(table: &[RawCategory], raw_category: &str) -> Option<Records> {
    table.iter().find(|row| row.name.eq_ignore_ascii_case(raw_category)).map(|row| row.records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_is_in_one_table_in_lower_case() {
        let mut names: Vec<&str> =
            TABLES.iter().flat_map(|table| *table).map(|row| row.name).collect();
        assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()), "{names:?}");
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
    }

    #[test]
    fn what_runs_on_a_gpu_has_a_flag() {
        for table in TABLES {
            for row in table {
                let expected = match row.records {
                    Records::Kernel => Flags::KERNEL,
                    Records::GpuCopy | Records::GpuFill => Flags::GPU_MEMORY,
                    _ => Flags::default(),
                };
                assert_eq!(class(row.name), expected, "{}", row.name);
                assert_eq!(class(&row.name.to_ascii_uppercase()), expected, "{}", row.name);
            }
        }
        assert_eq!(class(""), Flags::default());
    }

    #[test]
    fn producers_spell_it_in_their_own_ways() {
        for (raw_category, expected) in [
            ("cpu_op", Some(Records::Op)),
            ("Operator", Some(Records::Op)),
            ("python_function", Some(Records::Frame)),
            ("user_annotation", Some(Records::Annotation)),
            ("gpu_user_annotation", Some(Records::GpuAnnotation)),
            ("mtia_annotation", Some(Records::Annotation)),
            ("GPU_annotation", Some(Records::GpuAnnotation)),
            ("cuda_sync", Some(Records::Sync)),
            ("hip_sync", Some(Records::Sync)),
            ("cuda_runtime", Some(Records::Call(Accelerator::Gpu))),
            ("Runtime", Some(Records::Call(Accelerator::Gpu))),
            ("XPU_Runtime", Some(Records::Call(Accelerator::Xpu))),
            ("HPU_OP", Some(Records::Work(Accelerator::Hpu))),
            ("ac2g", None),
            ("", None),
        ] {
            assert_eq!(records(raw_category), expected, "{raw_category}");
        }
        assert_eq!(known("mtia_annotation"), None, "only its words show it");
    }
}
