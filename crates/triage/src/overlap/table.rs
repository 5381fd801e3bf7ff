//! The overlap table: its rows and the note above them.

use std::cmp::Reverse;

use catalog::fuse_patterns::{ACTIVE, FusePattern, Text, patterns};
use catalog::remedies::{Remedy, RunFacts, RunType, applicable};
use catalog::{CopyRoute, copy_route, is_pageable, is_pinned};

use super::context::context;
use super::explain::{Figures, Saving, because, reason, signal};
use super::groups::{Group, StageSums, candidates, groups, is_judged, stages};
use super::note::note;
use super::risk::{Evidence, Neighbours, Risk, Surroundings};
use super::row::PINS;
use super::savings::Savings;
use super::sweep::{SliceOverlap, sweep};
use super::verdict::{Case, LEAST_NS, Lever, Verdict, at_least, decide};
use super::{Concurrency, Overlap, OverlapOptions, OverlapRow};
use crate::facts::Regions;
use crate::paced;
use crate::priority::Priority;
use crate::site::Attribution;
use crate::stages::Stage;
use timeline::gpu::Gpu;
use timeline::launches::Launches;
use timeline::percent;
use trace::{SmallIndex, StringId};
use wall::{Removed, Wall};

/// What overlaps, by stage and kernel name. `stage_of` gives the stage of each GPU slice.
#[inline(never)]
pub(crate) fn overlap(
    gpu: &Gpu<'_>,
    launches: &Launches,
    stage_of: &dyn Fn(usize) -> Stage,
    attribution: Option<&Attribution>,
    options: &OverlapOptions<'_>,
) -> Overlap {
    let class_of = |work: usize| gpu.work(work).category.overlap_class();
    let per_slice = sweep(gpu, class_of);
    let stage_of: Vec<Stage> = (0..gpu.len()).map(stage_of).collect();
    let stages = stages(gpu, &stage_of);
    let groups = groups(gpu, &per_slice, &stage_of, attribution);
    let unpaced = unpaced(gpu, &per_slice, &groups);
    let facts = Facts {
        gpu,
        per_slice: &per_slice,
        unpaced,
        attribution,
        surroundings: Surroundings::of(gpu, launches, attribution, options.details),
        savings: Savings::of(gpu, launches, &per_slice, &stage_of),
        wall: options.wall,
        facts: options.facts,
        collectives: Collectives {
            launches,
            hooks: options.gradient_hooks,
            sharded: is_sharded(gpu),
        },
        computes: computes(gpu),
        loads: has_name(gpu, &|name| name.contains("DataLoader")),
    };
    // (Its name says what a kernel could overlap with.)
    let is_named = |group: &&Group| {
        !group.instances.iter().any(|at| options.displaced.get(*at as usize) == Some(&true))
    };
    let mut rows = Vec::new();
    for stage in stages.iter().filter(|stage| is_judged(stage, &stages)) {
        let of_stage: Vec<&Group> = groups
            .iter()
            .filter(|group| group.stage == stage.stage && group.total_ns >= LEAST_NS)
            .filter(|group| percent(group.total_ns, stage.busy_ns) >= options.min_share_pct)
            .filter(is_named)
            .collect();
        for (verdict, group) in candidates(gpu, &of_stage, stage.n_streams < 2) {
            rows.push(row(&facts, stage, group, verdict));
        }
    }
    trace::sort_by(&mut rows, |a: &OverlapRow, b| {
        let saved = |row: &OverlapRow| row.priority.and(row.savings_bound_ns);
        let key = |row: &OverlapRow| {
            (Reverse(saved(row)), Priority::order(row.priority), Reverse(row.exclusive_ns))
        };
        key(a).cmp(&key(b)).then_with(|| a.kernel_name.cmp(&b.kernel_name))
    });
    let concurrency = Concurrency::of(&per_slice);
    let note = note(gpu, &per_slice, (&stages, &stage_of), &rows, options);
    Overlap { rows, concurrency, note, per_slice }
}

/// What every row is made from.
struct Facts<'a> {
    gpu: &'a Gpu<'a>,
    per_slice: &'a SliceOverlap,
    /// By copy from pageable memory, sorted: the exposed time after which no data loader waits for its workers as long.
    unpaced: Vec<(u32, i64)>,
    attribution: Option<&'a Attribution>,
    surroundings: Surroundings<'a>,
    savings: Savings<'a>,
    wall: Option<&'a Wall>,
    facts: RunFacts,
    collectives: Collectives<'a>,
    /// By stream: whether anything but copies and fills runs there.
    computes: Vec<bool>,
    /// Whether a data loader runs.
    loads: bool,
}

