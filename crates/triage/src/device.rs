//! The triage of each device, put together.

use catalog::Category;
use catalog::architectures::Peak;
use trace::Details;

use crate::arguments;
use crate::arguments::Arguments;
use crate::attribution::Linker;
use crate::device_time::DeviceTime;
use crate::displaced::displaced;
use crate::facts::RunContext;
use crate::framework::FrameworkVote;
use crate::fuse::{self, FuseContext, Ground};
use crate::idle::cause::{self, Cause, Explained};
use crate::idle::gaps::Gaps;
use crate::idle::{self, Idle};
use crate::instances::TriageSlices;
use crate::iterations::{Ranges, Warm, WarmSlices};
use crate::kernel_row::KernelTableRow;
use crate::kernel_table::{Facts, kernel_table};
use crate::overlap::{self, OverlapOptions};
use crate::own_frames::OwnFrames;
use crate::placed::{Given, Placed};
use crate::report::{Coverage, knows_op};
use crate::same_stream;
use crate::sides::{Side, Sides};
use crate::site::Attribution;
use crate::stages::pace::Waits;
use crate::stages::{Stage, Stages};
use crate::tables::DeviceTables;
use crate::takeaways::BLOCKED_PCT;
use crate::wall_stages;
use crate::wall_time;
use crate::{TriageOptions, WallPart, WallTimes, blocked, precision};
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, both};
use timeline::launches::Launches;
use wall::{Lost, Wall};

/// What the triage of each device goes by.
pub(crate) struct Asked<'a> {
    pub(crate) options: &'a TriageOptions,
    pub(crate) given: &'a Given<'a>,
    pub(crate) framework: FrameworkVote,
    pub(crate) run: RunContext,
    /// What the devices can do at most, if all have one name that is known.
    pub(crate) peak: Option<&'static Peak>,
    /// When the first event of the trace begins.
    pub(crate) zero_ns: i64,
    /// The iterations, if the file is of one rank and has any.
    pub(crate) iterations: Option<Iterations>,
}

