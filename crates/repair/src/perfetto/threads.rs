//! Which events share a stack: the importer's folding of pids and tids.

use std::collections::HashMap;

use trace::{BuildIdHasher, Flags, IdToken, Phase, Row, StringId, Trace, TrackId};

use super::order::{self, Item};
use crate::view::{View, each_row};

/// A pid or tid after the importer's conversion to u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Folded {
    /// A number; whatever does not fit u32 became 0.
    Number(u32),
    /// A string: its pool index, which no number equals in practice.
    Text(StringId),
}

/// The importer's reading of a pid or tid. A double is cut to an integer; negative numbers, numbers
/// above u32 and anything that is no number or string become 0 (measured: nasty 31 and the bool, null,
/// object cases).
#[must_use]
pub fn fold(token: IdToken, trace: &Trace) -> Folded {
    match token {
        IdToken::Missing => Folded::Number(0),
        IdToken::Int(value) => Folded::Number(u32::try_from(value).unwrap_or(0)),
        IdToken::Text(text) => Folded::Text(text),
        IdToken::Number(text) => {
            let value = trace.strings.get(text).parse::<f64>().unwrap_or(0.0);
            let fits = value > -1.0 && value < 4_294_967_296.0;
            Folded::Number(if fits { value as u32 } else { 0 })
        }
    }
}

/// One importer thread: its process, and its tid (`None` = the main thread, tid 0 or equal to the pid).
pub type ThreadKey = (Folded, Option<Folded>);

/// The thread that (pid, tid) ends up on.
#[must_use]
pub fn thread_key(pid: IdToken, tid: IdToken, trace: &Trace) -> ThreadKey {
    let (pid, tid) = (fold(pid, trace), fold(tid, trace));
    (pid, (tid != Folded::Number(0) && tid != pid).then_some(tid))
}

/// Every importer thread with the rows on its stack, grouped by one counting sort.
pub struct Threads {
    keys: Vec<ThreadKey>,
    starts: Vec<u32>,
    rows: Vec<Row>,
}

/// Whether an event takes part in a thread's stack: slices, thread instants, flows.
pub(crate) fn is_stacked(view: &View<'_>, row: Row) -> bool {
    let flags = view.flags(row);
    if !flags.has(Flags::HAS_TS) || view.is_aside(row) {
        return false;
    }
    match view.phase(row) {
        Phase::Complete => flags.has(Flags::HAS_DUR) && view.importer_times(row).1 >= 0,
        Phase::Begin | Phase::End => true,
        Phase::Instant => view.on_thread(row),
        phase => phase.is_flow() && !flags.has(Flags::ID_UNREADABLE) && view.flow_id(row).is_some(),
    }
}

/// The thread of a row that is on no stack.
const NO_THREAD: u32 = u32::MAX;

impl Threads {
    pub(crate) fn of(view: &View<'_>) -> Self {
        let trace = view.trace;
        let mut known: HashMap<ThreadKey, u32, BuildIdHasher> = HashMap::default();
        let mut keys = Vec::new();
        let mut index_of = |key: ThreadKey| {
            *known.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            })
        };
        let by_track: Vec<u32> = (0..trace.tracks.len())
            .map(|index| {
                let id = TrackId(index as u32);
                index_of(thread_key(trace.process_of(id).pid, trace.track_info(id).tid, trace))
            })
            .collect();
        // Rows that a plan moves change thread one by one; all others follow their track.
        let moved: HashMap<Row, u32, BuildIdHasher> = view
            .plan
            .iter()
            .flat_map(|plan| plan.edits.iter())
            .filter(|(_, edit)| edit.tid.is_some())
            .map(|(row, _)| {
                let pid = trace.process_of(trace.track(*row)).pid;
                (*row, index_of(thread_key(pid, view.tid(*row), trace)))
            })
            .collect();
        let is_moved = |row| view.plan.is_some_and(|plan| plan.is_edited(row));
        let thread_of = |row: Row| {
            if !is_stacked(view, row) {
                return NO_THREAD;
            }
            let moved = if is_moved(row) { moved.get(&row) } else { None };
            let own = by_track.get(trace.track(row).0 as usize);
            moved.or(own).copied().unwrap_or_default()
        };
        // Asked once a row: 4 bytes a row for a moment are cheaper than asking twice.
        let mut threads = Vec::with_capacity(trace.len());
        let mut starts = vec![0_u32; keys.len() + 1];
        each_row(trace, |row| {
            let thread = thread_of(row);
            threads.push(thread);
            if thread != NO_THREAD {
                starts[thread as usize + 1] += 1;
            }
        });
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; starts.last().copied().unwrap_or_default() as usize];
        each_row(trace, |row| {
            let thread = threads[row as usize];
            if thread != NO_THREAD {
                let slot = &mut next[thread as usize];
                rows[*slot as usize] = row;
                *slot += 1;
            }
        });
        drop(threads);
        let mut threads = Self { keys, starts, rows };
        threads.sort(view);
        threads
    }

    /// Puts every thread's rows into the importer's order; what the sorter drops (times before 0) goes.
    fn sort(&mut self, view: &View<'_>) {
        let mut kept = 0;
        for thread in self.all() {
            let (start, end) = (self.starts[thread] as usize, self.starts[thread + 1] as usize);
            let n = order::sort(view, &mut self.rows[start..end]);
            self.rows.copy_within(start..start + n, kept);
            self.starts[thread] = kept as u32;
            kept += n;
        }
        if let Some(end) = self.starts.last_mut() {
            *end = kept as u32;
        }
    }

    /// The thread's events in the importer's order.
    pub(crate) fn items<'a>(
        &'a self,
        view: &'a View<'a>,
        thread: usize,
    ) -> impl Iterator<Item = Item> + 'a {
        self.rows(thread).iter().map(|row| order::item(view, *row))
    }

    /// Indexes of all threads, in order of first appearance.
    pub fn all(&self) -> std::ops::Range<usize> {
        0..self.keys.len()
    }

    /// The key of a thread.
    #[must_use]
    pub fn key(&self, thread: usize) -> ThreadKey {
        self.keys[thread]
    }

    /// The stacked rows of a thread, in the importer's order.
    #[must_use]
    pub fn rows(&self, thread: usize) -> &[Row] {
        &self.rows[self.starts[thread] as usize..self.starts[thread + 1] as usize]
    }
}
