//! A file that is not a trace but belongs to traces: a kernel map, a list of captures.

use kinetoscope::{
    FileKind, KernelMap, NotAKernelMap, Reader, execution_details, kernel_map_from_json, map_names,
    text_of_file,
};

use super::{Refused, Source, read_all};
use crate::protocol::{Aside, Failure, Program};

/// Larger files are neither: the map of a model takes some hundred kilobytes.
const MOST_BYTES: u64 = 64 << 20;

/// The program that reads a file which was refused as a trace, if one does: what reads it would be a part of the first
/// download.
pub(super) fn reader(refused: &Refused) -> Option<Program> {
    match refused.kind.and_then(FileKind::reader) {
        Some(Reader::KernelMap | Reader::Captures) => Some(Program::Triage),
        Some(Reader::Snapshot) => Some(Program::Snapshot),
        Some(Reader::ServerFlags | Reader::Trace) | None => None,
    }
}

/// What a file is that was refused as a trace.
///
/// # Errors
/// When it is of no use beside traces either, with what is wrong.
pub(super) fn of_refused(refused: Refused, source: &mut dyn Source) -> Result<Aside, Failure> {
    let Refused { failure, kind } = refused;
    match kind.and_then(FileKind::reader) {
        Some(Reader::KernelMap) => {
            let map = read_map(source)?;
            Ok(Aside::Map {
                names: map_names(&map),
                n_kernels: map.global.len() as u64,
                stages: map.stages.iter().map(|(stage, _)| stage.title().to_owned()).collect(),
            })
        }
        Some(Reader::Captures) => {
            let captures = text_of(source)
                .and_then(|text| execution_details(&text).map_err(|error| error.to_string()));
            // Any list of records comes here; only one that tells of captures is of use.
            captures.map(Aside::Captures).map_err(|error| {
                let what = format!("This file is not a trace of torch.profiler: {error}.");
                Failure { what, ..failure }
            })
        }
        // (Launch flags belong to the form of the artifacts, which takes them by their file name.)
        Some(Reader::ServerFlags | Reader::Snapshot | Reader::Trace) | None => Err(failure),
    }
}

/// Reads a kernel map.
pub(super) fn read_map(source: &mut dyn Source) -> Result<KernelMap, Failure> {
    let refused = |what: String, place: &str, advice: &str| Failure {
        title: "This kernel map cannot be used".into(),
        what,
        place: Some(place.to_owned()).filter(|place| !place.is_empty()),
        advice: advice.to_owned(),
        excerpt: None,
    };
    let text = text_of(source).map_err(|error| {
        refused(
            format!("It cannot be read: {error}."),
            "",
            "Decompress it or export it again, then drop the result.",
        )
    })?;
    kernel_map_from_json(&text).map_err(|error| {
        let advice = error.advice();
        let NotAKernelMap { place, what } = error;
        refused(format!("Invalid file: {what}."), &place, advice)
    })
}

fn text_of(source: &mut dyn Source) -> Result<String, String> {
    if source.size() > MOST_BYTES {
        return Err("it is too large for a list of captures or a kernel map".to_owned());
    }
    let mut bytes = Vec::new();
    read_all(source, |piece, _, _| {
        bytes.extend_from_slice(piece);
        Ok(())
    })
    .map_err(|failure| failure.what)?;
    text_of_file(&bytes).map_err(|error| error.to_string())
}
