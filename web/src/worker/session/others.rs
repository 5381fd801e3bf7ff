//! What other files tell of the one that is open: traces beside it, and other runs.

use kinetoscope::artifacts::{
    Artifact, ArtifactOptions, ArtifactOrder, Role, SourceDigest, UserFacts, order_artifacts,
};
use kinetoscope::trace::Trace;
use kinetoscope::{Decoded, Details, RepairPlan, Run, Sources, TriageOptions, TriageReport};

use super::{
    EVERY_ROW, Files, OpenFile, Port, Source, decode, details, fault, page, read_all, send_rows,
    unreadable,
};
use crate::protocol::{
    ArtifactWish, Companion, Comparison, Failure, JobId, Progress, Response, Stage,
};
use crate::worker::artifacts::{self, Made, Of};

/// A trace that tells of the open one.
pub(super) struct OpenCompanion {
    /// Its own job on the page.
    pub job: JobId,
    pub role: Companion,
    /// The file's name.
    pub name: String,
    pub decoded: Decoded,
    /// Arguments of a capture.
    pub details: Option<Details>,
}

/// Reads a companion; one that is known already takes the new role.
pub(super) fn add(
    companions: &mut Vec<OpenCompanion>,
    (job, companion, role): (JobId, JobId, Companion),
    name: String,
    source: &mut dyn Source,
    port: &mut dyn Port,
) {
    if let Some(known) = companions.iter_mut().find(|known| known.job == companion) {
        known.role = role;
        port.send(Response::Companion { job, companion, failure: None });
        return;
    }
    let failure = match decode(job, Stage::ReadingCompanion(role), source, port) {
        Ok(decoded) => {
            let stage = Stage::ReadingCompanion(role);
            let details = match role {
                Companion::Capture => details(job, stage, &decoded, source, port),
                Companion::Mapping => None,
            };
            companions.push(OpenCompanion { job: companion, role, name, decoded, details });
            None
        }
        Err(failure) => Some(failure),
    };
    port.send(Response::Companion { job, companion, failure });
}

impl OpenFile {
    fn sources<'a>(
        &'a self,
        captures: &'a [&'a Trace],
        capture_details: &'a [Option<&'a Details>],
        companions: &'a [OpenCompanion],
    ) -> Sources<'a> {
        Sources {
            captures,
            mapping: of(companions, Companion::Mapping).next().map(|it| &it.decoded.trace),
            details: self.details.as_ref(),
            capture_details,
            ..Sources::default()
        }
    }

    /// Triage with what the companions tell; what it knows of every GPU slice is kept for what is asked later.
    pub(super) fn triage(&mut self, companions: &[OpenCompanion]) -> TriageReport {
        let (captures, told) = captures(companions);
        let sources = self.sources(&captures, &told, companions);
        let trace = &self.decoded.trace;
        let (model, tp) = UserFacts::default().model_and_tp(&trace.metadata);
        let file_name = Some(self.name.clone());
        let options = TriageOptions { file_name, model, tp, ..TriageOptions::default() };
        let (report, slices) = kinetoscope::triage_kept(trace, &options, &sources);
        self.slices = Some(slices);
        report
    }

    /// The artifacts, with what the companions tell.
    pub(super) fn artifacts(
        &self,
        job: JobId,
        companions: &[OpenCompanion],
        (wish, with_trace): (&ArtifactWish, bool),
        files: &mut dyn Files,
        port: &mut dyn Port,
    ) -> Result<Made, Failure> {
        let gone = || unreadable("it is not here any more", 0);
        let mut other_files = Vec::new();
        // As the command line lists them: the mapping trace before the captures.
        for (part, role) in
            [(Companion::Mapping, Role::Mapping), (Companion::Capture, Role::Capture)]
        {
            for companion in companions.iter().filter(|companion| companion.role == part) {
                let mut digest = SourceDigest::default();
                let source = files.source(companion.job).ok_or_else(gone)?;
                read_all(source, |bytes, done, total| {
                    digest.push(bytes);
                    let stage = Stage::Digesting;
                    let progress = Progress { stage, done, total, n_events: 0 };
                    port.send(Response::Progress { job, progress });
                    Ok(())
                })?;
                other_files.push(digest.finish(&companion.name, role));
            }
        }
        let (captures, told) = captures(companions);
        let of = Of {
            job,
            name: &self.name,
            decoded: &self.decoded,
            others: self.sources(&captures, &told, companions),
            other_files,
        };
        let source = files.source(job).ok_or_else(gone)?;
        artifacts::make(&of, wish, with_trace, source, port)
    }

    /// The run in the form that another worker, or another year, can compare with its own. Repairs are no part of it,
    /// so it need not wait for a plan.
    pub(super) fn describe(&self, companions: &[OpenCompanion]) -> Result<Vec<Artifact>, Failure> {
        let (captures, told) = captures(companions);
        let no_plan = RepairPlan::default();
        let mut files = order_artifacts(&ArtifactOrder {
            decoded: &self.decoded,
            file_name: &self.name,
            plan: self.plan.as_ref().unwrap_or(&no_plan),
            others: self.sources(&captures, &told, companions),
            sources: &[],
            facts: &UserFacts::default(),
            stage: None,
            device: None,
            cutoff_pct: EVERY_ROW,
            count_before_window: false,
            options: ArtifactOptions::default(),
        })
        .map_err(|error| fault(&error))?;
        files.retain(|file| Run::FILES.contains(&file.name.as_str()));
        Ok(files)
    }
}

/// The captures, and the arguments of each.
fn captures(companions: &[OpenCompanion]) -> (Vec<&Trace>, Vec<Option<&Details>>) {
    of(companions, Companion::Capture).map(|it| (&it.decoded.trace, it.details.as_ref())).unzip()
}

fn of(companions: &[OpenCompanion], role: Companion) -> impl Iterator<Item = &OpenCompanion> {
    companions.iter().filter(move |companion| companion.role == role)
}

/// Compares two runs by what was written down of them.
pub(super) fn compare(
    job: JobId,
    a: &[Artifact],
    b: &[Artifact],
    port: &mut dyn Port,
) -> Result<Comparison, Failure> {
    let a = Run::of(a).map_err(|error| fault(&error))?;
    let b = Run::of(b).map_err(|error| fault(&error))?;
    let found = kinetoscope::compare(&a, &b);
    let mut sections = found.sections();
    for table in sections.iter_mut().flat_map(|section| &mut section.tables) {
        send_rows(job, table, port);
    }
    Ok(page::comparison(&found, sections))
}
