//! The table: one row for each pattern that was found in a stage.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use report::{short_name, units};

use super::advice::{Advice, COMPILE};
use super::find::{Candidate, Sought};
use super::gain::gain;
use super::lanes::Lanes;
use super::row::{FuseRow, FuseStatus, GainConfidence, PatternConfidence, Together};
use super::{Accepted, Fuse, related};
use crate::priority::Priority;
use crate::site::Attribution;
use crate::stages::Stage;
use timeline::percent;
use wall::{Removed, Wall};

/// What is fused already is listed from this share of its stage on, in percent.
const FUSED_PCT: f64 = 1.0;
/// Kernels that are listed as evidence.
const MAX_EVIDENCE: usize = 3;
/// Lines of Python that a row names.
const MAX_LOCATIONS: usize = 4;
/// Characters of a kernel's name in a sentence.
const NAME_LENGTH: usize = 56;

#[inline(never)]
pub(super) fn rows(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    judged: &[(Accepted, Option<Advice>)],
    wall: &Wall,
) -> Fuse {
    let mut rows: Vec<FuseRow> = Vec::new();
    let (mut small, mut little, mut unknown, mut impossible, mut held) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (accepted, advice) in judged {
        let candidate = &accepted.candidate;
        let name = || format!("{} ({})", title(candidate), id(candidate));
        let worth = advice.as_ref().and_then(|advice| Priority::of(advice.saved_ns, wall.span_ns));
        if worth.is_some() && is_little_to_compile(judged, (accepted, advice.as_ref()), wall) {
            little.push(name());
            continue;
        }
        if worth.is_some() && advice.as_ref().is_some_and(|own| changes_more(judged, own)) {
            unknown.push(name());
            continue;
        }
        let is_held =
            advice.as_ref().filter(|_| worth.is_none()).and_then(|it| held_back(it, name(), wall));
        if let Some(text) = is_held {
            held.push(text);
        } else if worth.is_none() && !candidate.split.is_empty() {
            let names = if advice.is_some() { &mut small } else { &mut impossible };
            names.push(name());
        }
        // (Of what is fused in part, what is left may not be worth it.)
        if worth.is_some() || !candidate.active.is_empty() {
            let advice = advice.as_ref().zip(worth);
            rows.push(row(lanes, attribution, accepted, advice, wall));
        }
    }
    rows.retain(|row| row.priority.is_some() || row.time_share_pct >= FUSED_PCT);
    trace::sort_by(&mut rows, |row, other| {
        let key = |row: &FuseRow| (Reverse(row.savings_bound_ns), Reverse(row.related_ns));
        key(row).cmp(&key(other)).then_with(|| row.pattern_id.cmp(&other.pattern_id))
    });
    join_stages(&mut rows, judged, wall);
    let span = wall.span();
    let list = |mut names: Vec<String>, why: &str| {
        trace::sort(&mut names);
        names.dedup();
        (!names.is_empty()).then(|| format!("{why}: {}.", names.join("; ")))
    };
    // (What is possible in one stage is possible.)
    small.retain(|name| !little.contains(name) && !unknown.contains(name));
    impossible.retain(|name| ![&small, &little, &unknown].iter().any(|of| of.contains(name)));
    let notes = [
        list(
            small,
            &format!(
                "Found, but not advised because at most 0.5% of {span} or 10 µs would be saved"
            ),
        ),
        list(
            little,
            &format!(
                "Found, but not advised because a module would be compiled for less than 1% of {span}"
            ),
        ),
        list(
            unknown,
            "Found, but not advised because convolutions that take longer than the saving would then run other kernels, faster or slower",
        ),
        list(
            impossible,
            "Found, but not advised because the trace does not show that a replacement applies",
        ),
    ];
    let held = list(
        held,
        &format!(
            "Found, but in this recording at most 0.5% of {span} or 10 µs would be saved, because other work or launches delay what follows"
        ),
    );
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    Fuse { rows, note, held, ..Fuse::default() }
}

