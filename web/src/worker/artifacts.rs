//! The artifacts of a file: the same calls of the facade as on the command line.

use std::collections::BTreeMap;

use kinetoscope::artifacts::{
    ARCHIVE, Archive, Artifact, ArtifactOptions, ArtifactOrder, FACT_FIELDS, FIXED_TRACE, NotFacts,
    NotMade, ReportOrder, ReportedTrace, Role, SourceDigest, SourceFile, Stored, UserFacts,
    archive, order_artifacts, order_kernel_map, resource_report, stage_of_word,
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
    let mut facts = facts_of(&wish.facts).map_err(|error| not_taken(&error))?;
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

/// Run details, from what was typed.
fn facts_of(typed: &BTreeMap<String, String>) -> Result<UserFacts, NotFacts> {
    let mut members = Vec::new();
    for field in FACT_FIELDS {
        let text = typed.get(field.key).map_or("", String::as_str);
        if let Some(value) = field.value(text)? {
            members.push(format!("\"{}\":{value}", field.key));
        }
    }
    UserFacts::from_json(&format!("{{{}}}", members.join(",")))
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

/// The report on resources.
pub fn report(trace: ReportedTrace<'_>, wish: &ArtifactWish) -> Result<Made, Failure> {
    let options = ArtifactOptions { keep_names: wish.keep_names };
    let texts = resource_report(&ReportOrder { trace: Some(trace), memory: None, options })
        .map_err(|error| fault(&error.to_string()))?;
    let files = texts.iter().map(of_text).collect();
    Ok(Made {
        artifacts: Artifacts { wish: wish.clone(), files },
        texts: texts.into(),
        archive: None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_facts_are_those_of_a_facts_file() {
        let typed = |facts: &[(&str, &str)]| {
            let texts = facts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            facts_of(&texts.collect())
        };
        let facts = typed(&[
            ("trial_id", " 17 "),
            ("base_image", "a\"b"),
            ("gpu_device_ids", "0,1"),
            ("target_arch", ""),
        ]);
        let facts = facts.unwrap();
        assert_eq!((facts.trial_id.as_deref(), facts.target_arch), (Some("17"), None));
        assert_eq!(facts.base_image.as_deref(), Some("a\"b"));
        assert_eq!(facts.gpu_device_ids, Some(vec![0, 1]));
        assert!(typed(&[("preflight_passed", "perhaps")]).is_err());
    }
}
