//! What goes away if a fused kernel replaces the parts of a candidate: exposed time, launch gaps and launches.

use std::collections::BTreeMap;

use catalog::Category;
use catalog::fuse_patterns::Keeps;
use trace::Row;

use super::advice::Rule;
use super::find::{Candidate, Sought};
use super::interrupted::interrupted;
use super::lanes::Lanes;
use super::nodes::slices_of_nodes;
use super::{Ground, attention, related};
use crate::site::Attribution;
use timeline::launches::Launches;
use wall::Removed;

/// A launch that takes this many times the median from one launch to the next sets something up.
const FIRST: i64 = 20;

/// Kernels that only pass over their tensors.
const PASSES: [Category; 8] = [
    Category::Norm,
    Category::Rope,
    Category::Softmax,
    Category::Activation,
    Category::Elementwise,
    Category::Reduce,
    Category::Layout,
    Category::Copy,
];

/// So many slices before one, that ahead of it on its stream is among them.
const NEAR: usize = 16;

/// Bytes of a value of 16 bits.
const HALF_BYTES: u64 = 2;

/// Matrix products of a fused attention in its backward and its forward pass: it computes the scores again (Dao, "FlashAttention-2", 2023).
const BACKWARD: i64 = 5;
const FORWARD: i64 = 2;

/// Longer pauses between two parts are no launch gaps, in ns.
const MOST_GAP_NS: i64 = 20_000;

/// The exposed time that a fused kernel does not take and the launches that go away, by slice. Communication stays: its bytes
/// have to go over the link all the same.
#[inline(never)]
pub(super) fn removed(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    ground: &Ground<'_>,
    candidate: &Candidate,
) -> (Vec<Removed>, Rule) {
    let fusion = Fusion::of(lanes, launches, attribution, ground, candidate);
    let mut removed = Vec::new();
    let mut attention_ns = fusion.attention.then_some(Some(0_i64));
    let mut gaps_ns = 0_i64;
    for find in &candidate.split {
        let slices = &candidate.slices[find.from as usize..find.to as usize];
        let parts: Vec<u32> = slices.iter().copied().filter(|at| !fusion.stays(*at)).collect();
        let kept = match slices.len() > parts.len() {
            true => Vec::new(),
            false => fusion.kept(&parts),
        };
        let mut of_find: Vec<Removed> =
            (0..parts.len()).map(|nth| fusion.part(&parts, &kept, nth)).collect();
        let gaps = parts.windows(2).map(|pair| fusion.gap_ns(pair[0], pair[1]));
        gaps_ns = gaps.fold(gaps_ns, i64::saturating_add);
        if fusion.attention {
            let least_ns = attention::least_ns(lanes, ground.arguments, ground.peak, &parts);
            attention_ns = attention_ns.map(|sum| Some(sum?.saturating_add(least_ns?)));
            leave(least_ns.unwrap_or_default(), &mut of_find);
        }
        removed.append(&mut of_find);
    }
    let mut nodes = None;
    if fusion.attention {
        let mut own = fusion.nodes(&removed);
        let ns = own.iter().fold(0_i64, |sum, one| sum.saturating_add(one.gpu_ns));
        nodes = Some((own.len() as u64, ns)).filter(|(n, _)| *n > 0);
        let least_ns = attention_ns.flatten().unwrap_or_default();
        leave(least_ns.saturating_mul(BACKWARD) / FORWARD, &mut own);
        if nodes.is_some() {
            attention_ns = attention_ns
                .map(|sum| sum.map(|ns| ns.saturating_add(ns.saturating_mul(BACKWARD) / FORWARD)));
        }
        removed.extend(own);
    }
    let mut added = None;
    if fusion.zero_grad {
        let additions = fusion.additions(removed.len());
        let ns = additions.iter().fold(0_i64, |sum, one| sum.saturating_add(one.gpu_ns));
        added = Some((additions.len() as u64, ns)).filter(|(n, _)| *n > 0);
        removed.extend(additions);
    }
    let mut twins = None;
    if fusion.layout {
        twins = Some(fusion.twins(candidate.stage)).filter(|(ns, _)| *ns > 0);
    }
    trace::sort(&mut removed);
    removed.dedup_by_key(|part| part.slice);
    let times = || removed.iter().map(|part| part.cpu_ns).filter(|ns| *ns > 0);
    let n_launches = times().count() as u64;
    let is_by_frame =
        |part: &Removed| part.cpu_ns > 0 && fusion.frame_ns(part.slice) == Some(part.cpu_ns);
    let by_frames = removed.iter().any(is_by_frame);
    let launches = (n_launches > 0).then(|| (n_launches, times().fold(0, i64::saturating_add)));
    let rule = Rule {
        launches,
        is_mostly_launches: false,
        by_frames,
        held_ns: None,
        gaps_ns,
        attention_ns,
        latency_ns: fusion.latency_ns,
        interrupted: fusion.n_interrupted(&removed),
        one_pass: fusion.keeps == Keeps::OnePass,
        twins,
        added,
        nodes,
    };
    (removed, rule)
}

