//! The stack of a thread as long as nothing but complete slices, instants and flow events comes: all of nearly every thread.
//!
//! Where there is no `B`, what lies below the top of the stack ends no earlier than the top, so it neither goes nor crosses, and
//! only the top is looked at. That is one small loop, which a browser optimises at little cost.

use trace::{Flags, Phase, Row};

use super::{MAX_DEPTH, Walk};
use crate::perfetto::order::Stacked;
use crate::pile::Pile;
use crate::rows::RowSet;
use crate::view::View;

/// A slice on the stack.
#[derive(Clone, Copy, Debug)]
struct Open {
    end: i64,
    row: Row,
    has_length: bool,
}

/// The stack, and what became of the events so far.
pub(super) struct Complete<'a> {
    view: &'a View<'a>,
    gone: &'a RowSet,
    open: Pile<Open>,
    /// Flow ends without `bp: e`: they bind to the next slice that starts.
    parked: Vec<Row>,
    /// (The parked flow ends that found their slice are in `flows.unparked` alone.)
    walk: Walk,
}

/// What an event is that is no complete slice of ordinary length.
enum Other {
    /// A slice all the same: its start and its length.
    Slice(i64, i64),
    /// Handled.
    Done,
    /// One that this stack cannot handle.
    Left,
}

/// Events that are handled by one call: see [`trace::each_of`].
const BLOCK: usize = 2048;

impl<'a> Complete<'a> {
    pub(super) fn new(view: &'a View<'a>, gone: &'a RowSet) -> Self {
        Self { view, gone, open: Pile::default(), parked: Vec::new(), walk: Walk::default() }
    }

    /// Handles events up to the first of another kind; how many.
    pub(super) fn handle(&mut self, events: &[Stacked]) -> usize {
        let mut n = 0;
        for block in events.chunks(BLOCK) {
            let n_handled = self.block(block);
            n += n_handled;
            if n_handled < block.len() {
                break;
            }
        }
        n
    }

    #[inline(never)]
    fn block(&mut self, events: &[Stacked]) -> usize {
        for (at, event) in events.iter().enumerate() {
            if self.gone.contains(event.row) {
                continue;
            }
            let (ts, dur) = match event.as_slice() {
                Some(slice) => slice,
                None => match self.other(*event) {
                    Other::Slice(ts, dur) => (ts, dur),
                    Other::Done => continue,
                    Other::Left => return at,
                },
            };
            self.start(event.row, ts, dur);
        }
        events.len()
    }

    #[inline(always)]
    fn start(&mut self, slice: Row, ts: i64, dur: i64) {
        let end = ts.wrapping_add(dur);
        while let Some(top) = self.open.last() {
            if top.end > ts {
                if end > top.end {
                    return self.cross(slice, top.row);
                }
                break;
            }
            if top.end == ts && !top.has_length && dur == 0 {
                break;
            }
            self.open.pop();
        }
        if self.open.len() >= MAX_DEPTH {
            return self.sink(slice);
        }
        self.open.push(Open { end, row: slice, has_length: dur != 0 });
        if !self.parked.is_empty() {
            self.unpark(slice);
        }
    }

    #[inline(never)]
    fn cross(&mut self, slice: Row, other: Row) {
        self.walk.trouble.crossing.push((slice, other));
    }

    #[cold]
    #[inline(never)]
    fn sink(&mut self, slice: Row) {
        self.walk.trouble.too_deep.push(slice);
    }

    #[cold]
    #[inline(never)]
    fn unpark(&mut self, slice: Row) {
        self.walk.flows.unparked.extend(self.parked.drain(..).map(|flow| (flow, slice)));
    }

    /// Looks at what is no complete slice of ordinary length.
    #[inline(never)]
    fn other(&mut self, event: Stacked) -> Other {
        let row = event.row;
        let phase = event.phase();
        if phase.is_flow() {
            self.flow(row, phase);
            return Other::Done;
        }
        let item = event.item(self.view);
        match phase {
            Phase::Complete if item.dur < 0 => Other::Done,
            Phase::Complete | Phase::Instant => Other::Slice(item.ts, item.dur),
            _ => Other::Left,
        }
    }

    #[inline(always)]
    fn flow(&mut self, row: Row, phase: Phase) {
        if phase == Phase::FlowEnd && !self.view.flags(row).has(Flags::BIND_ENCLOSING) {
            self.parked.push(row);
            return;
        }
        match self.open.last() {
            Some(top) => self.walk.flows.bound.push((row, top.row)),
            None => self.walk.flows.unbound.push(row),
        }
    }

    /// What became of the events, when all were handled.
    pub(super) fn finish(mut self) -> Walk {
        let flows = &mut self.walk.flows;
        flows.bound.extend_from_slice(&flows.unparked);
        self.walk
    }

    /// The slices on the stack, the flow ends that wait, and what became of the others.
    pub(super) fn into_parts(self) -> (Vec<Row>, Vec<Row>, Walk) {
        let open = self.open.items().iter().map(|open| open.row).collect();
        (open, self.parked, self.walk)
    }
}
