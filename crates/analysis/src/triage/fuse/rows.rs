//! The table: one row for each pattern that was found in a stage.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use report::{Cell, Column, Row, Unit, short_name, units};
use serde::{Deserialize, Serialize};

use super::find::{Candidate, Sought};
use super::lanes::Lanes;
use super::{Accepted, Fuse, Program, related};
use crate::triage::site::Attribution;
use crate::{columns, percent};

/// Rows of less time are counted, not listed, in percent of their stage.
const CUTOFF_PCT: f64 = 1.0;
/// Kernels that stand as evidence.
const MAX_EVIDENCE: usize = 3;
/// Lines of Python that a row names.
const MAX_LOCATIONS: usize = 4;
/// Characters of a kernel's name in a sentence.
const NAME_LENGTH: usize = 56;

/// What is fused, or could be, in one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FuseRow {
    /// The stage's id.
    pub stage: String,
    /// The device's id.
    pub device: String,
    /// The id of the pattern: `F01` to `F47` for fused kernels of frameworks, `K01` to `K15` for chains.
    pub pattern_id: String,
    /// What is fused.
    pub pattern: String,
    /// `already_fused`, `partial` or `opportunity`.
    pub status: String,
    /// `Confirmed` or `Candidate`.
    pub confidence: String,
    /// Time of the kernels concerned, in nanoseconds.
    pub related_ns: i64,
    /// That in percent of all GPU time of the stage.
    pub time_share_pct: f64,
    /// The lines of Python that launched them, most time first; empty if none is known.
    pub current_location: String,
    /// What would replace them.
    pub candidate_fused_path: String,
    /// Places where the parts stand next to each other, and launches of the fused kernel.
    pub n_occurrences: u64,
    /// Up to three kernels with their share of the stage.
    pub evidence: Vec<String>,
    /// Why, in one sentence.
    pub rationale: String,
}

