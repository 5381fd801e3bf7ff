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

pub use ::lanes;
pub use ::lanes::lanes_of;
pub use ::trace::Details;
pub use analysis::{TraceReport, analyze, other_work, summed};
pub use artifacts::{
    BREAKDOWN_SCHEMA, CPU_SCHEMA, Comparability, Comparison, DeltaRow, FuseDeltaRow, Guard,
    GuardRow, KERNEL_MAP_VERSION, KernelMapFacts, NotAKernelMap, NotAnArtifact, NotDetails,
    OverlapDocument, Run, Sameness, VERSION, breakdown_json, compare, cpu_json, details_of_capture,
    execution_details, guard, is_no_trace_by_name, kernel_map_from_json, kernel_map_json, rank,
    rank_of_name, signs,
};
pub use catalog::Category;
pub use decode::{
    Counters, CountersReader, Decoded, Decoder, DetailsReader, NotATrace, Problem, ProblemKind,
    Severity, Source,
};
pub use diagnosis::{
    Action, Diagnosis, Facts, Finding as DiagnosisFinding, Iteration, Iterations, ScalingRow,
    StageWall, WallPart, WallRow, WallTimes, diagnose, diagnose_ranks, diagnosis_json, scaling,
    scaling_section,
};
pub use host::benchmark::{Benchmark, NoScript, all_benchmarks, benchmark_script};
pub use host::memory_over_time::{MemoryChange, MemoryOverTime, memory_over_time};
pub use host::{HostIndex, HostReport, host, wants_inputs};
pub use ingest::{FileKind, NotText, Reader, text_of_file};
pub use joint::{SameRun, device_name, same_run, timeline_of_events};
pub use ranks::{OneRun, RankCalls, Runs};
pub use repair::{PlanOptions, Prediction, RepairPlan, plan as plan_repair};
/// What a plan changes.
pub mod plan {
    pub use repair::{Action, Lane, LaneKind, Rule};
}
pub use repaired::{
    Crossings, DrawnLane, DrawnSlice, Fate, LogRow, Output, Place, ProblemRow, Proof, ProofRow,
    REPAIR_LOG_SCHEMA, RepairReport, Repairer, crossings, problem_table, proof_table,
    repair_log_json,
};
pub use scene;
/// Questions about a memory snapshot while a person looks at its pictures.
pub mod memory {
    pub use snapshot::{
        By, Chart, Column, Comparison, DeviceOverTime, Explorer, Held, Layer, Mark, OverTime,
        Range, RunFacts, Stacking, Step, Summary, Walk, compare, complete, figures, run_facts,
    };
}
pub use snapshot::{
    AllocatorState, MemoryTimeline, NotASnapshot, NotATimeline, Reader as SnapshotReader, Snapshot,
    SnapshotReport, TimelineReader, TimelineReport, analyze as analyze_snapshot, state_before,
};
pub use timeline::narrow::narrow;
pub use timeline::{Options, absolute_ns, since_1970};
pub use triage::{
    BeforeWindowSum, CallSite, CaptureFacts, CaptureUse, CategoryReason, Concurrency, Confidence,
    Coverage, Elsewhere, FuseRow, InstanceRow, KernelDetails, KernelKey, KernelLine, KernelMap,
    KernelTableRow, MappedByName, NextTo, Note, OverlapContext, OverlapRow, OverlapWindow,
    RoleGuess, Signs, Sources, Stage, StageRow, TriageOptions, TriageReport, TriageSlices,
    WindowLane, WindowSlice, above_cutoff, gpu_text, guess_map, guess_roles, kernel_map, map_names,
    overlap_windows, triage, triage_kept, window_text,
};
pub use {artifacts, report, trace};

/// Labels and meanings of the fixed words in tables.
pub mod words {
    pub use analysis::words::{category, category_title, family};
    pub use triage::words::stage;
}
