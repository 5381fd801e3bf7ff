//! Related files in the worker: traces, maps and other runs.

use kinetoscope::artifacts::{
    Artifact, ArtifactOptions, ArtifactOrder, ReportOrder, ReportedTrace, Role, SourceDigest,
    SourceFile, UserFacts, order_artifacts, resource_report, triage_all,
};
use kinetoscope::trace::Trace;
use kinetoscope::{
    CaptureFacts, Decoded, Details, KernelMap, Options, RepairPlan, Run, Sources, TriageOptions,
    TriageReport, TriageSlices,
};

use super::triage::OpenFile;
use super::{
    EVERY_ROW, Files, Port, Source, aside, decode, details, fault, page, read_all, unreadable,
};
use crate::protocol::{
    ArtifactWish, Beside, Companion, Comparison, Failure, JobId, Parts, Progress, Response, Stage,
    StepWindow,
};
use crate::worker::artifacts::{self, Made, Of};

/// A file that tells of the open one.
pub(super) struct OpenCompanion {
    pub beside: Beside,
    /// The file's name.
    name: String,
    told: Told,
}

/// What such a file holds.
enum Told {
    /// A trace, and of a capture its arguments.
    Trace(Box<Decoded>, Option<Box<Details>>),
    Map(KernelMap),
}

/// Reads a companion; one that is known already takes the new part.
pub(super) fn add(
    companions: &mut Vec<OpenCompanion>,
    job: JobId,
    beside: Beside,
    name: String,
    source: &mut dyn Source,
    port: &mut dyn Port,
) {
    let companion = beside.job;
    let known = companions.iter().position(|known| known.beside.job == companion);
    let told = match known.map(|at| companions.remove(at).told) {
        Some(told) => Ok(told),
        None => read(job, beside.role, source, port),
    };
    let failure = match told {
        Ok(mut told) => {
            if let (Told::Trace(decoded, arguments @ None), Companion::Capture) =
                (&mut told, beside.role)
            {
                let stage = Stage::ReadingCompanion(beside.role);
                *arguments = details(job, stage, decoded, source, port).map(Box::new);
            }
            companions.push(OpenCompanion { beside, name, told });
            // The first that was dropped is asked first, in whichever order they were read.
            companions.sort_by_key(|known| known.beside.job);
            None
        }
        Err(failure) => Some(failure),
    };
    port.send(Response::Companion { job, companion, failure });
}

