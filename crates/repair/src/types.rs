//! The plan as data: what is asked for, what changes, and why.

use std::collections::BTreeMap;

use trace::{ProcessId, Row, StreamId, TimeNs, Trace, TrackId};

use crate::prediction::Prediction;
use crate::rows::RowSet;

/// What the user may ask for beyond the repair itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PlanOptions {
    /// Clip kernels that run far past their stream's next start to that start. The one change that
    /// touches a duration; off unless asked for by name. The original stays in the event's args.
    pub clip_impossible: bool,
    /// Append `process_labels` to the process name, since Perfetto ignores labels in JSON traces.
    pub fold_process_labels: bool,
}

/// Which rule asked for a change. The order is the order in reports.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Subtract one base from all times.
    TimeBase,
    /// A slice that crosses another moves to a lane.
    CrossingSlice,
    /// A slice 512 or more levels deep moves to a lane.
    TooDeep,
    /// Threads that Perfetto would fold into one get their own tid.
    FoldedThread,
    /// A flow event follows its slice.
    FlowFollows,
    /// A flow end gets `bp: e`, so that it binds to the slice it stands on.
    FlowEndBinding,
    /// A flow event moves to its slice's start, where it binds to it.
    FlowAim,
    /// A flow id that is started twice gets a number of its own.
    DuplicateFlow,
    /// A slice without a usable duration becomes an instant.
    SliceToInstant,
    /// An event that Perfetto cannot read leaves the event array.
    SetAside,
    /// Arguments that Perfetto rejects (counter values that are no numbers, names of the wrong type).
    Arguments,
    /// `tts` or `tdur` that is no number goes to the arguments.
    ThreadTimes,
    /// An instant without a place gets a scope that needs none.
    InstantScope,
    /// An event far from all others in time keeps its time when the rest is shifted.
    Outlier,
    /// A number that the importer misreads is spelt plainly.
    NumberSpelling,
    /// Text that is not strict JSON as Perfetto wants it.
    Text,
    /// The document around the events: commas, brackets, junk, byte order mark.
    Frame,
    /// An impossible duration is clipped (only when asked for).
    ClipImpossible,
    /// Process labels join the process name (only when asked for).
    ProcessLabels,
}

impl Rule {
    /// The rule's name in logs and in the repaired file.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::TimeBase => "time-base",
            Self::CrossingSlice => "crossing-slice",
            Self::TooDeep => "too-deep",
            Self::FoldedThread => "folded-thread",
            Self::FlowFollows => "flow-follows",
            Self::FlowEndBinding => "flow-end-binding",
            Self::FlowAim => "flow-aim",
            Self::DuplicateFlow => "duplicate-flow",
            Self::SliceToInstant => "slice-to-instant",
            Self::SetAside => "set-aside",
            Self::Arguments => "arguments",
            Self::ThreadTimes => "thread-times",
            Self::InstantScope => "instant-scope",
            Self::Outlier => "outlier",
            Self::NumberSpelling => "number-spelling",
            Self::Text => "text",
            Self::Frame => "frame",
            Self::ClipImpossible => "clip-impossible",
            Self::ProcessLabels => "process-labels",
        }
    }

    /// What the rule does, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::TimeBase => "One base subtracted from all times",
            Self::CrossingSlice => "Crossing slices moved to a lane",
            Self::TooDeep => "Slices 512 levels deep moved to a lane",
            Self::FoldedThread => "Events of threads that Perfetto would merge, kept apart",
            Self::FlowFollows => "Flow arrows that follow their slice",
            Self::FlowEndBinding => "Flow ends bound to the slice at their position",
            Self::FlowAim => "Flow arrows moved to their slice's start",
            Self::DuplicateFlow => "Duplicate flow ids made unique",
            Self::SliceToInstant => "Slices without a usable duration, kept as instants",
            Self::SetAside => "Events that Perfetto cannot read, set aside in the file",
            Self::Arguments => "Arguments that Perfetto rejects, quoted or removed",
            Self::ThreadTimes => "Unreadable thread times moved to the arguments",
            Self::InstantScope => "Instants given a scope that needs no thread",
            Self::Outlier => {
                "Events far from the rest in time, kept at their original time (0 if negative)"
            }
            Self::NumberSpelling => "Numbers that Perfetto misreads, rewritten as plain decimals",
            Self::Text => "Events whose text was not strict JSON in UTF-8",
            Self::Frame => "Corrections to the document around the events",
            Self::ClipImpossible => "Impossible durations clipped, as requested",
            Self::ProcessLabels => "Process labels appended to the process name, as requested",
        }
    }
}

