//! Kernels that start before the communication of their stream has ended, by programmatic dependent launch.
//!
//! Kernels of one stream run one after the other. A dependent launch starts the next one early, so that it can set itself up; it
//! then waits until the kernel before has ended ("Programmatic Dependent Launch" in NVIDIA's CUDA Programming Guide). Where that one
//! is a collective which waits for other ranks, the early kernel looks like compute that hides it, and waits, too.

use catalog::{Category, Platform};
use trace::{StreamId, Trace};

use crate::device::platform;
use crate::gpu::{Gpu, GpuSlice};
use crate::intervals::Interval;

/// When the last communication kernel of each stream ends. Slices are given to it by start.
#[derive(Debug, Default)]
pub struct Dependent {
    ends_ns: Vec<i64>,
    /// Whether the GPU has dependent launches: NVIDIA's. (On others, kernels of one stream that overlap are those of several queues.)
    is_known: bool,
}

impl Dependent {
    /// Of the GPU of a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        Self { ends_ns: Vec::new(), is_known: platform(trace) != Platform::Rocm }
    }

    /// The time in which a slice of a stream may do work of its own: from the end of the communication that it follows too
    /// early, where it lasts until then.
    pub fn own(
        &mut self,
        stream: Option<StreamId>,
        times: Interval,
        communicates: bool,
    ) -> Interval {
        let Some(StreamId(stream)) = stream.filter(|_| self.is_known) else { return times };
        let at = usize::from(stream);
        if self.ends_ns.len() <= at {
            self.ends_ns.resize(at + 1, i64::MIN);
        }
        let end_ns = &mut self.ends_ns[at];
        let (from, to) = times;
        if communicates {
            *end_ns = to.max(*end_ns);
            return times;
        }
        // (What ends before has not waited.)
        if from < *end_ns && *end_ns <= to { (*end_ns, to) } else { times }
    }

    /// The same of a GPU slice.
    pub fn own_of(&mut self, gpu: &Gpu<'_>, slice: &GpuSlice) -> Interval {
        let communicates = gpu.work(slice.work).category == Category::Communication;
        self.own(slice.stream, (slice.start_ns, slice.end_ns()), communicates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_kernel_waits_for_the_communication_before_it() {
        let mut dependent = Dependent { is_known: true, ..Dependent::default() };
        let mut own = |stream, times, communicates| {
            dependent.own(Some(StreamId(stream)), times, communicates)
        };
        assert_eq!(own(1, (0, 100), true), (0, 100));
        assert_eq!(own(1, (2, 102), false), (100, 102));
        // The next one starts early, too, behind a kernel that computes.
        assert_eq!(own(1, (101, 130), false), (101, 130));
        // Of another stream, or one that ends first, it is work.
        assert_eq!(own(2, (2, 102), false), (2, 102));
        assert_eq!(own(1, (140, 200), true), (140, 200));
        assert_eq!(own(1, (150, 190), false), (150, 190));
        assert_eq!(dependent.own(None, (150, 300), false), (150, 300));
    }
}
