//! A trace as the importer sees it: as it stands, or as a plan would leave it.

use trace::decimal::{EXACT_BELOW_NS, importer_ns};
use trace::{Bind, Flags, IdToken, Phase, Row, Trace};

use crate::types::{Action, EventEdit, RepairPlan, TimeBase};

/// What holds for all events of a file alike, apart from the changes of single ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lens {
    /// Subtracted from all times.
    base: Option<TimeBase>,
    /// Whether text and frame defects count as mended.
    repaired: bool,
    /// Rows from here on are not read: Perfetto takes the first of several documents and is silent about
    /// the others (measured with v55.3).
    seen: Row,
}

impl Lens {
    /// Whether an event that no plan changes by name looks the same through both. (What repair mends, it
    /// changes by name.)
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        self.base == other.base && self.seen == other.seen
    }
}

/// Read access to what the importer looks at, with a plan's changes laid over the columns.
///
/// Predictions before and after a repair run the same code on two views; nothing is decoded twice.
#[derive(Clone)]
pub(crate) struct View<'a> {
    pub trace: &'a Trace,
    plan: Option<&'a RepairPlan>,
    lens: Lens,
    /// Read times exactly instead of as the importer does.
    exact: bool,
    /// Read no tid of the plan, nor its lanes.
    folds: bool,
    /// Whether nothing changes how an event without peculiarity is read.
    is_plain: bool,
    /// What to subtract from the time of an event that has no peculiarity; `None` when 64 bits do not do.
    shift_ns: Option<i64>,
}

/// One event as the importer sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub row: Row,
    pub phase: Phase,
    pub flags: Flags,
    /// In the importer's own nanoseconds.
    pub ts: i64,
    /// In the importer's own nanoseconds.
    pub dur: i64,
}

/// Peculiarities of slices and flow events.
const ODD: Flags = Flags(
    Flags::PHASE_UNREADABLE.0
        | Flags::BIND_UNDIRECTED.0
        | Flags::ODD_NUMBER.0
        | Flags::TS_REJECTED.0
        | Flags::TS_UNREADABLE.0
        | Flags::DUR_UNREADABLE.0,
);

impl<'a> View<'a> {
    /// The trace as it stands.
    pub(crate) fn of(trace: &'a Trace) -> Self {
        let lens = Lens {
            base: None,
            repaired: false,
            seen: trace.layout.importer_rows.unwrap_or(Row::MAX),
        };
        Self::through(trace, lens)
    }

    /// The trace as it stands, all its documents read.
    pub(crate) fn of_all(trace: &'a Trace) -> Self {
        Self::through(trace, Lens { base: None, repaired: false, seen: Row::MAX })
    }

    /// The trace as `plan` leaves it.
    pub(crate) fn after(trace: &'a Trace, plan: &'a RepairPlan) -> Self {
        let lens = Lens { base: plan.base, repaired: true, seen: Row::MAX };
        Self { plan: Some(plan), is_plain: false, ..Self::through(trace, lens) }
    }

    /// The trace through a lens, no single event changed.
    pub(crate) fn through(trace: &'a Trace, lens: Lens) -> Self {
        let base = lens.base.map_or(0, |base| base.ns);
        let shift_ns = if trace.origin_ns == 0 { i64::try_from(base).ok() } else { None };
        let is_plain = lens.base.is_none() && !lens.repaired && trace.origin_ns == 0;
        Self { trace, plan: None, lens, exact: false, folds: false, is_plain, shift_ns }
    }

    /// The same with exact times in place of the importer's.
    pub(crate) fn exactly(&self) -> Self {
        Self { exact: true, is_plain: false, ..self.clone() }
    }

    /// The same with the threads that the plan splits still one.
    pub(crate) fn as_folded(&self) -> Self {
        Self { folds: true, ..self.clone() }
    }

    /// Whether text and frame defects count as mended.
    pub(crate) fn is_repaired(&self) -> bool {
        self.lens.repaired
    }

    /// What holds for all events alike.
    pub(crate) fn lens(&self) -> Lens {
        self.lens
    }

    /// Whether a plan changes this event by name.
    #[inline(always)]
    pub(crate) fn is_edited(&self, row: Row) -> bool {
        self.plan.is_some_and(|plan| plan.is_edited(row))
    }

