//! The rows of the three tables as the artifact contract has them: its minimum keys first, then ours.
//!
//! A row here is a copy of a row of the analysis in other units and words, so that the analysis may change without
//! breaking whoever reads artifacts.

use serde::{Deserialize, Serialize};

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
    pub cpu_op: String,
    pub mapping_confidence: String,
    pub location_share_pct: Percent,
    pub arch_hint: Option<String>,
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
    pub savings_bound_us: Micros,
    pub instances: u64,
    pub verdict: String,
    pub formal_signal: String,
    pub reason: String,
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
}
