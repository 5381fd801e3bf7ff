//! A model of the caching allocator of PyTorch: which block a request gets, and what it reserves from the driver.
//!
//! Rules and constants: `c10/cuda/CUDACachingAllocator.cpp` (`round_size`, `get_allocation_size`, `get_free_block`,
//! `should_split`, `try_allocate_expandable_block`, `release_cached_blocks`).

use std::collections::{BTreeMap, BTreeSet};

use super::Settings;
use crate::model::{MIB, SMALL, round_up, segment_of};

/// An unsplit block of at least `max_split_size` may be this much larger than its request (`max_non_split_rounding_size`).
const MOST_UNSPLIT_REST: i64 = 20 * MIB;
/// Stands for address space without an end.
const ENDLESS: i64 = 1 << 46;

/// Stream, and whether it is the small pool.
pub(super) type Pool = (i64, bool);

/// A block, keyed by its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: i64,
    pub(super) is_used: bool,
    /// Index of its segment.
    segment: usize,
}

/// One `cudaMalloc`, or the address range of an expandable segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    base: u64,
    /// Bytes of address space.
    size: i64,
    pool: Pool,
    is_expandable: bool,
}

/// What a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The address of its block.
    pub(super) address: u64,
    /// Bytes that came from the driver for it.
    pub(super) grown: i64,
}

/// The allocator.
#[derive(Clone, Debug)]
pub(super) struct Pools {
    settings: Settings,
    segments: Vec<Segment>,
    blocks: BTreeMap<u64, Block>,
    /// Free blocks: pool, size, address. The best fit is the first that is large enough.
    free: BTreeSet<(Pool, i64, u64)>,
    /// The expandable segment of each pool.
    growing: BTreeMap<Pool, usize>,
    /// Bytes from the driver.
    pub(super) reserved: i64,
}

fn length(from: u64, to: u64) -> i64 {
    i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX)
}

fn end(address: u64, size: i64) -> u64 {
    address.saturating_add(size.unsigned_abs())
}

/// Bytes that expandable segments map at a time.
fn page(pool: Pool) -> i64 {
    if pool.1 { 2 * MIB } else { 20 * MIB }
}

impl Settings {
    /// The size of the block that a request needs (`round_size` and `roundup_power2_divisions` of PyTorch's
    /// `c10/core/AllocatorConfig.h`: below 1 MiB the first division counts, too).
    pub(super) fn rounded(&self, requested: i64) -> i64 {
        let power = requested.max(MIB).ilog2() - MIB.ilog2();
        let of_power =
            usize::try_from(power).ok().and_then(|at| self.roundup_power2_divisions.get(at));
        let parts = of_power.or(self.roundup_power2_divisions.last()).copied().unwrap_or_default();
        if parts > 1 && requested > 512 * parts {
            let floor = requested.checked_ilog2().map_or(1, |log| 1i64 << log);
            return round_up(requested, (floor / parts).max(1));
        }
        crate::model::rounded(requested)
    }
}

