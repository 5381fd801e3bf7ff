//! Why a run is slow, and what to do first: rules over the figures of the host and of triage.
//!
//! Constraints of this crate:
//!
//! * a rule is a file in `rules/` with one function from [`Facts`] to findings; it reads figures and computes none that another
//!   table has, too;
//! * nothing is advised without a figure of the file that shows it, and every bound is wall time of the file;
//! * a finding that the file cannot settle has low confidence and names what would settle it;
//! * ids of rules and verdicts are a contract (docs/formats.md); sentences are not.

mod actions;
mod alike;
mod devices;
mod document;
mod each_rank;
mod facts;
mod finding;
mod headline;
mod iterations;
mod module_tree;
mod rules;
mod scaling;
mod sections;
mod words;

use catalog::Platform;

pub use actions::{Action, Place, Whole};
pub use document::diagnosis_json;
pub use each_rank::diagnose_ranks;
pub use facts::Facts;
pub use finding::{Evidence, Finding, Level, Rule};
pub use iterations::{Class, Cold, Input, Iteration, Iterations, Kind, OnlyWaits, Slowest};
pub use module_tree::{ModuleTree, TreeRow};
pub use report::Confidence;
pub use scaling::{RunKind, ScalingRow, scaling, scaling_section};
pub use triage::{StageWall, WallPart, WallRow, WallTimes};

/// A saving of less than this share of the wall time is within the noise of any two runs: no report has it, the JSON does.
pub(crate) const WITHIN_NOISE: f64 = 0.001;

/// Copies of which nothing is known but their time are told from this part of the wall time on.
const CAUSELESS: f64 = 0.05;

/// A part of the wall time is worth the first sentence from this share of the window on, in percent.
pub(crate) const LEAST_PCT: f64 = 10.0;

/// What is said of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnosis {
    /// The first sentence: what a person would repeat to a colleague. `None` where the file shows nothing worth one.
    pub headline: Option<String>,
    /// Where the wall time of each device goes; the parts of a device add up to its window.
    pub wall: Vec<WallRow>,
    /// By device: iterations left out of its bar as cold, and all of them. A device whose bar is of the whole window has none.
    pub left_out: Vec<(String, (usize, usize))>,
    /// The same of each stage; empty where no device has several.
    pub wall_stages: Vec<StageWall>,
    /// The iterations, where the file has any.
    pub iterations: Option<Iterations>,
    /// The modules, where their frames are recorded.
    pub modules: Option<ModuleTree>,
    /// By rule, in the order of the rules.
    pub findings: Vec<Finding>,
    /// What to do, the most wall time first.
    pub actions: Vec<Action>,
    /// Whose GPU it is.
    pub platform: Platform,
}

impl Diagnosis {
    /// The rows of each device's bar, and what they are of: "Device 2: 44.1 ms of steps".
    ///
    /// [`Diagnosis::stage_bars`] has the same of each stage.
    pub fn bars(&self) -> impl Iterator<Item = (String, &[WallRow])> {
        self.wall.chunk_by(|a, b| a.device == b.device).filter_map(|rows| {
            let first = rows.first()?;
            let window = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
            let left_out = self.left_out.iter().find(|(device, _)| *device == first.device);
            let of = match left_out {
                Some((_, (cold, all))) => format!("of {} warm iterations", all - cold),
                None if first.of_steps => "of steps".to_owned(),
                None => "from the first GPU work to the last".to_owned(),
            };
            let device = match first.device.as_str() {
                "" => String::new(),
                id => format!("Device {id}: "),
            };
            Some((format!("{device}{} {of}", report::units::time(window)), rows))
        })
    }

    /// The bar of each stage, and what it is of: "Device 2: 12.1 ms, 42.5% of its span".
    pub fn stage_bars(&self) -> impl Iterator<Item = (String, &StageWall)> {
        let several = self.wall_stages.windows(2).any(|pair| pair[0].device != pair[1].device);
        self.wall_stages.iter().map(move |wall| {
            let device = if several { format!("Device {}: ", wall.device) } else { String::new() };
            let time = report::units::time(wall.total_ns);
            let share = report::units::percent(wall.share_pct);
            (format!("{device}{time}, {share} of the wall time"), wall)
        })
    }
}

impl Diagnosis {
    /// The findings that neither the first sentence, nor an action, nor another finding has said already, and that something follows
    /// from: those that cost time, and what else to mind, each kind once for all devices. `findings` has all.
    #[must_use]
    pub fn further(&self) -> (Vec<Finding>, Vec<Finding>) {
        let headline = self.headline.as_deref().unwrap_or_default();
        let is_said = |finding: &Finding| {
            let bare = finding.observation.split_once(": ");
            let bare = bare.filter(|(of, _)| of.starts_with("Device")).map(|(_, text)| text);
            headline.contains(bare.unwrap_or(&finding.observation))
                || self.actions.iter().any(|action| {
                    action.rule == finding.rule.id()
                        && action.device == finding.device
                        && action.observation == finding.observation
                })
        };
        let rest = self.findings.iter().filter(|finding| !is_said(finding));
        let rest = rest.filter(|finding| !self.is_implied(finding)).cloned();
        let (costs, figures) = rest.partition(|finding| !finding.is_baseline());
        (devices::once(costs), alike::in_ranges(figures))
    }

