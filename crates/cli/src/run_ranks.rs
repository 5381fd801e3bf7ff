//! Files of several ranks, sorted into runs: what each waits for the others.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kinetoscope::report::{document, units};
use kinetoscope::{Decoded, Details, HostIndex, OneRun, RankCalls, Runs};

use crate::input;
use crate::traces::{self, Chosen, OfRank, Ranks, rank_of};

/// A trace with the arguments that its report needs.
pub struct Read {
    /// The trace.
    pub decoded: Decoded,
    /// Its arguments.
    pub details: Details,
}

impl Read {
    /// Reads a file, twice.
    ///
    /// # Errors
    /// When it cannot be read, is no trace, or changes in between.
    pub fn of(path: &Path) -> Result<Self> {
        let version = input::Version::of(path)?;
        let decoded = input::decode(path)?;
        let details = input::details_of_host(path, &decoded, &version)?;
        Ok(Self { decoded, details })
    }
}

/// The files of several ranks; empty where there are no several.
#[derive(Default)]
pub struct RunRanks {
    /// In the order of the ranks.
    runs: Runs<'static>,
    /// The file of each.
    paths: Vec<PathBuf>,
    /// The file that was read last: the one whose report most likely comes first, so that this one is not read twice.
    kept: RefCell<Option<(PathBuf, Read)>>,
}

impl RunRanks {
    /// Reads each of `ranks`, one after the other. What cannot be read is left out with a message: the report is of another one.
    pub fn of(ranks: &[OfRank], wanted: Ranks) -> Self {
        if ranks.len() < 2 || ranks.len() > Runs::MOST_RANKS {
            if ranks.len() > 1 {
                eprintln!("the ranks are not compared: there are too many");
            }
            return Self::default();
        }
        let is_wanted =
            |rank: i64| matches!(wanted, Ranks::Only(only) | Ranks::Near(only) if only == rank);
        let reported = ranks.iter().position(|(rank, _)| is_wanted(*rank)).unwrap_or(0);
        let (mut files, mut kept) = (Vec::new(), None);
        for at in (0..ranks.len()).filter(|at| *at != reported).chain([reported]) {
            let (rank, path) = &ranks[at];
            match Read::of(path) {
                Ok(read) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let index = HostIndex::of(&read.decoded.trace);
                    files.push((RankCalls::of(&index, &read.details, *rank, &name), path.clone()));
                    if at == reported {
                        kept = Some((path.clone(), read));
                    }
                }
                Err(reason) => eprintln!("rank {rank} is not compared: {reason:#}"),
            }
        }
        if files.len() < 2 {
            return Self { kept: RefCell::new(kept), ..Self::default() };
        }
        files.sort_by(|(a, path), (b, other)| a.order().cmp(&b.order()).then(path.cmp(other)));
        let (calls, paths): (Vec<RankCalls>, _) = files.into_iter().unzip();
        Self { runs: Runs::of(calls), paths, kept: RefCell::new(kept) }
    }

    /// The files that are left where the lowest rank is wanted: those of the run with the most ranks, and those that tell no rank.
    pub fn of_largest(&self, mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        if let Some(run) = self.runs.largest() {
            let is_other = |path: &PathBuf| self.file(path).is_some_and(|file| !run.holds(file));
            paths.retain(|path| !is_other(path));
        }
        paths
    }

    /// The rank for which the others wait, and whether that costs them much: its own trace says why. Of the run with the most ranks.
    fn late(&self) -> Option<(i64, bool)> {
        let (file, costs_much) = self.runs.largest()?.latest_file()?;
        Some((rank_of(self.paths.get(file)?)?, costs_much))
    }

    fn file(&self, path: &Path) -> Option<usize> {
        self.paths.iter().position(|one| one == path)
    }

    /// What the ranks of a file's run tell of each other, as a document; `None` where nothing was compared.
    pub fn document(&self, path: Option<&Path>) -> Option<String> {
        let (runs, n_files) = (&self.runs, self.runs.files().len());
        let file = path.and_then(|path| self.file(path));
        let run = match file {
            Some(file) => runs.with(file),
            None => runs.largest(),
        };
        let section = match &run {
            Some(run) => run.section(),
            None if n_files == 0 => return None,
            None => runs.alone(file.unwrap_or(0)),
        };
        let n = run.map_or(n_files, |run| run.ranks().len());
        Some(document(&units::plural(n as u64, "rank", "ranks"), &[section]))
    }

    /// Calls `with` the run of a file.
    pub fn with_run<T>(&self, path: &Path, with: impl FnOnce(Option<&OneRun<'_>>) -> T) -> T {
        let run = self.file(path).and_then(|file| self.runs.with(file));
        with(run.as_ref())
    }

    /// A file, as it was read to be compared, or read now.
    ///
    /// # Errors
    /// As [`Read::of`].
    pub fn read(&self, path: &Path) -> Result<Read> {
        // (What is kept of another file is not held any longer.)
        match self.kept.take().filter(|(kept, _)| kept == path) {
            Some((_, read)) => Ok(read),
            None => Read::of(path),
        }
    }
}

/// The traces that are wanted of these, and the ranks of all.
///
/// # Errors
/// When a file or folder cannot be read, or nothing is left, or several are of which one is needed.
pub fn chosen(
    wanted: &traces::Wanted,
    paths: Vec<PathBuf>,
    json: bool,
) -> Result<(Vec<Chosen>, RunRanks)> {
    let mut ranks = wanted.choice.ranks();
    let found = RunRanks::of(&traces::ranks_of(&paths), ranks);
    let paths = if ranks == Ranks::Lowest { found.of_largest(paths) } else { paths };
    if ranks == Ranks::Lowest
        && let Some((rank, costs_much)) = found.late()
    {
        let of_ranks = || paths.iter().filter_map(|path| rank_of(path));
        if costs_much {
            ranks = Ranks::Near(rank);
            eprintln!(
                "{}; using rank {rank}, for which the others wait (--rank selects another, --all-ranks all)",
                units::plural(of_ranks().count() as u64, "rank", "ranks")
            );
        } else if of_ranks().min() != Some(rank) {
            // (The report is of the lowest rank.)
            eprintln!(
                "the others wait for rank {rank}, which costs each less than a tenth of its kernels' time: --rank {rank} reports on it"
            );
        }
    }
    Ok((traces::one_if_json(ranks, paths, json)?, found))
}
