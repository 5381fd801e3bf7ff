//! Triage: where GPU time comes from, what could overlap and what could fuse.
//!
//! Constraints of this crate:
//!
//! * triage never fails, logs, reads a clock or iterates a hash map; the same trace, options and sources give the same
//!   report, byte for byte;
//! * advice passes the gates of its remedy and is bounded by the wall time that it saves, or it is not printed;
//! * figures are exact: integer nanoseconds. What is an estimate says so, and why.

mod arch;
mod arguments;
mod attribution;
mod autograd;
mod blocked;
mod by_op;
mod collectives;
mod device_time;
mod facts;
mod framework;
mod fuse;
mod idle;
mod ids;
mod instances;
mod kernel_line;
mod kernel_map;
mod kernel_row;
mod kernel_table;
mod mapping;
mod nest;
mod notes;
mod overlap;
mod precision;
mod python;
mod replay;
mod report;
mod roles;
mod shapes;
mod site;
mod stages;
mod takeaways;
mod text_timeline;
mod unrecorded;
mod wall;
pub mod words;

#[cfg(test)]
mod tests {
    mod advice;
    mod corpus;
    mod devices;
}

pub use arch::{ArchMatch, ArchRelation, ArchVerdict, ObservedArch};
pub use framework::{Framework, FrameworkVote};
pub use fuse::{FuseRow, FuseStatus, GainConfidence, PatternConfidence};
pub use instances::{
    CallSite, CategoryReason, InstanceRow, KernelDetails, KernelKey, TriageSlices,
};
pub use kernel_line::{KernelLine, Rest, above_cutoff};
pub use kernel_map::{KernelMap, MappedKernel, MappedSite, kernel_map};
pub use kernel_row::KernelTableRow;
pub use mapping::MappedByName;
pub use notes::Note;
pub use overlap::{
    Concurrency, NextTo, OverlapContext, OverlapRow, OverlapWindow, Risk, Verdict, WindowLane,
    WindowSlice, overlap_windows,
};
pub use replay::{CaptureFacts, CaptureUse};
pub use report::{BeforeWindowSum, Coverage, TriageReport};
pub use roles::{RoleGuess, Signs, guess_map, guess_roles, map_names};
pub use site::{Confidence, Location};
pub use stages::{Stage, StageRow};
pub use text_timeline::{gpu_text, window_text};

use catalog::Category;
use catalog::architectures::Peak;
use timeline::Options;
use trace::{Details, Flags, Phase, Row, Trace, each_row};

use self::arguments::{Arguments, KnownCalls};
use self::attribution::{Linker, attribute};
use self::device_time::DeviceTime;
use self::facts::RunContext;
use self::fuse::{FuseContext, Ground};
use self::idle::cause::{self, Cause, Explained};
use self::idle::gaps::Gaps;
use self::idle::{Host, Idle};
use self::kernel_table::kernel_table;
use self::mapping::NameMap;
use self::overlap::OverlapOptions;
use self::site::Attribution;
use self::stages::Stages;
use self::stages::pace::Waits;
use self::takeaways::{Before, IdleSaid, Limits, Seen};
use self::wall::{Lost, Wall};
use timeline::before_window::{BeforeWindow, BeforeWindowSlices};
use timeline::gpu::Gpu;
use timeline::intervals::Interval;
use timeline::launches::Launches;

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

/// What covers this share of the time before the first GPU work explains it, in percent.
const LEAD_PCT: f64 = 80.0;

/// Triage of a trace.
#[must_use]
pub fn triage(trace: &Trace, options: &TriageOptions, sources: &Sources<'_>) -> TriageReport {
    triage_kept(trace, options, sources).0
}

