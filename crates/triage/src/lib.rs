//! Triage: where GPU time comes from, what could overlap and what could fuse.
//!
//! Constraints of this crate:
//!
//! * triage never fails, logs, reads a clock or iterates a hash map; the same trace, options and sources give the same
//!   report, byte for byte;
//! * advice passes the gates of its remedy and is bounded by the wall time that it saves, or it is not printed;
//! * figures are exact: integer nanoseconds. What is an estimate says so, and why.

#![warn(unreachable_pub)]

mod arch;
mod arguments;
mod attribution;
mod autograd;
mod blocked;
mod by_op;
mod cold_work;
mod collectives;
mod device;
mod device_time;
mod displaced;
mod elsewhere;
mod facts;
mod framework;
mod fuse;
mod idle;
mod ids;
mod instances;
mod iterations;
mod kernel_line;
mod kernel_map;
mod kernel_row;
mod kernel_table;
mod lead;
mod mapping;
mod nest;
mod notes;
mod overlap;
mod own_frames;
mod paced;
mod placed;
mod precision;
mod priority;
mod python;
mod replay;
mod report;
mod roles;
mod same_stream;
mod shapes;
mod sides;
mod site;
mod stages;
mod step;
mod tables;
mod takeaways;
mod text_timeline;
mod unrecorded;
mod wall_stages;
mod wall_time;
pub mod words;

#[cfg(test)]
mod tests {
    mod advice;
    mod claims;
    mod corpus;
    mod devices;
    mod laws;
    mod warm;
}

pub use arch::{ArchMatch, ArchRelation, ArchVerdict, ObservedArch};
pub use autograd::backward_links;
pub use displaced::Displaced;
pub use elsewhere::Elsewhere;
pub use framework::{Framework, FrameworkVote};
pub use fuse::{FuseRow, FuseStatus, GainConfidence, PatternConfidence, Together};
pub use instances::{
    CallSite, CategoryReason, InstanceRow, KernelDetails, KernelKey, TriageSlices,
};
pub use iterations::{Cold, Kind, Range, Ranges, Warm, class};
pub use kernel_line::{KernelLine, Rest, above_cutoff};
pub use kernel_map::{KernelMap, MappedKernel, MappedSite};
pub use kernel_row::KernelTableRow;
pub use mapping::MappedByName;
pub use notes::Note;
pub use overlap::{
    Concurrency, NextTo, OverlapContext, OverlapRow, OverlapWindow, Risk, Verdict, WindowLane,
    WindowSlice, overlap_windows,
};
pub use placed::kernel_map;
pub use precision::{Counts, PlainProducts};
pub use priority::Priority;
pub use replay::{CaptureFacts, CaptureUse};
pub use report::{BeforeWindowSum, Coverage, TriageReport};
pub use roles::{RoleGuess, Signs, guess_map, guess_roles, map_names};
pub use site::{Confidence, Location};
pub use stages::{Stage, StageRow};
pub use takeaways::{LATE_START, LIMITING_SHARE, SLOWED_BY_STACKS};
pub use text_timeline::{gpu_text, window_text};
pub use unrecorded::{Cut, LostCalls};
pub use wall_stages::{StageWall, stage_wall_table};
pub use wall_time::{WallPart, WallRow, WallTimes};

use catalog::Platform;
use catalog::architectures::{Peak, peak_of};
use host::HostIndex;
use timeline::Options;
use trace::{Details, Flags, Phase, StringId, Trace, each_row};

use self::attribution::Linker;
use self::device::{Asked, Found, Iterations, on_devices};
use self::facts::RunContext;
use self::idle::cause::Explained;
use self::idle::gaps::Gaps;
use self::idle::sentences::{self, Limited};
use self::placed::Given;
use self::sides::Sides;
use self::tables::{DeviceTables, Run};
use self::takeaways::{IdleSaid, Limits, Seen};
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::Gpu;

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

/// The captures of a trace that holds them itself: a first run captures its graphs, and replays them.
struct OwnCaptures<'a> {
    traces: Vec<&'a Trace>,
    facts: Vec<CaptureFacts>,
    details: Vec<Option<&'a Details>>,
}

impl<'a> OwnCaptures<'a> {
    /// None of them where others are given, or where the trace has no capture.
    fn of(trace: &'a Trace, options: &TriageOptions, sources: &Sources<'a>) -> Self {
        let strings = &trace.strings;
        let mut names = (0..strings.len() as u32).map(|id| strings.get(StringId(id)));
        let is_own = sources.captures.is_empty() && names.any(dialect::calls::begins_capture);
        let n = usize::from(is_own);
        let path = options.file_name.as_deref().unwrap_or("this file");
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
        Self {
            traces: vec![trace; n],
            facts: vec![CaptureFacts { name, ..CaptureFacts::default() }; n],
            details: vec![sources.details; n],
        }
    }

