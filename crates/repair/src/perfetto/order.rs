//! The order in which the importer handles the events of one thread.

use std::cmp::Ordering;

use trace::{Flags, Phase, Row, each_row};

use crate::view::{Seen, View};

/// What events are sorted by: time, kind, negative length, row.
pub(crate) type Key = (i64, u8, i64, Row);

/// One stacked event with its times in the importer's ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The event.
    pub row: Row,
    /// What it is.
    pub phase: Phase,
    /// Start.
    pub ts: i64,
    /// End; equal to `ts` for everything but complete slices.
    pub end: i64,
    /// Length of a complete slice, else 0.
    pub dur: i64,
}

/// Events that the importer leaves in the order of the file at one time: those before the first complete slice, and
/// earlier than the first that is out of order. (`trace_sorter.h`: `E` goes first in "slow mode" alone, which the first
/// `X` switches on, and what is in order by time by then is not sorted again.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plain {
    /// Only rows before this one.
    row: Row,
    /// Only times before this one.
    ts: i64,
}

impl Plain {
    /// All events.
    const ALL: Self = Self { row: Row::MAX, ts: i64::MAX };

    /// Whether these are all events: those of a file without a complete slice.
    pub(crate) fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// Finds out by the order of all events of a view. Matters only to threads with `E` events.
    #[inline(never)]
    pub(crate) fn of(view: &View<'_>) -> Self {
        let (mut slow, mut latest) = (None, 0);
        let (mut first_unsorted, mut least_unsorted) = (None, i64::MAX);
        each_row(view.trace, |row| {
            let Seen { phase, flags, ts, .. } = view.event(row);
            let has_time = flags.has(Flags::HAS_TS);
            let ts = if has_time { ts } else { 0 };
            let is_pushed = !view.is_aside(row)
                && !flags.has_any(Flags(Flags::PHASE_UNREADABLE.0 | Flags::V8_SAMPLE.0))
                && (has_time || phase == Phase::Metadata)
                && ts >= 0;
            if !is_pushed {
                return;
            }
            if phase == Phase::Complete {
                slow.get_or_insert(row);
            }
            if ts > latest || (slow.is_none() && ts == latest) {
                latest = ts;
            } else {
                first_unsorted.get_or_insert(row);
                least_unsorted = least_unsorted.min(ts);
            }
        });
        if slow.is_some() && view.adds_events() {
            // Metadata of new lanes, at time 0 behind all others.
            least_unsorted = 0;
        }
        match (slow, first_unsorted) {
            // Without a complete slice everything is in the order of the file.
            (None, _) => Self::ALL,
            (Some(slow), Some(unsorted)) => Self { row: slow.min(unsorted), ts: least_unsorted },
            (Some(slow), None) => Self { row: slow, ts: least_unsorted },
        }
    }

    fn has(&self, item: &Item) -> bool {
        item.row < self.row && item.ts < self.ts
    }
}

