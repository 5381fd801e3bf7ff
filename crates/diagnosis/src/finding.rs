//! What a rule says.

use report::Confidence;
use serde::Serialize;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $id:literal $title:literal;)*) => {
        /// A rule. The ids are those of the methodology.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// Every rule, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The id in files.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// What a person reads.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

rules! {
    /// How busy each device is.
    Busy "M1" "GPU busy";
    /// Whether launches limit.
    LaunchBound "M2" "Limited by launches";
    /// Whether other work of the host limits.
    HostBound "M3" "Limited by the CPU";
    /// Gaps between GPU slices.
    Gaps "M4" "GPU gaps";
    /// Calls that wait for the GPU.
    Sync "M5" "Waiting for the GPU";
    /// Ops that read from the GPU.
    Reads "M6" "Values read from the GPU";
    /// Copies and what they are for.
    Copies "M7" "Copies";
    /// First calls.
    ColdStart "M8" "Cold start";
    /// The data loader.
    DataLoader "M9" "Data loading";
    /// Communication that nothing hides.
    Communication "M10" "Exposed communication";
    /// The rank for which others wait.
    LateRank "late_rank" "A rank that comes late";
    /// Allocations.
    Allocator "M11" "Allocations";
    /// Memory.
    Memory "M12" "Memory";
    /// Durations of steps.
    Steps "M13" "Steps";
    /// Floating point operations.
    Flops "M14" "Floating point operations";
    /// Modules.
    Modules "M15" "Modules";
    /// Short kernels.
    ShortKernels "M16" "Short kernels";
    /// Graphs.
    Graphs "M17" "Graphs";
    /// Compilation in the window.
    Compilation "M18" "Compilation and loading";
    /// Number formats.
    Precision "M19" "Number format";
    /// Kernels that do not fill the device.
    Occupancy "M20" "Grids smaller than the GPU";
    /// Ops at the bandwidth of memory.
    Bandwidth "M21" "Limited by memory bandwidth";
    /// The profiler's own cost.
    Profiler "M23" "Cost of profiling";
    /// Work on 64-bit floats.
    Doubles "M24" "64-bit floats";
    /// A tensor that is copied each time it grows.
    GrowingCat "M25" "A tensor that grows";
    /// Kernels that do not suit the device or the shapes.
    KernelChoice "kernel_choice" "Kernels that do not suit the GPU or the sizes";
    /// Functions of libraries that cost time for a known reason.
    KnownCode "known_code" "Code with a known cost";
    /// Equal kernels that take a different time.
    EqualKernels "equal_kernels" "Equal work, different times";
    /// Work that was launched before profiling started.
    Orphans "orphans" "Work without its launch";
    /// Launches of which the work is missing.
    Lost "lost" "Work that is not in the file";
    /// Work that begins before its launch.
    Clocks "clocks" "Clocks of CPU and GPU";
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.id())
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It costs a large part of the run.
    High,
    /// It costs a part that is worth a change.
    Medium,
    /// It costs little.
    Low,
    /// A fact that other findings need.
    Info,
}

impl Level {
    /// By the share of the run that goes away at most.
    #[must_use]
    pub(crate) fn of_share(share: f64) -> Self {
        match share {
            share if share >= 0.2 => Self::High,
            share if share >= 0.05 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Where the figure stands in `kinetoscope cpu --json`, or `triage` for the tables of triage.
    pub path: String,
    /// What it is.
    pub what: String,
    /// The figure, as it is printed.
    pub value: String,
}

/// What a rule says of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What it found: an id of the rule.
    pub verdict: &'static str,
    /// How much it matters.
    pub level: Level,
    /// High: every term is measured. Medium: one is inferred. Low: a hypothesis, and the sentence names what would settle it.
    pub confidence: Confidence,
    /// The device, where it is about one.
    pub device: Option<String>,
    /// Wall time of the recording that goes away at most, in ns. `None` where nothing would, or it cannot be told.
    pub bound_ns: Option<i64>,
    /// What the file shows, in a sentence.
    pub observation: String,
    /// What follows: what to do or to mind, or what would settle it. Empty where nothing does.
    pub meaning: String,
    /// The figures.
    pub evidence: Vec<Evidence>,
    /// Whether the table of the wall time has it, or it limits nothing: a report with wall time leaves it out, as it does what
    /// nothing follows from.
    #[serde(rename = "aside", skip_serializing_if = "std::ops::Not::not")]
    pub is_aside: bool,
}

impl Finding {
    /// A fact of high confidence without a bound.
    #[must_use]
    pub fn fact(rule: Rule, verdict: &'static str, observation: String) -> Self {
        Self {
            rule,
            verdict,
            level: Level::Info,
            confidence: Confidence::High,
            device: None,
            bound_ns: None,
            observation,
            meaning: String::new(),
            evidence: Vec::new(),
            is_aside: false,
        }
    }

    /// Left out of reports where `is_aside`.
    #[must_use]
    pub(crate) fn aside(self, is_aside: bool) -> Self {
        Self { is_aside, ..self }
    }

    /// Whether it is a figure of the run that other findings build on, not a cost: nothing would go away.
    #[must_use]
    pub(crate) fn is_baseline(&self) -> bool {
        let is_cost = self.bound_ns.is_some() || self.level < Level::Low;
        let is_known = self.confidence == Confidence::High;
        is_known && (self.rule == Rule::Busy || !is_cost)
    }

    /// Whether something follows from it: time that goes away, or what to do or to mind.
    #[must_use]
    pub(crate) fn has_consequence(&self) -> bool {
        self.bound_ns.is_some() || !self.meaning.is_empty()
    }

    /// With a level.
    #[must_use]
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// With a confidence.
    #[must_use]
    pub fn confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// Of a device.
    #[must_use]
    pub fn on(self, device: &str) -> Self {
        Self { device: Some(device.to_owned()), ..self }
    }

    /// With the wall time that goes away at most.
    #[must_use]
    pub fn bound(self, ns: i64) -> Self {
        Self { bound_ns: Some(ns.max(0)), ..self }
    }

    /// With its meaning.
    #[must_use]
    pub fn means(self, meaning: impl Into<String>) -> Self {
        Self { meaning: meaning.into(), ..self }
    }

    /// With one more figure.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, what: &str, value: impl ToString) -> Self {
        let evidence =
            Evidence { path: path.into(), what: what.to_owned(), value: value.to_string() };
        self.evidence.push(evidence);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Rule;

    /// Ids are a contract.
    #[test]
    fn every_rule_is_documented() {
        let formats = include_str!("../../../docs/formats.md");
        let rules = formats.rsplit_once("\n### Rules\n").expect("the heading").1;
        for rule in Rule::ALL {
            let id = format!("`{}`", rule.id());
            let mut lines =
                rules.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
            assert!(lines.any(|ids| ids.contains(&id)), "docs/formats.md lacks {id}");
        }
    }
}
