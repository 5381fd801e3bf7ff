//! A model of Perfetto's JSON importer, small enough to run in a browser tab.
//!
//! It answers, without Perfetto, what Perfetto will do with a trace: which slices it drops (v51 to v56)
//! or spills to an overflow track and flags as an error (v57 and later), which ends it misplaces, which
//! flow events it cannot bind. The rules are facts about `src/trace_processor/importers/json`,
//! `importers/common/slice_tracker.cc`, `flow_tracker.cc` and `sorter/trace_sorter.h` of google/perfetto,
//! measured with trace processor v55.3; the same conditions decide at v58.2, so *zero crossings here*
//! means neither drops nor spills there.
//!
//! One file per rule set: [`threads`] (which events share a stack), [`order`] (in which order they are
//! handled), [`nesting`] (the stack itself). Numbers are in [`trace::decimal`].

pub mod nesting;
pub mod order;
pub mod threads;

use trace::{Flags, Phase, Row, Trace};

use crate::view::{View, each_of, each_row};
use nesting::{Outcome, Stack};
use threads::Threads;

/// Deepest nesting level that the importer shows, counted from 0 (`kMaxDepth` is 512 levels).
pub const MAX_DEPTH: usize = 512;

/// What the importer will do with a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prediction {
    /// Complete slices that cross another on their thread: dropped by v51-v56
    /// (`slice_drop_overlapping_complete_event`), spilled and flagged by v57+
    /// (`slice_spill_overlapping_complete_event`).
    pub crossing_slices: u64,
    /// Of these, how many would cross if the importer's arithmetic were exact.
    pub crossing_slices_exact: u64,
    /// Slices at depth 512 or more: shown garbled by v55, dropped after v57.1.
    pub too_deep: u64,
    /// `E` events that close a slice under an open one (`misplaced_end_event`, data loss).
    pub misplaced_ends: u64,
    /// Slices with a negative duration (`slice_negative_duration`).
    pub negative_durations: u64,
    /// Events before time 0 (`trace_sorter_negative_timestamp_dropped`).
    pub negative_times: u64,
    /// Events without a readable time, or without `ph` (`json_tokenizer_failure`).
    pub unreadable_events: u64,
    /// Slices without a duration, ids missing, arguments that are no numbers (`json_parser_failure`).
    pub rejected_events: u64,
    /// Flow events on a thread without any slice so far (`flow_no_enclosing_slice`).
    pub flows_without_slice: u64,
    /// Flow starts whose id is already started (`flow_duplicate_id`).
    pub duplicate_flow_starts: u64,
    /// Flow events whose id is no integer and no hexadecimal string (`flow_invalid_id`).
    pub unreadable_flow_ids: u64,
    /// Largest difference between the importer's time and the exact one, in ns.
    pub worst_rounding_ns: u64,
    /// Times (`ts`) that the importer reads wrong by rounding.
    pub misread_times: u64,
    /// Why the importer stops and shows nothing or only a part, if it does.
    pub stops: Option<String>,
}

impl Prediction {
    /// Number of slices that v51 to v56 drop for crossing.
    #[must_use]
    pub fn drops_v51_v56(&self) -> u64 {
        self.crossing_slices
    }

    /// Whether Perfetto shows the whole trace with no error, in every version since v51.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let Self {
            crossing_slices,
            crossing_slices_exact: _,
            too_deep,
            misplaced_ends,
            negative_durations,
            negative_times,
            unreadable_events,
            rejected_events,
            flows_without_slice,
            duplicate_flow_starts,
            unreadable_flow_ids,
            worst_rounding_ns: _,
            misread_times: _,
            stops,
        } = self;
        crossing_slices
            + too_deep
            + misplaced_ends
            + negative_durations
            + negative_times
            + unreadable_events
            + rejected_events
            + flows_without_slice
            + duplicate_flow_starts
            + unreadable_flow_ids
            == 0
            && stops.is_none()
    }
}

/// Predicts what the importer does with the trace as it stands.
#[must_use]
pub fn predict(trace: &Trace) -> Prediction {
    survey(&View::of(trace)).prediction
}

