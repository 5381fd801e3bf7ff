//! What is fused, and what could be: the tables of [`catalog::fuse_patterns`] looked up in stream order.
//!
//! Names alone prove little: a cache's number format in a template argument makes no cache write. So a
//! kernel is matched by the head of its name, its operator and its Python function; each part is another
//! kernel; the parts stand next to each other on one stream, or wait for each other on two; and only the time of
//! kernels that do counts.
//!
//! A find is advised only if a row of [`catalog::remedies`] applies to it and enough wall time would go away.

mod advice;
mod attention;
mod calls;
mod devices;
mod find;
mod gain;
mod handover;
mod inputs;
mod interrupted;
mod lanes;
mod names;
mod nodes;
mod removed;
mod row;
mod rows;

use catalog::architectures::Peak;
use catalog::fuse_patterns::{Framework as PatternFramework, FusePattern, patterns};

use super::arguments::Arguments;
use super::facts::{Regions, RunContext};
use super::framework::Framework;
use super::iterations::WarmSlices;
use super::own_frames::OwnFrames;
use super::site::Attribution;
use super::stages::Stage;
use crate::Priority;
use advice::Advice;
use find::{Candidate, Sought};
use lanes::Lanes;
use timeline::gpu::Gpu;
use timeline::launches::Launches;
use wall::Wall;

pub(crate) use devices::say_once;
pub(crate) use row::PRINTED_PCT;
pub use row::{FuseRow, FuseStatus, GainConfidence, PatternConfidence, Together};

/// What is known of the program, beside the trace's events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FuseContext<'a> {
    /// The framework; `None` if nothing tells.
    pub framework: Option<Framework>,
    /// Tensor parallel size.
    pub tp: Option<u32>,
    /// Name or path of the model.
    pub model: Option<&'a str>,
    /// What ops were called with, if it was read.
    pub arguments: Option<&'a Arguments>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fuse {
    /// What is advised, the most wall time first; then what is fused already.
    pub rows: Vec<FuseRow>,
    /// What was found and is not advised.
    pub note: Option<String>,
    /// What of that would go away on the device, and shortens nothing because what follows is launched no sooner.
    pub held: Option<String>,
    /// The slices of attention that is advised to be one kernel, sorted: no other advice saves their time, too.
    pub attention: Vec<u32>,
}

/// Finds what is fused and what could be. `stage_of` tells the stage of a GPU slice.
#[inline(never)]
pub(crate) fn fuse(
    gpu: &Gpu<'_>,
    launches: &Launches,
    stage_of: impl Fn(usize) -> Stage,
    attribution: Option<&Attribution>,
    context: &FuseContext<'_>,
    ground: &Ground<'_>,
) -> Fuse {
    let (lanes, judged) = judged(gpu, launches, stage_of, attribution, context, ground);
    let attention = judged.iter().filter(|(accepted, advice)| {
        let worth =
            advice.as_ref().and_then(|advice| Priority::of(advice.saved_ns, ground.wall.span_ns));
        worth.is_some()
            && matches!(accepted.candidate.sought, Sought::Chain(chain) if chain.id == "K04")
    });
    let mut attention: Vec<u32> =
        attention.flat_map(|(accepted, _)| related(&accepted.candidate)).collect();
    trace::sort(&mut attention);
    Fuse { attention, ..rows::rows(&lanes, attribution, &judged, ground.wall) }
}

