//! The table: one row for each pattern that was found in a stage.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use report::{Cell, Column, Row, Unit, short_name, units};
use serde::Serialize;

use super::advice::{Advice, Rule};
use super::find::{Candidate, Sought};
use super::lanes::Lanes;
use super::{Accepted, Fuse, related};
use crate::site::Attribution;
use crate::stages::Stage;
use crate::wall::{Removed, Wall};
use crate::words;
use analysis::columns;
use timeline::percent;

/// What is fused already is listed from this share of its stage on, in percent.
const FUSED_PCT: f64 = 1.0;
/// Kernels that are listed as evidence.
const MAX_EVIDENCE: usize = 3;
/// Lines of Python that a row names.
const MAX_LOCATIONS: usize = 4;
/// Characters of a kernel's name in a sentence.
const NAME_LENGTH: usize = 56;

/// The kernels that are fused or could be fused, in one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FuseRow {
    /// The stage.
    pub stage: Stage,
    /// The device's id.
    pub device: String,
    /// 1 to 3 by `savings_pct`; `None` where the work is fused already.
    pub priority: Option<u8>,
    /// The id of the pattern: `F01` to `F47` for fused kernels of frameworks, `K01` to `K17` for chains.
    pub pattern_id: String,
    /// What is fused.
    pub pattern: String,
    /// Whether the fused kernel runs.
    pub status: FuseStatus,
    /// Of the pattern, not of the gain.
    pub confidence: PatternConfidence,
    /// The wall time that goes away at most, in ns: an estimate. `None` where the work is fused already.
    pub savings_bound_ns: Option<i64>,
    /// That in percent of the GPU span of the device.
    pub savings_pct: Option<f64>,
    /// What the gain rests on.
    pub gain_confidence: Option<GainConfidence>,
    /// Time of the kernels concerned, in nanoseconds.
    pub related_ns: i64,
    /// That in percent of all GPU time of the stage.
    pub time_share_pct: f64,
    /// The lines of Python that launched them, most time first; empty if none is known.
    pub current_location: String,
    /// What would replace them.
    pub candidate_fused_path: String,
    /// What to do; empty where the work is fused already.
    pub action: String,
    /// How to check the result; empty where the work is fused already.
    pub check: String,
    /// Places where the parts are next to each other, and launches of the fused kernel.
    pub n_occurrences: u64,
    /// Up to three kernels with their share of the stage.
    pub evidence: Vec<String>,
    /// Why, in a few sentences.
    pub rationale: String,
    /// What goes away in all stages where the same change acts, in ns and in percent of the GPU span; `None` where it acts in
    /// one stage only.
    #[serde(skip)]
    pub(crate) together: Option<(i64, f64)>,
}

/// Whether the fused kernel of a pattern runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuseStatus {
    /// It runs.
    AlreadyFused,
    /// Its parts run next to each other.
    Opportunity,
    /// It runs, and in other places its parts do.
    Partial,
}

impl FuseStatus {
    /// All of them.
    pub const EVERY: [Self; 3] = [Self::AlreadyFused, Self::Opportunity, Self::Partial];

    /// The word for it in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::AlreadyFused => "already_fused",
            Self::Opportunity => "opportunity",
            Self::Partial => "partial",
        }
    }
}

/// How sure it is that the kernels of a row belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternConfidence {
    /// The fused kernel runs, or all parts run in the order of the pattern.
    Confirmed,
    /// The trace cannot prove it.
    Candidate,
}

impl PatternConfidence {
    /// The word for it in artifacts and tables.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Confirmed => "Confirmed",
            Self::Candidate => "Candidate",
        }
    }
}

/// What a gain rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainConfidence {
    /// Launches are recorded.
    Estimate,
    /// They are not, so that waits for the CPU are not known.
    RoughEstimate,
}

impl GainConfidence {
    /// The words for it in artifacts and tables.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Estimate => "Estimate",
            Self::RoughEstimate => "Rough estimate",
        }
    }
}

crate::ids::serialize_as_id!(FuseStatus, PatternConfidence, GainConfidence);