/// One run of the importer's model over a trace.
pub(crate) struct Survey {
    pub prediction: Prediction,
    /// The threads, sorted.
    pub threads: Threads,
    /// Threads on which something goes wrong.
    pub troubled: Vec<usize>,
    /// Slices that cross, thread by thread.
    pub dropped: Vec<Row>,
    /// What each flow event binds to: (flow event, slice), sorted.
    pub bindings: Vec<(Row, Row)>,
    /// Flow events without a slice to bind to.
    pub unbound: Vec<Row>,
    /// Parked flow ends that found a slice: (flow event, slice).
    pub unparked: Vec<(Row, Row)>,
}

/// Runs the model.
pub(crate) fn survey(view: &View<'_>) -> Survey {
    let mut prediction = Prediction { stops: stops(view), ..Prediction::default() };
    each_row(view.trace, |row| count_event(view, row, &mut prediction));
    let mut survey = Survey {
        prediction,
        threads: Threads::of(view),
        troubled: Vec::new(),
        dropped: Vec::new(),
        bindings: Vec::new(),
        unbound: Vec::new(),
        unparked: Vec::new(),
    };
    let mut stack = Stack::default();
    for thread in survey.threads.all() {
        stack.clear();
        let (dropped, mut too_deep) = (survey.dropped.len(), 0);
        each_of(survey.threads.rows(thread), |row| {
            match stack.apply(view, &order::item(view, row)) {
                Outcome::Kept | Outcome::Ignored => {}
                Outcome::Crossing(_) => survey.dropped.push(row),
                Outcome::TooDeep => too_deep += 1,
                Outcome::Bound(slice) => survey.bindings.push((row, slice)),
                Outcome::NoSlice => survey.unbound.push(row),
            }
        });
        survey.bindings.extend_from_slice(&stack.unparked);
        survey.unparked.append(&mut stack.unparked);
        survey.prediction.too_deep += too_deep;
        survey.prediction.misplaced_ends += stack.misplaced_ends;
        if survey.dropped.len() > dropped || too_deep + stack.misplaced_ends > 0 {
            survey.troubled.push(thread);
        }
    }
    survey.bindings.sort_unstable();
    survey.unbound.sort_unstable();
    let Survey { prediction, dropped, unbound, unparked, .. } = &mut survey;
    prediction.crossing_slices = dropped.len() as u64;
    prediction.flows_without_slice = unbound.len() as u64;
    prediction.crossing_slices_exact = match prediction.misread_times {
        0 => prediction.crossing_slices,
        _ => crossing_slices(&View { exact: true, ..view.clone() }),
    };
    prediction.duplicate_flow_starts =
        crate::flows::duplicate_starts(view, unbound, unparked).len() as u64;
    survey
}

fn crossing_slices(view: &View<'_>) -> u64 {
    let threads = Threads::of(view);
    let mut stack = Stack::default();
    let mut crossing = 0;
    for thread in threads.all() {
        stack.clear();
        crossing += threads
            .items(view, thread)
            .filter(|item| matches!(stack.apply(view, item), Outcome::Crossing(_)))
            .count();
    }
    crossing as u64
}

fn count_event(view: &View<'_>, row: Row, prediction: &mut Prediction) {
    let trace = view.trace;
    if view.is_aside(row) {
        return;
    }
    let (phase, flags) = (view.phase(row), view.flags(row));
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
    let (ts, dur) = view.importer_times(row);
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
fn stops(view: &View<'_>) -> Option<String> {
    if view.repaired {
        return None;
    }
    let (trace, layout) = (view.trace, &view.trace.layout);
    if layout.start > 0 {
        return Some("it starts with a byte order mark: \"Unknown trace type\"".to_owned());
    }
    let unreadable_dur = trace.rows().find(|row| {
        let flags = trace.flags(*row);
        flags.has(Flags::DUR_UNREADABLE) || flags.has(Flags::THREAD_TIMES_UNREADABLE)
    });
    if let Some(row) = unreadable_dur {
        return Some(format!(
            "event {row} has a dur, tdur or tts that is no number: \"JSON trace file is incomplete\""
        ));
    }
    if layout.end.is_none() && layout.container == trace::Container::Object {
        return Some("the file ends too early: \"JSON trace file is incomplete\"".to_owned());
    }
    None
}
