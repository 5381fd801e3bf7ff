//! The proof of a repair: what the original and the repaired file contain, counted from their bytes.

use repair::{Action, RepairPlan, Rule};
use report::{Cell, Column, Table, Unit};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// One conserved quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofRow {
    /// What was measured.
    pub quantity: String,
    /// In the original, counted from its bytes.
    pub before: String,
    /// In the repaired file, counted from its bytes.
    pub after: String,
    /// What the log says must have changed, if anything.
    pub change: String,
    /// Whether `after` is `before` with that change.
    pub holds: bool,
}

/// What went in and what came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Every quantity; all of them hold, or there is a fault in Kinetoscope.
    pub rows: Vec<ProofRow>,
    /// Whether every row holds.
    pub holds: bool,
}

impl Proof {
    pub(crate) fn new(
        plan: &RepairPlan,
        before: &Digest,
        after: &Digest,
        n_aside_unkept: u64,
    ) -> Self {
        let mut rows = slices(plan, before, after);
        rows.extend(events(plan, before, after));
        rows.push(flows(plan));
        rows.extend(unkept(n_aside_unkept));
        let holds = rows.iter().all(|row| row.holds);
        Self { rows, holds }
    }
}

impl ProofRow {
    /// A quantity that no repair changes.
    fn same(quantity: &str, before: u64, after: u64) -> Self {
        Self {
            quantity: quantity.to_owned(),
            before: before.to_string(),
            after: after.to_string(),
            change: String::new(),
            holds: before == after,
        }
    }
}

/// Slices with a duration: their number, their times, and everything else that they record.
fn slices(plan: &RepairPlan, before: &Digest, after: &Digest) -> Vec<ProofRow> {
    let cut = plan.clipped_ns();
    let durations = ProofRow {
        quantity: "Sum of their durations (ns)".to_owned(),
        before: before.dur_ns.to_string(),
        after: after.dur_ns.to_string(),
        change: if cut == 0 { String::new() } else { format!("{cut} ns clipped, as requested") },
        holds: before.dur_ns - i128::from(cut) == after.dur_ns,
    };
    let base = plan.base.map_or(0, |base| base.ns);
    let starts = ProofRow {
        quantity: "Sum of their starts (ns)".to_owned(),
        before: before.ts_ns.to_string(),
        after: after.ts_ns.to_string(),
        change: match (base, plan.kept_back_ns) {
            (0, _) => String::new(),
            (base, 0) => format!("{base} ns subtracted from each"),
            (base, _) => format!("{base} ns subtracted from each, outliers not shifted"),
        },
        holds: before.ts_ns - i128::from(before.slices) * base + plan.kept_back_ns == after.ts_ns,
    };
    let rewritten = count(plan, Rule::ClipImpossible) + plan.slices_with_new_args();
    let fingerprint = ProofRow {
        quantity: "Fingerprint of (name, category, duration, arguments)".to_owned(),
        before: format!("{:016x}", before.fingerprint),
        after: format!("{:016x}", after.fingerprint),
        change: match rewritten {
            0 => String::new(),
            n => format!("{n} slices changed individually, see the log"),
        },
        holds: before.fingerprint == after.fingerprint || rewritten > 0,
    };
    let number = ProofRow::same("Slices with a duration", before.slices, after.slices);
    vec![number, durations, starts, fingerprint]
}