impl Pools {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            segments: Vec::new(),
            blocks: BTreeMap::new(),
            free: BTreeSet::new(),
            growing: BTreeMap::new(),
            reserved: 0,
        }
    }

    /// Adds a segment of `cudaMalloc`; it is one free block.
    pub(super) fn add_segment(&mut self, address: u64, size: i64, pool: Pool) {
        let segment = self.segments.len();
        self.segments.push(Segment { base: address, size, pool, is_expandable: false });
        self.reserved = self.reserved.saturating_add(size);
        self.put(address, Block { size, is_used: false, segment });
    }

    /// Gives a pool its expandable segment.
    pub(super) fn add_expandable(&mut self, base: u64, pool: Pool) {
        self.growing.insert(pool, self.segments.len());
        self.segments.push(Segment { base, size: ENDLESS, pool, is_expandable: true });
    }

    /// Whether a pool has its expandable segment.
    pub(super) fn has_expandable(&self, pool: Pool) -> bool {
        self.growing.contains_key(&pool)
    }

    /// Maps a run of pages of the pool's expandable segment; `false` without one.
    pub(super) fn map(&mut self, address: u64, size: i64, pool: Pool) -> bool {
        let Some(segment) = self.growing.get(&pool).copied() else { return false };
        self.reserved = self.reserved.saturating_add(size);
        self.put(address, Block { size, is_used: false, segment });
        self.merge(address);
        true
    }

    /// Marks a range of a free block as in use; `false` when it is not free.
    pub(super) fn occupy(&mut self, address: u64, size: i64) -> bool {
        let Some((start, block)) = self.at(address).filter(|(_, block)| !block.is_used) else {
            return false;
        };
        let high = end(start, block.size);
        if end(address, size) > high {
            return false;
        }
        self.take(start);
        if start < address {
            self.put(start, Block { size: length(start, address), ..block });
        }
        self.put(address, Block { size, is_used: true, ..block });
        let rest = end(address, size);
        if rest < high {
            self.put(rest, Block { size: length(rest, high), ..block });
        }
        true
    }

    /// Lengthens a block in use by the first bytes of the free block behind it.
    pub(super) fn widen(&mut self, address: u64, by: i64) {
        let by = by.min(self.gap_behind(address));
        if by <= 0 {
            return;
        }
        let Some(block) = self.take(address) else { return };
        let at = end(address, block.size);
        let gap = self.take(at);
        self.put(address, Block { size: block.size.saturating_add(by), ..block });
        if let Some(gap) = gap.filter(|gap| gap.size > by) {
            self.put(end(at, by), Block { size: gap.size - by, ..gap });
        }
    }

    /// The free bytes behind a block, up to the next block in use or the end of the segment.
    pub(super) fn gap_behind(&self, address: u64) -> i64 {
        let Some(block) = self.blocks.get(&address) else { return 0 };
        let next = self.blocks.get(&end(address, block.size));
        let gap = next.filter(|next| !next.is_used && next.segment == block.segment);
        gap.map_or(0, |gap| gap.size)
    }

    fn at(&self, address: u64) -> Option<(u64, Block)> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (end(*start, block.size) > address).then_some((*start, *block))
    }

    fn pool_of(&self, block: &Block) -> Pool {
        self.segments.get(block.segment).map_or((0, false), |segment| segment.pool)
    }

    fn put(&mut self, address: u64, block: Block) {
        if !block.is_used {
            self.free.insert((self.pool_of(&block), block.size, address));
        }
        self.blocks.insert(address, block);
    }

    fn take(&mut self, address: u64) -> Option<Block> {
        let block = self.blocks.remove(&address)?;
        self.free.remove(&(self.pool_of(&block), block.size, address));
        Some(block)
    }

    /// Joins a free block with its free neighbours of the same segment; returns where it starts then.
    fn merge(&mut self, address: u64) -> u64 {
        let Some(block) = self.blocks.get(&address).copied() else { return address };
        let joins = |other: &Block| !other.is_used && other.segment == block.segment;
        let before = self.blocks.range(..address).next_back();
        let before = before
            .filter(|(at, other)| joins(other) && end(**at, other.size) == address)
            .map(|(at, _)| *at);
        let after = end(address, block.size);
        let after = self.blocks.get(&after).filter(|other| joins(other)).map(|_| after);
        let (mut start, mut size) = (address, block.size);
        for neighbour in [before, after].into_iter().flatten() {
            size = size.saturating_add(self.take(neighbour).map_or(0, |other| other.size));
            start = start.min(neighbour);
        }
        self.take(address);
        self.put(start, Block { size, ..block });
        start
    }

    /// Allocates. `place` names the address that the driver gives for a segment of so many bytes.
    ///
    /// # Errors
    /// What `place` refuses.
    pub(super) fn allocate<E>(
        &mut self,
        requested: i64,
        stream: i64,
        place: impl FnOnce(i64) -> Result<u64, E>,
    ) -> Result<Placed, E> {
        let size = self.settings.rounded(requested);
        let pool = (stream, size <= SMALL);
        let before = self.reserved;
        let address = match self.best_fit(size, pool) {
            Some(address) => address,
            None if self.settings.is_expandable => {
                if !self.has_expandable(pool) {
                    let base = place(0)?;
                    self.add_expandable(base, pool);
                }
                self.grow(size, pool)
            }
            None => {
                let bytes = segment_of(size);
                let address = place(bytes)?;
                self.add_segment(address, bytes, pool);
                address
            }
        };
        self.use_block(address, size, pool);
        Ok(Placed { address, grown: self.reserved.saturating_sub(before) })
    }

    fn use_block(&mut self, address: u64, size: i64, pool: Pool) {
        let Some(block) = self.take(address) else { return };
        let rest = block.size.saturating_sub(size);
        let splits = if pool.1 || self.settings.is_expandable {
            rest >= 512
        } else {
            size < self.settings.max_split_size && rest > MIB
        };
        let size = if splits { size } else { block.size };
        self.put(address, Block { size, is_used: true, ..block });
        if splits {
            self.put(end(address, size), Block { size: rest, ..block });
        }
    }

    fn best_fit(&self, size: i64, pool: Pool) -> Option<u64> {
        let mut fits = self.free.range((pool, size, 0)..=(pool, i64::MAX, u64::MAX)).peekable();
        let (_, mut bytes, mut address) = *fits.next()?;
        // Of expandable blocks the one that can grow least is the best.
        while self.is_growing(address)
            && let Some((_, other_bytes, other)) = fits.next()
            && self.room(*other, *other_bytes) < self.room(address, bytes)
        {
            (bytes, address) = (*other_bytes, *other);
        }
        let limit = self.settings.max_split_size;
        let is_refused = (size < limit && bytes >= limit)
            || (size >= limit && bytes >= size.saturating_add(MOST_UNSPLIT_REST));
        (!is_refused).then_some(address)
    }

    fn is_growing(&self, address: u64) -> bool {
        let segment = self.blocks.get(&address).and_then(|block| self.segments.get(block.segment));
        segment.is_some_and(|segment| segment.is_expandable)
    }

    /// Bytes of a block and of the pages after it that are not mapped.
    fn room(&self, address: u64, bytes: i64) -> i64 {
        if !self.is_growing(address) {
            return bytes;
        }
        bytes.saturating_add(self.unmapped_after(end(address, bytes), address))
    }

    fn unmapped_after(&self, high: u64, block: u64) -> i64 {
        let own = self.blocks.get(&block).map(|block| block.segment);
        match self.blocks.range(high..).next() {
            Some((next, other)) if Some(other.segment) == own => length(high, *next),
            _ => ENDLESS,
        }
    }

    /// Maps what a request lacks, at the lowest place that has room; returns the address of its block.
    fn grow(&mut self, size: i64, pool: Pool) -> u64 {
        let Some(index) = self.growing.get(&pool).copied() else { return 0 };
        let base = self.segments.get(index).map_or(0, |segment| segment.base);
        // Free bytes, mapped or not, that end at the block looked at, and whether unmapped ones are among them.
        let (mut start, mut at, mut has_hole) = (base, base, false);
        for (address, block) in self.blocks.range(base..end(base, ENDLESS)) {
            if block.segment != index {
                continue;
            }
            has_hole |= *address > at;
            if block.is_used {
                if has_hole && length(start, *address) >= size {
                    break;
                }
                start = end(*address, block.size);
                has_hole = false;
            }
            at = end(*address, block.size);
        }
        self.map_within(start, size, pool);
        start
    }

    fn map_within(&mut self, start: u64, size: i64, pool: Pool) {
        let Some(index) = self.growing.get(&pool).copied() else { return };
        let mut at = start;
        while length(start, at) < size {
            // (What was mapped last may have joined free blocks on both sides.)
            match self.at(at).filter(|(_, block)| block.segment == index) {
                Some((low, block)) => at = end(low, block.size),
                None => {
                    let missing = round_up(size - length(start, at), page(pool));
                    let next = self.blocks.range(at..).next();
                    let hole = next
                        .filter(|(_, block)| block.segment == index)
                        .map_or(missing, |(next, _)| length(at, *next).min(missing));
                    self.map(at, hole, pool);
                    at = end(at, hole);
                }
            }
        }
    }

    /// Frees a block; `false` when it is not in use.
    pub(super) fn release_block(&mut self, address: u64) -> bool {
        let Some(block) = self.blocks.get(&address).copied().filter(|block| block.is_used) else {
            return false;
        };
        self.take(address);
        self.put(address, Block { is_used: false, ..block });
        self.merge(address);
        true
    }

    /// The bytes of a free block that can go back to the driver, as a range.
    fn returnable(&self, address: u64, bytes: i64) -> Option<(u64, i64)> {
        let segment = self.segments.get(self.blocks.get(&address)?.segment)?;
        if !segment.is_expandable {
            return (segment.size == bytes).then_some((address, bytes));
        }
        let (page, start) = (page(segment.pool), length(segment.base, address));
        let low = round_up(start, page);
        let high = start.saturating_add(bytes) / page * page;
        (high > low).then_some((end(segment.base, low), high - low))
    }

    /// What `empty_cache` would return.
    pub(super) fn returnable_ranges(&self) -> Vec<(u64, i64)> {
        self.free
            .iter()
            .filter_map(|(_, bytes, address)| self.returnable(*address, *bytes))
            .collect()
    }

    /// Returns all that can go back to the driver.
    pub(super) fn return_all(&mut self) {
        for (address, size) in self.returnable_ranges() {
            self.return_range(address, size);
        }
    }

    /// Returns a range that is free to the driver; `false` when it is not one that can go back.
    pub(super) fn return_range(&mut self, address: u64, size: i64) -> bool {
        let Some((start, block)) = self.at(address).filter(|(_, block)| !block.is_used) else {
            return false;
        };
        let fits = self
            .returnable(start, block.size)
            .is_some_and(|(low, bytes)| low <= address && end(address, size) <= end(low, bytes));
        if !fits {
            return false;
        }
        self.take(start);
        if start < address {
            self.put(start, Block { size: length(start, address), ..block });
        }
        let (rest, high) = (end(address, size), end(start, block.size));
        if rest < high {
            self.put(rest, Block { size: length(rest, high), ..block });
        }
        self.reserved = self.reserved.saturating_sub(size);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_before_a_free_block_is_mapped_once() {
        let settings = Settings {
            is_expandable: true,
            max_split_size: i64::MAX,
            roundup_power2_divisions: [0; 16],
        };
        let mut pools = Pools::new(settings);
        let allocate = |pools: &mut Pools, mib: i64| {
            let placed = pools.allocate(mib * MIB, 0, |_| Ok::<u64, ()>(1 << 40));
            placed.map(|placed| (placed.address - (1 << 40), placed.grown / MIB))
        };
        // Pages of 20 MiB: two, then one more behind a rest of 10.
        assert_eq!(allocate(&mut pools, 30), Ok((0, 40)));
        assert_eq!(allocate(&mut pools, 30), Ok((30 << 20, 20)));
        // The page at the start goes back; 10 MiB of the next one stay.
        assert!(pools.release_block(1 << 40));
        pools.return_all();
        assert_eq!(pools.reserved, 40 * MIB);
        assert_eq!(allocate(&mut pools, 30), Ok((0, 20)));
        assert_eq!(pools.reserved, 60 * MIB);
    }
}
