//! M23: recording Python costs time itself.

use report::units::{percent, time};

use crate::{Facts, Finding, Level, Rule};

/// From this share of frames among all slices on.
const LEAST_SHARE: f64 = 0.3;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = inflated(facts);
    found.extend(timed_otherwise(facts));
    found
}

/// That the time of an iteration that was given cannot be of those that are recorded.
fn timed_otherwise(facts: &Facts<'_>) -> Option<Finding> {
    let given_ns = facts.iteration_ns?;
    let timed: Vec<_> = facts.devices().filter_map(|device| device.timed()).collect();
    let why = match timed.first() {
        _ if timed.iter().any(|timed| timed.fits()) => return None,
        None if facts.iterations.is_some() => "it has no work of a GPU".to_owned(),
        None => "it has no iterations".to_owned(),
        Some(timed) => format!(
            "one takes {} as recorded, and the GPU computes and copies for {} of it",
            time(timed.recorded_ns),
            time(timed.work_ns)
        ),
    };
    let text = format!(
        "An iteration of {} without the profiler does not fit this recording: {why}.",
        time(given_ns)
    );
    Some(
        Finding::fact(Rule::Profiler, "timed_otherwise", text)
            .level(Level::Low)
            .means("It is not used."),
    )
}

fn inflated(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(share) = facts.host.verdicts.python_events_share.filter(|share| *share >= LEAST_SHARE)
    else {
        return Vec::new();
    };
    let communicates =
        facts.devices().any(|device| device.slices().any(|one| one.is_communication));
    let text = format!(
        "Python stacks were recorded: {} of the slices are frames.",
        percent(100.0 * share)
    );
    vec![
        Finding::fact(Rule::Profiler, "inflated", text)
            .level(Level::Low)
            .means(match communicates {
                true => "CPU times are longer than without with_stack=True, and so are collectives that wait for the CPUs of other ranks; other GPU times are not.",
                false => "CPU times are longer than without with_stack=True; GPU times are not.",
            })
            .with("verdicts.python_events_share", "frames of Python", percent(100.0 * share)),
    ]
}
