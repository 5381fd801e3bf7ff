//! Which events share a stack: the importer's folding of pids and tids.

use std::collections::HashMap;

use trace::{BuildIdHasher, Flags, IdToken, Phase, Row, StringId, Trace, TrackId, each_row};

use super::order::{self, Plain, Stacked};
use crate::rows::RowSet;
use crate::view::{Seen, View};

/// A pid or tid after the importer's conversion to u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Folded {
    /// A number; whatever does not fit u32 became 0.
    Number(u32),
    /// A string: its pool index, which no number equals in practice.
    Text(StringId),
}

/// The importer's reading of a pid or tid. A double is cut to an integer; negative numbers, numbers
/// above u32 and anything that is no number or string become 0 (measured).
#[must_use]
pub(crate) fn fold(token: IdToken, trace: &Trace) -> Folded {
    match token {
        IdToken::Missing => Folded::Number(0),
        IdToken::Int(value) => Folded::Number(u32::try_from(value).unwrap_or(0)),
        IdToken::Text(text) => Folded::Text(text),
        IdToken::Number(text) => {
            // Digits beyond 64 bits wrap.
            let value =
                trace::decimal::importer_value(trace.strings.get(text).as_bytes()).unwrap_or(0.0);
            Folded::Number(u32::try_from(value as i64).unwrap_or(0))
        }
    }
}

/// One importer thread: its process, and its tid (`None` = the main thread, tid 0 or equal to the pid).
pub(crate) type ThreadKey = (Folded, Option<Folded>);

/// The thread that (pid, tid) ends up on.
#[must_use]
pub(crate) fn thread_key(pid: IdToken, tid: IdToken, trace: &Trace) -> ThreadKey {
    let (pid, tid) = (fold(pid, trace), fold(tid, trace));
    (pid, (tid != Folded::Number(0) && tid != pid).then_some(tid))
}

/// Every importer thread with the events on its stack, in the importer's order.
#[derive(Default)]
pub(crate) struct Threads {
    keys: Vec<ThreadKey>,
    index_of: HashMap<ThreadKey, u32, BuildIdHasher>,
    /// The thread of each track of the trace.
    by_track: Vec<u32>,
    /// The threads of events that a plan took from their track's.
    moved: HashMap<Row, u32, BuildIdHasher>,
    events: Vec<Vec<Stacked>>,
    /// Whether any thread has `E` events.
    has_ends: bool,
    /// Which events are in the order of the file.
    plain: Plain,
    /// The thread that was found last: of events of a track with a tid.
    last: Option<(TrackId, IdToken, u32)>,
}

/// Whether an event takes part in a thread's stack: slices, thread instants, flows.
#[inline]
pub(crate) fn is_stacked(view: &View<'_>, event: &Seen) -> bool {
    let Seen { row, phase, flags, ts, dur } = *event;
    // (What lies before 0 the importer drops.)
    if !flags.has(Flags::HAS_TS) || ts < 0 || view.is_aside(row) {
        return false;
    }
    match phase {
        Phase::Complete => flags.has(Flags::HAS_DUR) && (dur >= 0 || view.bind(row).is_some()),
        Phase::Begin | Phase::End => true,
        Phase::Instant => view.on_thread(row),
        phase => phase.is_flow() && !flags.has(Flags::ID_UNREADABLE) && view.flow_id(row).is_some(),
    }
}

/// Numbers of threads, sorted.
fn each_once(threads: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut threads: Vec<u32> = threads.collect();
    threads.dedup();
    trace::sort(&mut threads);
    threads.dedup();
    threads
}

/// Removes events; whether there was one.
#[inline(never)]
fn remove(events: &mut Vec<Stacked>, gone: &RowSet) -> bool {
    let mut n_kept = 0;
    for start in (0..events.len()).step_by(BLOCK) {
        n_kept = keep(events, start, n_kept, gone);
    }
    let any = n_kept < events.len();
    events.truncate(n_kept);
    any
}

/// Events that are looked at by one call: see [`trace::each_of`].
const BLOCK: usize = 2048;

/// Moves those of a block that stay behind the first `n_kept`; how many these are then.
#[inline(never)]
fn keep(events: &mut [Stacked], start: usize, mut n_kept: usize, gone: &RowSet) -> usize {
    for at in start..events.len().min(start + BLOCK) {
        let event = events[at];
        if !gone.contains(event.row) {
            events[n_kept] = event;
            n_kept += 1;
        }
    }
    n_kept
}

