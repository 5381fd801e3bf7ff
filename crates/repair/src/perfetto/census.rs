//! What the importer makes of events one by one, whatever thread they are on.

use trace::{Container, Flags, Phase, Row, Trace};

use super::Prediction;
use crate::view::{Seen, View};

/// Adds what one event contributes to the counts of a prediction.
#[inline]
pub(super) fn count(view: &View<'_>, event: &Seen, prediction: &mut Prediction) {
    let Seen { row, phase, flags, ts, dur } = *event;
    // Nearly every event: a slice that the importer reads as it stands.
    let sound = phase == Phase::Complete
        && flags.has(Flags(Flags::HAS_TS.0 | Flags::HAS_DUR.0))
        && !flags.has(Flags::PHASE_UNREADABLE)
        && !flags.has(Flags::BIND_UNDIRECTED)
        && ts >= 0
        && dur >= 0
        && ts == view.exact_ts(row);
    if !sound && !view.is_aside(row) {
        count_closely(view, event, prediction);
    }
}

#[inline(never)]
fn count_closely(view: &View<'_>, event: &Seen, prediction: &mut Prediction) {
    let trace = view.trace;
    let Seen { row, phase, flags, ts, dur } = *event;
    if flags.has(Flags::PHASE_UNREADABLE) {
        prediction.unreadable_events += 1;
        return;
    }
    if !flags.has(Flags::HAS_TS) && phase != Phase::Metadata {
        prediction.unreadable_events += 1;
        return;
    }
    if flags.has(Flags::V8_SAMPLE) {
        prediction.unreadable_events += u64::from(flags.has(Flags::ID_UNREADABLE));
        return;
    }
    let has_ts = flags.has(Flags::HAS_TS);
    if has_ts && ts < 0 {
        // Dropped before anything else is looked at.
        prediction.negative_times += 1;
        return;
    }
    if phase == Phase::Metadata && flags.has(Flags::ARGS_UNREADABLE) {
        prediction.rejected_events += trace.rejections(row);
    }
    if !has_ts {
        return;
    }
    let off = (ts.wrapping_sub(view.exact_ts(row))).unsigned_abs();
    if off > 0 && !(off == 1 && trace.flags(row).has(Flags::SUB_NS)) {
        prediction.misread_times += 1;
        prediction.worst_rounding_ns = prediction.worst_rounding_ns.max(off);
    }
    let rejected =
        (phase == Phase::Complete && !flags.has(Flags::HAS_DUR)) || flags.has(Flags::ID_UNREADABLE);
    if flags.has(Flags::BIND_UNDIRECTED) && !rejected {
        prediction.flows_without_direction += 1;
    }
    match phase {
        Phase::Complete if !flags.has(Flags::HAS_DUR) => prediction.rejected_events += 1,
        Phase::Complete if dur < 0 => prediction.negative_durations += 1,
        Phase::Counter if flags.has(Flags::ARGS_UNREADABLE) => {
            prediction.rejected_events += trace.rejections(row);
        }
        Phase::Other if flags.has(Flags::ARGS_UNREADABLE) => prediction.rejected_events += 1,
        Phase::Instant if view.instant_is_homeless(row) => prediction.rejected_events += 1,
        Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd
            if flags.has(Flags::ID_UNREADABLE) =>
        {
            prediction.rejected_events += 1;
        }
        Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd
            if flags.has(Flags::ID_UNREADABLE) || trace.link(row).is_none() =>
        {
            prediction.unreadable_flow_ids += 1;
        }
        _ => {}
    }
}

/// Whether and why the importer gives up on the file.
pub(super) fn stops(view: &View<'_>) -> Option<String> {
    if view.is_repaired() {
        let is_array = view.trace.layout.container == Container::Array;
        let is_empty =
            is_array && !view.adds_events() && view.trace.rows().all(|row| view.is_aside(row));
        return is_empty.then(|| "the array contains no events: \"Unknown trace type\"".to_owned());
    }
    let (trace, layout) = (view.trace, &view.trace.layout);
    let stopping =
        Flags(Flags::DUR_UNREADABLE.0 | Flags::DUR_REJECTED.0 | Flags::THREAD_TIMES_UNREADABLE.0);
    let row = match trace.seen_flags().has_any(stopping) {
        true => {
            trace.rows().take_while(|row| !view.is_aside(*row)).find(|row| stops_at(trace, *row))
        }
        false => None,
    };
    let text = layout.importer_stop.as_ref().filter(|stop| {
        row.is_none_or(|row| {
            stop.offset <= trace.span(row).start || layout.container == Container::Object
        })
    });
    match (text, row) {
        (Some(stop), _) => Some(format!("at byte {}: {}", stop.offset, stop.reason)),
        // (Of a bare array it shows what stands before, without an error.)
        (None, Some(row)) => Some(format!(
            "event {row} has a dur, tdur or tts that is not a number, and Perfetto stops there"
        )),
        (None, None) => None,
    }
}

/// Whether the importer stops at an event for its `dur`, `tts` or `tdur`. (A number out of our range is one to it.)
fn stops_at(trace: &Trace, row: Row) -> bool {
    let flags = trace.flags(row);
    flags.has_any(Flags(Flags::DUR_REJECTED.0 | Flags::THREAD_TIMES_UNREADABLE.0))
        || (flags.has(Flags::DUR_UNREADABLE) && !flags.has(Flags::DUR_BEYOND))
}
