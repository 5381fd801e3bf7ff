//! Rule 7: flow events go where their slices go.
//!
//! Perfetto binds a flow event to the topmost slice of its thread at that moment. When a slice moves to a
//! lane or is dropped, its arrow silently lands on another slice; counting arrows proves nothing. So the
//! slice of every flow event is resolved first, on exact times, and the flow event then follows it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use trace::{BuildIdHasher, Flags, IdToken, Phase, Row, Trace, each_of};

use crate::base;
use crate::perfetto::Survey;
use crate::perfetto::nesting::closes;
use crate::perfetto::order;
use crate::perfetto::threads::Threads;
use crate::plan::{Action, RepairPlan, Rule};
use crate::view::View;

/// The slice each flow event belongs to: one that starts at that very ns on its thread, the shortest of
/// these; else the innermost that is open. Sorted by flow event; unresolved ones are absent.
#[inline(never)]
pub(crate) fn resolve(view: &View<'_>, threads: &Threads) -> Vec<(Row, Row)> {
    let mut targets = Vec::new();
    for thread in threads.all() {
        resolve_thread(view, threads, thread, &mut targets);
    }
    targets.sort();
    targets
}

struct Open {
    row: Row,
    ts: i64,
    end: i64,
}

#[inline(never)]
fn resolve_thread(view: &View<'_>, threads: &Threads, thread: u32, targets: &mut Vec<(Row, Row)>) {
    let mut open: Vec<Open> = Vec::new();
    each_of(threads.events(thread), |event| {
        let item = event.item(view);
        match item.phase {
            Phase::Complete | Phase::Begin => {
                while open.last().is_some_and(|top| top.end <= item.ts && top.ts < item.ts) {
                    open.pop();
                }
                let end = if item.phase == Phase::Begin { i64::MAX } else { item.end };
                open.push(Open { row: item.row, ts: item.ts, end });
            }
            Phase::End => {
                let started =
                    |slice: &Open| slice.end == i64::MAX && closes(view.trace, item.row, slice.row);
                if let Some(at) = open.iter().rposition(started) {
                    open[at].end = item.ts;
                }
            }
            phase if phase.is_flow() => {
                let starts_here = open
                    .iter()
                    .rev()
                    .take_while(|slice| slice.ts == item.ts)
                    .min_by_key(|slice| (slice.end, std::cmp::Reverse(slice.row)));
                let encloses =
                    || open.iter().rev().find(|slice| slice.end > item.ts && slice.ts <= item.ts);
                if let Some(slice) = starts_here.or_else(encloses) {
                    targets.push((item.row, slice.row));
                }
            }
            _ => {}
        }
    });
}

/// How many of `targets` are among `bindings`; both sorted.
#[inline(never)]
pub(crate) fn count_bound(bindings: &[(Row, Row)], targets: &[(Row, Row)]) -> u64 {
    (targets.len() - unbound(bindings, targets).len()) as u64
}

/// Those of `targets` that are not among `bindings`; both sorted, and nearly equal.
#[inline(never)]
fn unbound(bindings: &[(Row, Row)], targets: &[(Row, Row)]) -> Vec<(Row, Row)> {
    let mut at = 0;
    let mut unbound = Vec::new();
    each_of(targets, |target| {
        while bindings.get(at).is_some_and(|binding| *binding < target) {
            at += 1;
        }
        if bindings.get(at) != Some(&target) {
            unbound.push(target);
        }
    });
    unbound
}

/// The identity of a flow in the importer: id, category, name.
type FlowKey = (i64, u32, u32);

fn key(view: &View<'_>, row: Row) -> Option<FlowKey> {
    let trace = view.trace;
    Some((view.flow_id(row)?, trace.raw_category(row).0, trace.name(row).0))
}

/// Whether a flow event is one that the importer tracks.
fn takes_part(view: &View<'_>, row: Row) -> bool {
    !view.is_aside(row)
        && view.flags(row).has(Flags::HAS_TS)
        && !view.flags(row).has(Flags::ID_UNREADABLE)
        && view.flow_id(row).is_some()
}

