//! What may be advised about a find: the facts of its place, the gates of the remedies, and what it is worth.

use catalog::remedies::{Execution, Mask, Optimizer, Phase, Remedy, RunFacts, applicable, remedy};
use catalog::{Category, Family};
use trace::Trace;

use super::find::{Candidate, Sought};
use super::lanes::Lanes;
use super::names::Names;
use super::removed::removed;
use super::{Ground, related, related_ns};
use crate::site::Attribution;
use timeline::launches::Launches;
use wall::Removed;

/// What can be done about a candidate.
pub(super) struct Advice {
    /// The remedies whose gates are open.
    pub remedies: Vec<&'static Remedy>,
    /// Where the fused kernel is, or what replaces the parts.
    pub path: String,
    /// The wall time that goes away at most.
    pub saved_ns: i64,
    /// What that rests on.
    pub rule: Rule,
    /// What goes away, by slice.
    pub removed: Vec<Removed>,
}

/// What the estimate of an advice rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    /// Launches that go away, and the sum of their CPU times, where single launches are recorded.
    pub launches: Option<(u64, i64)>,
    /// Whether they make most of what is saved.
    pub is_mostly_launches: bool,
    /// Whether some of these times are those of functions of Python.
    pub by_frames: bool,
    /// Time that goes away on the device and does not shorten the run, where that is much: the rest is launched no earlier.
    pub held_ns: Option<i64>,
    /// The gaps between kernels that go away with them: time in which the GPU does nothing.
    pub gaps_ns: i64,
    /// For attention: the sum of the least times of the fused kernels, if it is known.
    pub attention_ns: Option<Option<i64>>,
    /// For collectives in a row: the latency of each.
    pub latency_ns: Option<i64>,
    /// So many launches were interrupted, and count with the median of their equals.
    pub interrupted: Option<u64>,
    /// One pass over each tensor stays.
    pub one_pass: bool,
    /// The time of kernels that others replace, and of the convolutions among them: what those take is not known, so none of it goes away.
    pub twins: Option<(i64, i64)>,
    /// Kernels of the backward pass that go away with those of the forward pass, and their exposed time.
    pub nodes: Option<(u64, i64)>,
    /// Additions to gradients that go away with the fills, and their exposed time.
    pub added: Option<(u64, i64)>,
}

