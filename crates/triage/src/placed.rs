//! Where the GPU slices of a device come from: its own launches, then captures, then the names in other traces.

use trace::{Row, Trace};

use crate::Sources;
use crate::arguments::{Arguments, KnownCalls};
use crate::attribution::{Linker, attribute};
use crate::kernel_map::KernelMap;
use crate::mapping::{self, MappedByName, NameMap};
use crate::replay;
use crate::report::Coverage;
use crate::site::Attribution;
use crate::stages::Stages;
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// The GPU slices of a device, or of all, each with its place and its stage.
pub(crate) struct Placed {
    pub(crate) launches: Launches,
    pub(crate) places: Attribution,
    pub(crate) stages: Stages,
    pub(crate) arguments: Arguments,
    pub(crate) replayed: replay::Replayed,
    /// What each of [`Given::names`] mapped.
    pub(crate) by_name: Vec<MappedByName>,
}

impl Placed {
    #[inline(never)]
    pub(crate) fn of(
        gpu: &Gpu<'_>,
        linker: &mut Linker<'_>,
        file: Option<&str>,
        given: &Given<'_>,
    ) -> Self {
        let Given { sources, names } = given;
        let launches = Launches::of(gpu);
        let mut places = attribute(gpu, &launches, linker);
        let stages = Stages::of(gpu, &launches, file);
        let mut arguments = Arguments::of(gpu, &launches, linker, sources.details);
        let mut calls = vec![KnownCalls::default(); sources.captures.len()];
        let mut told = |slice: usize, source: usize, linker: &Linker<'_>, launch: Row| {
            let details = sources.capture_details.get(source).copied().flatten();
            if let (Some(details), Some(calls)) = (details, calls.get_mut(source)) {
                arguments.capture(slice, linker, details, launch, calls);
            }
        };
        let replayed = replay::map(gpu, &launches, &mut places, &stages, sources, &mut told);
        let by_name =
            names.iter().map(|names| mapping::map(gpu, &mut places, &stages, names)).collect();
        Self { launches, places, stages, arguments, replayed, by_name }
    }
}

/// Other traces and what their names tell.
pub(crate) struct Given<'a> {
    pub(crate) sources: &'a Sources<'a>,
    /// Of the mapping trace, then of the map.
    names: Vec<NameMap>,
}

impl<'a> Given<'a> {
    pub(crate) fn of(sources: &'a Sources<'a>) -> Self {
        let of_mapping = sources.mapping.map(|trace| kernel_map(trace, &Sources::default()));
        let names = of_mapping.iter().chain(sources.map).map(NameMap::of).collect();
        Self { sources, names }
    }

    /// Counts what was mapped by name on a device.
    pub(crate) fn count(&self, by_name: &[MappedByName], coverage: &mut Coverage) {
        let mut by_name = by_name.iter().copied();
        if self.sources.mapping.is_some() {
            coverage.by_mapping.get_or_insert_default().add(by_name.next().unwrap_or_default());
        }
        if self.sources.map.is_some() {
            coverage.by_map.get_or_insert_default().add(by_name.next().unwrap_or_default());
        }
    }
}

/// The kernel map of a trace: the kernels of which it, or the captures and mapping in `sources`, tell the op. Stages are
/// what the trace itself says; its file's name does not count, for a map is to be the same under any name.
#[must_use]
pub fn kernel_map(trace: &Trace, sources: &Sources<'_>) -> KernelMap {
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, timeline::device::platform(trace), &before, &Options::default());
    let placed =
        Placed::of(&gpu, &mut Linker::of(trace, sources.details), None, &Given::of(sources));
    KernelMap::of(&gpu, &placed.places, &placed.stages)
}
