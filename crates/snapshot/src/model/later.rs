//! What the events behind a chosen range did: as much as the state before them depends on.
//!
//! The replay goes back from the end of the recording. A block that the range leaves in use may be freed later, and one that is there
//! at the end may have been allocated later. Only the first and the last event of each address matter, so memory follows the number
//! of addresses and not the number of events.

use std::collections::{BTreeMap, HashMap};

use super::{Action, Block, BlockState, Event, rounded};

/// Requested bytes of a block; `None` where there is none.
type Live = Option<i64>;

/// What happened later at one address.
#[derive(Clone, Copy, Debug)]
struct Touched {
    /// Before the first of the later events.
    before: Live,
    /// After the last one.
    after: Live,
}

/// The events of a device behind the chosen range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Later {
    touched: BTreeMap<u64, Touched>,
    /// Those of segments, in file order: they are few, and the ranges before them depend on their order.
    segments: Vec<Event>,
    /// Events that contradict each other.
    faults: u64,
}

impl Later {
    /// Takes the next event.
    pub(crate) fn take(&mut self, event: Event) {
        match event.action {
            Action::Alloc => {
                let new = Touched { before: None, after: None };
                let touched = self.touched.entry(event.address).or_insert(new);
                self.faults += u64::from(touched.after.is_some());
                touched.after = Some(event.size);
            }
            Action::FreeCompleted => {
                let size = Some(event.size);
                let new = Touched { before: size, after: size };
                let touched = self.touched.entry(event.address).or_insert(new);
                self.faults += u64::from(touched.after != size);
                touched.after = None;
            }
            Action::SegmentAlloc
            | Action::SegmentFree
            | Action::SegmentMap
            | Action::SegmentUnmap => self.segments.push(event),
            _ => {}
        }
    }

    /// The blocks in use before the first of these events, by those in use after the last one.
    pub(crate) fn live_before(&self, after: impl Iterator<Item = Block>) -> Vec<Block> {
        let mut blocks: Vec<Block> =
            after.filter(|block| !self.touched.contains_key(&block.address)).collect();
        let freed = self.touched.iter().filter_map(|(address, touched)| {
            let requested = touched.before?;
            let (size, state) = (rounded(requested), BlockState::Allocated);
            Some(Block { address: *address, size, requested, state, stack: 0 })
        });
        blocks.extend(freed);
        blocks
    }

    /// Whether a block at an address was allocated or freed.
    pub(crate) fn touches(&self, address: u64) -> bool {
        self.touched.contains_key(&address)
    }

    /// Contradictions among these events, and between them and the blocks in use after the last one.
    pub(crate) fn faults(&self, after: impl Iterator<Item = Block>) -> u64 {
        let at_end: HashMap<u64, i64> =
            after.map(|block| (block.address, block.requested)).collect();
        let differs =
            |(address, touched): &(&u64, &Touched)| touched.after != at_end.get(*address).copied();
        self.faults + self.touched.iter().filter(differs).count() as u64
    }

    /// The events of segments, the last one first.
    pub(crate) fn segments_back(&self) -> impl Iterator<Item = &Event> {
        self.segments.iter().rev()
    }

    /// Reserved bytes before these events, by those after them.
    pub(crate) fn reserved_before(&self, after: i64) -> i64 {
        self.segments_back().fold(after, |reserved, event| match event.action {
            Action::SegmentAlloc | Action::SegmentMap => reserved.saturating_sub(event.size),
            _ => reserved.saturating_add(event.size),
        })
    }
}
