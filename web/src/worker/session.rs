//! One file from request to request, without a browser.

mod aside;
mod others;

use kinetoscope::report::{Table, units};
use kinetoscope::{
    Decoded, Decoder, Details, DetailsReader, FileKind, NotATrace, Options, Output, PlanOptions,
    RepairPlan, RepairReport, Repairer, TriageSlices,
};

use self::others::OpenCompanion;
use super::artifacts::Made;
use super::page;
use crate::protocol::{
    FIRST_LAUNCHES, Failure, Format, JobId, KernelDetails, Progress, Repaired, Request, Response,
    Stage,
};

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

/// Bytes that are read at a time: enough steps for an honest progress bar, few enough to cost nothing.
const LEAST_PIECE: u64 = 256 << 10;
const MOST_PIECE: u64 = 4 << 20;
const PIECES: u64 = 40;

/// Bytes of output that are handed on at a time.
const BLOCK: usize = 4 << 20;

/// The page draws only the rows in sight, so no row is summed up with others.
const EVERY_ROW: f64 = 0.0;

/// Cells of a table in one message: reading them takes the page a few milliseconds.
const CELLS_A_MESSAGE: usize = 1_500;

/// The raw category of the slices that `with_stack=True` records (torch/csrc/profiler/kineto_shim.cpp).
const PYTHON_FUNCTION: &str = "python_function";

/// The one file of a worker, and the traces that tell of it.
#[derive(Default)]
pub struct Session {
    file: Option<OpenFile>,
    companions: Vec<OpenCompanion>,
}

struct OpenFile {
    name: String,
    decoded: Decoded,
    /// Arguments from the second reading, which the first triage asks for.
    details: Option<Details>,
    /// The plan, and whether it clips impossible durations.
    plan: Option<(RepairPlan, bool)>,
    /// What triage knows of every GPU slice.
    slices: Option<TriageSlices>,
}

impl Session {
    /// Handles a request. Requests after a failed `Open` are ignored: the failure was the answer.
    pub fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port) {
        match request {
            Request::Open { job, name } => {
                let Some(source) = files.source(job) else { return };
                match decode(job, Stage::Reading, source, port) {
                    Ok(decoded) => {
                        port.send(Response::Opened { job, opened: page::opened(&decoded, &name) });
                        self.file = Some(OpenFile {
                            name,
                            decoded,
                            details: None,
                            plan: None,
                            slices: None,
                        });
                    }
                    Err(refused) => port.send(match aside::of_refused(*refused, source) {
                        Ok(aside) => Response::Aside { job, aside },
                        Err(failure) => Response::Failed { job, failure },
                    }),
                }
            }
            Request::AddCompanion { job, beside, name } => {
                let Some(source) = files.source(beside.job) else { return };
                if let Some(file) = &mut self.file {
                    // What is known of slices was found without it.
                    file.slices = None;
                    others::add(&mut self.companions, job, beside, name, source, port);
                }
            }
            Request::RemoveCompanion { job: _, companion } => {
                self.companions.retain(|known| known.beside.job != companion);
                if let Some(file) = &mut self.file {
                    file.slices = None;
                }
                files.forget(companion);
            }
            Request::Analyze { job } => {
                let Some(file) = &self.file else { return };
                let report = kinetoscope::analyze(&file.decoded.trace, &Options::default());
                let mut sections = report.sections();
                for table in sections.iter_mut().flat_map(|section| &mut section.tables) {
                    send_rows(job, table, port);
                }
                port.send(Response::Report { job, report: page::analyses(&report, sections) });
            }
            Request::Triage { job, count_before_window } => {
                let Some(file) = &mut self.file else { return };
                file.read_details(job, files, port);
                let report = file.triage(&self.companions, count_before_window);
                let mut sections = report.sections(EVERY_ROW);
                sections.extend(page::merged(&report));
                for table in sections.iter_mut().flat_map(|section| &mut section.tables) {
                    send_rows(job, table, port);
                }
                let has_stacks = file.decoded.trace.strings.find(PYTHON_FUNCTION).is_some();
                let triage = page::triage(&report, sections, has_stacks);
                port.send(Response::Triage { job, triage });
            }
            Request::Describe { job } => {
                let Some(file) = &mut self.file else { return };
                file.read_details(job, files, port);
                let run = file.describe(&self.companions);
                port.send(Response::Described { job, run });
            }
            Request::Compare { job, with, run } => {
                let Some(file) = &mut self.file else { return };
                file.read_details(job, files, port);
                let own = file.describe(&self.companions);
                let comparison = own.and_then(|own| others::compare(job, &own, &run, port));
                port.send(Response::Compared { job, with, comparison });
            }
            Request::PlanRepair { job, clip_impossible } => {
                let Some(file) = &mut self.file else { return };
                let options = PlanOptions { clip_impossible, ..PlanOptions::default() };
                let plan = kinetoscope::plan_repair(&file.decoded.trace, &options);
                let mut report = RepairReport::new(&file.decoded, &plan);
                send_rows(job, &mut report.log, port);
                let plan_page = page::plan(report, clip_impossible);
                port.send(Response::RepairPlanned { job, plan: plan_page });
                file.plan = Some((plan, clip_impossible));
            }
            Request::Repair { job, format } => {
                let Some(OpenFile { name, decoded, plan: Some((plan, clips)), .. }) = &self.file
                else {
                    return;
                };
                let Some(source) = files.source(job) else { return };
                match write(job, format, name, decoded, plan, source, port) {
                    Ok((repaired, log)) => {
                        let repaired = Repaired { clip_impossible: *clips, ..repaired };
                        port.deliver(job, repaired, &log);
                    }
                    Err(failure) => port.send(Response::Failed { job, failure }),
                }
            }
            Request::Kernel { job, key, count_before_window } => {
                let Some(file) = &mut self.file else { return };
                // A worker that was ended and started again has not triaged yet.
                if file.slices.is_none() {
                    file.read_details(job, files, port);
                    file.triage(&self.companions, count_before_window);
                }
                let slices = file.slices.as_ref();
                let trace = &file.decoded.trace;
                let kernel = slices.and_then(|slices| slices.kernel(trace, &key, FIRST_LAUNCHES));
                let kernel = kernel.unwrap_or_else(|| KernelDetails { key, ..Default::default() });
                port.send(Response::Kernel { job, kernel });
            }
            Request::Window { job, event } => {
                let Some(file) = &self.file else { return };
                let mut windows = kinetoscope::overlap_windows(&file.decoded.trace, &[event], None);
                if let Some(window) = windows.pop().flatten() {
                    port.send(Response::Window { job, window });
                }
            }
            Request::Artifacts { job, wish, parts } => {
                let Some(file) = &mut self.file else { return };
                file.read_details(job, files, port);
                match file.artifacts(job, &self.companions, (&wish, parts), files, port) {
                    Ok(made) => port.deliver_artifacts(job, made),
                    Err(failure) => port.send(Response::NoArtifacts { job, failure }),
                }
            }
        }
    }
}