    /// The plan's changes of this event.
    #[inline]
    pub(crate) fn edit(&self, row: Row) -> Option<&'a EventEdit> {
        self.plan?.edit(row)
    }

    /// All changes of single events.
    pub(crate) fn edits(&self) -> impl Iterator<Item = (Row, &'a EventEdit)> + use<'a> {
        self.plan.into_iter().flat_map(|plan| plan.edits().iter().map(|(row, edit)| (*row, edit)))
    }

    /// Whether the plan adds events.
    pub(crate) fn adds_events(&self) -> bool {
        let adds_lanes = |plan: &RepairPlan| !plan.lanes.is_empty() && !self.folds;
        self.plan.is_some_and(|plan| adds_lanes(plan) || !plan.added_process_names.is_empty())
    }

    /// Whether the importer never sees this event: the plan takes it out of the event array, or it stands in
    /// another document.
    #[inline]
    pub(crate) fn is_aside(&self, row: Row) -> bool {
        row >= self.lens.seen
            || self.edit(row).is_some_and(|edit| matches!(edit.action, Action::SetAside))
    }

    /// The event.
    #[inline]
    pub(crate) fn event(&self, row: Row) -> Seen {
        let (phase, ts, dur) = self.phase_and_times(row);
        Seen { row, phase, flags: self.flags(row), ts, dur }
    }

    /// Start and length of a complete slice without any peculiarity, where nothing changes how it is read: nearly every event.
    /// `None` where one must look closer.
    #[inline(always)]
    pub(crate) fn sound_slice(&self, row: Row) -> Option<(i64, u32)> {
        if !self.is_plain || row >= self.lens.seen {
            return None;
        }
        self.trace.sound_slice(row, ODD, EXACT_BELOW_NS as i64 - 1)
    }

    /// The same for a flow event: its phase and its time.
    #[inline(always)]
    pub(crate) fn sound_flow(&self, row: Row) -> Option<(Phase, i64)> {
        const ODD_FLOW: Flags = Flags(ODD.0 | Flags::ID_UNREADABLE.0);
        if !self.is_plain || row >= self.lens.seen {
            return None;
        }
        self.trace.sound_flow(row, ODD_FLOW, EXACT_BELOW_NS as i64 - 1)
    }

    /// Phase, `ts` and `dur` in the importer's own nanoseconds.
    #[inline]
    pub(crate) fn phase_and_times(&self, row: Row) -> (Phase, i64, i64) {
        if let Some((ts, dur)) = self.plain_times(row) {
            // (What no plan changes keeps its phase.)
            return (self.trace.phase(row), ts, dur);
        }
        let (ts, dur) = self.odd_times(row);
        (self.phase(row), ts, dur)
    }

    #[inline]
    pub(crate) fn phase(&self, row: Row) -> Phase {
        match self.edit(row) {
            Some(edit) if matches!(edit.action, Action::Instant) => Phase::Instant,
            _ => self.trace.phase(row),
        }
    }

    /// Flags that still hold: what a plan mends is taken away.
    #[inline]
    pub(crate) fn flags(&self, row: Row) -> Flags {
        let mut flags = self.trace.flags(row);
        if let Some(edit) = self.edit(row) {
            if edit.bind_enclosing {
                flags.set(Flags::BIND_ENCLOSING);
            } else if edit.bind_next {
                flags.0 &= !Flags::BIND_ENCLOSING.0;
            }
        }
        let odd = Flags::TS_REJECTED.0 | Flags::TS_UNREADABLE.0 | Flags::DUR_UNREADABLE.0;
        if flags.has_any(Flags(odd)) {
            flags = self.odd_flags(row, flags);
        }
        if self.lens.repaired {
            let mended = Flags::ARGS_UNREADABLE.0
                | Flags::SCOPE_UNREADABLE.0
                | Flags::BIND_UNDIRECTED.0
                | Flags::DUR_UNREADABLE.0
                | Flags::THREAD_TIMES_UNREADABLE.0
                | Flags::TEXT.0;
            flags.0 &= !mended;
        }
        flags
    }

    /// What the importer makes of times that are no plain numbers.
    #[cold]
    fn odd_flags(&self, row: Row, mut flags: Flags) -> Flags {
        let is_spelt_anew = self.lens.repaired && self.edit(row).is_some_and(|edit| edit.numbers);
        // A number that is out of our range it reads, wrapped or cut.
        if !self.lens.repaired {
            for (beyond, has) in
                [(Flags::TS_BEYOND, Flags::HAS_TS), (Flags::DUR_BEYOND, Flags::HAS_DUR)]
            {
                if flags.has(beyond) {
                    flags.set(has);
                }
            }
        }
        if flags.has(Flags::TS_REJECTED) && !is_spelt_anew {
            flags.0 &= !Flags::HAS_TS.0;
        }
        flags
    }

    /// The time of an event without peculiarity, after the time base: nearly every event of nearly every
    /// file. `None` where one must look closer.
    #[inline]
    fn plain_ts(&self, row: Row) -> Option<i64> {
        let shift = self.shift_ns?;
        if self.edit(row).is_some_and(|edit| !edit.keeps_times()) {
            return None;
        }
        let ts = self.trace.ts_ns(row);
        if self.lens.base.is_none() {
            return Some(ts);
        }
        // Below 0 is metadata, which does not follow the base; nothing else is earlier than the base.
        ts.checked_sub(shift).filter(|ts| *ts >= 0)
    }

    /// The exact start in absolute ns after the plan's time base; clamped to `i64`.
    #[inline]
    pub(crate) fn exact_ts(&self, row: Row) -> i64 {
        self.plain_ts(row).unwrap_or_else(|| self.moved_ts(row))
    }

    #[cold]
    fn moved_ts(&self, row: Row) -> i64 {
        if self.trace.origin_ns != 0 && self.trace.phase(row) == Phase::Metadata {
            return 0;
        }
        let aimed = self.edit(row).and_then(|edit| edit.ts_ns);
        let mut ts = self.trace.origin_ns + i128::from(aimed.unwrap_or(self.trace.ts_ns(row)));
        if let Some(base) = self.lens.base {
            ts = base.apply(ts);
        }
        i64::try_from(ts).unwrap_or(if ts < 0 { i64::MIN } else { i64::MAX })
    }

    /// `ts` and `dur` in the importer's own nanoseconds.
    #[inline]
    pub(crate) fn importer_times(&self, row: Row) -> (i64, i64) {
        self.plain_times(row).unwrap_or_else(|| self.odd_times(row))
    }

    #[inline]
    fn plain_times(&self, row: Row) -> Option<(i64, i64)> {
        let ts = self.plain_ts(row)?;
        if self.trace.flags(row).has(Flags::ODD_NUMBER) {
            return None;
        }
        let dur = self.trace.dur_ns(row);
        Some(if self.exact { (ts, dur) } else { (importer_ns(ts), importer_ns(dur)) })
    }

    #[cold]
    fn odd_times(&self, row: Row) -> (i64, i64) {
        let edit = self.edit(row);
        let dur = edit.and_then(|edit| edit.dur_ns).unwrap_or(self.trace.dur_ns(row));
        if self.exact {
            return (self.exact_ts(row), dur);
        }
        let spelt_anew = edit.is_some_and(|edit| edit.numbers || edit.ts_ns.is_some());
        match self.trace.importer_ns(row) {
            Some(odd) if self.lens.base.is_none() && !spelt_anew => (odd.ts_ns, odd.dur_ns),
            _ => (importer_ns(self.exact_ts(row)), importer_ns(dur)),
        }
    }

    /// The tid that the event carries.
    pub(crate) fn tid(&self, row: Row) -> IdToken {
        let edit = self.edit(row);
        match edit.and_then(|edit| edit.tid).filter(|_| !self.folds) {
            Some(tid) => IdToken::Int(i64::from(tid)),
            None => {
                let track = edit.and_then(|edit| edit.track);
                self.trace.track_info(track.unwrap_or(self.trace.track(row))).tid
            }
        }
    }

    /// The flow that a slice itself is an end point of; the importer draws none for one without a direction.
    #[inline]
    pub(crate) fn bind(&self, row: Row) -> Option<Bind> {
        let bind = self.trace.bind(row)?;
        if self.edit(row).is_some_and(|edit| matches!(edit.action, Action::Instant)) {
            return None;
        }
        let id = self.edit(row).and_then(|edit| edit.bind_id).unwrap_or(bind.id);
        (bind.flow_in || bind.flow_out).then_some(Bind { id, ..bind })
    }

    /// The flow id, for flow events.
    pub(crate) fn flow_id(&self, row: Row) -> Option<i64> {
        match self.edit(row).and_then(|edit| edit.flow_id) {
            Some(id) => Some(id),
            None => self.trace.link(row),
        }
    }

    /// Whether an instant sits on the thread's stack.
    pub(crate) fn on_thread(&self, row: Row) -> bool {
        if let Some(scope) = self.edit(row).and_then(|edit| edit.scope) {
            return scope == "t";
        }
        !self.flags(row).has(Flags::SCOPE_WIDE) && !self.instant_is_homeless(row)
    }

    /// Whether an instant names no place: measured on v55.3, a thread-scoped one without a tid and a
    /// process-scoped one without a pid are both `json_parser_failure`.
    pub(crate) fn instant_is_homeless(&self, row: Row) -> bool {
        if self.lens.repaired {
            return false;
        }
        let track = self.trace.track_info(self.trace.track(row));
        let pid = self.trace.process_of(self.trace.track(row)).pid;
        if self.trace.flags(row).has(Flags::SCOPE_WIDE) {
            return pid == IdToken::Missing && !self.trace.flags(row).has(Flags::SCOPE_GLOBAL);
        }
        track.tid == IdToken::Missing
    }
}
