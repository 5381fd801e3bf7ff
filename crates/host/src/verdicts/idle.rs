//! Idle time of a device, and what the host did in it.

use serde::Serialize;
use timeline::intervals::{Collector, Interval, both, length, union, without};

use super::Device;
use crate::class::Class;
use crate::links::{GpuSide, GpuSlice};
use crate::slices::{Family, HostSlice, Slices};

/// Idle time of a device in the steps of the host; without steps, in the range of what the host did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Idle {
    /// Which window it is.
    pub window: IdleWindow,
    /// Its length, in ns.
    pub window_ns: i64,
    /// Idle time in it.
    pub idle_ns: i64,
    /// The part before the device's first slice of the file.
    pub before_first_gpu_ns: i64,
    /// The part after its last.
    pub after_last_gpu_ns: i64,
    /// The part that each cause covers, on any thread. Causes cover each other.
    pub cover_ns: Covers<i64>,
    /// The part of the busy time that each cause covers.
    pub busy_cover_ns: Covers<i64>,
}

/// The window of [`Idle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleWindow {
    /// The steps of the host.
    CpuSteps,
    /// From the first to the last slice of the host.
    HostRange,
}

/// One value for each cause that can explain idle time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Covers<T> {
    /// Calls that wait for the GPU.
    pub sync: T,
    /// Copies that block by their names.
    pub blocking_memcpy: T,
    /// Calls that copy.
    pub memcpy: T,
    /// Calls that launch.
    pub launch: T,
    /// Allocations and frees.
    pub malloc_free: T,
    /// Loading of code.
    pub module_load: T,
    /// Calls of copies from pageable memory, and to the host.
    pub pageable_or_dtoh_memcpy_call: T,
    /// Ranges of the data loader.
    pub dataloader_annotation: T,
    /// Work of the profiler, and lazy loading.
    pub overhead: T,
    /// Calls.
    pub runtime_any: T,
    /// Ops.
    pub cpu_op: T,
    /// Frames of Python.
    pub python: T,
}

impl<T> Covers<T> {
    fn map<U>(&self, each: impl Fn(&T) -> U) -> Covers<U> {
        Covers {
            sync: each(&self.sync),
            blocking_memcpy: each(&self.blocking_memcpy),
            memcpy: each(&self.memcpy),
            launch: each(&self.launch),
            malloc_free: each(&self.malloc_free),
            module_load: each(&self.module_load),
            pageable_or_dtoh_memcpy_call: each(&self.pageable_or_dtoh_memcpy_call),
            dataloader_annotation: each(&self.dataloader_annotation),
            overhead: each(&self.overhead),
            runtime_any: each(&self.runtime_any),
            cpu_op: each(&self.cpu_op),
            python: each(&self.python),
        }
    }
}

/// Times that some slices cover.
fn covered(those: &mut dyn Iterator<Item = HostSlice>) -> Vec<Interval> {
    let mut covered = Collector::default();
    those.for_each(|slice| covered.add(slice.start_ns, slice.end_ns));
    covered.union()
}

/// Times at which an annotation or op of a data loader runs.
#[must_use]
pub fn loading(slices: &Slices<'_>) -> Vec<Interval> {
    let names = slices.names_with("DataLoader");
    let loads = |slice: &&HostSlice| names[slices.trace.name(slice.row).0 as usize];
    covered(&mut slices.annotations.iter().chain(&slices.ops.slices).filter(loads).copied())
}

/// Times at which each cause was at work.
pub(super) fn causes(slices: &Slices<'_>, gpu: &GpuSide) -> Covers<Vec<Interval>> {
    let calls = |wanted: &dyn Fn(&HostSlice) -> bool| {
        covered(&mut slices.calls.iter().filter(|call| wanted(call)).copied())
    };
    let of_class = |classes: &[Class]| calls(&|call| classes.contains(&slices.class(call)));
    let family = |wanted: Family| {
        let those = slices.all.iter().filter(|(_, family)| *family == wanted);
        covered(&mut those.map(|(slice, _)| *slice))
    };
    let is_overhead =
        slices.trace.by_raw_category(|raw| dialect::known(raw) == Some(dialect::Records::Overhead));
    let slow_copy = |one: &&GpuSlice| {
        let name = slices.name(&one.slice);
        crate::copies::is_copy(slices, one) && (name.contains("Pageable") || name.contains("DtoH"))
    };
    Covers {
        sync: of_class(&[Class::Sync]),
        blocking_memcpy: calls(&|call| slices.blocks(call)),
        memcpy: of_class(&[Class::Memcpy]),
        launch: of_class(&[Class::Launch, Class::GraphLaunch]),
        malloc_free: of_class(&[Class::Malloc, Class::Free]),
        module_load: of_class(&[Class::ModuleLoad]),
        pageable_or_dtoh_memcpy_call: covered(
            &mut gpu.linked().filter(slow_copy).filter_map(|one| one.launch),
        ),
        dataloader_annotation: loading(slices),
        overhead: covered(
            &mut slices
                .all
                .iter()
                .map(|(slice, _)| *slice)
                .filter(|slice| *is_overhead.of(slices.trace, slice.row)),
        ),
        runtime_any: calls(&|_| true),
        cpu_op: family(Family::Op),
        python: family(Family::Frame),
    }
}

/// The window in which idle time counts: the steps of the host, or else the range of what it did.
fn idle_window(slices: &Slices<'_>) -> (IdleWindow, Vec<Interval>) {
    if !slices.steps.is_empty() {
        let steps = slices.steps.iter().map(HostSlice::interval).collect();
        return (IdleWindow::CpuSteps, union(steps));
    }
    let of_host = slices.all.iter().filter(|(_, family)| {
        matches!(family, Family::Op | Family::Frame | Family::Call | Family::Annotation)
    });
    let range = of_host
        .map(|(slice, _)| slice.interval())
        .reduce(|(start, end), (other, over)| (start.min(other), end.max(over)));
    (IdleWindow::HostRange, union(range.into_iter().collect()))
}

impl Device<'_, '_> {
    pub(super) fn idle(&self, causes: &Covers<Vec<Interval>>) -> Idle {
        let (window, spans) = idle_window(self.slices);
        let busy = self.gpu.busy(self.id);
        let idle = without(&spans, busy);
        let busy_in = both(&spans, busy);
        let outside = |start: i64, end: i64| length(&both(&idle, &[(start, end)]));
        // (Of all slices: one without a duration is busy at no time.)
        let slices = || self.gpu.on(self.id).map(|one| one.slice);
        let first = slices().map(|slice| slice.start_ns).min().unwrap_or(i64::MIN);
        let last = slices().map(|slice| slice.end_ns).max().unwrap_or(i64::MAX);
        Idle {
            window,
            window_ns: length(&spans),
            idle_ns: length(&idle),
            before_first_gpu_ns: outside(i64::MIN, first),
            after_last_gpu_ns: outside(last, i64::MAX),
            cover_ns: causes.map(|cause| length(&both(&idle, cause))),
            busy_cover_ns: causes.map(|cause| length(&both(&busy_in, cause))),
        }
    }
}