    /// What graphs replayed, without captures of the trace itself that none did: nobody gave them.
    fn told(&self, coverage: Coverage) -> Coverage {
        let is_used = coverage.captures.iter().any(|capture| capture.replays > 0);
        let captures =
            if self.traces.is_empty() || is_used { coverage.captures } else { Vec::new() };
        Coverage { captures, has_own_captures: !self.traces.is_empty(), ..coverage }
    }

    /// With what else tells where work came from.
    fn beside<'s>(&'s self, sources: &Sources<'s>) -> Sources<'s> {
        match self.traces.is_empty() {
            true => *sources,
            false => Sources {
                captures: &self.traces,
                capture_facts: &self.facts,
                capture_details: &self.details,
                ..*sources
            },
        }
    }
}

/// Triage of a trace.
#[must_use]
pub fn triage(trace: &Trace, options: &TriageOptions, sources: &Sources<'_>) -> TriageReport {
    triage_kept(trace, options, sources).0
}

/// Triage of a trace, and what it knows of every GPU slice, for questions about single kernels.
#[must_use]
#[inline(never)]
pub fn triage_kept(
    trace: &Trace,
    options: &TriageOptions,
    sources: &Sources<'_>,
) -> (TriageReport, TriageSlices) {
    let own = OwnCaptures::of(trace, options, sources);
    let sources = &own.beside(sources);
    let before = BeforeWindowSlices::of(trace);
    let platform = timeline::device::platform(trace);
    let mut linker = Linker::of(trace, sources.details);
    let step = trace.part.as_ref().and_then(|part| part.step.clone());
    let slices = counted(&options.slices, &before, step.is_some());
    let mut gpu = Gpu::new(trace, platform, &before, &slices);
    by_op::classify(&mut gpu, &linker);
    let arch = arch::observed(&gpu, platform, sources.details);
    let peak = peak(trace, &gpu, sources.details);
    let devices = gpu.by_device();
    let given = Given::of(sources);
    let framework = framework::framework(trace);
    let mut run = RunContext::of(trace, platform, framework.framework);
    run.facts.sm = arch.observed_arch.strip_prefix("sm_").and_then(|digits| digits.parse().ok());
    let mut sides = Sides::of(trace);
    let first_ns = first_ns(trace);
    let zero_ns = zero_ns(trace);
    let iterations = iterations(trace, &devices, &sides);
    let asked = Asked { options, given: &given, framework, run, peak, zero_ns, iterations };
    let Found { tables, coverage, slices: kept, time, idle } =
        on_devices(&devices, &asked, &mut linker, &mut sides);
    let coverage = Coverage { only_captures: unrecorded::are_captured(trace, &before), ..coverage };
    let coverage = own.told(coverage);
    let several = devices.len() > 1;
    // (While a graph is captured, the GPU has nothing to do.)
    let captures = tables.stages.iter().any(|row| row.stage == Stage::Capture);
    let idle = idle.filter(|_| !captures);
    let cause = idle.as_ref().map(|(_, found, _)| found.cause);
    let limits =
        cause.and_then(|cause| Limits::of(&tables.stages, &coverage, cause, time.span_ns, several));
    let warm = tables.warm.as_ref().map(|(warm, _)| warm);
    let limited = limits.as_ref().map(Limits::limited);
    let idle =
        idle.map(|found| say_idle(found, (trace, &mut linker), &asked, limited, (several, warm)));
    // (Steps hold what comes before their first kernel.)
    let of_steps = idle.as_ref().is_some_and(|said| said.of_steps);
    let lead = lead::lead(&devices, first_ns).filter(|_| !of_steps && step.is_none());
    let seen = Seen {
        trace,
        before: lead
            .map(|it| lead::before_first(&devices, &mut linker, sides.whole(), it, time.span_ns))
            .unwrap_or_default(),
        time: &time,
        n_devices: devices.len(),
        coverage: &coverage,
        tp: options.tp,
        waiting: sources
            .details
            .and_then(|details| devices.iter().find_map(|gpu| collectives::waiting(gpu, details))),
    };
    let idle_takeaways = takeaways::of_idle(idle.as_ref(), limits.as_ref());
    let mut takeaways = takeaways::takeaways(&tables, &seen, limits.as_ref(), idle);
    // (What is captured does not run: the few slices between captures are no picture of the run.)
    if coverage.only_captures {
        takeaways = vec![captured(&coverage)];
    }
    let plain = tables.plain_products.as_ref().filter(|plain| plain.is_told());
    takeaways.extend(plain.map(PlainProducts::text));
    let lost_calls = sides.lost_calls();
    let cut = Cut::of(trace, &before, zero_ns);
    let lost = (&lost_calls[..], cut.as_ref());
    takeaways.splice(0..0, before_figures(trace, &before, lost, &tables));
    takeaways.extend(analysis::other_work(trace));
    let before_window = BeforeWindowSum::of(&before.summary, !slices.without_before_window);
    let report = tables.report(Run {
        coverage,
        before_window,
        lost_calls,
        cut,
        takeaways,
        idle_takeaways,
        arch,
        framework: asked.framework,
        facts: asked.run.facts,
        step,
    });
    (report, kept)
}

