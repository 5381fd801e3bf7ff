//! GPU work that begins before the call that launches it: the file's clocks of CPU and GPU do not agree. Every figure that compares
//! the two is off by as much: gaps by cause, delays, what the CPU did meanwhile.

use report::units::{count, time};
use triage::WallPart;

use crate::{Facts, Finding, Level, Rule};

/// Clocks are told by whole microseconds in old files.
const ROUNDING_NS: i64 = 2_000;
/// Of all work with a launch.
const LEAST_SHARE: f64 = 0.01;

/// Of the time in which the GPU does not compute: where all of them together are off by less, no figure of it changes.
const LEAST_LOST: f64 = 0.01;

/// How many GPU slices begin before their launch, of how many, and by how much at most.
fn early(facts: &Facts<'_>) -> Option<(u64, u64, i64)> {
    let (mut n, mut all, mut most) = (0_u64, 0_u64, 0_i64);
    for one in facts.gpu.linked() {
        let Some(launch) = one.launch else { continue };
        all += 1;
        let early_ns = launch.start_ns.saturating_sub(one.slice.start_ns);
        if early_ns > ROUNDING_NS {
            n += 1;
            most = most.max(early_ns);
        }
    }
    (n > 0 && n as f64 >= LEAST_SHARE * all as f64).then_some((n, all, most))
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((n, all, most)) = early(facts) else { return Vec::new() };
    let text = format!(
        "{} of {} GPU slices begin more than {} before the call that launched them, at most {}: the clocks of CPU and GPU disagree in this file.",
        count(n),
        count(all),
        time(ROUNDING_NS),
        time(most)
    );
    let meaning = "Figures that compare the two are off by as much: causes of idle time, delays, what the CPU did meanwhile. Those of the \
                   GPU or the CPU alone are not.";
    vec![
        Finding::fact(Rule::Clocks, "disagree", text)
            .level(Level::Medium)
            .means(meaning)
            .aside(changes_nothing(facts, all, most))
            .with("links.linked", "GPU slices that begin before their launch", count(n)),
    ]
}

/// Whether the starts of all `n` slices, off by `most_ns` at most, change no figure of the time in which the GPU does not compute. (The clocks
/// disagree for all of them: those that begin too early only show it.)
fn changes_nothing(facts: &Facts<'_>, n: u64, most_ns: i64) -> bool {
    let lost = facts.wall.iter().filter(|row| row.part != WallPart::Compute);
    let lost_ns = lost.fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    n as f64 * (most_ns as f64) < LEAST_LOST * lost_ns as f64
}
