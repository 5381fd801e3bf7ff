//! Allocated memory over time by what allocated it, from `[memory]` events.
//!
//! An event belongs to the line of Python that says most of those around it on its thread; without frames to the innermost op
//! that does more than allocate. A free belongs to what allocated its address. The level after every event is the event's
//! `Total Allocated`: what the events before it do not explain is a change of its own.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use trace::{Details, Flags, MemoryEvent, Row};

use crate::doing::{doing, thread_of};
use crate::slices::Slices;

/// The label of what was allocated before the first event.
pub const BEFORE: &str = "allocated before the first event";
/// The label of changes that no event records.
pub const UNRECORDED: &str = "not recorded by events";
/// The label of events outside of ops and frames.
pub const OUTSIDE: &str = "outside of ops";

/// The memory of a device over its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryOverTime {
    /// 0 is the CPU, 1 a GPU.
    pub device_type: Option<i64>,
    /// The device; -1 on the CPU.
    pub device_id: Option<i64>,
    /// What allocates; the first is [`BEFORE`].
    pub labels: Vec<String>,
    /// Changes by time. Their sum up to an event is its `Total Allocated`; where events have none, the sum since the first event.
    pub changes: Vec<MemoryChange>,
}

/// A change of the allocated bytes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// When, in ns of the trace; `None` before the first event.
    pub at_ns: Option<i64>,
    /// The number of its label.
    pub label: u32,
    /// By how much, in bytes.
    pub bytes: i64,
    /// `Total Reserved` after it, in bytes; 0 where it is missing.
    pub reserved: i64,
}

/// The memory of each device, GPUs first.
#[must_use]
pub fn memory_over_time(slices: &Slices<'_>, details: &Details) -> Vec<MemoryOverTime> {
    // (What stands around events is looked up in all slices.)
    if details.memory.is_empty() {
        return Vec::new();
    }
    let mut by_device: BTreeMap<_, Vec<(i64, Row, MemoryEvent)>> = BTreeMap::new();
    for (row, event) in &details.memory {
        if slices.trace.flags(*row).has(Flags::HAS_TS) {
            let key = (event.device_type == Some(0), event.device_type, event.device);
            by_device.entry(key).or_default().push((slices.trace.ts_ns(*row), *row, *event));
        }
    }
    let labels = Labels::of(slices, details);
    let mut found = Vec::new();
    for ((_, device_type, device_id), mut events) in by_device {
        trace::sort_by_key(&mut events, |(at, ..)| *at);
        let (labels, changes) = changes(&events, &labels);
        found.push(MemoryOverTime { device_type, device_id, labels, changes });
    }
    found
}

fn changes(
    events: &[(i64, Row, MemoryEvent)],
    of_rows: &Labels,
) -> (Vec<String>, Vec<MemoryChange>) {
    let mut labels = vec![BEFORE.to_owned()];
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    numbers.insert(BEFORE.to_owned(), 0);
    let mut number = |label: &str| match numbers.get(label) {
        Some(number) => *number,
        None => {
            let number = labels.len() as u32;
            labels.push(label.to_owned());
            numbers.insert(label.to_owned(), number);
            number
        }
    };
    let mut changes = Vec::with_capacity(events.len() + 1);
    let mut level = 0_i64;
    if let Some((_, _, first)) = events.first()
        && let Some(before) = first.allocated_bytes.map(|total| total.saturating_sub(first.bytes))
    {
        let reserved = first.reserved_bytes.unwrap_or_default();
        changes.push(MemoryChange { at_ns: None, label: 0, bytes: before, reserved });
        level = before;
    }
    let mut owners: HashMap<Option<i64>, u32> = HashMap::new();
    for (at_ns, row, event) in events {
        let (at_ns, reserved) = (Some(*at_ns), event.reserved_bytes.unwrap_or_default());
        let expected = level.saturating_add(event.bytes);
        let missing = event.allocated_bytes.map_or(0, |total| total.saturating_sub(expected));
        if missing != 0 {
            let label = number(UNRECORDED);
            changes.push(MemoryChange { at_ns, label, bytes: missing, reserved });
        }
        let label = if event.bytes > 0 {
            let label = number(of_rows.of_row(*row));
            owners.insert(event.address, label);
            label
        } else {
            owners.remove(&event.address).unwrap_or_default()
        };
        changes.push(MemoryChange { at_ns, label, bytes: event.bytes, reserved });
        level = expected.saturating_add(missing);
    }
    (labels, changes)
}

/// What stands around each event.
struct Labels(HashMap<Row, String>);

impl Labels {
    fn of(slices: &Slices<'_>, details: &Details) -> Self {
        let trace = slices.trace;
        let (mut rows, mut moments) = (Vec::new(), Vec::new());
        for (row, event) in &details.memory {
            if trace.flags(*row).has(Flags::HAS_TS)
                && event.bytes > 0
                && let Some(thread) = thread_of(slices, *row)
            {
                rows.push(*row);
                moments.push((thread, trace.ts_ns(*row)));
            }
        }
        let of_row = doing(slices, &moments).into_iter().zip(rows).filter_map(|(doing, row)| {
            let op = || doing.op.map(str::to_owned);
            Some((row, doing.line.clone().or_else(op)?))
        });
        Self(of_row.collect())
    }

    fn of_row(&self, row: Row) -> &str {
        self.0.get(&row).map_or(OUTSIDE, String::as_str)
    }
}
