//! Assigns GPU slices to windows, with the evidence.

use catalog::RawKind;
use trace::{Row, Trace, TrackId};

use super::grammar::is_backward_kernel;
use super::overlaid::{Neighbours, Timeline};
use super::windows::{Side, StageWindow, Windows};
use super::{NEAR_NS, Stage};
use timeline::gpu::{Gpu, GpuSlice, Work};
use timeline::launches::Launches;

/// The evidence for the stage of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// An annotation around its launch or around itself.
    Annotation,
    /// An op around its launch, with a name like that of an annotation.
    Op,
    /// The autograd engine launched it.
    Engine,
    /// It was launched before a backward pass.
    BeforeBackward,
    /// It was launched between a backward pass and the optimizer.
    BeforeOptimizer,
    /// The kernel's name.
    KernelName,
    /// An annotation nearby.
    Near,
    /// The file's name.
    FileName,
    /// Nothing: its launch is not in the file.
    LaunchedBefore,
    /// Nothing.
    Nothing,
}

impl Evidence {
    pub(crate) const COUNT: usize = 10;
    pub(crate) const EVERY: [Self; Self::COUNT] = [
        Self::Annotation,
        Self::Op,
        Self::Engine,
        Self::BeforeBackward,
        Self::BeforeOptimizer,
        Self::KernelName,
        Self::Near,
        Self::FileName,
        Self::LaunchedBefore,
        Self::Nothing,
    ];

    /// The evidence, unless it is none.
    pub(crate) fn tells(self) -> Option<Self> {
        (!matches!(self, Self::LaunchedBefore | Self::Nothing)).then_some(self)
    }
}

/// The stage of one slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) stage: Stage,
    pub(crate) evidence: Evidence,
    /// The window it belongs to.
    pub(crate) window: Option<u32>,
}

/// The windows, laid out for the look-ups of a slice.
pub(crate) struct Finder<'a> {
    trace: &'a Trace,
    windows: &'a [StageWindow],
    is_engine: &'a [bool],
    /// By process: whether ops of the autograd engine are recorded, so that every other launch is not backward.
    has_engine: Vec<bool>,
    gpu: &'a Gpu<'a>,
    launches: &'a Launches,
    /// By work: whether its name says that it belongs to the backward pass.
    is_backward: Vec<bool>,
    /// By work: whether it updates the scale of the loss, which a GradScaler does after the optimizer's step.
    is_loss_scale: Vec<bool>,
    /// Annotations by `External id`.
    externals: Vec<(i64, u32)>,
    of_track: Vec<Timeline>,
    /// Windows of the CPU side, by process.
    of_process: Vec<Timeline>,
    /// Of these, the passes: clearing gradients may stand anywhere in a step, so it says nothing of its neighbours.
    passes_of_process: Vec<Timeline>,
    /// Windows of the GPU side, by process: the profiler makes a process of every device.
    of_device: Vec<Timeline>,
    /// All windows of the CPU side: for slices of which no launch is known.
    of_cpu: Timeline,
    /// Where steps begin and end, as (process, time), sorted.
    step_bounds: &'a [(u32, i64)],
}

impl<'a> Finder<'a> {
    pub(crate) fn new(gpu: &'a Gpu<'a>, launches: &'a Launches, found: &'a Windows) -> Self {
        let Windows { windows, is_engine, step_bounds } = found;
        let trace = gpu.trace;
        let lay = |key: &dyn Fn(TrackId) -> usize, len: usize, sides: &[Side], chores: bool| {
            let mut lists: Vec<Vec<u32>> = vec![Vec::new(); len];
            for (index, window) in (0..).zip(windows) {
                if sides.contains(&window.side)
                    && (chores || window.is_pass)
                    && let Some(list) = lists.get_mut(key(window.track))
                {
                    list.push(index);
                }
            }
            lists.iter().map(|list| Timeline::new(windows, list)).collect::<Vec<Timeline>>()
        };
        let of = |key: &dyn Fn(TrackId) -> usize, len, sides: &[Side]| lay(key, len, sides, true);
        let process = |track: TrackId| trace.track_info(track).process.0 as usize;
        let cpu = [Side::Cpu, Side::Engine];
        // (A forward pass alone may run kernels of these names, too: those of a transposed convolution.)
        let is_update = |stage: Stage| stage.is_training() && stage != Stage::Forward;
        let is_training = windows.iter().any(|window| is_update(window.stage));
        let is_backward = |work: &Work| {
            let name = trace.strings.get(work.name);
            is_training && work.kind == RawKind::Kernel && is_backward_kernel(name)
        };
        let mut has_engine = vec![false; trace.processes.len()];
        for window in windows.iter().filter(|window| window.side == Side::Engine) {
            if let Some(has_engine) = has_engine.get_mut(process(window.track)) {
                *has_engine = true;
            }
        }
        let mut externals: Vec<(i64, u32)> = (0..)
            .zip(windows)
            .filter(|(_, window)| window.side == Side::Cpu)
            .filter_map(|(index, window)| Some((window.external?, index)))
            .collect();
        trace::sort(&mut externals);
        Self {
            trace,
            gpu,
            launches,
            windows,
            is_engine,
            has_engine,
            is_backward: gpu.works.iter().map(is_backward).collect(),
            is_loss_scale: gpu
                .works
                .iter()
                .map(|work| gpu.trace.strings.get(work.name).contains("amp_update_scale"))
                .collect(),
            externals,
            of_track: of(
                &|track| track.0 as usize,
                trace.tracks.len(),
                &[Side::Cpu, Side::Gpu, Side::Engine],
            ),
            of_process: of(&process, trace.processes.len(), &cpu),
            passes_of_process: lay(&process, trace.processes.len(), &cpu, false),
            of_device: of(&process, trace.processes.len(), &[Side::Gpu]),
            of_cpu: of(&|_| 0, 1, &cpu).pop().unwrap_or_default(),
            step_bounds,
        }
    }

