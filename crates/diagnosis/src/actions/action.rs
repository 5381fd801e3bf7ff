//! An action, and how it reads.

use serde::Serialize;

use super::RELEASE_TENSORS;
use crate::Confidence;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// The rule, or `overlap` or `fuse` for the rows of these tables.
    pub rule: String,
    /// The device, where it is about one.
    pub device: Option<String>,
    /// What the file shows.
    pub observation: String,
    /// What that means; empty where the observation says all.
    pub hypothesis: String,
    /// What to measure before that is done, and for what result it pays; empty where nothing is.
    pub first: String,
    /// What to do.
    pub action: String,
    /// Its row in the table of remedies; empty for rows of the overlap table.
    #[serde(skip)]
    pub remedy: &'static str,
    /// Wall time of the recording that goes away at most, in ns. 0 for what saves memory and no time.
    pub bound_ns: i64,
    /// The same in percent of [`Self::bound_of`].
    pub bound_pct: f64,
    /// What the share is of.
    pub bound_of: Whole,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where: a line of Python, an op or a kernel; empty if all over the run.
    pub place: String,
    /// What a new trace shows if it helped, in a sentence.
    pub validation: String,
    /// What to read again after the change, and its value now.
    pub check: Place,
}

/// What a bound is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// The steps.
    Steps,
    /// The warm iterations: cold ones are left out.
    WarmIterations,
    /// What the iterations take without the profiler, as a person has timed it.
    TimedIterations,
    /// From the first op to the last, where nothing is recorded of a GPU.
    OpsSpan,
    /// From the first GPU work to the last.
    GpuSpan,
    /// The same without the time in which code is loaded and libraries are set up.
    WithoutSetUp,
    /// The same without the time in which work was queued, and waited for what the file does not have.
    WithoutBlocked,
    /// The same without either.
    WithoutBoth,
}

impl Whole {
    /// What a person reads.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Steps => "the steps",
            Self::WarmIterations => "the warm iterations",
            Self::TimedIterations => "the iterations without the profiler",
            Self::OpsSpan => "the time from the first op to the last",
            Self::GpuSpan => "the GPU span",
            Self::WithoutSetUp => "the GPU span without set-up",
            Self::WithoutBlocked => "the GPU span without the blocked time",
            Self::WithoutBoth => "the GPU span without set-up and the blocked time",
        }
    }
}

impl Action {
    /// Adds a sentence to the hypothesis.
    pub(super) fn add(&mut self, text: &str) {
        if !self.hypothesis.is_empty() {
            self.hypothesis.push(' ');
        }
        self.hypothesis.push_str(text);
    }

    /// What the file shows and what that means.
    #[must_use]
    pub fn reason(&self) -> String {
        [&*self.observation, &*self.hypothesis].join(" ").trim_end().to_owned()
    }

    /// Whether it saves memory and no time.
    pub(super) fn saves_memory_alone(&self) -> bool {
        self.remedy == RELEASE_TENSORS
    }

    /// How much goes away at most: an estimate, because other work may take the place of what goes.
    #[must_use]
    pub fn impact(&self) -> String {
        if self.saves_memory_alone() {
            return "memory, not time".to_owned();
        }
        format!(
            "at most {} ({} of {})",
            report::units::time(self.bound_ns),
            report::units::percent(self.bound_pct),
            self.bound_of.words()
        )
    }

    /// What to look for in a new trace, and the figure now.
    #[must_use]
    pub(crate) fn how_to_check(&self) -> String {
        format!("{} {}.", self.validation, self.check.sentence())
    }

    /// What to do, from the first step on.
    #[must_use]
    pub(crate) fn steps(&self) -> String {
        match self.first.as_str() {
            "" => self.action.clone(),
            first => {
                let action = crate::words::lower(&self.action);
                format!("{first} If so, {action}")
            }
        }
    }

    /// As a card.
    #[must_use]
    pub fn finding(&self) -> report::Finding {
        report::Finding {
            rule: self.rule.clone().into(),
            observation: self.observation.clone(),
            hypothesis: self.hypothesis.clone(),
            first: self.first.clone(),
            action: self.action.clone(),
            place: self.place.clone(),
            gain: self.impact(),
            validation: self.how_to_check(),
            confidence: self.confidence,
            evidence: vec![self.check.path.clone()],
        }
    }
}

/// A figure to read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Where it stands in `kinetoscope cpu --json`, or the table of triage.
    pub path: String,
    /// What it is.
    pub what: String,
    /// Its value now.
    pub now: String,
}

impl Place {
    /// For a person.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut what = self.what.trim_end_matches('.').to_owned();
        if let Some(first) = what.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        format!("{what} now: {}", self.now)
    }
}
