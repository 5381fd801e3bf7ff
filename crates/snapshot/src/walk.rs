//! The allocator before any event: reserved ranges, and the blocks that are in use with who allocated them.

use std::collections::BTreeMap;

use crate::births::Births;
use crate::model::rounded;
use crate::model::{Action, Snapshot};
use crate::stacks::StackId;
use crate::state::Ranges;

/// A reserved range: a segment, or a mapped run of an expandable one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub low: u64,
    /// The byte after the last.
    pub high: u64,
    /// The stream's raw pointer value.
    pub stream: i64,
    /// `small` or `large`.
    pub segment_type: String,
    /// (0, 0) is the default pool.
    pub pool: (i64, i64),
    /// Whether it is a mapped run of an expandable segment.
    pub is_expandable: bool,
}

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// First byte.
    pub address: u64,
    /// Bytes that it takes. Exact where the block is there at the end of the recording; else requested bytes rounded up to 512, a
    /// lower bound.
    pub size: i64,
    /// Whether `size` is exact.
    pub is_exact: bool,
    /// Requested bytes.
    pub requested: i64,
    /// Who allocated it; 0 where the file does not say.
    pub stack: StackId,
    /// The event that allocated it; `None` if it was there before the first one.
    pub birth: Option<usize>,
}

/// The allocator before an event.
#[derive(Clone, Debug)]
struct State {
    at: usize,
    ranges: Ranges,
    held: BTreeMap<u64, Held>,
}

/// Finds the state before any event, quickly for one that is near the last one asked for.
#[derive(Debug)]
pub struct Walk {
    device: i64,
    births: Births,
    now: State,
    /// States on the way, by event, descending; the first one is the end of the recording.
    kept: Vec<State>,
}

/// Blocks that all kept states have together, about.
const MOST_KEPT: usize = 250_000;
/// States that are kept at most.
const MOST_STATES: usize = 64;

impl Walk {
    /// A walk that stands at the end of a device's recording.
    #[must_use]
    pub fn new(snapshot: &Snapshot, device: i64) -> Self {
        let trace = snapshot.trace(device);
        let births = Births::of(trace);
        let mut held = BTreeMap::new();
        let later = snapshot.later_of(device);
        for block in snapshot.live_at_end(device) {
            let birth = births.of_block(block.address);
            let event = birth.and_then(|birth| trace.get(birth));
            let of = Held {
                address: block.address,
                size: block.size,
                is_exact: later.is_none_or(|later| !later.touches(block.address)),
                requested: block.requested,
                stack: event.map_or(block.stack, |event| event.stack),
                birth,
            };
            held.insert(block.address, of);
        }
        let end = State { at: trace.len(), ranges: Ranges::at_end(snapshot, device), held };
        let mut walk = Self { device, births, now: end.clone(), kept: vec![end] };
        let (mut count, mut most) = (walk.now.held.len() as i64, walk.now.held.len() as i64);
        for event in trace.iter().rev() {
            match event.action {
                Action::Alloc => count -= 1,
                Action::FreeCompleted => count += 1,
                _ => {}
            }
            most = most.max(count);
        }
        let states = (MOST_KEPT / (most.max(0) as usize + 1)).clamp(1, MOST_STATES);
        for piece in (0..states).rev() {
            walk.back_to(snapshot, trace.len() * piece / states);
            walk.kept.push(walk.now.clone());
        }
        walk
    }

    /// The event before which the walk stands.
    #[must_use]
    pub fn at(&self) -> usize {
        self.now.at
    }

    /// Goes to the state before an event; the last state is that after all events.
    pub fn go(&mut self, snapshot: &Snapshot, at: usize) {
        let at = at.min(snapshot.trace(self.device).len());
        let after = self.kept.partition_point(|state| state.at >= at);
        let nearest = after.checked_sub(1).and_then(|place| self.kept.get(place));
        if let Some(nearest) = nearest
            && (self.now.at < at || nearest.at < self.now.at)
        {
            self.now = nearest.clone();
        }
        self.back_to(snapshot, at);
    }

    fn back_to(&mut self, snapshot: &Snapshot, at: usize) {
        let trace = snapshot.trace(self.device);
        let State { at: now, ranges, held } = &mut self.now;
        while *now > at {
            *now -= 1;
            let Some(event) = trace.get(*now) else { continue };
            match event.action {
                Action::Alloc => {
                    held.remove(&event.address);
                }
                Action::FreeCompleted => {
                    let birth = self.births.of_free(*now);
                    let of = Held {
                        address: event.address,
                        size: rounded(event.size),
                        is_exact: false,
                        requested: event.size,
                        // A free has the stack of the free.
                        stack: birth.and_then(|at| trace.get(at)).map_or(0, |event| event.stack),
                        birth,
                    };
                    held.insert(event.address, of);
                }
                _ => ranges.undo(event),
            }
        }
    }

    /// The blocks in use, by address.
    pub fn held(&self) -> impl Iterator<Item = &Held> {
        self.now.held.values()
    }

    /// The blocks in use from an address on, up to another.
    pub fn held_in(&self, low: u64, high: u64) -> impl Iterator<Item = &Held> {
        self.now.held.range(low..high.max(low)).map(|(_, held)| held)
    }

    /// The block that holds an address.
    #[must_use]
    pub fn held_at(&self, address: u64) -> Option<&Held> {
        let (_, held) = self.now.held.range(..=address).next_back()?;
        (address - held.address < held.size.unsigned_abs()).then_some(held)
    }

    /// The reserved ranges, by address.
    pub fn ranges(&self) -> impl Iterator<Item = Range> {
        self.now.ranges.ranges.iter().map(|(low, (high, tag))| Range {
            low: *low,
            high: *high,
            stream: tag.0,
            segment_type: tag.1.clone(),
            pool: tag.2,
            is_expandable: tag.3,
        })
    }
}
