//! One file from request to request, without a browser: what the programs of the worker share.

mod aside;
mod first;
mod lanes;
mod others;
mod ranks;
mod scaling;
mod snapshot;
mod triage;

pub use first::FirstSession;
pub use lanes::LanesSession;
pub use snapshot::SnapshotSession;
pub use triage::TriageSession;

use kinetoscope::report::units;
use kinetoscope::scene::Ink;
use kinetoscope::{Decoded, Decoder, Details, DetailsReader, FileKind, NotATrace};

use super::artifacts::Made;
use super::page;
use crate::protocol::{Failure, JobId, Progress, Repaired, Request, Response, Stage, Surface};

/// Where the bytes of the file come from.
pub trait Source {
    /// Size of the file.
    fn size(&self) -> u64;

    /// Puts the bytes from `offset` on, at most `len`, into `into`, which is empty.
    ///
    /// # Errors
    /// When the file cannot be read any more; the text is the browser's.
    fn read(&mut self, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), String>;
}

/// The files that were handed to the worker.
pub trait Files {
    /// The file of a job, to be read from any place.
    fn source(&mut self, job: JobId) -> Option<&mut dyn Source>;

    /// Lets go of a file.
    fn forget(&mut self, job: JobId);
}

/// Where the answers go.
pub trait Port {
    /// Sends an answer.
    fn send(&mut self, response: Response);

    /// Takes the next bytes of a repaired file.
    fn block(&mut self, bytes: &[u8]);

    /// Sends the repaired file, all its blocks, and its log.
    fn deliver(&mut self, job: JobId, repaired: Repaired, log: &str);

    /// Sends the artifacts; the repaired trace among them is all its blocks.
    fn deliver_artifacts(&mut self, job: JobId, made: Made);
}

/// Bytes that are read at a time: enough steps for an honest progress bar, few enough to cost nothing. (Each step has the page drawn
/// again; a megabyte takes a tenth of a second at most.)
const LEAST_PIECE: u64 = 1 << 20;
const MOST_PIECE: u64 = 4 << 20;
const PIECES: u64 = 40;

/// The page draws only the rows in sight, so no row is summed up with others.
const EVERY_ROW: f64 = 0.0;

/// Handles the requests of one program.
pub trait Session {
    /// Handles a request. One of the other program is ignored; so are requests after a failed `Open`: the failure was the
    /// answer.
    fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port);

    /// The pictures that have changed since the last frame. Asked for after requests to look, at most once a frame.
    fn frame(&mut self, _port: &mut dyn Port) -> Vec<(Surface, Vec<Ink>)> {
        Vec::new()
    }
}

fn decode(
    job: JobId,
    stage: Stage,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Result<Decoded, Box<Refused>> {
    let mut decoder = Decoder::new();
    let mut kind = None;
    read_all(source, |bytes, done, total| {
        decoder.push(bytes).map_err(|reason| {
            kind = Some(reason.kind);
            no_trace(&reason)
        })?;
        let n_events = decoder.n_events() as u64;
        let progress = Progress { stage, done, total, n_events };
        port.send(Response::Progress { job, progress });
        Ok(())
    })
    .map_err(|failure| Box::new(Refused { failure, kind }))?;
    decoder.finish().map_err(|reason| {
        let (failure, kind) = (no_trace(&reason), Some(reason.kind));
        Box::new(Refused { failure, kind })
    })
}

/// Why a file is not decoded.
struct Refused {
    failure: Failure,
    /// What it is, if it is no trace.
    kind: Option<FileKind>,
}

/// Reads the arguments that decoding leaves in the file; `None` when it cannot be read any more.
fn details(
    job: JobId,
    stage: Stage,
    decoded: &Decoded,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Option<Details> {
    details_of(job, stage, decoded, source, port, kinetoscope::wants_inputs)
}

/// The same, with strides and values of the ops that `wants` chooses.
fn details_of(
    job: JobId,
    stage: Stage,
    decoded: &Decoded,
    source: &mut dyn Source,
    port: &mut dyn Port,
    wants: impl Fn(&str) -> bool,
) -> Option<Details> {
    let mut reader = DetailsReader::with_host(decoded, wants);
    let read = read_all(source, |bytes, done, total| {
        reader.push(bytes);
        let progress = Progress { stage, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    });
    read.ok().map(|()| reader.finish())
}

/// Hands the file over piece by piece, with how many bytes are read and how many there are.
pub(super) fn read_all(
    source: &mut dyn Source,
    mut take: impl FnMut(&[u8], u64, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let total = source.size();
    let piece = (total / PIECES).clamp(LEAST_PIECE, MOST_PIECE);
    let mut bytes = Vec::new();
    let mut done = 0;
    while done < total {
        bytes.clear();
        source
            .read(done, piece.min(total - done), &mut bytes)
            .map_err(|error| unreadable(&error, done))?;
        if bytes.is_empty() {
            return Err(unreadable("the file ended unexpectedly", done));
        }
        done += bytes.len() as u64;
        take(&bytes, done, total)?;
    }
    Ok(())
}

fn no_trace(reason: &NotATrace) -> Failure {
    Failure {
        title: reason.title().into(),
        what: "This file is not a torch.profiler trace.".into(),
        place: Some(format!("at byte {} of the decompressed file", units::count(reason.offset))),
        advice: reason.advice().into(),
        excerpt: Some(reason.excerpt.clone()).filter(|text| !text.is_empty()),
    }
}

/// What should never happen.
fn fault(error: &dyn std::fmt::Display) -> Failure {
    Failure {
        title: "The result could not be written".into(),
        what: error.to_string(),
        advice: "This is a bug in Kinetoscope. Please report it.".into(),
        ..Failure::default()
    }
}

fn unreadable(error: &str, offset: u64) -> Failure {
    Failure {
        title: "The file can no longer be read".into(),
        what: "It was moved, changed or deleted after it was opened, or its disk was disconnected."
            .into(),
        place: Some(format!("after {}", units::file_bytes(offset))),
        advice:
            "Open the file again. If the profiler is still writing it, wait until it is finished."
                .into(),
        excerpt: Some(error.to_owned()),
    }
}

#[cfg(test)]
mod tests;