/// Takes the time of the fused kernel from what goes away, the first parts first.
fn leave(mut left_ns: i64, parts: &mut [Removed]) {
    for part in parts {
        let taken_ns = left_ns.min(part.gpu_ns);
        part.gpu_ns -= taken_ns;
        left_ns -= taken_ns;
    }
}

/// A candidate, and what holds for all of its places.
struct Fusion<'a> {
    lanes: &'a Lanes<'a>,
    launches: &'a Launches,
    attribution: Option<&'a Attribution>,
    ground: &'a Ground<'a>,
    keeps: Keeps,
    attention: bool,
    /// Collectives in a row: the parts are communication.
    collectives: bool,
    split_k: bool,
    zero_grad: bool,
    /// A change of layout: batch norms and poolings run other kernels, too.
    layout: bool,
    /// The median CPU time of the launches.
    launch_ns: Option<i64>,
    /// No part saves more than this.
    latency_ns: Option<i64>,
    /// The parts that were interrupted, each with the median of its equals.
    interrupted: BTreeMap<u32, i64>,
}

impl<'a> Fusion<'a> {
    fn of(
        lanes: &'a Lanes<'a>,
        launches: &'a Launches,
        attribution: Option<&'a Attribution>,
        ground: &'a Ground<'a>,
        candidate: &Candidate,
    ) -> Self {
        let chain_is = |id| matches!(candidate.sought, Sought::Chain(chain) if chain.id == id);
        let keeps = match candidate.sought {
            Sought::Chain(chain) => chain.keeps,
            Sought::Pattern(_) => Keeps::Longest,
        };
        let launched = related(candidate).filter(|at| !in_graph(attribution, *at));
        Self {
            lanes,
            launches,
            attribution,
            ground,
            keeps,
            attention: chain_is("K04"),
            collectives: chain_is("K15"),
            split_k: chain_is("K14"),
            zero_grad: chain_is("K16"),
            layout: chain_is("K09"),
            launch_ns: ground.wall.launch_ns(launched),
            latency_ns: (keeps == Keeps::AllButLatency).then(|| latency_ns(lanes, candidate)),
            interrupted: interrupted(lanes, ground.arguments, candidate),
        }
    }

    /// The additions to gradients that were filled with zeros, one for each at most: without a gradient the engine keeps the new one. Of
    /// more, as where gradients are accumulated, those with most time.
    fn additions(&self, n_filled: usize) -> Vec<Removed> {
        let gpu = self.lanes.gpu;
        let adds = (0..gpu.len()).filter(|at| {
            let launch = self.launches.of_slice(*at);
            // (The reducer of DistributedDataParallel works there, too.)
            let is_add = gpu.works[gpu.slice(*at).work].category == Category::Elementwise;
            is_add
                && self.lanes.counts(*at)
                && launch.is_some_and(|row| self.ground.run.accumulates.hold(gpu.trace, row))
        });
        let mut found: Vec<Removed> = adds.map(|at| self.whole(at as u32)).collect();
        trace::sort_by_key(&mut found, |one| std::cmp::Reverse(one.gpu_ns + one.cpu_ns));
        found.truncate(n_filled);
        found
    }