    /// The stage of the GPU slice at `at`.
    #[inline(never)]
    pub(crate) fn find(&self, at: usize, slice: &GpuSlice) -> Found {
        let nothing =
            if slice.before_window { Evidence::LaunchedBefore } else { Evidence::Nothing };
        let nothing = Found { stage: Stage::All, evidence: nothing, window: None };
        if self.windows.is_empty() {
            return nothing;
        }
        let (row, launch) = (self.gpu.row(at), self.launches.of_slice(at));
        let proof = self.by_external(row, launch, slice).or_else(|| self.by_thread(launch?));
        if let Some(found) = proof {
            return found;
        }
        let found = self
            .inside_track(row, slice.start_ns)
            .or_else(|| self.by_process(launch?))
            .or_else(|| self.inside(self.device(row)?, slice.start_ns))
            .or_else(|| self.by_distance(row, launch, slice));
        let found = found.unwrap_or(nothing);
        // What runs around it is weaker evidence than its own name.
        if self.is_loss_scale.get(slice.work) == Some(&true) && found.stage != Stage::Optimizer {
            return Found { stage: Stage::Optimizer, evidence: Evidence::KernelName, window: None };
        }
        let known =
            launch.is_some_and(|launch| self.has_engine.get(self.process(launch)) == Some(&true));
        let contradicted = !known
            && !matches!(found.stage, Stage::Backward | Stage::WeightGrad)
            && (found.stage.is_training() || found.evidence == Evidence::Nothing);
        if contradicted && self.is_backward.get(slice.work) == Some(&true) {
            return Found { stage: Stage::Backward, evidence: Evidence::KernelName, window: None };
        }
        found
    }

    fn inside_track(&self, row: Row, ns: i64) -> Option<Found> {
        self.inside(self.of_track.get(self.trace.track(row).0 as usize)?, ns)
    }

    /// By the nearest window, where one is near.
    fn by_distance(&self, row: Row, launch: Option<Row>, slice: &GpuSlice) -> Option<Found> {
        match launch {
            Some(launch) => {
                let of_process = self.of_process.get(self.process(launch))?;
                self.near(of_process.neighbours(self.trace.ts_ns(launch)))
            }
            // Launched before anything was annotated.
            None if slice.before_window => None,
            None => self.by_start(row, slice.start_ns),
        }
    }

    fn process(&self, row: Row) -> usize {
        self.trace.track_info(self.trace.track(row)).process.0 as usize
    }

    fn device(&self, row: Row) -> Option<&Timeline> {
        self.of_device.get(self.process(row))
    }

    /// By the annotation whose id it carries, if that holds the launch: ids of ops and of annotations are not always
    /// distinct (PyTorch 1.8 to 1.10), and an annotation that begins later cannot have launched anything. Ids count
    /// within a process: in a file that was merged from several ranks the launch identifies the process.
    #[inline(never)]
    fn by_external(&self, row: Row, launch: Option<Row>, slice: &GpuSlice) -> Option<Found> {
        let external = self.trace.external(row)?;
        let at = self.externals.partition_point(|(known, _)| *known < external);
        let same = self.externals.get(at..)?.iter().take_while(|(known, _)| *known == external);
        let holds = |window: &StageWindow| match launch {
            Some(launch) => {
                let of = self.trace.track_info(window.track).process.0 as usize;
                let ns = self.trace.ts_ns(launch);
                of == self.process(launch) && window.start_ns <= ns && ns <= window.end_ns
            }
            None => window.start_ns <= slice.start_ns,
        };
        let mut own = same
            .map(|(_, index)| *index)
            .filter(|index| self.windows.get(*index as usize).is_some_and(holds));
        self.of_window(own.next()?)
    }