/// What tells who starts a collective.
struct Collectives<'a> {
    launches: &'a Launches,
    /// Where DistributedDataParallel starts its all-reduces.
    hooks: Option<&'a Regions>,
    /// FSDP runs: it schedules its collectives itself.
    sharded: bool,
}

/// Whether ranges of FSDP are recorded.
fn is_sharded(gpu: &Gpu<'_>) -> bool {
    has_name(gpu, &|name| {
        name.starts_with("FullyShardedDataParallel") || name.starts_with("FSDP::")
    })
}

/// Whether the trace has such a name.
fn has_name(gpu: &Gpu<'_>, wanted: &dyn Fn(&str) -> bool) -> bool {
    let strings = &gpu.trace.strings;
    (0..strings.len() as u32).any(|id| wanted(strings.get(StringId(id))))
}

/// What the gates of a collective's remedies ask for.
#[inline(never)]
fn collective_facts(facts: &Facts<'_>, group: &Group, name: &str) -> RunFacts {
    let Collectives { launches, hooks, sharded } = facts.collectives;
    let trace = facts.gpu.trace;
    let launched = |at: &u32| launches.of_slice(*at as usize);
    let hooked = |at: &&u32| {
        launched(at).is_some_and(|row| hooks.is_some_and(|hooks| hooks.hold(trace, row)))
    };
    let n_hooked = group.instances.iter().filter(hooked).count();
    let is_known = group.instances.iter().any(|at| launched(at).is_some())
        || facts.facts.run != Some(RunType::Training);
    let lower = name.to_ascii_lowercase();
    let reduces = lower.contains("allreduce") || lower.contains("all_reduce");
    let collective_f32 = if lower.contains("bfloat") || !reduces {
        None
    } else {
        Some(lower.contains("f32") || lower.contains("_float"))
    };
    RunFacts {
        ddp: (is_known && !sharded).then_some(2 * n_hooked >= group.instances.len()),
        collective_f32,
        ..facts.facts
    }
}

/// As many all-reduces of one kernel in a stage may be one for each parameter.
const MANY: usize = 64;
/// Half of them are this short, in ns: they move little.
const SMALL_NS: i64 = 100_000;
/// What helps copies where no data loader runs.
const COPIES: &[&str] = &["pin-host-tensor", "copy-stream"];
/// What helps many small collectives.
const MANY_SMALL: &[&str] = &["larger-buckets", "coalesced-collectives"];

/// What goes away if many small all-reduces become a few: the latency of each, which the shortest show, and the CPU time of its
/// launch. `None` where they are few or large.
#[inline(never)]
fn latency(facts: &Facts<'_>, group: &Group, lever: Lever, name: &str) -> Option<Vec<Removed>> {
    let lower = name.to_ascii_lowercase();
    let reduces = lower.contains("allreduce") || lower.contains("all_reduce");
    let trains = facts.facts.run == Some(RunType::Training);
    if lever != Lever::Overlap || !trains || !reduces || group.instances.len() < MANY {
        return None;
    }
    let dur_ns = |at: &u32| facts.gpu.slice(*at as usize).dur_ns;
    let mut times: Vec<i64> = group.instances.iter().map(dur_ns).collect();
    trace::sort(&mut times);
    if times.get(times.len() / 2).is_none_or(|middle| *middle > SMALL_NS) {
        return None;
    }
    let latency_ns = times.get(times.len() / 20).copied().unwrap_or_default();
    let wall = facts.wall?;
    let launch_ns = wall.launch_ns(group.instances.iter().copied()).unwrap_or_default();
    let removed = |at: &u32| Removed {
        slice: *at,
        gpu_ns: latency_ns.min(facts.per_slice.exclusive_ns[*at as usize]),
        cpu_ns: launch_ns.min(wall.spacing_ns(*at)),
    };
    Some(group.instances.iter().map(removed).collect())
}

/// By stream: whether anything but copies and fills runs there.
#[inline(never)]
fn computes(gpu: &Gpu<'_>) -> Vec<bool> {
    let mut computes = vec![false; gpu.trace.streams.len()];
    gpu.each_slice(|slice| {
        if let Some(known) = slice.stream.and_then(|id| computes.get_mut(usize::from(id.0))) {
            *known |= gpu.is_kernel(&slice);
        }
    });
    computes
}