    /// A slice that goes away with its launch.
    fn whole(&self, at: u32) -> Removed {
        let spacing_ns = self.ground.wall.spacing_ns(at);
        let cpu_ns = match self.ground.wall.is_launched_alone(at) {
            true => self.launch_ns.unwrap_or_default().min(spacing_ns),
            false => 0,
        };
        Removed { slice: at, gpu_ns: self.exposed_ns(at), cpu_ns }
    }

    /// The backward pass of what goes away.
    fn nodes(&self, removed: &[Removed]) -> Vec<Removed> {
        let mut gone: Vec<u32> = removed.iter().map(|one| one.slice).collect();
        trace::sort(&mut gone);
        let slices = slices_of_nodes(self.lanes.gpu, self.launches, &gone);
        slices.into_iter().map(|at| self.whole(at)).collect()
    }

    /// The exposed time of the kernels of a stage that have a twin for the other layout. They still do their work there, faster or slower, so
    /// that none of it is known to go away. With the part of convolutions.
    fn twins(&self, stage: usize) -> (i64, i64) {
        let lanes = self.lanes;
        let of_stage = lanes.runs.iter().filter(|run| run.stage == stage);
        let slices = of_stage.flat_map(|run| lanes.order.get(run.from..run.to)).flatten().copied();
        let name = |at: &u32| lanes.name_of(lanes.code_of_slice(*at).work);
        let twins = slices.filter(|at| catalog::is_channels_first(name(at)));
        twins.fold((0_i64, 0_i64), |(all_ns, of_convolutions_ns), at| {
            let ns = self.exposed_ns(at);
            let own_ns = if self.category(at) == Category::Conv { ns } else { 0 };
            (all_ns.saturating_add(ns), of_convolutions_ns.saturating_add(own_ns))
        })
    }

    fn exposed_ns(&self, at: u32) -> i64 {
        let ns = self.ground.exposed_ns.get(at as usize).copied().unwrap_or_default();
        // (Other streams may work in the same time.)
        let dur_ns = self.lanes.gpu.slice(at as usize).dur_ns;
        let ns = ns.min(dur_ns.saturating_sub(self.waits_ns(at)).max(0));
        ns.min(self.dur_ns(at))
    }

    /// How long a slice runs beside the one ahead of it on its stream: a kernel that starts before that ends (a dependent launch) waits for
    /// it, which is no work of its own.
    fn waits_ns(&self, at: u32) -> i64 {
        let gpu = self.lanes.gpu;
        let own = gpu.slice(at as usize);
        // (Slices of other streams may begin between the two.)
        let before = (0..at as usize).rev().take(NEAR).map(|before| gpu.slice(before));
        let mut before = before.filter(|ahead| own.stream.is_some() && ahead.stream == own.stream);
        let ahead = before.next();
        let until_ns = ahead.map_or(own.start_ns, |ahead| ahead.end_ns().min(own.end_ns()));
        until_ns.saturating_sub(own.start_ns).max(0)
    }

    /// Whether a slice is communication that no fused kernel replaces.
    fn stays(&self, at: u32) -> bool {
        self.category(at) == Category::Communication && !self.collectives
    }

    fn category(&self, at: u32) -> Category {
        self.lanes.gpu.works[self.lanes.code_of_slice(at).work as usize].category
    }

    /// How long a slice runs; one that was interrupted, as long as its equals.
    fn dur_ns(&self, at: u32) -> i64 {
        let dur_ns = self.lanes.gpu.slice(at as usize).dur_ns;
        self.interrupted.get(&at).map_or(dur_ns, |median_ns| dur_ns.min(*median_ns))
    }