#[inline(never)]
pub(super) fn rows(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    accepted: &[Accepted],
    program: Program,
) -> Fuse {
    let mut kept: Vec<(usize, FuseRow)> = Vec::new();
    let mut hidden: Vec<String> = Vec::new();
    for accepted @ Accepted { candidate, related_ns } in accepted {
        let share = percent(*related_ns, lanes.stages[candidate.stage].total_ns);
        if share < CUTOFF_PCT {
            hidden.push(format!("{} ({})", title(candidate), id(candidate)));
        } else {
            kept.push((candidate.stage, row(lanes, attribution, accepted, share, program)));
        }
    }
    trace::sort_by(&mut kept, |(stage, row), (other_stage, other)| {
        (stage, Reverse(row.related_ns), &row.pattern_id).cmp(&(
            other_stage,
            Reverse(other.related_ns),
            &other.pattern_id,
        ))
    });
    trace::sort(&mut hidden);
    let note = (!hidden.is_empty()).then(|| {
        let n = units::plural(hidden.len() as u64, "pattern", "patterns");
        hidden.dedup();
        format!("{n} below 1% of its stage's GPU time left out: {}.", hidden.join("; "))
    });
    Fuse { rows: kept.into_iter().map(|(_, row)| row).collect(), note }
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

fn row(
    lanes: &Lanes<'_>,
    attribution: Option<&Attribution>,
    Accepted { candidate, related_ns }: &Accepted,
    share: f64,
    program: Program,
) -> FuseRow {
    let (path, likely_pct) = match candidate.sought {
        Sought::Pattern(pattern) => (pattern.fused_path(), pattern.likely_pct),
        Sought::Chain(chain) => {
            (chain.fused_path(program.platform, program.framework), chain.likely_pct)
        }
    };
    let status = match (candidate.active.is_empty(), candidate.split.is_empty()) {
        (false, true) => "already_fused",
        (false, false) => "partial",
        (true, _) => "opportunity",
    };
    let confirmed = !candidate.active.is_empty() || share >= likely_pct;
    FuseRow {
        stage: lanes.stages[candidate.stage].id.to_owned(),
        device: String::new(),
        pattern_id: id(candidate).to_owned(),
        pattern: title(candidate).to_owned(),
        status: status.to_owned(),
        confidence: if confirmed { "Confirmed" } else { "Candidate" }.to_owned(),
        related_ns: *related_ns,
        time_share_pct: share,
        current_location: locations(lanes, attribution, candidate),
        n_occurrences: (candidate.split.len() + candidate.active.len()) as u64,
        evidence: evidence(lanes, candidate),
        rationale: rationale(lanes, candidate, share, &path),
        candidate_fused_path: path,
    }
}

/// Of chains whose kernels must have one input: how many finds there are whose inputs are not known.
fn sized(candidate: &Candidate) -> Option<usize> {
    match candidate.sought {
        Sought::Chain(chain) if chain.same_input => {
            Some(candidate.split.iter().filter(|find| !find.sized).count())
        }
        _ => None,
    }
}

/// Time by a key, most first.
fn by_time<K: Ord>(times: impl Iterator<Item = (K, i64)>) -> Vec<(K, i64)> {
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

/// One sentence: which kernels follow which, how often, and what would replace them.
fn rationale(lanes: &Lanes<'_>, candidate: &Candidate, share: f64, path: &str) -> String {
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
    let pattern = match candidate.sought {
        Sought::Chain(chain) => {
            let mut what = chain.what.to_owned();
            if let Some(first) = what.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            let inputs = match sized(candidate) {
                None => "",
                Some(0) => {
                    " All of them have the same rows and inner size, as the inputs of their ops say; it stays a \
                     candidate, because no file tells whether it is the same tensor."
                }
                Some(_) => {
                    " It stays a candidate, because the inputs of some of their ops are not known: they may differ."
                }
            };
            return format!(
                "{what} follow each other {place} {} and take {share} of this stage's GPU time; \
                 in their place could run: {path}.{inputs}",
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
    let first = path.split("; ").next().unwrap_or_default();
    match (candidate.active.is_empty(), candidate.split.is_empty()) {
        (true, _) => format!(
            "{} run{next_to} {often} and take {share} of this stage's GPU time; one kernel would replace \
             them: {first}.",
            parts()
        ),
        (false, true) => format!(
            "{} does this in one kernel already: it runs {} and takes {share} of this stage's GPU time.",
            fused(),
            times(candidate.active.len())
        ),
        (false, false) => format!(
            "{} does this in one kernel and runs {}, but {} still run{next_to} {often}; together they take \
             {share} of this stage's GPU time, and {first} would replace the rest.",
            fused(),
            times(candidate.active.len()),
            parts()
        ),
    }
}

impl Row for FuseRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "The stage of the program.",
            cell: |row| row.stage.as_str().into(),
        },
        columns::device("The device that they ran on.", |row| row.device.as_str().into()),
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
            help: "What is fused, or could be.",
            cell: |row| row.pattern.as_str().into(),
        },
        Column {
            key: "status",
            title: "Status",
            unit: Unit::Text,
            help: "already_fused: the fused kernel runs. opportunity: its parts run next to each other. partial: both.",
            cell: |row| row.status.as_str().into(),
        },
        Column {
            key: "confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "Confirmed if the fused kernel runs, the parts' share is large enough for this pattern, or the inputs of the ops say so.",
            cell: |row| row.confidence.as_str().into(),
        },
        Column {
            key: "related_ns",
            title: "Related time",
            unit: Unit::Time,
            help: "Time of the kernels concerned, only where they stand next to each other.",
            cell: |row| Cell::Ns(row.related_ns),
        },
        Column {
            key: "time_share_pct",
            title: "Share",
            unit: Unit::Percent,
            help: "Related time in percent of all GPU time of the stage.",
            cell: |row| Cell::Percent(row.time_share_pct),
        },
        Column {
            key: "current_location",
            title: "Python",
            unit: Unit::Text,
            help: "The lines of Python that launched these kernels, most time first.",
            cell: |row| match row.current_location.as_str() {
                "" => Cell::missing("no line of Python is known for these kernels"),
                location => location.into(),
            },
        },
        Column {
            key: "candidate_fused_path",
            title: "Fused path",
            unit: Unit::Text,
            help: "What would replace them, or where the fused kernel is.",
            cell: |row| row.candidate_fused_path.as_str().into(),
        },
        Column {
            key: "n_occurrences",
            title: "Occurrences",
            unit: Unit::Count,
            help: "Places where the parts stand next to each other, and launches of the fused kernel.",
            cell: |row| Cell::Count(row.n_occurrences),
        },
        Column {
            key: "evidence",
            title: "Evidence",
            unit: Unit::Text,
            help: "Up to three kernels with their share of the stage.",
            cell: |row| Cell::Text(row.evidence.join("; ")),
        },
        Column {
            key: "rationale",
            title: "Why",
            unit: Unit::Text,
            help: "Which kernels follow which, how often, and what would replace them.",
            cell: |row| row.rationale.as_str().into(),
        },
    ];
}
