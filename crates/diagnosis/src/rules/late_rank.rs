//! `late_rank`: the device for which the others wait in collectives, and what it does longer than they do.

use host::links::GpuSide;
use ranks::{Matched, WaitFor, Waits};
use report::units::{count, time};
use triage::{WallPart, WallRow};

use crate::{Facts, Finding, Level, Rule};

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    // (Of one rank by itself nothing tells of the others.)
    let found = finding(&facts.matched, &facts.wall, facts.gpu).filter(|_| facts.is_whole());
    found.into_iter().collect()
}

/// The finding; `None` where the devices wait for no one device for most of their waiting.
///
/// Its bound: by how much the device comes later than the next to last, summed over the collectives in which it is the last, and never
/// more than any other device that waits for it would be done sooner without. If it joined as early as the next to last, so much would go away.
pub(crate) fn finding(matched: &Matched, wall: &[WallRow], gpu: &GpuSide) -> Option<Finding> {
    let (device, _) = matched.latest()?;
    let late = matched.device(device)?;
    let waits = matched.devices().filter_map(|(name, waits)| {
        Some((name, waits.exposed_for(device)?)).filter(|(_, wait)| wait.ns > 0)
    });
    let waits: Vec<(&str, &WaitFor)> = waits.collect();
    // (Then the one that saves least keeps the others waiting.)
    let least = waits.iter().map(|(_, wait)| wait.saves_ns.unwrap_or(wait.ns)).min()?;
    let bound = late.behind_ns.min(least);
    let whole = wall_ns(wall, device);
    let each: Vec<String> =
        waits.iter().map(|(name, wait)| format!("device {name} for {}", time(wait.ns))).collect();
    let text = format!(
        "Device {device} is the last to join {} of {} collectives that were matched, and the others wait for it: {}.",
        count(late.n_last as u64),
        count(late.n as u64),
        each.join(", ")
    );
    let same = same_kernels(gpu, device);
    let verdict = if same { "late_cpu" } else { "late" };
    let sentences = [
        if others_are_limited(matched, device) { LIMITED } else { "" }.to_owned(),
        if same { "It runs as many kernels as they do." } else { "" }.to_owned(),
        longer(wall, matched, device),
    ];
    let told: Vec<String> = sentences.into_iter().filter(|one| !one.is_empty()).collect();
    let found = Finding::fact(Rule::LateRank, verdict, text)
        .level(Level::of_share(bound as f64 / whole.max(1) as f64))
        .on(device)
        .bound(bound)
        .means(told.join(" "))
        .with("collectives", "collectives that it is the last to join", late.n_last);
    (whole > 0).then_some(found)
}

/// The wall time of a device, in ns.
pub(crate) fn wall_ns(wall: &[WallRow], device: &str) -> i64 {
    let own = wall.iter().filter(|row| row.device == device);
    own.fold(0, |sum, row| sum.saturating_add(row.total_ns))
}

/// Kernels may differ by this part of them: a sum or a copy that one rank does for all.
const ALIKE_PART: usize = 50;

/// Whether the device runs as many kernels as the others (their median), and takes no longer for them, communication aside: its GPU has
/// no more to do.
fn same_kernels(gpu: &GpuSide, device: &str) -> bool {
    let of = |at: usize| {
        let own = gpu.slices.iter().filter(move |one| one.device as usize == at);
        let own = own.filter(|one| one.is_kernel && !one.is_communication);
        own.fold((0_usize, 0_i64), |(n, ns), one| (n + 1, ns.saturating_add(one.slice.dur_ns())))
    };
    let Some(late) = gpu.devices.iter().position(|name| name == device) else { return false };
    let (n, ns) = of(late);
    let others = || (0..gpu.devices.len()).filter(|other| *other != late).map(of);
    let mut counts: Vec<i64> =
        others().map(|(m, _)| i64::try_from(m).unwrap_or(i64::MAX)).collect();
    let mut times: Vec<i64> = others().map(|(_, ns)| ns).collect();
    let medians = timeline::median(&mut counts).zip(timeline::median(&mut times));
    medians.is_some_and(|(m, other_ns)| {
        let m = usize::try_from(m).unwrap_or_default();
        n.abs_diff(m).saturating_mul(ALIKE_PART) <= n
            && ns <= other_ns.saturating_add(other_ns / 10)
    })
}

/// What follows where the others are limited by launches of their own.
const LIMITED: &str = "Most of their waiting costs nothing: their own launches come no earlier.";

/// Whether most of what a device waits would not go away without any waiting, because its own launches come no earlier.
pub(crate) fn is_limited(waits: &Waits) -> bool {
    let saves_ns = waits.saves_ns.unwrap_or(waits.exposed_ns);
    saves_ns.saturating_mul(2) < waits.exposed_ns
}

/// How much of its exposed waiting would go away without any, at most. (Without a wait that other work hides it may be done sooner by more.)
fn saved_of_exposed_ns(own: &Waits) -> i64 {
    own.saves_ns.map_or(own.exposed_ns, |saves_ns| saves_ns.min(own.exposed_ns))
}

/// The same of what the others wait, all together.
fn others_are_limited(matched: &Matched, device: &str) -> bool {
    let others = matched.devices().filter(|(name, _)| *name != device);
    let sums = others.fold((0_i64, 0_i64), |(saves, waits), (_, own)| {
        let saves_ns = saved_of_exposed_ns(own);
        (saves.saturating_add(saves_ns), waits.saturating_add(own.exposed_ns))
    });
    sums.0.saturating_mul(2) < sums.1
}

/// The part of the wall time of which the device has most more than the others do, in a sentence.
///
/// An idle part of theirs may lie beside a collective that waits: their bar has that as communication, though their own launches come
/// no earlier. Where that is most of the difference, the device is no different from them.
fn longer(wall: &[WallRow], matched: &Matched, device: &str) -> String {
    let mut devices: Vec<&str> = wall.iter().map(|row| &*row.device).collect();
    devices.dedup();
    let parts = WallPart::ALL.into_iter().filter(|part| *part != WallPart::Communication);
    let more = parts.filter_map(|part| {
        let of = |device: &str| {
            let row = wall.iter().find(|row| row.part == part && row.device == device);
            row.map_or(0, |row| row.total_ns)
        };
        let beside = |other: &str| {
            let is_idle = !matches!(part, WallPart::Compute | WallPart::Copies);
            let waits = matched.device(other).filter(|_| is_idle);
            waits.map_or(0, |own| own.exposed_ns - saved_of_exposed_ns(own))
        };
        let others = || devices.iter().copied().filter(|other| *other != device);
        let own = of(device);
        let median = timeline::median(&mut others().map(of).collect::<Vec<i64>>())?;
        let mut alike: Vec<i64> = others().map(|other| of(other) + beside(other)).collect();
        let (more, at_least) = (own - median, own - timeline::median(&mut alike)?);
        (at_least.saturating_mul(2) >= more).then_some((more, part, own, median))
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
