//! The rows of the table, and its columns.

use report::{Cell, Column, Row, Unit};
use serde::Serialize;

use crate::priority::Priority;
use crate::stages::Stage;
use crate::words;
use analysis::columns;

/// The kernels that are fused or could be fused, in one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FuseRow {
    /// The stage.
    pub stage: Stage,
    /// The device's id.
    pub device: String,
    /// By `savings_pct`; `None` where the work is fused already.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub priority: Option<Priority>,
    /// The id of the pattern: `F01` to `F47` for fused kernels of frameworks, `K01` to `K18` for chains.
    pub pattern_id: String,
    /// What is fused.
    pub pattern: String,
    /// Whether the fused kernel runs.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub status: FuseStatus,
    /// Of the pattern, not of the gain.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub confidence: PatternConfidence,
    /// The wall time that goes away at most, in ns: an estimate. `None` where the work is fused already.
    pub savings_bound_ns: Option<i64>,
    /// That in percent of the GPU span of the device.
    pub savings_pct: Option<f64>,
    /// What the gain rests on.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub gain_confidence: Option<GainConfidence>,
    /// Time of the kernels concerned, in nanoseconds.
    pub related_ns: i64,
    /// That in percent of all GPU time of the stage.
    pub time_share_pct: f64,
    /// The lines of Python that launched them, most time first; empty if none is known.
    pub current_location: String,
    /// What would replace them.
    pub candidate_fused_path: String,
    /// What to do; empty where the work is fused already.
    pub action: String,
    /// How to check the result; empty where the work is fused already.
    pub check: String,
    /// Places where the parts are next to each other, and launches of the fused kernel.
    pub n_occurrences: u64,
    /// Up to three kernels with their share of the stage.
    pub evidence: Vec<String>,
    /// Why, in a few sentences.
    pub rationale: String,
    /// The part of the reason that names the kernels.
    #[serde(skip)]
    pub what: String,
    /// The row of the table of remedies; empty where nothing is advised.
    #[serde(skip)]
    pub remedy: &'static str,
    /// What the bound rests on; empty where nothing is advised.
    #[serde(skip)]
    pub estimate: String,
    /// GPU time that goes away, in ns; 0 where nothing is advised. More than the bound where something else holds what follows.
    #[serde(skip)]
    pub gone_ns: i64,
    /// Whether most of the bound is CPU time of launches.
    #[serde(skip)]
    pub is_mostly_launches: bool,
    /// Whether the row of another device has the same change and saves a larger share: the devices run one program.
    #[serde(skip)]
    pub repeats: bool,
    /// All stages where the same change acts; `None` where it acts in one stage only.
    #[serde(skip)]
    pub together: Option<Together>,
}

/// A change that acts in several stages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// How many.
    pub n_stages: usize,
    /// GPU time that goes away in all of them, in ns.
    pub gone_ns: i64,
    /// Whether this is the row of the stage in which most goes away.
    pub is_first: bool,
    /// The wall time that goes away in all of them at most, in ns.
    pub saved_ns: i64,
    /// That in percent of the GPU span of the device.
    pub saved_pct: f64,
}

/// Whether the fused kernel of a pattern runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuseStatus {
    /// It runs.
    AlreadyFused,
    /// Its parts run next to each other.
    Opportunity,
    /// It runs, and in other places its parts do.
    Partial,
}

impl FuseStatus {
    /// All of them.
    pub const EVERY: [Self; 3] = [Self::AlreadyFused, Self::Opportunity, Self::Partial];

    /// The word for it in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::AlreadyFused => "already_fused",
            Self::Opportunity => "opportunity",
            Self::Partial => "partial",
        }
    }
}

/// How sure it is that the kernels of a row belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternConfidence {
    /// The fused kernel runs, or all parts run in the order of the pattern.
    Confirmed,
    /// The trace cannot prove it.
    Candidate,
}

impl PatternConfidence {
    /// The word for it in artifacts and tables.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Confirmed => "Confirmed",
            Self::Candidate => "Candidate",
        }
    }
}

/// What a gain rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainConfidence {
    /// Launches are recorded.
    Estimate,
    /// They are not, so that waits for the CPU are not known.
    RoughEstimate,
}

impl GainConfidence {
    /// The words for it in artifacts and tables.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Estimate => "Estimate",
            Self::RoughEstimate => "Rough estimate",
        }
    }
}

impl FuseRow {
    /// Whether anything is advised.
    #[must_use]
    pub fn is_advice(&self) -> bool {
        self.priority.is_some()
    }

    /// Whether documents print it; the page and artifacts have all rows.
    #[must_use]
    pub fn is_printed(&self) -> bool {
        let is_much = self.saved_pct().is_some_and(|pct| pct >= PRINTED_PCT);
        self.is_advice() && !self.repeats && is_much
    }

    /// What the change saves in all stages, in percent of the GPU span of the device.
    pub(super) fn saved_pct(&self) -> Option<f64> {
        self.together.map(|all| all.saved_pct).or(self.savings_pct)
    }
}

