//! Results of the analyses and of triage.

use std::borrow::Cow;

use kinetoscope::report::drawing::{Drawing, Element};
use kinetoscope::report::{Finding, Section, Table};
use kinetoscope::{BeforeWindowSum, CaptureUse, MappedByName};
use serde::{Deserialize, Serialize};

use crate::shared::Shared;

/// The results of the analyses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analyses {
    /// What recorded it: "CUDA 12.4".
    pub platform: String,
    /// The rank that the file says it is from.
    pub rank: Option<i64>,
    /// The finding in one sentence.
    pub verdict: String,
    /// GPUs.
    pub n_gpus: u64,
    /// Time in which the GPU did something, in percent of its span, of several GPUs summed; `None` without GPU slices.
    pub busy_pct: Option<f64>,
    /// From the first start to the last end of a GPU slice.
    pub span_ns: i64,
    /// Time in which the GPU did something, of several GPUs summed.
    pub busy_ns: i64,
    /// Kernels.
    pub n_kernels: u64,
    /// Distinct names of kernels.
    pub n_kernel_names: u64,
    /// Sum of their durations.
    pub kernel_sum_ns: i64,
    /// Parts of the stacked bar, largest first.
    pub parts: Shared<Vec<Part>>,
    /// The chapters of the report.
    pub chapters: Vec<Chapter>,
}

impl Analyses {
    /// The chapter of that id.
    #[must_use]
    pub fn chapter(&self, id: &str) -> Option<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }
}

/// The results of triage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Triage {
    /// The stages that have GPU work, in order.
    pub stages: Shared<Vec<Choice>>,
    /// The devices that have GPU work, in order.
    pub devices: Shared<Vec<Choice>>,
    /// Work that was launched before profiling started, on all devices.
    pub before_window: BeforeWindowSum,
    /// Whether any GPU time maps to an op; without, a kernel map would be empty.
    pub has_ops: bool,
    /// Time in which the GPU was idle with work queued, in ns: the busy share is not meaningful then.
    pub blocked_ns: i64,
    /// Of the first sentences those on idle time, which a diagnosis tells, too.
    pub idle_sentences: Vec<String>,
    /// What the recording lacks.
    pub lacks: Lacks,
    /// What each capture trace was used for.
    pub captures: Vec<CaptureUse>,
    /// What the mapping trace mapped, if there is one.
    pub by_mapping: Option<MappedByName>,
    /// What the kernel map mapped, if there is one.
    pub by_map: Option<MappedByName>,
    /// The chapters of the report.
    pub chapters: Vec<Chapter>,
}

impl Triage {
    /// The chapter of that id.
    #[must_use]
    pub fn chapter(&self, id: &str) -> Option<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }
}

/// Why a run is slow, and what to do first; and the tables of the CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The first sentence.
    pub headline: Option<String>,
    /// Where the wall time of each device goes.
    pub bars: Vec<Bar>,
    /// What to do, the most wall time first.
    pub actions: Vec<Finding>,
    /// What to say where there is nothing.
    pub without_actions: String,
    /// Costs that the rules found: what each is about, what the file shows, what that means.
    pub findings: Vec<[String; 3]>,
    /// What else to mind, in the same parts.
    pub baseline: Vec<[String; 3]>,
    /// The steps that it can be narrowed to; empty where it is narrowed.
    pub steps: Vec<StepWindow>,
    /// The memory of each device over time, for the program that draws it; empty where it is narrowed, or not recorded.
    pub memory: Vec<u8>,
    /// What the program that draws lanes does not find out by itself: why each device stands still, memory, places of replayed kernels;
    /// empty where it is narrowed.
    pub told: Vec<u8>,
    /// What is to be added to the times of each other rank, in ns, so that its collectives end with those of the own one; in the order of
    /// [`super::Request::OtherRanks`], and empty where it is narrowed.
    pub clocks: Vec<i64>,
    /// The run as one of several with batches of other sizes, for [`super::Request::OtherRanks`]: empty where it is narrowed, or the size
    /// of its batch is not recorded. Begins with 8 bytes for the kind of its inputs and 4 for that size.
    pub scaling: Shared<Vec<u8>>,
    /// The triage of the step that it is narrowed to.
    pub triage: Option<Box<Triage>>,
    /// The chapters of the report.
    pub chapters: Vec<Chapter>,
}

