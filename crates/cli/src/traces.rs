//! Chooses the traces of a command: files as they are, folders for the traces in them.
//!
//! Files in a folder are recognised by content. What is left out is printed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::FIXED_TRACE;
use kinetoscope::{Decoded, Decoder, FileKind, NotATrace, is_no_trace_by_name, rank, rank_of_name};

use crate::failure::Usage;
use crate::guard::Guard;

/// The traces on the command line.
#[derive(clap::Args)]
pub struct Wanted {
    /// Traces (.json or .json.gz), or folders of them. If there are several ranks, the lowest is used; by `diagnose` the one for which the others wait, if that costs one of them a tenth of its kernels' time.
    #[arg(required = true)]
    pub trace: Vec<PathBuf>,
    #[command(flatten)]
    pub choice: Choice,
}

/// Which ranks are wanted.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct Choice {
    /// Use only this rank.
    #[arg(long)]
    pub rank: Option<i64>,
    /// Use all ranks, one after the other.
    #[arg(long, conflicts_with = "rank")]
    pub all_ranks: bool,
}

impl Wanted {
    /// The traces.
    ///
    /// # Errors
    /// As [`choose`].
    pub fn chosen(&self) -> Result<Vec<Chosen>> {
        choose(&self.trace, self.choice.ranks())
    }
}

/// Prints the document of each chosen trace, with an empty line between two; of one trace only where it is JSON.
///
/// # Errors
/// When several traces are chosen and `json` is set, as [`choose`], as `document`, or when stdout is closed.
pub fn print_each(
    wanted: &Wanted,
    json: bool,
    document: impl Fn(&Path) -> Result<String>,
) -> Result<()> {
    print_chosen(&chosen_for_stdout(wanted, json)?, document)
}

/// The traces whose documents stdout takes.
///
/// # Errors
/// As [`print_each`], but for those of its documents.
pub fn chosen_for_stdout(wanted: &Wanted, json: bool) -> Result<Vec<Chosen>> {
    one_if_json(wanted.choice.ranks(), found_for_stdout(wanted)?, json)
}

/// A rank, and its trace.
pub type OfRank = (i64, PathBuf);

/// The files that are named and those of the folders that are; what is left out is printed.
///
/// # Errors
/// As [`choose`], and where stdout would write over one of them.
pub fn found_for_stdout(wanted: &Wanted) -> Result<Vec<PathBuf>> {
    Guard::of(wanted.trace.iter().map(PathBuf::as_path)).allow_stdout()?;
    found(&wanted.trace)
}

/// Of several files those that tell their rank, in order.
pub fn ranks_of(paths: &[PathBuf]) -> Vec<OfRank> {
    let mut ranks: Vec<OfRank> = Vec::new();
    if paths.len() > 1 {
        ranks.extend(paths.iter().filter_map(|path| Some((rank_of(path)?, path.clone()))));
        ranks.sort();
    }
    ranks
}

/// The traces that are wanted of these; of JSON there is one document.
///
/// # Errors
/// When several are left and `json` is set, and as [`choose`].
pub fn one_if_json(ranks: Ranks, paths: Vec<PathBuf>, json: bool) -> Result<Vec<Chosen>> {
    let chosen = choose_of(paths, ranks)?;
    if json && chosen.len() > 1 {
        let text = "--json needs one trace: name it, or select a rank with --rank";
        return Err(Usage(text.to_owned()).into());
    }
    Ok(chosen)
}

/// Prints the document of each of these traces, with an empty line between two.
///
/// # Errors
/// As `document`, or when stdout is closed.
pub fn print_chosen(chosen: &[Chosen], document: impl Fn(&Path) -> Result<String>) -> Result<()> {
    let mut stdout = std::io::stdout();
    for (at, one) in chosen.iter().enumerate() {
        if at > 0 {
            stdout.write_all(b"\n")?;
        }
        stdout.write_all(document(&one.path)?.as_bytes())?;
    }
    Ok(())
}

impl Choice {
    /// The same as a rule.
    pub fn ranks(self) -> Ranks {
        match (self.rank, self.all_ranks) {
            (Some(rank), _) => Ranks::Only(rank),
            (None, true) => Ranks::All,
            (None, false) => Ranks::Lowest,
        }
    }
}

/// Which of several ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// The lowest.
    Lowest,
    /// This one, which must be there.
    Only(i64),
    /// This one if it is there, else the lowest.
    Near(i64),
    /// All.
    All,
}

impl Ranks {
    /// That of another trace, if it has one.
    pub fn near(rank: Option<i64>) -> Self {
        rank.map_or(Self::Lowest, Self::Near)
    }
}