/// Whether a module would be compiled for kernels that take less than a hundredth of the wall time, in all stages where it does that: the bound
/// is then what their launches are estimated to cost the CPU, and to compile a module is more work than such an estimate is worth.
fn is_little_to_compile(
    judged: &[(Accepted, Option<Advice>)],
    (accepted, advice): (&Accepted, Option<&Advice>),
    wall: &Wall,
) -> bool {
    let compiles =
        |advice: &Advice| advice.remedies.first().is_some_and(|remedy| remedy.id == COMPILE);
    if !advice.is_some_and(compiles) {
        return false;
    }
    let pattern = id(&accepted.candidate);
    let own = judged.iter().filter(|(of, _)| id(&of.candidate) == pattern);
    let takes = own.filter_map(|(of, advice)| {
        let advice = advice.as_ref().filter(|advice| compiles(advice))?;
        Priority::of(advice.saved_ns, wall.span_ns)?;
        Some(advice.gone_ns().max(of.related_ns))
    });
    takes.fold(0_i64, i64::saturating_add).saturating_mul(100) < wall.span_ns
}

/// Whether the change gives convolutions other kernels, and those take longer than what it is known to save, in all stages where it acts: then
/// nothing is known of what it saves.
fn changes_more(judged: &[(Accepted, Option<Advice>)], own: &Advice) -> bool {
    let all = judged.iter().filter_map(|(_, advice)| advice.as_ref());
    let same = all.filter(|advice| advice.path == own.path);
    let sums = same.fold((0_i64, 0_i64), |(changed, saved), advice| {
        let (_, ns) = advice.rule.twins.unwrap_or_default();
        (changed.saturating_add(ns), saved.saturating_add(advice.saved_ns))
    });
    sums.0 > sums.1
}

/// What a change that is not worth its price in this recording takes off the device, where that would be worth it alone and no launch goes
/// away: a graph launches the kernels, and the next one comes late.
fn held_back(advice: &Advice, name: String, wall: &Wall) -> Option<String> {
    let ns = advice.gone_ns();
    let is_held = wall.linked && advice.rule.launches.is_none();
    Priority::of(ns, wall.span_ns).filter(|_| is_held)?;
    let pct = units::percent(percent(ns, wall.span_ns));
    let span = wall.span();
    Some(format!("{name}, up to {} less GPU work ({pct} of {span})", units::time(ns)))
}

/// A change that acts in several stages is worth what goes away in all of them: each of its rows says so, and has that
/// priority.
#[inline(never)]
fn join_stages(rows: &mut [FuseRow], judged: &[(Accepted, Option<Advice>)], wall: &Wall) {
    let mut by_change: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.priority.is_some()) {
        let change = (row.pattern_id.clone(), row.candidate_fused_path.clone());
        by_change.entry(change).or_default().push(at);
    }
    for ((pattern, path), stages) in by_change.into_iter().filter(|(_, stages)| stages.len() > 1) {
        let advice = judged
            .iter()
            .filter(|(accepted, _)| id(&accepted.candidate) == pattern)
            .filter_map(|(_, advice)| advice.as_ref().filter(|advice| advice.path == path));
        let (mut removed, mut gone_ns): (Vec<Removed>, i64) = (Vec::new(), 0);
        for advice in advice {
            removed.extend(&advice.removed);
            gone_ns = gone_ns.saturating_add(advice.gone_ns());
        }
        trace::sort(&mut removed);
        let saved_ns = wall.saved_without(&removed);
        let (n_stages, saved_pct) = (stages.len(), percent(saved_ns, wall.span_ns));
        let text = format!(
            " The same change applies in {n_stages} stages. In all of them it saves at most {} ({} of {}).",
            units::time(saved_ns),
            units::percent(saved_pct),
            wall.span(),
        );
        for (nth, at) in stages.into_iter().enumerate() {
            let row = &mut rows[at];
            row.priority = Priority::of(saved_ns, wall.span_ns).or(row.priority);
            row.together =
                Some(Together { n_stages, gone_ns, is_first: nth == 0, saved_ns, saved_pct });
            row.rationale.push_str(&text);
        }
    }
}

fn id(candidate: &Candidate) -> &'static str {
    match candidate.sought {
        Sought::Pattern(pattern) => pattern.id,
        Sought::Chain(chain) => chain.id,
    }
}

fn title(candidate: &Candidate) -> &'static str {
    match candidate.sought {
        Sought::Pattern(pattern) => pattern.title,
        Sought::Chain(chain) => chain.title,
    }
}