/// Triage of a trace, and what it knows of every GPU slice, for questions about single kernels.
#[must_use]
pub fn triage_kept(
    trace: &Trace,
    options: &TriageOptions,
    sources: &Sources<'_>,
) -> (TriageReport, TriageSlices) {
    let before = BeforeWindowSlices::of(trace);
    let platform = timeline::device::platform(trace);
    let mut linker = Linker::of(trace, sources.details);
    let mut gpu = Gpu::new(trace, platform, &before, &options.slices);
    by_op::classify(&mut gpu, &linker);
    let arch = arch::observed(&gpu, platform);
    let devices = gpu.by_device();
    let given = Given::of(sources);
    let framework = framework::framework(trace);
    let mut run = RunContext::of(trace, platform, framework.framework);
    run.facts.sm = arch.observed_arch.strip_prefix("sm_").and_then(|digits| digits.parse().ok());
    let peak = precision::peak(trace);
    let steps = idle::until_last_work(trace, idle::cpu_steps(trace));
    let host = Host::of(trace);
    let zero_ns = first_ns(trace);
    let asked = Asked { options, given: &given, framework, run, peak, steps, zero_ns };
    let mut coverage = Coverage::default();
    let mut time = DeviceTime::default();
    let mut tables: Vec<(&str, DeviceTables)> = Vec::with_capacity(devices.len());
    let mut slices = TriageSlices::default();
    let mut host = host;
    let mut idle: Option<(&str, Explained, Gaps)> = None;
    for gpu in &devices {
        let Triaged { tables: of_device, slices: own, gaps, idle: of_gpu, blocked_ns } =
            on_device(gpu, &asked, &mut linker, &mut host, &mut coverage);
        coverage.gpu_blocked_ns = coverage.gpu_blocked_ns.saturating_add(blocked_ns);
        // The device that lost most time to one cause.
        if let Some(found) = of_gpu
            && idle.as_ref().is_none_or(|(_, known, _)| found.ns() > known.ns())
        {
            idle = Some((gpu.device(), found, gaps));
        }
        time.add(&DeviceTime::of(gpu));
        tables.push((gpu.device(), of_device));
        slices.append(own);
    }
    coverage.window_ns = time.span_ns;
    coverage.busy_ns = time.busy_ns;
    coverage.only_communication_ns = time.exposed_communication_ns;
    let mut tables = DeviceTables::together(tables);
    let several = devices.len() > 1;
    let facts = &asked.run.facts;
    // (While a graph is captured, the GPU has nothing to do.)
    let captures = tables.stages.iter().any(|row| row.stage == Stage::Capture);
    let idle = idle.filter(|_| !captures);
    let cause = idle.as_ref().map(|(_, found, _)| found.cause);
    let limits = cause.and_then(|cause| {
        Limits::of(&tables.stages, &coverage, cause, facts, time.span_ns, several)
    });
    let idle = idle.map(|(device, explained, gaps)| {
        let gpu = if several { format!("GPU {device}") } else { "The GPU".to_owned() };
        let mut device = cause::Device {
            trace,
            linker: &mut linker,
            explained: &explained,
            gaps: &gaps,
            gpu: &gpu,
            zero_ns,
            facts,
        };
        let limits = limits.as_ref().map(Limits::limited);
        let text = device.sentences(limits);
        IdleSaid { cause: explained.cause, ns: explained.ns(), of_steps: explained.of_steps, text }
    });
    let starts = devices.iter().flat_map(|gpu| (0..gpu.len().min(1)).map(|at| gpu.slice(at)));
    let first_gpu_ns = starts.map(|slice| slice.start_ns).min();
    // (Steps hold what comes before their first kernel.)
    let of_steps = idle.as_ref().is_some_and(|said| said.of_steps);
    let first_gpu_ns = first_gpu_ns.filter(|_| !of_steps);
    let lead: Vec<Interval> = first_gpu_ns.map(|ns| (zero_ns, ns)).into_iter().collect();
    let loads = timeline::intervals::both(&lead, host.cover(idle::Cover::DataLoader));
    let lead_ns = timeline::intervals::length(&lead);
    let place = lead.first().map(|lead| {
        let all_ns = lead_ns.saturating_add(time.span_ns);
        let found = idle::place::places(trace, &[(*lead, None)], all_ns);
        let place = found.first().copied().unwrap_or_default();
        // (What covers half of it explains half of it.)
        let covers = |row: Row| {
            let shared = trace.end_ns(row).min(lead.1).saturating_sub(trace.ts_ns(row).max(lead.0));
            timeline::percent(shared, lead_ns) >= LEAD_PCT
        };
        let range = place.range.filter(|row| covers(*row));
        let (call, frame) = (place.call.filter(|row| covers(*row)), place.frame);
        let place = idle::place::Place { call, range, frame };
        cause::in_words(trace, &mut linker, *lead, &place)
    });
    let seen = Seen {
        before: Before {
            ns: lead_ns,
            loader_ns: timeline::intervals::length(&loads),
            place: place.unwrap_or_default(),
        },
        time: &time,
        n_devices: devices.len(),
        coverage: &coverage,
        tp: options.tp,
        waiting: sources
            .details
            .and_then(|details| devices.iter().find_map(|gpu| collectives::waiting(gpu, details))),
    };
    let mut takeaways = takeaways::takeaways(&tables, &seen, limits.as_ref(), idle);
    takeaways.extend(tables.precision.take());
    if let Some(text) = unrecorded::sentence(trace, &before) {
        takeaways.insert(0, text);
    }
    takeaways.extend(analysis::other_work(trace));
    let BeforeWindow { n_kernels, kernel_ns, n_memory_ops, memory_ns, .. } = before.summary;
    let report = TriageReport {
        stages: tables.stages,
        kernels: tables.kernels,
        merged: tables.merged,
        launch_note: tables.launch_note.unwrap_or_default(),
        overlap: tables.overlap,
        overlap_note: tables.overlap_note.unwrap_or_default(),
        concurrency: tables.concurrency,
        fuse: tables.fuse,
        fuse_note: tables.fuse_note,
        coverage,
        before_window: BeforeWindowSum {
            n_slices: n_kernels + n_memory_ops,
            total_ns: kernel_ns.saturating_add(memory_ns),
            counted: !options.slices.without_before_window,
        },
        takeaways,
        arch,
        framework: asked.framework,
    };
    (report, slices)
}

