//! How far the peak of a device falls without some of its allocations: the recorded events, replayed without them.

use super::copies::Copied;
use super::pair::Pair;
use super::rebound::Rebound;
use super::rules::{RULES, UNUSED};
use super::{Class, Life, class_of};
use crate::inside::inside;
use crate::leader::{function_of, is_same_function};
use crate::site::{Sites, Update};
use crate::stacks::{StackId, Stacks};

/// Call sites that hold less of a peak, in percent, do not make it.
pub(crate) const LEAST_OF_PEAK: i64 = 30;
/// A peak that falls by less, in percent, is not worth a finding.
pub(crate) const LEAST_FALL: i64 = 5;
/// Call sites with equal peaks that are named.
const MOST_EQUAL: usize = 4;
/// Blocks that are smaller than a twentieth of the largest result of a call are none.
const SMALL_PART: i64 = 20;
/// The first events: this part of all, a tenth.
const FIRST_EVENTS: usize = 10;
/// Lines of a function that are summed. One with more of them is the program rather than a cause.
const MOST_LINES: usize = 5;

/// An allocation and the levels that it is a part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The first level with it.
    pub(super) from: usize,
    /// The last level with it.
    pub(super) to: usize,
    pub(super) size: i64,
    pub(super) stack: StackId,
    /// The stack that frees it.
    pub(super) freed_by: StackId,
    pub(super) class: Class,
    /// Where the optimizer made it in place of an older block: the last level that has both.
    shared_to: usize,
    pub(super) is_attention: bool,
    /// The copy of a weight by autocast, whose cache keeps it.
    pub(super) is_copy: bool,
    /// Freed with that cache.
    pub(super) is_cached: bool,
    /// Saved in forward for no backward pass.
    pub(super) is_unused: bool,
    /// How the optimizer updates whose temporary it is.
    pub(super) update: Option<Update>,
}

/// The first and the last level that bytes are taken out of.
pub(super) type Part = (usize, usize, i64);

/// The levels of a device, and the first of them that counts.
pub(super) type Levels<'a> = (&'a [i64], usize);

/// All allocations of a device whose events agree with its segments.
#[derive(Debug, Default)]
pub(crate) struct Lives(pub(super) Vec<Held>);

/// What a call site holds at a peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AtPeak {
    /// The call site, or the file and the function of several.
    pub(crate) site: String,
    /// Lines of it that allocated; more than one of a function.
    pub(crate) n_lines: usize,
    pub(crate) bytes: i64,
    pub(crate) blocks: u64,
    /// The level, and the event that it comes before.
    pub(crate) level: i64,
    pub(crate) event: usize,
    /// Those of them that are activations: backward needs them.
    pub(crate) activations: i64,
    /// The level from which all of it is in use to the end of the recording, if that is one of the first: 0 before the first event.
    pub(crate) stands_from: Option<usize>,
    /// The deepest frame of the module that the site calls, and what it holds of the bytes.
    pub(crate) inside: Option<(String, i64)>,
    /// Whether they are equal results of several calls.
    pub(crate) rebound: Option<Rebound>,
}

/// What an optimizer of PyTorch holds at the peak, and frees again within its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Temporaries {
    pub(crate) bytes: i64,
    pub(crate) blocks: u64,
    /// How the optimizer updates that holds most of it.
    pub(crate) update: Update,
    /// The deepest frame of the optimizer with at least half of the bytes, and these bytes.
    pub(crate) inside: Option<(String, i64)>,
    /// The peak without the temporaries of the optimizer, also those at other times, and the event that it comes before.
    pub(crate) rest: (i64, usize),
}