/// Flow starts whose key is already known (`flow_duplicate_id`), in the importer's order.
///
/// A start that finds no slice to bind to starts nothing (`unbound`). A parked end that finds its slice makes
/// its key known even without a start (`unparked`; the importer looks it up with an operator that inserts).
#[inline(never)]
pub(crate) fn duplicate_starts(view: &View<'_>, survey: &Survey) -> Vec<Row> {
    let (unbound, unparked) = (survey.unbound(), survey.unparked());
    let is_start = |row: &Row| {
        view.phase(*row) == Phase::FlowStart
            && takes_part(view, *row)
            && unbound.binary_search(row).is_err()
    };
    let starts: Vec<Row> = survey.flows.iter().copied().filter(is_start).collect();
    // Nearly every trace starts every flow once, in whatever order.
    let mut known: HashSet<FlowKey, BuildIdHasher> =
        HashSet::with_capacity_and_hasher(starts.len(), BuildIdHasher::default());
    let mut any = !unparked.is_empty();
    each_of(&starts, |row| any |= key(view, row).is_some_and(|key| !known.insert(key)));
    if !any {
        return Vec::new();
    }
    let mut events: Vec<(order::Key, bool, Row)> =
        starts.iter().map(|row| (order::item(view, *row).key(), true, *row)).collect();
    let parked = unparked.iter();
    events.extend(parked.map(|(flow, slice)| (order::item(view, *slice).key(), false, *flow)));
    events.sort();
    known.clear();
    let repeated = |(_, starts, row): &(order::Key, bool, Row)| {
        key(view, *row).is_some_and(|key| !known.insert(key)) && *starts
    };
    events.into_iter().filter(repeated).map(|(_, _, row)| row).collect()
}

/// Plans what happens to flow events: they follow their slices, ends bind to the slice they stand on, and
/// ids that are started twice are told apart.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan, work: &Survey) {
    follow(trace, plan);
    for row in work.unbound() {
        set_aside(row, plan);
    }
    // A start that had no slice may have one now, and repeat another.
    if work.prediction.duplicate_flow_starts > 0 {
        tell_apart(trace, plan, work);
    }
}

/// Brings the survey up to the repaired trace. Flow events that would still bind wrongly, because a moved
/// slice left them or an ended child lies on the stack, are aimed; then the model's word is final.
#[inline(never)]
pub(crate) fn settle(
    trace: &Trace,
    plan: &mut RepairPlan,
    before: &[(Row, Row)],
    survey: &mut Survey,
) {
    // Every round changes at least one event in a way that it was not changed before, so this ends.
    let bindings = loop {
        base::choose_again(trace, plan);
        survey.update(trace, plan);
        let bindings = survey.bindings();
        let changed = make_way(trace, plan, &bindings)
            || aim(trace, plan, before, &bindings)
            || drop_unbound(plan, survey)
            || (survey.prediction.duplicate_flow_starts > 0 && tell_apart(trace, plan, survey));
        if !changed {
            break bindings;
        }
    };
    plan.flows_bound_after = count_bound(&bindings, &plan.flow_targets);
    plan.after = survey.prediction.clone();
}

fn set_aside(row: Row, plan: &mut RepairPlan) {
    plan.edit_mut(row).action = Action::SetAside;
    plan.note(row, Rule::SetAside, None);
}

/// Flow events go where their slices went. And an `f` without `bp: e` binds to the *next* slice that starts; at
/// one ns slices come before flows, so that is the slice after the one it stands on.
#[inline(never)]
fn follow(trace: &Trace, plan: &mut RepairPlan) {
    let targets = std::mem::take(&mut plan.flow_targets);
    each_of(&targets, |(flow, slice)| {
        let new = plan.edit(slice).and_then(|edit| edit.tid);
        if new.is_some() && new != plan.edit(flow).and_then(|edit| edit.tid) {
            debug_assert_eq!(trace.track(flow), trace.track(slice));
            plan.edit_mut(flow).tid = new;
            plan.note(flow, Rule::FlowFollows, Some(slice));
        }
        let ends =
            trace.phase(flow) == Phase::FlowEnd && !trace.flags(flow).has(Flags::BIND_ENCLOSING);
        if ends && trace.ts_ns(flow) == trace.ts_ns(slice) {
            plan.edit_mut(flow).bind_enclosing = true;
            plan.note(flow, Rule::FlowEndBinding, Some(slice));
        }
    });
    plan.flow_targets = targets;
}

