//! Triage, and what follows from it.

use kinetoscope::artifacts::{ReportedTrace, UserFacts};
use kinetoscope::lanes::News;
use kinetoscope::memory::RunFacts;
use kinetoscope::trace::Trace;
use kinetoscope::{
    Decoded, Details, Facts, HostIndex, ScalingRow, TriageReport, TriageSlices, overlap_windows,
};

use super::others::{self, OpenCompanion};
use super::ranks::Ranks;
use super::{EVERY_ROW, Files, Port, Session, aside, decode, details, details_of, page, scaling};
use crate::protocol::{
    ArtifactWish, Chapter, Diagnosis, FIRST_LAUNCHES, Failure, JobId, KernelDetails, KernelKey,
    Parts, Program, Request, Response, Stage, StepWindow, Triage, is_run,
};
use crate::shared::Shared;
use crate::worker::artifacts::{self, Made};

/// The raw category of the slices that `with_stack=True` records (torch/csrc/profiler/kineto_shim.cpp).
const PYTHON_FUNCTION: &str = "python_function";

/// The one file of a worker, and the traces that tell of it.
#[derive(Default)]
pub struct TriageSession {
    file: Option<OpenFile>,
    companions: Vec<OpenCompanion>,
}

pub(super) struct OpenFile {
    pub(super) name: String,
    pub(super) decoded: Decoded,
    /// Arguments from the second reading, which the first triage asks for.
    pub(super) details: Option<Details>,
    /// What triage knows of every GPU slice, and the step that it is of.
    pub(super) slices: Option<(TriageSlices, Option<StepWindow>)>,
    /// What is written down of the other ranks that it is compared with.
    pub(super) other_ranks: Vec<Shared<Vec<u8>>>,
    /// The same of runs with batches of other sizes.
    pub(super) other_runs: Vec<Shared<Vec<u8>>>,
    /// What an iteration takes without the profiler, in ns, where a person has timed it.
    pub(super) iteration_ns: Option<i64>,
    /// The last triage, for the diagnosis.
    pub(super) report: Option<TriageReport>,
    /// The last op whose benchmark was asked for, and the script. (A browser may refuse to copy what was asked for long ago; then
    /// the next answer comes at once.)
    benchmark: Option<(String, Result<String, String>)>,
}

impl Session for TriageSession {
    fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port) {
        match request {
            Request::Open { job, name, .. } => self.open(job, name, files, port),
            Request::AddCompanion { job, beside, name } => {
                let Some(source) = files.source(beside.job) else { return };
                if let Some(file) = &mut self.file {
                    // What is known of slices was found without it.
                    file.slices = None;
                    file.report = None;
                    others::add(&mut self.companions, job, beside, name, source, port);
                }
            }
            Request::RemoveCompanion { job: _, companion } => {
                self.companions.retain(|known| known.beside.job != companion);
                if let Some(file) = &mut self.file {
                    file.slices = None;
                    file.report = None;
                }
                files.forget(companion);
            }
            Request::OtherRanks { job: _, others } => {
                if let Some(file) = &mut self.file {
                    (file.other_runs, file.other_ranks) =
                        others.into_iter().partition(|bytes| is_run(bytes));
                }
            }
            Request::BenchmarkConfig { job, bytes } => {
                let mut facts = UserFacts::default();
                facts.take_benchmark_config(&bytes);
                let digest = facts.benchmark_config_hash.unwrap_or_default();
                port.send(Response::BenchmarkConfig { job, digest });
            }
            request => {
                if let Some(file) = &mut self.file {
                    file.answer(request, &self.companions, files, port);
                }
            }
        }
    }
}

impl TriageSession {
    /// Decodes a file; one that is no trace may describe traces.
    fn open(&mut self, job: JobId, name: String, files: &mut dyn Files, port: &mut dyn Port) {
        let Some(source) = files.source(job) else { return };
        match decode(job, Stage::Triaging, source, port) {
            Ok(decoded) => {
                self.file = Some(OpenFile {
                    name,
                    decoded,
                    details: None,
                    slices: None,
                    other_ranks: Vec::new(),
                    other_runs: Vec::new(),
                    iteration_ns: None,
                    report: None,
                    benchmark: None,
                });
            }
            Err(refused) if aside::reader(&refused) == Some(Program::Triage) => {
                port.send(match aside::of_refused(*refused, source) {
                    Ok(aside) => Response::Aside { job, aside },
                    Err(failure) => Response::Failed { job, failure },
                });
            }
            // The first program has reported it.
            Err(_) => {}
        }
    }
}

