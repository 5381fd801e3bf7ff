//! Windows with a stage: CPU annotations, their GPU copies, and runs of the autograd engine.

use dialect::{calls, inductor::sets_up, kineto};
use trace::{Flags, Phase, StringId, Trace, TrackId, each_row};

use super::Stage;
use super::grammar::{self, Load, Reading};
use timeline::before_window::{duration_ns, each_launch};
use timeline::recorded::{Recorded, recorded};

/// Where a window was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// An annotation around the calls that launch the work.
    #[default]
    Cpu,
    /// The profiler's copy of it around the work itself, on the stream.
    Gpu,
    /// A run of the autograd engine, from its ops.
    Engine,
}

/// A stretch of time in which work belongs to a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageWindow {
    pub(crate) stage: Stage,
    pub(crate) side: Side,
    /// The annotation's name; [`StringId::EMPTY`] of a run of the engine.
    pub(crate) name: StringId,
    pub(crate) track: TrackId,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) external: Option<i64>,
    pub(crate) load: Load,
    /// Whether it is a pass of its stage, not a chore that belongs to it.
    pub(crate) is_pass: bool,
    /// Whether it is an op whose name is read like that of an annotation.
    pub(crate) is_op: bool,
    /// GPU slices that have their stage from it.
    pub(crate) n_slices: u64,
}

impl Default for StageWindow {
    fn default() -> Self {
        Self {
            stage: Stage::All,
            side: Side::Cpu,
            name: StringId::EMPTY,
            track: TrackId(0),
            start_ns: 0,
            end_ns: 0,
            external: None,
            load: Load::default(),
            is_pass: true,
            is_op: false,
            n_slices: 0,
        }
    }
}

impl StageWindow {
    /// Which of two windows says more: an engine that serves calls its model's `forward` in every step, so a
    /// serving stage outranks a training stage; annotations outrank ops.
    pub(crate) fn rank(&self) -> u8 {
        match (self.side, self.stage.is_training()) {
            (Side::Engine, _) => 0,
            (_, true) => 1,
            (_, false) => 2,
        }
    }
}

/// What was found in one walk over the trace.
pub(crate) struct Windows {
    /// Sorted by start, the longer first.
    pub(crate) windows: Vec<StageWindow>,
    /// By track: whether all work that it launches is backward.
    pub(crate) is_engine: Vec<bool>,
    /// Where the profiler's steps begin and end on the CPU, else where steps end by their stages, as (process, time), sorted.
    pub(crate) step_bounds: Vec<(u32, i64)>,
}

/// A pause of the autograd engine that ends a run of it, where the script's own launches are not recorded: within a run
/// the longest in four real traces is 0.06 ms, between two runs the shortest is 6 ms.
const PAUSE_NS: i64 = 1_000_000;
/// The same where they are, and none is in the pause: the engine waits for the GPU (3 ms in a real trace).
const LONG_PAUSE_NS: i64 = 100_000_000;

/// The prefix of the engine's own ops.
const ENGINE_OP: &str = "autograd::engine::evaluate_function";
/// The name PyTorch gives to the engine's threads.
const ENGINE_THREAD: &str = "pt_autograd";