    /// The parts of one place that a fused kernel takes as long as.
    fn kept(&self, parts: &[u32]) -> Vec<u32> {
        match self.keeps {
            Keeps::Nothing | Keeps::AllButLatency => Vec::new(),
            _ if parts.len() < 2 && self.keeps != Keeps::OnePass => Vec::new(),
            Keeps::Longest | Keeps::OnePass => {
                parts.iter().copied().max_by_key(|at| self.dur_ns(*at)).into_iter().collect()
            }
            Keeps::FourPasses => parts.first().copied().into_iter().collect(),
            Keeps::LargestName => {
                let work = |at: u32| self.lanes.code_of_slice(at).work;
                let times = parts.iter().map(|at| (work(*at), self.dur_ns(*at)));
                let times = super::rows::by_time(times);
                let Some((most, _)) = times.first() else { return Vec::new() };
                // (One kernel for several operations has one name: of it, as many launches as the rarest name has.)
                let n_of = |name: u32| parts.iter().filter(|at| work(**at) == name).count();
                let fewest = times.iter().map(|(name, _)| n_of(*name)).min().unwrap_or_default();
                parts.iter().copied().filter(|at| work(*at) == *most).take(fewest).collect()
            }
        }
    }

    /// How many interrupted launches the figure has: those of which something goes away, and additions whose passes tell how much does.
    fn n_interrupted(&self, removed: &[Removed]) -> Option<u64> {
        let counts = |part: &&Removed| part.gpu_ns > 0 || self.keeps == Keeps::FourPasses;
        let slices = removed.iter().filter(counts).map(|part| part.slice);
        let n = slices.filter(|at| self.interrupted.contains_key(at)).count() as u64;
        (n > 0).then_some(n)
    }

    /// What goes away of one part.
    fn part(&self, parts: &[u32], kept: &[u32], nth: usize) -> Removed {
        let slice = parts[nth];
        let is_kept = kept.contains(&slice);
        let gap_ns = nth.checked_sub(1).map_or(0, |before| self.gap_ns(parts[before], slice));
        Removed {
            slice,
            gpu_ns: self.own_ns(parts, nth, is_kept).saturating_add(gap_ns),
            cpu_ns: self.cpu_ns(slice, parts.get(nth + 1).copied(), is_kept),
        }
    }

    /// The gap between two parts; 0 where another slice begins between them.
    fn gap_ns(&self, before: u32, at: u32) -> i64 {
        if before + 1 != at {
            return 0;
        }
        let gpu = self.lanes.gpu;
        let start_ns = gpu.slice(at as usize).start_ns;
        let gap_ns = start_ns.saturating_sub(gpu.slice(before as usize).end_ns());
        if gap_ns > MOST_GAP_NS { 0 } else { gap_ns.max(0) }
    }

    /// The exposed time that a part does not take any more.
    fn own_ns(&self, parts: &[u32], nth: usize, is_kept: bool) -> i64 {
        let at = parts[nth];
        let pass_of_add_ns = match self.keeps {
            Keeps::FourPasses => parts.first().map_or(0, |first| self.exposed_ns(*first) / 3),
            _ => 0,
        };
        let own_ns = match is_kept && !self.attention {
            true if self.keeps == Keeps::OnePass => {
                self.exposed_ns(at).saturating_sub(pass_ns(self.ground, at)).max(0)
            }
            // (As long as the longest part takes no kernel that passes over the tensors once: those of 16 bits are half as large.)
            true if self.keeps == Keeps::Longest => self
                .one_pass_ns(parts)
                .map_or(0, |least_ns| self.exposed_ns(at).saturating_sub(least_ns).max(0)),
            true => 0,
            // (Of an addition alone one of its three passes.)
            false if self.keeps == Keeps::FourPasses && parts.len() == 1 => pass_of_add_ns,
            false if nth + 1 == parts.len() => {
                self.exposed_ns(at).saturating_sub(pass_of_add_ns).max(0)
            }
            false => self.exposed_ns(at),
        };
        own_ns.min(self.latency_ns.unwrap_or(i64::MAX))
    }