fn read(
    job: JobId,
    role: Companion,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Result<Told, Failure> {
    if role == Companion::Map {
        return aside::read_map(source).map(Told::Map);
    }
    let decoded = decode(job, Stage::ReadingCompanion(role), source, port);
    decoded.map(|decoded| Told::Trace(Box::new(decoded), None)).map_err(|refused| refused.failure)
}

/// The companions of one part, in order.
fn of(companions: &[OpenCompanion], role: Companion) -> impl Iterator<Item = &OpenCompanion> {
    companions.iter().filter(move |companion| companion.beside.role == role)
}

/// The sources of a triage with what the companions tell, and the arguments of the trace itself.
fn with<R>(
    companions: &[OpenCompanion],
    details: Option<&Details>,
    then: impl FnOnce(&Sources<'_>) -> R,
) -> R {
    let traces = |role: Companion| {
        of(companions, role).filter_map(|companion| match &companion.told {
            Told::Trace(decoded, details) => Some((companion, &decoded.trace, details.as_deref())),
            Told::Map(_) => None,
        })
    };
    let maps = of(companions, Companion::Map).filter_map(|companion| match &companion.told {
        Told::Map(map) => Some(map),
        Told::Trace(..) => None,
    });
    let captures: Vec<&Trace> = traces(Companion::Capture).map(|(_, trace, _)| trace).collect();
    let capture_details: Vec<Option<&Details>> =
        traces(Companion::Capture).map(|(.., details)| details).collect();
    let facts = traces(Companion::Capture).map(|(companion, ..)| companion.facts());
    let capture_facts: Vec<CaptureFacts> = facts.collect();
    then(&Sources {
        captures: &captures,
        capture_facts: &capture_facts,
        mapping: traces(Companion::Mapping).map(|(_, trace, _)| trace).next(),
        map: { maps }.next(),
        details,
        capture_details: &capture_details,
    })
}

impl OpenCompanion {
    /// What is known of a capture beside the trace.
    fn facts(&self) -> CaptureFacts {
        let unlisted = || CaptureFacts { name: self.name.clone(), ..CaptureFacts::default() };
        self.beside.listed.clone().unwrap_or_else(unlisted)
    }
}

/// As the command line lists them: the mapping trace, the captures, the kernel map.
const AS_LISTED: [(Companion, Role); 3] = [
    (Companion::Mapping, Role::Mapping),
    (Companion::Capture, Role::Capture),
    (Companion::Map, Role::Mapping),
];

impl OpenFile {
    /// Triage with what the companions tell; what it knows of every GPU slice is kept for what is asked later.
    pub(super) fn triage(
        &mut self,
        companions: &[OpenCompanion],
        count_before_window: bool,
    ) -> TriageReport {
        let (report, slices) = self.triage_of(&self.decoded.trace, companions, count_before_window);
        self.slices = Some((slices, None));
        report
    }

    /// The same of a step, with the trace that is narrowed to it.
    pub(super) fn triage_step(
        &mut self,
        companions: &[OpenCompanion],
        step: StepWindow,
    ) -> (Trace, TriageReport) {
        let part =
            kinetoscope::narrow(&self.decoded.trace, (step.start_ns, step.end_ns), &step.name);
        let (report, slices) = self.triage_of(&part, companions, false);
        self.slices = Some((slices, Some(step)));
        (part, report)
    }

    /// Triage of the trace, or of a part of it.
    pub(super) fn triage_of(
        &self,
        trace: &Trace,
        companions: &[OpenCompanion],
        count_before_window: bool,
    ) -> (TriageReport, TriageSlices) {
        let (model, tp) = UserFacts::default().model_and_tp(&trace.metadata);
        let file_name = Some(self.name.clone());
        let slices = Options { without_before_window: !count_before_window, ..Options::default() };
        let options = TriageOptions { slices, file_name, model, tp };
        with(companions, self.details.as_ref(), |sources| {
            kinetoscope::triage_kept(trace, &options, sources)
        })
    }

    /// The artifacts, with what the companions tell.
    pub(super) fn artifacts(
        &self,
        job: JobId,
        companions: &[OpenCompanion],
        (wish, parts): (&ArtifactWish, Parts),
        files: &mut dyn Files,
        port: &mut dyn Port,
    ) -> Result<Made, Failure> {
        let gone = || unreadable("it was closed", 0);
        let mut other_files = Vec::new();
        for (part, role) in AS_LISTED {
            for companion in of(companions, part) {
                let source = files.source(companion.beside.job).ok_or_else(gone)?;
                other_files.push(digest_of(job, companion, role, source, port)?);
            }
        }
        let source = files.source(job).ok_or_else(gone)?;
        with(companions, self.details.as_ref(), |others| {
            let of =
                Of { job, name: &self.name, decoded: &self.decoded, others: *others, other_files };
            artifacts::make(&of, wish, parts, source, port)
        })
    }

    /// The run in the form that another worker, or another year, can compare with its own. Repairs are no part of it,
    /// so it need not wait for a plan.
    pub(super) fn describe(&self, companions: &[OpenCompanion]) -> Result<Vec<Artifact>, Failure> {
        let no_plan = RepairPlan::default();
        let described = with(companions, self.details.as_ref(), |others| {
            order_artifacts(&ArtifactOrder {
                decoded: &self.decoded,
                file_name: &self.name,
                plan: &no_plan,
                others: *others,
                sources: &[],
                facts: &UserFacts::default(),
                stage: None,
                device: None,
                cutoff_pct: EVERY_ROW,
                count_before_window: false,
                options: ArtifactOptions::default(),
            })
        });
        let mut files = described.map_err(|error| fault(&error))?;
        files.extend(self.report()?);
        files.retain(|file| Run::FILES.contains(&file.name.as_str()));
        Ok(files)
    }

    /// The report on resources, without what companions tell, as the command line compares it.
    fn report(&self) -> Result<[Artifact; 3], Failure> {
        let none = Details::default();
        let details = self.details.as_ref().unwrap_or(&none);
        let trace = &self.decoded.trace;
        let sources = Sources { details: Some(details), ..Sources::default() };
        let facts = UserFacts::default();
        let triage_of = |part: &Trace| triage_all(part, &self.name, &sources, &facts, false);
        let (triage, triage_of) = (triage_of(trace), &triage_of);
        let (triage, name) = (&triage, self.name.as_str());
        let trace = ReportedTrace { trace, details, triage, triage_of, name, run: None };
        let order =
            ReportOrder { trace: Some(trace), memory: None, options: ArtifactOptions::default() };
        resource_report(&order).map_err(|error| fault(&error))
    }
}

fn digest_of(
    job: JobId,
    companion: &OpenCompanion,
    role: Role,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Result<SourceFile, Failure> {
    let mut digest = SourceDigest::default();
    read_all(source, |bytes, done, total| {
        digest.push(bytes);
        let progress = Progress { stage: Stage::Digesting, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    })?;
    Ok(digest.finish(&companion.name, role))
}

/// Compares two runs by what was written down of them.
pub(super) fn compare(a: &[Artifact], b: &[Artifact]) -> Result<Comparison, Failure> {
    let a = Run::of(a).map_err(|error| fault(&error))?;
    let b = Run::of(b).map_err(|error| fault(&error))?;
    let found = kinetoscope::compare(&a, &b);
    Ok(page::comparison(&found, found.sections()))
}
