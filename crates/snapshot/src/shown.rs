//! Which one is shown of peaks that are equal.
//!
//! A run whose iterations are alike reaches its peak in each of them. At the first one, blocks of the iteration before the recording may
//! still be in use: who allocated them is not recorded.

use std::collections::HashMap;

use crate::model::{Action, Event};
use crate::site::{ByPhase, Phase, Sites};

/// Memory in use falls by at least this part of the peak, in percent, before the next one counts.
const LEAST_DIP: i64 = 5;
/// Another peak than the first is shown where at least this part of it, in percent, is attributed that is not at the first.
const LEAST_GAIN: i64 = 1;

/// The peak that is shown: the first of those that have as many bytes attributed to recorded allocations as any, to within 1%.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shown {
    /// It is the state before the event of this index.
    pub(crate) index: usize,
    /// Its number among the equal peaks, from 1 on.
    pub(crate) nth: usize,
    /// How many peaks are equal to the byte, with lower levels in between.
    pub(crate) times: usize,
    /// Calls that have them, at least: layers of one call may reach the same peak.
    pub(crate) calls: usize,
    /// The level behind the last free, before it, of a block that was allocated before the first event; 0 where the first peak is shown.
    pub(crate) settled: usize,
    /// Bytes in use then that were allocated before the first event.
    pub(crate) untraced_bytes: i64,
    /// Those of them without a stack.
    pub(crate) nameless_bytes: i64,
    /// Bytes in use then by the phase of the stack that allocated.
    pub(crate) by_phase: ByPhase,
    /// Bytes and blocks in use then, by the stack that allocated.
    pub(crate) by_stack: Vec<(i64, u64)>,
}

/// The places where the highest level is reached after a fall, and the first place of it.
fn arrivals(levels: &[i64], (first, peak): (usize, i64)) -> Vec<usize> {
    let mut found = Vec::new();
    let mut has_fallen = true;
    for (at, level) in levels.iter().enumerate().skip(first) {
        if *level == peak && has_fallen {
            found.push(at);
        }
        has_fallen = match has_fallen {
            true => *level < peak,
            false => {
                peak.saturating_sub(*level).saturating_mul(100) >= peak.saturating_mul(LEAST_DIP)
            }
        };
    }
    found
}

/// Calls that reach the peaks between two places, at least. What a call allocates behind its last peak, as in the head of a model, it
/// allocates between the peaks of different calls, and not between those of its own layers: a stack that allocates several times per call,
/// as a loss in chunks, as often for each call between them.
#[inline(never)]
fn calls(trace: &[Event], places: &[usize], sites: &Sites) -> usize {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return 1 };
    let is_step = |event: &&Event| {
        let phase = sites.phase(event.stack).of_step();
        // (What a library keeps for itself is allocated by the first call alone.)
        event.action == Action::Alloc
            && sites.is_line(sites.site(event.stack))
            && matches!(phase, Phase::Forward | Phase::Backward | Phase::Optimizer)
    };
    let behind = trace.get(*last..).unwrap_or_default();
    let around = match behind.iter().any(|event| is_step(&event)) {
        true => behind,
        false => trace.get(..*first).unwrap_or_default(),
    };
    let between = trace.get(*first..*last).unwrap_or_default();
    let count = |events: &[Event]| {
        let mut counts = vec![0_usize; sites.n_stacks()];
        for event in events.iter().filter(is_step) {
            if let Some(count) = counts.get_mut(event.stack as usize) {
                *count += 1;
            }
        }
        counts
    };
    let (inner, outer) = (count(between), count(around));
    let least = inner.iter().zip(&outer).filter_map(|(n, outer)| n.checked_div(*outer)).min();
    (least.map_or(1, |least| least + 1)).min(places.len())
}

/// Chooses the peak of a trace that agrees with its segments. `start` is the first level.
#[inline(never)]
pub(crate) fn shown(
    (trace, sites): (&[Event], &Sites),
    levels: &[i64],
    (first, peak): (usize, i64),
) -> Shown {
    let places = arrivals(levels, (first, peak));
    let (times, calls) = (places.len().max(1), calls(trace, &places, sites));
    let mut shown = Shown { index: first, nth: 1, times, calls, ..Shown::default() };
    if places.len() < 2 {
        return shown;
    }
    // Bytes from before the first event only become fewer: of each place those that are left, and the last free of them.
    let mut left = levels.first().copied().unwrap_or_default();
    let (mut open, mut settled) = (HashMap::<u64, usize>::new(), 0);
    let mut states = Vec::new();
    let mut next = places.iter().copied().peekable();
    for at in 0..=trace.len() {
        if next.next_if_eq(&at).is_some() {
            states.push((at, left, settled));
        }
        let Some(event) = trace.get(at) else { break };
        match event.action {
            Action::Alloc => {
                open.insert(event.address, at);
            }
            Action::FreeCompleted if open.remove(&event.address).is_none() => {
                left = left.saturating_sub(event.size);
                settled = at + 1;
            }
            _ => {}
        }
    }
    let is_more = |more: i64| more.saturating_mul(100) >= peak.saturating_mul(LEAST_GAIN);
    let (Some(of_first), Some(of_last)) = (states.first(), states.last()) else { return shown };
    if !is_more(of_first.1.saturating_sub(of_last.1)) {
        return shown;
    }
    let place = states.iter().position(|state| !is_more(state.1.saturating_sub(of_last.1)));
    if let Some(place) = place
        && let Some((index, _, settled)) = states.get(place).copied()
    {
        shown = Shown { index, nth: place + 1, settled, ..shown };
    }
    shown
}
