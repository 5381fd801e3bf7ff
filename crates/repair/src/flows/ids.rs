//! Flow ids: which the importer counts as started twice, and what tells them apart.

use std::collections::{BTreeMap, HashMap, HashSet};

use trace::{Bind, BuildIdHasher, Flags, Phase, Row, Trace, each_of};

use crate::perfetto::Survey;
use crate::perfetto::order;
use crate::types::{RepairPlan, Rule};
use crate::view::View;

/// The identity of a flow in the importer: id, category, name.
pub(super) type FlowKey = (i64, u32, u32);

pub(super) fn key(view: &View<'_>, row: Row) -> Option<FlowKey> {
    let trace = view.trace;
    Some((view.flow_id(row)?, trace.raw_category(row).0, trace.name(row).0))
}

/// Whether a flow event is one that the importer tracks.
pub(super) fn takes_part(view: &View<'_>, row: Row) -> bool {
    !view.is_aside(row)
        && view.flags(row).has(Flags::HAS_TS)
        && !view.flags(row).has(Flags::ID_UNREADABLE)
        && view.flow_id(row).is_some()
        // (What lies before 0 the importer drops.)
        && view.importer_times(row).0 >= 0
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
    trace::sort(&mut events);
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
    trace::sort_by_key(&mut bound, |(key, ..)| *key);
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
    trace::sort_by_key(&mut acts, |(key, row, _)| (*key, *row));
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
    let keys: HashSet<FlowKey, BuildIdHasher> = work
        .flows
        .iter()
        .filter(|row| takes_part(&view, **row))
        .filter_map(|row| key(&view, *row))
        .collect();
    let used: HashSet<i64, BuildIdHasher> = trace
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
        plan.change(*row, Rule::DuplicateFlow, None, |edit| edit.bind_id = Some(*id));
    }
    !renumbered.is_empty()
}

/// A key that is started again is a new flow: it and the ends that belong to it get a free id. Ends go to
/// the oldest start that has none yet, else to the latest start.
#[inline(never)]
pub(super) fn tell_apart(trace: &Trace, plan: &mut RepairPlan, work: &Survey) -> bool {
    if !trace.binds().is_empty() && tell_binds_apart(trace, plan, work) {
        return true;
    }
    let view = View::after(trace, plan);
    let starts = duplicate_starts(&view, work);
    if starts.is_empty() {
        return false;
    }
    let duplicates: HashSet<Row, BuildIdHasher> = starts.iter().copied().collect();
    /// The starts of one key.
    #[derive(Default)]
    struct Started {
        new_ids: Vec<Option<i64>>,
        /// How many of the oldest have their end.
        n_ended: usize,
    }
    let mut flows: BTreeMap<FlowKey, Started> = BTreeMap::new();
    for key in starts.iter().filter_map(|row| key(&view, *row)) {
        flows.entry(key).or_default();
    }
    let used: HashSet<i64, BuildIdHasher> = work
        .flows
        .iter()
        .flat_map(|row| [trace.link(*row), view.flow_id(*row)])
        .flatten()
        .collect();
    let mut free = (1_i64..).filter(|id| !used.contains(id));
    let mut renumbered = Vec::new();
    let mut in_order: Vec<(order::Key, Row)> = work
        .flows
        .iter()
        .copied()
        .filter(|row| takes_part(&view, *row))
        .filter(|row| key(&view, *row).is_some_and(|key| flows.contains_key(&key)))
        .map(|row| (order::item(&view, row).key(), row))
        .collect();
    trace::sort(&mut in_order);
    for (_, row) in in_order {
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
        plan.change(row, Rule::DuplicateFlow, None, |edit| edit.flow_id = Some(id));
    }
    true
}
