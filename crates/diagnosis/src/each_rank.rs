//! Several ranks in one file: each is diagnosed by itself, and what their collectives tell is said of all.

use host::{HostIndex, host};
use report::units::{count, percent, time};
use timeline::ranks::{narrow_to, ranks};
use trace::Trace;
use triage::{TriageReport, WallPart, WallRow};

use crate::devices::title;
use crate::rules::late_rank;
use crate::{Diagnosis, Facts, actions, diagnose};

/// A diagnosis of each rank, put together; of a file with one rank its diagnosis. `triage_of` triages a part of the trace as `facts`
/// were.
#[must_use]
#[inline(never)]
pub fn diagnose_ranks(facts: &Facts<'_>, triage_of: &dyn Fn(&Trace) -> TriageReport) -> Diagnosis {
    let ranks = ranks(facts.trace);
    if ranks.is_empty() {
        return diagnose(facts);
    }
    let of_rank = |rank: timeline::ranks::Rank| {
        let trace = narrow_to(facts.trace, &rank);
        let index = HostIndex::of(&trace);
        let of_host = host(&index, facts.details);
        let triage = triage_of(&trace);
        let own = Facts::of(&index, facts.details, &of_host, &triage);
        let own = own.among(facts.matched.clone()).timed(facts.iteration_ns);
        (rank.devices, diagnose(&own))
    };
    together(facts, ranks.into_iter().map(of_rank).collect())
}

fn together(facts: &Facts<'_>, parts: Vec<(Vec<String>, Diagnosis)>) -> Diagnosis {
    let (modules, platform) = (facts.modules.clone(), facts.triage.run_facts.platform);
    let mut all = Diagnosis { modules, platform, ..Diagnosis::default() };
    all.headline = headline(facts, &parts);
    let n = parts.len();
    for (devices, mut part) in parts {
        // (What is of the rank as a whole names its devices.)
        let name_rank = |device: &mut Option<String>, observation: &mut String| {
            if device.is_none() {
                *device = Some(devices.join(", "));
                *observation = format!("{}: {observation}", title(&devices));
            }
        };
        for action in &mut part.actions {
            name_rank(&mut action.device, &mut action.observation);
        }
        for finding in &mut part.findings {
            name_rank(&mut finding.device, &mut finding.observation);
        }
        all.wall.extend(part.wall);
        all.wall_stages.extend(part.wall_stages);
        all.left_out.extend(part.left_out);
        all.actions.extend(part.actions);
        all.findings.extend(part.findings);
        if all.iterations.is_none() {
            all.iterations = part.iterations;
        }
    }
    if let Some(iterations) = &mut all.iterations {
        iterations.n_ranks = n;
    }
    if let Some(late) = late_rank::finding(&facts.matched, &all.wall, facts.gpu) {
        all.actions.extend(actions::of_one(facts, &late));
        all.findings.push(late);
    }
    trace::sort_by_key(&mut all.findings, |finding| finding.rule);
    trace::sort_by_key(&mut all.actions, |action| std::cmp::Reverse(action.bound_ns));
    all
}

/// Waiting for a late device is worth the first sentence from this share of the waiting device's wall time on.
const LEAST_WAITING: f64 = 0.1;

/// The rank that keeps the others waiting, where one does, else the one with the largest loss.
fn headline(facts: &Facts<'_>, parts: &[(Vec<String>, Diagnosis)]) -> Option<String> {
    let largest = |rows: &[WallRow]| {
        let lost = rows.iter().filter(|row| row.part != WallPart::Compute);
        lost.map(|row| row.share_pct).fold(0.0, f64::max)
    };
    let late = facts.matched.latest().and_then(|(device, _)| {
        let own = parts.iter().find(|(devices, _)| devices.iter().any(|id| id == device))?;
        Some((own, late_sentence(facts, device)?))
    });
    match late {
        Some(((_, part), (sentence, is_first))) => {
            let own = part.headline.as_deref().unwrap_or_default();
            let both = if is_first { [&*sentence, own] } else { [own, &*sentence] };
            Some(both.join(" ").trim().to_owned())
        }
        None => parts
            .iter()
            .reduce(|a, b| if largest(&b.1.wall) > largest(&a.1.wall) { b } else { a })
            .and_then(|(_, part)| part.headline.clone()),
    }
}

/// That the other devices wait for one, where that is much of the wall time; and whether it is the first thing to say: not where one of them
/// would hardly be done sooner without, because it launches as late, for the others would wait for that one then.
fn late_sentence(facts: &Facts<'_>, device: &str) -> Option<(String, bool)> {
    let matched = &facts.matched;
    let late = matched.device(device)?;
    let waiting = || {
        let waits = matched.devices().filter_map(|(name, waits)| {
            Some((waits.exposed_for(device)?.ns, name, waits)).filter(|(ns, ..)| *ns > 0)
        });
        waits.map(|(ns, name, waits)| (ns, name, late_rank::is_limited(waits)))
    };
    let (most, name, is_limited) = waiting().max()?;
    let whole = late_rank::wall_ns(&facts.wall, name);
    if whole <= 0 || (most as f64) < LEAST_WAITING * whole as f64 {
        return None;
    }
    let is_several = matched.devices().count() > 2;
    let last = format!(
        "the last to join {} of {} collectives",
        count(late.n_last as u64),
        count(late.n as u64)
    );
    // (One that hardly waits for it says nothing of the others.)
    let counts = |(ns, _, is_limited): &(i64, &str, bool)| *is_limited && *ns >= most / 10;
    let limited: Vec<&str> = waiting().filter(counts).map(|(_, name, _)| name).collect();
    let bound =
        late_rank::finding(matched, &facts.wall, facts.gpu).and_then(|found| found.bound_ns);
    let Some(bound) = bound.filter(|_| !limited.is_empty()) else {
        let text = format!(
            "{} for GPU {device}, {last}: GPU {name} for {} ({} of its wall time).",
            if is_several { "The other GPUs wait" } else { "The other GPU waits" },
            time(most),
            percent(timeline::percent(most, whole))
        );
        return Some((text, true));
    };
    let most = time(most);
    let why = match &limited[..] {
        all if is_several && all.len() + 1 == matched.devices().count() => {
            format!(
                "the other GPUs wait for it for up to {most}, but their own launches come no earlier"
            )
        }
        _ if is_limited => {
            format!("GPU {name} waits for it for {most}, but its own launches come no earlier")
        }
        [one] => format!(
            "GPU {name} waits for it for {most}, but the launches of GPU {one} come no earlier"
        ),
        some => format!(
            "GPU {name} waits for it for {most}, but the launches of GPUs {} come no earlier",
            some.join(", ")
        ),
    };
    let text = format!(
        "GPU {device} is {last}, which costs at most {} ({} of the wall time of GPU {device}): {why}.",
        time(bound),
        percent(timeline::percent(bound, late_rank::wall_ns(&facts.wall, device))),
    );
    Some((text, false))
}