/// What the peak is without some allocations; `None` where it falls by too little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Falls {
    /// Without the largest known class; without activations, also without the copies of them that autocast makes, because a checkpoint drops
    /// both.
    pub(crate) class: Option<i64>,
    /// Copies by autocast at the peak that a checkpoint drops.
    pub(crate) dropped_casts: i64,
    /// Without what forward saved for no backward pass.
    pub(crate) unused: Option<i64>,
    /// Copies of weights by autocast.
    pub(crate) copies: Copied,
    /// Without what attention allocates that stores its scores.
    pub(crate) attention: Option<i64>,
    /// Where the activations alone and the temporaries alone lower the peak by too little.
    pub(crate) pair: Option<Pair>,
    /// Without the temporaries of an optimizer of PyTorch; `None` where none are in use at the peak.
    pub(crate) temporaries: Option<Temporaries>,
    /// Without the call site that makes the peak, and those that make other peaks as high.
    pub(crate) sites: Option<i64>,
    /// These call sites, the first one first.
    pub(crate) makers: Vec<AtPeak>,
    /// Attention that is among the activations.
    pub(crate) both: Option<Both>,
    /// Whether the activations are those of several calls.
    pub(crate) graphs: Option<Rebound>,
    /// The peak where each tensor that the optimizer makes in place of an older one has the same memory.
    pub(crate) merged: i64,
    /// Bytes of the largest known class at the peak that the optimizer has made anew and not freed yet: they are there a second time.
    pub(crate) twice: i64,
    /// The first level that the replays count: 0, except where another peak than the first is shown.
    pub(crate) from: usize,
    /// What the next step needs, where that is more than the recorded peak.
    pub(crate) steady: Option<Steady>,
}

/// What attention saves on top of what a change for all activations does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Both {
    /// Activations of attention at the peak.
    pub(crate) bytes: i64,
    /// Copies by autocast in it that go with them.
    pub(crate) casts: i64,
    /// The peak without activations, and without both.
    pub(crate) without: i64,
    pub(crate) rest: i64,
}

/// State that the optimizer makes in the record and keeps, as in its first step: earlier levels are without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steady {
    /// The highest level before the first of the state.
    pub(crate) before: i64,
    /// Bytes of the state.
    pub(crate) state: i64,
    /// The event that allocates the first of it.
    pub(crate) event: usize,
}

impl Steady {
    /// The peak of a step that begins with the state.
    pub(crate) fn peak(&self) -> i64 {
        self.before.saturating_add(self.state)
    }
}

/// A call site: bytes, name, number.
type Named<'a> = (i64, &'a str, usize);

/// The function of few lines that hold most and enough of a level together, its bytes and its call sites.
fn function(sites: &[Named<'_>], level: i64) -> Option<(i64, String, Vec<usize>)> {
    // (Of few lines that are enough together the largest one has a part of it.)
    let parts = 100 * MOST_LINES as i64;
    let is_part = |bytes: i64| bytes.saturating_mul(parts) >= level.saturating_mul(LEAST_OF_PEAK);
    let of = |first: &str| {
        let is_own = |site: &&Named<'_>| is_same_function(site.1, first);
        let own = sites.iter().filter(is_own);
        let bytes = own.clone().fold(0_i64, |sum, site| sum.saturating_add(site.0));
        let found: Vec<usize> = own.map(|site| site.2).collect();
        (found.len() <= MOST_LINES).then_some((bytes, function_of(first)?, found))
    };
    let named = sites.iter().filter(|site| is_part(site.0));
    named.filter_map(|site| of(site.1)).max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)))
}

impl Held {
    pub(super) fn is_at(&self, level: usize) -> bool {
        self.from <= level && level <= self.to
    }

    /// Its levels and its bytes.
    pub(super) fn whole(&self) -> Part {
        (self.from, self.to, self.size)
    }

    /// Whether a checkpoint drops it. (The cache of autocast keeps copies of weights in a checkpoint, too.)
    pub(super) fn is_dropped(&self) -> bool {
        self.class == Class::Activation || self.class == Class::Cast && !self.is_copy
    }