/// What is found, each with what may be advised about it.
#[inline(never)]
fn judged<'a>(
    gpu: &'a Gpu<'a>,
    launches: &Launches,
    stage_of: impl Fn(usize) -> Stage,
    attribution: Option<&Attribution>,
    context: &FuseContext<'_>,
    ground: &Ground<'a>,
) -> (Lanes<'a>, Vec<(Accepted, Option<Advice>)>) {
    // Where nobody named the model, its modules do: `Qwen3DecoderLayer`.
    let modules = match (context.model, attribution) {
        (None, Some(attribution)) => modules(attribution),
        _ => String::new(),
    };
    let model = context.model.unwrap_or(&modules);
    let wanted = wanted(context, model);
    let zero_grad = &ground.run.zero_grad;
    let lanes = Lanes::of(gpu, launches, stage_of, attribution, &wanted, (zero_grad, ground.warm));
    let mut found = find::patterns(&lanes, &wanted);
    found.extend(find::chains(&lanes));
    found.iter_mut().for_each(|candidate| candidate.retain_named(ground.displaced));
    for candidate in &mut found {
        if !advice::is_possible(&lanes, launches, attribution, ground, candidate) {
            candidate.split.clear();
        }
    }
    let launched_in = |at: u32, regions: &Regions| {
        launches.of_slice(at as usize).is_some_and(|row| regions.hold(gpu.trace, row))
    };
    // (Autograd adds each gradient where it accumulates it: code of the engine, which nothing compiles or fuses.)
    let accumulates = |at: u32| launched_in(at, &ground.run.gradient_hooks);
    let fill = catalog::fuse_patterns::kind_named("fill");
    for candidate in &mut found {
        // (An optimizer's loop over parameters becomes one over lists of them, of any sizes.)
        if lanes.stages[candidate.stage].stage != Stage::Optimizer {
            let is_apart = |at| launched_in(at, &ground.run.products) || accumulates(at);
            inputs::split_by_elements(candidate, context.arguments, is_apart);
        }
        let Candidate { split, slices, .. } = candidate;
        split.retain(|find| {
            let parts = slices.get(find.from as usize..find.to as usize).unwrap_or_default();
            !parts.iter().any(|at| accumulates(*at))
                || !matches!(candidate.sought, Sought::Chain(chain) if chain.is_arithmetic())
        });
        inputs::judge(candidate, context.arguments);
        inputs::of_product(candidate, |at| {
            let launched = launches.of_slice(at as usize).is_some();
            let is_fill = lanes.code_of_slice(at).kinds.meets(fill);
            is_fill && launched && !launched_in(at, &ground.run.products)
        });
        attention::from_scores(&lanes, context.arguments, candidate);
        attention::with_surroundings(&lanes, context.arguments, candidate);
        calls::whole_calls(&lanes, context.arguments, candidate);
        attention::without_tiny(&lanes, context.arguments, candidate);
    }
    let accepted = accept(&lanes, found, is_named(context));
    let advised = |mut accepted: Accepted| {
        accepted.again_ns = advice::again_ns(&lanes, launches, ground, &accepted.candidate);
        let advice = advice::advice(&lanes, launches, attribution, ground, &accepted.candidate);
        (accepted, advice)
    };
    let judged = accepted.into_iter().map(advised).collect();
    (lanes, judged)
}

/// What advice is judged by.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// What holds for the whole run.
    pub run: &'a RunContext,
    /// What time is worth.
    pub wall: &'a Wall,
    /// The exposed time of each GPU slice.
    pub exposed_ns: &'a [i64],
    /// By GPU slice: whether its name may be another kernel's; empty where none is.
    pub displaced: &'a [bool],
    /// What ops were called with, if it was read.
    pub arguments: Option<&'a Arguments>,
    /// The most tokens of a pass of each stage, where annotations tell them.
    pub tokens: &'a [(Stage, u64)],
    /// What the device can do at most, if it is known.
    pub peak: Option<&'static Peak>,
    /// The frames of Python around launches.
    pub own_frames: Option<&'a OwnFrames<'a>>,
    /// The warm iterations, if what is found and saved is of these alone.
    pub warm: Option<WarmSlices<'a>>,
}

/// The framework, if it is known to be one that has patterns of its own.
fn framework(context: &FuseContext<'_>) -> Option<PatternFramework> {
    match context.framework? {
        Framework::Sglang => Some(PatternFramework::Sglang),
        Framework::Vllm => Some(PatternFramework::Vllm),
        Framework::Trtllm => Some(PatternFramework::TensorRtLlm),
        Framework::Tokenspeed => Some(PatternFramework::TokenSpeed),
        Framework::Unknown | Framework::Diffusers | Framework::Pytorch => None,
    }
}

/// Whether the framework is one that has patterns of its own.
fn is_named(context: &FuseContext<'_>) -> bool {
    !matches!(context.framework, None | Some(Framework::Unknown))
}

