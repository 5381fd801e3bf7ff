//! `profile_metadata.json`: the run behind the tables, its hardware, and the data quality.
//!
//! `null` means "not supplied". A value is read from the file, given by the user, or derived from the file by a rule
//! that [`ProfileMetadata::provenance`] names; it is never invented.

mod of_file;
mod sourced;

pub use of_file::{DeviceFacts, Distributed, TraceFacts};

use std::collections::BTreeMap;

use analysis::{GpuTotals, TraceReport, only_communication};
use decode::Decoded;
use repair::RepairPlan;
use report::units;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use timeline::before_window::BeforeWindow;
use timeline::versions;
use trace::{StringId, Trace};
use triage::{ArchMatch, ArchRelation, Coverage, FrameworkVote, ObservedArch, Stage, TriageReport};

use of_file::Keys;
use sourced::Sourced;

use super::facts::UserFacts;
use super::number::{Micros, Percent};
use super::privacy::Names;
use super::source::{Role, SourceFile, base_name};

/// Schema of all artifacts. A change of meaning raises it; a new key does not.
pub(crate) const ARTIFACT_SCHEMA: u32 = 1;
/// Version of the rules (categories, stages, overlap classes, fuse patterns): tables of different numbers are not
/// the same measure.
pub(crate) const RULES_VERSION: u32 = 1;

/// What triage found out about the run as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The architecture that the trace shows.
    pub arch: ObservedArch,
    /// The framework that won the vote.
    pub framework: FrameworkVote,
    /// The stage with the most GPU time; `all` where none is known.
    pub profile_stage: String,
    /// How busy the GPU was while anything that the tables count ran on it.
    pub busy: String,
    /// Whether the tables count what was launched before the window.
    pub before_window_counted: bool,
    /// GPU time of which an op is known, in percent.
    pub mapped_pct: Option<f64>,
    /// Batch sizes and tokens from annotations, by stage.
    pub batch_shape: Option<Value>,
    /// Whether any op has its inputs.
    pub has_inputs: bool,
    /// Whether any kernel maps to an op.
    pub has_ops: bool,
    /// Whether the file has ops, whether kernels map to them or not.
    pub has_cpu: bool,
    /// What a reader of the tables must know.
    pub warnings: Vec<String>,
}

impl RunFacts {
    /// What a triage says.
    #[must_use]
    #[inline(never)]
    pub fn of(triage: &TriageReport) -> Self {
        // Of all devices together.
        let mut by_stage: BTreeMap<Stage, i64> = BTreeMap::new();
        for row in &triage.stages {
            let sum = by_stage.entry(row.stage).or_default();
            *sum = sum.saturating_add(row.total_ns);
        }
        let main = by_stage.iter().max_by_key(|(stage, ns)| (**ns, std::cmp::Reverse(**stage)));
        let batches: Map<String, Value> = triage
            .stages
            .iter()
            .filter_map(|row| Some((row.stage.id().to_owned(), Value::from(row.batch.clone()?))))
            .collect();
        let Coverage { total_ns, op_ns, window_ns, busy_ns, graph_slices, graph_mapped, .. } =
            triage.coverage;
        let only_communication_ns = triage.coverage.only_communication_ns;
        let unmapped = graph_slices.saturating_sub(graph_mapped);
        let warning = (unmapped > 0).then(|| {
            format!(
                "{unmapped} GPU slices of graph launches map to no op: {}",
                triage.coverage.maps_graphs()
            )
        });
        Self {
            arch: triage.arch.clone(),
            framework: triage.framework.clone(),
            profile_stage: main.map_or("all", |(stage, _)| stage.id()).to_owned(),
            busy: match window_ns {
                0 if triage.before_window.n_slices > 0 => format!(
                    "The launches of all {} GPU slices are missing: they began before the recording, and the tables leave them out. \
                     Record the steps that launch them, too.",
                    units::count(triage.before_window.n_slices)
                ),
                // (The takeaways say why.)
                0 => String::new(),
                _ if triage.coverage.only_captures => String::new(),
                _ => format!(
                    "{}GPU busy {} of {} {}{}{}.",
                    triage.step.as_ref().map_or_else(String::new, |step| format!("{step}: ")),
                    units::percent(100.0 * busy_ns as f64 / window_ns as f64),
                    match triage.devices().len() {
                        0 | 1 => "the GPU span of".to_owned(),
                        n => format!("the spans of {n} GPUs, summed:"),
                    },
                    units::time(window_ns),
                    of_steps(triage),
                    only_communication(only_communication_ns, busy_ns, window_ns)
                ),
            },
            before_window_counted: triage.before_window.counted,
            mapped_pct: (total_ns > 0).then(|| 100.0 * op_ns as f64 / total_ns as f64),
            batch_shape: (!batches.is_empty()).then_some(Value::Object(batches)),
            has_inputs: triage.coverage.has_inputs,
            has_ops: triage.coverage.op_ns > 0,
            has_cpu: triage.coverage.has_ops,
            warnings: warning.into_iter().collect(),
        }
    }
}

