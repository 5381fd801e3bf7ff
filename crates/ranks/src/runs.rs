//! Which files are ranks of one run.

use std::borrow::Cow;
use std::cell::OnceCell;

use report::Section;
use report::units::{plural, time};
use timeline::intervals::{Interval, length, union};

use crate::calls::RankCalls;
use crate::known::Known;
use crate::matched::Matched;

/// Files that were recorded further apart, in ns, are of two times; clocks of machines that are synchronised differ by less.
const APART_NS: i64 = 1_000_000_000;
/// So many files are named that are not compared.
const NAMED: usize = 6;

/// Several files, by run. What the collectives of a run show is found once, when it is first asked for.
#[derive(Default)]
pub struct Runs<'a> {
    files: Cow<'a, [RankCalls]>,
    runs: Vec<Run>,
}

/// The files of one run, in their order.
struct Run {
    members: Vec<usize>,
    known: OnceCell<Known>,
}

/// A rank is worth a look where another one would be done so much sooner, as a part of its kernels' time, if it came earlier: a tenth.
const LEAST_SAVED_PART: i64 = 10;

/// The ranks of one run.
pub struct OneRun<'a> {
    files: &'a [RankCalls],
    run: &'a Run,
    /// The file that is told of.
    of: Option<usize>,
}

impl<'a> Runs<'a> {
    /// More ranks than a person compares are not matched.
    pub const MOST_RANKS: usize = Matched::MOST_RANKS;

    /// Sorts files into runs. The order of the files is that of the ranks in every table ([`RankCalls::order`]).
    #[must_use]
    pub fn of(files: impl Into<Cow<'a, [RankCalls]>>) -> Self {
        let files = files.into();
        let strict = sorted(&files, &|a, b| why_apart(a, b).is_none());
        // (Where no two would be left, a rank without collectives stays: that it has none is what the comparison says.)
        let is_strict = strict.iter().any(|run| run.len() > 1);
        let lax = |a: &RankCalls, b: &RankCalls| {
            matches!(why_apart(a, b), None | Some(Apart::NoCollective))
        };
        let runs = if is_strict { strict } else { sorted(&files, &lax) };
        let run = |members| Run { members, known: OnceCell::new() };
        Self { runs: runs.into_iter().map(run).collect(), files }
    }

    /// The files, in their order.
    #[must_use]
    pub fn files(&self) -> &[RankCalls] {
        &self.files
    }

    /// The run with the most ranks; of equal ones the first. `None` where no two files are of one run.
    #[must_use]
    pub fn largest(&self) -> Option<OneRun<'_>> {
        let more = |a: &'_ Run, b: &'_ Run| a.members.len() < b.members.len();
        let largest = self.runs.iter().reduce(|a, b| if more(a, b) { b } else { a })?;
        self.run(largest, None)
    }

    /// The run of a file; `None` where no other file is of it.
    #[must_use]
    pub fn with(&self, file: usize) -> Option<OneRun<'_>> {
        self.run(self.runs.iter().find(|run| run.members.contains(&file))?, Some(file))
    }

    fn run<'b>(&'b self, run: &'b Run, of: Option<usize>) -> Option<OneRun<'b>> {
        (run.members.len() > 1).then_some(OneRun { files: &self.files, run, of })
    }

    /// Why no other file is of the run of this one, as a section.
    #[must_use]
    pub fn alone(&self, file: usize) -> Section {
        let mut section = Section::new("ranks", "Ranks");
        let run = Run { members: vec![file], known: OnceCell::new() };
        section.intro.extend(OneRun { files: &self.files, run: &run, of: None }.left_out());
        section
    }
}

/// The files in groups in which each two are alike.
fn sorted(files: &[RankCalls], alike: &dyn Fn(&RankCalls, &RankCalls) -> bool) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        match runs.iter_mut().find(|run| run.iter().all(|other| alike(file, &files[*other]))) {
            Some(run) => run.push(at),
            None => runs.push(vec![at]),
        }
    }
    runs
}

