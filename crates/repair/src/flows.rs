//! Flow events go where their slices go.
//!
//! Perfetto binds a flow event to the topmost slice of its thread at that moment. When a slice moves to a
//! lane or is dropped, its arrow silently lands on another slice; counting arrows proves nothing. So the
//! slice of every flow event is resolved first, on exact times, and the flow event then follows it.

mod ids;
mod resolve;

use std::collections::{BTreeMap, HashMap, HashSet};

use trace::decimal::importer_ns;
use trace::{BuildIdHasher, Flags, IdToken, Phase, Row, Trace, TrackId, each_of};

use crate::perfetto::Survey;
use crate::perfetto::flow_ids::{FlowKey, key, takes_part};
use crate::perfetto::order;
use crate::perfetto::threads::{ThreadKey, thread_key};
use crate::rows::RowSet;
use crate::types::{Action, Change, RepairPlan, Rule};
use crate::view::View;

use ids::tell_apart;
use resolve::unbound;
pub(crate) use resolve::{count_bound, resolve};

/// Plans what happens to flow events: they follow their slices, ends bind to the slice they stand on, and
/// ids that are started twice are told apart.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan, work: &Survey, before: &[(Row, Row)]) {
    follow(trace, plan);
    if plan.is_identity() {
        // Flow events may still bind elsewhere than where they stand.
        aim(trace, plan, before, work, &work.bindings());
        unpark(trace, plan, work);
    }
    for row in work.unbound() {
        // (One whose slice is on another thread follows it there.)
        let target = plan.flow_targets.binary_search_by_key(&row, |(flow, _)| *flow);
        let slice = target.ok().map(|at| plan.flow_targets[at].1);
        if slice.is_none_or(|slice| trace.track(slice) == trace.track(row)) {
            set_aside(row, plan);
        }
    }
    // A start that had no slice may have one now, and repeat another.
    if work.prediction.duplicate_flow_starts > 0 {
        tell_apart(trace, plan, work);
    }
}

/// Rounds of settling; files need three or four.
const MAX_ROUNDS: u32 = 64;

/// Brings the survey up to the repaired trace. Flow events that would still bind wrongly, because a moved
/// slice left them or an ended child lies on the stack, are aimed; then the model's word is final.
#[inline(never)]
pub(crate) fn settle(
    trace: &Trace,
    plan: &mut RepairPlan,
    before: &[(Row, Row)],
    survey: &mut Survey,
) {
    // Every round changes at least one event in a way that it was not changed before. The limit is for what would
    // change back and forth.
    let mut n_rounds = 0;
    let bindings = loop {
        n_rounds += 1;
        survey.update(trace, plan);
        let bindings = survey.bindings();
        let changed = unpark(trace, plan, survey)
            || make_way(trace, plan, &bindings)
            || aim(trace, plan, before, survey, &bindings)
            || drop_unbound(plan, survey)
            || (survey.prediction.duplicate_flow_starts > 0 && tell_apart(trace, plan, survey));
        if !changed || n_rounds == MAX_ROUNDS {
            break bindings;
        }
    };
    forget_lone_ends(trace, plan, &bindings);
    plan.flows_bound_after = count_bound(&bindings, &plan.flow_targets);
    plan.after = survey.prediction.clone();
}

/// Flow events that draw no arrow (an end without a start, a start without an end) are not counted where they bind
/// elsewhere.
pub(crate) fn forget_lone_ends(trace: &Trace, plan: &mut RepairPlan, bindings: &[(Row, Row)]) {
    let wrong = unbound(bindings, &plan.flow_targets);
    if wrong.is_empty() {
        return;
    }
    let mut targets = std::mem::take(&mut plan.flow_targets);
    let view = View::after(trace, plan);
    let arrows = Arrows::of(&view, &targets, &wrong);
    targets.retain(|pair| wrong.binary_search(pair).is_err() || arrows.has(&view, *pair));
    plan.flow_targets = targets;
}

fn set_aside(row: Row, plan: &mut RepairPlan) {
    plan.change(row, Rule::SetAside, None, |edit| edit.action = Action::SetAside);
}

/// Flow events go where their slices went. And an `f` without `bp: e` binds to the *next* slice that starts; at
/// one ns slices come before flows, so that is the slice after the one it stands on.
#[inline(never)]
fn follow(trace: &Trace, plan: &mut RepairPlan) {
    let targets = std::mem::take(&mut plan.flow_targets);
    each_of(&targets, |(flow, slice)| {
        let new = plan.edit(slice).and_then(|edit| edit.tid);
        let current = plan.edit(flow).copied().unwrap_or_default();
        let track = Some(trace.track(slice)).filter(|track| {
            // (Perfetto may put both onto one thread.)
            let own = trace.track(flow);
            *track != own && thread_of(trace, *track) != thread_of(trace, own)
        });
        if (new.is_some() && new != current.tid) || (new.is_none() && track.is_some()) {
            plan.change(flow, Rule::FlowFollows, Some(slice), |edit| {
                (edit.tid, edit.track) = (new, track.filter(|_| new.is_none()));
            });
        }
        let ends =
            trace.phase(flow) == Phase::FlowEnd && !trace.flags(flow).has(Flags::BIND_ENCLOSING);
        // (What comes before its slice waits for it, and that is right.)
        if ends && trace.ts_ns(flow) == trace.ts_ns(slice) && starts_before(trace, slice, flow) {
            plan.change(flow, Rule::FlowEndBinding, Some(slice), |edit| edit.bind_enclosing = true);
        }
    });
    plan.flow_targets = targets;
}

