//! Rule 7: flow events go where their slices go.
//!
//! Perfetto binds a flow event to the topmost slice of its thread at that moment. When a slice moves to a
//! lane or is dropped, its arrow silently lands on another slice; counting arrows proves nothing. So the
//! slice of every flow event is resolved first, on exact times, and the flow event then follows it.

use std::collections::{BTreeMap, HashMap};

use trace::{BuildIdHasher, Flags, Phase, Row, Trace};

use crate::perfetto::nesting::{Outcome, Stack};
use crate::perfetto::threads::Threads;
use crate::plan::{RepairPlan, Rule};
use crate::view::View;

/// The slice each flow event belongs to: one that starts at that very ns on its thread, the shortest of
/// these; else the innermost that is open. Sorted by flow event; unresolved ones are absent.
pub(crate) fn resolve(view: &View<'_>) -> Vec<(Row, Row)> {
    let threads = Threads::of(view);
    let mut targets = Vec::new();
    for thread in threads.all() {
        resolve_thread(view, &threads, thread, &mut targets);
    }
    targets.sort_unstable();
    targets
}

struct Open {
    row: Row,
    ts: i64,
    end: i64,
}

fn resolve_thread(
    view: &View<'_>,
    threads: &Threads,
    thread: usize,
    targets: &mut Vec<(Row, Row)>,
) {
    let mut open: Vec<Open> = Vec::new();
    for item in threads.items(view, thread) {
        match item.phase {
            Phase::Complete | Phase::Begin => {
                while open.last().is_some_and(|top| top.end <= item.ts && top.ts < item.ts) {
                    open.pop();
                }
                let end = if item.phase == Phase::Begin { i64::MAX } else { item.end };
                open.push(Open { row: item.row, ts: item.ts, end });
            }
            Phase::End => {
                let name = view.trace.name(item.row);
                let started = |slice: &Open| {
                    slice.end == i64::MAX
                        && (name == trace::StringId::EMPTY || view.trace.name(slice.row) == name)
                };
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
    }
}

/// What the importer binds each flow event to, sorted by flow event.
pub(crate) fn bindings(view: &View<'_>) -> Vec<(Row, Row)> {
    let threads = Threads::of(view);
    let mut bound = Vec::new();
    let mut stack = Stack::default();
    for thread in threads.all() {
        stack.clear();
        for item in threads.items(view, thread) {
            if let Outcome::Bound(slice) = stack.apply(view, &item) {
                bound.push((item.row, slice));
            }
        }
        bound.append(&mut stack.unparked);
    }
    bound.sort_unstable();
    bound
}

/// How many of `targets` the importer binds as they should be.
pub(crate) fn bound_to_targets(view: &View<'_>, targets: &[(Row, Row)]) -> u64 {
    if targets.is_empty() {
        return 0;
    }
    let bound = bindings(view);
    targets.iter().filter(|pair| bound.binary_search(pair).is_ok()).count() as u64
}

/// The identity of a flow in the importer: id, category, name.
type FlowKey = (i64, u32, u32);

fn key(view: &View<'_>, row: Row) -> Option<FlowKey> {
    let trace = view.trace;
    Some((view.flow_id(row)?, trace.raw_category(row).0, trace.name(row).0))
}

/// Flow events in the importer's order (by time, then as in the file).
fn in_order(view: &View<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = view
        .trace
        .rows()
        .filter(|row| view.phase(*row).is_flow() && !view.is_aside(*row))
        .filter(|row| view.flags(*row).has(Flags::HAS_TS) && view.flow_id(*row).is_some())
        .filter(|row| !view.flags(*row).has(Flags::ID_UNREADABLE))
        .collect();
    let time = |row: &Row| (view.importer_times(*row).0, *row);
    if !rows.is_sorted_by_key(time) {
        rows.sort_by_cached_key(time);
    }
    rows
}

/// Flow starts whose key is already started (`flow_duplicate_id`), in the importer's order.
pub(crate) fn duplicate_starts(view: &View<'_>) -> Vec<Row> {
    let mut started: HashMap<FlowKey, (), BuildIdHasher> = HashMap::default();
    let starts = in_order(view).into_iter().filter(|row| view.phase(*row) == Phase::FlowStart);
    starts
        .filter(|row| key(view, *row).is_some_and(|key| started.insert(key, ()).is_some()))
        .collect()
}

/// Plans what happens to flow events: they follow their slices, ends bind to the slice they stand on, and
/// ids that are started twice are told apart.
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan) {
    follow(trace, plan);
    bind_ends(trace, plan);
    tell_apart(trace, plan);
    aim(trace, plan);
    drop_unbound(trace, plan);
}

fn follow(trace: &Trace, plan: &mut RepairPlan) {
    let targets = std::mem::take(&mut plan.flow_targets);
    for (flow, slice) in &targets {
        let new = plan.edit(*slice).and_then(|edit| edit.tid);
        let now = plan.edit(*flow).and_then(|edit| edit.tid);
        if new != now
            && let Some(tid) = new
        {
            debug_assert_eq!(trace.track(*flow), trace.track(*slice));
            plan.edit_mut(*flow).tid = Some(tid);
            plan.note(*flow, Rule::FlowFollows, Some(*slice));
        }
    }
    plan.flow_targets = targets;
}

/// `f` without `bp: e` binds to the *next* slice that starts; at one ns slices come before flows, so that
/// is the slice after the one it stands on.
fn bind_ends(trace: &Trace, plan: &mut RepairPlan) {
    let targets = std::mem::take(&mut plan.flow_targets);
    for (flow, slice) in &targets {
        let ends =
            trace.phase(*flow) == Phase::FlowEnd && !trace.flags(*flow).has(Flags::BIND_ENCLOSING);
        if ends && trace.ts_ns(*flow) == trace.ts_ns(*slice) {
            plan.edit_mut(*flow).bind_enclosing = true;
            plan.note(*flow, Rule::FlowEndBinding, Some(*slice));
        }
    }
    plan.flow_targets = targets;
}

/// A key that is started again is a new flow: it and the ends that belong to it get a free id. Ends go to
/// the oldest start that has none yet, else to the latest start.
fn tell_apart(trace: &Trace, plan: &mut RepairPlan) {
    let view = View::after(trace, plan);
    let duplicates = duplicate_starts(&view);
    if duplicates.is_empty() {
        return;
    }
    struct Flow {
        new_id: Option<i64>,
        ended: bool,
    }
    let mut flows: BTreeMap<FlowKey, Vec<Flow>> =
        duplicates.iter().filter_map(|row| key(&view, *row)).map(|key| (key, Vec::new())).collect();
    let ids = trace.rows().filter(|row| trace.phase(*row).is_flow()).filter_map(|r| trace.link(r));
    let mut next_id = ids.max().unwrap_or(0).max(0) + 1;
    let mut renumbered = Vec::new();
    for row in in_order(&view) {
        let Some(flows) = key(&view, row).and_then(|key| flows.get_mut(&key)) else { continue };
        let new_id = match view.phase(row) {
            Phase::FlowStart => {
                let new_id = (!flows.is_empty()).then(|| {
                    next_id += 1;
                    next_id - 1
                });
                flows.push(Flow { new_id, ended: false });
                new_id
            }
            _ => {
                let waiting = flows.iter().position(|flow| !flow.ended);
                let Some(flow) = waiting.or(flows.len().checked_sub(1)).map(|at| &mut flows[at])
                else {
                    continue;
                };
                flow.ended |= view.phase(row) == Phase::FlowEnd;
                flow.new_id
            }
        };
        renumbered.extend(new_id.map(|id| (row, id)));
    }
    for (row, id) in renumbered {
        plan.edit_mut(row).flow_id = Some(id);
        plan.note(row, Rule::DuplicateFlow, None);
    }
}

/// Where a *moved* slice's flow event would still bind elsewhere (a child that ended before it lies on the
/// stack), it goes to the slice's start.
fn aim(trace: &Trace, plan: &mut RepairPlan) {
    if plan.is_identity() {
        return;
    }
    let bound = bindings(&View::after(trace, plan));
    let wrong: Vec<(Row, Row)> = plan
        .flow_targets
        .iter()
        .filter(|pair| bound.binary_search(pair).is_err())
        .filter(|(flow, slice)| {
            plan.edit(*flow).is_some_and(|edit| edit.tid.is_some() || edit.bind_enclosing)
                && trace.ts_ns(*flow) != trace.ts_ns(*slice)
        })
        .copied()
        .collect();
    for (flow, slice) in wrong {
        plan.edit_mut(flow).ts_ns = Some(trace.ts_ns(slice));
        plan.note(flow, Rule::FlowAim, Some(slice));
    }
}

/// A flow event on a thread that had no slice so far has no end point and raises an error flag.
fn drop_unbound(trace: &Trace, plan: &mut RepairPlan) {
    let view = View::after(trace, plan);
    let threads = Threads::of(&view);
    let mut stack = Stack::default();
    let mut unbound = Vec::new();
    for thread in threads.all() {
        stack.clear();
        for item in threads.items(&view, thread) {
            if stack.apply(&view, &item) == Outcome::NoSlice {
                unbound.push(item.row);
            }
        }
    }
    for row in unbound {
        plan.edit_mut(row).action = crate::plan::Action::SetAside;
        plan.note(row, Rule::SetAside, None);
    }
}
