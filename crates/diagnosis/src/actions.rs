//! What to do, from one ranking: by the wall time that goes away at most.

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
    /// What to do.
    pub action: String,
    /// Wall time of the recording that goes away at most, in ns.
    pub bound_ns: i64,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where: a line of Python, an op or a kernel; empty if all over the run.
    pub place: String,
    /// What to read again after the change, and its value now.
    pub check: Place,
}

impl Action {
    /// As a card.
    #[must_use]
    pub fn finding(&self) -> report::Finding {
        let place = match self.place.as_str() {
            "" => String::new(),
            place => format!(" At {place}."),
        };
        report::Finding {
            rule: self.rule.clone().into(),
            observation: format!("Saves at most {}", report::units::time(self.bound_ns)),
            hypothesis: self.observation.clone(),
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
    let span = facts.devices().filter_map(|device| Some(device.busy()?.1.window_ns)).max();
    let span = span.unwrap_or_else(|| facts.loading().1).max(1);
    all.retain(|action| action.bound_ns as f64 >= LEAST_SHARE * span as f64);
    trace::sort_by_key(&mut all, |action| std::cmp::Reverse(action.bound_ns));
    all
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
        bound_ns: finding.bound_ns?,
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
            bound_ns: row.savings_bound_ns?,
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
            bound_ns: row.savings_bound_ns?,
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