/// What happens to an event as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It stays what it is.
    #[default]
    Keep,
    /// A complete slice becomes a thread instant; its `dur` goes to the arguments.
    Instant,
    /// It leaves the event array and is kept, as strict JSON, under the top-level key `kinetoscope`. (A bare
    /// array has no such place: its text is then in the log's original alone, and the proof says so.)
    SetAside,
}

/// The changes of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventEdit {
    /// What happens to the whole event.
    pub action: Action,
    /// Its new tid.
    pub tid: Option<u32>,
    /// The track of its process whose tid it gets (flow events only; and only without a new `tid`).
    pub track: Option<TrackId>,
    /// Its new flow id.
    pub flow_id: Option<i64>,
    /// Its new `bind_id`.
    pub bind_id: Option<i64>,
    /// Whether `bp` is taken away, so that a flow end waits for the slice that starts next.
    pub bind_next: bool,
    /// Its new start (flow events only), relative to the trace's origin, before the time base.
    pub ts_ns: Option<TimeNs>,
    /// Whether `bp: e` is added.
    pub bind_enclosing: bool,
    /// Its clipped duration.
    pub dur_ns: Option<TimeNs>,
    /// Whether a homeless or unreadable instant scope is replaced.
    pub scope: Option<&'static str>,
    /// Whether rejected arguments are quoted or removed.
    pub arguments: bool,
    /// Whether unreadable `tts` and `tdur` go to the arguments.
    pub thread_times: bool,
    /// Whether `ts` and `dur` are spelt plainly.
    pub numbers: bool,
}

impl EventEdit {
    /// Whether the importer reads the same phase and times from the event as without it.
    pub(crate) fn keeps_times(&self) -> bool {
        let Self {
            action,
            tid: _,
            track: _,
            flow_id: _,
            bind_id: _,
            bind_next: _,
            ts_ns,
            bind_enclosing: _,
            dur_ns,
            scope: _,
            arguments: _,
            thread_times: _,
            numbers,
        } = *self;
        action != Action::Instant && ts_ns.is_none() && dur_ns.is_none() && !numbers
    }
}

/// Why times are shifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseReason {
    /// The importer's doubles cannot hold the times to the nanosecond.
    Rounding,
    /// Some times are negative.
    Negative,
    /// Some times overflow the importer's integers.
    Overflow,
}

/// The one base that is subtracted from every time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBase {
    /// Nanoseconds subtracted; a whole number of milliseconds.
    pub ns: i128,
    /// Why.
    pub reason: BaseReason,
}

impl TimeBase {
    /// A time of the file after the shift. What subtracting would make negative, or too large, stays as it is: metadata, which often
    /// says 0, and events so far from the others that the importer cannot hold both ([`Rule::Outlier`]).
    #[must_use]
    pub fn apply(&self, ts_ns: i128) -> i128 {
        match ts_ns - self.ns {
            early if early < 0 => ts_ns.max(0),
            late if late > i128::from(i64::MAX) && ts_ns <= i128::from(i64::MAX) => ts_ns,
            shifted => shifted,
        }
    }
}

/// What a lane is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneKind {
    /// Slices that cross others of their thread, or lie too deep.
    Overlap,
    /// Annotations that cross the functions they were opened in.
    Annotations,
    /// A thread that Perfetto would have folded into another.
    Split,
}

/// A new thread in the repaired trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// What it is for.
    pub kind: LaneKind,
    /// The process it belongs to.
    pub process: ProcessId,
    /// The track whose events it takes.
    pub parent: TrackId,
    /// Its tid: unused in the file.
    pub tid: u32,
    /// Its name; `None` for split threads that bring their own.
    pub name: Option<String>,
    /// Its sort index, the parent's.
    pub sort_index: Option<i64>,
}