    /// What one kernel takes at least in place of parts that only pass over their tensors: it reads and writes the largest one once, as
    /// values of 16 bits or less. `None` where a part does more, or where neither sizes nor rates are known.
    fn one_pass_ns(&self, parts: &[u32]) -> Option<i64> {
        let peak = self.ground.peak?;
        if !parts.iter().all(|at| PASSES.contains(&self.category(*at))) {
            return None;
        }
        let bytes = |at: &u32| {
            let (values, bytes) = first_tensor(self.ground, *at)?;
            Some(values * bytes.min(HALF_BYTES) as f64)
        };
        let most = parts.iter().filter_map(bytes).fold(0.0, f64::max);
        (most > 0.0).then(|| (2.0 * most / peak.gb_per_s) as i64)
    }

    /// The CPU time of a launch that goes away: that up to the next one of its thread. What comes after the last part is not
    /// known to be the launch's: where frames are recorded, its function's that launches nothing else; else a median launch at most.
    fn cpu_ns(&self, at: u32, next: Option<u32>, is_kept: bool) -> i64 {
        let wall = self.ground.wall;
        let is_launched = wall.is_launched_alone(at) && !in_graph(self.attribution, at);
        // (cuBLAS launches the fill of its GEMM itself, in next to no time.)
        let gone = !is_kept && !self.split_k && is_launched;
        let spacing_ns = wall.spacing_ns(at);
        // (The first launch of a kernel loads its code, and so does that of a fused one.)
        let loads = |median_ns: i64| spacing_ns > FIRST.saturating_mul(median_ns);
        match self.launch_ns.filter(|_| gone) {
            Some(median_ns) if loads(median_ns) => median_ns,
            Some(_) if self.is_next(at, next) => spacing_ns,
            Some(median_ns) => self.frame_ns(at).unwrap_or(i64::MAX).min(median_ns).min(spacing_ns),
            None => 0,
        }
    }

    /// How long the function takes that launches a part and nothing else; `None` where no frames are recorded.
    fn frame_ns(&self, at: u32) -> Option<i64> {
        let launch = self.launches.of_slice(at as usize)?;
        self.ground.own_frames?.of_launch(launch)
    }

    /// Whether the launch of `next` is the next launch after that of `at`, on the same thread.
    fn is_next(&self, at: u32, next: Option<u32>) -> bool {
        let trace = self.lanes.gpu.trace;
        let launch = |at: u32| -> Option<Row> { self.launches.of_slice(at as usize) };
        let (Some(row), Some(next)) = (launch(at), next.and_then(launch)) else { return false };
        let apart_ns = trace.ts_ns(next).saturating_sub(trace.ts_ns(row));
        trace.track(row) == trace.track(next) && self.ground.wall.is_next_after(at, apart_ns)
    }
}

/// Whether a graph launched a slice: it has no launch of its own.
fn in_graph(attribution: Option<&Attribution>, at: u32) -> bool {
    attribution.is_some_and(|places| places.site(at as usize).graph)
}

/// How long it takes at least to read and write the first tensor of a slice's op once; 0 where its size or the memory's
/// bandwidth is not known.
fn pass_ns(ground: &Ground<'_>, at: u32) -> i64 {
    let (Some((values, bytes)), Some(peak)) = (first_tensor(ground, at), ground.peak) else {
        return 0;
    };
    (2.0 * values * bytes as f64 / peak.gb_per_s) as i64
}

/// The values of the first tensor of a slice's op, and the bytes of each.
fn first_tensor(ground: &Ground<'_>, at: u32) -> Option<(f64, u64)> {
    let (sizes, bytes) = ground.arguments?.first_tensor(at as usize)?;
    Some((sizes.iter().map(|size| *size as f64).product(), bytes))
}

/// How long a kernel of these takes whatever it moves: one in twenty is shorter.
fn latency_ns(lanes: &Lanes<'_>, candidate: &Candidate) -> i64 {
    let mut times: Vec<i64> =
        related(candidate).map(|at| lanes.gpu.slice(at as usize).dur_ns).collect();
    trace::sort(&mut times);
    times.get(times.len() / 20).copied().unwrap_or_default()
}
