//! The lanes of a trace.

use kinetoscope::lanes::News;
use kinetoscope::scene::Ink;
use kinetoscope::{Counters, CountersReader, Decoded};

use super::super::lanes::Look;
use super::{Files, Made, Port, Session, Source, decode, read_all};
use crate::protocol::{JobId, Program, Repaired, Request, Response, Stage, Surface};

/// Reads a trace when it is opened, and draws what a person looks at.
#[derive(Default)]
pub struct LanesSession {
    open: Option<(JobId, Look)>,
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
                        let counters = files.source(job).and_then(|of| counters(&decoded, of));
                        let mut look = Look::new(decoded.trace);
                        counters.iter().for_each(|counters| look.add_counters(counters));
                        let facts = look.facts();
                        self.open = Some((job, look));
                        Ok(facts)
                    }
                    Err(refused) => Err(refused.failure),
                };
                port.send(Response::Lanes { job, lanes });
            }
            // (The page opens the file before anything else: without lanes it could not be read.)
            Request::Look { surface, input, .. } => {
                if let Some((_, look)) = &mut self.open {
                    look.take(surface, &input);
                }
            }
            Request::Told { job, recorded } => {
                let read = postcard::from_bytes::<News>(&recorded);
                match (&mut self.open, read) {
                    (Some((_, look)), Ok(News::Told(told))) => look.add_told(told),
                    (Some((_, look)), Ok(News::Damage(damage))) => look.add_damage(damage),
                    (None, Ok(News::Alone(alone))) => {
                        let (look, facts) = Look::alone(alone);
                        self.open = Some((job, look));
                        port.send(Response::Lanes { job, lanes: Ok(facts) });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn frame(&mut self, port: &mut dyn Port) -> Vec<(Surface, Vec<Ink>)> {
        let Some((job, look)) = &mut self.open else { return Vec::new() };
        if let Some(looked) = look.news() {
            port.send(Response::Looked { job: *job, program: Program::Lanes, looked });
        }
        if let Some(shown) = look.news_for_others() {
            port.send(Response::Shown { job: *job, shown });
        }
        look.paint()
    }
}

/// The values of the counters of a trace, if there are any and the file can still be read.
#[inline(never)]
fn counters(decoded: &Decoded, source: &mut dyn Source) -> Option<Counters> {
    let mut reader = CountersReader::new(decoded)?;
    let read = read_all(source, |bytes, _, _| {
        reader.push(bytes);
        Ok(())
    });
    read.ok().map(|()| reader.finish())
}

/// Hears nothing of the progress.
struct Silent;

impl Port for Silent {
    fn send(&mut self, _: Response) {}

    fn block(&mut self, _: &[u8]) {}

    fn deliver(&mut self, _: JobId, _: Repaired, _: &str) {}

    fn deliver_artifacts(&mut self, _: JobId, _: Made) {}
}
