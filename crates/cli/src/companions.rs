//! Files that belong to a measured trace and map its kernels to ops and lines: a mapping trace, a kernel map, captures.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::{Role, SourceDigest, SourceFile};
use kinetoscope::trace::Trace;
use kinetoscope::{
    CaptureFacts, Details, KernelMap, Sources, details_of_capture, execution_details,
    kernel_map_from_json, text_of_file,
};

use crate::input::{self, Opened};
use crate::traces::{self, EXECUTION_DETAILS, Ranks};

#[derive(clap::Args, Clone, Default)]
pub struct Beside {
    /// Mapping trace: the same workload recorded without graphs, or a folder that contains it. It maps kernels to ops and
    /// Python lines by kernel name.
    #[arg(long, value_name = "TRACE")]
    pub mapping: Option<PathBuf>,
    /// Kernel map that --export-map wrote from a mapping trace. It replaces the mapping trace.
    #[arg(long, value_name = "MAP.json")]
    pub map: Option<PathBuf>,
    /// Capture traces, recorded while the graphs were captured, or folders of them. They map the kernels of graph launches.
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    pub capture: Vec<PathBuf>,
}

/// The files, read.
#[derive(Default)]
pub struct Companions {
    mapping: Option<Opened>,
    map: Option<(KernelMap, SourceFile)>,
    captures: Vec<(Opened, Details)>,
    facts: Vec<CaptureFacts>,
}

impl Beside {
    /// Every file and folder that is read for them.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let lists = self.capture.iter().map(|path| path.with_file_name(EXECUTION_DETAILS));
        let named = self.mapping.iter().chain(&self.map).chain(&self.capture).cloned();
        named.chain(lists).collect()
    }

    /// Reads them; of folders with several ranks the traces of `rank`, or of the lowest.
    ///
    /// # Errors
    /// When a file cannot be read, or is not what it is given as.
    pub fn read(&self, rank: Option<i64>) -> Result<Companions> {
        let mapping = match &self.mapping {
            Some(path) => Some(input::read(&traces::one(path, rank)?.path, Role::Mapping)?),
            None => None,
        };
        let map = self.map.as_deref().map(read_map).transpose()?;
        let mut companions = Companions { mapping, map, ..Companions::default() };
        if !self.capture.is_empty() {
            for chosen in traces::choose(&self.capture, Ranks::near(rank))? {
                let read = input::read(&chosen.path, Role::Capture)?;
                let details = input::details(&chosen.path, &read)?;
                companions.facts.push(facts(&chosen.path));
                companions.captures.push((read, details));
            }
        }
        Ok(companions)
    }
}

/// Related files, read again only where another rank may have others.
pub struct Kept<'a> {
    arguments: &'a Beside,
    read: Option<(Option<i64>, Companions)>,
}

impl<'a> Kept<'a> {
    /// Reads nothing yet.
    pub fn new(arguments: &'a Beside) -> Self {
        Self { arguments, read: None }
    }

    /// The related files of a measured trace.
    ///
    /// # Errors
    /// As [`Beside::read`].
    pub fn of(&mut self, measured: &Path) -> Result<&Companions> {
        // Only a folder holds several ranks.
        let paths = self.arguments.mapping.iter().chain(&self.arguments.capture);
        let several =
            self.arguments.capture.len() > 1 || paths.into_iter().any(|path| path.is_dir());
        let rank = if several { traces::rank_of(measured) } else { None };
        if self.read.as_ref().is_none_or(|(known, _)| *known != rank) {
            self.read = Some((rank, self.arguments.read(rank)?));
        }
        self.read.as_ref().map(|(_, companions)| companions).context("no related files")
    }
}

impl Companions {
    /// The sources of a triage with them, and the arguments of the measured trace.
    pub fn with<R>(&self, details: Option<&Details>, then: impl FnOnce(&Sources<'_>) -> R) -> R {
        let captures: Vec<&Trace> =
            self.captures.iter().map(|(read, _)| &read.decoded.trace).collect();
        let capture_details: Vec<Option<&Details>> =
            self.captures.iter().map(|(_, details)| Some(details)).collect();
        then(&Sources {
            captures: &captures,
            capture_facts: &self.facts,
            mapping: self.mapping.as_ref().map(|read| &read.decoded.trace),
            map: self.map.as_ref().map(|(map, _)| map),
            details,
            capture_details: &capture_details,
        })
    }

    /// The files that were read.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        let captures = self.captures.iter().map(|(read, _)| read);
        let traces = self.mapping.iter().chain(captures).map(|read| &read.source);
        traces.chain(self.map.iter().map(|(_, file)| file))
    }

    /// Which files times, ops and Python lines come from, for a trace of this name.
    pub fn mode(&self, measured: &str) -> String {
        let mapping = self.mapping.iter().map(|read| read.source.name.as_str());
        let maps = self.map.iter().map(|(_, file)| file.name.as_str());
        let pair: Vec<&str> = mapping.chain(maps).collect();
        let captures: Vec<&str> =
            self.captures.iter().map(|(read, _)| read.source.name.as_str()).collect();
        match (pair.is_empty(), captures.is_empty()) {
            (false, _) => format!(
                "measured trace with mapping (times from {measured}, ops and Python lines also from {})",
                [pair, captures].concat().join(", ")
            ),
            (true, false) => format!(
                "measured trace with captures (times from {measured}, ops and Python lines of graph kernels from {})",
                captures.join(", ")
            ),
            (true, true) => format!("single trace (times, ops and Python lines from {measured})"),
        }
    }
}

fn read_map(path: &Path) -> Result<(KernelMap, SourceFile)> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let cannot =
        || format!("cannot use {} (triage --export-map writes kernel maps)", path.display());
    let text = text_of_file(&bytes).with_context(cannot)?;
    let map = kernel_map_from_json(&text).with_context(cannot)?;
    let mut digest = SourceDigest::default();
    digest.push(&bytes);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok((map, digest.finish(&name, Role::Mapping)))
}

/// The entry of a capture in the `execution_details.json` of its folder.
fn facts(capture: &Path) -> CaptureFacts {
    let name = capture.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unknown = CaptureFacts { name: name.clone(), ..CaptureFacts::default() };
    let beside = capture.with_file_name(EXECUTION_DETAILS);
    let Ok(text) = input::text(&beside) else { return unknown };
    match execution_details(&text) {
        Ok(all) => details_of_capture(&all, &name).unwrap_or(unknown),
        Err(error) => {
            // It only helps to choose; without it, names and numbers of kernels do.
            eprintln!("ignored {}: {error}", beside.display());
            unknown
        }
    }
}
