//! The first screen and the repair.

use kinetoscope::lanes::News;
use kinetoscope::{
    Decoded, Options, Output, PlanOptions, RepairPlan, RepairReport, Repairer, plan_repair,
};

use super::super::damage::damage;
use super::{Files, Port, Session, Source, aside, decode, fault, page, read_all};
use crate::protocol::{Failure, Format, JobId, Progress, Repaired, Request, Response, Stage};

/// Bytes of output that are handed on at a time.
const BLOCK: usize = 4 << 20;

/// The one file of a worker.
#[derive(Default)]
pub struct FirstSession {
    file: Option<OpenFile>,
}

struct OpenFile {
    name: String,
    decoded: Decoded,
    /// The plan, and whether it clips impossible durations.
    plan: Option<(RepairPlan, bool)>,
}

impl Session for FirstSession {
    fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port) {
        match request {
            Request::Open { job, name, .. } => {
                let Some(source) = files.source(job) else { return };
                match decode(job, Stage::Reading, source, port) {
                    Ok(decoded) => {
                        port.send(Response::Opened { job, opened: page::opened(&decoded, &name) });
                        self.file = Some(OpenFile { name, decoded, plan: None });
                    }
                    Err(refused) => port.send(match aside::reader(&refused) {
                        Some(reader) => Response::NoTrace { job, reader },
                        None => Response::Failed { job, failure: refused.failure },
                    }),
                }
            }
            Request::Analyze { job } => {
                let Some(file) = &self.file else { return };
                let report = kinetoscope::analyze(&file.decoded.trace, &Options::default());
                let sections = report.sections();
                port.send(Response::Report { job, report: page::analyses(&report, sections) });
            }
            Request::PlanRepair { job, clip_impossible } => {
                let Some(file) = &mut self.file else { return };
                let options = PlanOptions { clip_impossible, ..PlanOptions::default() };
                let plan = plan_repair(&file.decoded.trace, &options);
                let report = RepairReport::new(&file.decoded, &plan);
                let damage = News::Damage(damage(&file.decoded.trace, &plan));
                let plan_page = page::plan(report, &damage, clip_impossible);
                port.send(Response::RepairPlanned { job, plan: plan_page });
                file.plan = Some((plan, clip_impossible));
            }
            Request::Repair { job, format } => {
                let Some(OpenFile { name, decoded, plan: Some((plan, clips)) }) = &self.file else {
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
            // The other program's.
            Request::AddCompanion { .. }
            | Request::RemoveCompanion { .. }
            | Request::Triage { .. }
            | Request::Diagnose { .. }
            | Request::RankCalls { .. }
            | Request::OtherRanks { .. }
            | Request::Describe { .. }
            | Request::Compare { .. }
            | Request::Kernel { .. }
            | Request::Window { .. }
            | Request::BenchmarkConfig { .. }
            | Request::Benchmark { .. }
            | Request::Look { .. }
            | Request::Levels { .. }
            | Request::Memory { .. }
            | Request::Told { .. }
            | Request::Changes { .. }
            | Request::InTrace { .. }
            | Request::Artifacts { .. } => {}
        }
    }
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