/// What is said of the idle time of the device that lost most to one cause; `several` is whether there are others.
fn say_idle(
    (device, explained, gaps): (&str, Explained, Gaps),
    (trace, linker): (&Trace, &mut Linker<'_>),
    asked: &Asked<'_>,
    limits: Option<Limited<'_>>,
    (several, warm): (bool, Option<&Warm>),
) -> IdleSaid {
    let mut device = sentences::Device {
        trace,
        linker,
        explained: &explained,
        gaps: &gaps,
        gpu: &if several { format!("GPU {device}") } else { "The GPU".to_owned() },
        zero_ns: asked.zero_ns,
        warm_from_ns: warm.and_then(Warm::begins_ns),
        platform: asked.run.facts.platform,
    };
    let text = device.sentences(limits);
    IdleSaid { cause: explained.cause, ns: explained.ns(), of_steps: explained.of_steps, text }
}

/// What a reader must know before any figure: what is not recorded, and that names do not belong to their times.
fn before_figures(
    trace: &Trace,
    before: &BeforeWindowSlices,
    (lost_calls, cut): (&[LostCalls], Option<&Cut>),
    tables: &DeviceTables,
) -> Vec<String> {
    let displaced = tables.displaced.as_ref().filter(|found| found.is_much(None));
    let displaced = displaced.map(Displaced::text);
    unrecorded::sentences(trace, before, lost_calls, cut).chain(displaced).collect()
}

/// What the devices can do at most, if it is known what they are.
fn peak(trace: &Trace, gpu: &Gpu<'_>, details: Option<&Details>) -> Option<&'static Peak> {
    precision::peak(trace).or_else(|| {
        let by_units = arch::by_units(gpu, details)?;
        let is_told =
            timeline::device::platform(trace) == Platform::Cuda && !by_units.name.is_empty();
        peak_of(by_units.name, None, None).filter(|_| is_told)
    })
}

/// The iterations of a file of one rank. (Those of several ranks are told apart where each is triaged by itself; a step is one.)
#[inline(never)]
fn iterations(trace: &Trace, devices: &[Gpu<'_>], sides: &Sides) -> Option<Iterations> {
    let is_step = trace.part.as_ref().is_some_and(|part| part.step.is_some());
    if is_step || devices.is_empty() || sides.are_several() {
        return None;
    }
    let HostIndex { slices, gpu } = HostIndex::of(trace);
    let ranges = Ranges::of(&slices, &gpu)?;
    let own = ranges.device.and_then(|device| gpu.devices.get(device as usize));
    let is_own = |one: &Gpu<'_>| {
        own.is_some_and(|own| one.device() == own.as_str() || gpu.devices.len() == 1)
    };
    let device = devices.iter().position(is_own);
    Some(Iterations { ranges, device })
}

/// Which GPU slices the tables count.
fn counted(wanted: &Options, before: &BeforeWindowSlices, of_step: bool) -> Options {
    let mut slices = wanted.clone();
    // (What an earlier step launched belongs to no table of a step.)
    slices.without_before_window |= of_step;
    // (Where all of it was launched earlier, the tables are of that: empty ones would say nothing.)
    let n_earlier = before.summary.n_kernels + before.summary.n_memory_ops;
    if !of_step && n_earlier == before.gpu_rows.len() as u64 {
        slices.without_before_window = false;
    }
    slices
}

/// What is said of a recording in which most launches are captured.
fn captured(coverage: &Coverage) -> String {
    const CAPTURES: &str = "Graphs are captured in this recording, and captured work does not run:";
    // (What is replayed runs as it would without the capture.)
    match timeline::percent(coverage.graph_ns, coverage.total_ns) {
        share if share >= LEAST_REPLAYED_PCT => format!(
            "{CAPTURES} shares of the GPU span are not meaningful here. Graphs are replayed, too: their kernels take {} ({} of GPU time).",
            ::report::units::time(coverage.graph_ns),
            ::report::units::percent(share)
        ),
        _ => format!(
            "{CAPTURES} shares of time are not meaningful here. Record replays of the graphs instead."
        ),
    }
}

/// From this share of GPU time on, replays are part of the recording, in percent.
const LEAST_REPLAYED_PCT: f64 = 10.0;

/// What times in a file are told from: its first event, that of the whole file for a part of one.
#[must_use]
pub fn zero_ns(trace: &Trace) -> i64 {
    trace.part.as_ref().map_or_else(|| first_ns(trace), |part| part.file_start_ns)
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
