//! How far the peak of a device falls without some of its allocations: the recorded events, replayed without them.

use crate::classes::{Class, Life};
use crate::inside::inside;
use crate::site::{NO_STACK, Sites};
use crate::stacks::{StackId, Stacks};

/// Call sites that hold less of a peak, in percent, do not make it.
pub(crate) const LEAST_OF_PEAK: i64 = 30;
/// A peak that falls by less, in percent, is not worth a finding.
const LEAST_FALL: i64 = 5;
/// Call sites with equal peaks that are named.
const MOST_EQUAL: usize = 4;

/// An allocation and the levels that it is a part of.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The first level with it.
    from: usize,
    /// The last level with it.
    to: usize,
    size: i64,
    stack: StackId,
    class: Class,
    is_attention: bool,
}

/// All allocations of a device whose events agree with its segments.
#[derive(Debug, Default)]
pub(crate) struct Lives(Vec<Held>);

/// What a call site holds at a peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AtPeak {
    pub(crate) site: String,
    pub(crate) bytes: i64,
    pub(crate) blocks: u64,
    /// The level, and the event that it comes before.
    pub(crate) level: i64,
    pub(crate) event: usize,
    /// The deepest frame of the module that the site calls, and what it holds of the bytes.
    pub(crate) inside: Option<(String, i64)>,
}

/// What the peak is without some allocations; `None` where it falls by too little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Falls {
    /// Without the largest known class.
    pub(crate) class: Option<i64>,
    /// Without what attention allocates that stores its scores.
    pub(crate) attention: Option<i64>,
    /// Without the call site that makes the peak, and those that make other peaks as high.
    pub(crate) sites: Option<i64>,
    /// These call sites, the first one first.
    pub(crate) makers: Vec<AtPeak>,
}

impl Lives {
    pub(crate) fn add(&mut self, life: &Life, class: Class) {
        self.0.push(Held {
            from: life.born.map_or(0, |born| born + 1),
            to: life.ended.unwrap_or(usize::MAX),
            size: life.size,
            stack: life.stack,
            class,
            is_attention: life.is_attention(),
        });
    }

    /// The highest level without some allocations, and its place.
    #[inline(never)]
    fn peak_without(&self, levels: &[i64], is_out: &dyn Fn(&Held) -> bool) -> (i64, usize) {
        let mut changes = vec![0_i64; levels.len()];
        let mut change = |at: usize, by: i64| {
            if let Some(sum) = changes.get_mut(at) {
                *sum = sum.saturating_add(by);
            }
        };
        for held in self.0.iter().filter(|held| is_out(held)) {
            change(held.from, held.size);
            change(held.to.saturating_add(1), held.size.saturating_neg());
        }
        let (mut peak, mut out) = ((i64::MIN, 0), 0_i64);
        for (at, (level, change)) in levels.iter().zip(&changes).enumerate() {
            out = out.saturating_add(*change);
            let rest = level.saturating_sub(out);
            if rest > peak.0 {
                peak = (rest, at);
            }
        }
        peak
    }

    /// The call site with a recorded stack that holds most of a level, but for some.
    #[inline(never)]
    fn maker(
        &self,
        (level, event): (i64, usize),
        (stacks, sites): (&Stacks, &Sites),
        known: &[usize],
    ) -> Option<(usize, AtPeak)> {
        let mut sums = vec![0_i64; sites.len()];
        let is_there = |held: &&Held| held.from <= event && event <= held.to;
        for held in self.0.iter().filter(is_there) {
            if let Some(sum) = sums.get_mut(sites.site(held.stack)) {
                *sum = sum.saturating_add(held.size);
            }
        }
        let is_named = |site: &usize| !known.contains(site) && sites.name(*site) != NO_STACK;
        let sum = |site: &usize| sums.get(*site).copied().unwrap_or_default();
        // Of equal ones the first by name.
        let site = (0..sites.len())
            .filter(is_named)
            .max_by(|a, b| sum(a).cmp(&sum(b)).then_with(|| sites.name(*b).cmp(sites.name(*a))))?;
        let own = self.0.iter().filter(is_there).filter(|held| sites.site(held.stack) == site);
        let blocks: Vec<(StackId, i64)> = own.map(|held| (held.stack, held.size)).collect();
        let bytes = sum(&site);
        (bytes.saturating_mul(100) >= level.saturating_mul(LEAST_OF_PEAK)).then(|| {
            let (name, n) = (sites.name(site).to_owned(), blocks.len() as u64);
            let inside = inside(stacks, blocks);
            (site, AtPeak { site: name, bytes, blocks: n, level, event, inside })
        })
    }

    /// Replays the levels without what a finding may name.
    pub(crate) fn falls(
        &self,
        levels: &[i64],
        (peak, at): (i64, usize),
        class: Option<Class>,
        names: (&Stacks, &Sites),
    ) -> Falls {
        let is_worth = |rest: i64| {
            let fall = peak.saturating_sub(rest).saturating_mul(100);
            (fall >= peak.saturating_mul(LEAST_FALL)).then_some(rest)
        };
        let without =
            |is_out: &dyn Fn(&Held) -> bool| is_worth(self.peak_without(levels, is_out).0);
        let mut falls = Falls {
            class: class.and_then(|class| without(&|held| held.class == class)),
            attention: without(&|held| held.is_attention),
            ..Falls::default()
        };
        let (mut known, mut next) = (Vec::new(), (peak, at));
        while falls.sites.is_none()
            && known.len() < MOST_EQUAL
            && let Some((site, maker)) = self.maker(next, names, &known)
        {
            known.push(site);
            falls.makers.push(maker);
            let is_known = |held: &Held| known.contains(&names.1.site(held.stack));
            let (rest, place) = self.peak_without(levels, &is_known);
            next = (levels.get(place).copied().unwrap_or_default(), place);
            falls.sites = is_worth(rest);
        }
        falls
    }
}
