//! What the importer will do, in numbers.

/// What the importer will do with a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prediction {
    /// Complete slices that cross another on their thread: dropped by v51-v56
    /// (`slice_drop_overlapping_complete_event`), spilled and flagged by v57+
    /// (`slice_spill_overlapping_complete_event`).
    pub crossing_slices: u64,
    /// Of these, how many would cross if the importer's arithmetic were exact.
    pub crossing_slices_if_exact: u64,
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
    /// Slices with a `bind_id` and neither `flow_in` nor `flow_out` (`flow_without_direction`).
    #[serde(default)]
    pub flows_without_direction: u64,
    /// Largest difference between the importer's time and the exact one, in ns.
    pub worst_rounding_ns: u64,
    /// Times (`ts`) that the importer reads wrong by rounding.
    pub misread_times: u64,
    /// Why the importer stops and shows nothing or only a part, if it does.
    pub stops: Option<String>,
}

/// A time that is wrong by less than this, in ns, is no matter of tuning: kernels take more.
const NOTICED_NS: u64 = 1_000;

impl Prediction {
    /// Number of slices that v51 to v56 drop for crossing.
    #[must_use]
    pub fn drops_v51_v56(&self) -> u64 {
        self.crossing_slices
    }

    /// Whether the importer can read every event by itself, whatever becomes of it on its thread.
    pub(crate) fn reads_all_events(&self) -> bool {
        self.negative_durations
            + self.negative_times
            + self.unreadable_events
            + self.rejected_events
            + self.unreadable_flow_ids
            + self.flows_without_direction
            == 0
    }

    /// Whether Perfetto counts any error, as far as it reads the file.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        let Self {
            crossing_slices,
            crossing_slices_if_exact: _,
            too_deep,
            misplaced_ends,
            negative_durations,
            negative_times,
            unreadable_events,
            rejected_events,
            flows_without_slice,
            duplicate_flow_starts,
            unreadable_flow_ids,
            flows_without_direction,
            worst_rounding_ns: _,
            misread_times: _,
            stops: _,
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
            + flows_without_direction
            > 0
    }

    /// Whether Perfetto loses events of the trace or moves them by a time that a person notices. (Arrows that it cannot draw are no
    /// such loss.)
    #[must_use]
    pub fn loses(&self) -> bool {
        let events = Self {
            flows_without_slice: 0,
            duplicate_flow_starts: 0,
            unreadable_flow_ids: 0,
            flows_without_direction: 0,
            ..self.clone()
        };
        self.stops.is_some() || self.worst_rounding_ns >= NOTICED_NS || events.has_errors()
    }

    /// Whether Perfetto shows the whole trace with no error and every time exactly, in every version since v51.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stops.is_none() && self.misread_times == 0 && !self.has_errors()
    }
}
