//! What may be advised about a find: the facts of its place, the gates of the remedies, and what it is worth.

use catalog::fuse_patterns::Keeps;
use catalog::remedies::{Execution, Mask, Optimizer, Remedy, RunFacts, applicable, remedy};
use catalog::{Category, Family};
use trace::Trace;

use super::find::{Candidate, Sought};
use super::lanes::Lanes;
use super::names::Names;
use super::{Ground, attention, related};
use crate::facts::phase;
use crate::site::Attribution;
use crate::wall::Removed;
use timeline::launches::Launches;

/// Longer pauses between two parts are no launch gaps, in ns.
const MOST_GAP_NS: i64 = 20_000;

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
    /// For attention: the sum of the least times of the fused kernels, if it is known.
    pub attention_ns: Option<Option<i64>>,
    /// For collectives in a row: the latency of each.
    pub latency_ns: Option<i64>,
    /// One pass over each tensor stays.
    pub one_pass: bool,
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
    if candidate.split.is_empty() {
        return None;
    }
    let facts = facts(lanes, launches, attribution, ground, candidate);
    let (remedies, path) = match candidate.sought {
        Sought::Pattern(pattern) => {
            let row = remedy("framework-kernel").filter(|_| pattern.closed(&facts).is_none())?;
            (vec![row], pattern.fused_path())
        }
        Sought::Chain(chain) => {
            let remedies = applicable(chain.remedies, &facts);
            let names: Vec<&str> = remedies.iter().map(|remedy| remedy.what).collect();
            let path = names.join("; ");
            (remedies, path)
        }
    };
    if remedies.is_empty() {
        return None;
    }
    let (removed, rule) = removed(lanes, launches, attribution, ground, candidate);
    let saved_ns = ground.wall.saved_without(&removed);
    Some(Advice { remedies, path, saved_ns, rule, removed })
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

