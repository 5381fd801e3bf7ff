//! From the file as it was to the file as it should be.

use decode::{Decoded, ProblemKind, Source};
use ingest::Unpacker;
use repair::{Action, Applier, RepairPlan, Rule};
use report::{Cell, Column, Table, Unit};
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Digester};
use crate::gzip::GzipWriter;

/// The form of a repaired file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// `.json.gz`: what Perfetto opens fastest and hosts store smallest.
    #[default]
    Gzip,
    /// `.json`.
    Json,
}

/// Streams a file through its repair.
///
/// Sans-I/O: [`Repairer::push`] the original file (compressed or not, as it was decoded) in any pieces and
/// take the output; then [`Repairer::finish`] for the last bytes and the [`Proof`]. The output does not
/// depend on the pieces. A file that needs no repair and keeps its form comes out byte for byte.
pub struct Repairer<'a> {
    plan: &'a RepairPlan,
    unpacker: Unpacker,
    applier: Applier<'a>,
    gzip: Option<GzipWriter>,
    passes: bool,
    before: Digester,
    after: Digester,
    json: Vec<u8>,
    n_json_bytes: u64,
}

impl<'a> Repairer<'a> {
    /// A repairer for the file that `decoded` was read from.
    #[must_use]
    pub fn new(decoded: &'a Decoded, plan: &'a RepairPlan, output: Output) -> Self {
        let Source { gzip, .. } = decoded.source;
        let origin_ns = decoded.trace.origin_ns;
        Self {
            plan,
            unpacker: Unpacker::again(gzip),
            applier: Applier::new(&decoded.trace, plan),
            gzip: (output == Output::Gzip).then(GzipWriter::new),
            passes: plan.is_identity()
                && gzip == (output == Output::Gzip)
                && !is_damaged_gzip(decoded),
            before: Digester::new(origin_ns),
            after: Digester::new(origin_ns - plan.base.map_or(0, |base| base.ns)),
            json: Vec::new(),
            n_json_bytes: 0,
        }
    }

    /// Takes the next bytes of the original file and appends output.
    pub fn push(&mut self, file_bytes: &[u8], out: &mut Vec<u8>) {
        let Self { unpacker, applier, gzip, passes, before, after, json, n_json_bytes, .. } = self;
        let mut take = |bytes: &[u8]| {
            before.push(bytes);
            json.clear();
            applier.push(bytes, json);
            after.push(json);
            *n_json_bytes += json.len() as u64;
            match gzip {
                _ if *passes => {}
                Some(gzip) => gzip.push(json, out),
                None => out.extend_from_slice(json),
            }
        };
        unpacker.push(file_bytes, &mut take);
        if *passes {
            out.extend_from_slice(file_bytes);
        }
    }

    /// Appends the last output and says what was conserved.
    pub fn finish(self, out: &mut Vec<u8>) -> Proof {
        let Self { plan, applier, mut gzip, passes, before, mut after, .. } = self;
        let mut json = Vec::new();
        let n_aside_unkept = applier.finish(&mut json);
        after.push(&json);
        match gzip.take() {
            _ if passes => {}
            Some(mut gzip) => {
                gzip.push(&json, out);
                gzip.finish(out);
            }
            None => out.extend_from_slice(&json),
        }
        Proof::new(plan, &before.finish(), &after.finish(), n_aside_unkept)
    }
}

/// Whether the compressed frame itself must be written anew.
pub(crate) fn is_damaged_gzip(decoded: &Decoded) -> bool {
    let damage = [
        ProblemKind::GzipTruncated,
        ProblemKind::GzipCrc,
        ProblemKind::GzipLength,
        ProblemKind::GzipTrailing,
        ProblemKind::GzipCorrupt,
    ];
    decoded.problems.iter().any(|problem| damage.contains(&problem.kind))
}

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
    fn new(plan: &RepairPlan, before: &Digest, after: &Digest, n_aside_unkept: u64) -> Self {
        let n = |rule| plan.counts.get(&rule).copied().unwrap_or_default();
        let instants = n(Rule::SliceToInstant);
        let asides =
            plan.edits().values().filter(|edit| edit.action == Action::SetAside).count() as u64;
        let lanes = lane_events(plan);
        let clipped = n(Rule::ClipImpossible);
        let mut rows = Vec::new();
        let mut row = |quantity: &str, before: String, after: String, change: String, holds| {
            rows.push(ProofRow { quantity: quantity.to_owned(), before, after, change, holds });
        };
        let same = |a: u64, b: u64| (a.to_string(), b.to_string(), a == b);
        let (a, b, holds) = same(before.slices, after.slices);
        row("Slices with a duration", a, b, String::new(), holds);
        let cut = plan.clipped_ns();
        row(
            "Sum of their durations (ns)",
            before.dur_ns.to_string(),
            after.dur_ns.to_string(),
            if cut == 0 { String::new() } else { format!("{cut} ns clipped, as requested") },
            before.dur_ns - i128::from(cut) == after.dur_ns,
        );
        let base = plan.base.map_or(0, |base| base.ns);
        row(
            "Sum of their starts (ns)",
            before.ts_ns.to_string(),
            after.ts_ns.to_string(),
            match (base, plan.kept_back_ns) {
                (0, _) => String::new(),
                (base, 0) => format!("{base} ns subtracted from each"),
                (base, _) => format!("{base} ns subtracted from each, outliers not shifted"),
            },
            before.ts_ns - i128::from(before.slices) * base + plan.kept_back_ns == after.ts_ns,
        );
        let rewritten = clipped + plan.slices_with_new_args();
        row(
            "Fingerprint of (name, category, duration, arguments)",
            format!("{:016x}", before.fingerprint),
            format!("{:016x}", after.fingerprint),
            match rewritten {
                0 => String::new(),
                n => format!("{n} slices changed individually, see the log"),
            },
            before.fingerprint == after.fingerprint || rewritten > 0,
        );
        let (a, b, holds) = same(before.begins_ends, after.begins_ends);
        row("Begin and end events", a, b, String::new(), holds);
        row(
            "Instants",
            before.instants.to_string(),
            after.instants.to_string(),
            match instants {
                0 => String::new(),
                n => format!("plus {n} slices without a duration"),
            },
            before.instants + instants == after.instants,
        );
        let (a, b, holds) = same(before.counters, after.counters);
        row("Counter samples", a, b, String::new(), holds);
        let gone = before.events() + lanes - after.events().min(before.events() + lanes);
        row(
            "All events",
            before.events().to_string(),
            after.events().to_string(),
            match (lanes, asides) {
                (0, 0) => String::new(),
                (lanes, asides) => format!("{lanes} lane names added, {asides} set aside"),
            },
            gone == asides,
        );
        let targets = plan.flow_targets.len() as u64;
        row(
            "Flow arrows that end at their own slice in Perfetto (by the model)",
            format!("{} of {targets}", plan.flows_bound_before),
            format!("{} of {targets}", plan.flows_bound_after),
            // An arrow may have hit its slice only because a crossing slice, now on its lane, took an ended
            // instant or begin event off the importer's stack. The events are all there; only the aim differs.
            match plan.flows_bound_before.saturating_sub(plan.flows_bound_after) {
                0 => String::new(),
                n => format!("{n} were right only because of the order of the original"),
            },
            true,
        );
        if n_aside_unkept > 0 {
            row(
                "Set-aside events that exceed the space in the file",
                "0".to_owned(),
                n_aside_unkept.to_string(),
                "their text is only in the original".to_owned(),
                true,
            );
        }
        let holds = rows.iter().all(|row| row.holds);
        Self { rows, holds }
    }
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