/// Whether at least two of the copies are of comparable size: half of the longest or more, by duration. Then a later one may be
/// the input of the next batch.
fn is_repeated(gpu: &Gpu<'_>, group: &Group) -> bool {
    let dur_ns = |at: &u32| gpu.slice(*at as usize).dur_ns;
    let longest_ns = group.instances.iter().map(dur_ns).max().unwrap_or_default();
    let comparable = |at: &&u32| at_least(dur_ns(at), 50, longest_ns);
    group.instances.iter().filter(comparable).count() >= 2
}

/// What the gates of a copy's remedies ask for.
#[inline(never)]
fn copy_facts(facts: &Facts<'_>, group: &Group, name: &str) -> RunFacts {
    let pinned = match (is_pageable(name), is_pinned(name)) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    };
    let stream = |at: u32| facts.gpu.slice(at as usize).stream.map(|id| usize::from(id.0));
    let shared = |at: &u32| stream(*at).and_then(|id| facts.computes.get(id).copied());
    let n_shared = group.instances.iter().filter(|at| shared(at) == Some(true)).count();
    RunFacts {
        pinned,
        own_stream: Some(2 * n_shared < group.instances.len()),
        to_device: Some(copy_route(name) == CopyRoute::HostToDevice),
        ..facts.facts
    }
}

/// What could be done about the exposed time of a group.
struct Chance {
    /// The remedy whose gates are open.
    remedy: Option<&'static Remedy>,
    /// What the bound counts.
    saving: Saving,
    /// The wall time that the remedy saves at most; `None` without a remedy, and where nothing limits the bound.
    bound_ns: Option<i64>,
    /// What the bound leaves out, as it only makes the waits for the workers of a data loader longer, in ns.
    paced_ns: i64,
}

#[inline(never)]
fn chance(
    facts: &Facts<'_>,
    group: &Group,
    lever: Lever,
    name: &str,
    neighbours: &Neighbours,
) -> Chance {
    let Facts { gpu, per_slice, savings, wall, .. } = facts;
    let place = match lever {
        Lever::Copy => copy_facts(facts, group, name),
        Lever::Overlap => collective_facts(facts, group, name),
        Lever::Tune | Lever::None => facts.facts,
    };
    let latency = latency(facts, group, lever, name);
    let remedies = match lever {
        _ if latency.is_some() => MANY_SMALL,
        Lever::Copy if !facts.loads => COPIES,
        _ => lever.remedies(),
    };
    // (One copy has no later batch to prefetch.)
    let prefetches = lever != Lever::Copy || is_repeated(gpu, group);
    let remedy = applicable(remedies, &place).first().copied().filter(|_| prefetches);
    // Half the bytes take half the time at least; what runs next is not moved.
    let halves = remedy.is_some_and(|remedy| remedy.id == "ddp-compress");
    // The CPU waits in the call until pageable memory is copied: what it launches next comes sooner with the copy.
    let pins = remedy.is_some_and(|remedy| PINS.contains(&remedy.id));
    let paced_ns = if pins { paced_ns(facts, group) } else { 0 };
    let bound_ns = remedy.zip(*wall).and_then(|(_, wall)| {
        if pins {
            return Some(group.exclusive_ns.saturating_sub(paced_ns));
        }
        if let Some(latency) = &latency {
            return Some(wall.saved_without(latency));
        }
        if halves {
            let half = |at: &u32| (*at, per_slice.exclusive_ns[*at as usize] / 2);
            return Some(wall.saved_ns(&group.instances.iter().map(half).collect::<Vec<_>>()));
        }
        let copies = lever == Lever::Copy;
        // The input of a batch can be copied long before it is needed; a collective has to come before its consumer.
        let tied = if copies { &[][..] } else { neighbours.feeding.as_slice() };
        let removed =
            savings.removable(group.stage, &group.instances, &neighbours.slices, tied, copies)?;
        Some(wall.saved_ns(&removed))
    });
    let saving = match latency {
        Some(_) => Saving::Latency,
        None if halves => Saving::Half,
        None if pins => Saving::Pinned,
        None => Saving::Hidden,
    };
    Chance { remedy, saving, bound_ns, paced_ns }
}

/// What the waits for the workers of a data loader leave of the exposed time of copies from pageable memory, whatever their stage: pinned memory
/// is one change for all of them.
fn unpaced(gpu: &Gpu<'_>, per_slice: &SliceOverlap, groups: &[Group]) -> Vec<(u32, i64)> {
    let is_pageable = |group: &&Group| {
        let name = gpu.trace.strings.get(gpu.works[group.work].name);
        copy_route(name) == CopyRoute::HostToDevice && is_pageable(name)
    };
    let copies = groups.iter().filter(is_pageable).flat_map(|group| &group.instances);
    let mut left: Vec<(u32, i64)> =
        copies.map(|at| (*at, per_slice.exclusive_ns[*at as usize])).collect();
    // (Stages may take turns.)
    trace::sort(&mut left);
    if !left.is_empty() {
        paced::absorb(gpu, &mut left);
    }
    left
}