#[inline(never)]
pub(crate) fn windows(trace: &Trace) -> Windows {
    let is_backward = backward_ops(trace);
    let recorded = recorded(trace);
    let mut windows: Vec<StageWindow> = Vec::new();
    let mut has_step = vec![false; trace.tracks.len()];
    let mut step_bounds: Vec<(u32, i64)> = Vec::new();
    let mut ops: Vec<(TrackId, i64, i64)> = Vec::new();
    // The compiler of torch.compile traces forward and backward passes, on the thread of the script: none of it is one.
    let mut compiling: Vec<(TrackId, i64, i64)> = Vec::new();
    // What an op's name says as an annotation: read once a name, not once an event.
    let mut of_op: Vec<Option<Option<Reading>>> = vec![None; trace.strings.len()];
    each_row(trace, |row| {
        let flags = trace.flags(row);
        if trace.phase(row) != Phase::Complete || !flags.has(Flags::HAS_TS) {
            return;
        }
        let start_ns = trace.ts_ns(row);
        let end_ns = || start_ns.saturating_add(duration_ns(trace, row));
        let name = trace.name(row);
        let text = trace.strings.get(name);
        let what = *recorded.of(trace, row);
        // (Profilers before PyTorch 1.11 write annotations as ops.)
        if matches!(what, Recorded::Annotation | Recorded::Op)
            && text.starts_with(kineto::NUMBERED_STEP)
        {
            let process = trace.track_info(trace.track(row)).process.0;
            step_bounds.extend([(process, start_ns), (process, end_ns())]);
            has_step[trace.track(row).0 as usize] |= what == Recorded::Annotation;
            return;
        }
        if matches!(what, Recorded::Annotation | Recorded::GpuAnnotation) && sets_up(text) {
            compiling.push((trace.track(row), start_ns, end_ns()));
            return;
        }
        let (side, reading) = match what {
            Recorded::Annotation => (Side::Cpu, grammar::read(text)),
            Recorded::GpuAnnotation => (Side::Gpu, grammar::read(text)),
            Recorded::Op if is_backward.get(name.0 as usize) == Some(&true) => {
                ops.push((trace.track(row), start_ns, end_ns()));
                return;
            }
            // (The op of a custom autograd function may be called `RegisterPostBackwardFunction`.)
            Recorded::Op if recorded.annotates => return,
            Recorded::Op => {
                let read = || op_as_annotation(text);
                let memo =
                    of_op.get_mut(name.0 as usize).map(|memo| *memo.get_or_insert_with(read));
                (Side::Cpu, memo.flatten())
            }
            _ => return,
        };
        if let Some(reading) = reading {
            windows.push(StageWindow {
                stage: reading.stage,
                side,
                name,
                track: trace.track(row),
                start_ns,
                end_ns: end_ns(),
                external: trace.external(row),
                load: reading.load,
                is_pass: reading.is_pass,
                is_op: what == Recorded::Op,
                n_slices: 0,
            });
        }
    });

    if !compiling.is_empty() {
        let compiling: Vec<StageWindow> = {
            trace::sort(&mut compiling);
            runs(&compiling, |_, _, _| false).collect()
        };
        ops.retain(|(track, start_ns, _)| !holds(&compiling, *track, *start_ns));
    }
    trace::sort(&mut ops);
    let is_engine = engine_threads(trace, &windows, &ops, &has_step);
    add_backward_passes(trace, &mut windows, &ops, &is_engine);
    trace::sort_by_key(&mut windows, |window| (window.start_ns, std::cmp::Reverse(window.end_ns)));
    if step_bounds.is_empty() {
        step_bounds = ends_of_steps(trace, &windows);
    }
    trace::sort(&mut step_bounds);
    Windows { windows, is_engine, step_bounds }
}

/// Adds the runs of backward ops: on a thread of the engine, short pauses in which the script does nothing are a part of one.
fn add_backward_passes(
    trace: &Trace,
    windows: &mut Vec<StageWindow>,
    ops: &[(TrackId, i64, i64)],
    is_engine: &[bool],
) {
    let breaks = script_activity(trace, windows, ops, is_engine);
    windows.extend(runs(ops, |track, end_ns, start_ns| {
        let on = trace.track_info(track).process.0;
        let next = breaks.partition_point(|at| *at < (on, end_ns));
        let next = breaks.get(next).filter(|at| at.0 == on);
        let recorded = next.is_some() || breaks.binary_search_by_key(&on, |at| at.0).is_ok();
        is_engine[track.0 as usize]
            && next.is_none_or(|(_, at)| *at >= start_ns)
            && start_ns.saturating_sub(end_ns) <= if recorded { LONG_PAUSE_NS } else { PAUSE_NS }
    }));
}

/// Where training steps end that no profiler marks: with the optimizer, else with the backward pass.
fn ends_of_steps(trace: &Trace, windows: &[StageWindow]) -> Vec<(u32, i64)> {
    let ends = |is_last: &dyn Fn(&StageWindow) -> bool| -> Vec<(u32, i64)> {
        let last = windows.iter().filter(|window| is_last(window));
        last.map(|it| (trace.track_info(it.track).process.0, it.end_ns)).collect()
    };
    let updates = ends(&|it| it.side == Side::Cpu && it.stage == Stage::Optimizer && it.is_pass);
    if updates.is_empty() { ends(&|it| it.side == Side::Engine) } else { updates }
}

/// Whether one of these runs, sorted, holds a moment of a track.
fn holds(runs: &[StageWindow], track: TrackId, ns: i64) -> bool {
    let at = runs.partition_point(|run| (run.track, run.start_ns) <= (track, ns));
    let before = at.checked_sub(1).and_then(|at| runs.get(at));
    before.is_some_and(|run| run.track == track && ns <= run.end_ns)
}

/// What the name of an op says, if it may be an annotation.
fn op_as_annotation(name: &str) -> Option<Reading> {
    if !grammar::may_be_annotation(name) || is_backward_op(name) {
        return None;
    }
    grammar::read(name)
}

