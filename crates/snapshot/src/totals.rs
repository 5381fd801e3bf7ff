//! Sums over segments and blocks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{BlockState, Segment, Snapshot};

/// What a set of segments contains, in bytes. Sizes of blocks are rounded unless the name says requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Totals {
    pub(crate) segments: u64,
    pub(crate) blocks: u64,
    /// Bytes from the driver.
    pub(crate) reserved: i64,
    /// Blocks in use.
    pub(crate) allocated: i64,
    /// Blocks in use or waiting for a stream.
    pub(crate) active: i64,
    /// Requested bytes of active blocks.
    pub(crate) requested_active: i64,
    /// Blocks that wait for a stream.
    pub(crate) pending_free: i64,
    /// Free blocks.
    pub(crate) inactive: i64,
    /// Free blocks of segments with other blocks.
    pub(crate) inactive_split: i64,
    /// Free blocks that are a whole segment: `empty_cache` returns them.
    pub(crate) inactive_whole: i64,
    pub(crate) inactive_blocks: u64,
    pub(crate) largest_free: i64,
    /// Active less requested.
    pub(crate) rounding_waste: i64,
    /// Reserved less allocated.
    pub(crate) slack: i64,
    /// 1 - largest free block / free bytes.
    pub(crate) fragmentation: f64,
    /// Allocated / reserved.
    pub(crate) utilisation: f64,
    /// Free blocks by the binary logarithm of their size.
    pub(crate) free_hist_log2: BTreeMap<i64, u64>,
}

/// `value` with `places` decimals.
pub(crate) fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10f64.powi(places);
    (value * scale).round_ties_even() / scale
}

pub(crate) fn ratio(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[inline(never)]
pub(crate) fn totals<'a>(
    snapshot: &Snapshot,
    segments: impl IntoIterator<Item = &'a Segment>,
) -> Totals {
    let mut totals = Totals::default();
    for segment in segments {
        let blocks = snapshot.blocks_of(segment);
        totals.segments += 1;
        totals.blocks += blocks.len() as u64;
        totals.reserved = totals.reserved.saturating_add(segment.total_size);
        for block in blocks {
            if block.state == BlockState::Allocated {
                totals.allocated = totals.allocated.saturating_add(block.size);
            }
            if block.is_active() {
                totals.active = totals.active.saturating_add(block.size);
                totals.requested_active = totals.requested_active.saturating_add(block.requested);
                continue;
            }
            totals.inactive = totals.inactive.saturating_add(block.size);
            totals.inactive_blocks += 1;
            totals.largest_free = totals.largest_free.max(block.size);
            let log = block.size.checked_ilog2().map_or(-1, i64::from);
            *totals.free_hist_log2.entry(log).or_default() += 1;
            if blocks.len() > 1 {
                totals.inactive_split = totals.inactive_split.saturating_add(block.size);
            } else {
                totals.inactive_whole = totals.inactive_whole.saturating_add(block.size);
            }
        }
    }
    totals.pending_free = totals.active - totals.allocated;
    totals.rounding_waste = totals.active - totals.requested_active;
    totals.slack = totals.reserved - totals.allocated;
    if totals.inactive > 0 {
        totals.fragmentation = rounded(1.0 - ratio(totals.largest_free, totals.inactive), 9);
    }
    totals.utilisation = rounded(ratio(totals.allocated, totals.reserved), 9);
    totals
}

/// The totals per value of `key`.
#[inline(never)]
pub(crate) fn grouped(
    snapshot: &Snapshot,
    segments: &[&Segment],
    key: impl Fn(&Segment) -> String,
) -> BTreeMap<String, Totals> {
    let mut groups: BTreeMap<String, Vec<&Segment>> = BTreeMap::new();
    for segment in segments {
        groups.entry(key(segment)).or_default().push(segment);
    }
    groups.into_iter().map(|(key, segments)| (key, totals(snapshot, segments))).collect()
}

/// Pages that a mapped run of an expandable segment can give back. PyTorch maps 20 MiB at a time in the large pool and 2 MiB in
/// the small one (`c10/cuda/CUDACachingAllocator.cpp`, `kLargeBuffer` and `kSmallBuffer`).
pub(crate) fn page(segment_type: &str) -> i64 {
    if segment_type == "small" { 2 << 20 } else { 20 << 20 }
}

/// Free bytes by whether they can go back to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FreeBytes {
    /// `empty_cache` returns them: whole segments, and whole pages of expandable ones.
    pub(crate) releasable: i64,
    /// They stay reserved as long as their neighbours are in use.
    pub(crate) hard: i64,
    /// They are of private pools, as those of CUDA graphs: `empty_cache` does not return them while the pool is in use.
    pub(crate) private: i64,
}

/// The free bytes of segments, with the page rule for expandable ones: a gap gives back the pages that lie in it as a whole,
/// counted from the start of the mapping.
#[inline(never)]
pub(crate) fn free_bytes(snapshot: &Snapshot, segments: &[&Segment]) -> FreeBytes {
    let mut free = FreeBytes::default();
    for segment in segments {
        let blocks = snapshot.blocks_of(segment);
        for block in blocks.iter().filter(|block| !block.is_active()) {
            if segment.pool != (0, 0) {
                free.private = free.private.saturating_add(block.size);
                continue;
            }
            let releasable = if blocks.len() == 1 {
                block.size
            } else if segment.is_expandable {
                let start = i64::try_from(block.address.saturating_sub(segment.address));
                pages_within(start.unwrap_or_default(), block.size, page(&segment.segment_type))
            } else {
                0
            };
            free.releasable = free.releasable.saturating_add(releasable);
            free.hard = free.hard.saturating_add(block.size - releasable);
        }
    }
    free
}

/// Bytes of the whole pages inside a gap.
pub(crate) fn pages_within(start: i64, size: i64, page: i64) -> i64 {
    let end = start.saturating_add(size);
    (end / page - start.saturating_add(page - 1) / page).max(0) * page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_of_a_gap_can_be_returned() {
        let page = 20;
        for (start, size, bytes) in
            [(0, 20, 20), (1, 20, 0), (1, 39, 20), (20, 19, 0), (5, 100, 80), (40, 0, 0)]
        {
            assert_eq!(pages_within(start, size, page), bytes, "{start} + {size}");
        }
    }
}
