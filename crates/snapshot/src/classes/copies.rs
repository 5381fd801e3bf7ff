//! Copies of weights that autocast makes, and what the first and the last state of a recording have in common.
//!
//! A file has no data types. Autocast halves each element, so the copy of a weight has exactly half of its bytes.

use std::collections::HashMap;

use super::Class;
use super::falls::{Held, Levels, Lives};
use super::marks::Marks;
use crate::model::{Action, Snapshot};
use crate::site::Phase;
use crate::stacks::StackId;

/// The graph of the call before the recording has at least these blocks.
const LEAST_BLOCKS: usize = 2;

/// What is in use before the first event.
pub(super) struct Before {
    /// Sorted sizes of what no event allocates or frees: weights, or state.
    pub(super) standing: Vec<i64>,
    /// Sorted sizes of what is freed with a graph of autograd; empty unless the blocks that are freed in the recording have the same sizes
    /// as those that it allocates and keeps, and most of their bytes are freed so: the graphs of two calls, the older of which was made
    /// before the recording.
    pub(super) graph: Vec<i64>,
}

impl Before {
    #[inline(never)]
    pub(super) fn of(
        snapshot: &Snapshot,
        device: i64,
        of: &impl Fn(StackId) -> Option<Marks>,
    ) -> Self {
        let mut open: HashMap<u64, usize> = HashMap::new();
        let mut freed_by: HashMap<u64, StackId> = HashMap::new();
        let (mut gone, mut graph) = (Vec::new(), Vec::new());
        for (at, event) in snapshot.trace(device).iter().enumerate() {
            match event.action {
                Action::Alloc => {
                    open.insert(event.address, at);
                }
                Action::FreeRequested => {
                    freed_by.insert(event.address, event.stack);
                }
                Action::FreeCompleted => {
                    let stack = freed_by.remove(&event.address).unwrap_or(event.stack);
                    if open.remove(&event.address).is_none() {
                        gone.push(event.size);
                        if of(stack).is_some_and(|marks| marks.names.is_graph) {
                            graph.push(event.size);
                        }
                    }
                }
                _ => {}
            }
        }
        let (mut standing, mut kept) = (Vec::new(), Vec::new());
        for block in snapshot.live_at_end(device) {
            let born = open.get(&block.address).and_then(|at| snapshot.trace(device).get(*at));
            match born {
                Some(event) => kept.push(event.size),
                None => standing.push(block.requested),
            }
        }
        for sizes in [&mut standing, &mut kept, &mut gone, &mut graph] {
            sizes.sort_unstable();
        }
        let sum = |sizes: &[i64]| sizes.iter().fold(0_i64, |sum, size| sum.saturating_add(*size));
        let is_graph = gone.len() >= LEAST_BLOCKS && sum(&graph).saturating_mul(2) >= sum(&gone);
        if !is_graph || gone != kept {
            graph.clear();
        }
        Self { standing, graph }
    }

    /// Whether a block is of forward, and one of its size is of the older graph.
    pub(super) fn has_like(&self, birth: Option<Marks>, size: i64) -> bool {
        birth.is_some_and(|it| it.phase == Phase::Forward)
            && self.graph.binary_search(&size).is_ok()
    }
}

/// Copies of weights by autocast at the peak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) bytes: i64,
    /// Those that are freed with the cache of autocast: nothing else keeps them.
    pub(crate) cached: i64,
    /// The peak without them.
    pub(crate) uncached: i64,
    /// Copies by autocast that are of no weight.
    pub(crate) others: i64,
    /// Without the copies, and with their weights at half the size; `None` where weights of that size are not in use at the peak, or where
    /// it falls by too little.
    pub(crate) lower: Option<i64>,
    /// Without the copies, and without what forward saved for no backward pass.
    pub(crate) none: i64,
}

