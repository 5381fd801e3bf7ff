//! The facade of Kinetoscope: the page and the command line use only this crate.
//!
//! ```
//! use kinetoscope::{Decoder, Options, Output, PlanOptions, Repairer};
//!
//! let file = br#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}]}"#;
//! let mut decoder = Decoder::new();
//! decoder.push(file)?;
//! let decoded = decoder.finish()?;
//! let report = kinetoscope::analyze(&decoded.trace, &Options::default());
//! assert_eq!(report.overview.gpu.busy_ns, 2_000);
//!
//! let plan = kinetoscope::plan_repair(&decoded.trace, &PlanOptions::default());
//! assert!(plan.is_identity());
//! let mut repairer = Repairer::new(&decoded, &plan, Output::Json);
//! let mut repaired = Vec::new();
//! repairer.push(file, &mut repaired);
//! assert!(repairer.finish(&mut repaired).holds);
//! assert_eq!(repaired, file);
//! # Ok::<(), kinetoscope::NotATrace>(())
//! ```
//!
//! Constraints: no I/O, no clock, no environment; input arrives by `push`, results are values. The
//! same bytes and options give the same results on every machine, native or wasm.

pub mod artifacts;
mod compare;
mod crossings;
mod digest;
mod execution_details;
mod gzip;
mod inputs;
mod json;
mod kernel_map;
mod overlap_document;
mod places;
mod problems;
mod repair_report;
mod repair_rows;
mod repairer;
mod text_faults;

pub use ::trace::Details;
pub use analysis::{TraceReport, analyze, other_work};
pub use catalog::Category;
pub use compare::{
    Comparability, Comparison, DeltaRow, FuseDeltaRow, Guard, GuardRow, NotAnArtifact, Run,
    Sameness, compare, guard,
};
pub use crossings::{Crossings, crossings};
pub use decode::{
    Decoded, Decoder, DetailsReader, FileKind, NotATrace, Problem, ProblemKind, Severity, Source,
};
pub use execution_details::{NotDetails, details_of_capture, execution_details};
pub use inputs::{is_no_trace_by_name, rank, rank_of_name, signs};
pub use json::{BREAKDOWN_SCHEMA, REPAIR_LOG_SCHEMA, breakdown_json, repair_log_json};
pub use kernel_map::{
    KERNEL_MAP_VERSION, KernelMapFacts, NotAKernelMap, kernel_map_from_json, kernel_map_json,
};
pub use overlap_document::OverlapDocument;
pub use places::{DrawnLane, DrawnSlice, Fate, Place};
pub use problems::{ProblemRow, problem_table};
pub use repair::{PlanOptions, Prediction, RepairPlan, plan as plan_repair};
pub use repair_report::RepairReport;
pub use repair_rows::LogRow;
pub use repairer::{Output, Proof, ProofRow, Repairer, proof_table};
pub use timeline::Options;
pub use triage::{
    BeforeWindowSum, CallSite, CaptureFacts, CaptureUse, Concurrency, Confidence, Coverage,
    FuseRow, InstanceRow, KernelDetails, KernelKey, KernelMap, KernelTableRow, MappedByName,
    NextTo, OverlapContext, OverlapRow, OverlapWindow, RoleGuess, Signs, Sources, Stage, StageRow,
    TriageOptions, TriageReport, TriageSlices, WindowLane, WindowSlice, above_cutoff, gpu_text,
    guess_map, guess_roles, kernel_map, map_names, overlap_windows, triage, triage_kept,
    window_text,
};
pub use {report, trace};

/// Labels and meanings of the fixed words in tables.
pub mod words {
    pub use analysis::words::{category, category_title, family};
    pub use triage::words::{FUSE_STATUS, stage};
}

/// Version of Kinetoscope, as it stands in everything it writes.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