impl OpenFile {
    /// Reads the arguments that decoding leaves in the file, once. A file that cannot be read any more only has fewer
    /// columns.
    fn read_details(&mut self, job: JobId, files: &mut dyn Files, port: &mut dyn Port) {
        if self.details.is_none()
            && let Some(source) = files.source(job)
        {
            self.details = details(job, Stage::Triaging, &self.decoded, source, port);
        }
    }
}

/// Sends the rows of a long table ahead of it.
fn send_rows(job: JobId, table: &mut Table, port: &mut dyn Port) {
    let at_once = (CELLS_A_MESSAGE / table.columns.len().max(1)).max(1);
    if table.rows.len() <= at_once {
        return;
    }
    let mut rows = std::mem::take(&mut table.rows).into_iter().peekable();
    while rows.peek().is_some() {
        let rows = rows.by_ref().take(at_once).collect();
        port.send(Response::Rows { job, table: table.id.to_string(), rows });
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
    let mut reader = DetailsReader::new(decoded);
    let read = read_all(source, |bytes, done, total| {
        reader.push(bytes);
        let progress = Progress { stage, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    });
    read.ok().map(|()| reader.finish())
}

fn write(
    job: JobId,
    format: Format,
    name: &str,
    decoded: &Decoded,
    plan: &RepairPlan,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Result<(Repaired, String), Failure> {
    let output = match format {
        Format::Gzip => Output::Gzip,
        Format::Json => Output::Json,
    };
    let mut repairer = Repairer::new(decoded, plan, output);
    let mut out = Vec::with_capacity(BLOCK + (BLOCK >> 2));
    let mut bytes_out = 0;
    read_all(source, |bytes, done, total| {
        repairer.push(bytes, &mut out);
        if out.len() >= BLOCK {
            bytes_out += out.len() as u64;
            port.block(&out);
            out.clear();
        }
        let progress = Progress { stage: Stage::Repairing, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    })?;
    let proof = repairer.finish(&mut out);
    bytes_out += out.len() as u64;
    port.block(&out);
    let log =
        kinetoscope::repair_log_json(decoded, plan, Some(&proof)).map_err(|error| fault(&error))?;
    Ok((page::repaired(name, format, bytes_out, &proof), log))
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
