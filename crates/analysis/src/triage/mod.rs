//! Triage: where GPU time comes from, what could overlap and what could fuse.

pub(crate) mod arch;
pub(crate) mod arguments;
mod attribution;
pub(crate) mod framework;
pub(crate) mod fuse;
mod kernel_map;
mod kernel_row;
mod kernel_table;
mod mapping;
mod nest;
pub(crate) mod overlap;
mod python;
mod replay;
mod report;
mod roles;
pub(crate) mod shapes;
pub(crate) mod site;
pub(crate) mod stages;

#[cfg(test)]
mod tests {
    mod corpus;
}

pub use arch::{ArchMatch, ArchRelation, ArchVerdict, ObservedArch};
pub use framework::{Framework, FrameworkVote};
pub use fuse::FuseRow;
pub use kernel_map::{KernelMap, MappedKernel, MappedSite, kernel_map};
pub use kernel_row::{KernelTableRow, above_cutoff};
pub use overlap::{
    Concurrency, NextTo, OverlapContext, OverlapRow, OverlapWindow, WindowLane, WindowSlice,
    overlap_windows,
};
pub use replay::{CaptureFacts, CaptureUse};
pub use report::{BeforeWindowSum, Coverage, TriageReport};
pub use roles::{RoleGuess, Signs, guess_roles};
pub use site::{Confidence, Location};
pub use stages::{Stage, StageRow};

use trace::{Details, Row, Trace};

use self::arguments::{Arguments, KnownCalls};
use self::attribution::{Linker, attribute};
use self::fuse::FuseContext;
use self::mapping::NameMap;
use self::overlap::OverlapOptions;
use self::site::Attribution;
use self::stages::Stages;
use crate::Options;
use crate::before_window::{BeforeWindow, BeforeWindowSlices};
use crate::gpu::Gpu;
use crate::launches::Launches;

/// What a person may choose before triage runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriageOptions {
    /// Which GPU slices count. By default those that were launched before the window do not: they belong to an
    /// earlier step.
    pub slices: Options,
    /// The trace's file name, with folders if they are known: it may say the stage.
    pub file_name: Option<String>,
    /// Tensor parallel size: some fused kernels exist only above 1.
    pub tp: Option<u32>,
    /// Name or path of the model: some fused kernels are one model's.
    pub model: Option<String>,
}

impl Default for TriageOptions {
    fn default() -> Self {
        let slices = Options { without_before_window: true, ..Options::default() };
        Self { slices, file_name: None, tp: None, model: None }
    }
}

/// Other traces that tell where the work of this one came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// Traces of graph captures.
    pub captures: &'a [&'a Trace],
    /// What is known of these beside the traces, in their order; may be shorter.
    pub capture_facts: &'a [CaptureFacts],
    /// A trace of the same work without graphs.
    pub mapping: Option<&'a Trace>,
    /// What was exported of such a trace; asked where `mapping` does not tell.
    pub map: Option<&'a KernelMap>,
    /// Arguments of the trace itself, from a second reading of its file.
    pub details: Option<&'a Details>,
    /// Arguments of each of the captures, in their order; fewer are allowed.
    pub capture_details: &'a [Option<&'a Details>],
}