/// The advice about a candidate; `None` where no remedy applies.
#[inline(never)]
pub(super) fn advice(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> Option<Advice> {
    if candidate.split.is_empty() || has_left_nothing(candidate) {
        return None;
    }
    let facts = facts(lanes, launches, attribution, ground, candidate);
    let (remedies, path) = match candidate.sought {
        Sought::Pattern(pattern) => {
            let row = remedy("framework-kernel").filter(|_| pattern.closed(&facts).is_none())?;
            (vec![row], pattern.fused_path())
        }
        Sought::Chain(chain) => {
            let mut remedies = applicable(chain.remedies, &facts);
            if chain.id == "K11" && is_outside_modules(lanes, attribution, candidate) {
                remedies.retain(|remedy| remedy.id != COMPILE);
            }
            let names: Vec<&str> = remedies.iter().map(|remedy| remedy.what).collect();
            let path = names.join("; ");
            (remedies, path)
        }
    };
    if remedies.is_empty() {
        return None;
    }
    let (removed, mut rule) = removed(lanes, launches, attribution, ground, candidate);
    let saved_ns = ground.wall.saved_without(&removed);
    if rule.launches.is_some() {
        let by_launches_ns = by_launches_ns(ground, &removed, saved_ns);
        if by_launches_ns.saturating_mul(100) <= saved_ns {
            rule.launches = None;
        }
        rule.is_mostly_launches = by_launches_ns.saturating_mul(2) > saved_ns;
    }
    rule.held_ns = held_ns(gone_ns(&removed, &rule), saved_ns);
    Some(Advice { remedies, path, saved_ns, rule, removed })
}

/// The remedy that compiles a module.
pub(super) const COMPILE: &str = "torch-compile";

/// Whether most of the kernels come from functions that no module calls, as the statistics of a loop do: there is no module to compile.
fn is_outside_modules(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    candidate: &Candidate,
) -> bool {
    let Some(attribution) = attribution else { return false };
    let (mut all_ns, mut outside_ns) = (0_i64, 0_i64);
    for at in related(candidate) {
        let site = attribution.site(at as usize);
        if site.location.is_some() {
            let dur_ns = lanes.gpu.slice(at as usize).dur_ns;
            all_ns = all_ns.saturating_add(dur_ns);
            outside_ns += if site.modules.is_none() { dur_ns } else { 0 };
        }
    }
    outside_ns > 0 && outside_ns.saturating_mul(2) > all_ns
}

/// Whether the fused kernel runs as often as what is found beside it, by one name or function: that is other work of its neighbours, such
/// as the rotary embedding after a norm of queries and keys.
fn has_left_nothing(candidate: &Candidate) -> bool {
    candidate.groups.len() == 1 && candidate.active.len() >= candidate.split.len()
}

impl Advice {
    /// The GPU time that goes away.
    pub(super) fn gone_ns(&self) -> i64 {
        gone_ns(&self.removed, &self.rule)
    }
}

/// The GPU time that goes away: that of kernels. (Where launches come late, the gaps between them are longer than they are.)
fn gone_ns(removed: &[Removed], rule: &Rule) -> i64 {
    let all_ns = removed.iter().fold(0_i64, |sum, part| sum.saturating_add(part.gpu_ns));
    all_ns.saturating_sub(rule.gaps_ns).max(0)
}

/// How much of the time that goes away on the device shortens nothing; `None` where that is less than a tenth of it.
fn held_ns(gone_ns: i64, saved_ns: i64) -> Option<i64> {
    let held_ns = gone_ns.saturating_sub(saved_ns);
    (held_ns.saturating_mul(10) >= gone_ns && held_ns > 0).then_some(held_ns)
}

/// How much of what is saved the launches that go away make: where the CPU is ahead they save nothing.
fn by_launches_ns(ground: &Ground<'_>, removed: &[Removed], saved_ns: i64) -> i64 {
    let without: Vec<Removed> = removed.iter().map(|part| Removed { cpu_ns: 0, ..*part }).collect();
    saved_ns.saturating_sub(ground.wall.saved_without(&without))
}

/// Whether the gates of a framework's pattern are open, and the run is of a chain's type.
pub(super) fn is_possible(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> bool {
    match candidate.sought {
        Sought::Pattern(pattern) => {
            let facts = facts(lanes, launches, attribution, ground, candidate);
            pattern.closed(&facts).is_none()
        }
        Sought::Chain(chain) => chain.run.is_none_or(|run| ground.run.facts.run == Some(run)),
    }
}

/// The facts of a candidate's places; what differs among them is not known.
#[inline(never)]
pub(super) fn facts(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> RunFacts {
    let run = ground.run.facts;
    let names = Names::of(lanes, candidate);
    let optimizer = run.optimizer.filter(|optimizer| *optimizer != Optimizer::Other);
    let chain = match candidate.sought {
        Sought::Chain(chain) => Some(chain),
        Sought::Pattern(_) => None,
    };
    let stage = lanes.stages[candidate.stage].stage;
    // (Of work that a graph replays no sizes are recorded, but its annotation has the batch.)
    let of_pass = || ground.tokens.iter().find(|(of, _)| *of == stage).map(|(_, tokens)| *tokens);
    RunFacts {
        phase: match recomputes(again_ns(lanes, launches, ground, candidate), candidate, lanes) {
            true => Some(Phase::Forward),
            false => stage.phase(run.run),
        },
        norm: names.norm(chain.map_or("", |chain| chain.id)),
        activation: names.activation(),
        optimizer,
        mask: mask(lanes.gpu.trace, launches, attribution, ground, candidate, &names),
        attention_interface: Some(below_interface(attribution, candidate)),
        tokens: largest(ground, candidate).map(|(tokens, _)| tokens).or_else(of_pass),
        bytes: largest(ground, candidate).map(|(_, bytes)| bytes),
        execution: execution(lanes, launches, attribution, ground, candidate).or(run.execution),
        parts: names.parts(),
        zero_grad: chain.and_then(|chain| chain.zero_grad),
        // Sizes are recorded, tensors are not: equal sizes prove no equal inputs.
        equal_inputs: None,
        half: names.half(),
        faster_nhwc: chain
            .filter(|chain| chain.id == "K09")
            .and_then(|_| has_faster_nhwc(lanes, run.sm, candidate.stage)),
        group_norms: Some(has_group_norms(lanes, candidate)),
        ..run
    }
}

/// The time of a candidate's kernels that gradient checkpointing launches, when it runs the forward pass again.
pub(super) fn again_ns(
    lanes: &Lanes<'_>,
    launches: &Launches,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> i64 {
    let regions = &ground.run.recomputed;
    let is_again = |at: &u32| {
        launches.of_slice(*at as usize).is_some_and(|row| regions.hold(lanes.gpu.trace, row))
    };
    let own = related(candidate).filter(is_again);
    own.fold(0_i64, |sum, at| sum.saturating_add(lanes.gpu.slice(at as usize).dur_ns))
}

/// Whether that is most of their time: they are of the forward pass, in whichever stage they run.
fn recomputes(again_ns: i64, candidate: &Candidate, lanes: &Lanes<'_>) -> bool {
    again_ns > 0 && again_ns.saturating_mul(2) > related_ns(lanes, candidate)
}

/// The first compute capability, times ten, with tensor cores, which take 16-bit floats ("NVIDIA Tesla V100 GPU Architecture", white
/// paper).
const TENSOR_CORES: u32 = 70;
/// The first whose tensor cores take 32-bit floats, as TF32 ("NVIDIA Ampere Architecture", white paper).
const TF32: u32 = 80;

/// Whether the GPU has faster convolutions for images whose channels come last; `None` where it is not known what the GPU is. Those are
/// of tensor cores ("Channels Last Memory Format in PyTorch", tutorial): a GPU before TF32 has none for 32-bit floats.
fn has_faster_nhwc(lanes: &Lanes<'_>, sm: Option<u32>, stage: usize) -> Option<bool> {
    // (Where the file does not name the GPU, kernels of its libraries name a generation that it has at least.)
    let named = || {
        let names = lanes.gpu.works.iter().map(|work| lanes.gpu.trace.strings.get(work.name));
        names.filter_map(|name| catalog::architecture(name).1).max()
    };
    let sm = sm.or_else(named)?;
    let of_stage = lanes.runs.iter().filter(|run| run.stage == stage);
    let mut places = of_stage.flat_map(|run| run.from..run.to);
    let is_half = |at: usize| {
        let code = lanes.code(at);
        code.category == Category::Conv
            && catalog::facts(lanes.name_of(code.work)).dtype == Some("fp16")
    };
    Some(sm >= TF32 || sm >= TENSOR_CORES && places.any(is_half))
}

/// Whether the stage has a group norm for every second find or more.
fn has_group_norms(lanes: &Lanes<'_>, candidate: &Candidate) -> bool {
    let of_stage = lanes.runs.iter().filter(|run| run.stage == candidate.stage);
    let mut places = of_stage.flat_map(|run| run.from..run.to);
    let least = candidate.split.len().div_ceil(2).max(1);
    let is_norm = |at: &usize| catalog::is_group_norm(lanes.name_of(lanes.code(*at).work));
    places.by_ref().filter(is_norm).nth(least - 1).is_some()
}

/// What stands between the products of an attention. It is not known, so that nothing is advised, where the single ops are
/// PyTorch's own fallback of a fused attention, or where the products are no batched ones.
fn mask(
    trace: &Trace,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
    names: &Names,
) -> Option<Mask> {
    let own = &ground.run.own_attention;
    let launch = |at: u32| launches.of_slice(at as usize);
    let is_own = |at: u32| launch(at).is_some_and(|row| own.hold(trace, row));
    if related(candidate).any(is_own) {
        return None;
    }
    if biased(attribution, candidate) {
        return Some(Mask::Additive);
    }
    // A classifier multiplies before and after a softmax, too, but with aten::mm.
    let ops = related(candidate).filter_map(|at| attribution?.site(at as usize).cpu_op.as_deref());
    let mut products = ops.filter(|op| op.ends_with("mm")).peekable();
    let single = products.peek().is_some() && !products.any(|op| op.ends_with("bmm"));
    if single { None } else { names.mask() }
}

/// Whether the single ops are those of `eager_attention_forward` of Transformers: models that have it take their attention from
/// the interface of which `attn_implementation` chooses.
fn below_interface(attribution: Option<&Attribution>, candidate: &Candidate) -> bool {
    let Some(attribution) = attribution else { return false };
    related(candidate).any(|at| {
        let site = attribution.site(at as usize);
        let calls = site.stack.iter().map(String::as_str);
        let lines = calls.chain(site.location.iter().map(|line| line.function.as_str()));
        lines.into_iter().any(|line| line.contains("eager_attention_forward"))
    })
}

/// The most rows of the first input of the parts, and its bytes: the tokens of a step.
fn largest(ground: &Ground<'_>, candidate: &Candidate) -> Option<(u64, u64)> {
    let arguments = ground.arguments?;
    let mut most: Option<(u64, u64)> = None;
    for at in related(candidate) {
        let (sizes, bytes) = arguments.first_tensor(at as usize)?;
        let (rows, all) = (
            sizes.first().copied()?,
            sizes.iter().fold(1_u64, |all, size| all.saturating_mul(*size)),
        );
        let (tokens, size) = most.unwrap_or_default();
        most = Some((tokens.max(rows), size.max(all.saturating_mul(bytes))));
    }
    most
}

/// Whether a product adds a tensor on the way: `baddbmm` takes it as its first input.
fn biased(attribution: Option<&Attribution>, candidate: &Candidate) -> bool {
    let op = |at: u32| attribution?.site(at as usize).cpu_op.as_deref();
    related(candidate).any(|at| op(at).is_some_and(|op| op.contains("baddbmm")))
}

/// How the parts were launched.
fn execution(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> Option<Execution> {
    let trace = lanes.gpu.trace;
    let (mut graph, mut eager) = (false, false);
    for at in related(candidate) {
        let work = &lanes.gpu.works[lanes.code_of_slice(at).work as usize];
        let launch = launches.of_slice(at as usize);
        let site = attribution.map(|attribution| attribution.site(at as usize));
        let generated =
            |line: &String| line.contains("torchinductor") || line.contains("_inductor/");
        if work.family == Family::Inductor
            || launch.is_some_and(|row| ground.run.compiled.hold(trace, row))
            || site.is_some_and(|site| site.stack.iter().any(generated))
        {
            return Some(Execution::Compiled);
        }
        match site {
            Some(site) if site.graph => graph = true,
            _ => eager |= launch.is_some(),
        }
    }
    match (graph, eager) {
        (true, _) => Some(Execution::Graph),
        (false, true) => Some(Execution::Eager),
        (false, false) => None,
    }
}