impl Threads {
    /// Groups all events by thread; `each` is told every event on the way but sound slices ([`View::sound_slice`]), and shown what
    /// is no sound flow event either ([`View::sound_flow`]).
    #[inline(never)]
    pub(crate) fn of(view: &View<'_>, each: &mut dyn FnMut(Row, Option<&Seen>)) -> Self {
        let trace = view.trace;
        let mut threads = Self::default();
        let mut n_timed = vec![0; trace.tracks.len()];
        for track in (0..trace.tracks.len() as u32).map(TrackId) {
            let info = trace.track_info(track);
            let thread = threads.index(thread_key(trace.process_of(track).pid, info.tid, trace));
            threads.by_track.push(thread);
            n_timed[thread as usize] += info.n_timed as usize;
        }
        for (events, n_timed) in threads.events.iter_mut().zip(n_timed) {
            // Nearly exact. (Growing would double it, and memory does not shrink in a browser.)
            events.reserve_exact(n_timed);
        }
        for (row, edit) in view.edits() {
            if edit.tid.is_some() || edit.track.is_some() {
                threads.follow(view, row);
            }
        }
        each_row(trace, |row| {
            let slice = view.sound_slice(row).and_then(|(ts, dur)| Stacked::slice(row, ts, dur));
            let sound = slice.or_else(|| {
                let (phase, ts) = view.sound_flow(row)?;
                each(row, None);
                Some(Stacked::other(row, ts, phase))
            });
            if let Some(event) = sound {
                // (No plan took it elsewhere.)
                let thread = threads.by_track[trace.track(row).0 as usize];
                threads.events[thread as usize].push(event);
            } else {
                threads.add(view, row, each);
            }
        });
        threads.plain = threads.plain_in(view);
        for events in &mut threads.events {
            order::sort(view, events, &threads.plain);
        }
        threads
    }

    /// Adds any event, if it is on a stack.
    #[inline(never)]
    fn add(&mut self, view: &View<'_>, row: Row, each: &mut dyn FnMut(Row, Option<&Seen>)) {
        let event = view.event(row);
        each(row, Some(&event));
        if is_stacked(view, &event) {
            self.has_ends |= event.phase == Phase::End;
            let thread = self.thread_of(view, row);
            self.events[thread as usize].push(Stacked::of(&event));
        }
    }

    fn plain_in(&self, view: &View<'_>) -> Plain {
        if self.has_ends { Plain::of(view) } else { Plain::default() }
    }

    /// Whether events of one time come in the order of the file, ends not first.
    pub(crate) fn are_in_file_order(&self) -> bool {
        self.plain.is_all()
    }

    /// Whether the importer sorts the threads of a view by the same rules.
    pub(crate) fn are_sorted_as_in(&self, view: &View<'_>) -> bool {
        self.plain == self.plain_in(view)
    }

    /// Takes changed events (sorted) to where the view now has them; the threads that this changes, sorted.
    #[inline(never)]
    pub(crate) fn update(&mut self, view: &View<'_>, changed: &[Row]) -> Vec<u32> {
        let mut left = each_once(changed.iter().map(|row| self.thread_of(view, *row)));
        let is_changed = RowSet::of(changed);
        // (What stays is in order still.)
        left.retain(|thread| remove(&mut self.events[*thread as usize], &is_changed));
        let mut joined = Vec::new();
        self.moved.reserve(changed.len());
        for row in changed {
            let thread = self.follow(view, *row);
            let event = view.event(*row);
            if is_stacked(view, &event) {
                self.events[thread as usize].push(Stacked::of(&event));
                joined.push(thread);
            }
        }
        let joined = each_once(joined.into_iter());
        for thread in &joined {
            order::sort(view, &mut self.events[*thread as usize], &self.plain);
        }
        each_once(left.into_iter().chain(joined))
    }

    /// The index of a thread, a new one if there was none.
    fn index(&mut self, key: ThreadKey) -> u32 {
        *self.index_of.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.events.push(Vec::new());
            self.keys.len() as u32 - 1
        })
    }

    /// The index of the thread that a tid means to the process of a track.
    #[inline(never)]
    fn find(&mut self, trace: &Trace, track: TrackId, tid: IdToken) -> u32 {
        let thread = self.index(thread_key(trace.process_of(track).pid, tid, trace));
        self.last = Some((track, tid, thread));
        thread
    }

    /// Notes the thread that the view has an event on.
    #[inline(never)]
    fn follow(&mut self, view: &View<'_>, row: Row) -> u32 {
        let track = view.trace.track(row);
        let tid = view.tid(row);
        let thread = match self.last {
            // (What moves to one lane comes one after the other.)
            Some((known, known_tid, thread)) if known == track && known_tid == tid => thread,
            _ => self.find(view.trace, track, tid),
        };
        if self.by_track.get(track.0 as usize) == Some(&thread) {
            self.moved.remove(&row);
        } else {
            self.moved.insert(row, thread);
        }
        thread
    }

    /// The thread that an event was last taken to.
    #[inline]
    pub(crate) fn thread_of(&self, view: &View<'_>, row: Row) -> u32 {
        let moved = if view.is_edited(row) { self.moved.get(&row) } else { None };
        let own = self.by_track.get(view.trace.track(row).0 as usize);
        moved.or(own).copied().unwrap_or_default()
    }

    /// Indexes of all threads, in order of first appearance.
    pub(crate) fn all(&self) -> std::ops::Range<u32> {
        0..self.keys.len() as u32
    }

    /// The key of a thread.
    #[must_use]
    pub(crate) fn key(&self, thread: u32) -> ThreadKey {
        self.keys[thread as usize]
    }

    /// The thread that each track of the trace is on.
    pub(crate) fn by_track(&self) -> impl Iterator<Item = (TrackId, u32)> + '_ {
        self.by_track.iter().enumerate().map(|(track, thread)| (TrackId(track as u32), *thread))
    }

    /// The stacked events of a thread, in the importer's order.
    pub(crate) fn events(&self, thread: u32) -> &[Stacked] {
        &self.events[thread as usize]
    }
}
