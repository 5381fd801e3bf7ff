//! Threads that Perfetto would fold into one.

use std::collections::{BTreeMap, HashMap};

use trace::{BuildIdHasher, IdToken, Row, Trace, TrackId, each_of, each_row};

use crate::perfetto::Survey;
use crate::perfetto::threads::{self, Folded, Threads};
use crate::types::{Lane, LaneKind, RepairPlan, Rule};
use crate::view::View;

/// Hands out tids that no event of the file uses, as pid or tid, in any process.
pub(crate) struct FreeTids {
    /// Of a used number, one above it that is nearer to the next free one.
    above: HashMap<u64, u64, BuildIdHasher>,
    /// The same below.
    below: HashMap<u64, u64, BuildIdHasher>,
}

/// Follows the numbers to a free one, and shortens the way for the next time.
fn follow(next: &mut HashMap<u64, u64, BuildIdHasher>, from: u64) -> u64 {
    let mut free = from;
    while let Some(further) = next.get(&free) {
        free = *further;
    }
    let mut at = from;
    while let Some(further) = next.insert(at, free).filter(|_| at != free) {
        at = further;
    }
    next.remove(&free);
    free
}

impl FreeTids {
    pub(crate) fn of(trace: &Trace) -> Self {
        let number = |token| match threads::fold(token, trace) {
            Folded::Number(value) => Some(value),
            Folded::Text(_) => None,
        };
        let pids = trace.processes.iter().map(|process| process.pid);
        let tids = trace.tracks.iter().map(|track| track.tid);
        let mut free = Self { above: HashMap::default(), below: HashMap::default() };
        pids.chain(tids).filter_map(number).for_each(|used| free.close(u64::from(used)));
        free
    }

    fn close(&mut self, used: u64) {
        self.above.insert(used, used + 1);
        self.below.insert(used, used.saturating_sub(1));
    }

    /// The smallest free tid above `parent`, because equal sort indexes are ordered by tid; below it
    /// when there is none.
    pub(crate) fn take(&mut self, parent: u32) -> u32 {
        let above = follow(&mut self.above, u64::from(parent) + 1);
        let tid = match u32::try_from(above) {
            Ok(_) => above,
            // (0 is never free: it means the process's own thread.)
            Err(_) => {
                self.below.remove(&0);
                follow(&mut self.below, u64::from(parent.saturating_sub(1)))
            }
        };
        // All 2^32 numbers taken would need as many threads; 0 would then fold as before.
        self.close(tid);
        tid as u32
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

/// Gives every thread but one of a folded group a tid of its own. Returns whether there was one.
#[inline(never)]
pub(crate) fn plan(
    trace: &Trace,
    plan: &mut RepairPlan,
    threads: &Threads,
    tids: &mut FreeTids,
) -> bool {
    let mut groups: BTreeMap<u32, Vec<TrackId>> = BTreeMap::new();
    for (track, thread) in threads.by_track() {
        groups.entry(thread).or_default().push(track);
    }
    groups.retain(|_, tracks| tracks.len() > 1);
    if groups.is_empty() {
        return false;
    }
    // Only threads with slices or instants count. Metadata folds harmlessly, and arrows alone are those of the slices that they fold onto.
    let mut stacked = vec![0_u32; trace.tracks.len()];
    for thread in groups.keys() {
        each_of(threads.events(*thread), |event| {
            let counts = !trace.phase(event.row).is_flow();
            stacked[trace.track(event.row).0 as usize] += u32::from(counts);
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
        trace::sort_by_key(&mut busy, |id| {
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
        return false;
    }
    let mut new_tid = vec![None; trace.tracks.len()];
    for (track, tid) in moved {
        new_tid[track.0 as usize] = Some(tid);
    }
    // All events of the track, not those on its stack alone: its name goes along.
    each_row(trace, |row| {
        if let Some(tid) = new_tid[trace.track(row).0 as usize] {
            plan.change(row, Rule::FoldedThread, None, |edit| edit.tid = Some(tid));
        }
    });
    true
}

/// Whether any flow event of a folded group has no slice on its own thread.
#[inline(never)]
pub(crate) fn has_strays(trace: &Trace, plan: &RepairPlan, survey: &Survey) -> bool {
    if plan.flow_targets.len() == survey.flows.len() {
        return false;
    }
    let mut n_tracks = vec![0_u32; survey.threads.all().len()];
    let thread_of: Vec<u32> = survey.threads.by_track().map(|(_, thread)| thread).collect();
    for thread in &thread_of {
        n_tracks[*thread as usize] += 1;
    }
    let view = View::after(trace, plan);
    let mut targets = plan.flow_targets.iter().map(|(flow, _)| *flow).peekable();
    // (Both in file order.)
    survey.flows.iter().copied().any(|flow| {
        while targets.next_if(|target| *target < flow).is_some() {}
        targets.next_if_eq(&flow).is_none()
            && n_tracks[thread_of[trace.track(flow).0 as usize] as usize] > 1
            && threads::is_stacked(&view, &view.event(flow))
    })
}

/// A flow event that has no slice on its own thread goes where that slice went that it was bound to while both threads were one. `folded`:
/// these slices, sorted. Returns whether there was one.
#[inline(never)]
pub(crate) fn rejoin(plan: &mut RepairPlan, folded: &[(Row, Row)]) -> bool {
    let is_bound =
        |flow: Row| plan.flow_targets.binary_search_by_key(&flow, |(flow, _)| *flow).is_ok();
    let left: Vec<(Row, Row)> =
        folded.iter().copied().filter(|(flow, _)| !is_bound(*flow)).collect();
    for (flow, slice) in &left {
        let tid = plan.edit(*slice).and_then(|edit| edit.tid);
        // (Without a new tid the slice stays on the thread that both fold onto, and so does the flow event.)
        plan.change(*flow, Rule::FlowFollows, Some(*slice), |edit| edit.tid = tid);
    }
    !left.is_empty()
}

fn unnamed(tid: IdToken, trace: &Trace) -> String {
    match tid {
        IdToken::Missing => "thread without tid".to_owned(),
        token => format!("thread {}", token.display(&trace.strings)),
    }
}
