//! A memory snapshot as data.

mod later;

use std::collections::BTreeMap;

use later::Later;

use crate::stacks::{StackId, Stacks};

/// A decoded snapshot.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// What the allocator reserved from the driver, in file order.
    pub segments: Vec<Segment>,
    /// The blocks of all segments; a segment has a range of them.
    pub blocks: Vec<Block>,
    /// The recorded events per device, oldest first.
    pub traces: Vec<Vec<Event>>,
    /// `device_free` of the `oom` events that have it, in bytes: by device and index of the event.
    pub device_free: BTreeMap<(usize, usize), i64>,
    /// Marks of `record_function`, in file order.
    pub annotations: Vec<Annotation>,
    /// The settings of the allocator: the JSON text of the member.
    pub settings: Option<String>,
    /// The call stacks.
    pub stacks: Stacks,
    /// What the events behind the chosen ones did, by device.
    pub(crate) later: BTreeMap<usize, Later>,
    /// The events of each device that are kept, while reading; `None` for all.
    pub(crate) chosen: Option<std::ops::Range<usize>>,
    /// What was read and what was not.
    pub reading: Reading,
}

/// Memory that the allocator reserved with one call of the driver, or one mapped run of an expandable segment.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Device number.
    pub device: i64,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub total_size: i64,
    /// Rounded bytes of allocated blocks, as the file says.
    pub allocated_size: i64,
    /// Rounded bytes of blocks that are not free, as the file says.
    pub active_size: i64,
    /// The stream's raw pointer value; 0 is the default stream.
    pub stream: i64,
    /// `small` or `large`.
    pub segment_type: String,
    /// (0, 0) is the default pool; another is private.
    pub pool: (i64, i64),
    /// Whether it is a mapped run of an expandable segment.
    pub is_expandable: bool,
    /// The blocks, as a range of [`Snapshot::blocks`].
    pub blocks: std::ops::Range<usize>,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// In use.
    Allocated,
    /// Freed by the program, still in use by a stream.
    PendingFree,
    /// Free.
    Inactive,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First byte.
    pub address: u64,
    /// Rounded bytes.
    pub size: i64,
    /// Requested bytes. Of an inactive block this is a stale figure of an earlier use.
    pub requested: i64,
    /// What it is used for.
    pub state: BlockState,
    /// Who allocated it.
    pub stack: StackId,
}

impl Block {
    /// Whether it is not free.
    #[must_use]
    pub(crate) fn is_active(&self) -> bool {
        self.state != BlockState::Inactive
    }
}

/// What an event records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A block was allocated; its size is the requested one.
    Alloc,
    /// The program freed a block.
    FreeRequested,
    /// The block became free.
    FreeCompleted,
    /// A segment came from the driver.
    SegmentAlloc,
    /// A segment went back to the driver.
    SegmentFree,
    /// Pages were mapped into an expandable segment.
    SegmentMap,
    /// Pages were unmapped.
    SegmentUnmap,
    /// A snapshot was taken.
    Snapshot,
    /// The allocator found no memory.
    Oom,
    /// An action that this crate does not know: only counted. The number indexes [`Reading::unknown_actions`].
    Other(u8),
}

/// Spelling and meaning of the actions. PyTorch: `c10/cuda/CUDACachingAllocator.h`, `TraceEntry::Action`.
pub(crate) const ACTIONS: &[(&str, Action)] = &[
    ("alloc", Action::Alloc),
    ("free_requested", Action::FreeRequested),
    ("free_completed", Action::FreeCompleted),
    ("segment_alloc", Action::SegmentAlloc),
    ("segment_free", Action::SegmentFree),
    ("segment_map", Action::SegmentMap),
    ("segment_unmap", Action::SegmentUnmap),
    ("snapshot", Action::Snapshot),
    ("oom", Action::Oom),
];

/// An event of the allocator.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// Who did it.
    pub stack: StackId,
    /// First byte; 0 for an `oom`.
    pub address: u64,
    /// Bytes: requested for blocks, real for segments.
    pub size: i64,
    /// The stream's raw pointer value.
    pub stream: i64,
    /// Time in us; `i64::MIN` when the file has none.
    pub time_us: i64,
}

impl Event {
    /// The time in us, where the file has it.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        (self.time_us != i64::MIN).then_some(self.time_us)
    }
}

/// A mark of `record_function`.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Whether it is an end; else it is a start.
    pub is_end: bool,
    /// Its name.
    pub name: String,
    /// The device of the thread that recorded it.
    pub device: Option<i64>,
    /// Time in us.
    pub time_us: i64,
}

