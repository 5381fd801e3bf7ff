//! Memory snapshots.

use kinetoscope::report::units;
use kinetoscope::{NotASnapshot, Snapshot, SnapshotReader, analyze_snapshot};

use super::{Files, Port, Session, Source, read_all};
use crate::protocol::{Aside, Chapter, Failure, JobId, Progress, Request, Response, Stage};

/// Reads a snapshot when it is opened, and reports on it. Nothing else is asked of it.
#[derive(Default)]
pub struct SnapshotSession;

impl Session for SnapshotSession {
    fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port) {
        let Request::Open { job, .. } = request else { return };
        let Some(source) = files.source(job) else { return };
        let response = match read(job, source, port) {
            Ok(snapshot) => Response::Aside { job, aside: aside(&snapshot) },
            Err(failure) => Response::Failed { job, failure },
        };
        port.send(response);
    }
}

fn read(job: JobId, source: &mut dyn Source, port: &mut dyn Port) -> Result<Snapshot, Failure> {
    let mut reader = SnapshotReader::new();
    read_all(source, |bytes, done, total| {
        reader.push(bytes).map_err(|error| refused(&error))?;
        let progress = Progress { stage: Stage::Reading, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    })?;
    reader.finish().map_err(|error| refused(&error))
}

fn refused(error: &NotASnapshot) -> Failure {
    Failure {
        title: "This memory snapshot cannot be read".into(),
        what: format!("{error}"),
        place: None,
        advice: "Write it again: s = torch.cuda.memory._snapshot(); json.dump(s, gzip.open(\"snapshot.json.gz\", \"wt\"))."
            .into(),
        excerpt: None,
    }
}

fn aside(snapshot: &Snapshot) -> Aside {
    let report = analyze_snapshot(snapshot);
    let n = report.devices.len() as u64;
    let reserved = snapshot.segments.iter().map(|segment| segment.total_size.max(0) as u64).sum();
    let summary =
        format!("{}, {} reserved", units::plural(n, "device", "devices"), units::bytes(reserved));
    Aside::Snapshot {
        summary,
        chapters: report.sections().into_iter().map(Chapter::drawn).collect(),
    }
}
