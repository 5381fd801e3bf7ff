//! Copies of weights that autocast makes, and what the first and the last state of a recording have in common.
//!
//! A file has no data types. Autocast halves each element, so the copy of a weight has exactly half of its bytes.

use std::collections::HashMap;

use super::Class;
use super::falls::{Held, Levels, Lives};
use super::marks::Marks;
use crate::model::{Action, Snapshot};
use crate::stacks::StackId;

/// The graph of the call before the recording has at least these blocks.
const LEAST_BLOCKS: usize = 2;

/// What is in use before the first event.
pub(super) struct Before {
    /// Sorted sizes of what no event allocates or frees: weights, or state.
    pub(super) standing: Vec<i64>,
    /// Sorted sizes of what is freed with a graph of autograd; empty unless the blocks that are freed in the recording have the same sizes as
    /// those that it allocates and keeps, and most of their bytes are freed so: the graphs of two calls, the older of which was made before the
    /// recording.
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

/// The open copies of weights.
pub(super) struct Copies {
    /// Sorted sizes of weights.
    weights: Vec<i64>,
    /// By address: its allocation.
    open: HashMap<u64, usize>,
    /// Their sizes.
    sizes: Vec<i64>,
}

impl Copies {
    pub(super) fn of(weights: Vec<i64>) -> Self {
        Self { weights, open: HashMap::new(), sizes: Vec::new() }
    }

    /// Sees an allocation: of a weight; or by autocast, which copies a weight where fewer copies of its size are in use than weights of twice
    /// that.
    pub(super) fn allocated(
        &mut self,
        address: u64,
        (at, size): (usize, i64),
        birth: Option<Marks>,
    ) {
        let Some(birth) = birth else { return };
        let place = |weights: &[i64], most: i64| weights.partition_point(|known| *known <= most);
        if birth.is_parameter {
            self.weights.insert(place(&self.weights, size), size);
        }
        if !birth.names.is_cast || size <= 0 {
            return;
        }
        let twice = size.saturating_mul(2);
        let n_weights = place(&self.weights, twice) - place(&self.weights, twice - 1);
        let n_open = self.sizes.iter().filter(|open| **open == size).count();
        if n_open < n_weights {
            self.open.insert(address, at);
            self.sizes.push(size);
        }
    }

    /// Whether the block of an address is one of them; it is free again or the recording ends.
    pub(super) fn gone(&mut self, address: u64, size: i64) -> bool {
        let is_copy = self.open.remove(&address).is_some();
        let place = self.sizes.iter().position(|open| is_copy && *open == size);
        place.map(|place| self.sizes.swap_remove(place));
        is_copy
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
        let mut sizes: Vec<i64> = (self.0.iter())
            .filter(|held| held.is_at(at) && held.is_copy)
            .map(|held| held.size.saturating_mul(2))
            .collect();
        let mut of = Copied {
            bytes: self.sum(at, &|held| held.is_copy),
            cached: self.sum(at, &|held| held.is_cached),
            others: self.sum(at, &|held| held.class == Class::Cast && !held.is_copy),
            ..Copied::default()
        };
        if of.bytes == 0 {
            return of;
        }
        // Of each copy one weight.
        let mut weights: Vec<(usize, i64)> = Vec::new();
        let own = self.0.iter().enumerate().filter(|(_, held)| held.is_at(at) && held.is_weight());
        for (n, held) in own {
            if let Some(place) = sizes.iter().position(|size| *size == held.size) {
                sizes.swap_remove(place);
                weights.push((n, held.size / 2));
            }
        }
        of.uncached = self.peak_without(levels, &|held| held.is_cached).0;
        of.none = self.peak_without(levels, &|held| held.is_copy || held.is_unused).0;
        let place = |held: &Held| {
            weights.iter().find(|(n, _)| self.0.get(*n).is_some_and(|it| std::ptr::eq(it, held)))
        };
        let lower = |held: &Held| match held.is_copy {
            true => Some(held.whole()),
            false if held.is_at(at) && held.is_weight() => {
                place(held).map(|(_, half)| (held.from, held.to, *half))
            }
            false => None,
        };
        let is_found = !weights.is_empty() && sizes.is_empty();
        of.lower = is_found.then(|| self.peak_with(levels, &lower).0).and_then(is_worth);
        of
    }
}