impl OpenFile {
    /// Answers a request about the file.
    fn answer(
        &mut self,
        request: Request,
        companions: &[OpenCompanion],
        files: &mut dyn Files,
        port: &mut dyn Port,
    ) {
        match request {
            Request::Triage { job, count_before_window } => {
                self.read_details(job, files, port);
                let report = self.triage(companions, count_before_window);
                let triage = self.shown(&report);
                self.report = Some(report);
                port.send(Response::Triage { job, triage });
            }
            Request::Diagnose { job, count_before_window, step, iteration_ns } => {
                self.read_details(job, files, port);
                self.iteration_ns = iteration_ns;
                let diagnosis = self.diagnosis(companions, count_before_window, step);
                port.send(Response::Diagnosed { job, diagnosis });
            }
            Request::InTrace { job, snapshot, run } => {
                let Ok(facts) = postcard::from_bytes::<RunFacts>(&run) else { return };
                self.read_details(job, files, port);
                let chapter = self.in_trace(&facts);
                port.send(Response::InTrace { job, snapshot, chapter });
            }
            Request::RankCalls { job } => {
                self.read_details(job, files, port);
                let calls = self.rank_calls(&HostIndex::of(&self.decoded.trace));
                port.send(Response::RankCalls { job, calls: calls.to_bytes() });
            }
            Request::Describe { job } => {
                self.read_details(job, files, port);
                let run = self.describe(companions);
                port.send(Response::Described { job, run });
            }
            Request::Compare { job, with, run } => {
                self.read_details(job, files, port);
                let own = self.describe(companions);
                let comparison = own.and_then(|own| others::compare(&own, &run));
                port.send(Response::Compared { job, with, comparison });
            }
            Request::Kernel { job, key, count_before_window, step } => {
                // A worker that was ended and started again has not triaged yet; another may have triaged another step.
                if self.slices.as_ref().is_none_or(|(_, known)| *known != step) {
                    self.read_details(job, files, port);
                    self.know_slices(companions, count_before_window, step);
                }
                port.send(Response::Kernel { job, kernel: self.kernel(key) });
            }
            Request::Window { job, event } => {
                let mut windows = overlap_windows(&self.decoded.trace, &[event], None);
                if let Some(window) = windows.pop().flatten() {
                    port.send(Response::Window { job, window });
                }
            }
            Request::Benchmark { job, op } => {
                let script = self.benchmark(job, &op, files, port);
                port.send(Response::Benchmark { job, op, script });
            }
            Request::Artifacts { job, wish, parts } => {
                self.read_details(job, files, port);
                let made = match parts {
                    Parts::Report => self.resource_report(companions, &wish),
                    _ => self.artifacts(job, companions, (&wish, parts), files, port),
                };
                match made {
                    Ok(made) => port.deliver_artifacts(job, made),
                    Err(failure) => port.send(Response::NoArtifacts { job, failure }),
                }
            }
            // The session's.
            Request::Open { .. }
            | Request::AddCompanion { .. }
            | Request::RemoveCompanion { .. }
            | Request::OtherRanks { .. }
            | Request::BenchmarkConfig { .. } => {}
            // The other program's.
            Request::Analyze { .. }
            | Request::PlanRepair { .. }
            | Request::Look { .. }
            | Request::Levels { .. }
            | Request::Memory { .. }
            | Request::Told { .. }
            | Request::Changes { .. }
            | Request::Repair { .. } => {}
        }
    }

    /// Triages a step, or the whole file, for what it knows of slices then.
    fn know_slices(
        &mut self,
        companions: &[OpenCompanion],
        count_before_window: bool,
        step: Option<StepWindow>,
    ) {
        match step {
            Some(step) => drop(self.triage_step(companions, step)),
            None => drop(self.triage(companions, count_before_window)),
        }
    }

    /// A triage as the page shows it.
    fn shown(&self, report: &TriageReport) -> Triage {
        let mut sections = report.sections(EVERY_ROW);
        sections.extend(page::merged(report));
        let has_stacks = self.decoded.trace.strings.find(PYTHON_FUNCTION).is_some();
        page::triage(report, sections, has_stacks)
    }

    /// The diagnosis of the whole file, or of a step with the triage of that.
    fn diagnosis(
        &mut self,
        companions: &[OpenCompanion],
        count_before_window: bool,
        step: Option<StepWindow>,
    ) -> Diagnosis {
        if let Some(step) = step {
            let (part, report) = self.triage_step(companions, step);
            let triage = Some(Box::new(self.shown(&report)));
            return Diagnosis { triage, ..self.diagnose(&part, &report, companions, false) };
        }
        // (What is known of slices may be of a step that was looked at since.)
        let is_whole = self.slices.as_ref().is_some_and(|(_, step)| step.is_none());
        let report = self.report.take().filter(|_| is_whole);
        let report = report.unwrap_or_else(|| self.triage(companions, count_before_window));
        self.diagnose(&self.decoded.trace, &report, companions, count_before_window)
    }