/// A key that is started again is a new flow: it and the ends that belong to it get a free id. Ends go to
/// the oldest start that has none yet, else to the latest start.
#[inline(never)]
fn tell_apart(trace: &Trace, plan: &mut RepairPlan, work: &Survey) -> bool {
    let view = View::after(trace, plan);
    let duplicates: BTreeSet<Row> = duplicate_starts(&view, work).into_iter().collect();
    if duplicates.is_empty() {
        return false;
    }
    /// The starts of one key.
    #[derive(Default)]
    struct Started {
        new_ids: Vec<Option<i64>>,
        /// How many of the oldest have their end.
        n_ended: usize,
    }
    let mut flows: BTreeMap<FlowKey, Started> = BTreeMap::new();
    for key in duplicates.iter().filter_map(|row| key(&view, *row)) {
        flows.entry(key).or_default();
    }
    let used: BTreeSet<i64> = work
        .flows
        .iter()
        .flat_map(|row| [trace.link(*row), view.flow_id(*row)])
        .flatten()
        .collect();
    let mut free = (1_i64..).filter(|id| !used.contains(id));
    let mut renumbered = Vec::new();
    let mut in_order: Vec<Row> = work
        .flows
        .iter()
        .copied()
        .filter(|row| takes_part(&view, *row))
        .filter(|row| key(&view, *row).is_some_and(|key| flows.contains_key(&key)))
        .collect();
    in_order.sort_by_cached_key(|row| order::item(&view, *row).key());
    for row in in_order {
        let Some(started) = key(&view, row).and_then(|key| flows.get_mut(&key)) else { continue };
        let new_id = if view.phase(row) == Phase::FlowStart {
            let new_id = if duplicates.contains(&row) { free.next() } else { None };
            started.new_ids.push(new_id);
            new_id
        } else {
            let Some(last) = started.new_ids.len().checked_sub(1) else { continue };
            let oldest = started.n_ended.min(last);
            let ends = view.phase(row) == Phase::FlowEnd && started.n_ended <= last;
            started.n_ended += usize::from(ends);
            started.new_ids[oldest]
        };
        renumbered.extend(new_id.map(|id| (row, id)));
    }
    for (row, id) in renumbered {
        plan.edit_mut(row).flow_id = Some(id);
        plan.note(row, Rule::DuplicateFlow, None);
    }
    true
}

/// A slice that became an instant lies on its thread's stack like a slice, and catches flow events of its
/// own ns that belong to another. Such an instant goes to its process. Returns whether any did.
#[inline(never)]
fn make_way(trace: &Trace, plan: &mut RepairPlan, after: &[(Row, Row)]) -> bool {
    if !plan.changes.iter().any(|change| change.rule == Rule::SliceToInstant) {
        return false;
    }
    let catches = |(flow, slice): &&(Row, Row)| {
        plan.edit(*slice).is_some_and(|edit| edit.action == Action::Instant && edit.scope.is_none())
            && plan.flow_targets.binary_search_by_key(flow, |(flow, _)| *flow).is_ok()
    };
    let instants: BTreeSet<Row> =
        after.iter().filter(catches).map(|(_, instant)| *instant).collect();
    for row in &instants {
        let pid = trace.process_of(trace.track(*row)).pid;
        plan.edit_mut(*row).scope = Some(if pid == IdToken::Missing { "g" } else { "p" });
    }
    !instants.is_empty()
}

/// Where a flow event that the repair touches would still bind elsewhere (a child that ended before it lies
/// on the stack), it goes to its slice's start; so does one that bound well only because of a slice that has
/// left the thread. Returns whether any did.
#[inline(never)]
fn aim(trace: &Trace, plan: &mut RepairPlan, before: &[(Row, Row)], after: &[(Row, Row)]) -> bool {
    let touched = |pair: &(Row, Row)| {
        let edit = plan.edit(pair.0).copied().unwrap_or_default();
        edit.ts_ns.is_none()
            && (edit.tid.is_some() || edit.bind_enclosing || before.binary_search(pair).is_ok())
    };
    let mut wrong = unbound(after, &plan.flow_targets);
    wrong.retain(|(flow, slice)| {
        touched(&(*flow, *slice))
            && trace.ts_ns(*flow) != trace.ts_ns(*slice)
            && starts_before(trace, *slice, *flow)
    });
    for (flow, slice) in &wrong {
        let edit = plan.edit_mut(*flow);
        edit.ts_ns = Some(trace.ts_ns(*slice));
        edit.bind_enclosing |=
            trace.phase(*flow) == Phase::FlowEnd && !trace.flags(*flow).has(Flags::BIND_ENCLOSING);
        plan.note(*flow, Rule::FlowAim, Some(*slice));
    }
    !wrong.is_empty()
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