    /// Whether it is a weight, or is as old as one and stays.
    pub(super) fn is_weight(&self) -> bool {
        self.class == Class::Parameter
            || self.class == Class::Unknown && self.from == 0 && self.to == usize::MAX
    }
}

impl Lives {
    pub(crate) fn add(&mut self, life: &Life, rule: usize) {
        let is_cached = life.death.is_some_and(|death| death.names.is_cache_cleared);
        self.0.push(Held {
            from: life.born.map_or(0, |born| born + 1),
            to: life.ended.unwrap_or(usize::MAX),
            size: life.size,
            stack: life.stack,
            freed_by: life.freed_by,
            class: class_of(rule),
            is_copy: life.is_copy || is_cached,
            is_cached,
            is_unused: RULES.get(rule).is_some_and(|rule| UNUSED.contains(&rule.what)),
            shared_to: life.replaces.map_or(0, |of| of.1),
            is_attention: life.is_attention(),
            update: life.update(),
        });
    }

    /// What the next step needs, where that is more than the recorded peak: state that is made in the record, and stays.
    #[inline(never)]
    pub(crate) fn steady(&self, levels: &[i64]) -> Option<Steady> {
        let state = self.0.iter().filter(|held| held.class == Class::OptimizerState);
        let (mut bytes, mut first) = (0_i64, usize::MAX);
        for held in state {
            // (State that is older, or that goes again, is no first step.)
            if held.from == 0 || held.to != usize::MAX {
                return None;
            }
            bytes = bytes.saturating_add(held.size);
            first = first.min(held.from);
        }
        let event = first.checked_sub(1)?;
        let before = levels.get(..first)?.iter().copied().max()?;
        let steady = Steady { before, state: bytes, event };
        let peak = levels.iter().copied().max()?;
        let gain = steady.peak().saturating_sub(peak).saturating_mul(100);
        (gain >= peak.saturating_mul(LEAST_FALL)).then_some(steady)
    }

    /// The highest level and its place, from the first level that counts on, where allocations are taken out of some levels each.
    /// `out_of`: of an allocation and its place.
    #[inline(never)]
    pub(super) fn peak_with(
        &self,
        (levels, from): Levels<'_>,
        out_of: &dyn Fn(usize, &Held) -> Option<Part>,
    ) -> (i64, usize) {
        let mut changes = vec![0_i64; levels.len()];
        let mut change = |at: usize, by: i64| {
            if let Some(sum) = changes.get_mut(at) {
                *sum = sum.saturating_add(by);
            }
        };
        for (n, held) in self.0.iter().enumerate() {
            let Some((from, to, size)) = out_of(n, held) else { continue };
            change(from, size);
            change(to.saturating_add(1), size.saturating_neg());
        }
        let (mut peak, mut out) = ((i64::MIN, 0), 0_i64);
        for (at, (level, change)) in levels.iter().zip(&changes).enumerate() {
            out = out.saturating_add(*change);
            let rest = level.saturating_sub(out);
            if rest > peak.0 && at >= from {
                peak = (rest, at);
            }
        }
        peak
    }

    /// The same without the whole lives of these allocations.
    #[inline(never)]
    pub(super) fn peak_without(
        &self,
        levels: Levels<'_>,
        is_out: &dyn Fn(&Held) -> bool,
    ) -> (i64, usize) {
        self.peak_with(levels, &|_, held| is_out(held).then_some(held.whole()))
    }

