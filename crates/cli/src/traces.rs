//! Which traces a command takes from what it was given: files as they are, folders for the traces in them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::{Decoder, is_no_trace_by_name, rank, rank_of_name};

use crate::failure::Usage;

/// A trace to work on.
#[derive(Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The file.
    pub path: PathBuf,
    /// A name for what is written of it, different for each.
    pub name: String,
}

/// Folders in folders are looked into this deep.
const DEPTH: u32 = 6;
/// What is read of a file to learn its rank: the profiler writes its facts before the events.
const HEAD: u64 = 256 << 10;

/// The traces of `given`. Of several ranks only `wanted`, or the lowest, is taken; a trace without a rank always.
///
/// # Errors
/// When a file or folder cannot be read, or nothing is left.
pub fn choose(given: &[PathBuf], wanted: Option<i64>) -> Result<Vec<Chosen>> {
    let mut paths = Vec::new();
    for path in given {
        if path.is_dir() {
            let before = paths.len();
            collect(path, DEPTH, &mut paths)?;
            if paths.len() == before {
                return Err(
                    Usage(format!("{} holds no trace (.json, .json.gz)", path.display())).into()
                );
            }
        } else {
            paths.push(path.clone());
        }
    }
    if paths.len() > 1 || wanted.is_some() {
        paths = of_one_rank(paths, wanted)?;
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

fn of_one_rank(paths: Vec<PathBuf>, wanted: Option<i64>) -> Result<Vec<PathBuf>> {
    let ranked: Vec<(Option<i64>, PathBuf)> =
        paths.into_iter().map(|path| (rank_of(&path), path)).collect();
    let ranks: BTreeSet<i64> = ranked.iter().filter_map(|(rank, _)| *rank).collect();
    let rank = match wanted {
        Some(wanted) if !ranks.contains(&wanted) => {
            let known: Vec<String> = ranks.iter().map(ToString::to_string).collect();
            return Err(
                Usage(format!("no trace has rank {wanted}; ranks: {}", known.join(", "))).into()
            );
        }
        Some(wanted) => Some(wanted),
        None => ranks.first().copied(),
    };
    if let Some(rank) = rank
        && ranks.len() > 1
        && wanted.is_none()
    {
        eprintln!("{} ranks; rank {rank} is taken (--rank chooses another)", ranks.len());
    }
    let kept = ranked.into_iter().filter(|(own, _)| own.is_none() || *own == rank);
    Ok(kept.map(|(_, path)| path).collect())
}

/// Traces in a folder by name, in byte order.
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

/// The rank in a file's first bytes, else in its name. A file that cannot be read fails later, with its reason.
fn rank_of(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_string_lossy();
    let own = || -> Option<Option<i64>> {
        let mut head = Vec::new();
        File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
        let mut decoder = Decoder::new();
        decoder.push(&head).ok()?;
        Some(rank(&decoder.finish().ok()?.trace, &name))
    };
    own().unwrap_or_else(|| rank_of_name(&name))
}

/// The `server_args.json` in the folder of a trace, or in the one above.
pub fn server_args(trace: &Path) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(trace).ok()?;
    let folder = folder.parent()?;
    let files = [Some(folder), folder.parent()].into_iter().flatten();
    files.map(|folder| folder.join("server_args.json")).find(|file| file.is_file())
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
