//! Gives flows whose ids the importer counts as started twice ids of their own.

use std::collections::{BTreeMap, HashSet};

use trace::{BuildIdHasher, Phase, Row, Trace};

use crate::perfetto::Survey;
use crate::perfetto::flow_ids::{FlowKey, bound_slices, duplicate_starts, key, takes_part};
use crate::perfetto::order;
use crate::types::{RepairPlan, Rule};
use crate::view::View;

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
