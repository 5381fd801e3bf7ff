//! Where an allocation comes from: the line of the program, and the phase of a training step.

mod frames;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::amounts::size;
use crate::model::{Action, Snapshot};
use crate::stacks::StackId;

pub(crate) use crate::library::{is_library, is_python};
pub(crate) use crate::phase::{ByPhase, Phase, as_reference};
pub(crate) use frames::{MOVE, OFFLOAD, Texts, Update};

/// The site of a stack without frames.
pub(crate) const NO_STACK: &str = "<no stack>";
/// The site of what libraries of CUDA keep for themselves, whichever line called them first.
pub(crate) const WORKSPACE: &str = "<library workspace> cuBLAS";
/// The same where no frame of C++ tells it: the line that calls cuBLAS first allocates it.
const BY_SIZE: &str = "<library workspace> cuBLAS (probable, by its size)";
/// The bytes of the default workspace of cuBLAS: 2 of 4 MiB and 8 of 16 KiB, `:4096:2:16:8`
/// (`aten/src/ATen/cuda/CublasHandlePool.cpp`, `parseChosenWorkspaceSize`); 32 MiB from Hopper on.
pub(crate) const WORKSPACE_BYTES: i64 = (2 * 4096 + 8 * 16) << 10;
/// Blocks of that size on a device that may be workspaces: one per handle and stream. Of more of them some are tensors.
pub(crate) const MOST_WORKSPACES: usize = 2;
/// The site of what a compiler allocates to time kernels.
pub(crate) const BENCHMARK: &str = "<compilation> benchmarks of autotuning";

/// The site of what the engine of autograd allocates to look for NaN, where `torch.autograd.set_detect_anomaly` is on
/// (`torch/csrc/autograd/engine.cpp`, `call_function`).
pub(crate) const ANOMALY: &str = "<anomaly detection> checks for NaN";

/// The site of what the engine of autograd sums a gradient into where an operand was broadcast (`torch/csrc/autograd/input_metadata.cpp`,
/// `reduce_grad`).
const REDUCED: &str = "<autograd> reduce_grad";

/// Call sites that are listed.
pub(crate) const MOST_SITES: usize = 20;

/// Sites and phases of all stacks of a snapshot.
#[derive(Debug)]
pub(crate) struct Sites {
    names: Vec<String>,
    of_stack: Vec<Place>,
    /// Whether blocks of the size of a workspace are few enough to be some.
    has_workspaces: bool,
}

/// Of a stack: site, the site of the reference program, phase, whether all of its frames are of Python.
type Place = (u32, u32, Phase, bool);

/// Bytes of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SiteRow {
    /// File, line and function; or a node of autograd.
    pub(crate) site: String,
    /// Bytes.
    pub(crate) bytes: i64,
    /// Blocks or allocations.
    pub(crate) count: u64,
    /// Of the sites that hold most at the peak, and that call a package: the deepest frame of it with at least half of the bytes,
    /// and these bytes.
    #[serde(skip)]
    pub(crate) inside: Option<(String, i64)>,
    /// Of a site with nearly all bytes: the lines of the program that call it, with their bytes, most first.
    #[serde(skip)]
    pub(crate) callers: Vec<(String, i64)>,
}

/// What is inside of a call site, as the end of a sentence about its bytes.
#[inline(never)]
pub(crate) fn of_it_in(inside: Option<&(String, i64)>) -> String {
    inside
        .map_or_else(String::new, |(frame, bytes)| format!(" ({} of it in {frame})", size(*bytes)))
}

/// Whether a call site is a cause that a person can change: neither unknown nor a library or a compiler that allocates for itself.
pub(crate) fn is_line(site: &str) -> bool {
    ![NO_STACK, WORKSPACE, BY_SIZE, BENCHMARK, ANOMALY].contains(&site)
}

/// Whether each device has few blocks of the size of a workspace, in the recording and at its end.
#[inline(never)]
fn has_workspaces(snapshot: &Snapshot) -> bool {
    let mut counts: Vec<(i64, usize)> = Vec::new();
    for segment in &snapshot.segments {
        let blocks = snapshot.blocks_of(segment).iter();
        let n = blocks.filter(|it| it.is_active() && it.size == WORKSPACE_BYTES).count();
        match counts.iter_mut().find(|(device, _)| *device == segment.device) {
            Some((_, count)) => *count += n,
            None => counts.push((segment.device, n)),
        }
    }
    let of_trace = snapshot.traces.iter().map(|trace| {
        let births = trace.iter().filter(|it| it.action == Action::Alloc);
        births.filter(|it| it.size == WORKSPACE_BYTES).count()
    });
    of_trace.chain(counts.iter().map(|it| it.1)).all(|n| n <= MOST_WORKSPACES)
}