/// The iterations of a file.
pub(crate) struct Iterations {
    pub(crate) ranges: Ranges,
    /// Which of the devices is theirs; `None` where none of these is.
    pub(crate) device: Option<usize>,
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
    sides: &mut Sides,
) -> Found<'a> {
    let mut coverage = Coverage::default();
    let mut time = DeviceTime::default();
    let mut tables: Vec<(&str, DeviceTables)> = Vec::with_capacity(devices.len());
    let mut slices = TriageSlices::default();
    let mut idle: Option<(&str, Explained, Gaps)> = None;
    let mut all_timed: Vec<Timed> = Vec::with_capacity(devices.len());
    for gpu in devices {
        all_timed.push(timed(gpu, asked, linker, sides.of_device(gpu.device()), &mut coverage));
    }
    let warm = warm(asked, &all_timed);
    for (gpu, timed) in devices.iter().zip(all_timed) {
        let side = sides.of_device(gpu.device());
        let Triaged { tables: of_device, slices: own, gaps, idle: of_gpu, blocked_ns } =
            on_device(gpu, asked, (&mut *linker, &*side), warm.as_ref(), timed);
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

/// Where the work of a device came from, and where its wall time goes.
struct Timed {
    launches: Launches,
    places: Attribution,
    stages: Stages,
    arguments: Arguments,
    blocked: Vec<Interval>,
    idle: Idle,
    gaps: Gaps,
    explained: Option<Explained>,
    wall_times: WallTimes,
}

#[inline(never)]
fn timed(
    gpu: &Gpu<'_>,
    asked: &Asked<'_>,
    linker: &mut Linker<'_>,
    side: &mut Side,
    coverage: &mut Coverage,
) -> Timed {
    let Asked { options, given, .. } = asked;
    let Side { host, steps, lost_calls, .. } = side;
    let Placed { launches, places, stages, arguments, replayed, by_name } =
        Placed::of(gpu, linker, options.file_name.as_deref(), given);
    coverage.add(replayed);
    given.count(&by_name, coverage);
    cover(gpu, &places, coverage);
    what_is_recorded(host, given.sources.details, coverage);

    let blocked = blocked::blocked(gpu, &launches);
    host.add_host_copies(&idle::host_copies(gpu, &launches));
    let idle = Idle::of(gpu, steps, host.first_ns()).outside(lost_calls);
    let gaps = Gaps::of(gpu, &launches, &idle, host);
    let dealt = cause::deal(&idle, host, &gaps, &blocked);
    let wall_times = wall_time::wall_times(gpu, &idle, &dealt);
    let explained = cause::explain(&idle, host, &gaps, dealt);
    Timed { launches, places, stages, arguments, blocked, idle, gaps, explained, wall_times }
}

/// The warm iterations, by the times of their device alone: an iteration is cold or not for all devices, and for the diagnosis.
fn warm(asked: &Asked<'_>, timed: &[Timed]) -> Option<Warm> {
    let Iterations { ranges, device } = asked.iterations.as_ref()?;
    let times = device.and_then(|at| timed.get(at)).map(|timed| &timed.wall_times);
    Warm::of(ranges, times)
}

/// What the table of kernels says of its launches; `None` where nothing is known of them.
fn launch_note(
    gpu: &Gpu<'_>,
    details: Option<&Details>,
    arguments: Option<&Arguments>,
    rows: &[KernelTableRow],
) -> Option<String> {
    let of_arguments = arguments.map(|arguments| arguments::note(details, arguments, rows));
    let said = [of_arguments.unwrap_or_default(), same_stream::note(gpu)];
    let said: Vec<String> = said.into_iter().filter(|text| !text.is_empty()).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

#[inline(never)]
fn on_device(
    gpu: &Gpu<'_>,
    asked: &Asked<'_>,
    (linker, side): (&mut Linker<'_>, &Side),
    warm: Option<&Warm>,
    timed: Timed,
) -> Triaged {
    let Asked { given, run, peak, zero_ns, .. } = asked;
    let host = &side.host;
    let Timed {
        launches,
        places,
        stages,
        arguments,
        blocked,
        idle,
        gaps,
        explained,
        mut wall_times,
    } = timed;
    let first_run = explained.as_ref().filter(|found| found.cause == Cause::SetUp);
    let set_up = first_run.map_or(&[][..], |found| &found.times);
    let lost = Lost { blocked: &blocked, set_up };
    let wall = Wall::of(gpu, &launches, lost);
    let stage_of = |slice: usize| stages.stage(slice);
    wall_times.stages = wall_stages::stage_times(gpu, &stage_of, &idle.window, &wall_times);
    let (displaced, is_displaced) = displaced(gpu, run.facts.platform, &launches, &places);
    let judged = OverlapOptions { displaced: &is_displaced, ..overlap_options(asked, &wall) };
    let overlap = overlap::overlap(gpu, &launches, &stage_of, Some(&places), &judged);
    let exposed_ns = &overlap.per_slice.exclusive_ns;
    let own_frames = OwnFrames::of(gpu, &launches, linker);
    let (own_frames, peak) = (Some(&own_frames), *peak);
    // (What the overlap table advises is of all iterations.)
    let (wall, slices) = judged_by(warm, (gpu, &launches), wall, (&idle, lost));
    let of_warm = warm.map(|warm| WarmSlices { warm, slices: &slices });
    let in_cold = warm.map(|warm| warm.in_cold(gpu, &launches));
    let facts = Facts {
        gpu,
        places: &places,
        launches: &launches,
        arguments: &arguments,
        exposed_ns,
        displaced: &is_displaced,
        in_cold: in_cold.as_deref(),
        zero_ns: *zero_ns,
    };
    let (kernels, merged) = kernel_tables(&facts, &stage_of);
    let context = fuse_context(asked, &arguments);
    let (arguments, tokens) = (context.arguments, &stages.most_tokens(gpu.trace)[..]);
    let ground = Ground {
        run,
        wall: &wall,
        exposed_ns,
        displaced: &is_displaced,
        arguments,
        tokens,
        peak,
        own_frames,
        warm: of_warm,
    };
    let fuse = fuse::fuse(gpu, &launches, stage_of, Some(&places), &context, &ground);
    let blocked_ns = timeline::intervals::length(&blocked);
    let is_blocked = timeline::percent(blocked_ns, idle.window_ns) >= BLOCKED_PCT;
    let waits = waits(&gaps, host, &wall_times, is_blocked);
    let tables = DeviceTables {
        stages: stages.rows(gpu, &launches, waits),
        wall: wall_time::wall_rows(&wall_times, &idle),
        wall_stages: wall_times.stage_walls(None),
        wall_times: vec![wall_times],
        launch_note: launch_note(gpu, given.sources.details, arguments, &kernels),
        kernels,
        merged,
        overlap: overlap.rows,
        overlap_note: Some(overlap.note).filter(|note| !note.is_empty()),
        concurrency: overlap.concurrency,
        fuse: fuse.rows,
        fuse_note: fuse.note,
        fuse_held: fuse.held,
        displaced,
        plain_products: precision::plain_products(gpu, &places, &ground, &fuse.attention),
        span: Some(wall.span()),
        warm: warm.map(|warm| (warm.clone(), wall.span_ns)),
    };
    let exposed_ns = overlap.per_slice.exclusive_ns;
    let slices = TriageSlices::of(gpu, &stages, places, &launches, exposed_ns);
    Triaged { tables, slices, gaps, idle: explained, blocked_ns }
}

/// The wall time that fusions are judged by, and by GPU slice whether the warm iterations launched it: where some are cold, theirs.
fn judged_by(
    warm: Option<&Warm>,
    (gpu, launches): (&Gpu<'_>, &Launches),
    wall: Wall,
    (idle, lost): (&Idle, Lost<'_>),
) -> (Wall, Vec<bool>) {
    let Some(warm) = warm else { return (wall, Vec::new()) };
    let windows = both(&warm.windows, &idle.window);
    (wall.of_warm(&windows, warm.n_warm(), lost), warm.slices(gpu, launches))
}

/// What fusions are looked for by.
fn fuse_context<'a>(asked: &'a Asked<'_>, arguments: &'a Arguments) -> FuseContext<'a> {
    FuseContext {
        framework: Some(asked.framework.framework),
        tp: asked.options.tp,
        model: asked.options.model.as_deref(),
        arguments: Some(arguments),
    }
}

/// How overlap is judged.
fn overlap_options<'a>(asked: &'a Asked<'_>, wall: &'a Wall) -> OverlapOptions<'a> {
    let sources = asked.given.sources;
    OverlapOptions {
        pair: sources.mapping.is_some() || sources.map.is_some(),
        captures: !sources.captures.is_empty(),
        details: sources.details,
        wall: Some(wall),
        facts: asked.run.facts,
        gradient_hooks: Some(&asked.run.gradient_hooks),
        ..OverlapOptions::default()
    }
}

/// What stages wait for.
fn waits<'a>(
    gaps: &'a Gaps,
    host: &'a idle::Host,
    wall_times: &'a WallTimes,
    is_blocked: bool,
) -> Waits<'a> {
    Waits {
        gaps,
        loader: host.cover(idle::Cover::DataLoader),
        allocations: host.cover(idle::Cover::Allocation),
        set_up: wall_times.part(WallPart::Loading),
        is_blocked,
    }
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

/// Notes whether the file has frames, ops and what they were called with.
fn what_is_recorded(host: &idle::Host, details: Option<&Details>, coverage: &mut Coverage) {
    coverage.has_frames |= !host.cover(idle::Cover::Python).is_empty();
    coverage.has_frames |= details.is_some_and(|details| details.ops_have_stacks);
    coverage.has_ops |= !host.cover(idle::Cover::Op).is_empty();
    coverage.has_inputs |= details.is_some_and(has_inputs);
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
        if site.graph {
            coverage.graph_ns = coverage.graph_ns.saturating_add(slice.dur_ns);
        }
        coverage.graph_slices += u64::from(site.graph);
        coverage.graph_kernels += u64::from(site.graph && gpu.is_kernel(&slice));
        coverage.graph_mapped += u64::from(site.graph && op);
    });
}
