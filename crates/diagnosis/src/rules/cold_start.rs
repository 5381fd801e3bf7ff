//! M8: first calls load code and allocate: what the recording shows is a start, not a steady state.

use report::short_name;
use report::units::{percent, time};
use trace::StringId;

use crate::{Facts, Finding, Level, Rule};

/// A range that takes this many times as long at first as later shows what comes later.
const FIRST: i64 = 5;

/// What it means for later runs: ranges that come again in the recording tell themselves.
fn meaning(facts: &Facts<'_>) -> String {
    match again(facts) {
        Some((name, first_ns, later_ns)) => format!(
            "Later ones do not wait for this: {} takes {} the first time, and {} after it (median). Look at the later ones, or warm up and \
             profile after that.",
            short_name(name, NAME),
            time(first_ns),
            time(later_ns)
        ),
        None => "This is a first run: later steps do not wait for this. Warm up before profiling."
            .to_owned(),
    }
}

/// Letters of a range's name.
const NAME: usize = 60;

/// The annotation that comes again and lost most: its name, its first time, and the median of the others, in ns.
fn again<'a>(facts: &Facts<'a>) -> Option<(&'a str, i64, i64)> {
    let slices = facts.slices;
    let mut all: Vec<(u32, i64, i64)> = slices
        .annotations
        .iter()
        .map(|one| (slices.trace.name(one.row).0, one.start_ns, one.dur_ns()))
        .collect();
    trace::sort(&mut all);
    let of_name = |own: &[(u32, i64, i64)]| {
        let ((name, _, first_ns), later) = own.split_first()?;
        let later_ns = timeline::median(&mut later.iter().map(|(.., ns)| *ns).collect::<Vec<_>>())?;
        (*first_ns >= later_ns.saturating_mul(FIRST)).then_some((*name, *first_ns, later_ns))
    };
    let found = all.chunk_by(|a, b| a.0 == b.0).filter_map(of_name);
    let (name, first_ns, later_ns) = found.max_by_key(|(_, first, later)| first - later)?;
    Some((slices.trace.strings.get(StringId(name)), first_ns, later_ns))
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    // (What is captured does not run, in a first run or later.)
    if facts.is_capture() {
        return Vec::new();
    }
    facts
        .devices()
        .filter_map(|device| {
            let (covered, idle) = device.cold()?;
            let what = match device.sets_up_most_of(&device.first_calls()) {
                Some((sets, true)) => format!("{} for", sets.sentence()),
                Some((sets, false)) => {
                    format!(
                        "{}, and calls load code or allocate or free memory, for",
                        sets.sentence()
                    )
                }
                None => "Calls that load code or allocate or free memory cover".to_owned(),
            };
            let text = format!(
                "{} {} of the {} in which {} is idle ({}).",
                what,
                time(covered),
                time(idle),
                device.name_within(),
                percent(100.0 * covered as f64 / idle.max(1) as f64)
            );
            Some(
                Finding::fact(Rule::ColdStart, "cold_start", text)
                    .level(Level::High)
                    .on(device.name)
                    .means(meaning(facts))
                    .with("runtime.classes", "idle time in them", time(covered)),
            )
        })
        .collect()
}