impl<'a> OneRun<'a> {
    /// What the collectives of its ranks show.
    pub(crate) fn known(&self) -> &'a Known {
        self.run.known.get_or_init(|| Known::of(&self.ranks()))
    }

    /// Its ranks.
    #[must_use]
    pub fn ranks(&self) -> Vec<&'a RankCalls> {
        self.run.members.iter().map(|at| &self.files[*at]).collect()
    }

    /// By how much the clock of a file is slow, in ns, as the ends of collectives show; 0 where they show nothing.
    #[must_use]
    pub fn clock_ns(&self, file: usize) -> i64 {
        let at = self.run.members.iter().position(|at| *at == file);
        at.map_or(0, |at| self.known().clocks.by_ns(at))
    }

    /// Whether a file is of it.
    #[must_use]
    pub fn holds(&self, file: usize) -> bool {
        self.run.members.contains(&file)
    }

    /// The file of the rank for which the others wait, as the sentence says it, and whether that costs one of them a tenth of its kernels'
    /// time or more: so much sooner would it be done if the late rank came no later than the next to last. (Long waits cost nothing where
    /// the launches of those that wait come as late.)
    #[must_use]
    pub fn latest_file(&self) -> Option<(usize, bool)> {
        let ranks = self.ranks();
        let matched = Matched::of_all(&ranks, self.known(), None);
        let (late, _) = matched.latest()?;
        let is_costly = |rank: &&RankCalls| {
            let wait = matched.device(&rank.name).and_then(|waits| waits.exposed_for(late));
            let busy = union(rank.kernels.iter().map(|kernel| kernel.times).collect());
            let saves_ns = wait.map_or(0, |wait| wait.saves_ns.unwrap_or(wait.ns));
            saves_ns > 0 && saves_ns.saturating_mul(LEAST_SAVED_PART) >= length(&busy)
        };
        let file = self.run.members.iter().copied().find(|at| self.files[*at].name == late)?;
        Some((file, ranks.iter().any(is_costly)))
    }

    /// What the rank of the file that is told of waits for the others, as that of its device.
    #[must_use]
    pub fn of_rank(&self, device: &str, within: Option<&[Interval]>) -> Option<Matched> {
        let at = self.run.members.iter().position(|at| Some(*at) == self.of)?;
        Some(Matched::of_rank(&self.ranks(), self.known(), at, (device, within)))
    }

    /// The files that are of no rank of it, and why, in a sentence each.
    #[must_use]
    pub(crate) fn left_out(&self) -> Option<String> {
        let others = (0..self.files.len()).filter(|at| !self.holds(*at));
        let others: Vec<&RankCalls> = others.map(|at| &self.files[at]).collect();
        let mut sentences: Vec<String> =
            others.iter().take(NAMED).filter_map(|other| self.why_not(other)).collect();
        if let Some(n) = others.len().checked_sub(NAMED).filter(|n| *n > 0) {
            sentences.push(format!("{} more are not compared.", plural(n as u64, "file", "files")));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    fn why_not(&self, other: &RankCalls) -> Option<String> {
        let ranks = self.ranks();
        let mut reasons = ranks.iter().filter_map(|rank| Some((rank, why_apart(other, rank)?)));
        // (The first that keeps it apart from any; that another file has its rank says least.)
        let (rank, apart) =
            reasons.clone().find(|(_, apart)| *apart != Apart::SameRank).or(reasons.next())?;
        let of = if ranks.len() > 1 { "the others" } else { rank.file.as_str() };
        let why = match apart {
            Apart::World(own, others) => format!(
                "its run has {}, and that of {of} {others}",
                plural(own.unsigned_abs(), "rank", "ranks")
            ),
            Apart::Time { ns, is_before } => {
                let side = if is_before { "before" } else { "after" };
                format!("it was recorded {} {side} {of}", time(ns))
            }
            Apart::NoCollective if other.kinds.is_empty() => "it has no collective".to_owned(),
            Apart::NoCollective => format!("{of} has no collective"),
            Apart::SameRank => format!("{} has this rank, too", rank.file),
        };
        Some(format!("{} (rank {}) is not compared: {why}.", other.file, other.name))
    }
}

/// Why two files are not of one run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// Their runs have so many ranks.
    World(i64, i64),
    /// They were recorded so far apart, in ns, the first one before the second or after it.
    Time { ns: i64, is_before: bool },
    /// Only one of them has collectives.
    NoCollective,
    /// They are of one rank.
    SameRank,
}

