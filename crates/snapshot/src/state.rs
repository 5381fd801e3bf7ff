//! The allocator before an event: reserved ranges, live blocks, and the free ranges between them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Action, Event, MIB, Segment, Snapshot, rounded};

/// What a reserved range is: stream, segment type, pool, whether it is expandable.
pub(crate) type Tag = (i64, String, (i64, i64), bool);

/// The allocator before an event. Bytes of blocks that were freed later are requested bytes rounded to 512, which is a lower
/// bound of the rounded size, so the free bytes are an upper bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocatorState {
    /// The state is that before this event.
    pub index: usize,
    /// Bytes of the reserved ranges.
    pub reserved: i64,
    /// Reserved bytes without a live block.
    pub cached_free: i64,
    /// The largest free range.
    pub largest_cached_free: i64,
    /// Free bytes per stream.
    pub cached_free_by_stream: BTreeMap<i64, i64>,
    /// Free ranges per stream, segment type and pool: what one request can use.
    #[serde(skip)]
    pub(crate) gaps_by_pool: BTreeMap<(i64, String, (i64, i64)), Gaps>,
    /// Events that contradict the ranges.
    pub faults: u64,
}

/// Free ranges, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) count: u64,
    /// Of all of them.
    pub(crate) bytes: i64,
    pub(crate) largest: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Start to end and tag; they do not overlap.
    pub(crate) ranges: BTreeMap<u64, (u64, Tag)>,
    faults: u64,
}

impl Ranges {
    /// The ranges after the last kept event.
    pub(crate) fn at_end(snapshot: &Snapshot, device: i64) -> Self {
        let mut segments: Vec<&Segment> =
            snapshot.segments.iter().filter(|segment| segment.device == device).collect();
        segments.sort_by_key(|segment| segment.address);
        let mut ranges = Self::default();
        for segment in segments {
            let (stream, is_expandable) = (segment.stream, segment.is_expandable);
            let tag = (stream, segment.segment_type.clone(), segment.pool, is_expandable);
            let high = end(segment.address, segment.total_size);
            // Segments of cudaMalloc may touch each other and stay separate.
            ranges.add(segment.address, high, tag, is_expandable);
        }
        if let Some(later) = snapshot.later_of(device) {
            later.segments_back().for_each(|event| ranges.undo(event));
        }
        ranges
    }

    /// Takes back what an event did to the ranges.
    pub(crate) fn undo(&mut self, event: &Event) {
        let (low, high) = (event.address, end(event.address, event.size));
        // The event does not record the pool; private pools appear as the default one here.
        let type_if = |is_large: bool| if is_large { "large" } else { "small" }.to_owned();
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => self.remove(low, high),
            Action::SegmentFree => {
                let tag = (event.stream, type_if(event.size > 2 * MIB), (0, 0), false);
                self.add(low, high, tag, false);
            }
            Action::SegmentUnmap => {
                let tag = self.tag_near(low, high).unwrap_or_else(|| {
                    (event.stream, type_if(event.size % (20 * MIB) == 0), (0, 0), true)
                });
                self.add(low, high, tag, true);
            }
            _ => {}
        }
    }

    fn before(&self, at: u64) -> Option<(u64, u64, Tag)> {
        let (low, (high, tag)) = self.ranges.range(..at).next_back()?;
        Some((*low, *high, tag.clone()))
    }

    fn from(&self, at: u64) -> Option<(u64, u64, Tag)> {
        let (low, (high, tag)) = self.ranges.range(at..).next()?;
        Some((*low, *high, tag.clone()))
    }

    fn add(&mut self, low: u64, high: u64, tag: Tag, merges: bool) {
        let (before, after) = (self.before(low), self.from(low));
        if before.as_ref().is_some_and(|range| range.1 > low)
            || after.as_ref().is_some_and(|range| range.0 < high)
        {
            self.faults += 1;
            return;
        }
        let (mut low, mut high) = (low, high);
        if merges {
            if let Some((start, end, _)) = after.filter(|range| range.0 == high && range.2 == tag) {
                self.ranges.remove(&start);
                high = end;
            }
            if let Some((start, ..)) = before.filter(|range| range.1 == low && range.2 == tag) {
                self.ranges.remove(&start);
                low = start;
            }
        }
        self.ranges.insert(low, (high, tag));
    }

    fn remove(&mut self, low: u64, high: u64) {
        let found = self.before(low.saturating_add(1)).filter(|range| range.1 >= high);
        let Some((start, end, tag)) = found else {
            self.faults += 1;
            return;
        };
        self.ranges.remove(&start);
        if high < end {
            self.ranges.insert(high, (end, tag.clone()));
        }
        if start < low {
            self.ranges.insert(start, (low, tag));
        }
    }

    /// The tag of the range that contains an address.
    pub(crate) fn tag_of(&self, address: u64) -> Option<Tag> {
        self.before(address.saturating_add(1))
            .filter(|range| range.1 > address)
            .map(|range| range.2)
    }

    /// The tag of a range that touches this one.
    fn tag_near(&self, low: u64, high: u64) -> Option<Tag> {
        let before = self.before(low).filter(|range| range.1 == low);
        before.or_else(|| self.from(low).filter(|range| range.0 == high)).map(|range| range.2)
    }
}

/// The byte after the last one.
pub(crate) fn end(address: u64, size: i64) -> u64 {
    address.saturating_add(size.unsigned_abs())
}

