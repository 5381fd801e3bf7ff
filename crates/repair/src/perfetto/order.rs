//! The order in which the importer handles the events of one thread.

use std::cmp::Ordering;

use trace::{Phase, Row};

use crate::view::{Seen, View};

/// What events are sorted by: time, kind, negative length, row.
pub(crate) type Key = (i64, u8, i64, Row);

/// One stacked event with its times in the importer's ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The event.
    pub row: Row,
    /// What it is.
    pub phase: Phase,
    /// Start.
    pub ts: i64,
    /// End; equal to `ts` for everything but complete slices.
    pub end: i64,
}

impl Item {
    /// `trace_sorter.h`, slow mode: by time; at one time `E` first, then complete slices with a length,
    /// the longer first, then everything else as in the file.
    pub(crate) fn key(&self) -> Key {
        let dur = self.end - self.ts;
        match self.phase {
            Phase::End => (self.ts, 0, 0, self.row),
            Phase::Complete if dur > 0 => (self.ts, 1, -dur, self.row),
            _ => (self.ts, 2, 0, self.row),
        }
    }
}

/// An [`Item`] in 16 bytes: what is kept of every event on a stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stacked {
    ts: i64,
    /// The event.
    pub row: Row,
    /// The length of a complete slice. From [`PHASES`] on, the phase of anything else.
    len: u32,
}

/// Lengths from here on are phases; that of a complete slice says that its length is to be asked of the view.
const PHASES: u32 = u32::MAX - 16;

impl Stacked {
    #[inline]
    pub fn of(event: &Seen) -> Self {
        let Seen { row, phase, ts, dur, .. } = *event;
        let len = match u32::try_from(dur) {
            Ok(short) if phase == Phase::Complete && short < PHASES => short,
            _ => PHASES + phase as u32,
        };
        Self { ts, row, len }
    }

    #[inline]
    pub fn item(self, view: &View<'_>) -> Item {
        let Self { ts, row, len } = self;
        let (phase, dur) = match len.checked_sub(PHASES).map(Phase::from_index) {
            None => (Phase::Complete, i64::from(len)),
            Some(Phase::Complete) => (Phase::Complete, view.importer_times(row).1),
            Some(phase) => (phase, 0),
        };
        Item { row, phase, ts, end: ts.saturating_add(dur) }
    }

    #[inline]
    fn compare(&self, other: &Self, view: &View<'_>) -> Ordering {
        #[inline(never)]
        fn at_one_time(a: &Stacked, b: &Stacked, view: &View<'_>) -> Ordering {
            a.item(view).key().cmp(&b.item(view).key())
        }
        self.ts.cmp(&other.ts).then_with(|| at_one_time(self, other, view))
    }
}

/// Puts a thread's events into the importer's order.
#[inline(never)]
pub(crate) fn sort(view: &View<'_>, events: &mut [Stacked]) {
    // Stable, because that finds the parts that are in order, and a file has few; but it takes memory for that.
    if !events.is_sorted_by(|a, b| a.compare(b, view).is_le()) {
        events.sort_by(|a, b| a.compare(b, view));
    }
}

/// One event as the importer sees it.
#[inline]
pub(crate) fn item(view: &View<'_>, row: Row) -> Item {
    let (phase, ts, dur) = view.phase_and_times(row);
    let end = if phase == Phase::Complete { ts.saturating_add(dur) } else { ts };
    Item { row, phase, ts, end }
}
#[cfg(test)]
mod tests {
    use super::{PHASES, Stacked, item, sort};
    use crate::view::View;
    use proptest::prelude::*;
    use trace::{ByteSpan, Event, Flags, IdToken, Phase, Row, Trace, TraceBuilder};

    fn trace(events: &[(Phase, i64, i64)]) -> Trace {
        let mut builder = TraceBuilder::default();
        let (name, raw_category) = (builder.strings().intern("k"), builder.strings().intern(""));
        let track = builder.track(IdToken::Int(1), IdToken::Int(2));
        for (n, (phase, ts_ns, dur_ns)) in events.iter().copied().enumerate() {
            let event = Event {
                phase,
                flags: Flags(Flags::HAS_TS.0 | Flags::HAS_DUR.0),
                ts_ns,
                dur_ns,
                name,
                raw_category,
                track,
                link: None,
                external: None,
                stream: None,
                span: ByteSpan { start: n as u64 * 10, len: 10 },
            };
            assert!(builder.push(&event, None));
        }
        builder.finish()
    }

    fn event() -> impl Strategy<Value = (Phase, i64, i64)> {
        use Phase::{Begin, Complete, End, FlowEnd, FlowStart, Instant};
        let phase = vec![Complete, Complete, Begin, End, Instant, FlowStart, FlowEnd];
        let short = i64::from(PHASES);
        let dur = vec![0, 1, 7, short - 1, short, short + 1, i64::from(u32::MAX), 1 << 40];
        (prop::sample::select(phase), 0_i64..30, prop::sample::select(dur))
    }

    proptest! {
        #[test]
        fn what_comes_to_a_thread_takes_its_place(
            events in prop::collection::vec(event(), 0..80),
            n_before in 0_usize..80,
        ) {
            let trace = trace(&events);
            let view = View::of(&trace);
            let mut thread: Vec<Stacked> = Vec::new();
            for (n, row) in trace.rows().enumerate() {
                thread.push(Stacked::of(&view.event(row)));
                if n == n_before {
                    sort(&view, &mut thread);
                }
            }
            sort(&view, &mut thread);
            let mut expected: Vec<Row> = trace.rows().collect();
            expected.sort_by_key(|row| item(&view, *row).key());
            prop_assert_eq!(thread.iter().map(|event| event.row).collect::<Vec<_>>(), expected);
            for event in thread {
                prop_assert_eq!(event.item(&view), item(&view, event.row));
            }
        }
    }
}
