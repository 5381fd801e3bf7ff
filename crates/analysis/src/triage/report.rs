//! Everything triage found, and how it reads.

use std::collections::BTreeMap;

use report::{Section, Table, units};
use serde::{Deserialize, Serialize};

use super::DeviceTables;
use super::arch::ObservedArch;
use super::framework::FrameworkVote;
use super::fuse::FuseRow;
use super::kernel_row::{FROM_ARGUMENTS, KernelTableRow, above_cutoff};
use super::overlap::{Concurrency, OverlapContext, OverlapRow};
use super::replay::{CaptureUse, Replayed};
use super::site::Confidence;
use super::stages::{Stage, StageRow, pace};
use crate::breakdown::MatrixRow;
use crate::percent;

/// Everything triage found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriageReport {
    /// The stages, in order.
    pub stages: Vec<StageRow>,
    /// Kernels by stage, most time first.
    pub kernels: Vec<KernelTableRow>,
    /// What is known of how kernels were launched and ops called.
    pub launch_note: String,
    /// What could run at the same time as something else.
    pub overlap: Vec<OverlapRow>,
    /// How that was judged, and where it could not be.
    pub overlap_note: String,
    /// What stands around the longest instance of each of these rows, beside `overlap`.
    pub contexts: Vec<OverlapContext>,
    /// How much ran at once.
    pub concurrency: Concurrency,
    /// What is fused and what could be.
    pub fuse: Vec<FuseRow>,
    /// What was left out of that.
    pub fuse_note: Option<String>,
    /// How GPU time was traced back.
    pub coverage: Coverage,
    /// What was launched before the window.
    pub before_window: BeforeWindowSum,
    /// What to know first, in sentences.
    pub takeaways: Vec<String>,
    /// The architecture that the trace shows.
    pub arch: ObservedArch,
    /// The framework that ran.
    pub framework: FrameworkVote,
}

/// GPU slices that were launched before the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeWindowSum {
    /// How many, on all devices.
    pub n_slices: u64,
    /// The sum of their durations, in ns.
    pub total_ns: i64,
    /// Whether the tables count them.
    pub counted: bool,
}

impl BeforeWindowSum {
    /// The sentence about them.
    fn sentence(&self) -> Option<String> {
        let what = units::plural(self.n_slices, "GPU slice was", "GPU slices were");
        let told = match (self.counted, self.n_slices) {
            (true, 1) => "is counted",
            (true, _) => "are counted",
            (false, 1) => "is left out",
            (false, _) => "are left out",
        };
        let time = units::time(self.total_ns);
        (self.n_slices > 0).then(|| {
            format!(
                "{what} launched before the window ({time}) and {told}: such work belongs to an earlier step."
            )
        })
    }
}

/// How much GPU time was traced back to where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// GPU time of all slices that the tables count, in ns.
    pub total_ns: i64,
    /// Of this, what an op is known of.
    pub op_ns: i64,
    /// From the first start to the last end of these slices, in ns; the sum over all devices.
    #[serde(default)]
    pub window_ns: i64,
    /// Of `window_ns`, in what nothing ran that the file shows, while launched work waited.
    #[serde(default)]
    pub held_ns: i64,
    /// Of `total_ns`, what a line of Python is known of.
    pub python_ns: i64,
    /// Of `python_ns`, what is work of the backward pass and has the line of its op in the forward pass.
    #[serde(default)]
    pub forward_ns: i64,
    /// GPU slices that graphs launched.
    pub graph_slices: u64,
    /// Of these, those whose op a capture or mapping trace told.
    pub graph_mapped: u64,
    /// Graph launches whose kernels are, name by name, those of a capture.
    pub identical_replays: u64,
    /// Graph launches.
    pub replays: u64,
    /// The capture traces that were given, and what each was used for.
    #[serde(default)]
    pub captures: Vec<CaptureUse>,
}

impl Coverage {
    /// Counts what graphs replayed on a device.
    pub(crate) fn add(&mut self, replayed: Replayed) {
        self.replays += replayed.graphs;
        self.identical_replays += replayed.identical;
        if self.captures.is_empty() {
            self.captures = replayed.captures;
            return;
        }
        for (all, of_device) in self.captures.iter_mut().zip(replayed.captures) {
            all.batch_size = of_device.batch_size.or(all.batch_size);
            all.replays += of_device.replays;
            all.tied += of_device.tied;
            all.by_batch += of_device.by_batch;
        }
    }

