//! Work without its launch: it was launched before profiling started, or the file lacks the call.

use report::units::{count, time};

use crate::facts::unseen;
use crate::{Facts, Finding, Rule};

/// Of the GPU slices, and of the wall time: fewer change no figure.
const LEAST_SHARE: f64 = 0.01;

/// Of the GPU time: less changes no figure that is printed.
const LEAST_TIME: f64 = 0.05;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let links = &facts.host.links;
    let is_few = (links.orphans as f64) < LEAST_SHARE * links.gpu as f64;
    let is_short = (links.orphan_ns as f64) < LEAST_SHARE * facts.wall_ns() as f64;
    if links.linked == 0 || is_few && is_short {
        return Vec::new();
    }
    let before = facts.triage.before_window;
    let (n_before, before_ns) = (before.n_slices, before.total_ns);
    let since = if facts.trace.part.as_ref().is_some_and(|part| part.step.is_some()) {
        "this step"
    } else {
        "profiling started"
    };
    let of = |n: u64, ns: i64| {
        format!("{} of {} GPU slices ({})", count(n), count(links.gpu as u64), time(ns))
    };
    let mut said = Vec::new();
    if n_before > 0 {
        said.push(format!("{} were launched before {since}.", of(n_before, before_ns)));
    }
    let (n_rest, rest_ns) = unseen::unseen(facts);
    if n_rest > 0 {
        said.push(match unseen::engine(facts) {
            Some(engine) => format!(
                "The launches of {} are not in the file: {engine} launches its own kernels, and the profiler did not record the calls.",
                of(n_rest, rest_ns)
            ),
            None => format!(
                "The launches of {} are not in the file, though an earlier launch on their stream is: the profiler did not record the calls, \
                 or their events are lost.",
                of(n_rest, rest_ns)
            ),
        });
    }
    let text = said.join(" ");
    let verdict = if n_before > 0 { "carried_over" } else { "launch_lost" };
    let is_little = (links.orphan_ns as f64) < LEAST_TIME * facts.busy_ns() as f64;
    let meaning = match verdict {
        "carried_over" => {
            "They belong to an earlier step. They count in the wall time, and in that of the iteration in which they run, but not per op or line."
        }
        _ => {
            "They count in the wall time, but not per op or line, nor as launched by an iteration."
        }
    };
    vec![Finding::fact(Rule::Orphans, verdict, text).means(meaning).aside(is_little).with(
        "links.orphans",
        "GPU slices",
        count(links.orphans as u64),
    )]
}
