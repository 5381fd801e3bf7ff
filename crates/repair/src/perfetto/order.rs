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
///
/// A file has the events of a thread as a few parts that are in order: they are found and merged, in small loops. (The library's
/// sort does the same in one large loop, which a browser runs unoptimised to its end.)
#[inline(never)]
pub(crate) fn sort(view: &View<'_>, events: &mut [Stacked], plain: &Plain) {
    let by = By { view, plain };
    let mut ends: Vec<usize> = Vec::new();
    for start in (0..events.len()).step_by(BLOCK) {
        by.note_ends(events, start, &mut ends);
    }
    ends.push(events.len());
    let mut scratch = Vec::new();
    // Neighbours become one, until there is one.
    while ends.len() > 1 {
        let (mut start, mut n_parts) = (0, 0);
        for at in (0..ends.len()).step_by(2) {
            let end = ends.get(at + 1).copied();
            if let Some(end) = end {
                by.merge(&mut events[start..end], ends[at] - start, &mut scratch);
            }
            start = end.unwrap_or(events.len());
            ends[n_parts] = start;
            n_parts += 1;
        }
        ends.truncate(n_parts);
    }
}

/// Events that are looked at by one call: see [`trace::each_of`].
const BLOCK: usize = 2048;

/// What decides on the order.
struct By<'a> {
    view: &'a View<'a>,
    plain: &'a Plain,
}

impl By<'_> {
    #[inline(always)]
    fn compare(&self, a: &Stacked, b: &Stacked) -> Ordering {
        a.compare(b, self.view, self.plain)
    }

    /// Notes where parts of a block end.
    #[inline(never)]
    fn note_ends(&self, events: &[Stacked], start: usize, ends: &mut Vec<usize>) {
        let block = &events[start.saturating_sub(1)..events.len().min(start + BLOCK)];
        for (at, pair) in block.windows(2).enumerate() {
            if self.compare(&pair[0], &pair[1]).is_gt() {
                ends.push(start.saturating_sub(1) + at + 1);
            }
        }
    }

    /// Merges two parts, of which the second begins at `middle`.
    #[inline(never)]
    fn merge(&self, events: &mut [Stacked], middle: usize, scratch: &mut Vec<Stacked>) {
        let Some(first) = events.get(middle).copied() else { return };
        // What stands before all of the second part stays.
        let start = events[..middle].partition_point(|event| self.compare(event, &first).is_le());
        scratch.clear();
        scratch.extend_from_slice(&events[start..middle]);
        let events = &mut events[start..];
        let mut heads = Heads { left: 0, right: scratch.len(), to: 0 };
        while heads.left < scratch.len() {
            heads = self.merge_block(events, scratch, heads);
        }
    }

    /// Puts a block of events where they belong. What is left of the second part at the end stands there.
    #[inline(never)]
    fn merge_block(&self, events: &mut [Stacked], left: &[Stacked], mut heads: Heads) -> Heads {
        for _ in 0..BLOCK {
            let Some(own) = left.get(heads.left) else { break };
            let event = match events.get(heads.right) {
                Some(other) if self.compare(own, other).is_gt() => {
                    heads.right += 1;
                    *other
                }
                _ => {
                    heads.left += 1;
                    *own
                }
            };
            if let Some(place) = events.get_mut(heads.to) {
                *place = event;
            }
            heads.to += 1;
        }
        heads
    }
}

/// What comes next: of the first part, of the second, and where to.
#[derive(Clone, Copy)]
struct Heads {
    left: usize,
    right: usize,
    to: usize,
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
        fn parts_are_merged_however_many(
            events in prop::collection::vec(event(), 0..6000),
            part in prop::sample::select(vec![2_usize, 40, 90, 500, 2047, 2048, 3000, 9000]),
        ) {
            let mut events = events;
            for part in events.chunks_mut(part) {
                part.sort_by_key(|(_, ts, _)| *ts);
            }
            let trace = trace(&events);
            let view = View::of(&trace);
            let mut thread: Vec<Stacked> =
                trace.rows().map(|row| Stacked::of(&view.event(row))).collect();
            sort(&view, &mut thread, &Plain::default());
            let mut expected: Vec<Row> = trace.rows().collect();
            expected.sort_by_key(|row| item(&view, *row).key());
            prop_assert_eq!(thread.iter().map(|event| event.row).collect::<Vec<_>>(), expected);
        }

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