/// The exposed time that a fused kernel does not take and the launches that go away, by slice. Communication stays: its bytes
/// have to go over the link all the same.
#[inline(never)]
fn removed(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> (Vec<Removed>, Rule) {
    let chain_is = |id| matches!(candidate.sought, Sought::Chain(chain) if chain.id == id);
    let (collectives, attention) = (chain_is("K15"), chain_is("K04"));
    let split_k = chain_is("K14");
    let keeps = match candidate.sought {
        Sought::Chain(chain) => chain.keeps,
        Sought::Pattern(_) => Keeps::Longest,
    };
    let gpu = lanes.gpu;
    let exposed_ns = |at: u32| ground.exposed_ns.get(at as usize).copied().unwrap_or_default();
    // Kernels of a graph have no launch of their own.
    let in_graph = |at: u32| attribution.is_some_and(|places| places.site(at as usize).graph);
    let is_launched = |at: u32| ground.wall.is_launched_alone(at) && !in_graph(at);
    let launch_ns = ground.wall.launch_ns(related(candidate).filter(|at| !in_graph(*at)));
    // The CPU time of a launch is that up to the next one of its thread. What comes after the last part is not known to be
    // the launch's: a median launch at most.
    let (trace, launch) = (gpu.trace, |at: u32| launches.of_slice(at as usize));
    let is_next = |at: u32, next: Option<u32>| {
        let (Some(row), Some(next)) = (launch(at), next.and_then(launch)) else { return false };
        let apart_ns = trace.ts_ns(next).saturating_sub(trace.ts_ns(row));
        trace.track(row) == trace.track(next) && apart_ns == ground.wall.spacing_ns(at)
    };
    let mut removed = Vec::new();
    let latency_ns = (keeps == Keeps::AllButLatency).then(|| latency_ns(lanes, candidate));
    let mut attention_ns = attention.then_some(Some(0_i64));
    for find in &candidate.split {
        let slices = &candidate.slices[find.from as usize..find.to as usize];
        let stays = |at: u32| {
            let work = lanes.code_of_slice(at).work as usize;
            gpu.works[work].category == Category::Communication && !collectives
        };
        let parts: Vec<u32> = slices.iter().copied().filter(|at| !stays(*at)).collect();
        let kept = if slices.len() > parts.len() { Vec::new() } else { kept(lanes, keeps, &parts) };
        let mut of_find = Vec::with_capacity(parts.len());
        for (nth, at) in parts.iter().enumerate() {
            let before = nth.checked_sub(1).map(|nth| parts[nth]);
            let gap_ns = before.filter(|before| before + 1 == *at).map_or(0, |before| {
                let gap_ns = gpu
                    .slice(*at as usize)
                    .start_ns
                    .saturating_sub(gpu.slice(before as usize).end_ns());
                if gap_ns > MOST_GAP_NS { 0 } else { gap_ns.max(0) }
            });
            let is_kept = kept.contains(at);
            let pass_of_add_ns = match keeps {
                Keeps::FourPasses => parts.first().map_or(0, |first| exposed_ns(*first) / 3),
                _ => 0,
            };
            let own_ns = match is_kept && !attention {
                true if keeps == Keeps::OnePass => {
                    exposed_ns(*at).saturating_sub(pass_ns(ground, *at)).max(0)
                }
                true => 0,
                // (Of an addition alone one of its three passes.)
                false if keeps == Keeps::FourPasses && parts.len() == 1 => pass_of_add_ns,
                false if nth + 1 == parts.len() => {
                    exposed_ns(*at).saturating_sub(pass_of_add_ns).max(0)
                }
                false => exposed_ns(*at),
            };
            let own_ns = own_ns.min(latency_ns.unwrap_or(i64::MAX));
            // (cuBLAS launches the fill of its GEMM itself, in next to no time.)
            let gone = !is_kept && !split_k && is_launched(*at);
            let spacing_ns = ground.wall.spacing_ns(*at);
            let cpu_ns = match launch_ns.filter(|_| gone) {
                Some(_) if is_next(*at, parts.get(nth + 1).copied()) => spacing_ns,
                median_ns => median_ns.unwrap_or_default().min(spacing_ns),
            };
            of_find.push(Removed { slice: *at, gpu_ns: own_ns.saturating_add(gap_ns), cpu_ns });
        }
        if attention {
            let least_ns = attention::least_ns(lanes, ground.arguments, ground.peak, &parts);
            attention_ns = attention_ns.map(|sum| Some(sum?.saturating_add(least_ns?)));
            let mut left_ns = least_ns.unwrap_or_default();
            for part in &mut of_find {
                let taken_ns = left_ns.min(part.gpu_ns);
                part.gpu_ns -= taken_ns;
                left_ns -= taken_ns;
            }
        }
        removed.append(&mut of_find);
    }
    trace::sort(&mut removed);
    removed.dedup_by_key(|part| part.slice);
    let times = || removed.iter().map(|part| part.cpu_ns).filter(|ns| *ns > 0);
    let n_launches = times().count() as u64;
    let launches = (n_launches > 0).then(|| (n_launches, times().fold(0, i64::saturating_add)));
    let one_pass = keeps == Keeps::OnePass;
    (removed, Rule { launches, attention_ns, latency_ns, one_pass })
}

/// How long it takes at least to read and write the first tensor of a slice's op once; 0 where its size or the memory's
/// bandwidth is not known.
fn pass_ns(ground: &Ground<'_>, at: u32) -> i64 {
    let tensor = ground.arguments.and_then(|arguments| arguments.first_tensor(at as usize));
    let (Some((sizes, bytes)), Some(peak)) = (tensor, ground.peak) else { return 0 };
    let moved = 2.0 * sizes.iter().map(|size| *size as f64).product::<f64>() * bytes as f64;
    (moved / peak.gb_per_s) as i64
}

/// How long a kernel of these takes whatever it moves: one in twenty is shorter.
fn latency_ns(lanes: &Lanes<'_>, candidate: &Candidate) -> i64 {
    let mut times: Vec<i64> =
        related(candidate).map(|at| lanes.gpu.slice(at as usize).dur_ns).collect();
    trace::sort(&mut times);
    times.get(times.len() / 20).copied().unwrap_or_default()
}

/// The parts of one place that a fused kernel takes as long as.
fn kept(lanes: &Lanes<'_>, keeps: Keeps, parts: &[u32]) -> Vec<u32> {
    let dur_ns = |at: u32| lanes.gpu.slice(at as usize).dur_ns;
    match keeps {
        Keeps::Nothing | Keeps::AllButLatency => Vec::new(),
        _ if parts.len() < 2 && keeps != Keeps::OnePass => Vec::new(),
        Keeps::Longest | Keeps::OnePass => {
            parts.iter().copied().max_by_key(|at| dur_ns(*at)).into_iter().collect()
        }
        Keeps::FourPasses => parts.first().copied().into_iter().collect(),
        Keeps::LargestName => {
            let work = |at: u32| lanes.code_of_slice(at).work;
            let times = super::rows::by_time(parts.iter().map(|at| (work(*at), dur_ns(*at))));
            let Some((most, _)) = times.first() else { return Vec::new() };
            // (One kernel for several operations has one name: of it, as many launches as the rarest name has.)
            let n_of = |name: u32| parts.iter().filter(|at| work(**at) == name).count();
            let fewest = times.iter().map(|(name, _)| n_of(*name)).min().unwrap_or_default();
            parts.iter().copied().filter(|at| work(*at) == *most).take(fewest).collect()
        }
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
    RunFacts {
        phase: phase(lanes.stages[candidate.stage].stage, run.run),
        norm: names.norm(chain.map_or("", |chain| chain.id)),
        activation: names.activation(),
        optimizer,
        mask: mask(lanes.gpu.trace, launches, attribution, ground, candidate, &names),
        attention_interface: Some(below_interface(attribution, candidate)),
        tokens: largest(ground, candidate).map(|(tokens, _)| tokens),
        bytes: largest(ground, candidate).map(|(_, bytes)| bytes),
        execution: execution(lanes, launches, attribution, ground, candidate).or(run.execution),
        parts: names.parts(),
        zero_grad: chain.and_then(|chain| chain.zero_grad),
        // Sizes are recorded, tensors are not: equal sizes prove no equal inputs.
        equal_inputs: None,
        half: names.half(),
        ..run
    }
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
