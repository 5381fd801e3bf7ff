//! The lanes of a trace.

use kinetoscope::scene::Ink;

use super::super::lanes::Look;
use super::{Files, Made, Port, Session, decode};
use crate::protocol::{JobId, Program, Repaired, Request, Response, Stage, Surface};

/// Reads a trace when it is opened, and draws what a person looks at.
#[derive(Default)]
pub struct LanesSession {
    open: Option<(JobId, Look)>,
    /// What was done to the pictures before there were any.
    before: Vec<(Surface, kinetoscope::scene::Input)>,
}

impl Session for LanesSession {
    fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port) {
        match request {
            Request::Open { job, .. } => {
                let Some(source) = files.source(job) else { return };
                // The first program has told how far the file is read.
                let decoded = decode(job, Stage::Reading, source, &mut Silent);
                let lanes = match decoded {
                    Ok(decoded) => {
                        let mut look = Look::new(decoded.trace);
                        for (surface, input) in self.before.drain(..) {
                            look.take(surface, &input);
                        }
                        let facts = look.facts();
                        self.open = Some((job, look));
                        Ok(facts)
                    }
                    Err(refused) => Err(refused.failure),
                };
                port.send(Response::Lanes { job, lanes });
            }
            Request::Look { surface, input, .. } => match &mut self.open {
                Some((_, look)) => look.take(surface, &input),
                None => self.before.push((surface, input)),
            },
            _ => {}
        }
    }

    fn frame(&mut self, port: &mut dyn Port) -> Vec<(Surface, Vec<Ink>)> {
        let Some((job, look)) = &mut self.open else { return Vec::new() };
        if let Some(looked) = look.news() {
            port.send(Response::Looked { job: *job, program: Program::Lanes, looked });
        }
        look.paint()
    }
}

/// Hears nothing of the progress.
struct Silent;

impl Port for Silent {
    fn send(&mut self, _: Response) {}

    fn block(&mut self, _: &[u8]) {}

    fn deliver(&mut self, _: JobId, _: Repaired, _: &str) {}

    fn deliver_artifacts(&mut self, _: JobId, _: Made) {}
}
