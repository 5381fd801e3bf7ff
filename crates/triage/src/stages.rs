//! The stage of each GPU slice: prefill, decode, capture, or forward, backward, weight gradient, optimizer.
//!
//! Work is launched long before it runs, so a slice belongs to the window that contains its launch. The first of these
//! that applies decides:
//!
//! 1. the annotation whose `External id` the slice carries, if it contains the launch;
//! 2. the window on the launching thread that contains the launch. All launches of a thread of the autograd engine are
//!    backward, or weight gradient where the script's annotation says so;
//! 3. the profiler's copy of an annotation on the slice's own stream. It extends from the first to the last slice of
//!    the annotation, so it may contain work that another thread launched in between: therefore the launch comes first
//!    (in four training traces the two never disagree on 4 614 slices that have both);
//! 4. a window of another thread of the launching process, then one of another stream of the device;
//! 5. the position in a training step: work launched before a backward pass is forward (with the loss), work launched
//!    between backward and optimizer is the optimizer's (clipping, scaling). Clearing gradients marks no position;
//! 6. for serving, the nearest window within [`NEAR_NS`];
//! 7. the file's name, unless an annotation contradicts it.
//!
//! After 3 to 6, a kernel whose name says `backward` or `bwd` is backward, but only where the launch is not recorded or no
//! op of the autograd engine is: else the launching thread decides. Names that TorchInductor makes say nothing.

mod around;
mod file_name;
mod find;
mod grammar;
mod overlaid;
pub(crate) mod pace;
mod rows;
mod spans;
mod windows;

#[cfg(test)]
mod tests;

use catalog::remedies::{Phase, RunType};
use dialect::calls::launches_graph;
use serde::{Deserialize, Serialize};
use trace::{StringId, Trace, TrackId};

use self::find::{Evidence, Finder};
use self::windows::{StageWindow, Windows};
use timeline::gpu::Gpu;
use timeline::launches::Launches;

pub use self::rows::StageRow;

/// The largest distance of a window from a slice whose stage it gives.
const NEAR_NS: i64 = 20_000_000;

/// A stage of serving or training.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Prefill: prompts go through the model.
    Extend,
    /// One token, or a few, per request.
    Decode,
    /// Both in one step.
    Mixed,
    /// A graph is captured.
    Capture,
    /// The forward pass and the loss.
    Forward,
    /// The backward pass; where weight gradients are annotated, without them.
    Backward,
    /// Gradients of weights, where annotations or ops tell them apart from the rest of the backward pass.
    WeightGrad,
    /// The optimizer, and work between it and the backward pass.
    Optimizer,
    /// No stage was found.
    #[default]
    All,
}

impl Stage {
    /// Every stage, in the order of tables.
    pub const EVERY: [Self; 9] = [
        Self::Extend,
        Self::Decode,
        Self::Mixed,
        Self::Capture,
        Self::Forward,
        Self::Backward,
        Self::WeightGrad,
        Self::Optimizer,
        Self::All,
    ];

    /// Its id in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Extend => "extend",
            Self::Decode => "decode",
            Self::Mixed => "mixed",
            Self::Capture => "capture",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::WeightGrad => "weight-grad",
            Self::Optimizer => "optimizer",
            Self::All => "all",
        }
    }

    /// The part of a run that it is; `None` where it does not tell.
    pub(crate) fn phase(self, run: Option<RunType>) -> Option<Phase> {
        match self {
            Self::Extend | Self::Decode | Self::Mixed | Self::Forward => Some(Phase::Forward),
            Self::Backward | Self::WeightGrad => Some(Phase::Backward),
            Self::Optimizer => Some(Phase::Optimizer),
            Self::Capture => None,
            Self::All => (run == Some(RunType::Inference)).then_some(Phase::Forward),
        }
    }

    /// Its label in tables and sentences.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Extend => "extend/prefill",
            Self::WeightGrad => "weight gradient",
            Self::All => "no stage",
            other => other.id(),
        }
    }

    pub(crate) fn is_training(self) -> bool {
        matches!(self, Self::Forward | Self::Backward | Self::WeightGrad | Self::Optimizer)
    }
}

/// The stage of a pass of a serving engine, from the name of its annotation: decode of `step[DECODE bs=64]`. `None` for other
/// names, and for chores that belong to a stage.
#[must_use]
pub(crate) fn stage_of_pass(annotation: &str) -> Option<Stage> {
    let reading = grammar::read(annotation)?;
    let serves = matches!(reading.stage, Stage::Extend | Stage::Decode | Stage::Mixed);
    (reading.is_pass && serves).then_some(reading.stage)
}

/// Everything in a trace that marks a stage, by start.
pub(crate) fn windows_of(trace: &Trace) -> Vec<StageWindow> {
    windows::windows(trace).windows
}

