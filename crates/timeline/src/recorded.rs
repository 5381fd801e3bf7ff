//! What an event records, by its raw category and, for PyTorch's own annotations, by its name.

use std::cell::Cell;

use dialect::{Records, kineto};
use trace::{ByRawCategory, Flags, Row, StringId, Trace};

/// Whether these flags are those of work on a GPU.
pub fn is_gpu(flags: Flags) -> bool {
    flags.has(Flags::KERNEL) || flags.has(Flags::GPU_MEMORY)
}

/// What ends this close to the last end of its thread may have lost its own end, in ns.
const LOST_NS: i64 = 1_000;

/// Whether a slice may have lost its end: it ends with the last one of its thread, as what is open where the recording stops does.
/// [`has_lost_its_end`] knows more, where another slice is around it.
#[must_use]
pub fn may_have_lost_its_end(end_ns: i64, last_ns: i64) -> bool {
    last_ns.saturating_sub(end_ns) <= LOST_NS
}

/// Whether a slice in one that ends at `outer_ns` has lost its end: it ends with the last one of its thread, and long after that.
#[must_use]
pub fn has_lost_its_end(end_ns: i64, outer_ns: i64, last_ns: i64) -> bool {
    may_have_lost_its_end(end_ns, last_ns) && end_ns.saturating_sub(outer_ns) > LOST_NS
}

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
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
    /// What is recorded under a raw category, in any letter case.
    fn of(raw_category: &str) -> Self {
        match dialect::records(raw_category) {
            Some(Records::Op) => Self::Op,
            Some(Records::Frame) => Self::Frame,
            Some(Records::Annotation) => Self::Annotation,
            Some(Records::GpuAnnotation) => Self::GpuAnnotation,
            Some(Records::Sync) => Self::Sync,
            Some(
                Records::Kernel
                | Records::GpuCopy
                | Records::GpuFill
                | Records::Overhead
                | Records::Call(_)
                | Records::Work(_),
            )
            | None => Self::Other,
        }
    }
}

/// What each event of a trace records.
pub struct Recordings {
    by_raw_category: ByRawCategory<Recorded>,
    /// By name: whether it is an annotation of PyTorch's own.
    is_annotation: Vec<bool>,
    /// Whether the trace has a raw category of annotations, as PyTorch writes it since 1.11: then no op is an annotation of
    /// somebody's own.
    pub annotates: bool,
}

impl Recordings {
    /// What an event records.
    pub fn of(&self, trace: &Trace, row: Row) -> &Recorded {
        let found = self.by_raw_category.of(trace, row);
        let named = matches!(found, Recorded::Op | Recorded::Other)
            && self.is_annotation.get(trace.name(row).0 as usize) == Some(&true)
            && !is_gpu(trace.flags(row));
        if named { &Recorded::Annotation } else { found }
    }
}

/// Looks up what the raw categories and names of a trace record.
pub fn recorded(trace: &Trace) -> Recordings {
    let names = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    let annotates = Cell::new(false);
    let by_raw_category = trace.by_raw_category(|raw_category| {
        let found = Recorded::of(raw_category);
        annotates.set(annotates.get() || found == Recorded::Annotation);
        found
    });
    Recordings {
        by_raw_category,
        annotates: annotates.get(),
        is_annotation: names
            .map(|name| kineto::ANNOTATIONS.iter().any(|start| name.starts_with(start)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel, slice};

    #[test]
    fn annotations_of_pytorch_are_known_by_name_in_any_raw_category() {
        let mut fixture = Fixture::default();
        let cases = [
            ("Operator", "Optimizer.step#SGD.step", Recorded::Annotation),
            ("cpu_op", "Optimizer.zero_grad#Adam.zero_grad", Recorded::Annotation),
            ("Operator", "ProfilerStep#5", Recorded::Annotation),
            (
                "cpu_op",
                "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                Recorded::Annotation,
            ),
            ("user_defined", "ProfilerStep#5", Recorded::Annotation),
            ("gpu_user_annotation", "ProfilerStep#5", Recorded::GpuAnnotation),
            ("python_function", "ProfilerStep#5", Recorded::Frame),
            ("cpu_op", "aten::mm", Recorded::Op),
        ];
        for (raw_category, name, _) in cases {
            fixture.push(slice(raw_category, name).at(0, 1));
        }
        fixture.push(kernel("ProfilerStep#5").at(0, 1));
        let trace = fixture.finish();
        let recorded = recorded(&trace);
        for (row, (raw_category, name, expected)) in (0..).zip(cases) {
            assert_eq!(*recorded.of(&trace, row), expected, "{raw_category} {name}");
        }
        assert_eq!(*recorded.of(&trace, cases.len() as Row), Recorded::Other);
    }
}
