//! The artifacts of a file: the same calls of the facade as on the command line.

use kinetoscope::artifacts::{
    ARCHIVE, Archive, Artifact, ArtifactOptions, ArtifactOrder, FIXED_TRACE, NotMade, Role,
    SourceDigest, SourceFile, Stored, UserFacts, archive, order_artifacts, order_kernel_map,
    stage_of_word,
};
use kinetoscope::{Decoded, Output, PlanOptions, Repairer, Sources, plan_repair};

use super::session::{Port, Source, read_all};
use crate::protocol::{
    ArtifactFile, ArtifactWish, Artifacts, Failure, JobId, Parts, Progress, Response, Stage,
};

/// Bytes of the repaired trace that are handed on at a time.
const BLOCK: usize = 4 << 20;

/// Files that are made, the repaired trace excepted: its bytes went to [`Port::block`].
pub struct Made {
    /// What the page hears.
    pub artifacts: Artifacts,
    /// The texts.
    pub texts: Vec<Artifact>,
    /// The archive around the repaired trace; `None` where only the texts were wanted.
    pub archive: Option<Archive>,
}

/// The file and what else the artifacts are made of.
pub struct Of<'a> {
    pub job: JobId,
    pub name: &'a str,
    pub decoded: &'a Decoded,
    /// Traces that tell where kernels come from, and these files.
    pub others: Sources<'a>,
    pub other_files: Vec<SourceFile>,
}

/// Makes those of the artifacts that are asked for.
pub fn make(
    of: &Of<'_>,
    wish: &ArtifactWish,
    parts: Parts,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Result<Made, Failure> {
    let Of { job, name, decoded, others, other_files } = of;
    let mut facts = UserFacts::from_json(&wish.facts).map_err(|error| not_taken(&error))?;
    if let Some(flags) = &wish.server_args {
        facts.take_server_args(flags).map_err(|error| not_taken(&error))?;
    }
    if parts == Parts::KernelMap {
        return kernel_map(of, wish, &facts);
    }
    let with_trace = parts == Parts::Everything;
    let stage = wish.stage.as_deref().map(stage_of_word).transpose();
    let stage = stage.map_err(|error| not_taken(&error))?;
    // As the command line: what was asked for on the Repair view is not asked for here.
    let plan = plan_repair(&decoded.trace, &PlanOptions::default());

    let mut digest = SourceDigest::default();
    let mut repairer = with_trace.then(|| Repairer::new(decoded, &plan, Output::Gzip));
    let mut stored = Stored::default();
    let mut out = Vec::new();
    let doing = if with_trace { Stage::Repairing } else { Stage::Digesting };
    read_all(source, |bytes, done, total| {
        digest.push(bytes);
        if let Some(repairer) = &mut repairer {
            repairer.push(bytes, &mut out);
            if out.len() >= BLOCK {
                stored.push(&out);
                port.block(&out);
                out.clear();
            }
        }
        let progress = Progress { stage: doing, done, total, n_events: 0 };
        port.send(Response::Progress { job: *job, progress });
        Ok(())
    })?;
    if let Some(repairer) = repairer {
        if !repairer.finish(&mut out).holds {
            return Err(fault("Verification failed: input and output differ."));
        }
        stored.push(&out);
        port.block(&out);
    }

    let total = source.size();
    let progress = Progress { stage: Stage::Packing, done: total, total, n_events: 0 };
    port.send(Response::Progress { job: *job, progress });
    let mut sources = vec![digest.finish(name, Role::Formal)];
    sources.extend(other_files.iter().cloned());
    let order = ArtifactOrder {
        decoded,
        file_name: name,
        plan: &plan,
        others: *others,
        sources: &sources,
        facts: &facts,
        stage,
        device: wish.device.as_deref(),
        cutoff_pct: wish.cutoff_pct,
        count_before_window: wish.count_before_window,
        options: ArtifactOptions { keep_names: wish.keep_names },
    };
    let texts = order_artifacts(&order).map_err(|error| match error {
        NotMade::NoStage { .. } | NotMade::NoDevice { .. } => not_taken(&error),
        other => fault(&other.to_string()),
    })?;
    let mut files: Vec<ArtifactFile> = texts.iter().map(of_text).collect();
    let archive = match with_trace {
        true => Some(archive(&texts, Some(&stored)).map_err(|error| too_large(&error))?),
        false => None,
    };
    if let Some(around) = &archive {
        let mut file =
            |name: &str, bytes| files.push(ArtifactFile { name: name.to_owned(), bytes });
        file(FIXED_TRACE, stored.len());
        let bytes = (around.before.len() + around.after.len()) as u64;
        file(ARCHIVE, bytes + stored.len());
    }
    let artifacts = Artifacts { wish: wish.clone(), files };
    Ok(Made { artifacts, texts, archive })
}

fn of_text(Artifact { name, text }: &Artifact) -> ArtifactFile {
    ArtifactFile { name: name.clone(), bytes: text.len() as u64 }
}

/// The kernel map: the names of the files stand in it, not their digests.
fn kernel_map(of: &Of<'_>, wish: &ArtifactWish, facts: &UserFacts) -> Result<Made, Failure> {
    let Of { job: _, name, decoded, others, other_files } = of;
    let mut sources = vec![SourceDigest::default().finish(name, Role::Formal)];
    sources.extend(other_files.iter().cloned());
    let options = ArtifactOptions { keep_names: wish.keep_names };
    let map = order_kernel_map(&decoded.trace, others, &sources, facts, options)
        .map_err(|error| fault(&error.to_string()))?;
    let artifacts = Artifacts { wish: wish.clone(), files: vec![of_text(&map.file)] };
    Ok(Made { artifacts, texts: vec![map.file], archive: None })
}

fn not_taken(error: &dyn std::error::Error) -> Failure {
    Failure {
        title: "The artifacts cannot be written with these options".into(),
        what: error.to_string(),
        advice: "Correct the options or the run details, and try again.".into(),
        ..Failure::default()
    }
}

fn too_large(error: &dyn std::error::Error) -> Failure {
    Failure {
        title: "The archive would be too large".into(),
        what: error.to_string(),
        advice: "Download the repaired trace from File health, and the tables one by one.".into(),
        ..Failure::default()
    }
}

fn fault(what: &str) -> Failure {
    Failure {
        title: "The artifacts could not be written".into(),
        what: what.to_owned(),
        advice: "This is a bug in Kinetoscope. Please report it.".into(),
        ..Failure::default()
    }
}