/// Events of the other phases, and all events.
fn events(plan: &RepairPlan, before: &Digest, after: &Digest) -> [ProofRow; 4] {
    let instants = count(plan, Rule::SliceToInstant);
    let asides =
        plan.edits().values().filter(|edit| edit.action == Action::SetAside).count() as u64;
    let lanes = lane_events(plan);
    let gone = before.events() + lanes - after.events().min(before.events() + lanes);
    [
        ProofRow::same("Begin and end events", before.begins_ends, after.begins_ends),
        ProofRow {
            quantity: "Instants".to_owned(),
            before: before.instants.to_string(),
            after: after.instants.to_string(),
            change: match instants {
                0 => String::new(),
                n => format!("plus {n} slices without a duration"),
            },
            holds: before.instants + instants == after.instants,
        },
        ProofRow::same("Counter samples", before.counters, after.counters),
        ProofRow {
            quantity: "All events".to_owned(),
            before: before.events().to_string(),
            after: after.events().to_string(),
            change: match (lanes, asides) {
                (0, 0) => String::new(),
                (lanes, asides) => format!("{lanes} lane names added, {asides} set aside"),
            },
            holds: gone == asides,
        },
    ]
}

/// Flow arrows by the model of Perfetto's importer. Nothing is counted from bytes, so that the row always holds.
fn flows(plan: &RepairPlan) -> ProofRow {
    let targets = plan.flow_targets.len() as u64;
    ProofRow {
        quantity: "Flow arrows that end at their own slice in Perfetto (by the model)".to_owned(),
        before: format!("{} of {targets}", plan.flows_bound_before),
        after: format!("{} of {targets}", plan.flows_bound_after),
        // An arrow may have hit its slice only because a crossing slice, now on its lane, took an ended
        // instant or begin event off the importer's stack. The events are all there; only the aim differs.
        change: match plan.flows_bound_before.saturating_sub(plan.flows_bound_after) {
            0 => String::new(),
            n => format!("{n} were right only because of the order of the original"),
        },
        holds: true,
    }
}

/// Set-aside events whose text the repaired file does not have.
fn unkept(n: u64) -> Option<ProofRow> {
    (n > 0).then(|| ProofRow {
        quantity: "Set-aside events that exceed the space in the file".to_owned(),
        before: "0".to_owned(),
        after: n.to_string(),
        change: "their text is only in the original".to_owned(),
        holds: true,
    })
}

fn count(plan: &RepairPlan, rule: Rule) -> u64 {
    plan.counts.get(&rule).copied().unwrap_or_default()
}

/// How many metadata events the plan adds.
fn lane_events(plan: &RepairPlan) -> u64 {
    let lanes = plan.lanes.iter().map(|lane| {
        u64::from(lane.name.is_some())
            + u64::from(lane.sort_index.is_some() && lane.kind != repair::LaneKind::Split)
    });
    lanes.sum::<u64>() + plan.added_process_names.len() as u64
}

impl report::Row for ProofRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "quantity",
            title: "Quantity",
            unit: Unit::Text,
            help: "The quantity that was counted.",
            cell: |row| Cell::from(&row.quantity),
        },
        Column {
            key: "before",
            title: "Original",
            unit: Unit::Text,
            help: "Counted from the bytes of the original.",
            cell: |row| Cell::from(&row.before),
        },
        Column {
            key: "after",
            title: "Repaired",
            unit: Unit::Text,
            help: "Counted from the bytes of the repaired file.",
            cell: |row| Cell::from(&row.after),
        },
        Column {
            key: "change",
            title: "Expected change",
            unit: Unit::Text,
            help: "The change that the repair log lists.",
            cell: |row| Cell::from(&row.change),
        },
        Column {
            key: "holds",
            title: "Verified",
            unit: Unit::Flag,
            help: "Whether the repaired file is the original with exactly that change.",
            cell: |row| Cell::Flag(row.holds),
        },
    ];
}

/// The proof as a table.
#[must_use]
pub fn proof_table(proof: &Proof) -> Table {
    Table::of("proof", "Verification", &proof.rows)
}

#[cfg(test)]
mod tests {
    use report::Row as _;

    use super::*;

    #[test]
    fn the_keys_of_the_json_are_the_keys_of_the_columns() {
        let row = ProofRow {
            quantity: String::new(),
            before: String::new(),
            after: String::new(),
            change: String::new(),
            holds: true,
        };
        testkit::assert_keys(&row, ProofRow::COLUMNS.iter().map(|column| column.key));
    }
}