/// The patterns to look for: all if the framework is not known (the fused kernels of any may run), none in a program
/// without framework.
fn wanted(context: &FuseContext<'_>, model: &str) -> Vec<&'static FusePattern> {
    if matches!(context.framework, Some(Framework::Diffusers | Framework::Pytorch)) {
        return Vec::new();
    }
    let framework = framework(context);
    let is_for = |pattern: &&FusePattern| pattern.is_for(framework, context.tp, Some(model));
    patterns().filter(is_for).collect()
}

/// The classes of all modules that kernels come from.
fn modules(attribution: &Attribution) -> String {
    let mut classes: Vec<&str> =
        attribution.sites.iter().filter_map(|site| site.modules.as_deref()).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.join(" ")
}

/// As many kernels in one place are as telling as several places.
const MANY: usize = 64;

/// A candidate that stays, with what is left of it.
struct Accepted {
    candidate: Candidate,
    related_ns: i64,
    /// Of that, the time of the forward pass that gradient checkpointing runs again.
    again_ns: i64,
}

/// Of candidates that claim the same kernels, keeps the most telling. A kernel that is fused already may
/// still be a part of something larger, so that the two do not compete.
#[inline(never)]
fn accept(lanes: &Lanes<'_>, found: Vec<Candidate>, named: bool) -> Vec<Accepted> {
    let mut ranked: Vec<(Rank, Candidate)> = found
        .into_iter()
        .filter_map(|mut candidate| {
            if let Sought::Pattern(_) = candidate.sought {
                let (adjacent, all) = candidate.adjacency();
                if adjacent * 2 < all {
                    candidate.split.clear();
                }
            }
            is_enough(lanes, &candidate).then(|| (rank(lanes, &candidate, named), candidate))
        })
        .collect();
    trace::sort_by(&mut ranked, |(a, _), (b, _)| b.cmp(a));

    let n = lanes.gpu.len();
    let (mut in_split, mut in_active) = (vec![false; n], vec![false; n]);
    let mut subsumed: Vec<(usize, &str)> = Vec::new();
    let mut accepted = Vec::new();
    for (_, mut candidate) in ranked {
        let Candidate { split, active, slices, .. } = &mut candidate;
        split.retain(|find| {
            !slices[find.from as usize..find.to as usize].iter().any(|at| in_split[*at as usize])
        });
        active.retain(|at| !in_active[*at as usize]);
        let (id, subsumes) = match candidate.sought {
            Sought::Pattern(pattern) => (pattern.id, pattern.subsumes),
            Sought::Chain(chain) => (chain.id, ""),
        };
        if subsumed.contains(&(candidate.stage, id)) || !is_enough(lanes, &candidate) {
            continue;
        }
        subsumed.extend(subsumes.split_terminator(' ').map(|id| (candidate.stage, id)));
        for find in &candidate.split {
            for at in &candidate.slices[find.from as usize..find.to as usize] {
                in_split[*at as usize] = true;
            }
        }
        for at in &candidate.active {
            in_active[*at as usize] = true;
        }
        let related_ns = related_ns(lanes, &candidate);
        accepted.push(Accepted { candidate, related_ns, again_ns: 0 });
    }
    accepted
}

/// Slices whose time counts, each once.
fn related<'c>(candidate: &'c Candidate) -> impl Iterator<Item = u32> + 'c {
    let split = candidate
        .split
        .iter()
        .flat_map(|find| &candidate.slices[find.from as usize..find.to as usize]);
    // A kernel is either the fused one or a part, never both.
    split.chain(&candidate.active).copied()
}

fn related_ns(lanes: &Lanes<'_>, candidate: &Candidate) -> i64 {
    let dur_ns = |at: u32| lanes.gpu.slice(at as usize).dur_ns;
    related(candidate).fold(0_i64, |sum, at| sum.saturating_add(dur_ns(at)))
}

/// Whether a candidate says anything: the fused kernel runs, or its parts take enough time.
fn is_enough(lanes: &Lanes<'_>, candidate: &Candidate) -> bool {
    let (min_pct, min_times) = match candidate.sought {
        Sought::Pattern(pattern) => (pattern.min_pct, 1),
        Sought::Chain(chain) => (chain.min_pct, chain.min_times),
    };
    let share =
        || timeline::percent(related_ns(lanes, candidate), lanes.stages[candidate.stage].total_ns);
    // (An optimizer step of one kernel a parameter is one place, however long.)
    let often = candidate.split.len() >= min_times || candidate.slices.len() >= MANY;
    !candidate.active.is_empty() || (often && share() >= min_pct)
}

/// What makes a candidate more telling than another, first things first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// A framework's own kernel, where the framework is known; a general one, where it is not.
    fits: bool,
    priority: u8,
    span: usize,
    n_kernels: usize,
    related_ns: i64,
    /// The earlier row.
    id: std::cmp::Reverse<&'static str>,
}

fn rank(lanes: &Lanes<'_>, candidate: &Candidate, named: bool) -> Rank {
    let (is_pattern, priority, span, id) = match candidate.sought {
        Sought::Pattern(pattern) => {
            (true, pattern.priority, pattern.groups.len().max(1), pattern.id)
        }
        Sought::Chain(chain) => (false, chain.priority, 1, chain.id),
    };
    let mut works: Vec<u32> = related(candidate).map(|at| lanes.code_of_slice(at).work).collect();
    trace::sort(&mut works);
    works.dedup();
    Rank {
        fits: is_pattern == named,
        priority,
        span,
        n_kernels: works.len(),
        related_ns: related_ns(lanes, candidate),
        id: std::cmp::Reverse(id),
    }
}

#[cfg(test)]
mod tests;