    /// What the trace says of a snapshot of its run.
    fn in_trace(&self, facts: &RunFacts) -> Chapter {
        let none = Details::default();
        let details = self.details.as_ref().unwrap_or(&none);
        let index = HostIndex::of(&self.decoded.trace);
        let found = kinetoscope::same_run(&index.slices, details, facts);
        Chapter::drawn(found.section(&self.name))
    }

    /// A kernel's launches and places.
    fn kernel(&self, key: KernelKey) -> KernelDetails {
        let slices = self.slices.as_ref().map(|(slices, _)| slices);
        let kernel =
            slices.and_then(|slices| slices.kernel(&self.decoded.trace, &key, FIRST_LAUNCHES));
        kernel.unwrap_or_else(|| KernelDetails { key, ..Default::default() })
    }

    /// Why the run is slow, and what the CPU did. Without arguments there are fewer figures.
    fn diagnose(
        &self,
        trace: &Trace,
        report: &TriageReport,
        companions: &[OpenCompanion],
        count_before_window: bool,
    ) -> Diagnosis {
        let none = Details::default();
        let details = self.details.as_ref().unwrap_or(&none);
        let index = HostIndex::of(trace);
        let of_host = kinetoscope::host(&index, details);
        let triage_of = |part: &Trace| self.triage_of(part, companions, count_before_window).0;
        let mut facts = Facts::of(&index, details, &of_host, report).timed(self.iteration_ns);
        // (The collectives of a run say nothing of one step.)
        let ranks = trace.part.is_none().then(|| self.ranks(&index));
        let run = ranks.as_ref().and_then(Ranks::run);
        if let Some(run) = &run {
            facts = facts.in_run(run);
        }
        let found = kinetoscope::diagnose_ranks(&facts, &triage_of);
        let mut diagnosis = page::diagnosis(&found, &of_host);
        diagnosis.chapters.extend(run.map(|run| Chapter::from(run.section())));
        diagnosis.clocks = ranks.as_ref().map(Ranks::clocks).unwrap_or_default();
        let steps =
            found.iterations.iter().filter(|_| trace.part.is_none()).flat_map(|all| &all.list);
        diagnosis.steps = steps.map(page::step_window).collect();
        if trace.part.is_none() {
            let own = ScalingRow::of(&self.name, &found);
            diagnosis.scaling = Shared::new(scaling::to_bytes(&own));
            diagnosis.chapters.extend(scaling::chapter(own, &self.other_runs));
            let memory = kinetoscope::memory_over_time(&index.slices, details);
            let whole = self.slices.as_ref().filter(|(_, step)| step.is_none());
            let elsewhere = whole.map(|(slices, _)| slices.elsewhere()).unwrap_or_default();
            let told = News::Told(page::told(report, &memory, elsewhere));
            diagnosis.told = postcard::to_allocvec(&told).unwrap_or_default();
            if !memory.is_empty() {
                diagnosis.memory = postcard::to_allocvec(&memory).unwrap_or_default();
            }
        }
        diagnosis
    }

    /// The script that times an op alone: the same bytes as those of the command line.
    fn benchmark(
        &mut self,
        job: JobId,
        op: &str,
        files: &mut dyn Files,
        port: &mut dyn Port,
    ) -> Result<String, String> {
        if let Some((_, script)) = self.benchmark.as_ref().filter(|(known, _)| known == op) {
            return script.clone();
        }
        let source = files.source(job).ok_or("the file was closed")?;
        // (Of most ops the arguments are not kept.)
        let wants = |name: &str| name == op;
        let details = details_of(job, Stage::Triaging, &self.decoded, source, port, wants);
        let details = details.ok_or("the file cannot be read any more")?;
        let HostIndex { slices, gpu } = HostIndex::of(&self.decoded.trace);
        let script = kinetoscope::benchmark_script(&slices, &gpu, &details, op, 0);
        let script = script.map_err(|reason| reason.to_string());
        self.benchmark = Some((op.to_owned(), script.clone()));
        script
    }

    /// The report on resources: the same bytes as those of the command line.
    fn resource_report(
        &mut self,
        companions: &[OpenCompanion],
        wish: &ArtifactWish,
    ) -> Result<Made, Failure> {
        let triage = self.triage(companions, wish.count_before_window);
        let none = Details::default();
        let details = self.details.as_ref().unwrap_or(&none);
        let trace = &self.decoded.trace;
        let triage_of = |part: &Trace| self.triage_of(part, companions, wish.count_before_window).0;
        let (triage, triage_of, name) = (&triage, &triage_of, self.name.as_str());
        // (The index is made for it only where there are others.)
        let ranks = match self.other_ranks.is_empty() {
            true => Ranks::default(),
            false => self.ranks(&HostIndex::of(trace)),
        };
        let run = ranks.run();
        let trace = ReportedTrace { trace, details, triage, triage_of, name, run: run.as_ref() };
        artifacts::report(trace, wish)
    }

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