impl FuseRow {
    /// Whether anything is advised. Markdown documents print only these rows; the page and artifacts have all.
    #[must_use]
    pub fn is_advice(&self) -> bool {
        self.priority.is_some()
    }
}

#[inline(never)]
pub(super) fn rows(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    judged: &[(Accepted, Option<Advice>)],
    wall: &Wall,
) -> Fuse {
    let mut rows: Vec<FuseRow> = Vec::new();
    let (mut small, mut impossible) = (Vec::new(), Vec::new());
    for (accepted, advice) in judged {
        let candidate = &accepted.candidate;
        let name = || format!("{} ({})", title(candidate), id(candidate));
        let worth = advice.as_ref().and_then(|advice| wall.priority(advice.saved_ns));
        if worth.is_none() && !candidate.split.is_empty() {
            if advice.is_some() {
                small.push(name())
            } else {
                impossible.push(name())
            };
        }
        // (Of what is fused in part, what is left may not be worth it.)
        if worth.is_some() || !candidate.active.is_empty() {
            let advice = advice.as_ref().zip(worth);
            rows.push(row(lanes, attribution, accepted, advice, wall));
        }
    }
    join_stages(&mut rows, judged, wall);
    rows.retain(|row| row.priority.is_some() || row.time_share_pct >= FUSED_PCT);
    trace::sort_by(&mut rows, |row, other| {
        let key = |row: &FuseRow| (Reverse(row.savings_bound_ns), Reverse(row.related_ns));
        key(row).cmp(&key(other)).then_with(|| row.pattern_id.cmp(&other.pattern_id))
    });
    let list = |mut names: Vec<String>, why: &str| {
        trace::sort(&mut names);
        names.dedup();
        (!names.is_empty()).then(|| format!("{why}: {}.", names.join("; ")))
    };
    // (What is possible in one stage is possible.)
    impossible.retain(|name| !small.contains(name));
    let notes = [
        list(
            small,
            "Found, but not advised because at most 0.5% of the GPU span or 10 µs would go away",
        ),
        list(
            impossible,
            "Found, but not advised because the trace does not show that a replacement applies",
        ),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    Fuse { rows, note, ..Fuse::default() }
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
        let mut removed: Vec<Removed> = advice.flat_map(|it| it.removed.clone()).collect();
        trace::sort(&mut removed);
        let saved_ns = wall.saved_without(&removed);
        let pct = percent(saved_ns, wall.span_ns);
        let text = format!(
            " The same change acts in {} stages. In all of them it saves at most {} ({} of {}).",
            stages.len(),
            units::time(saved_ns),
            units::percent(pct),
            wall.span(),
        );
        for at in stages {
            let row = &mut rows[at];
            row.priority = wall.priority(saved_ns).or(row.priority);
            row.together = Some((saved_ns, pct));
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
    Accepted { candidate, related_ns }: &Accepted,
    advice: Option<(&Advice, u8)>,
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
    let first = advice.and_then(|(advice, _)| advice.remedies.first());
    let saved_ns = advice.map(|(advice, _)| advice.saved_ns);
    let gain = if wall.linked { GainConfidence::Estimate } else { GainConfidence::RoughEstimate };
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
        gain_confidence: saved_ns.map(|_| gain),
        related_ns: *related_ns,
        time_share_pct: share,
        current_location: locations(lanes, attribution, candidate),
        n_occurrences: (candidate.split.len() + candidate.active.len()) as u64,
        evidence: evidence(lanes, candidate),
        rationale: rationale(lanes, candidate, share, advice.map(|(advice, _)| advice), wall),
        action: first.map(|remedy| remedy.action.to_owned()).unwrap_or_default(),
        check: first.map(|remedy| remedy.check.to_owned()).unwrap_or_default(),
        candidate_fused_path: path,
        together: None,
    }
}

/// How large the estimate is, and what it rests on.
fn gain(advice: &Advice, wall: &Wall) -> String {
    let Rule { launches, attention_ns, latency_ns, one_pass } = advice.rule;
    let of_gpu = match (attention_ns, latency_ns) {
        (None, Some(ns)) => format!(
            "{} of exposed time for each collective that goes away, as long as the shortest ones take; the bytes stay",
            units::time(ns)
        ),
        (Some(Some(ns)), _) => format!(
            "the exposed time of these kernels less {}, which a fused kernel takes at the GPU's peak rates",
            units::time(ns)
        ),
        (Some(None), _) => "the exposed time of these kernels; what a fused kernel takes instead is not known, because the sizes or \
                       the GPU's rates are not"
            .to_owned(),
        (None, None) if one_pass => {
            "the exposed time of these kernels without one pass over each tensor, where its size and the GPU's rates are known; a \
             batch norm that is folded into a convolution takes no time at all"
                .to_owned()
        }
        (None, None) => "the exposed time of these kernels without what a fused kernel still takes".to_owned(),
    };
    let limit = match launches {
        Some((n, ns)) => format!(
            "where the GPU waits for the CPU, the CPU time of {} that {} away ({} in all, each from its launch to the next at \
             most, with the profiler's overhead)",
            units::plural(n, "launch", "launches"),
            if n == 1 { "goes" } else { "go" },
            units::time(ns)
        ),
        None if wall.linked => "time during which the GPU waits for the CPU counts as 0".to_owned(),
        None => {
            "no launches are recorded, so it is unknown where the GPU waits for the CPU".to_owned()
        }
    };
    format!(
        " It saves at most {} ({} of {}). This is an estimate: {of_gpu}; {limit}.",
        units::time(advice.saved_ns),
        units::percent(percent(advice.saved_ns, wall.span_ns)),
        wall.span(),
    )
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

/// Which kernels follow which, how often, what would replace them, and what it is worth.
fn rationale(
    lanes: &Lanes<'_>,
    candidate: &Candidate,
    share: f64,
    advice: Option<&Advice>,
    wall: &Wall,
) -> String {
    let share = units::percent(share);
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
    let gain = advice.map(|advice| gain(advice, wall)).unwrap_or_default();
    let pattern = match candidate.sought {
        Sought::Chain(chain) => {
            let mut what = chain.what.to_owned();
            if let Some(first) = what.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            return format!(
                "{what} follow each other {}. The kernels concerned take {share} of the GPU time of this stage.{gain}",
                times(candidate.split.len())
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
            format!(
                "{} run{next_to} {often} and take {share} of the GPU time of this stage.{gain}",
                parts()
            )
        }
        (false, true) => format!(
            "{} does this in one kernel already: it runs {} and takes {share} of the GPU time of this stage.",
            fused(),
            times(candidate.active.len())
        ),
        (false, false) => format!(
            "{} does this in one kernel and runs {}, but {} still run{next_to} {often}; together they take \
             {share} of the GPU time of this stage.{gain}",
            fused(),
            times(candidate.active.len()),
            parts()
        ),
    }
}

/// What is missing where the work is fused already.
const FUSED: &str = "fused already";

impl Row for FuseRow {
    const SHOWN: &'static [&'static str] = &[
        "pattern",
        "stage",
        "device",
        "priority",
        "status",
        "savings_bound_ns",
        "savings_pct",
        "confidence",
        "current_location",
        "candidate_fused_path",
        "related_ns",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "The stage of the program.",
            cell: |row| words::of_stage(Some(row.stage)),
        },
        columns::device("The device that they ran on.", |row| row.device.as_str().into()),
        Column {
            key: "priority",
            title: "Priority",
            unit: Unit::Text,
            help: "By what it saves at most: P1 from 5% of the GPU span, P2 from 2%, P3 from 0.5%.",
            cell: |row| {
                let priority = row.priority.map(|priority| format!("P{priority}"));
                Cell::or_missing(priority, Cell::from, FUSED)
            },
        },
        Column {
            key: "pattern_id",
            title: "Id",
            unit: Unit::Text,
            help: "The pattern's id: F for fused kernels of frameworks, K for chains of kernels.",
            cell: |row| row.pattern_id.as_str().into(),
        },
        Column {
            key: "pattern",
            title: "Pattern",
            unit: Unit::Text,
            help: "The kernels that are fused or could be fused.",
            cell: |row| row.pattern.as_str().into(),
        },
        Column {
            key: "status",
            title: "Status",
            unit: Unit::Text,
            help: "Whether the fused kernel runs already.",
            cell: |row| words::of_fuse_status(row.status).into(),
        },
        Column {
            key: "confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "Of the pattern, not of the gain. Confirmed: the fused kernel runs, or all parts run in the order of the pattern. Candidate: the trace cannot prove that they belong together.",
            cell: |row| row.confidence.id().into(),
        },
        Column {
            key: "savings_bound_ns",
            title: "Saves at most",
            unit: Unit::Time,
            help: "Upper bound on the wall time saved, an estimate: the exposed time of the kernels without what a fused kernel still takes. Where the GPU waits for the CPU: the CPU time of the launches that go away.",
            cell: |row| Cell::or_missing(row.savings_bound_ns, Cell::Ns, FUSED),
        },
        Column {
            key: "savings_pct",
            title: "Share of GPU span",
            unit: Unit::Percent,
            help: "Saves at most in percent of the GPU span: from the first start to the last end on the device, without an earlier step, idle time with work queued, set-up and one-off pauses.",
            cell: |row| Cell::or_missing(row.savings_pct, Cell::Percent, FUSED),
        },
        Column {
            key: "gain_confidence",
            title: "Confidence of gain",
            unit: Unit::Text,
            help: "Estimate: launches are recorded, so that waits for the CPU are known. Rough estimate: they are not.",
            cell: |row| Cell::or_missing(row.gain_confidence, |gain| gain.id().into(), FUSED),
        },
        Column {
            key: "related_ns",
            title: "Related time",
            unit: Unit::Time,
            help: "Time of the kernels concerned, only where they are next to each other. This is not a saving.",
            cell: |row| Cell::Ns(row.related_ns),
        },
        Column {
            key: "time_share_pct",
            title: analysis::columns::OF_STAGE_TIME,
            unit: Unit::Percent,
            help: "Related time in percent of the GPU time of the stage. This is not a saving.",
            cell: |row| Cell::Percent(row.time_share_pct),
        },
        Column {
            key: "current_location",
            title: "Python function",
            unit: Unit::Path,
            help: "The Python lines that launched these kernels, most time first.",
            cell: |row| match row.current_location.as_str() {
                "" => Cell::missing("not recorded"),
                location => location.into(),
            },
        },
        Column {
            key: "candidate_fused_path",
            title: "Replacement",
            unit: Unit::Text,
            help: "What would replace the kernels, or the files of the fused kernel.",
            cell: |row| row.candidate_fused_path.as_str().into(),
        },
        Column {
            key: "action",
            title: "What to do",
            unit: Unit::Text,
            help: "What to do first.",
            cell: |row| match row.action.as_str() {
                "" => Cell::missing(FUSED),
                action => action.into(),
            },
        },
        Column {
            key: "check",
            title: "How to check",
            unit: Unit::Text,
            help: "What a new trace shows if it worked.",
            cell: |row| match row.check.as_str() {
                "" => Cell::missing(FUSED),
                check => check.into(),
            },
        },
        Column {
            key: "n_occurrences",
            title: "Occurrences",
            unit: Unit::Count,
            help: "Places where the parts run next to each other, and launches of the fused kernel.",
            cell: |row| Cell::Count(row.n_occurrences),
        },
        Column {
            key: "evidence",
            title: "Evidence",
            unit: Unit::Text,
            help: "Up to three kernels with their share of the stage.",
            cell: |row| Cell::from(row.evidence.join("; ")),
        },
        Column {
            key: "rationale",
            title: "Why",
            unit: Unit::Text,
            help: "Which kernels follow which, how often, and what the estimate rests on.",
            cell: |row| row.rationale.as_str().into(),
        },
    ];
}