pub(super) fn row(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    Accepted { candidate, related_ns, again_ns }: &Accepted,
    advice: Option<(&Advice, Priority)>,
    wall: &Wall,
) -> FuseRow {
    let share = percent(*related_ns, lanes.stages[candidate.stage].total_ns);
    let status = match (candidate.active.is_empty(), candidate.split.is_empty()) {
        (false, true) => FuseStatus::AlreadyFused,
        (false, false) => FuseStatus::Partial,
        (true, _) => FuseStatus::Opportunity,
    };
    let confidence = match candidate.sought {
        Sought::Chain(chain) if !chain.proven => PatternConfidence::Candidate,
        Sought::Chain(_) | Sought::Pattern(_) => PatternConfidence::Confirmed,
    };
    let path = match (advice, candidate.sought) {
        (Some((advice, _)), _) => advice.path.clone(),
        (None, Sought::Pattern(pattern)) => pattern.fused_path(),
        (None, Sought::Chain(_)) => String::new(),
    };
    let gain = advice.map(|(advice, _)| gain(advice, wall));
    let mut what = rationale(lanes, candidate, share);
    if *again_ns > 0 {
        what.push_str(&format!(
            " {} of that time is the forward pass that gradient checkpointing runs again (torch/utils/checkpoint.py): without \
             checkpointing it is saved.",
            units::percent(percent(*again_ns, *related_ns))
        ));
    }
    if let Some(warm) = lanes.warm {
        what.push_str(&format!(" Counted are {}.", warm.warm.told()));
    }
    let rationale =
        gain.as_ref().map_or_else(|| what.clone(), |gain| format!("{what}{}", gain.sentence));
    let first = advice.and_then(|(advice, _)| advice.remedies.first());
    let saved_ns = advice.map(|(advice, _)| advice.saved_ns);
    let gain_confidence =
        if wall.linked { GainConfidence::Estimate } else { GainConfidence::RoughEstimate };
    FuseRow {
        stage: lanes.stages[candidate.stage].stage,
        device: lanes.gpu.device().to_owned(),
        priority: advice.map(|(_, priority)| priority),
        pattern_id: id(candidate).to_owned(),
        pattern: title(candidate).to_owned(),
        status,
        confidence,
        savings_bound_ns: saved_ns,
        savings_pct: saved_ns.map(|saved_ns| percent(saved_ns, wall.span_ns)),
        gain_confidence: saved_ns.map(|_| gain_confidence),
        related_ns: *related_ns,
        time_share_pct: share,
        current_location: locations(lanes, attribution, candidate),
        n_occurrences: (n_split(lanes, candidate) + candidate.active.len()) as u64,
        evidence: evidence(lanes, candidate),
        rationale,
        what,
        remedy: first.map_or("", |remedy| remedy.id),
        estimate: gain.map(|gain| gain.estimate).unwrap_or_default(),
        action: first.map(|remedy| action(candidate.sought, remedy.action)).unwrap_or_default(),
        check: first.map(|remedy| remedy.check.to_owned()).unwrap_or_default(),
        candidate_fused_path: path,
        gone_ns: advice.map_or(0, |(advice, _)| advice.gone_ns()),
        is_mostly_launches: advice.is_some_and(|(advice, _)| advice.rule.is_mostly_launches),
        repeats: false,
        together: None,
    }
}

fn action(sought: Sought, of_remedy: &str) -> String {
    match sought {
        Sought::Pattern(pattern) => pattern.action("see Replacement"),
        Sought::Chain(_) => of_remedy.to_owned(),
    }
}