    /// What it would save at most, as a part of the longest bar; 1 without a bound.
    fn part_of_wall(&self, finding: &Finding) -> f64 {
        let whole_ns = self
            .bars()
            .map(|(_, rows)| rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns)));
        let whole_ns = whole_ns.max().unwrap_or_default();
        finding.bound_ns.map_or(1.0, |ns| ns as f64 / whole_ns.max(1) as f64)
    }

    /// Whether it bounds a saving that no two runs would show. (The bound of a device that waits for others is not that of the waiting.)
    fn is_little(&self, finding: &Finding) -> bool {
        finding.verdict != "waiting" && self.part_of_wall(finding) < WITHIN_NOISE
    }

    /// Whether it follows from what else is said of the device, or changes nothing: figures without a consequence, that kernels are short
    /// beside an action against launches, what lies outside modules beside their table, one step, and what its rule has set aside. The
    /// JSON has all.
    fn is_implied(&self, finding: &Finding) -> bool {
        let is_of_device = |device: &Option<String>| *device == finding.device;
        // (Without wall time nothing else has the busy share.)
        let is_figure = finding.is_aside || !finding.has_consequence() || self.is_little(finding);
        if is_figure
            && (!self.wall.is_empty() || (finding.rule, finding.verdict) != (Rule::Busy, "unknown"))
        {
            return true;
        }
        match (finding.rule, finding.verdict) {
            (Rule::ShortKernels, _) => {
                let mut launches =
                    self.actions.iter().filter(|action| action.rule == Rule::LaunchBound.id());
                launches.any(|action| is_of_device(&action.device))
            }
            // (What a graph launched has no op and no module: the table of graphs, and triage, say so.)
            (Rule::Modules | Rule::Flops, "not_coverable") => true,
            (Rule::Modules, "outside_modules") => self.modules.is_some(),
            // (The table of iterations has the figures.)
            (Rule::Steps, "few" | "some" | "many") => self.iterations.is_some(),
            // (Without a cause nothing follows from a small bound.)
            (Rule::Copies, _) => {
                finding.meaning.is_empty() && self.part_of_wall(finding) < CAUSELESS
            }
            // (The actions against waits for values are about these reads.)
            (Rule::Reads, "reads_gpu") => {
                let is_it = |action: &Action| ["fewer-waits", "copy-once"].contains(&action.remedy);
                self.actions.iter().any(is_it)
            }
            // (The first sentence names it, and says to warm up; what TorchScript needs, it does not say.)
            (Rule::Compilation, verdict) if verdict != "torchscript" => {
                let what = rules::compilation::clause_of(verdict);
                let is_cold = |one: &Finding| one.rule == Rule::ColdStart;
                let said = self.headline.as_deref().unwrap_or_default();
                self.findings.iter().any(is_cold) && what.is_some_and(|what| said.contains(what))
            }
            // (The headline says what the gaps are.)
            (Rule::Gaps, _) => {
                let is_it = |one: &&Finding| one.rule == Rule::Busy && one.verdict == "unknown";
                let is_told = |said: &String| said.contains(headline::BLOCKED);
                self.bars().count() == 1 && self.headline.as_ref().is_some_and(is_told)
                    || self.findings.iter().filter(is_it).any(|one| is_of_device(&one.device))
            }
            // (The headline says it, or the CPU's times are not what the run waits for.)
            (Rule::Profiler, "inflated") => {
                let is_said = |said: &String| {
                    [
                        headline::STACKS,
                        headline::SLOWED,
                        headline::SLOWED_PYTHON,
                        headline::QUEUED,
                        facts::SLOWS,
                    ]
                    .into_iter()
                    .any(|slowed| said.contains(slowed))
                };
                self.headline.as_ref().is_some_and(is_said) || !self.waits_for_the_cpu()
            }
            (Rule::Steps, "single") => true,
            _ => false,
        }
    }

    /// Whether parts of the wall time that recording makes longer are large enough for the first sentence, or the GPU runs dry although
    /// its work is launched ahead. Where no wall time is known, the CPU's times are all that there is.
    fn waits_for_the_cpu(&self) -> bool {
        let of_cpu = |rows: &[WallRow]| {
            let rows = rows.iter().filter(|row| headline::is_of_cpu(row.part));
            rows.map(|row| row.share_pct).sum::<f64>() >= LEAST_PCT
        };
        let runs_dry = || self.iterations.as_ref().is_some_and(|of| of.pace.is_some());
        self.wall.is_empty() || runs_dry() || self.bars().any(|(_, rows)| of_cpu(rows))
    }

    /// The actions, each once for all devices. `actions` has all.
    #[must_use]
    pub fn told_actions(&self) -> Vec<Action> {
        devices::once(self.actions.clone())
    }
}

/// Applies every rule. Of a file with several ranks [`diagnose_ranks`] does so for each by itself.
#[must_use]
#[inline(never)]
pub fn diagnose(facts: &Facts<'_>) -> Diagnosis {
    let findings = rules::all(facts);
    let actions = actions::ranked(facts, &findings);
    let headline = headline::headline(facts, &findings);
    // (While a graph is captured, the GPU has nothing to do.)
    let wall = if facts.is_capture() { Vec::new() } else { facts.wall.clone() };
    let wall_stages = if facts.is_capture() { Vec::new() } else { facts.wall_stages.clone() };
    let iterations = facts.iterations.clone();
    let bars = wall.chunk_by(|a, b| a.device == b.device).filter_map(<[WallRow]>::first);
    let of_device = |row: &WallRow| Some((row.device.clone(), facts.left_out()?));
    let left_out = bars.filter_map(of_device).collect();
    let modules = facts.modules.clone();
    let platform = facts.triage.run_facts.platform;
    Diagnosis {
        headline,
        wall,
        wall_stages,
        left_out,
        iterations,
        modules,
        findings,
        actions,
        platform,
    }
}