/// A slice that leaves with the slices it crosses: one place worth drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossingGroup {
    /// The slices that leave, in time order.
    pub leaving: Vec<Row>,
    /// The slices that stay.
    pub staying: Vec<Row>,
    /// Number of crossing pairs among all of them.
    pub pairs: usize,
}

/// A kernel that ends long after the next kernels of its stream started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The kernel.
    pub row: Row,
    /// The first kernel of the stream that starts after it.
    pub next: Row,
    /// How far it runs past that start, in ns.
    pub overrun_ns: TimeNs,
    /// How many later kernels of its stream lie wholly inside it.
    pub swallowed: u32,
    /// Its stream.
    pub stream: StreamId,
    /// The summed duration of the stream's kernels, this and other overruns cut, in ns.
    pub stream_sum_ns: TimeNs,
}

/// One line of the repair log that is about one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The event.
    pub row: Row,
    /// Which rule changes it.
    pub rule: Rule,
    /// The slice that made it necessary, where there is one.
    pub because_of: Option<Row>,
}

/// Everything that repair will do to one trace. Plain data: [`crate::Applier`] carries it out.
#[derive(Clone, Debug, Default)]
pub struct RepairPlan {
    /// What was asked for.
    pub options: PlanOptions,
    /// The time base, when times are shifted.
    pub base: Option<TimeBase>,
    edits: BTreeMap<Row, EventEdit>,
    /// New threads, in the order they are written.
    pub lanes: Vec<Lane>,
    changes: Vec<Change>,
    /// How many events or places each rule changes, in report order; rules that change nothing are absent.
    pub counts: BTreeMap<Rule, u64>,
    /// Kernels that run impossibly far past their stream's next start; detected always.
    pub impossible: Vec<Impossible>,
    /// The slices that v51 to v56 drop from the file as it is.
    pub dropped: Vec<Row>,
    /// Slices that cross, by the slice that stays: the worst places, for drawing.
    pub crossings: Vec<CrossingGroup>,
    /// New process names, when labels are folded: the row of the `process_name` event and the new name.
    pub process_names: BTreeMap<Row, String>,
    /// Process names to add where the file has labels but no name.
    pub added_process_names: Vec<(ProcessId, String)>,
    /// Where the flow events of the input belong (the slice that starts at their very ns, else the innermost that is open): (flow event, slice).
    pub flow_targets: Vec<(Row, Row)>,
    /// Flow events that Perfetto binds to their slice, before.
    pub flows_bound_before: u64,
    /// The same after.
    pub flows_bound_after: u64,
    /// What [`Rule::Outlier`] leaves unsubtracted from complete slices, summed, in ns.
    pub kept_back_ns: i128,
    /// What Perfetto does with the file as it is.
    pub before: Prediction,
    /// What Perfetto does with the repaired file.
    pub after: Prediction,
    slices_with_new_args: u64,
    edited: RowSet,
    /// Events changed since the survey last followed.
    touched: RowSet,
}

impl RepairPlan {
    /// A plan that changes nothing.
    pub(crate) fn new(options: PlanOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Whether `row` changes by name.
    #[inline(always)]
    #[must_use]
    pub(crate) fn is_edited(&self, row: Row) -> bool {
        self.edited.contains(row)
    }

    /// The changes of `row`, if any.
    #[inline]
    #[must_use]
    pub fn edit(&self, row: Row) -> Option<&EventEdit> {
        if self.is_edited(row) { self.edits.get(&row) } else { None }
    }

    /// Changed events by row.
    #[must_use]
    pub fn edits(&self) -> &BTreeMap<Row, EventEdit> {
        &self.edits
    }

    /// Who changes what and why, in file order per rule.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Changes an event, with the line of the log that says so: nothing else writes an edit. `because_of` is the slice that made
    /// it necessary, where there is one.
    pub(crate) fn change(
        &mut self,
        row: Row,
        rule: Rule,
        because_of: Option<Row>,
        with: impl FnOnce(&mut EventEdit),
    ) {
        with(self.edit_mut(row));
        self.changes.push(Change { row, rule, because_of });
    }

    /// Notes an event that a rule leaves as it is, where a reader would expect a change.
    pub(crate) fn note_unchanged(&mut self, row: Row, rule: Rule) {
        self.changes.push(Change { row, rule, because_of: None });
    }

    #[inline(never)]
    fn edit_mut(&mut self, row: Row) -> &mut EventEdit {
        self.edited.insert(row);
        self.touched.insert(row);
        self.edits.entry(row).or_default()
    }

    /// The events changed since this was last asked, sorted.
    pub(crate) fn take_touched(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.touched).to_vec()
    }