/// A trace to work on.
#[derive(Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The file.
    pub path: PathBuf,
    /// A name for what is written of it, different for each.
    pub name: String,
}

/// Folders in folders are searched this deep.
pub const DEPTH: u32 = 6;
/// What is read of a file to learn its kind and its rank: the profiler writes its facts before the events.
const HEAD: u64 = 256 << 10;

/// The traces of `given`: of several ranks those that `ranks` wants, and always those without a rank.
///
/// # Errors
/// When a file or folder cannot be read, or nothing is left.
pub fn choose(given: &[PathBuf], ranks: Ranks) -> Result<Vec<Chosen>> {
    choose_of(found(given)?, ranks)
}

/// The files and the traces of the folders, without those that are merged of others. What is left out is printed.
///
/// # Errors
/// When a file or folder cannot be read, or nothing is left.
pub fn found(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in given {
        if path.is_dir() {
            paths.extend(of_folder(path)?);
        } else {
            paths.push(path.clone());
        }
    }
    Ok(if paths.len() > 1 { without_merged(paths) } else { paths })
}

/// As [`choose`], of files that were found before.
///
/// # Errors
/// When nothing is left.
pub fn choose_of(mut paths: Vec<PathBuf>, ranks: Ranks) -> Result<Vec<Chosen>> {
    if paths.len() > 1 || matches!(ranks, Ranks::Only(_)) {
        paths = of_ranks(paths, ranks)?;
    }
    let mut taken = BTreeSet::new();
    Ok(paths
        .into_iter()
        .map(|path| {
            let stem = stem(&path);
            let numbers = (2..).map(|n| format!("{stem}-{n}"));
            let mut names = std::iter::once(stem.clone()).chain(numbers);
            let name = names.find(|name| taken.insert(name.clone())).unwrap_or(stem);
            Chosen { path, name }
        })
        .collect())
}

/// The one trace of a file or a folder, of several ranks that of `rank` or the lowest.
///
/// # Errors
/// As [`choose`], and when several are left.
pub fn one(path: &Path, rank: Option<i64>) -> Result<Chosen> {
    only(choose(&[path.to_owned()], Ranks::near(rank))?, path)
}

/// The only one that was chosen of a folder.
///
/// # Errors
/// When there are several or none.
pub fn only(mut chosen: Vec<Chosen>, path: &Path) -> Result<Chosen> {
    if chosen.len() > 1 {
        let names: Vec<String> =
            chosen.iter().map(|chosen| chosen.path.display().to_string()).collect();
        let (path, n) = (path.display(), names.len());
        let text = format!("{path} contains {n} traces; name one of them: {}", names.join(", "));
        return Err(Usage(text).into());
    }
    chosen.pop().context("no traces are left")
}

/// The traces in a folder, by what they hold.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(folder, DEPTH, &mut found)?;
    let mut left_out = Vec::new();
    found.retain(|path| match head(path) {
        Some(Err(reason)) => {
            left_out.push(format!("{} ({})", path.display(), reason.title()));
            false
        }
        _ => true,
    });
    let left_out = left_out.join(", ");
    if found.is_empty() {
        let also =
            if left_out.is_empty() { left_out } else { format!("; it contains: {left_out}") };
        let text = format!("{} contains no trace (.json, .json.gz){also}", folder.display());
        return Err(Usage(text).into());
    }
    if !left_out.is_empty() {
        eprintln!("ignored, not traces: {left_out}");
    }
    Ok(found)
}

/// SGLang writes one more file merged from all ranks; it adds nothing where those of single ranks are in the same folder.
fn without_merged(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_merged =
        |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().starts_with("merged-");
    let (merged, own): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| is_merged(path));
    if merged.is_empty() {
        return own;
    }
    let ranked = own.iter().filter(|path| rank_of(path).is_some());
    let folders: BTreeSet<&Path> = ranked.filter_map(|path| path.parent()).collect();
    let beside_ranks = |path: &Path| path.parent().is_some_and(|folder| folders.contains(folder));
    let (left_out, kept): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| is_merged(path) && beside_ranks(path));
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|path| path.display().to_string()).collect();
        eprintln!(
            "ignored {} merged from several ranks, because the folder also contains the traces of single ranks: {} (to read one, name it alone)",
            names.len(),
            names.join(", ")
        );
    }
    kept
}

