//! From a trace and options to artifacts, in one call that the page and the command line share.

use analysis::analyze;
use decode::Decoded;
use repair::RepairPlan;
use timeline::Options;
use trace::Trace;
use triage::{Sources, Stage, TriageOptions, TriageReport, kernel_map, triage};

use super::{
    Artifact, ArtifactOptions, KERNEL_MAP, SourceFile, Triaged, UserFacts, triage_artifacts,
};
use crate::kernel_map::{KernelMapFacts, kernel_map_json};

/// What artifacts are made of and how.
#[derive(Clone, Copy)]
pub struct ArtifactOrder<'a> {
    /// The measured trace.
    pub decoded: &'a Decoded,
    /// Its name, with folders if they are known: it may say the stage.
    pub file_name: &'a str,
    /// Its repair.
    pub plan: &'a RepairPlan,
    /// Traces that tell where its kernels come from.
    pub others: Sources<'a>,
    /// All the files, the measured one first.
    pub sources: &'a [SourceFile],
    /// What the user knows.
    pub facts: &'a UserFacts,
    /// Only this stage.
    pub stage: Option<Stage>,
    /// Only this device.
    pub device: Option<&'a str>,
    /// Kernels below this share of their stage stand in one row of the summary; the tables have them all.
    pub cutoff_pct: f64,
    /// Whether what was launched before the window counts; else it is left out, for it belongs to an earlier step.
    pub count_before_window: bool,
    /// What else the user chose.
    pub options: ArtifactOptions,
}

/// Why there are no artifacts.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotMade {
    /// The trace has no such stage.
    NoStage {
        /// The one that was asked for.
        wanted: Stage,
        /// Those that it has.
        known: Vec<Stage>,
    },
    /// Nothing ran on that device.
    NoDevice {
        /// The one that was asked for.
        wanted: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A fault of Kinetoscope.
    Json(serde_json::Error),
}

impl std::fmt::Display for NotMade {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoStage { wanted, known } => {
                let known: Vec<&str> = known.iter().map(|stage| stage.id()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                write!(out, "no stage {}; its stages: {known}", wanted.id())
            }
            Self::NoDevice { wanted, known } => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                write!(out, "no work on device {wanted}; its devices: {known}")
            }
            Self::Json(error) => write!(out, "a table could not be written: {error}"),
        }
    }
}

impl std::error::Error for NotMade {}

/// The part of a run that is wanted; by default all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part<'a> {
    /// Only this stage.
    pub stage: Option<Stage>,
    /// Only this device.
    pub device: Option<&'a str>,
    /// Also what was launched before the window.
    pub count_before_window: bool,
}

/// The triage of a trace, or of a part of it.
///
/// # Errors
/// When the trace has no such stage or device.
pub fn order_triage(
    trace: &Trace,
    file_name: &str,
    others: &Sources<'_>,
    facts: &UserFacts,
    part: Part<'_>,
) -> Result<TriageReport, NotMade> {
    let Part { stage, device, count_before_window } = part;
    let mut found = triage_all(trace, file_name, others, facts, count_before_window);
    if let Some(wanted) = device {
        if !found.devices().contains(&wanted) {
            let known = found.devices().into_iter().map(str::to_owned).collect();
            return Err(NotMade::NoDevice { wanted: wanted.to_owned(), known });
        }
        found = found.on_device(wanted);
    }
    match stage {
        Some(wanted) if !found.stages.iter().any(|row| row.stage == wanted) => {
            let known = found.stages.iter().map(|row| row.stage).collect();
            Err(NotMade::NoStage { wanted, known })
        }
        Some(wanted) => Ok(found.only(wanted)),
        None => Ok(found),
    }
}

/// Triages a trace, or a part of it, with all its devices and stages.
#[must_use]
pub fn triage_all(
    trace: &Trace,
    file_name: &str,
    others: &Sources<'_>,
    facts: &UserFacts,
    count_before_window: bool,
) -> TriageReport {
    let (model, tp) = facts.model_and_tp(&trace.metadata);
    let file_name = Some(file_name.to_owned());
    let slices = Options { without_before_window: !count_before_window, ..Options::default() };
    triage(trace, &TriageOptions { slices, file_name, model, tp }, others)
}

/// Triages a trace and writes the artifacts of it, all but the repaired trace, in the order of the archive.
///
/// # Errors
/// When the trace has no such stage or device.
pub fn order_artifacts(order: &ArtifactOrder<'_>) -> Result<Vec<Artifact>, NotMade> {
    let ArtifactOrder { decoded, file_name, others, facts, .. } = order;
    let (stage, device, count_before_window) =
        (order.stage, order.device, order.count_before_window);
    let part = Part { stage, device, count_before_window };
    let found = order_triage(&decoded.trace, file_name, others, facts, part)?;
    ordered_artifacts(order, &found)
}

/// The artifacts of a triage that [`order_triage`] made of the same trace and choices.
///
/// # Errors
/// Only by a fault of Kinetoscope.
pub fn ordered_artifacts(
    order: &ArtifactOrder<'_>,
    found: &TriageReport,
) -> Result<Vec<Artifact>, NotMade> {
    let ArtifactOrder {
        decoded,
        file_name: _,
        plan,
        others: _,
        sources,
        facts,
        stage: _,
        device: _,
        cutoff_pct,
        count_before_window: _,
        options,
    } = *order;
    triage_artifacts(&Triaged {
        decoded,
        report: &analyze(&decoded.trace, &Options::default()),
        triage: found,
        plan: Some(plan),
        sources,
        facts,
        options,
        cutoff_pct,
    })
    .map_err(NotMade::Json)
}

/// A kernel map that was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedMap {
    /// The document.
    pub file: Artifact,
    /// Kernels in it.
    pub n_kernels: usize,
}

/// The kernel map of a trace: where its kernels came from, for other runs of the same work. Of `sources` the names count.
///
/// # Errors
/// Only by a fault of Kinetoscope.
pub fn order_kernel_map(
    trace: &Trace,
    others: &Sources<'_>,
    sources: &[SourceFile],
    facts: &UserFacts,
    options: ArtifactOptions,
) -> Result<ExportedMap, NotMade> {
    // Without arguments, as a mapping trace is read: so a map tells what the trace itself would.
    let map = kernel_map(trace, &Sources { details: None, capture_details: &[], ..*others });
    let beside = KernelMapFacts {
        sources,
        server_flags: facts.server_flags.as_ref(),
        generated_at: None,
        keep_names: options.keep_names,
    };
    let text = kernel_map_json(&map, &trace.metadata, &beside).map_err(NotMade::Json)?;
    let file = Artifact { name: KERNEL_MAP.to_owned(), text };
    Ok(ExportedMap { file, n_kernels: map.global.len() })
}