/// Triage of a trace.
#[must_use]
pub fn triage(trace: &Trace, options: &TriageOptions, sources: &Sources<'_>) -> TriageReport {
    let Placed { before, gpu, launches, places, stages, platform, arguments, mut coverage } =
        Placed::of(trace, options, sources);
    cover(&gpu, &places, &mut coverage);

    let stage_of = |slice: usize| stages.stage(slice);
    let pair = sources.mapping.is_some() || sources.map.is_some();
    let judged = OverlapOptions { pair, details: sources.details, ..OverlapOptions::default() };
    let overlap = overlap::overlap(&gpu, &launches, &stage_of, Some(&places), &judged);
    let exposed_ns = &overlap.per_slice.exclusive_ns;
    let kernels =
        kernel_table::kernel_table(&gpu, &stages, &places, &launches, &arguments, exposed_ns);
    let framework = framework::framework(trace);
    let context = FuseContext {
        framework: Some(framework.framework),
        tp: options.tp,
        model: options.model.as_deref(),
        arguments: Some(&arguments),
    };
    let fuse =
        fuse::fuse(&gpu, &launches, |slice| stages.stage(slice).id(), Some(&places), &context);
    let (devices, _) = crate::streams::streams(&gpu);
    let spans_ns: Vec<i64> = devices.iter().map(|device| device.span_ns).collect();
    let takeaways = report::takeaways(&kernels, &fuse.rows, &spans_ns, &coverage, options.tp);
    let BeforeWindow { n_kernels, kernel_ns, n_memory_ops, memory_ns, .. } = before.summary;
    TriageReport {
        stages: stages.rows(&gpu, &overlap.per_slice.exclusive_ns),
        kernels,
        launch_note: arguments::note(sources.details, &arguments),
        overlap: overlap.rows,
        overlap_note: overlap.note,
        contexts: overlap.contexts,
        concurrency: overlap.concurrency,
        fuse: fuse.rows,
        fuse_note: fuse.note,
        coverage,
        before_window: BeforeWindowSum {
            n_slices: n_kernels + n_memory_ops,
            total_ns: kernel_ns.saturating_add(memory_ns),
            counted: !options.slices.without_before_window,
        },
        takeaways,
        arch: arch::observed(&gpu, platform),
        framework,
    }
}

/// The GPU slices of a trace, each with its place and its stage.
struct Placed<'a> {
    before: BeforeWindowSlices,
    gpu: Gpu<'a>,
    launches: Launches,
    places: Attribution,
    stages: Stages,
    platform: catalog::Platform,
    arguments: Arguments,
    /// Of this only what graphs replayed.
    coverage: Coverage,
}

impl<'a> Placed<'a> {
    #[inline(never)]
    fn of(trace: &'a Trace, options: &TriageOptions, sources: &Sources<'_>) -> Self {
        let before = BeforeWindowSlices::of(trace);
        let platform = crate::device::platform(trace);
        let gpu = Gpu::new(trace, platform, &before, &options.slices);
        let launches = Launches::of(&gpu);
        let mut linker = Linker::of(trace);
        let mut places = attribute(&gpu, &launches, &mut linker);
        let stages = Stages::of(&gpu, &launches, options.file_name.as_deref());
        let mut arguments = Arguments::of(&gpu, &launches, &linker, sources.details);
        let mut calls = vec![KnownCalls::default(); sources.captures.len()];
        let mut told = |slice: usize, source: usize, linker: &Linker<'_>, launch: Row| {
            let details = sources.capture_details.get(source).copied().flatten();
            if let (Some(details), Some(calls)) = (details, calls.get_mut(source)) {
                arguments.capture(slice, linker, details, launch, calls);
            }
        };
        let replayed = replay::map(&gpu, &launches, &mut places, &stages, sources, &mut told);
        let of_mapping = sources.mapping.map(|trace| kernel_map(trace, &Sources::default()));
        for map in of_mapping.iter().chain(sources.map) {
            mapping::map(&gpu, &mut places, &stages, &NameMap::of(map));
        }
        let coverage = Coverage {
            replays: replayed.graphs,
            identical_replays: replayed.identical,
            captures: replayed.captures,
            ..Coverage::default()
        };
        Self { before, gpu, launches, places, stages, platform, arguments, coverage }
    }
}

/// Sums what is known of where the slices came from.
#[inline(never)]
fn cover(gpu: &Gpu<'_>, places: &Attribution, coverage: &mut Coverage) {
    let mut at = 0;
    gpu.each_slice(|slice| {
        let site = places.site(at);
        at += 1;
        let op = report::knows_op(site.confidence);
        coverage.total_ns = coverage.total_ns.saturating_add(slice.dur_ns);
        if op {
            coverage.op_ns = coverage.op_ns.saturating_add(slice.dur_ns);
        }
        // The line that launches a graph is not where its kernels come from.
        if site.location.is_some() && (op || !site.graph) {
            coverage.python_ns = coverage.python_ns.saturating_add(slice.dur_ns);
        }
        coverage.graph_slices += u64::from(site.graph);
        coverage.graph_mapped += u64::from(site.graph && op);
    });
}
