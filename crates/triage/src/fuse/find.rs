//! Where patterns and chains stand: kernels next to each other on one stream.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use catalog::fuse_patterns::{CHAINS, FuseChain, FusePattern, Order, Part, Role, Step};

use super::lanes::{Lanes, Run};

/// Copies and fills that may stand between two parts.
const MAX_BETWEEN: usize = 2;
/// Kernels that one find of a pattern spans at most.
const MAX_SPAN: usize = 24;
/// How often a step may repeat before another one.
const MAX_REPEATS: usize = 16;

/// What was looked for.
#[derive(Clone, Copy)]
pub(super) enum Sought {
    Pattern(&'static FusePattern),
    Chain(&'static FuseChain),
}

/// What was found of one pattern or chain in one stage.
pub(super) struct Candidate {
    pub sought: Sought,
    pub stage: usize,
    /// Places where the parts stand next to each other.
    pub split: Vec<Find>,
    /// Launches of the fused kernel.
    pub active: Vec<u32>,
    /// Slices whose time counts, of one find after the other.
    pub slices: Vec<u32>,
    /// Per group.
    pub groups: Vec<Group>,
}

/// One place: a range of [`Candidate::slices`].
#[derive(Clone, Copy)]
pub(super) struct Find {
    pub from: u32,
    pub to: u32,
}

/// One part of a pattern.
#[derive(Clone, Default)]
pub(super) struct Group {
    /// Slices that are this part, wherever they stand.
    pub n: u64,
    /// Those of them that stand next to the other parts.
    pub n_adjacent: u64,
    /// Time of those, by kernel.
    pub works: BTreeMap<u32, i64>,
}

impl Candidate {
    fn new(sought: Sought, stage: usize, n_groups: usize) -> Self {
        Self {
            sought,
            stage,
            split: Vec::new(),
            active: Vec::new(),
            slices: Vec::new(),
            groups: vec![Group::default(); n_groups],
        }
    }

    #[inline(never)]
    fn push(&mut self, lanes: &Lanes<'_>, places: &[usize]) {
        let from = self.slices.len() as u32;
        self.slices.extend(places.iter().map(|at| lanes.order[*at]));
        self.split.push(Find { from, to: self.slices.len() as u32 });
    }

    /// Leaves out places with kernels whose names may be others'.
    pub(super) fn retain_named(&mut self, displaced: &[bool]) {
        let is_named = |at: &u32| displaced.get(*at as usize) != Some(&true);
        let Self { split, active, slices, .. } = self;
        let slices_of = |find: &Find| slices.get(find.from as usize..find.to as usize);
        split.retain(|find| slices_of(find).unwrap_or_default().iter().all(is_named));
        active.retain(is_named);
    }

    /// The part that most often has its neighbours, as (adjacent, all).
    pub(super) fn adjacency(&self) -> (u64, u64) {
        let share = |group: &Group| (group.n_adjacent as f64) / (group.n.max(1) as f64);
        let best = self.groups.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        best.map_or((0, 0), |group| (group.n_adjacent, group.n))
    }
}

/// Looks for patterns. One list per stage, then per pattern.
#[inline(never)]
pub(super) fn patterns(lanes: &Lanes<'_>, patterns: &[&'static FusePattern]) -> Vec<Candidate> {
    // Most codes are in no pattern; those that are, are in few.
    let parts_of: Vec<Vec<(usize, Part)>> = (0..lanes.codes.len())
        .map(|code| {
            let all = 0..patterns.len();
            all.filter_map(|pattern| Some((pattern, lanes.part(code, pattern)?))).collect()
        })
        .collect();
    let mut found: Vec<Candidate> = (0..lanes.stages.len())
        .flat_map(|stage| {
            let new = move |pattern: &&'static FusePattern| {
                Candidate::new(Sought::Pattern(pattern), stage, pattern.groups.len())
            };
            patterns.iter().map(new)
        })
        .collect();
    let mut places = Vec::new();
    for run in &lanes.runs {
        let mut free = vec![run.from; patterns.len()];
        for at in run.from..run.to {
            for &(index, part) in &parts_of[lanes.code_index(at)] {
                let pattern = patterns[index];
                let candidate = &mut found[run.stage * patterns.len() + index];
                let Part::Group(group) = part else {
                    candidate.active.push(lanes.order[at]);
                    continue;
                };
                candidate.groups[usize::from(group)].n += 1;
                let starts = group == 0 || pattern.order == Order::Any;
                if !starts || at < free[index] {
                    continue;
                }
                let Some(end) = stand_together(lanes, run, at, index, pattern, &mut places) else {
                    continue;
                };
                free[index] = end;
                for (at, group) in &places {
                    let group = &mut candidate.groups[usize::from(*group)];
                    group.n_adjacent += 1;
                    let time = group.works.entry(lanes.code(*at).work).or_default();
                    *time = time.saturating_add(lanes.dur_ns(*at));
                }
                let counts =
                    |at: &usize| pattern.heavy.role(lanes.code(*at).category) == Role::Counted;
                let counted: Vec<usize> = places.iter().map(|(at, _)| *at).filter(counts).collect();
                candidate.push(lanes, &counted);
            }
        }
    }
    found.retain(|candidate| !candidate.split.is_empty() || !candidate.active.is_empty());
    found
}

