//! The importer's slice stack (`slice_tracker.cc`), step by step.
//!
//! This follows the original's loop closely, its oddities included, because a prediction must also hold
//! for traces that are wrong in two ways at once.

mod complete;

use trace::{Flags, Phase, Row, StringId, Trace, each_of};

use super::MAX_DEPTH;
use super::order::{self, Item, Stacked};
use crate::rows::RowSet;
use crate::view::View;
use complete::Complete;

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// On the stack.
    Kept,
    /// A complete slice that crosses this one on the stack: not kept.
    Crossing(Row),
    /// 512 or more levels deep.
    TooDeep,
    /// A flow event bound to this slice.
    Bound(Row),
    /// A flow event with no slice to bind to.
    NoSlice,
    /// An end without a start, a parked flow end: no effect and no error.
    Ignored,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    row: Row,
    ts: i64,
    /// `None` while a `B` is open.
    dur: Option<i64>,
    /// The least end of the complete slices from the bottom of the stack up to this one.
    least_end: i64,
}

/// The name that a `B` without one gets.
pub(crate) const NO_NAME: &str = "[No name]";

/// Whether an `E` may close a `B`: a name or category that the `E` has must be that of the `B`.
pub(crate) fn closes(trace: &Trace, end: Row, begin: Row) -> bool {
    let (name, category) = (trace.name(end), trace.raw_category(end));
    let (other_name, other_category) = (trace.name(begin), trace.raw_category(begin));
    let is_unnamed = || other_name == StringId::EMPTY && trace.strings.get(name) == NO_NAME;
    (category == StringId::EMPTY || category == other_category)
        && (name == StringId::EMPTY || name == other_name || is_unnamed())
}

/// The stack of one thread.
#[derive(Default, Debug)]
struct Stack {
    entries: Vec<Entry>,
    /// Whether the thread has `B` events so far.
    saw_begin: bool,
    /// Flow ends without `bp: e`: they bind to the next slice that starts.
    parked: Vec<Row>,
    /// Parked flow ends that found their slice: (flow event, slice).
    unparked: Vec<(Row, Row)>,
    /// Times the importer counted `misplaced_end_event`.
    misplaced_ends: u64,
    /// Slices whose end was misplaced.
    misplaced_rows: Vec<Row>,
}

impl Stack {
    /// Handles one event as the importer does.
    fn apply(&mut self, view: &View<'_>, item: &Item) -> Outcome {
        match item.phase {
            // Kept for its flow alone.
            Phase::Complete if item.dur < 0 => Outcome::Ignored,
            Phase::Complete | Phase::Instant => self.start(item, Some(item.dur)),
            Phase::Begin => {
                self.saw_begin = true;
                self.start(item, None)
            }
            Phase::End => self.finish(view, item),
            Phase::FlowEnd if !view.flags(item.row).has(Flags::BIND_ENCLOSING) => {
                self.parked.push(item.row);
                Outcome::Ignored
            }
            _ => match self.entries.last() {
                Some(top) => Outcome::Bound(top.row),
                None => Outcome::NoSlice,
            },
        }
    }

    fn start(&mut self, item: &Item, dur: Option<i64>) -> Outcome {
        match self.close(item.ts, dur) {
            Ok(()) => self.open(item.row, item.ts, dur),
            Err(crossed) => Outcome::Crossing(crossed),
        }
    }

    /// Puts a slice on the stack.
    #[inline(never)]
    fn open(&mut self, slice: Row, ts: i64, dur: Option<i64>) -> Outcome {
        if self.entries.len() >= MAX_DEPTH {
            return Outcome::TooDeep;
        }
        self.lay(slice, ts, dur);
        if !self.parked.is_empty() {
            self.unparked.extend(self.parked.drain(..).map(|flow| (flow, slice)));
        }
        Outcome::Kept
    }

    fn lay(&mut self, slice: Row, ts: i64, dur: Option<i64>) {
        let end = dur.map_or(i64::MAX, |dur| ts.wrapping_add(dur));
        let least_end = self.entries.last().map_or(end, |below| below.least_end.min(end));
        self.entries.push(Entry { row: slice, ts, dur, least_end });
    }

    /// The least end of the complete slices among the lowest `n`.
    fn least_end(&self, n: usize) -> i64 {
        n.checked_sub(1)
            .and_then(|top| self.entries.get(top))
            .map_or(i64::MAX, |entry| entry.least_end)
    }

