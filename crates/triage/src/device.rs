//! The triage of one device, and the tables of all of them.

use catalog::Category;
use catalog::architectures::Peak;
use trace::{Details, Row};

use crate::arch::ObservedArch;
use crate::arguments::{self, Arguments, KnownCalls};
use crate::attribution::{Linker, attribute};
use crate::device_time::DeviceTime;
use crate::facts::RunContext;
use crate::framework::FrameworkVote;
use crate::fuse::{self, FuseContext, FuseRow, Ground};
use crate::idle::cause::{self, Cause, Explained};
use crate::idle::gaps::Gaps;
use crate::idle::{self, Host, Idle};
use crate::instances::TriageSlices;
use crate::kernel_map::kernel_map;
use crate::kernel_row::KernelTableRow;
use crate::kernel_table::{Facts, kernel_table};
use crate::mapping::{self, MappedByName, NameMap};
use crate::overlap::{self, Concurrency, OverlapOptions, OverlapRow};
use crate::report::{BeforeWindowSum, Coverage, TriageReport, knows_op};
use crate::site::Attribution;
use crate::stages::pace::Waits;
use crate::stages::{Stage, StageRow, Stages};
use crate::takeaways::BLOCKED_PCT;
use crate::wall::{Lost, Wall};
use crate::wall_time::{self, WallRow};
use crate::{Sources, TriageOptions, blocked, precision, replay};
use timeline::gpu::Gpu;
use timeline::intervals::Interval;
use timeline::launches::Launches;

/// What the triage of each device goes by.
pub(crate) struct Asked<'a> {
    pub(crate) options: &'a TriageOptions,
    pub(crate) given: &'a Given<'a>,
    pub(crate) framework: FrameworkVote,
    pub(crate) run: RunContext,
    /// What the devices can do at most, if all have one name that is known.
    pub(crate) peak: Option<&'static Peak>,
    /// The profiler's steps on the CPU.
    pub(crate) steps: Vec<Interval>,
    /// When the first event of the trace begins.
    pub(crate) zero_ns: i64,
}

/// The tables of one device. What runs on one device neither hides what runs on another nor stands next to it.
#[derive(Default)]
pub(crate) struct DeviceTables {
    pub(crate) wall: Vec<WallRow>,
    pub(crate) stages: Vec<StageRow>,
    pub(crate) kernels: Vec<KernelTableRow>,
    pub(crate) merged: Vec<KernelTableRow>,
    pub(crate) launch_note: Option<String>,
    pub(crate) overlap: Vec<OverlapRow>,
    pub(crate) overlap_note: Option<String>,
    pub(crate) concurrency: Concurrency,
    pub(crate) fuse: Vec<FuseRow>,
    pub(crate) fuse_note: Option<String>,
    /// What the number format of the matrix products costs.
    pub(crate) precision: Option<String>,
    /// What shares of advice are of, if not of the GPU span.
    pub(crate) span: Option<String>,
}

impl DeviceTables {
    /// The rows of all devices, each table with the id of its device.
    fn together(devices: Vec<(&str, Self)>) -> Self {
        let several = devices.len() > 1;
        let mut all = Self::default();
        for (device, of) in devices {
            all.wall.extend(of.wall);
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

    /// The report of these tables and of what holds for the whole run.
    pub(crate) fn report(self, run: Run) -> TriageReport {
        let Run { coverage, before_window, takeaways, arch, framework } = run;
        TriageReport {
            wall: self.wall,
            stages: self.stages,
            kernels: self.kernels,
            merged: self.merged,
            launch_note: self.launch_note.unwrap_or_default(),
            overlap: self.overlap,
            overlap_note: self.overlap_note.unwrap_or_default(),
            concurrency: self.concurrency,
            fuse: self.fuse,
            fuse_note: self.fuse_note,
            coverage,
            before_window,
            takeaways,
            arch,
            framework,
        }
    }
}

/// What a report says of the whole run.
pub(crate) struct Run {
    pub(crate) coverage: Coverage,
    pub(crate) before_window: BeforeWindowSum,
    pub(crate) takeaways: Vec<String>,
    pub(crate) arch: ObservedArch,
    pub(crate) framework: FrameworkVote,
}

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
    sources: &'a Sources<'a>,
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

/// What the triage of all devices gives.
pub(crate) struct Found<'a> {
    pub(crate) tables: DeviceTables,
    pub(crate) coverage: Coverage,
    pub(crate) slices: TriageSlices,
    pub(crate) time: DeviceTime,
    /// The device that lost most time to one cause of idle time, with that cause.
    pub(crate) idle: Option<(&'a str, Explained, Gaps)>,
}

/// The triage of each device, put together.
pub(crate) fn on_devices<'a>(
    devices: &'a [Gpu<'_>],
    asked: &Asked<'_>,
    linker: &mut Linker<'_>,
    host: &mut Host,
) -> Found<'a> {
    let mut coverage = Coverage::default();
    let mut time = DeviceTime::default();
    let mut tables: Vec<(&str, DeviceTables)> = Vec::with_capacity(devices.len());
    let mut slices = TriageSlices::default();
    let mut idle: Option<(&str, Explained, Gaps)> = None;
    for gpu in devices {
        let Triaged { tables: of_device, slices: own, gaps, idle: of_gpu, blocked_ns } =
            on_device(gpu, asked, linker, host, &mut coverage);
        coverage.gpu_blocked_ns = coverage.gpu_blocked_ns.saturating_add(blocked_ns);
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
    Found { tables: DeviceTables::together(tables), coverage, slices, time, idle }
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
    let dealt = cause::deal(&idle, host, &gaps, &blocked);
    let wall_time = wall_time::wall_time(gpu, &idle, &dealt);
    let explained = cause::explain(&idle, host, &gaps, dealt);
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
    let facts = Facts {
        gpu,
        places: &places,
        launches: &launches,
        arguments: &arguments,
        exposed_ns,
        zero_ns: *zero_ns,
    };
    let (kernels, merged) = kernel_tables(&facts, &stage_of);
    let context = FuseContext {
        framework: Some(framework.framework),
        tp: options.tp,
        model: options.model.as_deref(),
        arguments: Some(&arguments),
    };
    let ground = Ground { run, wall: &wall, exposed_ns, arguments: Some(&arguments), peak: *peak };
    let fuse = fuse::fuse(gpu, &launches, stage_of, Some(&places), &context, &ground);
    let blocked_ns = timeline::intervals::length(&blocked);
    let waits = Waits {
        gaps: &gaps,
        loader: host.cover(idle::Cover::DataLoader),
        allocations: host.cover(idle::Cover::Allocation),
        is_blocked: timeline::percent(blocked_ns, idle.window_ns) >= BLOCKED_PCT,
    };
    let tables = DeviceTables {
        wall: wall_time,
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

/// Kernels by stage and name, and by name alone.
#[inline(never)]
fn kernel_tables(
    facts: &Facts<'_>,
    stage_of: &dyn Fn(usize) -> Stage,
) -> (Vec<KernelTableRow>, Vec<KernelTableRow>) {
    let kernels = kernel_table(facts, &|slice| Some(stage_of(slice)));
    let several = kernels.windows(2).any(|pair| pair[0].stage != pair[1].stage);
    let merged = if several {
        kernel_table(facts, &|_| None)
    } else {
        // (All of one stage is all of it.)
        kernels.iter().map(|row| KernelTableRow { stage: None, ..row.clone() }).collect()
    };
    (kernels, merged)
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
        let op = knows_op(site.confidence);
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
