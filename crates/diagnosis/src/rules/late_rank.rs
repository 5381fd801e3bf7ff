//! `late_rank`: the device for which the others wait in collectives, and what it does longer than they do.

use report::units::{count, time};
use triage::{WallPart, WallRow};

use crate::collectives::Matched;
use crate::{Facts, Finding, Level, Rule};

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    // (Of one rank by itself nothing tells of the others.)
    let found = finding(&facts.matched, &facts.wall).filter(|_| facts.is_whole());
    found.into_iter().collect()
}

/// The finding; `None` where the devices wait for no one device for most of their waiting.
///
/// Its bound: by how much the device comes later than the next to last, summed over the collectives in which it is the last, and never
/// more than another device waits for it without other kernels. If it joined as early as the next to last, so much would go away.
pub(crate) fn finding(matched: &Matched, wall: &[WallRow]) -> Option<Finding> {
    let (device, _) = matched.latest()?;
    let late = matched.device(device)?;
    let waits = matched.devices().filter_map(|(name, waits)| {
        Some((name, waits.exposed_for(device)?)).filter(|(_, ns)| *ns > 0)
    });
    let waits: Vec<(&str, i64)> = waits.collect();
    let most = waits.iter().map(|(_, ns)| *ns).max()?;
    let bound = late.behind_ns.min(most);
    let whole: i64 = wall.iter().filter(|row| row.device == device).map(|row| row.total_ns).sum();
    let each: Vec<String> =
        waits.iter().map(|(name, ns)| format!("device {name} for {}", time(*ns))).collect();
    let text = format!(
        "Device {device} is the last to join {} of {} collectives that were matched, and the others wait for it: {}.",
        count(late.n_last as u64),
        count(late.n as u64),
        each.join(", ")
    );
    let found = Finding::fact(Rule::LateRank, "late", text)
        .level(Level::of_share(bound as f64 / whole.max(1) as f64))
        .on(device)
        .bound(bound)
        .means(longer(wall, device))
        .with("collectives", "collectives that it is the last to join", late.n_last);
    (whole > 0).then_some(found)
}

/// The part of the wall time of which the device has most more than the others do, in a sentence.
fn longer(wall: &[WallRow], device: &str) -> String {
    let mut devices: Vec<&str> = wall.iter().map(|row| &*row.device).collect();
    devices.dedup();
    let parts = WallPart::ALL.into_iter().filter(|part| *part != WallPart::Communication);
    let more = parts.filter_map(|part| {
        let of = |device: &str| {
            let row = wall.iter().find(|row| row.part == part && row.device == device);
            row.map_or(0, |row| row.total_ns)
        };
        let others = devices.iter().filter(|other| **other != device).map(|other| of(other));
        let own = of(device);
        let median = timeline::median(&mut others.collect::<Vec<i64>>())?;
        Some((own - median, part, own, median))
    });
    match more.max_by_key(|(more, ..)| *more) {
        Some((more, part, own, median)) if more > 0 => format!(
            "It differs most from them in \"{}\": {} against {} (their median).",
            part.title(),
            time(own),
            time(median)
        ),
        _ => String::new(),
    }
}
