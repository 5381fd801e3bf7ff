//! The stage that each GPU slice belongs to: prompt, decode, capture, or forward, backward, optimizer.
//!
//! Work is launched long before it runs, so a slice belongs to the window that holds its launch. In this
//! order, and the first that tells decides:
//!
//! 1. the annotation whose `External id` the slice carries;
//! 2. the window on the launching thread that holds the launch; all that a thread of the autograd engine
//!    launches is backward;
//! 3. the profiler's copy of an annotation on the slice's own stream. It stretches from the first to the
//!    last slice of the annotation, so it may also hold what another thread launched in between: that is why
//!    it stands behind the launch (in four training traces the two never disagree on 4 614 slices that have
//!    both);
//! 4. a window of another thread of the launching process, then one of another stream of the device;
//! 5. the place in a training step: what is launched before a backward pass is forward (the loss, too),
//!    what is launched between backward and optimizer is the optimizer's (clipping, scaling);
//! 6. for serving, the nearest window within [`NEAR_NS`];
//! 7. the file's name, unless an annotation contradicts it.

mod file_name;
mod find;
mod grammar;
pub(crate) mod pace;
mod rows;
mod timeline;
mod windows;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use trace::{Trace, TrackId};

use self::find::{Evidence, Finder};
use self::windows::{StageWindow, Windows};
use crate::gpu::Gpu;
use crate::launches::Launches;

pub use self::rows::StageRow;

/// How far a window may lie away from a slice that it still names.
const NEAR_NS: i64 = 20_000_000;

/// A stage of serving or training.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Prompts go through the model.
    Extend,
    /// One token, or a few, per request.
    Decode,
    /// Both in one step.
    Mixed,
    /// A graph is captured.
    Capture,
    /// The forward pass and the loss.
    Forward,
    /// The backward pass.
    Backward,
    /// The optimizer, and what stands between it and the backward pass.
    Optimizer,
    /// No stage is known.
    #[default]
    All,
}

impl Stage {
    /// Every stage, in the order of tables.
    pub const EVERY: [Self; 8] = [
        Self::Extend,
        Self::Decode,
        Self::Mixed,
        Self::Capture,
        Self::Forward,
        Self::Backward,
        Self::Optimizer,
        Self::All,
    ];

    /// The word for it in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Extend => "extend",
            Self::Decode => "decode",
            Self::Mixed => "mixed",
            Self::Capture => "capture",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
            Self::All => "all",
        }
    }

    /// The word for it where a person reads.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Extend => "extend/prefill",
            other => other.id(),
        }
    }

    pub(crate) fn is_training(self) -> bool {
        matches!(self, Self::Forward | Self::Backward | Self::Optimizer)
    }
}

/// Everything in a trace that tells a stage, by start.
pub(crate) fn windows_of(trace: &Trace) -> Vec<StageWindow> {
    windows::windows(trace).windows
}

/// The requests in the batch of the innermost window on `track` at `ns` that tells them.
pub(crate) fn requests_at(windows: &[StageWindow], track: TrackId, ns: i64) -> Option<u64> {
    let begun = windows.partition_point(|window| window.start_ns <= ns);
    let holds = |window: &&StageWindow| window.track == track && window.end_ns >= ns;
    windows[..begun].iter().rev().filter(holds).find_map(|window| window.load.requests)
}

/// The stage of every GPU slice.
pub(crate) struct Stages {
    /// Everything that tells a stage, by start.
    pub(crate) windows: Vec<StageWindow>,
    is_engine: Vec<bool>,
    of_slice: Vec<Stage>,
    /// Slices by stage and evidence.
    tally: [[u64; Evidence::COUNT]; Stage::EVERY.len()],
}

impl Stages {
    /// Finds the stage of every slice of `gpu`. `file_name` is the trace's name, with folders if they are
    /// known.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, launches: &Launches, file_name: Option<&str>) -> Self {
        let trace = gpu.trace;
        let Windows { mut windows, is_engine } = windows::windows(trace);
        let of_file = file_name
            .and_then(file_name::stage_of_path)
            .filter(|of_file| windows.iter().all(|window| window.stage == *of_file));
        let mut of_slice = vec![Stage::All; gpu.len()];
        let mut tally = [[0; Evidence::COUNT]; Stage::EVERY.len()];
        let mut used = vec![0_u64; windows.len()];
        let finder = Finder::new(gpu, launches, &windows, &is_engine);
        let mut at = 0;
        gpu.each_slice(|slice| {
            let mut found = finder.find(at, &slice);
            if let (Some(of_file), None) = (of_file, found.evidence.tells()) {
                (found.stage, found.evidence) = (of_file, Evidence::FileName);
            }
            of_slice[at] = found.stage;
            tally[found.stage as usize][found.evidence as usize] += 1;
            if let Some(window) = found.window {
                used[window as usize] += 1;
            }
            at += 1;
        });
        for (window, used) in windows.iter_mut().zip(used) {
            window.n_slices = used;
        }
        Self { windows, is_engine, of_slice, tally }
    }

    /// The stage of a GPU slice.
    pub(crate) fn stage(&self, slice: usize) -> Stage {
        self.of_slice.get(slice).copied().unwrap_or_default()
    }
}
