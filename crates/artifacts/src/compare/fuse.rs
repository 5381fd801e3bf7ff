//! The status of each fusion pattern in both runs.

use std::collections::BTreeMap;

use report::{Cell, Column, Row, Unit};
use serde::Serialize;
use triage::words;

use crate::FuseArtifact;

/// One pattern of one stage in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FuseDeltaRow {
    /// Stage id.
    pub stage: String,
    /// The pattern.
    pub pattern: String,
    /// Its status in the first run.
    pub a_status: Option<String>,
    /// Its status in the second run.
    pub b_status: Option<String>,
    /// Time of the related kernels in the first run.
    pub a_related_ns: Option<i64>,
    /// Time of the related kernels in the second run.
    pub b_related_ns: Option<i64>,
}

/// Patterns by stage, those whose status changed first.
pub(super) fn fuse(a: &[FuseArtifact], b: &[FuseArtifact]) -> Vec<FuseDeltaRow> {
    let mut rows: BTreeMap<(&str, &str), FuseDeltaRow> = BTreeMap::new();
    for (side, of_b) in [(a, false), (b, true)] {
        for found in side {
            let key = (found.stage.as_str(), found.pattern_id.as_str());
            let row = rows.entry(key).or_insert_with(|| FuseDeltaRow {
                stage: found.stage.clone(),
                pattern: found.pattern.clone(),
                a_status: None,
                b_status: None,
                a_related_ns: None,
                b_related_ns: None,
            });
            let (status, related_ns) = if of_b {
                (&mut row.b_status, &mut row.b_related_ns)
            } else {
                (&mut row.a_status, &mut row.a_related_ns)
            };
            // A pattern with several rows: the first is the one with the most time.
            status.get_or_insert_with(|| found.status.clone());
            *related_ns = Some(related_ns.unwrap_or(0).saturating_add(found.related_us.0));
        }
    }
    let mut rows: Vec<FuseDeltaRow> = rows.into_values().collect();
    trace::sort_by_key(&mut rows, |row| row.a_status == row.b_status);
    rows
}

const NOT_IN_A: &str = "not found in A, or below 1% of its stage";
const NOT_IN_B: &str = "not found in B, or below 1% of its stage";

fn status<'a>(status: &'a Option<String>, reason: &'static str) -> Cell<'a> {
    Cell::or_missing(status.as_deref(), words::fuse_status, reason)
}

impl Row for FuseDeltaRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "Stage of the kernels.",
            cell: |row| words::stage(&row.stage),
        },
        Column {
            key: "pattern",
            title: "Pattern",
            unit: Unit::Text,
            help: "The pattern: kernels that are fused or could be fused.",
            cell: |row| row.pattern.as_str().into(),
        },
        Column {
            key: "a_status",
            title: "Status A",
            unit: Unit::Text,
            help: "Whether the pattern is fused in A.",
            cell: |row| status(&row.a_status, NOT_IN_A),
        },
        Column {
            key: "b_status",
            title: "Status B",
            unit: Unit::Text,
            help: "Whether the pattern is fused in B.",
            cell: |row| status(&row.b_status, NOT_IN_B),
        },
        Column {
            key: "a_related_ns",
            title: "A",
            unit: Unit::Time,
            help: "Summed time of the pattern's kernels in A.",
            cell: |row| Cell::or_missing(row.a_related_ns, Cell::Ns, NOT_IN_A),
        },
        Column {
            key: "b_related_ns",
            title: "B",
            unit: Unit::Time,
            help: "Summed time of the pattern's kernels in B.",
            cell: |row| Cell::or_missing(row.b_related_ns, Cell::Ns, NOT_IN_B),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Micros, Percent};

    fn found(id: &str, status: &str, ns: i64) -> FuseArtifact {
        FuseArtifact {
            device: String::new(),
            stage: "decode".to_owned(),
            pattern: id.to_owned(),
            time_share_pct: Percent(1.0),
            current_location: String::new(),
            candidate_fused_path: String::new(),
            pattern_id: id.to_owned(),
            confidence: String::new(),
            status: status.to_owned(),
            related_us: Micros(ns),
            occurrences: 1,
            evidence: Vec::new(),
            rationale: String::new(),
            priority: None,
            savings_bound_us: None,
            savings_share_pct: None,
            gain_confidence: None,
            action: None,
            check: None,
        }
    }

    #[test]
    fn a_pattern_whose_status_changed_comes_first() {
        let a = [found("K01", "partial", 5), found("K02", "opportunity", 7)];
        let b = [
            found("K01", "partial", 6),
            found("K02", "already_fused", 2),
            found("K03", "partial", 1),
        ];
        let rows = fuse(&a, &b);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.pattern.as_str(), row.a_status.as_deref(), row.b_status.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("K02", Some("opportunity"), Some("already_fused")),
                ("K03", None, Some("partial")),
                ("K01", Some("partial"), Some("partial")),
            ]
        );
        assert_eq!((rows[0].a_related_ns, rows[1].a_related_ns), (Some(7), None));
        testkit::assert_keys(&rows[0], FuseDeltaRow::COLUMNS.iter().map(|column| column.key));
    }
}