impl Diagnosis {
    /// The chapter of that id.
    #[must_use]
    pub fn chapter(&self, id: &str) -> Option<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }
}

/// A step, pass or range that the diagnosis can be narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWindow {
    /// Its name in the file.
    pub name: String,
    /// Its start, in ns on the clock of the trace.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
}

/// The wall time of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// What the bar is of: "Device 2, 44.1 ms of steps".
    pub title: String,
    /// The device.
    pub device: String,
    /// The stage; `None` for all of them.
    pub stage: Option<String>,
    /// Its parts; they add up to 100%.
    pub parts: Vec<Part>,
}

/// What was switched off while recording, so that columns are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacks {
    /// No Python stacks.
    pub stacks: bool,
    /// No input shapes of ops.
    pub shapes: bool,
}

/// A stage or a device that tables can be narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Its id, as it stands in the tables.
    pub id: String,
    /// What a person reads.
    pub title: String,
    /// Its share of GPU time, in percent.
    pub share_pct: f64,
}

/// A [`Section`] whose tables the components can hold on to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chapter {
    /// Stable id: `kernels`.
    pub id: Cow<'static, str>,
    /// The heading.
    pub title: Cow<'static, str>,
    /// Sentences under it.
    pub intro: Vec<String>,
    /// Pictures of the evidence.
    pub drawings: Shared<Vec<Picture>>,
    /// The evidence.
    pub tables: Vec<Shared<Table>>,
    /// What follows from it.
    pub findings: Vec<Finding>,
}

impl Chapter {
    /// The table of that id.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&Shared<Table>> {
        self.tables.iter().find(|table| table.id == id)
    }
}

impl From<Section> for Chapter {
    /// Without its drawings: what makes them is only in the program that has some ([`Chapter::drawn`]).
    fn from(section: Section) -> Self {
        let Section { id, title, intro, drawings: _, tables, findings } = section;
        let tables = tables.into_iter().map(Shared::new).collect();
        Self { id, title, intro, drawings: Shared::default(), tables, findings }
    }
}

impl Chapter {
    /// A section with its drawings.
    #[must_use]
    pub fn drawn(mut section: Section) -> Self {
        let drawings = std::mem::take(&mut section.drawings).into_iter().map(Picture::from);
        let drawings = Shared::new(drawings.collect());
        Self { drawings, ..Self::from(section) }
    }
}

/// A [`Drawing`] as the elements that show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Stable id.
    pub id: String,
    /// What it is of.
    pub title: String,
    /// What it shows, for people who do not see it.
    pub says: String,
    /// Its canvas.
    pub view_box: String,
    /// From back to front.
    pub elements: Vec<Element>,
    /// Categories and their labels.
    pub legend: Vec<(String, String)>,
}

impl From<Drawing> for Picture {
    fn from(drawing: Drawing) -> Self {
        let (view_box, elements) = (drawing.view_box(), drawing.elements());
        let Drawing { id, title, says, legend, .. } = drawing;
        let legend = legend.into_iter().map(|entry| (entry.category.into_owned(), entry.label));
        let (id, legend) = (id.into_owned(), legend.collect());
        Self { id, title, says, view_box, elements, legend }
    }
}

/// A part of the stacked bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Category, or part of the wall time.
    pub category: String,
    /// What a person reads.
    pub title: String,
    /// What it is, in a phrase; empty where the title says it.
    pub meaning: String,
    /// Its time.
    pub total_ns: i64,
    /// Its share of the kernels' time, in percent.
    pub share_pct: f64,
}

/// What [`Diagnosis::scaling`] begins with. What is written down of a rank does not: that begins with the length of its number.
pub const RUN: u8 = 0xFF;

/// Whether what a worker wrote down for others is of a run, not of a rank.
#[must_use]
pub fn is_run(bytes: &[u8]) -> bool {
    bytes.first() == Some(&RUN)
}