impl Item {
    /// `trace_sorter.h`, slow mode: by time; at one time `E` first, then complete slices with a length,
    /// the longer first, then everything else as in the file.
    pub(crate) fn key(&self) -> Key {
        match self.phase {
            Phase::End => (self.ts, 0, 0, self.row),
            // (The key is a difference, and wraps.)
            Phase::Complete if self.dur < 0 => (self.ts, 0, self.dur.saturating_neg(), self.row),
            Phase::Complete if self.dur > 0 => (self.ts, 1, -self.dur, self.row),
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
    pub(crate) fn of(event: &Seen) -> Self {
        let Seen { row, phase, ts, dur, .. } = *event;
        let len = match u32::try_from(dur) {
            Ok(short) if phase == Phase::Complete && short < PHASES => short,
            _ => PHASES + phase as u32,
        };
        Self { ts, row, len }
    }

    /// A complete slice.
    #[inline]
    pub(crate) fn slice(row: Row, ts: i64, dur: u32) -> Option<Self> {
        (dur < PHASES).then_some(Self { ts, row, len: dur })
    }

    /// An event that is no complete slice.
    #[inline(always)]
    pub(crate) fn other(row: Row, ts: i64, phase: Phase) -> Self {
        Self { ts, row, len: PHASES + phase as u32 }
    }

    /// Start and length of a complete slice, unless its length is to be asked of the view.
    #[inline(always)]
    pub(crate) fn as_slice(self) -> Option<(i64, i64)> {
        (self.len < PHASES).then_some((self.ts, i64::from(self.len)))
    }

    /// What it is.
    #[inline(always)]
    pub(crate) fn phase(self) -> Phase {
        match self.len.checked_sub(PHASES) {
            Some(phase) => Phase::from_index(phase),
            None => Phase::Complete,
        }
    }

    // Always inlined: it is called for every event, several times, and a call costs as much.
    #[inline(always)]
    pub(crate) fn item(self, view: &View<'_>) -> Item {
        match self.as_slice() {
            Some((ts, dur)) => {
                let end = ts.saturating_add(dur);
                Item { row: self.row, phase: Phase::Complete, ts, end, dur }
            }
            None => self.odd_item(view),
        }
    }

    #[inline(never)]
    fn odd_item(self, view: &View<'_>) -> Item {
        let Self { ts, row, len } = self;
        let (phase, dur) = match Phase::from_index(len - PHASES) {
            Phase::Complete => (Phase::Complete, view.importer_times(row).1),
            phase => (phase, 0),
        };
        Item { row, phase, ts, end: ts.saturating_add(dur), dur }
    }

    /// The length by which events of one time are sorted, the longest first: nothing for what is no slice. `None` for those that
    /// have another place, or whose length is to be asked of the view.
    #[inline(always)]
    fn rank(self) -> Option<u32> {
        const END: u32 = PHASES + Phase::End as u32;
        match self.len {
            PHASES | END => None,
            len if len < PHASES => Some(len),
            _ => Some(0),
        }
    }

    // Always inlined, as what is compared is in hand: most of a sort is this.
    #[inline(always)]
    fn compare(&self, other: &Self, view: &View<'_>, plain: &Plain) -> Ordering {
        #[inline(never)]
        fn at_one_time(a: &Stacked, b: &Stacked, view: &View<'_>, plain: &Plain) -> Ordering {
            let key = |stacked: &Stacked| {
                let item = stacked.item(view);
                if plain.has(&item) { (item.ts, 2, 0, item.row) } else { item.key() }
            };
            key(a).cmp(&key(b))
        }
        if self.ts != other.ts {
            return self.ts.cmp(&other.ts);
        }
        match (self.rank(), other.rank()) {
            (Some(own), Some(rank)) if plain.row == 0 => {
                rank.cmp(&own).then(self.row.cmp(&other.row))
            }
            _ => at_one_time(self, other, view, plain),
        }
    }
}

const _: () =
    assert!(Phase::Complete as u32 == 0, "a complete slice without its length is `PHASES`");

/// Puts a thread's events into the importer's order.
#[inline(never)]
pub(crate) fn sort(view: &View<'_>, events: &mut [Stacked], plain: &Plain) {
    // Stable, because that finds the parts that are in order, and a file has few; but it takes memory for that.
    if !events.is_sorted_by(|a, b| a.compare(b, view, plain).is_le()) {
        events.sort_by(|a, b| a.compare(b, view, plain));
    }
}

/// One event as the importer sees it.
#[inline]
pub(crate) fn item(view: &View<'_>, row: Row) -> Item {
    let (phase, ts, dur) = view.phase_and_times(row);
    let dur = if phase == Phase::Complete { dur } else { 0 };
    Item { row, phase, ts, end: ts.saturating_add(dur), dur }
}
#[cfg(test)]
mod tests {
    use super::{PHASES, Plain, Stacked, item, sort};
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
                    sort(&view, &mut thread, &Plain::default());
                }
            }
            sort(&view, &mut thread, &Plain::default());
            let mut expected: Vec<Row> = trace.rows().collect();
            expected.sort_by_key(|row| item(&view, *row).key());
            prop_assert_eq!(thread.iter().map(|event| event.row).collect::<Vec<_>>(), expected);
            for event in thread {
                prop_assert_eq!(event.item(&view), item(&view, event.row));
            }
        }
    }
}