/// The exposed time of a group of such copies that only makes those waits longer: 0 where that is too little for a word.
fn paced_ns(facts: &Facts<'_>, group: &Group) -> i64 {
    let left_ns = |at: &u32| {
        let found = facts.unpaced.binary_search_by_key(at, |(at, _)| *at);
        found.map_or(0, |found| facts.unpaced[found].1)
    };
    let left = group.instances.iter().map(left_ns).sum::<i64>();
    let paced_ns = group.exclusive_ns.saturating_sub(left);
    // (Less is the difference between two calls for batches that are there.)
    let is_told = paced_ns.saturating_mul(paced::LEAST_TOLD) >= group.exclusive_ns;
    if is_told { paced_ns } else { 0 }
}

/// The row of a kernel.
#[inline(never)]
fn row(facts: &Facts<'_>, stage: &StageSums, group: &Group, verdict: Verdict) -> OverlapRow {
    let Facts { gpu, attribution, surroundings, wall, .. } = facts;
    let work = &gpu.works[group.work];
    let name = gpu.trace.strings.get(work.name);
    let lever = Lever::of(work.category, copy_route(name));
    let neighbours = surroundings.next_to(&group.instances);
    let risk = neighbours.risk();
    let Group { total_ns, exclusive_ns, hidden_ns, hidden_by_compute_ns, .. } = *group;
    let chance = chance(facts, group, lever, name, &neighbours);
    let worth =
        wall.zip(chance.bound_ns).and_then(|(wall, saved_ns)| Priority::of(saved_ns, wall.span_ns));
    let advised = chance.remedy.zip(worth).filter(|_| verdict == Verdict::Headroom);
    // (Nothing moves where only the bytes change.)
    let case_risk = if chance.saving == Saving::Hidden { risk } else { Risk::Low };
    let case = Case { lever, risk: case_risk, advised, total_ns, busy_ns: stage.busy_ns };
    let advice = decide(&case);
    let advised = advised.map(|(remedy, _)| remedy).filter(|_| advice.is_some());
    let (bound_ns, paced_ns) = (chance.bound_ns, chance.paced_ns);
    let judged = Judged { verdict, lever, advised, chance };
    let figures = figures(facts, stage, group, &neighbours, judged);
    let share_of = |n: u64| percent(n as i64, neighbours.n as i64);
    let longest = longest(gpu, group);
    let reason = reason(&figures);
    let what = advice.as_ref().map(|(priority, what)| (*priority, what.as_str()));
    let context = context(gpu, surroundings, *attribution, longest, what, &reason);
    OverlapRow {
        stage: stage.stage,
        device: gpu.device().to_owned(),
        priority: advice.as_ref().map(|(priority, _)| *priority),
        verdict,
        kernel_name: name.to_owned(),
        category: work.category,
        overlap_class: work.category.overlap_class(),
        python_scope: attribution.and_then(|places| scope(gpu, group, places)),
        dependency_risk: risk,
        total_ns,
        share_pct: percent(total_ns, stage.busy_ns),
        exclusive_ns,
        hidden_ns,
        hidden_by_compute_ns,
        exclusive_pct: percent(exclusive_ns, total_ns),
        hidden_pct: percent(hidden_ns, total_ns),
        hidden_by: figures.hidden_by.map(str::to_owned),
        savings_bound_ns: bound_ns,
        savings_pct: bound_ns.map(|ns| percent(ns, span_ns(facts))),
        n_instances: neighbours.n,
        tight_pct: share_of(neighbours.tight),
        waited_pct: (surroundings.evidence() != Evidence::None)
            .then(|| share_of(neighbours.waited)),
        formal_signal: signal(&figures),
        representative: gpu.row(longest),
        paced_ns,
        context,
        recommendation: advice.map(|(_, what)| what),
        reason,
        because: because(&figures),
        advised,
    }
}

/// What was decided about a group.
struct Judged {
    verdict: Verdict,
    lever: Lever,
    /// The remedy that is advised.
    advised: Option<&'static Remedy>,
    chance: Chance,
}