/// When the script itself acts, as (process, start), sorted: kernels that it launches and annotations of other stages.
/// `backward()` returns when the engine is done, so none of this is within a backward pass.
#[inline(never)]
fn script_activity(
    trace: &Trace,
    windows: &[StageWindow],
    ops: &[(TrackId, i64, i64)],
    is_engine: &[bool],
) -> Vec<(u32, i64)> {
    let is_engine = |track: TrackId| is_engine.get(track.0 as usize) == Some(&true);
    let mut found = Vec::new();
    if !ops.iter().any(|(track, ..)| is_engine(*track)) {
        return found;
    }
    let process = |track: TrackId| trace.track_info(track).process.0;
    let of_script = |it: &&StageWindow| {
        it.side == Side::Cpu
            && !matches!(it.stage, Stage::Backward | Stage::WeightGrad)
            && !is_engine(it.track)
    };
    found.extend(
        windows.iter().filter(of_script).map(|window| (process(window.track), window.start_ns)),
    );
    // Copies may be launched by a thread that loads data.
    let names = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    let launches: Vec<bool> = names.map(launches_kernels).collect();
    each_launch(trace, |row, _| {
        let track = trace.track(row);
        if launches.get(trace.name(row).0 as usize) == Some(&true) && !is_engine(track) {
            found.push((process(track), trace.ts_ns(row)));
        }
    });
    trace::sort(&mut found);
    found
}

/// One, or a graph of them.
fn launches_kernels(call: &str) -> bool {
    calls::launches_kernel(call) || calls::launches_graph(call)
}

/// By name: whether ops of it are the backward pass. Where the engine's own ops were recorded, the ones they
/// call add nothing.
#[inline(never)]
fn backward_ops(trace: &Trace) -> Vec<bool> {
    let names = || (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    let engine: Vec<bool> = names().map(|name| name.starts_with(ENGINE_OP)).collect();
    if engine.contains(&true) { engine } else { names().map(is_backward_op).collect() }
}

/// `AddmmBackward0`, `MyFunctionBackward`: a node of the graph. `aten::convolution_backward` is called by
/// one, and may be called by anybody.
fn is_backward_op(name: &str) -> bool {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    stem.len() > "Backward".len()
        && stem.ends_with("Backward")
        && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// By track: whether it is one of the autograd engine's own threads. A script's thread can run the engine,
/// too (for what runs on the CPU), but it also has steps, optimizers or a forward pass.
#[inline(never)]
fn engine_threads(
    trace: &Trace,
    windows: &[StageWindow],
    ops: &[(TrackId, i64, i64)],
    has_step: &[bool],
) -> Vec<bool> {
    let named = |name: StringId| trace.strings.get(name).contains(ENGINE_THREAD);
    let mut is_engine: Vec<bool> =
        trace.tracks.iter().map(|track| track.name.is_some_and(named)).collect();
    for (track, _, _) in ops {
        is_engine[track.0 as usize] = true;
    }
    for (is_engine, has_step) in is_engine.iter_mut().zip(has_step) {
        *is_engine &= !has_step;
    }
    let runs: Vec<StageWindow> =
        runs(ops, |_, end_ns, start_ns| start_ns.saturating_sub(end_ns) <= PAUSE_NS).collect();
    for window in windows.iter().filter(|window| window.side == Side::Cpu) {
        // A forward pass within a run of the engine computes again what was not kept.
        let again = window.stage == Stage::Forward && holds(&runs, window.track, window.start_ns);
        if !matches!(window.stage, Stage::Backward | Stage::WeightGrad) && !again {
            is_engine[window.track.0 as usize] = false;
        }
    }
    is_engine
}

/// Joins ops of one track to runs: those that overlap, and those of which `joins` says so, given the track, the end of
/// the run so far and the start of the next op. The ops are sorted.
fn runs<'a>(
    ops: &'a [(TrackId, i64, i64)],
    joins: impl Fn(TrackId, i64, i64) -> bool + 'a,
) -> impl Iterator<Item = StageWindow> + 'a {
    let mut ops = ops.iter().copied().peekable();
    std::iter::from_fn(move || {
        let (track, start_ns, mut end_ns) = ops.next()?;
        while let Some((_, _, end)) = ops.next_if(|(next, start, _)| {
            *next == track && (*start <= end_ns || joins(track, end_ns, *start))
        }) {
            end_ns = end_ns.max(end);
        }
        Some(StageWindow {
            stage: Stage::Backward,
            side: Side::Engine,
            track,
            start_ns,
            end_ns,
            ..StageWindow::default()
        })
    })
}