    /// The nanoseconds that clipping takes away in all.
    #[must_use]
    pub fn clipped_ns(&self) -> TimeNs {
        if self.options.clip_impossible {
            self.impossible.iter().fold(0, |sum, bad| sum.saturating_add(bad.overrun_ns))
        } else {
            0
        }
    }

    /// How many complete slices have their arguments changed by name (moved thread times, a `bind_id`).
    #[must_use]
    pub fn slices_with_new_args(&self) -> u64 {
        self.slices_with_new_args
    }

    /// Puts the changes of single events in order and counts them, when all are made.
    pub(crate) fn finish(&mut self, trace: &Trace) {
        self.slices_with_new_args = slices_with_new_args(trace, &self.edits);
        self.count_changes();
    }

    /// Puts the changes of single events in order, and counts them.
    fn count_changes(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        trace::sort_by_key(&mut changes, |change| (change.rule, change.row));
        // (A flow event may have been aimed in several ways.)
        changes.dedup_by_key(|change| (change.rule, change.row));
        for same in changes.chunk_by(|a, b| a.rule == b.rule) {
            self.count(same[0].rule, same.len() as u64);
        }
        self.changes = changes;
    }

    /// Counts changes that are not listed one by one.
    pub(crate) fn count(&mut self, rule: Rule, n: u64) {
        if n > 0 {
            *self.counts.entry(rule).or_default() += n;
        }
    }

    /// Whether the file needs no change: the output is the input, byte for byte.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.counts.is_empty() && self.changes.is_empty()
    }

    /// Whether `ts` (and, on request, `dur`) of `row` is written anew.
    #[must_use]
    pub(crate) fn rewrites_numbers(&self, row: Row) -> bool {
        self.base.is_some() || self.edit(row).is_some_and(|edit| edit.numbers)
    }
}

#[inline(never)]
fn slices_with_new_args(trace: &Trace, edits: &BTreeMap<Row, EventEdit>) -> u64 {
    let has = |(row, edit): &(&Row, &EventEdit)| {
        edit.action == Action::Keep
            && (edit.thread_times || edit.arguments)
            && trace.phase(**row) == trace::Phase::Complete
    };
    edits.iter().filter(has).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edit_has_a_line_in_the_log() {
        let mut plan = RepairPlan::new(PlanOptions::default());
        assert!(plan.is_identity());
        plan.change(7, Rule::CrossingSlice, Some(3), |edit| edit.tid = Some(9));
        plan.change(7, Rule::Arguments, None, |edit| edit.arguments = true);
        plan.note_unchanged(8, Rule::Outlier);
        assert_eq!(plan.edits().keys().copied().collect::<Vec<_>>(), [7]);
        assert_eq!(plan.edit(7).map(|edit| (edit.tid, edit.arguments)), Some((Some(9), true)));
        assert!(plan.is_edited(7) && !plan.is_edited(8) && !plan.is_identity());
        let lines: Vec<_> =
            plan.changes().iter().map(|it| (it.row, it.rule, it.because_of)).collect();
        let expected = [
            (7, Rule::CrossingSlice, Some(3)),
            (7, Rule::Arguments, None),
            (8, Rule::Outlier, None),
        ];
        assert_eq!(lines, expected);
        assert_eq!(plan.take_touched(), [7]);
        assert!(plan.take_touched().is_empty(), "each change is followed once");
    }

    #[test]
    fn a_second_change_by_the_same_rule_is_counted_once() {
        let mut plan = RepairPlan::new(PlanOptions::default());
        for bind_next in [true, false] {
            plan.change(4, Rule::FlowAim, None, |edit| edit.bind_next = bind_next);
        }
        plan.change(2, Rule::FlowAim, None, |edit| edit.bind_next = true);
        plan.finish(&Trace::default());
        assert_eq!(plan.changes().iter().map(|it| it.row).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(plan.counts.get(&Rule::FlowAim), Some(&2));
    }
}
