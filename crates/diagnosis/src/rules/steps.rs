//! M13: durations of steps. P90 needs ten steps, P95 twenty, P99 a hundred.

use host::numbers::Stats;
use report::units::{count, percent, time};

use crate::iterations::Kind;
use crate::{Facts, Finding, Level, Rule};

/// Durations that spread more than this around their mean are not steady.
const SPREAD: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let all = &facts.host.steps.cpu_dur;
    let without_end = without_empty_end(facts, all.n);
    let stats = without_end.as_ref().unwrap_or(all);
    let Some(figures) = &stats.figures else { return Vec::new() };
    let n = stats.n;
    // (One step around many iterations of another kind is no unit of the run.)
    let has_others = facts
        .iterations
        .as_ref()
        .is_some_and(|found| found.kind != Kind::ProfilerSteps && found.list.len() > n);
    if has_others {
        return Vec::new();
    }
    let mut text = if n == 1 {
        format!("One step of {} on the CPU.", time(figures.sum_ns))
    } else {
        format!(
            "{} steps on the CPU: mean {}, standard deviation {}, {} to {}",
            count(n as u64),
            time(figures.mean_ns as i64),
            time(figures.std_sample_ns.unwrap_or_default() as i64),
            time(figures.min_ns),
            time(figures.max_ns)
        )
    };
    if n >= 10 {
        text.push_str(&format!(", P50 {}, P90 {}", time(figures.p50_ns), time(figures.p90_ns)));
    }
    if n >= 20 {
        text.push_str(&format!(", P95 {}", time(figures.p95_ns)));
    }
    if n >= 100 {
        text.push_str(&format!(", P99 {}", time(figures.p99_ns)));
    }
    if n > 1 {
        text.push('.');
    }
    if without_end.is_some() {
        text.push_str(" A last one, in which nothing begins, is left out.");
    }
    let (verdict, meaning) = match n {
        1 => (
            "single",
            "Record ten or more (schedule with active=10) to show their spread and a cold first step.",
        ),
        2..10 => ("few", ""),
        10..100 => ("some", ""),
        _ => ("many", ""),
    };
    let mut found = vec![Finding::fact(Rule::Steps, verdict, text).means(meaning).with(
        "steps.cpu_dur",
        "steps",
        count(n as u64),
    )];
    // (With a GPU, steps on the CPU are short while the launch queue fills: their spread says nothing.)
    let std_ns = figures.std_sample_ns.unwrap_or_default();
    let spread = std_ns / figures.mean_ns.max(1.0);
    if !facts.has_gpu() && n >= 3 && spread > SPREAD {
        let text = format!(
            "The steps differ: the standard deviation is {} of the mean, the longest takes {} and the median {}.",
            percent(100.0 * spread),
            time(figures.max_ns),
            time(figures.p50_ns)
        );
        found.push(Finding::fact(Rule::Steps, "unstable", text).level(Level::Medium).with(
            "steps.cpu_dur",
            "standard deviation",
            time(std_ns as i64),
        ));
    }
    found
}

/// The durations without a last step in which nothing begins, as the iterations leave it out; `None` where all count.
fn without_empty_end(facts: &Facts<'_>, n: usize) -> Option<Stats> {
    let iterations = facts.iterations.as_ref()?;
    // (Steps of several threads are left out for another reason.)
    let slices = facts.slices;
    let one_thread = slices
        .steps
        .windows(2)
        .all(|pair| slices.thread(pair[0].row) == slices.thread(pair[1].row));
    let marked = iterations.list.iter().filter(|one| !one.is_unmarked);
    let durations: Vec<i64> = marked.map(|one| one.dur_ns).collect();
    let left_out = iterations.kind == Kind::ProfilerSteps && one_thread && durations.len() + 1 == n;
    left_out.then(|| Stats::of(durations))
}