fn of_ranks(paths: Vec<PathBuf>, wanted: Ranks) -> Result<Vec<PathBuf>> {
    if wanted == Ranks::All {
        return Ok(paths);
    }
    let ranked: Vec<(Option<i64>, PathBuf)> =
        paths.into_iter().map(|path| (rank_of(&path), path)).collect();
    let ranks: BTreeSet<i64> = ranked.iter().filter_map(|(rank, _)| *rank).collect();
    let known = || ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let rank = match wanted {
        Ranks::Only(rank) if !ranks.contains(&rank) => {
            return Err(Usage(format!("no trace has rank {rank}; ranks: {}", known())).into());
        }
        Ranks::Only(rank) => Some(rank),
        Ranks::Near(rank) if ranks.contains(&rank) => Some(rank),
        _ => ranks.first().copied(),
    };
    let kept = |own: &Option<i64>| own.is_none() || *own == rank;
    let n_left_out = ranked.iter().filter(|(own, _)| !kept(own)).count();
    if let Some(rank) = rank
        && n_left_out > 0
        && wanted == Ranks::Lowest
    {
        eprintln!(
            "{} ranks ({}); using rank {rank} (--rank selects another, --all-ranks all)",
            ranks.len(),
            known()
        );
    }
    let kept = ranked.into_iter().filter(|(own, _)| kept(own));
    Ok(kept.map(|(_, path)| path).collect())
}

/// Files in a folder that may be traces, by name, in byte order.
fn collect(folder: &Path, depth: u32, paths: &mut Vec<PathBuf>) -> Result<()> {
    let context = || format!("cannot read {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(context)?;
    let mut entries = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .with_context(context)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, paths)?;
            }
        } else if !is_no_trace_by_name(&name) {
            paths.push(path);
        }
    }
    Ok(())
}

/// What the first bytes of a file say: its rank if it is a trace, else what it is. `None` if it cannot be read; then it
/// fails later, with its reason.
fn head(path: &Path) -> Option<Result<Option<i64>, NotATrace>> {
    let name = path.file_name()?.to_string_lossy();
    Some(decoded_head(path)?.map(|decoded| rank(&decoded.trace, &name)))
}

/// The first bytes of a file, decoded; `None` if that says nothing.
fn decoded_head(path: &Path) -> Option<Result<Decoded, NotATrace>> {
    let file = File::open(path).ok()?;
    let whole = file.metadata().ok()?.len() <= HEAD;
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head).ok()?;
    let mut decoder = Decoder::new();
    let decoded = match decoder.push(&head) {
        Ok(()) => decoder.finish(),
        Err(reason) => Err(reason),
    };
    match decoded {
        // The events may come after what was read.
        Err(reason) if !whole && reason.kind == FileKind::CutBeforeEvents => None,
        decoded => Some(decoded),
    }
}

/// Whether a file in a folder is an input: what is read with the traces there, and every trace but the repaired one of an
/// earlier triage.
pub fn may_be_input(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match &*name {
        SERVER_ARGS | EXECUTION_DETAILS => true,
        FIXED_TRACE => false,
        // An artifact without rows, `[]`, reads as a trace without events.
        _ => match decoded_head(path) {
            Some(Ok(decoded)) => !decoded.trace.is_empty(),
            Some(Err(_)) => false,
            None => true,
        },
    }
}

/// The rank in a file's first bytes, else in its name.
pub fn rank_of(path: &Path) -> Option<i64> {
    match head(path) {
        Some(Ok(rank)) => rank,
        _ => rank_of_name(&path.file_name()?.to_string_lossy()),
    }
}

/// The launch flags of a server, as SGLang writes them to the folder of its traces.
const SERVER_ARGS: &str = "server_args.json";
/// The list of captures that SGLang writes to their folder.
pub const EXECUTION_DETAILS: &str = "execution_details.json";

/// The `server_args.json` in the folder of a trace, or in the one above.
pub fn server_args(trace: &Path) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(trace).ok()?;
    let folder = folder.parent()?;
    let files = [Some(folder), folder.parent()].into_iter().flatten();
    files.map(|folder| folder.join(SERVER_ARGS)).find(|file| file.is_file())
}

/// `run.pt.trace.json.gz` becomes `run`.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut stem = name.as_str();
    for end in [".gz", ".json", ".trace", ".pt"] {
        stem = stem.strip_suffix(end).unwrap_or(stem);
    }
    if stem.is_empty() { "trace".to_owned() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_is_what_a_person_calls_the_run() {
        for (name, expected) in [
            ("a/run.pt.trace.json.gz", "run"),
            ("run.json", "run"),
            ("1712-TP-0-DECODE.trace.json.gz", "1712-TP-0-DECODE"),
            (".json", "trace"),
        ] {
            assert_eq!(stem(Path::new(name)), expected);
        }
    }
}