/// The requests in the batch of the innermost window on `track` at `ns` that gives them.
pub(crate) fn requests_at(windows: &[StageWindow], track: TrackId, ns: i64) -> Option<u64> {
    let begun = windows.partition_point(|window| window.start_ns <= ns);
    let holds = |window: &&StageWindow| window.track == track && window.end_ns >= ns;
    windows[..begun].iter().rev().filter(holds).find_map(|window| window.load.requests)
}

/// The stage of every GPU slice.
pub(crate) struct Stages {
    /// Everything that marks a stage, by start.
    pub(crate) windows: Vec<StageWindow>,
    is_engine: Vec<bool>,
    /// Where steps begin and end on the CPU, as (process, time), sorted.
    step_bounds: Vec<(u32, i64)>,
    of_slice: Vec<Stage>,
    /// Of slices without evidence: the annotations that they were launched in, most slices first.
    around: Vec<(StringId, u64)>,
    /// Slices by stage and evidence.
    tally: [[u64; Evidence::COUNT]; Stage::EVERY.len()],
}

/// Graphs and single launches each take this share of GPU time at least where two kinds of steps run, in percent.
const MIXED_PCT: f64 = 20.0;

/// Whether a file holds steps of two kinds, so that its name is not that of all of them: a server decodes with graphs, and
/// prefills without.
#[inline(never)]
fn is_mixed(gpu: &Gpu<'_>, launches: &Launches) -> bool {
    let (mut graph_ns, mut all_ns) = (0_i64, 0_i64);
    for at in 0..gpu.len() {
        let ns = gpu.slice(at).dur_ns;
        let launch = launches.of_slice(at);
        let graph = launch.is_some_and(|row| launches_graph(gpu.trace.name_text(row)));
        all_ns = all_ns.saturating_add(ns);
        graph_ns = graph_ns.saturating_add(if graph { ns } else { 0 });
    }
    let share = timeline::percent(graph_ns, all_ns);
    (MIXED_PCT..=100.0 - MIXED_PCT).contains(&share)
}

impl Stages {
    /// The most tokens that a pass of each stage puts through the model, of the stages whose annotations tell it.
    pub(crate) fn most_tokens(&self, trace: &Trace) -> Vec<(Stage, u64)> {
        let most = |stage: Stage| {
            let passes = self.passes(trace, stage);
            passes.iter().map(|load| load.tokens).try_fold(0, |most, of| Some(most.max(of?)))
        };
        let mut found: Vec<(Stage, Option<u64>)> = Vec::new();
        for window in &self.windows {
            if found.iter().all(|(stage, _)| *stage != window.stage) {
                found.push((window.stage, most(window.stage)));
            }
        }
        let known = found.into_iter().filter_map(|(stage, tokens)| Some((stage, tokens?)));
        known.filter(|(_, tokens)| *tokens > 0).collect()
    }

    /// Finds the stage of every slice of `gpu`. `file_name` is the trace's name, with folders if
    /// available.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, launches: &Launches, file_name: Option<&str>) -> Self {
        let trace = gpu.trace;
        let found = windows::windows(trace);
        let windows = &found.windows;
        let of_file = file_name
            .and_then(file_name::stage_of_path)
            .filter(|of_file| windows.iter().all(|window| window.stage == *of_file))
            .filter(|_| !is_mixed(gpu, launches));
        let mut of_slice = vec![Stage::All; gpu.len()];
        let mut tally = [[0; Evidence::COUNT]; Stage::EVERY.len()];
        let mut used = vec![0_u64; windows.len()];
        let finder = Finder::new(gpu, launches, &found);
        let mut nowhere = Vec::new();
        let mut at = 0;
        gpu.each_slice(|slice| {
            let mut found = finder.find(at, &slice);
            if let (Some(of_file), None) = (of_file, found.evidence.tells()) {
                (found.stage, found.evidence) = (of_file, Evidence::FileName);
            }
            of_slice[at] = found.stage;
            tally[found.stage as usize][found.evidence as usize] += 1;
            if found.evidence == Evidence::Nothing {
                nowhere.push(at);
            }
            if let Some(window) = found.window {
                used[window as usize] += 1;
            }
            at += 1;
        });
        let Windows { mut windows, is_engine, step_bounds } = found;
        for (window, used) in windows.iter_mut().zip(used) {
            window.n_slices = used;
        }
        let around = around::annotations(gpu, launches, &nowhere);
        Self { windows, is_engine, step_bounds, of_slice, around, tally }
    }

    /// The stage of a GPU slice.
    pub(crate) fn stage(&self, slice: usize) -> Stage {
        self.of_slice.get(slice).copied().unwrap_or_default()
    }
}
