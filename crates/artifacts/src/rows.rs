//! The rows of the three tables as the artifact contract has them: its minimum keys first, then ours.
//!
//! A row here is a copy of a row of the analysis in other units and words, so that the analysis may change without
//! breaking whoever reads artifacts.

use serde::{Deserialize, Serialize};
use triage::{FuseRow, KernelTableRow, Note, OverlapRow, Priority, Stage};

use super::number::{Micros, Percent};

/// A row of `kernel_table.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "docs/artifacts.md and the JSON Schema describe every key")]
pub struct KernelArtifact {
    pub stage: String,
    pub kernel_name: String,
    pub category: String,
    pub time_share_pct: Percent,
    pub python_location: String,
    pub notes: String,
    pub family: String,
    pub total_us: Micros,
    pub launches: u64,
    pub avg_us: Micros,
    pub p50_us: Micros,
    pub max_us: Micros,
    pub exposed_us: Micros,
    pub queue_us: Option<Micros>,
    pub cpu_op: String,
    pub mapping_confidence: String,
    pub location_share_pct: Percent,
    pub modules: Option<String>,
    pub arch_hint: Option<String>,
    // Files of older versions have none of what follows.
    #[serde(default)]
    pub locations: Vec<String>,
    #[serde(default)]
    pub shapes: Option<String>,
    #[serde(default)]
    pub n_shapes: Option<u64>,
    #[serde(default)]
    pub gemm_shape: Option<String>,
    #[serde(default)]
    pub grid: Option<[u32; 3]>,
    #[serde(default)]
    pub block: Option<[u32; 3]>,
    #[serde(default)]
    pub est_occupancy_pct: Option<Percent>,
    #[serde(default)]
    pub registers: Option<u64>,
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    #[serde(default)]
    pub blocks_per_sm: Option<f64>,
    #[serde(default)]
    pub warps_per_sm: Option<f64>,
    #[serde(default)]
    pub n_launch_configs: Option<u64>,
    #[serde(default)]
    pub device: String,
    #[serde(default)]
    pub streams: Vec<String>,
    #[serde(default)]
    pub first_us: Option<Micros>,
}

/// A row of `overlap_opportunities.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "docs/artifacts.md and the JSON Schema describe every key")]
pub struct OverlapArtifact {
    pub stage: String,
    pub priority: String,
    pub kernel_name: String,
    pub python_scope: String,
    pub recommendation: String,
    pub dependency_risk: String,
    pub category: String,
    pub overlap_class: String,
    pub total_us: Micros,
    pub share_pct: Percent,
    pub exclusive_us: Micros,
    pub hidden_us: Micros,
    pub hidden_by_compute_us: Micros,
    pub exclusive_ratio: f64,
    pub hidden_ratio: f64,
    pub hidden_by: Option<String>,
    pub savings_bound_us: Option<Micros>,
    #[serde(default)]
    pub savings_share_pct: Option<Percent>,
    pub instances: u64,
    pub verdict: String,
    pub formal_signal: String,
    pub reason: String,
    #[serde(default)]
    pub device: String,
}

/// A row of `fuse_opportunities.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "docs/artifacts.md and the JSON Schema describe every key")]
pub struct FuseArtifact {
    pub stage: String,
    pub pattern: String,
    pub time_share_pct: Percent,
    pub current_location: String,
    pub candidate_fused_path: String,
    pub pattern_id: String,
    pub confidence: String,
    pub status: String,
    pub related_us: Micros,
    pub occurrences: u64,
    pub evidence: Vec<String>,
    pub rationale: String,
    #[serde(default)]
    pub priority: Option<String>,
    #[serde(default)]
    pub savings_bound_us: Option<Micros>,
    #[serde(default)]
    pub savings_share_pct: Option<Percent>,
    #[serde(default)]
    pub gain_confidence: Option<String>,
    #[serde(default)]
    pub action: Option<String>,
    #[serde(default)]
    pub check: Option<String>,
    #[serde(default)]
    pub device: String,
}

/// What stands for a place that is not known.
pub(crate) const UNRESOLVED: &str = "unresolved";
/// The recommendation where nothing is advised.
const NO_ADVICE: &str = "none";

fn or_unresolved(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or(UNRESOLVED).to_owned()
}

/// A number of different things; none are known where none were seen.
fn known(n: u64) -> Option<u64> {
    (n > 0).then_some(n)
}

/// Percent as a ratio from 0 to 1, with at most four decimals.
fn ratio(percent: f64) -> f64 {
    let rounded = (percent * 100.0).round() / 10_000.0;
    if rounded.is_finite() { rounded.clamp(0.0, 1.0) } else { 0.0 }
}