/// Whether the parts of a pattern stand together from `at` on; where they end. `places` are the parts'.
#[inline(never)]
fn stand_together(
    lanes: &Lanes<'_>,
    run: &Run,
    at: usize,
    index: usize,
    pattern: &FusePattern,
    places: &mut Vec<(usize, u8)>,
) -> Option<usize> {
    places.clear();
    let all = (1_u32 << pattern.groups.len()) - 1;
    let (mut seen, mut last_group, mut n_between) = (0_u32, 0_u8, 0);
    for here in at..run.to.min(at + MAX_SPAN) {
        if here > at && !lanes.follows(here) {
            break;
        }
        let code = lanes.code_index(here);
        match lanes.part(code, index) {
            Some(Part::Group(group))
                if pattern.order == Order::Any
                    || group == last_group
                    || group == last_group + 1 =>
            {
                places.push((here, group));
                seen |= 1 << group;
                (last_group, n_between) = (group, 0);
            }
            _ if lanes.codes[code].between && n_between < MAX_BETWEEN => n_between += 1,
            _ => break,
        }
    }
    let (end, _) = places.last()?;
    (seen == all).then_some(end + 1)
}

/// One way a chain may look.
struct Way {
    chain: usize,
    steps: Vec<Step>,
}

/// Looks for chains.
#[inline(never)]
pub(super) fn chains(lanes: &Lanes<'_>) -> Vec<Candidate> {
    let ways: Vec<Way> = CHAINS
        .iter()
        .enumerate()
        .flat_map(|(chain, row)| row.steps().map(move |steps| Way { chain, steps }))
        .collect();
    // Which ways may start with a code, one bit each.
    let starts: Vec<u64> = lanes
        .codes
        .iter()
        .map(|code| {
            ways.iter().enumerate().fold(0, |bits, (at, way)| {
                let optional = way.steps.iter().take_while(|step| step.min == 0).count();
                let mut first = way.steps.iter().take(optional + 1);
                bits | (u64::from(first.any(|step| step.kinds.meets(code.kinds))) << at)
            })
        })
        .collect();
    let mut found: Vec<Candidate> = (0..lanes.stages.len())
        .flat_map(|stage| {
            CHAINS.iter().map(move |chain| Candidate::new(Sought::Chain(chain), stage, 0))
        })
        .collect();
    let mut places = Vec::new();
    for run in &lanes.runs {
        let mut free = [run.from; CHAINS.len()];
        for at in run.from..run.to {
            let mut ways_left = starts[lanes.code_index(at)];
            while ways_left != 0 {
                let way = &ways[ways_left.trailing_zeros() as usize];
                ways_left &= ways_left - 1;
                if at < free[way.chain] {
                    continue;
                }
                places.clear();
                let walk = Walk { lanes, run, row: &CHAINS[way.chain], start: at };
                if !walk.fits(&way.steps, at, &mut places) {
                    continue;
                }
                // What does not count may belong to the next find, too.
                free[way.chain] = places.last().map_or(at, |last| *last) + 1;
                found[run.stage * CHAINS.len() + way.chain].push(lanes, &places);
            }
        }
    }
    found.retain(|candidate| !candidate.split.is_empty());
    found
}

/// One try to find a chain from a place on.
struct Walk<'a> {
    lanes: &'a Lanes<'a>,
    run: &'a Run,
    row: &'a FuseChain,
    start: usize,
}

impl Walk<'_> {
    /// Whether `steps` stand from `at` on. `places` grows by what counts.
    #[inline(never)]
    fn fits(&self, steps: &[Step], at: usize, places: &mut Vec<usize>) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        let max = match step.max.map(NonZeroU16::get) {
            Some(max) => usize::from(max),
            None if rest.is_empty() => usize::MAX,
            None => MAX_REPEATS,
        };
        let before = places.len();
        let mut n = 0;
        while n < max && at + n < self.run.to && self.takes(step, at + n, places.first()) {
            if step.counts {
                places.push(at + n);
            }
            n += 1;
        }
        // As many as there are first; fewer if the rest needs some of them.
        while n >= usize::from(step.min) {
            if self.fits(rest, at + n, places) {
                return true;
            }
            if n == 0 {
                break;
            }
            n -= 1;
            places.truncate(before + if step.counts { n } else { 0 });
        }
        places.truncate(before);
        false
    }

    /// Whether the kernel at `here` may be in this step.
    fn takes(&self, step: &Step, here: usize, first: Option<&usize>) -> bool {
        let Self { lanes, row, .. } = self;
        let work = |at: usize| lanes.code(at).work;
        let counts = || {
            row.max_us.is_none_or(|max| lanes.dur_ns(here) <= i64::from(max) * 1000)
                && row.zero_grad.is_none_or(|wanted| wanted == lanes.is_zero_grad(here))
                && (!row.same_name || first.is_none_or(|first| work(*first) == work(here)))
        };
        lanes.code(here).kinds.meets(step.kinds)
            && (here == self.start || row.across_pauses || lanes.follows(here))
            && (!step.counts || counts())
    }
}