/// The thread that Perfetto makes of a track.
fn thread_of(trace: &Trace, track: TrackId) -> ThreadKey {
    thread_key(trace.process_of(track).pid, trace.track_info(track).tid, trace)
}

/// Flows that have a start and, later, an end: those that draw arrows.
struct Arrows {
    /// The first start of each key, in the importer's order.
    starts: HashMap<FlowKey, order::Key, BuildIdHasher>,
    /// Keys with an end or step.
    ends: HashSet<FlowKey, BuildIdHasher>,
}

impl Arrows {
    /// Those that `asked` are about: few of many, and all at once would be the largest thing of a plan.
    fn of(view: &View<'_>, targets: &[(Row, Row)], asked: &[(Row, Row)]) -> Self {
        let mut arrows = Self { starts: HashMap::default(), ends: HashSet::default() };
        let wanted: HashSet<FlowKey, BuildIdHasher> =
            asked.iter().filter_map(|(flow, _)| key(view, *flow)).collect();
        if wanted.is_empty() {
            return arrows;
        }
        each_of(targets, |(flow, _)| {
            let Some(key) = key(view, flow).filter(|key| wanted.contains(key)) else { return };
            if !takes_part(view, flow) {
                return;
            }
            if view.phase(flow) == Phase::FlowStart {
                let at = order::item(view, flow).key();
                arrows.starts.entry(key).and_modify(|first| *first = at.min(*first)).or_insert(at);
            } else {
                arrows.ends.insert(key);
            }
        });
        arrows
    }

    /// Whether a flow event is one end of an arrow.
    fn has(&self, view: &View<'_>, (flow, slice): (Row, Row)) -> bool {
        let Some(key) = key(view, flow) else { return false };
        match view.phase(flow) {
            Phase::FlowStart => self.ends.contains(&key),
            _ => self.starts.get(&key).is_some_and(|start| *start < order::item(view, slice).key()),
        }
    }
}

/// An end without a start that waits for the next slice gets an arrow from the first slice of the whole trace, because
/// the importer looks its start up with an operator that inserts one. With `bp: e` it gets none. Returns whether there
/// was one.
#[inline(never)]
fn unpark(trace: &Trace, plan: &mut RepairPlan, work: &Survey) -> bool {
    let unparked = work.unparked();
    if unparked.is_empty() {
        return false;
    }
    let view = View::after(trace, plan);
    let unbound = work.unbound();
    let mut starts: BTreeMap<FlowKey, order::Key> = BTreeMap::new();
    for row in work.flows.iter().copied() {
        let is_start = view.phase(row) == Phase::FlowStart && takes_part(&view, row);
        if let Some(id) =
            key(&view, row).filter(|_| is_start && unbound.binary_search(&row).is_err())
        {
            let at = order::item(&view, row).key();
            starts.entry(id).and_modify(|first| *first = at.min(*first)).or_insert(at);
        }
    }
    let lacks_start = |(flow, slice): &(Row, Row)| {
        let at = order::item(&view, *slice).key();
        key(&view, *flow).is_some_and(|id| starts.get(&id).is_none_or(|start| *start > at))
    };
    let wrong: Vec<(Row, Row)> = unparked.into_iter().filter(lacks_start).collect();
    for (flow, slice) in &wrong {
        plan.change(*flow, Rule::FlowEndBinding, Some(*slice), |edit| {
            edit.bind_next = false;
            edit.bind_enclosing = true;
        });
    }
    !wrong.is_empty()
}

/// A slice that became an instant lies on its thread's stack like a slice, and catches flow events of its
/// own ns that belong to another. Such an instant goes to its process. Returns whether any did.
#[inline(never)]
fn make_way(trace: &Trace, plan: &mut RepairPlan, after: &[(Row, Row)]) -> bool {
    if !plan.changes().iter().any(|change| change.rule == Rule::SliceToInstant) {
        return false;
    }
    let catches = |(flow, slice): &&(Row, Row)| {
        plan.edit(*slice).is_some_and(|edit| edit.action == Action::Instant && edit.scope.is_none())
            && plan.flow_targets.binary_search_by_key(flow, |(flow, _)| *flow).is_ok()
    };
    // All of one thread and ns at once: below the one that catches lies the next.
    let place = |row: Row| (trace.track(row), trace.ts_ns(row));
    let mut places: Vec<_> = after.iter().filter(catches).map(|(_, row)| place(*row)).collect();
    trace::sort(&mut places);
    let is_instant = |change: &&Change| {
        change.rule == Rule::SliceToInstant && places.binary_search(&place(change.row)).is_ok()
    };
    let mut instants = RowSet::default();
    for change in plan.changes().iter().filter(is_instant) {
        instants.insert(change.row);
    }
    let instants = instants.to_vec();
    for row in &instants {
        let pid = trace.process_of(trace.track(*row)).pid;
        let scope = if pid == IdToken::Missing { "g" } else { "p" };
        plan.change(*row, Rule::SliceToInstant, None, |edit| edit.scope = Some(scope));
    }
    !instants.is_empty()
}

