//! Flow ids: which the importer counts as started twice.

use std::collections::{HashMap, HashSet};

use trace::{Bind, BuildIdHasher, Flags, Phase, Row, each_of};

use super::{Survey, order};
use crate::view::View;

/// The identity of a flow in the importer: id, category, name.
pub(crate) type FlowKey = (i64, u32, u32);

pub(crate) fn key(view: &View<'_>, row: Row) -> Option<FlowKey> {
    let trace = view.trace;
    Some((view.flow_id(row)?, trace.raw_category(row).0, trace.name(row).0))
}

/// Whether a flow event is one that the importer tracks.
pub(crate) fn takes_part(view: &View<'_>, row: Row) -> bool {
    view.sound_flow(row).is_some() || takes_part_oddly(view, row)
}

#[inline(never)]
fn takes_part_oddly(view: &View<'_>, row: Row) -> bool {
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
pub(crate) fn bound_slices(view: &View<'_>, survey: &Survey) -> Vec<(order::Key, Row, Bind)> {
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
