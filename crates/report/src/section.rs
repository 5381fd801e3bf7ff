//! A chapter of a report, and the claims it makes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Drawing, Table};

/// One chapter: what was found, then the tables that show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Stable id, for links: `kernels`.
    pub id: Cow<'static, str>,
    /// The heading.
    pub title: Cow<'static, str>,
    /// Sentences under the heading; the first is the finding in one line.
    pub intro: Vec<String>,
    /// Pictures of the tables.
    #[serde(default)]
    pub drawings: Vec<Drawing>,
    /// The evidence.
    pub tables: Vec<Table>,
    /// What follows from it.
    pub findings: Vec<Finding>,
}

impl Section {
    /// An empty chapter.
    #[must_use]
    pub fn new(id: &'static str, title: &'static str) -> Self {
        Self { id: id.into(), title: title.into(), ..Self::default() }
    }

    /// Whether documents have anything of it: sentences, a table, a picture or a finding.
    #[must_use]
    pub fn is_printed(&self) -> bool {
        !self.intro.is_empty()
            || !self.drawings.is_empty()
            || !self.findings.is_empty()
            || self.printed_tables().next().is_some()
    }

    /// The tables that documents print.
    pub fn printed_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| !table.page_only)
    }
}

/// The confidence of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A hint: check it first.
    Low,
    /// Likely, from indirect evidence.
    Medium,
    /// Follows from the file.
    High,
}

impl Confidence {
    /// The word for it.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A claim with its reasons: what was observed, what it may mean, what to do, how to verify the effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Id of the rule; it names the problem, not the cure.
    pub rule: Cow<'static, str>,
    /// What the file shows, in numbers.
    pub observation: String,
    /// What that probably means.
    pub hypothesis: String,
    /// What to measure before the action, and for what result it pays; empty where nothing is.
    pub first: String,
    /// What to do.
    pub action: String,
    /// Where: a line of Python, an op or a kernel; empty if all over the run.
    pub place: String,
    /// What the action saves, in a few words after "Saves"; empty where that is not known. What has one is told by its action,
    /// anything else by its observation.
    pub gain: String,
    /// How to check that it helped.
    pub validation: String,
    /// How certain the claim is.
    pub confidence: Confidence,
    /// Where in the report the evidence is: `kernels.before_window_ns`.
    pub evidence: Vec<String>,
}

impl Finding {
    /// Its title and the lines under it, each with its label: an action begins with what to do, anything else with what the file
    /// shows. Empty lines are left out.
    #[must_use]
    pub fn lines(&self) -> (&str, Vec<(&'static str, Cow<'_, str>)>) {
        // (The evidence is ids, for programs; the rule is one, too.)
        let Self { observation, hypothesis, first, action, place, gain, validation, .. } = self;
        let (title, lines) = if gain.is_empty() {
            let then = ("What to do", Cow::from(action));
            (
                observation,
                [("Likely reason", Cow::from(hypothesis)), ("First", Cow::from(first)), then],
            )
        } else {
            let why = format!("{observation} {hypothesis}");
            let (title, then) = if first.is_empty() { (action, "") } else { (first, &**action) };
            (
                title,
                [
                    ("If so", Cow::from(then)),
                    ("Saves", Cow::from(gain)),
                    ("Why", Cow::from(why.trim_end().to_owned())),
                ],
            )
        };
        let lines = lines
            .into_iter()
            .chain([("Where", Cow::from(place)), ("How to check", Cow::from(validation))]);
        (title, lines.filter(|(_, text)| !text.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        Finding {
            rule: "late-launches".into(),
            observation: "The GPU is idle for 4 ms.".to_owned(),
            hypothesis: String::new(),
            first: String::new(),
            action: "Use graphs.".to_owned(),
            place: "train.py:12 step".to_owned(),
            gain: String::new(),
            validation: "The GPU is busier.".to_owned(),
            confidence: Confidence::High,
            evidence: Vec::new(),
        }
    }

    #[test]
    fn an_action_begins_with_what_to_do_and_a_claim_with_what_is_shown() {
        let labels = |of: &Finding| -> Vec<&'static str> {
            of.lines().1.into_iter().map(|(label, _)| label).collect()
        };
        let claim = finding();
        assert_eq!(claim.lines().0, claim.observation);
        assert_eq!(labels(&claim), ["What to do", "Where", "How to check"]);
        let action = Finding { gain: "at most 4 ms".to_owned(), ..finding() };
        assert_eq!(action.lines().0, "Use graphs.");
        assert_eq!(labels(&action), ["Saves", "Why", "Where", "How to check"]);
        let measured = Finding { first: "Time it.".to_owned(), ..action };
        let (title, lines) = measured.lines();
        assert_eq!(title, "Time it.");
        assert_eq!(lines[0], ("If so", "Use graphs.".into()));
    }
}