/// Time by a key, most first.
pub(super) fn by_time<K: Ord>(times: impl Iterator<Item = (K, i64)>) -> Vec<(K, i64)> {
    let mut sums: BTreeMap<K, i64> = BTreeMap::new();
    for (key, time) in times {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(time);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    trace::sort_by_key(&mut sums, |(_, time)| Reverse(*time));
    sums
}

fn locations(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    candidate: &Candidate,
) -> String {
    let Some(attribution) = attribution else { return String::new() };
    let times = related(candidate)
        .map(|at| (attribution.site_of[at as usize], lanes.gpu.slice(at as usize).dur_ns));
    // Several sites may share a line.
    let of_sites = by_time(times)
        .into_iter()
        .filter_map(|(site, time)| Some((attribution.sites[site as usize].line()?, time)));
    let mut lines = by_time(of_sites).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    lines.truncate(MAX_LOCATIONS);
    lines.join("; ")
}

fn evidence(lanes: &Lanes<'_>, candidate: &Candidate) -> Vec<String> {
    let total_ns = lanes.stages[candidate.stage].total_ns;
    let dur_ns = |at: u32| lanes.gpu.slice(at as usize).dur_ns;
    let times = related(candidate).map(|at| (lanes.code_of_slice(at).work, dur_ns(at)));
    by_time(times)
        .into_iter()
        .take(MAX_EVIDENCE)
        .map(|(work, time)| {
            let share = units::percent(percent(time, total_ns));
            format!("{} ({share})", short_name(lanes.name_of(work), NAME_LENGTH))
        })
        .collect()
}

/// How often the parts stand next to each other. A call of `zero_grad` counts once, however its fills are spread over pauses.
fn n_split(lanes: &Lanes<'_>, candidate: &Candidate) -> usize {
    let of_zero_grad =
        matches!(candidate.sought, Sought::Chain(chain) if chain.zero_grad == Some(true));
    if !of_zero_grad {
        return candidate.split.len();
    }
    let calls = candidate.slices.iter().filter_map(|slice| lanes.zero_grad_of(*slice));
    calls.collect::<BTreeSet<_>>().len()
}

/// Which kernels follow which, and how often.
fn rationale(lanes: &Lanes<'_>, candidate: &Candidate, share: f64) -> String {
    let share = match lanes.stages[candidate.stage].stage {
        Stage::All => format!("{} of GPU time", units::percent(share)),
        _ => format!("{} of the GPU time of this stage", units::percent(share)),
    };
    let times = |n: usize| match n {
        1 => "once".to_owned(),
        n => format!("{} times", units::count(n as u64)),
    };
    let stream = |at: &u32| lanes.gpu.slice(*at as usize).stream;
    let across = candidate.split.iter().any(|find| {
        let slices = &candidate.slices[find.from as usize..find.to as usize];
        slices.windows(2).any(|pair| stream(&pair[0]) != stream(&pair[1]))
    });
    let place = if across { "across streams" } else { "on one stream" };
    let pattern = match candidate.sought {
        Sought::Chain(chain) => {
            let mut what = chain.what.to_owned();
            if let Some(first) = what.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            let is_first = candidate.split.iter().all(|find| find.to - find.from == 1);
            // (Other stages have rows of their own.)
            let stage = match lanes.stages[candidate.stage].stage {
                Stage::All => String::new(),
                stage => format!(" in the {} stage", stage.title()),
            };
            return format!(
                "{what} run in sequence {}{stage}. {} take {share}.",
                times(n_split(lanes, candidate)),
                chain.first.filter(|_| is_first).unwrap_or(chain.counted),
            );
        }
        Sought::Pattern(pattern) => pattern,
    };
    let most = |works: Vec<(u32, i64)>| {
        works
            .first()
            .map_or_else(String::new, |(work, _)| short_name(lanes.name_of(*work), NAME_LENGTH))
    };
    let dur_ns = |at: u32| lanes.gpu.slice(at as usize).dur_ns;
    let fused = || {
        let launches = candidate.active.iter();
        most(by_time(launches.map(|at| (lanes.code_of_slice(*at).work, dur_ns(*at)))))
    };
    let parts = || {
        let names = candidate.groups.iter();
        let names = names.map(|group| most(by_time(group.works.iter().map(|(w, t)| (*w, *t)))));
        names.collect::<Vec<_>>().join(", then ")
    };
    let next_to = match pattern.groups.len() {
        0 | 1 => String::new(),
        _ => format!(" next to each other {place}"),
    };
    let (adjacent, all) = candidate.adjacency();
    let often = format!(
        "{} ({} of {} launches)",
        times(candidate.split.len()),
        units::count(adjacent),
        units::count(all)
    );
    match (candidate.active.is_empty(), candidate.split.is_empty()) {
        (true, _) => {
            format!("{} run{next_to} {often} and take {share}.", parts())
        }
        (false, true) => format!(
            "{} does this in one kernel already: it runs {} and takes {share}.",
            fused(),
            times(candidate.active.len())
        ),
        (false, false) => format!(
            "{} does this in one kernel and runs {}, but {} still run{next_to} {often}; together they take \
             {share}.",
            fused(),
            times(candidate.active.len()),
            parts()
        ),
    }
}