impl Sites {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let stacks = &snapshot.stacks;
        let mut ids: BTreeMap<String, u32> = BTreeMap::new();
        let mut names = Vec::new();
        let mut texts = Texts::of(stacks);
        let of_stack = (0..stacks.len())
            .map(|stack| {
                let frames = stacks.frames(stack as StackId);
                let mut id = |name: String| {
                    *ids.entry(name).or_insert_with_key(|name| {
                        names.push(name.clone());
                        (names.len() - 1) as u32
                    })
                };
                let reference = id(texts.site(frames));
                let site = texts.cause(frames).map_or(reference, id);
                (site, reference, texts.phase(frames), texts.is_python(frames))
            })
            .collect();
        names.push(BY_SIZE.to_owned());
        Self { names, of_stack, has_workspaces: has_workspaces(snapshot) }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn n_stacks(&self) -> usize {
        self.of_stack.len()
    }

    pub(crate) fn name(&self, site: usize) -> &str {
        self.names.get(site).map_or(NO_STACK, String::as_str)
    }

    pub(crate) fn is_line(&self, site: usize) -> bool {
        is_line(self.name(site))
    }

    pub(crate) fn site(&self, stack: StackId) -> usize {
        self.of_stack.get(stack as usize).map_or(0, |(site, ..)| *site as usize)
    }

    pub(crate) fn phase(&self, stack: StackId) -> Phase {
        self.of_stack.get(stack as usize).map_or(Phase::Unknown, |(_, _, phase, _)| *phase)
    }
}

/// Bytes and blocks by site.
type SiteSums = Vec<(i64, u64)>;

/// Sums by site and by phase.
pub(crate) struct Sums<'a> {
    sites: &'a Sites,
    sums: SiteSums,
    /// By the sites of the reference program.
    references: SiteSums,
    pub(crate) phases: ByPhase,
}

impl<'a> Sums<'a> {
    pub(crate) fn new(sites: &'a Sites) -> Self {
        let sums = vec![(0, 0); sites.len()];
        Self { sites, references: sums.clone(), sums, phases: ByPhase::new() }
    }

    pub(crate) fn add(&mut self, stack: StackId, bytes: i64) {
        let (mut site, reference, _, is_python) =
            self.sites.of_stack.get(stack as usize).copied().unwrap_or_default();
        if is_python && bytes == WORKSPACE_BYTES && self.sites.has_workspaces {
            site = self.sites.len().saturating_sub(1) as u32;
        }
        for (sums, at) in [(&mut self.sums, site), (&mut self.references, reference)] {
            if let Some((sum, count)) = sums.get_mut(at as usize) {
                *sum = sum.saturating_add(bytes);
                *count += 1;
            }
        }
        let phase = self.phases.entry(self.sites.phase(stack)).or_default();
        *phase = phase.saturating_add(bytes);
    }

    /// The sites with most bytes, most first, then by name.
    pub(crate) fn rows(&self) -> Vec<SiteRow> {
        self.rows_of(&self.sums)
    }

    /// The first of those of the reference program, which has no cause but a line.
    pub(crate) fn references(&self) -> Vec<SiteRow> {
        let mut rows = self.rows_of(&self.references);
        rows.truncate(MOST_SITES);
        rows
    }

    #[inline(never)]
    fn rows_of(&self, sums: &SiteSums) -> Vec<SiteRow> {
        let mut rows: Vec<_> = sums.iter().enumerate().filter(|(_, sum)| sum.1 > 0).collect();
        rows.sort_by(|(a, x), (b, y)| {
            y.0.cmp(&x.0).then_with(|| self.sites.name(*a).cmp(self.sites.name(*b)))
        });
        let row = |(site, sum): (usize, &(i64, u64))| SiteRow {
            site: self.sites.name(site).to_owned(),
            bytes: sum.0,
            count: sum.1,
            inside: None,
            callers: Vec::new(),
        };
        rows.into_iter().map(row).collect()
    }
}
