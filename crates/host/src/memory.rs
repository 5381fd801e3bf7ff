//! Allocated memory over time, from `[memory]` events.

use std::collections::BTreeMap;

use serde::Serialize;
use timeline::absolute_ns;
use trace::{Details, Flags, MemoryEvent, Trace};

/// The memory of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryRow {
    /// 0 is the CPU, 1 a GPU.
    pub device_type: Option<i64>,
    /// The device; -1 on the CPU.
    pub device_id: Option<i64>,
    /// Events.
    pub n: usize,
    /// Those that allocate.
    pub n_alloc: usize,
    /// Bytes that they allocate.
    pub sum_alloc: i64,
    /// Those that free.
    pub n_free: usize,
    /// Bytes that they free.
    pub sum_free: i64,
    /// Those of no bytes.
    pub n_zero: usize,
    /// Bytes allocated before the first event.
    pub baseline_allocated: Option<i64>,
    /// Most bytes allocated at once.
    pub peak_total_allocated: Option<i64>,
    /// When, on the clock of the file.
    pub peak_at_ns: Option<i64>,
    /// Most bytes reserved at once.
    pub peak_total_reserved: Option<i64>,
    /// The first event.
    pub first: MemoryAt,
    /// The last event.
    pub last: MemoryAt,
    /// How often the reserved bytes grew.
    pub reserved_increases: usize,
    /// How often they shrank.
    pub reserved_decreases: usize,
    /// Reserved bytes at the peak of allocated ones.
    pub reserved_at_peak: Option<i64>,
    /// Events whose total is not the total before them and their bytes, by time.
    pub chain_mismatch: usize,
    /// The first of them.
    pub first_mismatch: Option<Mismatch>,
    /// The same in the order of the file.
    pub chain_mismatch_file_order: usize,
    /// Whether the file has them by time.
    pub file_order_is_time_order: bool,
    /// Pairs of neighbours at the same time.
    pub equal_ts_pairs: usize,
    /// Frees of addresses that no event allocated.
    pub frees_of_unseen_addr: usize,
    /// Their bytes.
    pub bytes_of_those: i64,
    /// Allocations of an address that was not freed.
    pub alloc_of_live_addr: usize,
    /// Frees of another size than was allocated.
    pub free_size_differs: usize,
    /// Addresses that are not freed in the file.
    pub live_at_end: usize,
    /// Their bytes.
    pub live_bytes_at_end: i64,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of the event")]
pub struct MemoryAt {
    pub ts_ns: Option<i64>,
    pub bytes: i64,
    pub total_allocated: Option<i64>,
    pub total_reserved: Option<i64>,
}

/// An event whose total does not follow from the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// When, on the clock of the file.
    pub ts_ns: Option<i64>,
    /// The total before.
    pub prev: Option<i64>,
    /// Its bytes.
    pub bytes: i64,
    /// Its total.
    pub value: Option<i64>,
}

/// `[memory]` events of one device, in file order, with their times.
pub type OfDevice = Vec<(i64, MemoryEvent)>;

/// The events by device type and device.
#[must_use]
pub fn by_device(
    trace: &Trace,
    details: &Details,
) -> BTreeMap<(Option<i64>, Option<i64>), OfDevice> {
    let mut found: BTreeMap<_, OfDevice> = BTreeMap::new();
    for (row, event) in &details.memory {
        if trace.flags(*row).has(Flags::HAS_TS) {
            let key = (event.device_type, event.device);
            found.entry(key).or_default().push((trace.ts_ns(*row), *event));
        }
    }
    found
}

/// The memory of each device.
#[must_use]
pub fn memory(trace: &Trace, details: &Details) -> Vec<MemoryRow> {
    let mut rows: Vec<MemoryRow> = by_device(trace, details)
        .into_iter()
        .filter_map(|((device_type, device_id), events)| {
            of_device(trace, device_type, device_id, &events)
        })
        .collect();
    // As the reference orders them: by the text of the pair.
    let text = |value: Option<i64>| value.map_or("None".to_owned(), |value| value.to_string());
    trace::sort_by_key(&mut rows, |row| {
        format!("({}, {})", text(row.device_type), text(row.device_id))
    });
    rows
}

