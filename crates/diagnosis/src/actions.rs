//! What to do, from one ranking: by the wall time that goes away at most.

use host::verdicts::Window;
use serde::Serialize;

use crate::{Confidence, Facts, Finding, Rule};

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
    /// What to do.
    pub action: String,
    /// Wall time of the recording that goes away at most, in ns.
    pub bound_ns: i64,
    /// The same in percent of [`Self::bound_of`].
    pub bound_pct: f64,
    /// What the share is of.
    pub bound_of: Whole,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where: a line of Python, an op or a kernel; empty if all over the run.
    pub place: String,
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
    /// From the first GPU work to the last.
    GpuSpan,
}

impl Whole {
    /// What a person reads.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Steps => "the steps",
            Self::WarmIterations => "the warm iterations",
            Self::GpuSpan => "the GPU span",
        }
    }
}

impl Action {
    /// What the file shows and what that means.
    #[must_use]
    pub fn reason(&self) -> String {
        [&*self.observation, &*self.hypothesis].join(" ").trim_end().to_owned()
    }

    /// How much goes away at most: an estimate, because other work may take the place of what goes.
    #[must_use]
    pub fn impact(&self) -> String {
        format!(
            "at most {} ({} of {})",
            report::units::time(self.bound_ns),
            report::units::percent(self.bound_pct),
            self.bound_of.words()
        )
    }