/// When the first event of the trace begins: there Perfetto's timeline does.
#[inline(never)]
fn first_ns(trace: &Trace) -> i64 {
    let mut first = None;
    each_row(trace, |row| {
        if trace.flags(row).has(Flags::HAS_TS) && trace.phase(row) != Phase::Metadata {
            let ts_ns = trace.ts_ns(row);
            first = Some(first.map_or(ts_ns, |first: i64| first.min(ts_ns)));
        }
    });
    first.unwrap_or_default()
}

/// What the triage of each device goes by.
struct Asked<'a> {
    options: &'a TriageOptions,
    given: &'a Given<'a>,
    framework: FrameworkVote,
    run: RunContext,
    /// What the devices can do at most, if all have one name that is known.
    peak: Option<&'static Peak>,
    /// The profiler's steps on the CPU.
    steps: Vec<Interval>,
    /// When the first event of the trace begins.
    zero_ns: i64,
}

/// The tables of one device. What runs on one device neither hides what runs on another nor stands next to it.
#[derive(Default)]
pub(crate) struct DeviceTables {
    stages: Vec<StageRow>,
    kernels: Vec<KernelTableRow>,
    merged: Vec<KernelTableRow>,
    launch_note: Option<String>,
    overlap: Vec<OverlapRow>,
    overlap_note: Option<String>,
    concurrency: Concurrency,
    fuse: Vec<FuseRow>,
    fuse_note: Option<String>,
    /// What the number format of the matrix products costs.
    precision: Option<String>,
    /// What shares of advice are of, if not of the GPU span.
    span: Option<String>,
}

