//! Flow events go where their slices go.
//!
//! Perfetto binds a flow event to the topmost slice of its thread at that moment. When a slice moves to a
//! lane or is dropped, its arrow silently lands on another slice; counting arrows proves nothing. So the
//! slice of every flow event is resolved first, on exact times, and the flow event then follows it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use trace::decimal::importer_ns;
use trace::{Bind, BuildIdHasher, Flags, IdToken, Phase, Row, Trace, each_of};

use crate::begins::OpenBegins;
use crate::perfetto::Survey;
use crate::perfetto::order::{self, Item};
use crate::perfetto::threads::Threads;
use crate::plan::{Action, Change, RepairPlan, Rule};
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
    let mut begins = OpenBegins::default();
    let mut flows: Vec<Item> = Vec::new();
    each_of(threads.events(thread), |event| {
        let item = event.item(view);
        if flows.first().is_some_and(|flow| flow.ts < item.ts) {
            bind_all(&mut flows, &open, targets);
        }
        match item.phase {
            Phase::Complete | Phase::Begin => {
                while open.last().is_some_and(|top| top.end <= item.ts && top.ts < item.ts) {
                    open.pop();
                }
                let end = if item.phase == Phase::Begin { i64::MAX } else { item.end };
                if item.phase == Phase::Begin {
                    // (Nothing below an open slice leaves, so its place stays the same.)
                    begins.open(view.trace, item.row, open.len());
                }
                open.push(Open { row: item.row, ts: item.ts, end });
            }
            Phase::End => {
                if let Some(slice) =
                    begins.close(view.trace, item.row).and_then(|at| open.get_mut(at))
                {
                    slice.end = item.ts;
                }
            }
            // All slices of that ns come first, wherever they are in the file.
            phase if phase.is_flow() => flows.push(item),
            _ => {}
        }
    });
    bind_all(&mut flows, &open, targets);
}