fn why_apart(a: &RankCalls, b: &RankCalls) -> Option<Apart> {
    let worlds = a.world_size.zip(b.world_size).filter(|(a, b)| a != b);
    let times = a.recorded.zip(b.recorded).and_then(|(a, b)| {
        let (before, after) = (b.0.saturating_sub(a.1), a.0.saturating_sub(b.1));
        match before.max(after) {
            ..=APART_NS => None,
            ns => Some(Apart::Time { ns, is_before: ns == before }),
        }
    });
    let is_silent = a.kinds.is_empty() != b.kinds.is_empty();
    worlds
        .map(|(a, b)| Apart::World(a, b))
        .or(times)
        .or(is_silent.then_some(Apart::NoCollective))
        .or((a.rank == b.rank).then_some(Apart::SameRank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Kind;

    const SECOND: i64 = 1_000_000_000;

    fn file(rank: i64, world_size: i64, from_s: i64, has_calls: bool) -> RankCalls {
        let kind = Kind {
            key: "allreduce".to_owned(),
            group_size: Some(world_size),
            is_broadcast: false,
            calls: Vec::new(),
        };
        RankCalls {
            name: rank.to_string(),
            rank,
            file: format!("{rank}.json"),
            world_size: Some(world_size),
            recorded: Some((from_s * SECOND, (from_s + 1) * SECOND)),
            kinds: if has_calls { vec![kind] } else { Vec::new() },
            ..RankCalls::default()
        }
    }

    fn said(files: &[RankCalls]) -> (Vec<&str>, Option<String>) {
        let runs = Runs::of(files);
        let run = runs.largest().expect("two are of one run");
        let names = files.iter().enumerate().filter(|(at, _)| run.holds(*at));
        (names.map(|(_, rank)| rank.name.as_str()).collect(), run.left_out())
    }

    #[test]
    fn the_largest_run_is_compared_and_each_other_file_is_told_of_with_the_reason() {
        let files = [file(0, 1, 30, true), file(1, 4, 0, true), file(2, 4, 1, true)];
        let why = "0.json (rank 0) is not compared: its run has 1 rank, and that of the others 4.";
        assert_eq!(said(&files), (vec!["1", "2"], Some(why.to_owned())));
        assert!(Runs::of(&files[..]).with(0).is_none(), "it has no others");
        assert_eq!(
            Runs::of(&files[..]).with(2).map(|run| (run.holds(1), run.holds(0))),
            Some((true, false))
        );
        let files = [file(0, 4, 30, true), file(1, 4, 0, true), file(2, 4, 1, true)];
        let why = "0.json (rank 0) is not compared: it was recorded 29.0 s after the others.";
        assert_eq!(said(&files), (vec!["1", "2"], Some(why.to_owned())));
        let files = [file(0, 4, 0, true), file(1, 4, 1, true), file(2, 4, 0, false)];
        let why = "2.json (rank 2) is not compared: it has no collective.";
        assert_eq!(said(&files), (vec!["0", "1"], Some(why.to_owned())));
        let files = [file(0, 2, 0, true), file(0, 2, 0, true), file(1, 2, 0, true)];
        let why = "0.json (rank 0) is not compared: 0.json has this rank, too.";
        assert_eq!(said(&files), (vec!["0", "1"], Some(why.to_owned())));
    }

    #[test]
    fn of_two_files_one_without_collectives_is_compared_all_the_same() {
        let files = [file(0, 2, 0, true), file(1, 2, 0, false)];
        assert_eq!(said(&files), (vec!["0", "1"], None));
        let files = [file(0, 2, 0, true), file(1, 4, 0, true)];
        assert!(Runs::of(&files[..]).largest().is_none());
        let why = "1.json (rank 1) is not compared: its run has 4 ranks, and that of 0.json 2.";
        assert_eq!(Runs::of(&files[..]).alone(0).intro, [why]);
    }
}