/// The busy share of the recorded steps, where they are much longer than the GPU span: with a comma before it.
fn of_steps(triage: &TriageReport) -> String {
    let own = || triage.wall.iter().filter(|row| row.of_steps);
    if triage.devices().len() > 1 || own().next().is_none() {
        return String::new();
    }
    let busy_pct: f64 = own().filter(|row| !row.part.is_idle()).map(|row| row.share_pct).sum();
    format!(", {} of the recorded steps", units::percent(busy_pct))
}

/// The document; the order of the fields is that of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "docs/artifacts.md and the JSON Schema describe every key")]
pub struct ProfileMetadata {
    pub schema_version: u32,
    pub tool: Tool,
    pub experiment_id: Option<String>,
    pub trial_id: Option<String>,
    pub model_name: Option<String>,
    pub profile_stage: String,
    pub observed_arch: String,
    pub arch_match: ArchMatch,
    pub hardware_relevance_reason: String,
    pub rocm_version: Option<String>,
    pub base_image: Option<String>,
    pub resource_class: Option<String>,
    pub gpu_device_ids: Vec<i64>,
    pub gpu_clocks_mhz: Option<BTreeMap<String, f64>>,
    pub preflight_passed: Option<bool>,
    pub server_flags: Option<Map<String, Value>>,
    pub benchmark_config_hash: Option<String>,
    pub source_trace_path: String,
    pub provenance: BTreeMap<String, String>,
    pub target_arch: Option<String>,
    pub arch_relation: ArchRelation,
    pub arch_evidence: Vec<String>,
    pub cuda_version: Option<String>,
    pub framework: String,
    pub framework_evidence: Vec<String>,
    pub device: Option<DeviceFacts>,
    pub cuda_runtime_version: Option<String>,
    pub cuda_driver_version: Option<String>,
    pub cupti_version: Option<String>,
    pub hip_runtime_version: Option<String>,
    pub hip_driver_version: Option<String>,
    pub roctracer_version: Option<String>,
    pub distributed: Option<Distributed>,
    pub batch_shape: Option<Value>,
    pub trace: TraceFacts,
    pub counts: BTreeMap<String, u64>,
    pub gpu_counts: BTreeMap<String, u64>,
    pub window_us: Micros,
    pub gpu_busy_us: Micros,
    pub gpu_total_us: Micros,
    pub mapped_pct: Option<Percent>,
    pub orphan_kernels: Option<Orphans>,
    // Documents of older versions do not have it.
    #[serde(default)]
    pub before_window_counted: Option<bool>,
    pub repairs: Vec<RepairCount>,
    pub warnings: Vec<String>,
    pub sources: Vec<SourceFile>,
}

/// What wrote the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `kinetoscope`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `RULES_VERSION` of this crate.
    pub rules_version: u32,
}

/// Kernels that were launched before the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphans {
    /// How many.
    pub count: u64,
    /// The sum of their durations.
    pub us: Micros,
}

/// A rule of the repair, and how often it applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairCount {
    /// Its id.
    pub rule: String,
    /// How many changes.
    pub count: u64,
}

/// What the document is made of.
pub(crate) struct MetadataInput<'a> {
    pub decoded: &'a Decoded,
    pub report: &'a TraceReport,
    pub run: &'a RunFacts,
    pub plan: Option<&'a RepairPlan>,
    pub sources: &'a [SourceFile],
    pub facts: &'a UserFacts,
    pub names: &'a Names,
}