/// Binds the flow events of one ns to the slices that are open: the shortest that starts at this ns, else the innermost.
fn bind_all(flows: &mut Vec<Item>, open: &[Open], targets: &mut Vec<(Row, Row)>) {
    let Some(ts) = flows.first().map(|flow| flow.ts) else { return };
    let starting = || open.iter().rev().take_while(|slice| slice.ts == ts);
    let encloses = || open.iter().rev().find(|slice| slice.end > ts && slice.ts <= ts);
    let shortest = starting().min_by_key(|slice| (slice.end, std::cmp::Reverse(slice.row)));
    let slice = shortest.or_else(encloses);
    let n_instant = starting().filter(|slice| slice.end == ts).count();
    targets.extend(flows.drain(..).filter_map(|flow| {
        let slice = match n_instant {
            0 | 1 => slice?,
            // Profilers write a flow event behind its slice: of several without a length, the last one before it.
            _ => starting()
                .filter(|slice| slice.end == ts)
                .min_by_key(|slice| (slice.row > flow.row, slice.row.abs_diff(flow.row)))?,
        };
        Some((flow.row, slice.row))
    }));
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
    if !view.trace.binds().is_empty() {
        return shared_duplicates(view, survey);
    }
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

/// The flows of the second version that the importer handles, in its order.
fn bound_slices(view: &View<'_>, survey: &Survey) -> Vec<(order::Key, Row, Bind)> {
    let on_threads =
        survey.binds().into_iter().filter(|(_, slice)| slice.is_some()).map(|(row, _)| row);
    // Async slices have tracks of their own.
    let is_async = |row: &Row| {
        matches!(view.phase(*row), Phase::AsyncBegin | Phase::AsyncInstant)
            && !view.is_aside(*row)
            && view.flags(*row).has(Flags::HAS_TS)
            && !view.flags(*row).has(Flags::ID_UNREADABLE)
            && view.importer_times(*row).0 >= 0
    };
    let asyncs = view.trace.binds().iter().map(|(row, _)| *row).filter(is_async);
    let with_key = |row| Some((order::item(view, row).key(), row, view.bind(row)?));
    let mut bound: Vec<_> = on_threads.chain(asyncs).filter_map(with_key).collect();
    bound.sort_by_key(|(key, ..)| *key);
    bound
}

/// [`duplicate_starts`] where slices have flows of their own (`bind_id`). Both versions share one table: a flow of the
/// first gets the next free number, from 0, whatever its id is, and one of the second is its `bind_id`.
#[inline(never)]
fn shared_duplicates(view: &View<'_>, survey: &Survey) -> Vec<Row> {
    enum Act {
        /// The event's own id is looked up; a start that is bound notes it.
        Own { starts: bool },
        /// A parked end found its slice.
        Unparks,
        /// A slice starts the flow of this `bind_id`.
        Starts(i64),
    }
    let unbound = survey.unbound();
    let mut acts: Vec<(order::Key, Row, Act)> = Vec::new();
    for row in survey.flows.iter().copied().filter(|row| takes_part(view, *row)) {
        let starts = view.phase(row) == Phase::FlowStart && unbound.binary_search(&row).is_err();
        acts.push((order::item(view, row).key(), row, Act::Own { starts }));
    }
    for (flow, slice) in survey.unparked() {
        acts.push((order::item(view, slice).key(), flow, Act::Unparks));
    }
    for (key, row, bind) in bound_slices(view, survey) {
        if bind.flow_out && !bind.flow_in {
            acts.push((key, row, Act::Starts(bind.id)));
        }
    }
    acts.sort_by_key(|(key, row, _)| (*key, *row));
    let mut numbers: HashMap<FlowKey, i64, BuildIdHasher> = HashMap::default();
    let mut known: HashSet<i64, BuildIdHasher> = HashSet::default();
    let mut duplicates = Vec::new();
    for (_, row, act) in acts {
        let mut number = || {
            let next = numbers.len() as i64;
            key(view, row).map(|key| *numbers.entry(key).or_insert(next))
        };
        let (id, counts) = match act {
            Act::Own { starts } => (number().filter(|_| starts), true),
            Act::Unparks => (number(), false),
            Act::Starts(id) => (Some(id), true),
        };
        if id.is_some_and(|id| !known.insert(id)) && counts {
            duplicates.push(row);
        }
    }
    duplicates
}

/// Gives `bind_id`s that are started twice, or that are the number of a flow of the first version, free ids; ends go
/// to the oldest start that has none yet, else to the latest start. Returns whether any changes.
#[inline(never)]
fn tell_binds_apart(trace: &Trace, plan: &mut RepairPlan, work: &Survey) -> bool {
    /// The flows of one id so far.
    #[derive(Default)]
    struct Started {
        ids: Vec<i64>,
        n_ended: usize,
    }
    let view = View::after(trace, plan);
    let keys: BTreeSet<FlowKey> = work
        .flows
        .iter()
        .filter(|row| takes_part(&view, **row))
        .filter_map(|row| key(&view, *row))
        .collect();
    let used: BTreeSet<i64> = trace
        .binds()
        .iter()
        .flat_map(|(row, bind)| [Some(bind.id), view.bind(*row).map(|it| it.id)])
        .flatten()
        .collect();
    let n_numbers = keys.len() as i64;
    // (Numbers of the first version only become fewer.)
    let mut free = (n_numbers.max(1)..).filter(|id| !used.contains(id));
    let mut flows: BTreeMap<i64, Started> = BTreeMap::new();
    let mut renumbered = Vec::new();
    for (_, row, bind) in bound_slices(&view, work) {
        let clashes = (0..n_numbers).contains(&bind.id);
        let started = flows.entry(bind.id).or_default();
        let starts = bind.flow_out && !bind.flow_in;
        if starts || started.ids.is_empty() {
            let is_first = started.ids.is_empty();
            let id = if is_first && !clashes { bind.id } else { free.next().unwrap_or(bind.id) };
            started.ids.push(id);
        }
        let last = started.ids.len() - 1;
        let id = if starts { started.ids[last] } else { started.ids[started.n_ended.min(last)] };
        if !starts && !bind.flow_out && started.n_ended <= last {
            started.n_ended += 1;
        }
        if id != bind.id {
            renumbered.push((row, id));
        }
    }
    for (row, id) in &renumbered {
        plan.edit_mut(*row).bind_id = Some(*id);
        plan.note(*row, Rule::DuplicateFlow, None);
    }
    !renumbered.is_empty()
}

/// Plans what happens to flow events: they follow their slices, ends bind to the slice they stand on, and
/// ids that are started twice are told apart.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan, work: &Survey, before: &[(Row, Row)]) {
    follow(trace, plan);
    if plan.is_identity() {
        // Flow events may still bind elsewhere than where they stand.
        aim(trace, plan, before, &work.bindings());
        unpark(trace, plan, work);
    }
    for row in work.unbound() {
        set_aside(row, plan);
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
            || aim(trace, plan, before, &bindings)
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
    let wrong: BTreeSet<(Row, Row)> = unbound(bindings, &plan.flow_targets).into_iter().collect();
    if wrong.is_empty() {
        return;
    }
    let mut targets = std::mem::take(&mut plan.flow_targets);
    let view = View::after(trace, plan);
    let arrows = Arrows::of(&view, &targets);
    targets.retain(|pair| !wrong.contains(pair) || arrows.has(&view, *pair));
    plan.flow_targets = targets;
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
        // (What comes before its slice waits for it, and that is right.)
        if ends && trace.ts_ns(flow) == trace.ts_ns(slice) && starts_before(trace, slice, flow) {
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
    if !trace.binds().is_empty() && tell_binds_apart(trace, plan, work) {
        return true;
    }
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

/// Flows that have a start and, later, an end: those that draw arrows.
struct Arrows {
    /// The first start of each key, in the importer's order.
    starts: HashMap<FlowKey, order::Key, BuildIdHasher>,
    /// Keys with an end or step.
    ends: HashSet<FlowKey, BuildIdHasher>,
}

impl Arrows {
    fn of(view: &View<'_>, targets: &[(Row, Row)]) -> Self {
        let mut arrows = Self { starts: HashMap::default(), ends: HashSet::default() };
        for (flow, _) in targets.iter().filter(|(flow, _)| takes_part(view, *flow)) {
            let Some(key) = key(view, *flow) else { continue };
            if view.phase(*flow) == Phase::FlowStart {
                let at = order::item(view, *flow).key();
                arrows.starts.entry(key).and_modify(|first| *first = at.min(*first)).or_insert(at);
            } else {
                arrows.ends.insert(key);
            }
        }
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
        let edit = plan.edit_mut(*flow);
        edit.bind_next = false;
        edit.bind_enclosing = true;
        plan.note(*flow, Rule::FlowEndBinding, Some(*slice));
    }
    !wrong.is_empty()
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
    // All of one thread and ns at once: below the one that catches lies the next.
    let place = |row: Row| (trace.track(row), trace.ts_ns(row));
    let places: BTreeSet<_> = after.iter().filter(catches).map(|(_, row)| place(*row)).collect();
    let is_instant = |change: &&Change| {
        change.rule == Rule::SliceToInstant && places.contains(&place(change.row))
    };
    let instants: BTreeSet<Row> =
        plan.changes.iter().filter(is_instant).map(|change| change.row).collect();
    for row in &instants {
        let pid = trace.process_of(trace.track(*row)).pid;
        plan.edit_mut(*row).scope = Some(if pid == IdToken::Missing { "g" } else { "p" });
    }
    !instants.is_empty()
}

/// Where a flow event that the repair touches would still bind elsewhere (a child that ended before it lies
/// on the stack), it goes to its slice's start; so does one that bound well only because of a slice that has
/// left the thread, and one that stands at that start already but has something between. Returns whether any did.
#[inline(never)]
fn aim(trace: &Trace, plan: &mut RepairPlan, before: &[(Row, Row)], after: &[(Row, Row)]) -> bool {
    let touched = |pair: &(Row, Row)| {
        let edit = plan.edit(pair.0).copied().unwrap_or_default();
        trace.ts_ns(pair.0) == trace.ts_ns(pair.1)
            || edit.tid.is_some()
            || edit.bind_enclosing
            || before.binary_search(pair).is_ok()
    };
    let mut wrong = unbound(after, &plan.flow_targets);
    // Only what draws an arrow matters.
    let view = View::after(trace, plan);
    let arrows = Arrows::of(&view, &plan.flow_targets);
    wrong.retain(|pair| touched(pair) && !view.is_aside(pair.0) && arrows.has(&view, *pair));
    let can_follow = |(flow, slice): &(Row, Row)| {
        let ts = trace.origin_ns + i128::from(trace.ts_ns(*slice)) + 1;
        let ts = i64::try_from(plan.base.map_or(ts, |base| base.apply(ts)));
        ts.is_ok_and(|ts| importer_ns(ts) == ts).then_some(*flow)
    };
    let followers: BTreeSet<Row> = wrong.iter().filter_map(can_follow).collect();
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
            _ if comes_first && followers.contains(&flow) => (start + 1, false),
            _ => continue,
        };
        let edit = plan.edit_mut(flow);
        edit.ts_ns = (!next).then_some(ts);
        edit.bind_next = next;
        edit.bind_enclosing = is_end && !next && !trace.flags(flow).has(Flags::BIND_ENCLOSING);
        plan.note(flow, Rule::FlowAim, Some(slice));
        any = true;
    }
    any
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