fn mismatches(
    events: &[(i64, MemoryEvent)],
) -> impl Iterator<Item = (i64, Option<i64>, MemoryEvent)> {
    events.windows(2).filter_map(|pair| {
        let [(_, before), (at, event)] = pair else { return None };
        let expected = before.allocated_bytes.and_then(|total| total.checked_add(event.bytes));
        let holds = expected.is_some() && expected == event.allocated_bytes;
        (!holds).then_some((*at, before.allocated_bytes, *event))
    })
}

fn of_device(
    trace: &Trace,
    device_type: Option<i64>,
    device_id: Option<i64>,
    in_file: &[(i64, MemoryEvent)],
) -> Option<MemoryRow> {
    let mut sorted = in_file.to_vec();
    trace::sort_by_key(&mut sorted, |(at, _)| *at);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let at = |(at, event): (i64, MemoryEvent)| MemoryAt {
        ts_ns: absolute_ns(trace, at),
        bytes: event.bytes,
        total_allocated: event.allocated_bytes,
        total_reserved: event.reserved_bytes,
    };
    let bytes = || sorted.iter().map(|(_, event)| event.bytes);
    let peak = sorted.iter().filter_map(|(_, event)| event.allocated_bytes).max();
    let at_peak = sorted.iter().find(|(_, event)| peak.is_some() && event.allocated_bytes == peak);
    let reserved: Vec<i64> = sorted.iter().filter_map(|(_, event)| event.reserved_bytes).collect();
    let live = Live::of(&sorted);
    Some(MemoryRow {
        device_type,
        device_id,
        n: sorted.len(),
        n_alloc: bytes().filter(|bytes| *bytes > 0).count(),
        sum_alloc: bytes().filter(|bytes| *bytes > 0).sum(),
        n_free: bytes().filter(|bytes| *bytes < 0).count(),
        sum_free: -bytes().filter(|bytes| *bytes < 0).sum::<i64>(),
        n_zero: bytes().filter(|bytes| *bytes == 0).count(),
        baseline_allocated: first.1.allocated_bytes.map(|total| total - first.1.bytes),
        peak_total_allocated: peak,
        peak_at_ns: at_peak.and_then(|(at, _)| absolute_ns(trace, *at)),
        peak_total_reserved: reserved.iter().copied().max(),
        first: at(first),
        last: at(last),
        reserved_increases: reserved.windows(2).filter(|pair| pair[1] > pair[0]).count(),
        reserved_decreases: reserved.windows(2).filter(|pair| pair[1] < pair[0]).count(),
        reserved_at_peak: at_peak.and_then(|(_, event)| event.reserved_bytes),
        chain_mismatch: mismatches(&sorted).count(),
        first_mismatch: mismatches(&sorted).next().map(|(at, prev, event)| Mismatch {
            ts_ns: absolute_ns(trace, at),
            prev,
            bytes: event.bytes,
            value: event.allocated_bytes,
        }),
        chain_mismatch_file_order: mismatches(in_file).count(),
        file_order_is_time_order: in_file.windows(2).all(|pair| pair[0].0 <= pair[1].0),
        equal_ts_pairs: sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0).count(),
        frees_of_unseen_addr: live.n_unseen,
        bytes_of_those: live.unseen_bytes,
        alloc_of_live_addr: live.n_twice,
        free_size_differs: live.n_other_size,
        live_at_end: live.open.len(),
        live_bytes_at_end: live.open.values().sum(),
    })
}

/// What is allocated, address by address.
#[derive(Default)]
struct Live {
    open: BTreeMap<Option<i64>, i64>,
    n_unseen: usize,
    unseen_bytes: i64,
    n_twice: usize,
    n_other_size: usize,
}

impl Live {
    fn of(sorted: &[(i64, MemoryEvent)]) -> Self {
        let mut live = Self::default();
        for (_, event) in sorted {
            if event.bytes > 0 {
                let before = live.open.insert(event.address, event.bytes);
                live.n_twice += usize::from(before.is_some());
            } else if event.bytes < 0 {
                match live.open.remove(&event.address) {
                    Some(size) => live.n_other_size += usize::from(size != -event.bytes),
                    None => {
                        live.n_unseen += 1;
                        live.unseen_bytes += -event.bytes;
                    }
                }
            }
        }
        live
    }
}