    /// As a card.
    #[must_use]
    pub fn finding(&self) -> report::Finding {
        let place = match self.place.as_str() {
            "" => String::new(),
            place => format!(" At {place}."),
        };
        report::Finding {
            rule: self.rule.clone().into(),
            observation: format!("Saves {}", self.impact()),
            hypothesis: self.reason(),
            action: format!("{}{place}", self.action),
            validation: self.check.sentence(),
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
        let what = self.what.trim_end_matches('.');
        format!("{what}. Now: {}", self.now)
    }
}

/// Actions that save less than this share of the recording are left out.
const LEAST_SHARE: f64 = 0.01;

/// What to do, the most wall time first.
pub fn ranked(facts: &Facts<'_>, findings: &[Finding]) -> Vec<Action> {
    // Where the file does not tell what the GPU waited for, nothing shows that a change would pay.
    if facts.devices().any(|device| !device.is_told()) {
        return Vec::new();
    }
    let mut all: Vec<Action> =
        findings.iter().filter_map(|finding| of_finding(facts, finding)).collect();
    all.extend(of_triage(facts));
    let (span, whole) = window(facts);
    all.retain(|action| action.bound_ns as f64 >= LEAST_SHARE * span as f64);
    for action in &mut all {
        action.bound_pct = timeline::percent(action.bound_ns, span);
        action.bound_of = whole;
    }
    trace::sort_by_key(&mut all, |action| std::cmp::Reverse(action.bound_ns));
    all
}

/// What bounds are shares of: the longest bar of a device, which is what the first sentence tells of; without bars the window of
/// its busy share; without a GPU the steps.
fn window(facts: &Facts<'_>) -> (i64, Whole) {
    let warm = facts.left_out().is_some();
    let whole = |of_steps: bool| match of_steps {
        true if warm => Whole::WarmIterations,
        true => Whole::Steps,
        false => Whole::GpuSpan,
    };
    let bars = facts.wall.chunk_by(|a, b| a.device == b.device);
    let bars = bars.filter_map(|rows| {
        let ns = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
        Some((ns, whole(rows.first()?.of_steps)))
    });
    let of_devices = facts.devices().filter_map(|device| {
        let (window, busy) = device.busy()?;
        Some((busy.window_ns, whole(window == Window::LaunchStepsLinked)))
    });
    let longest = bars.max_by_key(|(ns, _)| *ns).or_else(|| of_devices.max_by_key(|(ns, _)| *ns));
    let (ns, whole) = longest.unwrap_or_else(|| (facts.loading().1, Whole::Steps));
    (ns.max(1), whole)
}

/// What helps against a finding; `None` where it is a fact, or where another finding has the cure.
fn of_finding(facts: &Facts<'_>, finding: &Finding) -> Option<Action> {
    let text = match (finding.rule, finding.verdict) {
        (Rule::LaunchBound | Rule::HostBound, _) if facts.has_graphs() => {
            "Graphs run already: shorten what the CPU does between them, or put more of the step into them."
        }
        (Rule::LaunchBound | Rule::HostBound, _) if facts.is_engine() => {
            "Let the engine run this batch as a graph or compiled: check enforce_eager, the compilation mode and the sizes that it \
             captures."
        }
        (Rule::LaunchBound | Rule::HostBound, _) if facts.is_compiled() => {
            "Launch the compiled regions as graphs: torch.compile(mode=\"reduce-overhead\"), with static input sizes."
        }
        (Rule::LaunchBound, _) => {
            "Make fewer launches: torch.compile, and graphs (mode=\"reduce-overhead\" or torch.cuda.graph) where input sizes do \
             not change; a larger batch gives each launch more work."
        }
        (Rule::HostBound, _) => {
            "Shorten what the CPU does before these launches: move it out of the step, into another process, or launch ahead of it."
        }
        (Rule::Sync, "sync_bound") => {
            "Remove the waits: keep values on the GPU, read them once every few steps, or copy them with non_blocking=True and use \
             them a step later."
        }
        (Rule::Copies, "h2d_pageable") if !advises_pinned(facts) => {
            "Copy from pinned memory: pin_memory=True in the DataLoader and .to(device, non_blocking=True)."
        }
        (Rule::DataLoader, _) if facts.loads_in_step() => {
            "Load in worker processes: num_workers of the DataLoader is 0 here; set 1 or more, as many as keep up with the step."
        }
        (Rule::DataLoader, _) => {
            "The workers of the data loader do not keep up: more of them (num_workers), more batches ahead (prefetch_factor), or cheaper \
             transforms."
        }
        (Rule::Communication, _) => {
            "Start the communication earlier, so that kernels run beside it. First compare ranks: what a rank waits for others is no \
             transfer."
        }
        (Rule::Allocator, _) => {
            "Keep sizes from step to step, so that PyTorch's cache can serve them; do not call empty_cache in the step."
        }
        _ => return None,
    };
    let evidence = finding.evidence.first()?;
    Some(Action {
        rule: finding.rule.id().to_owned(),
        device: finding.device.clone(),
        observation: finding.observation.clone(),
        action: text.to_owned(),
        hypothesis: finding.meaning.clone(),
        bound_ns: finding.bound_ns?,
        bound_pct: 0.0,
        bound_of: Whole::Steps,
        confidence: finding.confidence.min(Confidence::Medium),
        place: String::new(),
        check: Place {
            path: evidence.path.clone(),
            what: evidence.what.clone(),
            now: evidence.value.clone(),
        },
    })
}

/// Whether a row of the overlap table advises pinned memory already, with gates of its own.
fn advises_pinned(facts: &Facts<'_>) -> bool {
    let mut advice = facts.triage.overlap.iter().filter_map(|row| row.recommendation.as_deref());
    advice.any(|advice| advice.contains("pinned"))
}

/// The advised rows of the overlap and the fusion table.
fn of_triage(facts: &Facts<'_>) -> Vec<Action> {
    let overlap = facts.triage.overlap.iter().filter_map(|row| {
        Some(Action {
            rule: "overlap".to_owned(),
            device: Some(row.device.clone()),
            observation: row.reason.clone(),
            action: row.recommendation.clone()?,
            hypothesis: String::new(),
            bound_ns: row.savings_bound_ns?,
            bound_pct: 0.0,
            bound_of: Whole::Steps,
            confidence: Confidence::Medium,
            place: row.python_scope.clone().unwrap_or_else(|| row.kernel_name.clone()),
            check: Place {
                path: "overlap".to_owned(),
                what: "the row of the overlap table".to_owned(),
                now: row.formal_signal.clone(),
            },
        })
    });
    let fuse = facts.triage.fuse.iter().filter_map(|row| {
        Some(Action {
            rule: "fuse".to_owned(),
            device: Some(row.device.clone()),
            observation: row.rationale.clone(),
            action: Some(row.action.clone()).filter(|action| !action.is_empty())?,
            hypothesis: String::new(),
            bound_ns: row.savings_bound_ns?,
            bound_pct: 0.0,
            bound_of: Whole::Steps,
            confidence: Confidence::Medium,
            place: row.current_location.clone(),
            check: Place {
                path: "fuse".to_owned(),
                what: row.check.clone(),
                now: format!("{} of kernels concerned", report::units::time(row.related_ns)),
            },
        })
    });
    overlap.chain(fuse).collect()
}