/// What was read and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Reading {
    /// Bytes of the decompressed document.
    pub bytes: u64,
    /// Whether the file ends before its outermost object does.
    pub is_cut: bool,
    /// Whether blocks have `history` (PyTorch of 2023 and older) instead of `frames`.
    pub has_history: bool,
    /// Whether the document is a list of segments (`torch.cuda.memory_snapshot()`) instead of an object.
    pub is_segment_list: bool,
    /// Objects that could not be read, or only in part.
    pub damaged_elements: u64,
    /// Sizes or addresses that are missing or no whole number; they count as 0.
    pub unreadable_numbers: u64,
    /// Whether the file has annotations, perhaps none.
    pub has_annotations: bool,
    /// Faults of the compressed data.
    pub compression_faults: u64,
    /// Bytes after the document.
    pub bytes_after: u64,
    /// Keys that this crate does not know, with how often they occur.
    pub unknown_keys: BTreeMap<String, u64>,
    /// Actions that this crate does not know, in order of first occurrence.
    pub unknown_actions: Vec<String>,
    /// States of blocks that this crate does not know, with how often they occur; such blocks count as active.
    pub unknown_states: BTreeMap<String, u64>,
    /// Events that were left out because only a range was asked for, by device; empty where all were read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<usize, LeftOut>,
}

/// The events of a device that were not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Before the chosen range.
    pub before: u64,
    /// Behind the chosen range.
    pub behind: u64,
}

impl Reading {
    /// The events of a device that were left out, if some were.
    pub(crate) fn left_out_of(&self, device: &str) -> Option<LeftOut> {
        self.left_out.get(&device.parse().ok()?).copied()
    }

    /// Whether a part of the file is missing or damaged, so that sums are too small and levels unreliable.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_cut || self.damaged_elements > 0 || self.compression_faults > 0
    }
}

impl Snapshot {
    /// The blocks of a segment, by address.
    #[must_use]
    pub(crate) fn blocks_of(&self, segment: &Segment) -> &[Block] {
        self.blocks.get(segment.blocks.clone()).unwrap_or_default()
    }

    /// The events of a device.
    #[must_use]
    pub fn trace(&self, device: i64) -> &[Event] {
        usize::try_from(device).ok().and_then(|device| self.traces.get(device)).map_or(&[], |t| t)
    }

    /// The blocks in use after the last kept event of a device, those of the segments first. The rounded size of a block that was freed
    /// behind the chosen range is a lower bound.
    pub(crate) fn live_at_end(&self, device: i64) -> Vec<Block> {
        let segments = self.segments.iter().filter(|segment| segment.device == device);
        let blocks = segments.flat_map(|segment| self.blocks_of(segment));
        let active = blocks.copied().filter(Block::is_active);
        match self.later_of(device) {
            Some(later) => later.live_before(active),
            None => active.collect(),
        }
    }

    /// What the events behind the chosen range did on a device.
    pub(crate) fn later_of(&self, device: i64) -> Option<&Later> {
        self.later.get(&usize::try_from(device).ok()?)
    }

    /// The spelling of an action.
    #[must_use]
    pub(crate) fn action_name(&self, action: Action) -> &str {
        if let Action::Other(at) = action {
            let name = self.reading.unknown_actions.get(usize::from(at));
            return name.map_or("(other)", String::as_str);
        }
        ACTIONS.iter().find(|(_, known)| *known == action).map_or("", |(name, _)| *name)
    }
}

/// The least bytes that a request takes.
pub(crate) fn rounded(requested: i64) -> i64 {
    round_up(requested, 512).max(512)
}

/// In bytes.
pub(crate) const MIB: i64 = 1 << 20;
/// Requests up to this size use the small pool (`kSmallSize` in `c10/cuda/CUDACachingAllocator.cpp`).
pub(crate) const SMALL: i64 = MIB;
/// Requests from this size on get a segment of their own size (`kMinLargeAlloc` there).
const LEAST_OWN: i64 = 10 * MIB;

/// The bytes of the segment that is asked of the driver for a block of `size` bytes (`get_allocation_size` there).
pub(crate) fn segment_of(size: i64) -> i64 {
    match size {
        ..=SMALL => 2 * MIB,
        size if size < LEAST_OWN => 20 * MIB,
        size => round_up(size, 2 * MIB),
    }
}

/// The next multiple of `unit` from `size` on.
pub(crate) fn round_up(size: i64, unit: i64) -> i64 {
    size.saturating_add(unit - 1) / unit * unit
}