impl DeviceTables {
    /// The rows of all devices, each table with the id of its device.
    fn together(devices: Vec<(&str, Self)>) -> Self {
        let several = devices.len() > 1;
        let mut all = Self::default();
        for (device, of) in devices {
            all.stages.extend(of.stages);
            all.kernels.extend(of.kernels);
            all.merged.extend(of.merged);
            all.overlap.extend(of.overlap);
            all.concurrency.add(of.concurrency);
            all.fuse.extend(of.fuse);
            // (Of several GPUs the first one with a finding speaks: they run the same program.)
            all.precision = all.precision.or(of.precision);
            all.span = all.span.or(of.span);
            for (note, of_device) in [
                (&mut all.launch_note, of.launch_note),
                (&mut all.overlap_note, of.overlap_note),
                (&mut all.fuse_note, of.fuse_note),
            ] {
                let Some(text) = of_device else { continue };
                let text = if several { format!("Device {device}: {text}") } else { text };
                *note = Some(match note.take() {
                    Some(before) => format!("{before} {text}"),
                    None => text,
                });
            }
        }
        all
    }
}

/// The GPU slices of a device, or of all, each with its place and its stage.
struct Placed {
    launches: Launches,
    places: Attribution,
    stages: Stages,
    arguments: Arguments,
    replayed: replay::Replayed,
    /// What each of [`Given::names`] mapped.
    by_name: Vec<MappedByName>,
}

impl Placed {
    #[inline(never)]
    fn of(gpu: &Gpu<'_>, linker: &mut Linker<'_>, file: Option<&str>, given: &Given<'_>) -> Self {
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
struct Given<'a> {
    sources: &'a Sources<'a>,
    /// Of the mapping trace, then of the map.
    names: Vec<NameMap>,
}

impl<'a> Given<'a> {
    fn of(sources: &'a Sources<'a>) -> Self {
        let of_mapping = sources.mapping.map(|trace| kernel_map(trace, &Sources::default()));
        let names = of_mapping.iter().chain(sources.map).map(NameMap::of).collect();
        Self { sources, names }
    }