/// A change that saves a smaller share of the GPU span is not printed, as it is no action of the diagnosis, in percent.
pub(crate) const PRINTED_PCT: f64 = 1.0;

/// What is missing where the work is fused already.
const FUSED: &str = "fused already";

impl Row for FuseRow {
    const SHOWN: &'static [&'static str] = &[
        "pattern",
        "stage",
        "device",
        "priority",
        "status",
        "savings_bound_ns",
        "savings_pct",
        "confidence",
        "current_location",
        "candidate_fused_path",
        "related_ns",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "The stage of the program.",
            cell: |row| words::of_stage(Some(row.stage)),
        },
        columns::device("The device that they ran on.", |row| row.device.as_str().into()),
        Column {
            key: "priority",
            title: "Priority",
            unit: Unit::Text,
            help: "By what it saves at most: P1 from 5% of the GPU span, P2 from 2%, P3 from 0.5%.",
            cell: |row| Cell::or_missing(row.priority, |priority| priority.id().into(), FUSED),
        },
        Column {
            key: "pattern_id",
            title: "Id",
            unit: Unit::Text,
            help: "The pattern's id: F for fused kernels of frameworks, K for chains of kernels.",
            cell: |row| row.pattern_id.as_str().into(),
        },
        Column {
            key: "pattern",
            title: "Pattern",
            unit: Unit::Text,
            help: "The kernels that are fused or could be fused.",
            cell: |row| row.pattern.as_str().into(),
        },
        Column {
            key: "status",
            title: "Status",
            unit: Unit::Text,
            help: "Whether the fused kernel runs already.",
            cell: |row| words::of_fuse_status(row.status).into(),
        },
        Column {
            key: "confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "Of the pattern, not of the gain. Confirmed: the fused kernel runs, or all parts run in the order of the pattern. Candidate: the trace cannot prove that they belong together.",
            cell: |row| row.confidence.id().into(),
        },
        Column {
            key: "savings_bound_ns",
            title: "Saves at most",
            unit: Unit::Time,
            help: "Upper bound on the wall time saved, an estimate: the exposed time of the kernels without what a fused kernel still takes. Where the GPU waits for the CPU: the CPU time of the launches that go away.",
            cell: |row| Cell::or_missing(row.savings_bound_ns, Cell::Ns, FUSED),
        },
        Column {
            key: "savings_pct",
            title: "Share of GPU span",
            unit: Unit::Percent,
            help: "Saves at most in percent of the GPU span: from the first start to the last end on the device, without an earlier step, idle time with work queued, set-up and one-off pauses.",
            cell: |row| Cell::or_missing(row.savings_pct, Cell::Percent, FUSED),
        },
        Column {
            key: "gain_confidence",
            title: "Confidence of gain",
            unit: Unit::Text,
            help: "Estimate: launches are recorded, so that waits for the CPU are known. Rough estimate: they are not.",
            cell: |row| Cell::or_missing(row.gain_confidence, |gain| gain.id().into(), FUSED),
        },
        Column {
            key: "related_ns",
            title: "Related time",
            unit: Unit::Time,
            help: "Time of the kernels concerned, only where they are next to each other. This is not a saving.",
            cell: |row| Cell::Ns(row.related_ns),
        },
        Column {
            key: "time_share_pct",
            title: analysis::columns::OF_STAGE_TIME,
            unit: Unit::Percent,
            help: "Related time in percent of the GPU time of the stage. This is not a saving.",
            cell: |row| Cell::Percent(row.time_share_pct),
        },
        Column {
            key: "current_location",
            title: "Python function",
            unit: Unit::Path,
            help: "The Python lines that launched these kernels, most time first.",
            cell: |row| match row.current_location.as_str() {
                "" => Cell::missing("not recorded"),
                location => location.into(),
            },
        },
        Column {
            key: "candidate_fused_path",
            title: "Replacement",
            unit: Unit::Text,
            help: "What would replace the kernels, or the files of the fused kernel.",
            cell: |row| row.candidate_fused_path.as_str().into(),
        },
        Column {
            key: "action",
            title: "What to do",
            unit: Unit::Text,
            help: "What to do first.",
            cell: |row| match row.action.as_str() {
                "" => Cell::missing(FUSED),
                action => action.into(),
            },
        },
        Column {
            key: "check",
            title: "How to check",
            unit: Unit::Text,
            help: "What a new trace shows if it worked.",
            cell: |row| match row.check.as_str() {
                "" => Cell::missing(FUSED),
                check => check.into(),
            },
        },
        Column {
            key: "n_occurrences",
            title: "Occurrences",
            unit: Unit::Count,
            help: "Places where the parts run next to each other, and launches of the fused kernel.",
            cell: |row| Cell::Count(row.n_occurrences),
        },
        Column {
            key: "evidence",
            title: "Evidence",
            unit: Unit::Text,
            help: "Up to three kernels with their share of the stage.",
            cell: |row| Cell::from(row.evidence.join("; ")),
        },
        Column {
            key: "rationale",
            title: "Why",
            unit: Unit::Text,
            help: "Which kernels follow which, how often, and what the estimate rests on.",
            cell: |row| row.rationale.as_str().into(),
        },
    ];
}