    /// The sentence about it.
    fn sentence(&self) -> Option<String> {
        if self.total_ns == 0 {
            return None;
        }
        let mut text = format!(
            "An op is known of {} of GPU time, a line of Python of {}.",
            units::percent(percent(self.op_ns, self.total_ns)),
            units::percent(percent(self.python_ns, self.total_ns))
        );
        if self.forward_ns > 0 {
            text.push_str(&format!(
                " {} of GPU time is work of the backward pass and has the line of its op in the forward pass.",
                units::percent(percent(self.forward_ns, self.total_ns))
            ));
        }
        if self.graph_slices > 0 && self.graph_mapped == 0 {
            text.push_str(&format!(
                " Graphs launched {}, of which only the graph's launch is known: a trace of its capture, or one \
                 without graphs, tells where each came from (on the command line: --capture, --mapping).",
                units::plural(self.graph_slices, "kernel", "kernels"),
            ));
        } else if self.graph_slices > 0 {
            text.push_str(&format!(
                " Graphs launched {}; {} of them were traced back through a capture or a mapping trace",
                units::plural(self.graph_slices, "kernel", "kernels"),
                units::count(self.graph_mapped),
            ));
            let whole = match self.replays {
                n if n == self.identical_replays => {
                    ", every replay equal to its capture name by name."
                }
                _ => ".",
            };
            text.push_str(whole);
        }
        Some(text)
    }