    /// `MaybeCloseStack`: takes away what ended, and refuses a slice that crosses one still there.
    fn close(&mut self, ts: i64, dur: Option<i64>) -> Result<(), Row> {
        let mut open_above = false;
        let mut at = self.entries.len();
        while at > 0 {
            at -= 1;
            // Popping may have taken more than one entry off the top.
            let Some(entry) = self.entries.get(at).copied() else { continue };
            let Some(entry_dur) = entry.dur else {
                open_above = true;
                if ts <= self.least_end(at) {
                    // Below an open slice only those matter that ended before.
                    break;
                }
                continue;
            };
            let end = entry.ts.wrapping_add(entry_dur);
            if open_above {
                if ts <= end {
                    continue;
                }
                self.misplaced_ends += 1;
                self.misplaced_rows.extend(self.entries[at + 1..].iter().map(|open| open.row));
                self.entries.truncate(at);
                open_above = false;
                continue;
            }
            let touches = end == ts && !(entry_dur == 0 && dur == Some(0));
            if end < ts || touches {
                // The original pops the top, which is this entry unless a longer one lies on it.
                self.entries.pop();
                continue;
            }
            if let Some(dur) = dur
                && ts < end
                && ts.wrapping_add(dur) > end
            {
                return Err(entry.row);
            }
            if !self.saw_begin {
                // Complete slices alone nest: what lies below ends no earlier than this one, so it neither
                // goes nor crosses. (The original looks on, down the whole stack, at every event.)
                break;
            }
        }
        Ok(())
    }

    /// Closes the slice that an `E` ends.
    fn finish(&mut self, view: &View<'_>, item: &Item) -> Outcome {
        let _ = self.close(item.ts, None);
        let matches =
            |entry: &Entry| entry.dur.is_none() && closes(view.trace, item.row, entry.row);
        let Some(at) = self.entries.iter().rposition(matches) else {
            return Outcome::Ignored;
        };
        self.entries[at].dur = Some(item.ts - self.entries[at].ts);
        for n in at..self.entries.len() {
            let own =
                self.entries[n].dur.map_or(i64::MAX, |dur| self.entries[n].ts.wrapping_add(dur));
            let least_end = self.least_end(n).min(own);
            if n > at && least_end == self.entries[n].least_end {
                // Nor does it change for what lies above.
                break;
            }
            self.entries[n].least_end = least_end;
        }
        if at + 1 == self.entries.len() {
            self.entries.pop();
        }
        Outcome::Kept
    }
}

/// What the importer does wrong on one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    /// Crossing slices in the importer's order, each with the slice it crosses first.
    pub crossing: Vec<(Row, Row)>,
    /// Slices that lie too deep.
    pub too_deep: Vec<Row>,
    /// Slices whose end is misplaced.
    pub misplaced: Vec<Row>,
    /// Times the importer counts a misplaced end.
    pub misplaced_ends: u64,
    /// Whether there are `B` events.
    pub has_begins: bool,
}

impl Trouble {
    /// Whether nothing is wrong.
    pub(crate) fn is_none(&self) -> bool {
        self.crossing.is_empty() && self.too_deep.is_empty() && self.misplaced_ends == 0
    }
}

/// What becomes of the flow events of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    /// (flow event, slice).
    pub bound: Vec<(Row, Row)>,
    /// Flow events without a slice to bind to.
    pub unbound: Vec<Row>,
    /// Those of `bound` that waited for their slice.
    pub unparked: Vec<(Row, Row)>,
    /// Slices that are an end point of a flow themselves, each with the slice that the importer takes for it.
    pub binds: Vec<(Row, Option<Row>)>,
}

/// What the importer makes of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    pub trouble: Trouble,
    pub flows: Bindings,
}

/// Handles the events of one thread, in the importer's order, but those that are `gone`.
#[inline(never)]
pub(crate) fn walk(view: &View<'_>, events: &[Stacked], gone: &RowSet) -> Walk {
    let mut complete = Complete::new(view, gone);
    let any_binds = !view.trace.binds().is_empty();
    let n = if any_binds { 0 } else { complete.handle(events) };
    match events.get(n..) {
        None | Some([]) => complete.finish(),
        Some(rest) => walk_on(view, rest, gone, complete),
    }
}

/// Handles the events from the first on that is not of the usual kind.
#[inline(never)]
fn walk_on(view: &View<'_>, events: &[Stacked], gone: &RowSet, begun: Complete<'_>) -> Walk {
    let (open, parked, Walk { mut trouble, mut flows }) = begun.into_parts();
    let mut stack = Stack { parked, ..Stack::default() };
    stack.unparked = std::mem::take(&mut flows.unparked);
    for row in open {
        let item = order::item(view, row);
        stack.lay(row, item.ts, Some(item.dur));
    }
    let any_binds = !view.trace.binds().is_empty();
    each_of(events, |event| {
        let row = event.row;
        if gone.contains(row) {
            return;
        }
        match stack.apply(view, &event.item(view)) {
            Outcome::Kept | Outcome::Ignored => {}
            Outcome::Crossing(other) => trouble.crossing.push((row, other)),
            Outcome::TooDeep => trouble.too_deep.push(row),
            Outcome::Bound(slice) => flows.bound.push((row, slice)),
            Outcome::NoSlice => flows.unbound.push(row),
        }
        if any_binds && view.bind(row).is_some() {
            flows.binds.push((row, stack.entries.last().map(|top| top.row)));
        }
    });
    trouble.misplaced = stack.misplaced_rows;
    trouble.misplaced_ends = stack.misplaced_ends;
    trouble.has_begins = stack.saw_begin;
    flows.bound.extend_from_slice(&stack.unparked);
    flows.unparked = stack.unparked;
    Walk { trouble, flows }
}