    /// Counts what was mapped by name on a device.
    fn count(&self, by_name: &[MappedByName], coverage: &mut Coverage) {
        let mut by_name = by_name.iter().copied();
        if self.sources.mapping.is_some() {
            coverage.by_mapping.get_or_insert_default().add(by_name.next().unwrap_or_default());
        }
        if self.sources.map.is_some() {
            coverage.by_map.get_or_insert_default().add(by_name.next().unwrap_or_default());
        }
    }
}

#[inline(never)]
fn on_device(
    gpu: &Gpu<'_>,
    asked: &Asked<'_>,
    linker: &mut Linker<'_>,
    host: &mut Host,
    coverage: &mut Coverage,
) -> Triaged {
    let Asked { options, given, framework, run, peak, steps, zero_ns } = asked;
    let sources = given.sources;
    let Placed { launches, places, stages, arguments, replayed, by_name } =
        Placed::of(gpu, linker, options.file_name.as_deref(), given);
    coverage.add(replayed);
    given.count(&by_name, coverage);
    cover(gpu, &places, coverage);
    coverage.has_frames |= !host.cover(idle::Cover::Python).is_empty();
    coverage.has_inputs |= sources.details.is_some_and(has_inputs);

    let blocked = blocked::blocked(gpu, &launches);
    host.add_host_copies(&idle::host_copies(gpu, &launches));
    let idle = Idle::of(gpu, steps);
    let gaps = Gaps::of(gpu, &launches, &idle, host);
    let explained = cause::explain(&idle, host, &gaps, &blocked);
    let first_run = explained.as_ref().filter(|found| found.cause == Cause::SetUp);
    let set_up = first_run.map_or(&[][..], |found| &found.times);
    let wall = Wall::of(gpu, &launches, Lost { blocked: &blocked, set_up });
    let stage_of = |slice: usize| stages.stage(slice);
    let pair = sources.mapping.is_some() || sources.map.is_some();
    let judged = OverlapOptions {
        pair,
        captures: !sources.captures.is_empty(),
        details: sources.details,
        wall: Some(&wall),
        facts: run.facts,
        gradient_hooks: Some(&run.gradient_hooks),
        ..OverlapOptions::default()
    };
    let overlap = overlap::overlap(gpu, &launches, &stage_of, Some(&places), &judged);
    let exposed_ns = &overlap.per_slice.exclusive_ns;
    let facts = kernel_table::Facts {
        gpu,
        places: &places,
        launches: &launches,
        arguments: &arguments,
        exposed_ns,
        zero_ns: *zero_ns,
    };
    let kernels = kernel_table(&facts, &|slice| Some(stage_of(slice)));
    let several = kernels.windows(2).any(|pair| pair[0].stage != pair[1].stage);
    let merged = if several {
        kernel_table(&facts, &|_| None)
    } else {
        // (All of one stage is all of it.)
        kernels.iter().map(|row| KernelTableRow { stage: None, ..row.clone() }).collect()
    };
    let context = FuseContext {
        framework: Some(framework.framework),
        tp: options.tp,
        model: options.model.as_deref(),
        arguments: Some(&arguments),
    };
    let ground = Ground { run, wall: &wall, exposed_ns, arguments: Some(&arguments), peak: *peak };
    let fuse = fuse::fuse(gpu, &launches, stage_of, Some(&places), &context, &ground);
    let (loader, allocations) =
        (host.cover(idle::Cover::DataLoader), host.cover(idle::Cover::Allocation));
    let blocked_ns = timeline::intervals::length(&blocked);
    let is_blocked = timeline::percent(blocked_ns, idle.window_ns) >= takeaways::BLOCKED_PCT;
    let waits = Waits { gaps: &gaps, loader, allocations, is_blocked };
    let tables = DeviceTables {
        stages: stages.rows(gpu, &launches, &overlap.per_slice.exclusive_ns, waits),
        kernels,
        merged,
        launch_note: Some(arguments::note(sources.details, &arguments)),
        overlap: overlap.rows,
        overlap_note: Some(overlap.note).filter(|note| !note.is_empty()),
        concurrency: overlap.concurrency,
        fuse: fuse.rows,
        fuse_note: fuse.note,
        precision: precision::sentence(gpu, &places, &ground, &fuse.attention),
        span: Some(wall.span()),
    };
    let exposed_ns = overlap.per_slice.exclusive_ns;
    let slices = TriageSlices::of(gpu, &stages, places, &launches, exposed_ns);
    Triaged { tables, slices, gaps, idle: explained, blocked_ns }
}

/// What the triage of a device gives.
struct Triaged {
    tables: DeviceTables,
    slices: TriageSlices,
    gaps: Gaps,
    /// Why it was idle, if it was.
    idle: Option<Explained>,
    /// Idle with work queued.
    blocked_ns: i64,
}

/// Whether any op has the sizes of its inputs. (Without `record_shapes` the lists are missing or empty.)
fn has_inputs(details: &Details) -> bool {
    let sized = |dims: &str| dims.bytes().any(|byte| byte.is_ascii_digit());
    details.inputs.iter().any(|inputs| sized(details.texts.get(inputs.dims)))
}

/// Sums what is known of where the slices came from.
#[inline(never)]
fn cover(gpu: &Gpu<'_>, places: &Attribution, coverage: &mut Coverage) {
    let names = gpu.works.iter().map(|work| gpu.trace.strings.get(work.name));
    let bare: Vec<bool> = names.map(catalog::is_bare_inductor_name).collect();
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
            if site.forward_op.is_some() {
                coverage.forward_ns = coverage.forward_ns.saturating_add(slice.dur_ns);
            }
        }
        if gpu.works[slice.work].category == Category::Gemm && site.is_of_convolution() {
            coverage.convolution_gemm_ns =
                coverage.convolution_gemm_ns.saturating_add(slice.dur_ns);
        }
        if !op && !site.graph && gpu.works[slice.work].category == Category::Communication {
            coverage.collective_ns = coverage.collective_ns.saturating_add(slice.dur_ns);
        }
        if bare[slice.work] {
            coverage.bare_ns = coverage.bare_ns.saturating_add(slice.dur_ns);
        }
        coverage.graph_slices += u64::from(site.graph);
        coverage.graph_kernels += u64::from(site.graph && gpu.is_kernel(&slice));
        coverage.graph_mapped += u64::from(site.graph && op);
    });
}