    /// Which capture told what, where captures were given.
    fn captures_sentence(&self) -> Option<String> {
        let name = |(at, capture): (usize, &CaptureUse)| capture.title(at);
        let all = || self.captures.iter().enumerate();
        let used: Vec<String> = all()
            .filter(|(_, capture)| capture.replays > 0)
            .map(|(at, capture)| {
                let n = units::plural(capture.replays, "graph launch", "graph launches");
                format!("{n} by {}", name((at, capture)))
            })
            .collect();
        let unused: Vec<String> =
            all().filter(|(_, capture)| capture.replays == 0).map(name).collect();
        let mut sentences = Vec::new();
        if !used.is_empty() {
            sentences.push(format!("Captures told {}.", used.join(", ")));
        }
        let sum = |of: fn(&CaptureUse) -> u64| self.captures.iter().map(of).sum::<u64>();
        match (sum(|of| of.tied), sum(|of| of.by_batch)) {
            (0, _) => {}
            (tied, by_batch) => sentences.push(format!(
                "Of {} several captures have the kernels; the batch size decided for {}, for the others the first \
                 capture was taken.",
                units::plural(tied, "launch", "launches"),
                units::count(by_batch),
            )),
        }
        if !unused.is_empty() {
            sentences.push(format!("No graph launch replays {}.", unused.join(", ")));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// What an empty table says.
const NOTHING: &str = "No GPU slice is in this trace.";

/// What the stages of a run sum up to.
const SUMS: [&str; 3] = ["n_slices", "n_kernels", "total_ns"];
/// Shares do on one device only: they are of the device's time.
const SUMS_AND_SHARE: [&str; 4] = ["n_slices", "n_kernels", "total_ns", "share_pct"];

/// Rows that Markdown prints of a table; the page and the artifacts have them all.
const PREVIEW: u32 = 40;

impl TriageReport {
    /// The rows of one stage; what is said of the whole run stays.
    #[must_use]
    pub fn only(mut self, stage: Stage) -> Self {
        self.stages.retain(|row| row.stage == stage);
        self.kernels.retain(|row| row.stage == stage.id());
        self.overlap.retain(|row| row.stage == stage);
        self.contexts.retain(|context| context.stage == stage);
        self.fuse.retain(|row| row.stage == stage.id());
        self
    }

    /// What to know first, with how much of GPU time has a line of Python where that is most of it.
    #[must_use]
    pub fn breakdown_takeaways(&self) -> Vec<String> {
        let Coverage { total_ns, python_ns, .. } = self.coverage;
        let mapped = percent(python_ns, total_ns);
        let mut said = self.takeaways.clone();
        if mapped >= 70.0 {
            said.push(format!(
                "A line of Python is known of {} of GPU time: kinetoscope triage shows which.",
                units::percent(mapped)
            ));
        }
        said
    }

    /// The rows of one device; what is said of the whole run stays.
    #[must_use]
    pub fn on_device(mut self, device: &str) -> Self {
        self.stages.retain(|row| row.device == device);
        self.kernels.retain(|row| row.device == device);
        // (A context has no device of its own: it stands beside its row.)
        let mut rows = self.overlap.iter();
        self.contexts.retain(|_| rows.next().is_some_and(|row| row.device == device));
        self.overlap.retain(|row| row.device == device);
        self.fuse.retain(|row| row.device == device);
        self
    }

    /// How much each category takes of each family, most time first: which library the work is from.
    #[must_use]
    pub fn matrix(&self) -> Table {
        let mut sums: BTreeMap<(&str, &str), (i64, u64)> = BTreeMap::new();
        let mut all_ns = 0_i64;
        for row in &self.kernels {
            let (total_ns, n) = sums.entry((&row.category, &row.family)).or_default();
            *total_ns = total_ns.saturating_add(row.total_ns);
            *n += row.launches;
            all_ns = all_ns.saturating_add(row.total_ns);
        }
        let row =
            |((category, family), (total_ns, n_slices)): ((&str, &str), (i64, u64))| MatrixRow {
                category: category.to_owned(),
                family: family.to_owned(),
                total_ns,
                share_pct: percent(total_ns, all_ns),
                n_slices,
            };
        let mut rows: Vec<MatrixRow> = sums.into_iter().map(row).collect();
        trace::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.total_ns));
        Table::of("matrix", "Categories by family", &rows)
            .summing(&["total_ns", "share_pct", "n_slices"])
            .preview(PREVIEW)
            .when_empty(NOTHING)
    }

    /// The devices that did anything, in order.
    #[must_use]
    pub fn devices(&self) -> Vec<&str> {
        let mut devices: Vec<&str> = self.stages.iter().map(|row| row.device.as_str()).collect();
        devices.dedup();
        devices
    }

    /// The report as chapters. Kernels below `cutoff_pct` of their stage are summed up in one row.
    #[must_use]
    pub fn sections(&self, cutoff_pct: f64) -> Vec<Section> {
        // Architecture and framework stand among the facts of the run, beside these chapters.
        let Self {
            stages,
            kernels,
            launch_note,
            overlap,
            overlap_note,
            // Shown beside a row, on the page and by `kinetoscope overlap`.
            contexts: _,
            concurrency: _,
            fuse,
            fuse_note,
            coverage,
            before_window,
            takeaways,
            arch: _,
            framework: _,
        } = self;
        let several = self.devices().len() > 1;
        let table_of = |table: Table| if several { table } else { table.without("device") };

        let mut triage = Section::new("triage", "Triage");
        triage.intro.extend(takeaways.iter().cloned());
        triage.intro.extend(coverage.sentence());
        triage.intro.extend(coverage.captures_sentence());
        triage.tables.push(
            table_of(Table::of("stages", "Stages", stages))
                .summing(if several { &SUMS } else { &SUMS_AND_SHARE })
                .when_empty(NOTHING),
        );

        let mut table = Section::new("kernel-table", "Kernel table");
        table
            .intro
            .push("Share is of the summed GPU time of the stage, not of wall time.".to_owned());
        table.intro.extend(before_window.sentence());
        table.intro.push(launch_note.clone());
        table.tables.push(
            table_of(Table::of("kernel-table", "Kernels", &above_cutoff(kernels, cutoff_pct)))
                .without_missing(FROM_ARGUMENTS)
                .summing(&["total_ns", "launches"])
                .preview(PREVIEW)
                .when_empty(NOTHING),
        );

        let mut chances = Section::new("overlap", "Overlap opportunities");
        if !overlap_note.is_empty() {
            chances.intro.push(overlap_note.clone());
        }
        chances.tables.push(
            table_of(Table::of("overlap", "Overlap opportunities", overlap))
                .preview(PREVIEW)
                .when_empty("Nothing takes enough exposed time to be worth moving."),
        );
        let mut patterns = Section::new("fuse", "Fuse opportunities");
        patterns.intro.extend(fuse_note.iter().cloned());
        patterns.tables.push(
            table_of(Table::of("fuse", "Fuse opportunities", fuse))
                .preview(PREVIEW)
                .when_empty("No chain of kernels that a fused one is known for."),
        );
        vec![triage, table, chances, patterns]
    }
}

/// What to know first.
pub(super) fn takeaways(
    DeviceTables { stages, kernels, fuse, .. }: &DeviceTables,
    spans_ns: &[i64],
    coverage: &Coverage,
    tp: Option<u32>,
) -> Vec<String> {
    let mut said = Vec::new();
    if coverage.total_ns == 0 {
        return said;
    }
    let mut categories: Vec<(&str, i64)> = Vec::new();
    for row in kernels {
        match categories.iter_mut().find(|(id, _)| *id == row.category) {
            Some((_, ns)) => *ns = ns.saturating_add(row.total_ns),
            None => categories.push((&row.category, row.total_ns)),
        }
    }
    trace::sort_by(&mut categories, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let share = |ns: i64| units::percent(percent(ns, coverage.total_ns));
    match categories.as_slice() {
        [(first, ns), (second, more), ..] => said.push(format!(
            "Most GPU time goes to {first}, {}; with {second} it is {}.",
            share(*ns),
            share(ns.saturating_add(*more))
        )),
        [(first, ns)] => said.push(format!("All GPU time goes to {first}: {}.", share(*ns))),
        [] => {}
    }
    if coverage.held_ns > 0 {
        let gpus = match spans_ns {
            [_] => "the GPU".to_owned(),
            several => format!("{} GPUs together", several.len()),
        };
        said.push(format!(
            "For {} {gpus} did nothing that this file shows, while launched work waited: what ran is not in the file, or \
             an event held it. Of this time the busy share says nothing.",
            units::time(coverage.held_ns)
        ));
    }
    let communication = categories.iter().find(|(id, _)| *id == "communication");
    if let Some((_, ns)) = communication
        && percent(*ns, coverage.total_ns) >= 10.0
    {
        let ranks = match tp {
            Some(tp) if tp > 1 => format!(", over {tp} tensor-parallel ranks"),
            _ => String::new(),
        };
        said.push(format!(
            "Communication between GPUs takes {}{ranks}. Part of it may be the wait for the slowest rank, which the \
             trace of one rank cannot tell.",
            share(*ns)
        ));
    }
    let window_ns = spans_ns.iter().copied().fold(0, i64::saturating_add);
    let parallel = percent(coverage.total_ns, window_ns) / 100.0;
    if parallel >= 1.15 {
        let windows = match spans_ns {
            [_] => "the GPU's window".to_owned(),
            several => format!("the windows of {} GPUs", several.len()),
        };
        said.push(format!(
            "Durations sum to {parallel:.2} times {windows}: shares are of that sum, not of wall time."
        ));
    }
    said.extend(stages.iter().filter_map(|row| launch_bound(row, spans_ns.len() > 1)));
    if let Some(best) =
        fuse.iter().filter(|row| row.status != "already_fused").max_by_key(|row| row.related_ns)
    {
        said.push(format!(
            "The largest chance to fuse is {} ({} of all GPU time, {}).",
            best.pattern,
            share(best.related_ns),
            best.confidence.to_lowercase(),
        ));
    }
    said
}

/// That the launches of a stage are its limit, with the figures that say so.
fn launch_bound(row: &StageRow, several: bool) -> Option<String> {
    let (wait_ns, kernel_ns) = (row.wait_p50_ns?, row.kernel_p50_ns?);
    row.launch_bound.filter(|bound| *bound)?;
    let device = if several { format!(" on device {}", row.device) } else { String::new() };
    let what = match row.stage {
        Stage::All => format!("The work{device}"),
        stage => format!("Stage {}{device}", stage.title()),
    };
    let begins = match wait_ns {
        0.. => format!("{} after", units::time(wait_ns)),
        _ => format!("{} before", units::time(wait_ns.saturating_neg())),
    };
    Some(format!(
        "{what} is probably launch-bound: the GPU is busy {} of the time, the median kernel takes {} and begins {begins} \
         its launch call is over. (A rule of thumb: below {}, {} and {}.)",
        units::percent(row.gpu_busy_pct),
        units::time(kernel_ns),
        units::percent(pace::BUSY_PCT),
        units::time(pace::KERNEL_NS),
        units::time(pace::WAIT_NS),
    ))
}

/// Whether an op is known of a place of this confidence.
pub(super) fn knows_op(confidence: Confidence) -> bool {
    !matches!(confidence, Confidence::Launch | Confidence::None)
}