/// Where a flow event that the repair touches would still bind elsewhere (a child that ended before it lies
/// on the stack), it goes to its slice's start; so does one that bound well only because of a slice that has
/// left the thread, and one that stands at that start already but has something between. Returns whether any did.
#[inline(never)]
fn aim(
    trace: &Trace,
    plan: &mut RepairPlan,
    before: &[(Row, Row)],
    after: &Survey,
    bindings: &[(Row, Row)],
) -> bool {
    let touched = |pair: &(Row, Row)| {
        let edit = plan.edit(pair.0).copied().unwrap_or_default();
        trace.ts_ns(pair.0) == trace.ts_ns(pair.1)
            || edit.tid.is_some()
            || edit.track.is_some()
            || edit.bind_enclosing
            || before.binary_search(pair).is_ok()
    };
    let mut wrong = unbound(bindings, &plan.flow_targets);
    // Only what draws an arrow matters.
    let view = View::after(trace, plan);
    wrong.retain(|pair| touched(pair) && !view.is_aside(pair.0));
    let arrows = Arrows::of(&view, &plan.flow_targets, &wrong);
    wrong.retain(|pair| arrows.has(&view, *pair));
    let can_follow = |(flow, slice): &(Row, Row)| {
        let ts = trace.origin_ns + i128::from(trace.ts_ns(*slice)) + 1;
        let ts = i64::try_from(plan.base.map_or(ts, |base| base.apply(ts)));
        // (Where another slice starts then, the flow event would be that one's.)
        let is_free = |ts: i64| importer_ns(ts) == ts && !starts_at(&view, after, *slice, ts);
        ts.is_ok_and(is_free).then_some(*flow)
    };
    let mut followers = RowSet::default();
    for flow in wrong.iter().filter_map(can_follow) {
        followers.insert(flow);
    }
    let mut any = false;
    for (flow, slice) in wrong {
        let edit = plan.edit(flow).copied().unwrap_or_default();
        let is_end = trace.phase(flow) == Phase::FlowEnd;
        let start = trace.ts_ns(slice);
        let comes_first = !starts_before(trace, slice, flow);
        let stands_there = trace.ts_ns(flow) == start;
        // One way after the other; the last that is tried stays.
        let (ts, next) = match edit.ts_ns {
            None if !stands_there && !comes_first => (start, false),
            None if stands_there && comes_first && is_end && !edit.bind_next => (start, true),
            Some(ts) if ts > start => continue,
            // Just behind the start of a slice without a length, which stays on the stack until the next one starts.
            _ if comes_first && followers.contains(flow) => (start + 1, false),
            _ => continue,
        };
        let encloses = is_end && !next && !trace.flags(flow).has(Flags::BIND_ENCLOSING);
        plan.change(flow, Rule::FlowAim, Some(slice), |edit| {
            edit.ts_ns = (!next).then_some(ts);
            edit.bind_next = next;
            edit.bind_enclosing = encloses;
        });
        any = true;
    }
    any
}

/// Whether anything starts at a time, in the importer's ns, on the thread of a slice.
fn starts_at(view: &View<'_>, survey: &Survey, slice: Row, ts: i64) -> bool {
    let events = survey.threads.events(survey.threads.thread_of(view, slice));
    let first = events.partition_point(|event| event.item(view).ts < ts);
    let then = events[first..].iter().map(|event| event.item(view));
    let is_start = |phase: Phase| matches!(phase, Phase::Complete | Phase::Begin | Phase::Instant);
    then.take_while(|item| item.ts == ts).any(|item| is_start(item.phase))
}

/// Whether a slice comes before a flow event that is put at its start: those with a length always, others
/// in file order.
fn starts_before(trace: &Trace, slice: Row, flow: Row) -> bool {
    slice < flow || (trace.phase(slice) == Phase::Complete && trace.dur_ns(slice) > 0)
}

/// A flow event on a thread that had no slice so far has no end point and raises an error flag. Returns
/// whether there was one.
fn drop_unbound(plan: &mut RepairPlan, after: &Survey) -> bool {
    let unbound = after.unbound();
    for row in &unbound {
        set_aside(*row, plan);
    }
    !unbound.is_empty()
}
