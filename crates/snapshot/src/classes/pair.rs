//! Two peaks that are nearly equal, of which one is of forward and backward, and the other of the optimizer.

use super::Class;
use super::falls::{Held, Levels, Lives, Temporaries};
use crate::stacks::Stacks;

/// What is in use at each of the peaks is at least this part of the highest one, in percent.
const LEAST_OF_PEAK: i64 = 10;

/// A change for either peak alone saves little, because the other one stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The level and the event that it comes before, of the peak with activations and of that with temporaries.
    pub(crate) of_activations: (i64, usize),
    pub(crate) of_temporaries: (i64, usize),
    /// Activations at the first one, with the copies of them that autocast makes; these alone.
    pub(crate) activations: i64,
    pub(crate) casts: i64,
    pub(crate) temporaries: Temporaries,
    /// The peak without both.
    pub(crate) rest: i64,
    /// Without the temporaries and what attention allocates that stores its scores, if that falls enough.
    pub(crate) attention: Option<i64>,
}

impl Lives {
    /// Looks for such peaks where neither change is worth a finding. `is_worth`: a peak that is low enough.
    #[inline(never)]
    pub(super) fn pair(
        &self,
        levels: Levels<'_>,
        (peak, at): (i64, usize),
        stacks: &Stacks,
        is_worth: &dyn Fn(i64) -> Option<i64>,
    ) -> Option<Pair> {
        let is_large = |bytes: i64| bytes.saturating_mul(100) >= peak.saturating_mul(LEAST_OF_PEAK);
        let level = |place: usize| (levels.0.get(place).copied().unwrap_or_default(), place);
        let is_update = |held: &Held| held.update.is_some();
        let without_activations = self.peak_without(levels, &Held::is_dropped);
        let without_updates = self.peak_without(levels, &is_update);
        if is_worth(without_activations.0).is_some() || is_worth(without_updates.0).is_some() {
            return None;
        }
        let is_of_optimizer = self.sum(at, &is_update) > 0;
        let (first, second) = match is_of_optimizer {
            true => (without_updates.1, at),
            false => (at, without_activations.1),
        };
        let activations = self.sum(first, &Held::is_dropped);
        let temporaries = self.temporaries(levels, second, stacks)?;
        if !is_large(activations) || !is_large(temporaries.bytes) {
            return None;
        }
        let without = |is_out: &dyn Fn(&Held) -> bool| {
            is_worth(self.peak_without(levels, &|held| is_out(held) || is_update(held)).0)
        };
        Some(Pair {
            of_activations: level(first),
            of_temporaries: level(second),
            activations,
            casts: self.sum(first, &|held| held.class == Class::Cast && held.is_dropped()),
            temporaries,
            rest: without(&Held::is_dropped)?,
            attention: without(&|held| held.is_attention),
        })
    }
}
