//! Whether a recording lost its oldest events: the allocator keeps `max_entries` of them and overwrites the oldest.

use std::collections::HashMap;

use report::units::{count, plural, time};
use report::{Confidence, Finding};

use crate::amounts::{percent, size};
use crate::claim::put;
use crate::leaks::step_ends;
use crate::model::{Action, Event, Snapshot};
use crate::replay::Replay;

/// The first events, in which a recording that was cut frees blocks that it did not allocate.
const FIRST_EVENTS: usize = 100;
/// A number of events that may be a limit is a power of two or has one digit before its zeros (from [`MANY`] on: two), and at least this
/// value. One number of a thousand looks so by chance.
const LEAST_LIMIT: usize = 1000;
/// 1 400 events are two steps of 700 each; of 14 000 the zeros are no chance.
const MANY: usize = 10_000;
/// Reserved memory that exceeds the memory in use by this part, in percent, was needed for something else.
const LEAST_MORE: f64 = 10.0;

/// A recording without its oldest events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    events: usize,
    /// From the first to the last event.
    span_us: i64,
    /// From the first annotation to the first event.
    before_us: i64,
    /// Steps that end before the first event.
    steps: usize,
}

/// Whether a number looks like a limit that a person or a default sets.
fn is_round(n: usize) -> bool {
    let most = if n < MANY { 10 } else { 100 };
    let mut digits = n;
    while digits >= most && digits.is_multiple_of(10) {
        digits /= 10;
    }
    n >= LEAST_LIMIT && (digits < most || n.is_power_of_two())
}

/// Whether one of the first events frees a block that is allocated by no event.
fn frees_unknown(trace: &[Event]) -> bool {
    let mut open: HashMap<u64, usize> = HashMap::new();
    trace.iter().enumerate().take(FIRST_EVENTS).any(|(at, event)| match event.action {
        Action::Alloc => {
            open.insert(event.address, at);
            false
        }
        Action::FreeCompleted => open.remove(&event.address).is_none(),
        _ => false,
    })
}

/// The ends of steps before the first event of a device: nothing of them is recorded.
pub(crate) fn missing_steps(trace: &[Event], ends: &[i64]) -> usize {
    let first = trace.iter().find_map(Event::time);
    first.map_or(0, |first| ends.iter().take_while(|end| **end < first).count())
}

/// Tells it by frees of blocks that were never allocated, together with steps before the first event or a round number of events.
#[inline(never)]
pub(crate) fn cut(snapshot: &Snapshot, device: i64) -> Option<Cut> {
    let trace = snapshot.trace(device);
    let is_ranged = !snapshot.reading.left_out.is_empty();
    let steps = missing_steps(trace, &step_ends(snapshot, device));
    if is_ranged || steps == 0 && !is_round(trace.len()) || !frees_unknown(trace) {
        return None;
    }
    let mut times = trace.iter().filter_map(Event::time);
    let first = times.next().unwrap_or_default();
    let last = times.next_back().unwrap_or(first);
    let is_own = |device_of: Option<i64>| device_of.is_none_or(|of| of == device);
    let marks = snapshot.annotations.iter().filter(|mark| is_own(mark.device));
    let mark = marks.map(|mark| mark.time_us).min().unwrap_or(first);
    let (span_us, before_us) = (last.saturating_sub(first), first.saturating_sub(mark).max(0));
    Some(Cut { events: trace.len(), span_us, before_us, steps })
}

/// That the figures are those of the end of the run.
#[inline(never)]
pub(crate) fn finding(device: &str, cut: &Cut, replay: &Replay, to: &mut Vec<Finding>) {
    let long = |us: i64| time(us.saturating_mul(1000));
    let mut observation = format!(
        "Device {device}: only the last {} are recorded",
        plural(cut.events as u64, "event", "events")
    );
    if cut.span_us > 0 {
        observation.push_str(&format!(", which span {}", long(cut.span_us)));
    }
    observation.push_str("; the first ones free blocks that no event allocates");
    if cut.before_us > 0 {
        observation.push_str(&format!(", and annotations begin {} earlier", long(cut.before_us)));
    }
    observation.push('.');
    match cut.steps {
        0 => {}
        1 => observation.push_str(" Step 1 ends before them."),
        n => observation.push_str(&format!(" Steps 1 to {} end before them.", count(n as u64))),
    }
    let mut why = "The buffer of events was full: new events overwrite the oldest. The peak of the run may lie before the first recorded event."
        .to_owned();
    let (reserved, peak) = (replay.start_reserved, replay.peak_requested);
    let is_more = percent(reserved.saturating_sub(peak), reserved) >= LEAST_MORE;
    if is_more && reserved == replay.peak_reserved {
        why.push_str(&format!(
            " All of the {} reserved existed before it, more than the {} of the recorded peak need.",
            size(reserved),
            size(peak)
        ));
    }
    put(
        to,
        "recording-cut",
        if cut.steps > 0 { Confidence::High } else { Confidence::Medium },
        [
            &observation,
            &why,
            "Raise max_entries of torch.cuda.memory._record_memory_history(), or write the snapshot after fewer steps.",
            "The first step that is annotated has events.",
            &format!("devices.{device}.replay.free_of_untraced"),
        ],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_round_numbers() {
        for (n, is_limit) in [
            (10_000, true),
            (100_000, true),
            (65_536, true),
            (25_000, true),
            (20_400, false),
            (2_000, true),
            (1_400, false),
            (300, false),
            (1_234, false),
        ] {
            assert_eq!(is_round(n), is_limit, "{n}");
        }
    }
}