impl From<&KernelTableRow> for KernelArtifact {
    #[inline(never)]
    fn from(row: &KernelTableRow) -> Self {
        let (gfx, sm) = catalog::architecture(&row.kernel_name);
        Self {
            stage: row.stage.map_or("", Stage::id).to_owned(),
            kernel_name: row.kernel_name.clone(),
            category: row.category.id().to_owned(),
            time_share_pct: Percent(row.share_pct),
            python_location: or_unresolved(Some(&row.python_location)),
            notes: row.notes.iter().map(Note::to_string).collect::<Vec<_>>().join(";"),
            family: row.family.id().to_owned(),
            total_us: Micros(row.total_ns),
            launches: row.launches,
            avg_us: Micros(row.mean_ns),
            p50_us: Micros(row.p50_ns),
            max_us: Micros(row.max_ns),
            exposed_us: Micros(row.exposed_ns),
            queue_us: row.queue_ns.map(Micros),
            cpu_op: or_unresolved(Some(&row.cpu_op)),
            mapping_confidence: row.mapping_confidence.id().to_owned(),
            location_share_pct: Percent(row.location_share_pct),
            modules: Some(row.modules.clone()).filter(|modules| !modules.is_empty()),
            arch_hint: gfx.or_else(|| sm.map(|sm| format!("sm_{sm}"))),
            locations: row.locations.clone(),
            shapes: row.shapes.clone(),
            n_shapes: known(row.n_shapes),
            gemm_shape: row.gemm_shape.clone(),
            grid: row.grid,
            block: row.block,
            est_occupancy_pct: row.occupancy_pct.map(Percent),
            registers: row.registers,
            shared_bytes: row.shared_bytes,
            blocks_per_sm: row.blocks_per_sm,
            warps_per_sm: row.warps_per_sm,
            n_launch_configs: known(row.n_launch_configs),
            device: row.device.clone(),
            streams: row.streams.clone(),
            first_us: Some(Micros(row.first_seen_ns)),
        }
    }
}

impl From<&OverlapRow> for OverlapArtifact {
    #[inline(never)]
    fn from(row: &OverlapRow) -> Self {
        Self {
            stage: row.stage.id().to_owned(),
            priority: Priority::id_of(row.priority).to_owned(),
            kernel_name: row.kernel_name.clone(),
            python_scope: or_unresolved(row.python_scope.as_deref()),
            recommendation: row.recommendation.as_deref().unwrap_or(NO_ADVICE).to_owned(),
            dependency_risk: row.dependency_risk.id().to_owned(),
            category: row.category.id().to_owned(),
            overlap_class: row.overlap_class.id().to_owned(),
            total_us: Micros(row.total_ns),
            share_pct: Percent(row.share_pct),
            exclusive_us: Micros(row.exclusive_ns),
            hidden_us: Micros(row.hidden_ns),
            hidden_by_compute_us: Micros(row.hidden_by_compute_ns),
            exclusive_ratio: ratio(row.exclusive_pct),
            hidden_ratio: ratio(row.hidden_pct),
            hidden_by: row.hidden_by.clone(),
            savings_bound_us: row.savings_bound_ns.map(Micros),
            savings_share_pct: row.savings_pct.map(Percent),
            instances: row.n_instances,
            verdict: row.verdict.id().to_owned(),
            formal_signal: row.formal_signal.clone(),
            reason: row.reason.clone(),
            device: row.device.clone(),
        }
    }
}

impl From<&FuseRow> for FuseArtifact {
    #[inline(never)]
    fn from(row: &FuseRow) -> Self {
        Self {
            stage: row.stage.id().to_owned(),
            pattern: row.pattern.clone(),
            time_share_pct: Percent(row.time_share_pct),
            current_location: or_unresolved(Some(&row.current_location)),
            candidate_fused_path: row.candidate_fused_path.clone(),
            pattern_id: row.pattern_id.clone(),
            confidence: row.confidence.id().to_owned(),
            status: row.status.id().to_owned(),
            related_us: Micros(row.related_ns),
            occurrences: row.n_occurrences,
            evidence: row.evidence.clone(),
            rationale: row.rationale.clone(),
            priority: row.priority.map(|priority| priority.id().to_owned()),
            savings_bound_us: row.savings_bound_ns.map(Micros),
            savings_share_pct: row.savings_pct.map(Percent),
            gain_confidence: row.gain_confidence.map(|gain| gain.id().to_owned()),
            action: Some(row.action.clone()).filter(|text| !text.is_empty()),
            check: Some(row.check.clone()).filter(|text| !text.is_empty()),
            device: row.device.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_not_known_is_said_to_be() {
        assert_eq!(or_unresolved(None), "unresolved");
        assert_eq!(or_unresolved(Some("")), "unresolved");
        assert_eq!(or_unresolved(Some("a.py:3 f")), "a.py:3 f");
    }

    #[test]
    fn ratios_are_short_and_within_bounds() {
        for (percent, found) in
            [(100.0 / 3.0, 0.3333), (100.000_01, 1.0), (-1e-9, 0.0), (f64::NAN, 0.0)]
        {
            assert!((ratio(percent) - found).abs() < 1e-12, "{percent}");
        }
    }
}