/// The state of a device before the event `index`.
#[must_use]
pub fn state_before(snapshot: &Snapshot, device: i64, index: usize) -> AllocatorState {
    let states = states_before(snapshot, device, &[index]);
    states.into_iter().next().unwrap_or_else(|| AllocatorState {
        index,
        reserved: 0,
        cached_free: 0,
        largest_cached_free: 0,
        cached_free_by_stream: BTreeMap::new(),
        gaps_by_pool: BTreeMap::new(),
        faults: 0,
    })
}

/// The states of a device before several events (ascending), in one walk from the end.
#[must_use]
#[inline(never)]
pub(crate) fn states_before(
    snapshot: &Snapshot,
    device: i64,
    indexes: &[usize],
) -> Vec<AllocatorState> {
    let trace = snapshot.trace(device);
    let mut ranges = Ranges::at_end(snapshot, device);
    let blocks = snapshot.live_at_end(device).into_iter();
    let mut live: BTreeMap<u64, i64> = blocks.map(|block| (block.address, block.size)).collect();
    let mut wanted = indexes.iter().rev().peekable();
    let mut states = Vec::new();
    let mut at = trace.len();
    loop {
        while let Some(index) = wanted.next_if(|index| **index >= at) {
            states.push(state(*index, &ranges, &live));
        }
        let Some(event) = at.checked_sub(1).and_then(|at| trace.get(at)) else { break };
        if wanted.peek().is_none() {
            break;
        }
        at -= 1;
        undo(event, &mut ranges, &mut live);
    }
    states.reverse();
    states
}

fn undo(event: &Event, ranges: &mut Ranges, live: &mut BTreeMap<u64, i64>) {
    match event.action {
        Action::Alloc => {
            live.remove(&event.address);
        }
        Action::FreeCompleted => {
            live.insert(event.address, rounded(event.size));
        }
        _ => ranges.undo(event),
    }
}

fn state(index: usize, ranges: &Ranges, live: &BTreeMap<u64, i64>) -> AllocatorState {
    let mut state = AllocatorState {
        index,
        reserved: 0,
        cached_free: 0,
        largest_cached_free: 0,
        cached_free_by_stream: BTreeMap::new(),
        gaps_by_pool: BTreeMap::new(),
        faults: ranges.faults,
    };
    for (low, (high, tag)) in &ranges.ranges {
        let length =
            |from: u64, to: u64| i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX);
        state.reserved = state.reserved.saturating_add(length(*low, *high));
        let mut free = |bytes: i64| {
            if bytes == 0 {
                return;
            }
            state.cached_free = state.cached_free.saturating_add(bytes);
            state.largest_cached_free = state.largest_cached_free.max(bytes);
            *state.cached_free_by_stream.entry(tag.0).or_default() += bytes;
            let pool = (tag.0, tag.1.clone(), tag.2);
            let gaps = state.gaps_by_pool.entry(pool).or_default();
            gaps.count += 1;
            gaps.bytes = gaps.bytes.saturating_add(bytes);
            gaps.largest = gaps.largest.max(bytes);
        };
        let mut at = *low;
        for (address, size) in live.range(*low..*high) {
            free(length(at, *address));
            at = at.max(end(*address, *size));
        }
        free(length(at, *high));
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use crate::totals::{page, pages_within};

    /// The free range around an address: its mapping's start and type, and its own two ends.
    fn gap(
        ranges: &Ranges,
        live: &BTreeMap<u64, i64>,
        address: u64,
    ) -> Option<(u64, String, u64, u64)> {
        let (start, high, (_, segment_type, ..)) =
            ranges.before(address + 1).filter(|range| range.1 > address)?;
        let before = live.range(start..=address).next_back();
        let low = before.map_or(start, |(address, size)| end(*address, *size));
        let after = live.range(address..high).next();
        Some((start, segment_type, low, after.map_or(high, |(address, _)| *address)))
    }

    /// What PyTorch gives back of an expandable segment is what the rule for pages tells from the state before it.
    #[test]
    fn the_page_rule_foretells_what_is_unmapped() {
        let Some(file) =
            testkit::shared("corpus/snapshots/code_location_expandable_oom_3gpu.json.gz")
        else {
            return;
        };
        let mut reader = Reader::new();
        reader.push(&std::fs::read(file).unwrap()).unwrap();
        let snapshot = reader.finish().unwrap();
        let mut n = 0;
        for device in 0..3 {
            let mut ranges = Ranges::at_end(&snapshot, device);
            let blocks = snapshot.live_at_end(device).into_iter();
            let mut live: BTreeMap<u64, i64> =
                blocks.map(|block| (block.address, block.size)).collect();
            for event in snapshot.trace(device).iter().rev() {
                undo(event, &mut ranges, &mut live);
                if event.action != Action::SegmentUnmap {
                    continue;
                }
                let (start, segment_type, low, high) = gap(&ranges, &live, event.address).unwrap();
                let page = page(&segment_type);
                let low = i64::try_from(low - start).unwrap();
                let size = i64::try_from(high - start).unwrap() - low;
                let first = (low + page - 1) / page * page;
                assert_eq!(event.address, end(start, first), "device {device}");
                assert_eq!(event.size, pages_within(low, size, page), "device {device}");
                n += 1;
            }
        }
        assert_eq!(n, 6);
    }
}