impl ProfileMetadata {
    #[inline(never)]
    pub(crate) fn new(input: &MetadataInput<'_>) -> Self {
        let MetadataInput { decoded, report, run, plan, sources, facts: _, names } = input;
        let trace = &decoded.trace;
        let overview = &report.overview;
        let keys = Keys(trace);
        let distributed = Distributed::of(&keys);
        let mut from = Sourced::new(input);
        let server_flags = from.server_flags();
        let target_arch = from.text("target_arch", |facts| &facts.target_arch);
        let verdict = run.arch.against(target_arch.as_deref());
        let version =
            |key: &str, of: fn(i64) -> Option<String>| trace.metadata.int(key).and_then(of);
        let sources = stripped(sources, names);
        Self {
            schema_version: ARTIFACT_SCHEMA,
            tool: Tool::this(),
            experiment_id: from.text("experiment_id", |facts| &facts.experiment_id),
            trial_id: from.text("trial_id", |facts| &facts.trial_id),
            model_name: from.model_name(server_flags.as_ref()).map(|name| names.strip(&name)),
            profile_stage: from.profile_stage(run),
            observed_arch: run.arch.observed_arch.clone(),
            arch_match: verdict.arch_match,
            hardware_relevance_reason: verdict.hardware_relevance_reason,
            rocm_version: version("hip_runtime_version", versions::rocm_of_hip),
            base_image: from.text("base_image", |facts| &facts.base_image),
            resource_class: from.resource_class(distributed.as_ref()),
            gpu_device_ids: from.gpu_device_ids(report),
            gpu_clocks_mhz: from.gpu_clocks_mhz(),
            preflight_passed: from.preflight_passed(),
            server_flags: server_flags.map(|flags| names.strip_flags(&flags)),
            benchmark_config_hash: from
                .text("benchmark_config_hash", |facts| &facts.benchmark_config_hash),
            source_trace_path: formal_names(&sources),
            target_arch,
            arch_relation: verdict.arch_relation,
            arch_evidence: run.arch.evidence.clone(),
            cuda_version: version("cuda_runtime_version", versions::cuda),
            framework: from.framework(run),
            framework_evidence: run.framework.evidence.clone(),
            device: DeviceFacts::of(report),
            cuda_runtime_version: version("cuda_runtime_version", versions::cuda),
            cuda_driver_version: version("cuda_driver_version", versions::cuda),
            cupti_version: keys.text("cupti_version"),
            hip_runtime_version: version("hip_runtime_version", versions::hip),
            hip_driver_version: version("hip_driver_version", versions::hip),
            roctracer_version: keys.text("roctracer_version"),
            distributed,
            batch_shape: from.batch_shape(run),
            trace: TraceFacts::of(&keys, names),
            counts: counts(trace),
            gpu_counts: gpu_counts(report),
            window_us: Micros(overview.window_ns),
            gpu_busy_us: Micros(overview.gpu.busy_ns),
            gpu_total_us: Micros(gpu_total_ns(&overview.gpu)),
            mapped_pct: run.mapped_pct.map(Percent),
            orphan_kernels: Orphans::of(&overview.before_window),
            before_window_counted: Some(run.before_window_counted),
            repairs: plan.map_or_else(Vec::new, RepairCount::of),
            warnings: warnings(run, decoded, names),
            sources,
            // Last: by now every value has noted its source.
            provenance: from.into_provenance(),
        }
    }
}

impl Tool {
    fn this() -> Self {
        Self {
            name: "kinetoscope".to_owned(),
            version: crate::VERSION.to_owned(),
            rules_version: RULES_VERSION,
        }
    }
}

impl Orphans {
    /// `None` where the file does not tell which kernels these are.
    fn of(before: &BeforeWindow) -> Option<Self> {
        let found = Self { count: before.n_kernels, us: Micros(before.kernel_ns) };
        before.unknown.is_none().then_some(found)
    }
}

impl RepairCount {
    fn of(plan: &RepairPlan) -> Vec<Self> {
        let counts = plan.counts.iter();
        counts.map(|(rule, count)| Self { rule: rule.id().to_owned(), count: *count }).collect()
    }
}

/// The files without names of hosts, users and folders.
fn stripped(sources: &[SourceFile], names: &Names) -> Vec<SourceFile> {
    let name = |source: &SourceFile| names.strip(base_name(&source.name));
    sources.iter().map(|source| SourceFile { name: name(source), ..source.clone() }).collect()
}

/// The names of the measured traces.
fn formal_names(sources: &[SourceFile]) -> String {
    let formal = sources.iter().filter(|source| source.role == Role::Formal);
    formal.map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What triage warns of, then the problems of the file.
fn warnings(run: &RunFacts, decoded: &Decoded, names: &Names) -> Vec<String> {
    let of_run = run.warnings.iter().map(|text| names.strip(text));
    let problems = decoded.problems.iter().map(|problem| {
        format!("{}: {} ({})", problem.kind.id(), problem.kind.title(), problem.count)
    });
    of_run.chain(problems).collect()
}

/// GPU slices by category.
fn gpu_counts(report: &TraceReport) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in &report.categories {
        *counts.entry(row.category.clone()).or_default() += row.n_slices;
    }
    counts
}

fn gpu_total_ns(gpu: &GpuTotals) -> i64 {
    let sums = [gpu.kernel_sum_ns, gpu.memcpy_sum_ns, gpu.memset_sum_ns];
    sums.into_iter().fold(0, i64::saturating_add)
}

/// Events by raw category, as the file spells it.
fn counts(trace: &Trace) -> BTreeMap<String, u64> {
    let mut by_id = vec![0_u64; trace.strings.len()];
    trace::each_row(trace, |row| {
        if let Some(n) = by_id.get_mut(trace.raw_category(row).0 as usize) {
            *n += 1;
        }
    });
    let counted = by_id.into_iter().enumerate().filter(|(_, n)| *n > 0);
    let text = |id: usize| trace.strings.get(StringId(id as u32)).to_owned();
    let mut counts: BTreeMap<String, u64> = counted.map(|(id, n)| (text(id), n)).collect();
    // Metadata and counters have none.
    counts.remove("");
    counts
}