/// What the sentences of a row are made of.
fn figures<'a>(
    facts: &Facts<'a>,
    stage: &StageSums,
    group: &Group,
    neighbours: &'a Neighbours,
    judged: Judged,
) -> Figures<'a> {
    let Facts { gpu, per_slice, attribution, surroundings, wall, .. } = facts;
    let Judged { verdict, lever, advised, chance } = judged;
    let Chance { remedy, saving, bound_ns, paced_ns } = chance;
    let name = gpu.trace.strings.get(gpu.works[group.work].name);
    Figures {
        verdict,
        lever,
        risk: neighbours.risk(),
        advised,
        total_ns: group.total_ns,
        busy_ns: stage.busy_ns,
        exclusive_ns: group.exclusive_ns,
        hidden_ns: group.hidden_ns,
        hidden_by_compute_ns: group.hidden_by_compute_ns,
        hidden_by: hidden_by(gpu, group, per_slice),
        neighbours,
        waits: surroundings.evidence(),
        fused: (lever == Lever::None).then(|| fused(gpu, group, *attribution)).flatten(),
        savings: bound_ns.map(|ns| (ns, span_ns(facts))),
        span: wall.map_or_else(|| "the GPU span".to_owned(), Wall::span),
        linked: wall.is_some_and(|wall| wall.linked),
        pageable: lever == Lever::Copy && is_pageable(name),
        possible: remedy.is_some(),
        saving,
        paced_ns,
        one_stream: stage.n_used < 2,
    }
}

fn span_ns(facts: &Facts<'_>) -> i64 {
    facts.wall.map_or(0, |wall| wall.span_ns)
}

/// The first of the longest instances.
fn longest(gpu: &Gpu<'_>, group: &Group) -> usize {
    let dur_ns = |at: u32| gpu.slice(at as usize).dur_ns;
    let instances = group.instances.iter().copied();
    let longest = instances.reduce(|best, at| if dur_ns(at) > dur_ns(best) { at } else { best });
    longest.unwrap_or_default() as usize
}

/// The pattern whose fused kernel a group is, by its name or the op of its first instance.
fn fused(gpu: &Gpu<'_>, group: &Group, places: Option<&Attribution>) -> Option<&'static str> {
    let name = Text::kernel(&catalog::head(gpu.trace.strings.get(gpu.works[group.work].name)));
    let first = group.instances.first().zip(places);
    let op = first.and_then(|(at, places)| places.site(*at as usize).cpu_op.as_deref());
    let op = Text::op(op.unwrap_or_default());
    let is = |pattern: &&FusePattern| (pattern.roles(&name) | pattern.roles(&op)) & ACTIVE != 0;
    patterns().find(is).map(|pattern| pattern.title)
}

/// The name beside which its instances were hidden longest, each by its own weightiest partner.
#[inline(never)]
fn hidden_by<'a>(gpu: &Gpu<'a>, group: &Group, per_slice: &SliceOverlap) -> Option<&'a str> {
    let mut found: Vec<(SmallIndex, i64)> = group
        .instances
        .iter()
        .filter_map(|at| {
            Some((per_slice.partner[*at as usize]?, per_slice.hidden_ns[*at as usize]))
        })
        .collect();
    let (work, _) = heaviest(&mut found)?;
    Some(gpu.trace.strings.get(gpu.work(work.at()).name))
}

/// The place that most of the time comes from: a line of Python, else an op, else a launch.
#[inline(never)]
fn scope(gpu: &Gpu<'_>, group: &Group, places: &Attribution) -> Option<String> {
    let text = |site: u32| places.sites[site as usize].place();
    let of = |at: u32| (places.site_of[at as usize], gpu.slice(at as usize).dur_ns);
    let mut by_site: Vec<(u32, i64)> = group.instances.iter().map(|at| of(*at)).collect();
    trace::sort(&mut by_site);
    let mut by_place: Vec<(String, i64)> = Vec::new();
    for same in by_site.chunk_by(|a, b| a.0 == b.0) {
        let ns = same.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        by_place.extend(text(same[0].0).map(|place| (place, ns)));
    }
    heaviest(&mut by_place).map(|(place, _)| place)
}

/// The key with the largest sum; of equal ones the first by order.
fn heaviest<K: Ord + Clone>(found: &mut [(K, i64)]) -> Option<(K, i64)> {
    trace::sort(found);
    let mut best: Option<(K, i64)> = None;
    for same in found.chunk_by(|a, b| a.0 == b.0) {
        let ns = same.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        if best.as_ref().is_none_or(|(_, most)| ns > *most) {
            best = Some((same[0].0.clone(), ns));
        }
    }
    best
}
