//! What the importer makes of events one by one, whatever thread they are on.

use trace::{Container, Flags, Phase};

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
    if phase == Phase::Metadata && flags.has(Flags::ARGS_UNREADABLE) {
        prediction.rejected_events += 1;
    }
    if !flags.has(Flags::HAS_TS) {
        prediction.unreadable_events += u64::from(phase != Phase::Metadata);
        return;
    }
    prediction.negative_times += u64::from(ts < 0);
    let off = (ts.wrapping_sub(view.exact_ts(row))).unsigned_abs();
    if off > 0 && !(off == 1 && trace.flags(row).has(Flags::SUB_NS)) {
        prediction.misread_times += 1;
        prediction.worst_rounding_ns = prediction.worst_rounding_ns.max(off);
    }
    match phase {
        Phase::Complete if !flags.has(Flags::HAS_DUR) => prediction.rejected_events += 1,
        Phase::Complete if dur < 0 => prediction.negative_durations += 1,
        Phase::Counter if flags.has(Flags::ARGS_UNREADABLE) => prediction.rejected_events += 1,
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
        return None;
    }
    let (trace, layout) = (view.trace, &view.trace.layout);
    if layout.start > 0 {
        return Some("it starts with a byte order mark: \"Unknown trace type\"".to_owned());
    }
    let stopping = Flags(Flags::DUR_UNREADABLE.0 | Flags::THREAD_TIMES_UNREADABLE.0);
    if trace.seen_flags().has_any(stopping)
        && let Some(row) = trace.rows().find(|row| trace.flags(*row).has_any(stopping))
    {
        return Some(format!(
            "event {row} has a dur, tdur or tts that is no number: \"JSON trace file is incomplete\""
        ));
    }
    if layout.end.is_none() && layout.container == Container::Object {
        return Some("the file ends too early: \"JSON trace file is incomplete\"".to_owned());
    }
    None
}