    /// The call site that holds most of a level, but for some; else the function whose lines do. Parameters and the state of the
    /// optimizer do not count: they are a finding of their own, and nothing frees them earlier. What libraries and compilers allocate for
    /// themselves is of no line.
    #[inline(never)]
    fn maker(
        &self,
        (level, event): (i64, usize),
        (stacks, sites): (&Stacks, &Sites),
        known: &[usize],
        levels: Levels<'_>,
    ) -> Option<(Vec<usize>, AtPeak)> {
        let mut sums = vec![0_i64; sites.len()];
        let is_there =
            |held: &&Held| held.from <= event && event <= held.to && !held.class.is_kept();
        for held in self.0.iter().filter(is_there) {
            if let Some(sum) = sums.get_mut(sites.site(held.stack)) {
                *sum = sum.saturating_add(held.size);
            }
        }
        let is_large =
            |bytes: i64| bytes.saturating_mul(100) >= level.saturating_mul(LEAST_OF_PEAK);
        let is_named = |at: &usize| !known.contains(at) && sites.is_line(*at);
        let named: Vec<Named<'_>> = (sums.iter().enumerate())
            .filter(|(at, sum)| **sum > 0 && is_named(at))
            .map(|(at, sum)| (*sum, sites.name(at), at))
            .collect();
        // Of equal ones the first by name.
        let first = named.iter().max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(a.1)))?;
        let (_, name, found) = if is_large(first.0) {
            (first.0, first.1.to_owned(), vec![first.2])
        } else {
            // (Lines that make a second peak as high need not be of one function.)
            let of_function = function(&named, level).filter(|_| known.is_empty());
            of_function.filter(|(bytes, ..)| is_large(*bytes))?
        };
        let own = |held: &&Held| found.contains(&sites.site(held.stack));
        let own = self.0.iter().filter(is_there).filter(own);
        let activations = own.clone().filter(|held| held.class == Class::Activation);
        let activations = activations.fold(0_i64, |sum, held| sum.saturating_add(held.size));
        let is_standing =
            |held: &Held| held.to == usize::MAX && held.from <= levels.0.len() / FIRST_EVENTS;
        let last = own.clone().map(|held| held.from).max();
        let stands_from = last.filter(|_| own.clone().all(is_standing));
        let mut blocks: Vec<(StackId, i64)> = own.map(|held| (held.stack, held.size)).collect();
        let inside = if found.len() == 1 { inside(stacks, &blocks) } else { None };
        let n_lines = found.len();
        let is_own = |held: &Held| found == [sites.site(held.stack)];
        let mut rebound = self.rebound(levels, event, &is_own, sites);
        if rebound.is_none() {
            // (A call may have a small temporary, too.)
            let largest = blocks.iter().map(|block| block.1).max().unwrap_or_default();
            let is_large = |size: i64| size.saturating_mul(SMALL_PART) >= largest;
            let is_result = |held: &Held| is_own(held) && is_large(held.size);
            rebound = self.rebound(levels, event, &is_result, sites);
            if rebound.is_some() {
                blocks.retain(|block| is_large(block.1));
            }
        }
        let bytes = blocks.iter().fold(0_i64, |sum, block| sum.saturating_add(block.1));
        let site = name;
        let blocks = blocks.len() as u64;
        let of = AtPeak {
            site,
            n_lines,
            bytes,
            blocks,
            level,
            event,
            activations,
            stands_from,
            inside,
            rebound,
        };
        Some((found, of))
    }

    /// What attention saves on top of what a change for all activations does; `None` where most of it is something else.
    #[inline(never)]
    fn both(&self, levels: Levels<'_>, at: usize, class: Option<Class>) -> Option<Both> {
        class.filter(|class| *class == Class::Activation)?;
        // (Where no backward pass runs, what is saved for it goes, and nothing else.)
        let is_unused = self.sum(at, &|held| held.is_unused) > 0;
        let is_dropped = |held: &Held| if is_unused { held.is_unused } else { held.is_dropped() };
        let all = self.sum(at, &|held| held.is_attention);
        let of = |is_cast: bool| {
            self.sum(at, &|held| {
                held.is_attention && is_dropped(held) && is_cast == (held.class == Class::Cast)
            })
        };
        let (bytes, casts) = (of(false), of(true));
        let without = |is_out: &dyn Fn(&Held) -> bool| self.peak_without(levels, is_out).0;
        (all > 0 && bytes.saturating_add(casts).saturating_mul(2) >= all).then(|| Both {
            bytes,
            casts,
            without: without(&is_dropped),
            rest: without(&|held| is_dropped(held) || held.is_attention),
        })
    }

    /// Bytes at a level of what is asked for.
    #[inline(never)]
    pub(super) fn sum(&self, at: usize, is_in: &dyn Fn(&Held) -> bool) -> i64 {
        let own = self.0.iter().filter(|held| held.is_at(at) && is_in(held));
        own.fold(0_i64, |sum, held| sum.saturating_add(held.size))
    }

    /// What an optimizer of PyTorch holds at a level, and frees again within its step.
    #[inline(never)]
    pub(super) fn temporaries(
        &self,
        levels: Levels<'_>,
        at: usize,
        stacks: &Stacks,
    ) -> Option<Temporaries> {
        let is_there = |held: &&Held| held.from <= at && at <= held.to && held.update.is_some();
        let own = self.0.iter().filter(is_there);
        let update = own.clone().max_by_key(|held| held.size)?.update?;
        let blocks: Vec<(StackId, i64)> = own.map(|held| (held.stack, held.size)).collect();
        Some(Temporaries {
            bytes: blocks.iter().fold(0, |sum, block| sum.saturating_add(block.1)),
            blocks: blocks.len() as u64,
            update,
            inside: inside(stacks, &blocks),
            rest: self.peak_without(levels, &|held| held.update.is_some()),
        })
    }

    /// Replays the levels without what a finding may name.
    pub(crate) fn falls(
        &self,
        (levels, from): Levels<'_>,
        (peak, at): (i64, usize),
        class: Option<Class>,
        names: (&Stacks, &Sites),
    ) -> Falls {
        let is_worth = |rest: i64| {
            let fall = peak.saturating_sub(rest).saturating_mul(100);
            (fall >= peak.saturating_mul(LEAST_FALL)).then_some(rest)
        };
        let without =
            |is_out: &dyn Fn(&Held) -> bool| is_worth(self.peak_without((levels, from), is_out).0);
        let mut falls = Falls {
            class: class.and_then(|class| match class {
                Class::Activation => without(&Held::is_dropped),
                class => without(&|held| held.class == class),
            }),
            dropped_casts: self.sum(at, &|held| held.class == Class::Cast && held.is_dropped()),
            unused: without(&|held| held.is_unused),
            copies: self.copied((levels, from), at, &is_worth),
            attention: without(&|held| held.is_attention),
            pair: self.pair((levels, from), (peak, at), names.0, &is_worth),
            temporaries: self.temporaries((levels, from), at, names.0),
            from,
            both: self.both((levels, from), at, class),
            graphs: (self.rebound((levels, from), at, &|held| held.is_unused, names.1))
                .or_else(|| self.older_graph((levels, from), at, names.1)),
            merged: self
                .peak_with((levels, from), &|_, held| {
                    let to = held.shared_to.min(held.to);
                    (held.shared_to > held.from).then_some((held.from, to, held.size))
                })
                .0,
            twice: {
                let is_twice = |held: &&Held| {
                    let to = held.shared_to.min(held.to);
                    Some(held.class) == class && held.from <= at && at <= to
                };
                let own = self.0.iter().filter(is_twice);
                own.fold(0_i64, |sum, held| sum.saturating_add(held.size))
            },
            ..Falls::default()
        };
        let (mut known, mut next) = (Vec::new(), (peak, at));
        while falls.sites.is_none()
            && falls.makers.len() < MOST_EQUAL
            && let Some((found, maker)) = self.maker(next, names, &known, (levels, from))
        {
            known.extend(found);
            falls.makers.push(maker);
            let is_known =
                |held: &Held| !held.class.is_kept() && known.contains(&names.1.site(held.stack));
            let (rest, place) = self.peak_without((levels, from), &is_known);
            next = (levels.get(place).copied().unwrap_or_default(), place);
            falls.sites = is_worth(rest);
        }
        falls
    }
}