    /// By the thread that launched it.
    #[inline(never)]
    fn by_thread(&self, launch: Row) -> Option<Found> {
        let track = self.trace.track(launch).0 as usize;
        let ns = self.trace.ts_ns(launch);
        let found = self.inside(self.of_track.get(track)?, ns);
        if self.is_engine.get(track) != Some(&true) {
            return found;
        }
        // The script waits for the engine, so its annotation of weight gradients is about this work.
        let is_weight_grad = |found: &Found| found.stage == Stage::WeightGrad;
        let of_script = || self.inside(self.of_process.get(self.process(launch))?, ns);
        if let Some(found) =
            found.filter(is_weight_grad).or_else(|| of_script().filter(is_weight_grad))
        {
            return Some(found);
        }
        // A forward pass on the engine's thread computes again what the backward pass needs.
        let window = found.and_then(|found| found.window);
        Some(Found { stage: Stage::Backward, evidence: Evidence::Engine, window })
    }

    /// By what other threads of the launching process do, and by the place in a training step.
    #[inline(never)]
    fn by_process(&self, launch: Row) -> Option<Found> {
        let of_process = self.of_process.get(self.process(launch))?;
        let ns = self.trace.ts_ns(launch);
        self.inside(of_process, ns).or_else(|| {
            let passes = self.passes_of_process.get(self.process(launch))?;
            let Neighbours { before, after } = passes.neighbours(ns);
            let stage = |window: Option<(u32, i64)>| {
                window.and_then(|(index, _)| self.windows.get(index as usize)).map(|it| it.stage)
            };
            // What comes after a backward pass in one step is not the forward pass of the next.
            let after = after.filter(|(_, far_ns)| self.in_one_step(launch, *far_ns));
            // FSDP annotates what it does around the forward pass of each module: what lies between is the pass itself.
            let of_fsdp = |window: Option<(u32, i64)>| {
                let window = window.and_then(|(index, _)| self.windows.get(index as usize));
                let own = window.filter(|it| it.stage == Stage::Forward);
                own.is_some_and(|it| self.trace.strings.get(it.name).starts_with("FSDP::"))
            };
            if of_fsdp(before) && of_fsdp(after) {
                let (stage, evidence) = (Stage::Forward, Evidence::BeforeBackward);
                return Some(Found { stage, evidence, window: None });
            }
            let (stage, evidence) = match (stage(before), stage(after)) {
                (_, Some(Stage::Backward)) => (Stage::Forward, Evidence::BeforeBackward),
                (Some(Stage::Backward | Stage::WeightGrad), Some(Stage::Optimizer)) => {
                    (Stage::Optimizer, Evidence::BeforeOptimizer)
                }
                _ => return None,
            };
            Some(Found { stage, evidence, window: None })
        })
    }

    /// Whether no step of the profiler begins or ends from a launch to `far_ns` later.
    fn in_one_step(&self, launch: Row, far_ns: i64) -> bool {
        let ns = self.trace.ts_ns(launch);
        let at = (self.process(launch) as u32, ns);
        let next = self.step_bounds.partition_point(|bound| *bound <= at);
        let next = self.step_bounds.get(next).filter(|(process, _)| *process == at.0);
        next.is_none_or(|(_, bound_ns)| *bound_ns > ns.saturating_add(far_ns))
    }

    /// By its own start, because its launch is not recorded.
    #[inline(never)]
    fn by_start(&self, row: Row, start_ns: i64) -> Option<Found> {
        match self.device(row) {
            Some(of_device) if !of_device.is_empty() => self.near(of_device.neighbours(start_ns)),
            _ => self
                .inside(&self.of_cpu, start_ns)
                .or_else(|| self.near(self.of_cpu.neighbours(start_ns))),
        }
    }

    fn inside(&self, timeline: &Timeline, ns: i64) -> Option<Found> {
        self.of_window(timeline.at(ns)?)
    }

    #[inline(never)]
    fn near(&self, Neighbours { before, after }: Neighbours) -> Option<Found> {
        let (index, far_ns) = match (before, after) {
            (Some(before), Some(after)) if after.1 < before.1 => after,
            (before, after) => before.or(after)?,
        };
        let found = self.of_window(index)?;
        // Whatever a server launches belongs to some step of it. Between the passes of a training step there
        // is other work: data, metrics, logs.
        let near = far_ns <= NEAR_NS && !found.stage.is_training();
        near.then_some(Found { evidence: Evidence::Near, ..found })
    }

    fn of_window(&self, index: u32) -> Option<Found> {
        let window = self.windows.get(index as usize)?;
        let evidence = match window.side {
            Side::Cpu if window.is_op => Evidence::Op,
            Side::Cpu | Side::Gpu => Evidence::Annotation,
            Side::Engine => Evidence::Engine,
        };
        Some(Found { stage: window.stage, evidence, window: Some(index) })
    }
}
