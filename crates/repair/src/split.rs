//! Rule 3: threads that Perfetto would fold into one.

use std::collections::{BTreeMap, BTreeSet};

use trace::{IdToken, Trace, TrackId, each_of, each_row};

use crate::perfetto::threads::{self, Folded, Threads};
use crate::plan::{Lane, LaneKind, RepairPlan, Rule};

/// Hands out tids that no event of the file uses, as pid or tid, in any process.
pub(crate) struct FreeTids {
    used: BTreeSet<u32>,
}

impl FreeTids {
    pub fn of(trace: &Trace) -> Self {
        let number = |token| match threads::fold(token, trace) {
            Folded::Number(value) => Some(value),
            Folded::Text(_) => None,
        };
        let pids = trace.processes.iter().map(|process| process.pid);
        let tids = trace.tracks.iter().map(|track| track.tid);
        Self { used: pids.chain(tids).filter_map(number).chain([0]).collect() }
    }

    /// The smallest free tid above `parent`, because equal sort indexes are ordered by tid; below it
    /// when there is none.
    pub fn take(&mut self, parent: u32) -> u32 {
        let above = (parent..u32::MAX).map(|tid| tid + 1).find(|tid| !self.used.contains(tid));
        let tid = above.or_else(|| (1..parent).rev().find(|tid| !self.used.contains(tid)));
        // All 2^32 numbers taken would need as many threads; 0 would then fold as before.
        let tid = tid.unwrap_or(0);
        self.used.insert(tid);
        tid
    }
}

/// The number that a track's thread has in Perfetto.
pub(crate) fn shown_tid(trace: &Trace, track: TrackId) -> u32 {
    let tid = threads::fold(trace.track_info(track).tid, trace);
    let pid = threads::fold(trace.process_of(track).pid, trace);
    match (tid, pid) {
        (Folded::Number(tid), _) if tid != 0 => tid,
        (Folded::Number(_), Folded::Number(pid)) => pid,
        _ => 0,
    }
}

/// Gives every thread but one of a folded group a tid of its own.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan, threads: &Threads, tids: &mut FreeTids) {
    let mut groups: BTreeMap<u32, Vec<TrackId>> = BTreeMap::new();
    for (track, thread) in threads.by_track() {
        groups.entry(thread).or_default().push(track);
    }
    groups.retain(|_, tracks| tracks.len() > 1);
    if groups.is_empty() {
        return;
    }
    // Only threads with slices, instants or flows count: metadata folds harmlessly.
    let mut stacked = vec![0_u32; trace.tracks.len()];
    for thread in groups.keys() {
        each_of(threads.events(*thread), |event| {
            stacked[trace.track(event.row).0 as usize] += 1;
        });
    }
    let mut moved: BTreeMap<TrackId, u32> = BTreeMap::new();
    for tracks in groups.values() {
        let mut busy: Vec<TrackId> =
            tracks.iter().copied().filter(|id| stacked[id.0 as usize] > 0).collect();
        if busy.len() < 2 {
            continue;
        }
        // The main thread stays: the tid that equals the pid, else the busiest.
        busy.sort_by_key(|id| {
            let track = trace.track_info(*id);
            let is_main = track.tid == trace.process_of(*id).pid;
            (!is_main, std::cmp::Reverse(stacked[id.0 as usize]), *id)
        });
        for id in busy.into_iter().skip(1) {
            let tid = tids.take(shown_tid(trace, id));
            moved.insert(id, tid);
            let track = trace.track_info(id);
            let name = match track.name {
                Some(_) => None,
                None => Some(unnamed(track.tid, trace)),
            };
            plan.lanes.push(Lane {
                kind: LaneKind::Split,
                process: track.process,
                parent: id,
                tid,
                name,
                sort_index: None,
            });
        }
    }
    if moved.is_empty() {
        return;
    }
    let mut new_tid = vec![None; trace.tracks.len()];
    for (track, tid) in moved {
        new_tid[track.0 as usize] = Some(tid);
    }
    // All events of the track, not those on its stack alone: its name goes along.
    each_row(trace, |row| {
        if let Some(tid) = new_tid[trace.track(row).0 as usize] {
            plan.edit_mut(row).tid = Some(tid);
            plan.note(row, Rule::FoldedThread, None);
        }
    });
}

fn unnamed(tid: IdToken, trace: &Trace) -> String {
    match tid {
        IdToken::Missing => "thread without tid".to_owned(),
        token => format!("thread {}", token.display(&trace.strings)),
    }
}