/// The weights and their copies in use.
pub(super) struct Copies {
    /// By address: 1 for a copy, 0 for a weight. (A type of map that is used elsewhere, too: each costs 1 kB.)
    open: HashMap<u64, usize>,
    /// By size: how many there are of each.
    weights: HashMap<u64, usize>,
    copies: HashMap<u64, usize>,
}

impl Copies {
    /// `standing`: sizes of weights that are in use all the time.
    pub(super) fn of(standing: &[i64]) -> Self {
        let mut weights: HashMap<u64, usize> = HashMap::new();
        for size in standing {
            *weights.entry(*size as u64).or_default() += 1;
        }
        Self { open: HashMap::new(), weights, copies: HashMap::new() }
    }

    /// Sees an allocation: of a weight; or by autocast, which copies a weight where fewer copies of its size are in use than weights of
    /// twice that.
    pub(super) fn allocated(&mut self, address: u64, size: i64, birth: Option<Marks>) {
        let (Some(birth), Ok(size)) = (birth, u64::try_from(size)) else { return };
        let of = |counts: &HashMap<u64, usize>, size: u64| counts.get(&size).copied();
        let n_weights = of(&self.weights, size.saturating_mul(2)).unwrap_or_default();
        let is_copy = birth.names.is_cast
            && size > 0
            && of(&self.copies, size).unwrap_or_default() < n_weights;
        if is_copy || birth.is_parameter {
            self.open.insert(address, usize::from(is_copy));
            *self.counts(is_copy).entry(size).or_default() += 1;
        }
    }

    /// Whether the block of an address is one of them; it is free again or the recording ends.
    pub(super) fn gone(&mut self, address: u64, size: i64) -> bool {
        let Some(is_copy) = self.open.remove(&address).map(|n| n == 1) else { return false };
        if let Some(count) = self.counts(is_copy).get_mut(&(size as u64)) {
            *count = count.saturating_sub(1);
        }
        is_copy
    }

    fn counts(&mut self, is_copy: bool) -> &mut HashMap<u64, usize> {
        if is_copy { &mut self.copies } else { &mut self.weights }
    }
}

impl Lives {
    /// Copies of weights by autocast at a level, and the peak without them. `is_worth`: a peak that is low enough.
    #[inline(never)]
    pub(super) fn copied(
        &self,
        levels: Levels<'_>,
        at: usize,
        is_worth: &dyn Fn(i64) -> Option<i64>,
    ) -> Copied {
        let mut of = Copied {
            bytes: self.sum(at, &|held| held.is_copy),
            cached: self.sum(at, &|held| held.is_cached),
            others: self.sum(at, &|held| held.class == Class::Cast && !held.is_copy),
            ..Copied::default()
        };
        if of.bytes == 0 {
            return of;
        }
        // Of each copy one weight: by the size of the weight how many are looked for.
        let (mut counts, mut n_left) = (HashMap::<u64, usize>::new(), 0_usize);
        for held in self.0.iter().filter(|held| held.is_at(at) && held.is_copy) {
            *counts.entry(held.size.saturating_mul(2) as u64).or_default() += 1;
            n_left += 1;
        }
        let mut halves = vec![0_i64; self.0.len()];
        let is_own = |held: &Held| held.is_at(at) && held.is_weight();
        for (held, half) in self.0.iter().zip(&mut halves).filter(|(held, _)| is_own(held)) {
            let count = counts.get_mut(&(held.size as u64)).filter(|count| **count > 0);
            if let Some(count) = count {
                (*count, n_left, *half) = (*count - 1, n_left - 1, held.size / 2);
            }
        }
        of.uncached = self.peak_without(levels, &|held| held.is_cached).0;
        of.none = self.peak_without(levels, &|held| held.is_copy || held.is_unused).0;
        let lower = |n: usize, held: &Held| match held.is_copy {
            true => Some(held.whole()),
            false => halves.get(n).map(|half| (held.from, held.to, *half)),
        };
        of.lower = (n_left == 0).then(|| self.peak_with(levels, &lower).0).and_then(is_worth);
        of
    }
}
