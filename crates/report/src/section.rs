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
    /// What to do.
    pub action: String,
    /// How to check that it helped.
    pub validation: String,
    /// How certain the claim is.
    pub confidence: Confidence,
    /// Where in the report the evidence is: `kernels.before_window_ns`.
    pub evidence: Vec<String>,
}
