//! `kinetoscope triage`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::{
    ARCHIVE, Artifact, ArtifactOptions, FIXED_TRACE, Role, SUMMARY, Triaged, UserFacts, archive,
    triage_artifacts,
};
use kinetoscope::trace::Trace;
use kinetoscope::{
    Options, PlanOptions, Sources, Stage, TriageOptions, TriageReport, analyze, plan_repair, triage,
};

use crate::failure::Usage;
use crate::input::{self, Opened};
use crate::interrupt::Interrupt;
use crate::perfetto_fix;
use crate::traces::{self, Chosen};

#[derive(clap::Args)]
pub struct Arguments {
    /// Traces, or folders of them. Of several ranks the lowest is taken (see --rank).
    #[arg(required = true)]
    trace: Vec<PathBuf>,
    /// A trace of the same work without graphs: it tells the lines of Python.
    #[arg(long, value_name = "TRACE")]
    mapping: Option<PathBuf>,
    /// Traces of the capture of the graphs: they tell which op each replayed kernel is.
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    capture: Vec<PathBuf>,
    /// Also write the artifacts into this folder, with the repaired trace; one folder per trace if there are several.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// With --out: also all of them as one archive.
    #[arg(long, requires = "out")]
    zip: bool,
    /// Only this stage: extend, decode, mixed, capture, forward, backward, optimizer, all.
    #[arg(long, value_parser = stage)]
    stage: Option<Stage>,
    /// Kernels below this share of their stage stand in one row of the Markdown, in percent.
    #[arg(long, default_value_t = 1.0, value_parser = percent)]
    cutoff: f64,
    /// Only this rank, where the traces have several.
    #[arg(long)]
    rank: Option<i64>,
    #[command(flatten)]
    facts: Facts,
}

/// What only the user knows.
#[derive(clap::Args)]
pub struct Facts {
    /// The architecture that the conclusions are for, such as gfx950.
    #[arg(long, value_name = "ARCH")]
    target_arch: Option<String>,
    /// A JSON object with what only you know: experiment_id, trial_id, base_image... (docs/artifacts.md).
    #[arg(long, value_name = "FACTS.json")]
    facts: Option<PathBuf>,
    /// The launch flags of the server; without it, the server_args.json beside a trace.
    #[arg(long, value_name = "server_args.json")]
    server_args: Option<PathBuf>,
    /// The configuration of the benchmark, to be hashed.
    #[arg(long, value_name = "FILE")]
    benchmark_config: Option<PathBuf>,
    /// Leave names of hosts and users where they are.
    #[arg(long)]
    keep_names: bool,
}

/// Triages each of the chosen traces.
///
/// # Errors
/// When a file cannot be read or written or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let chosen = traces::choose(&arguments.trace, arguments.rank)?;
    let captures = arguments.capture.iter().map(|path| input::read(path, Role::Capture));
    let captures = captures.collect::<Result<Vec<Opened>>>()?;
    let mapping = arguments.mapping.as_deref().map(|path| input::read(path, Role::Mapping));
    // Watched only once there is something to leave behind.
    let mut interrupt = None;
    let others = Others { mapping: mapping.transpose()?, captures };
    for (at, Chosen { path, name }) in chosen.iter().enumerate() {
        let facts = arguments.facts.read(path)?;
        let done =
            triage_one(path, arguments.stage, &others, &facts, &arguments.facts, arguments.cutoff)?;
        if let Some(out) = &arguments.out {
            let folder = if chosen.len() == 1 { out.clone() } else { out.join(name) };
            let interrupt = match &interrupt {
                Some(interrupt) => interrupt,
                None => interrupt.insert(Interrupt::watch()?),
            };
            write(&folder, path, &done, arguments.zip, interrupt)?;
            interrupt.check()?;
        }
        let mut stdout = std::io::stdout();
        if at > 0 {
            stdout.write_all(b"\n")?;
        }
        let summary = done.files.iter().find(|file| file.name == SUMMARY);
        stdout.write_all(summary.map_or("", |file| &file.text).as_bytes())?;
    }
    Ok(())
}

/// Traces that tell where kernels come from.
#[derive(Default)]
pub struct Others {
    mapping: Option<Opened>,
    captures: Vec<Opened>,
}

/// A trace with its artifacts.
pub struct Done {
    pub read: Opened,
    pub files: Vec<Artifact>,
}

/// Triages one file.
pub fn triage_one(
    path: &Path,
    stage: Option<Stage>,
    others: &Others,
    facts: &UserFacts,
    given: &Facts,
    cutoff_pct: f64,
) -> Result<Done> {
    let read = input::read(path, Role::Formal)?;
    let trace = &read.decoded.trace;
    let captures: Vec<&Trace> = others.captures.iter().map(|read| &read.decoded.trace).collect();
    let sources = Sources {
        captures: &captures,
        mapping: others.mapping.as_ref().map(|read| &read.decoded.trace),
    };
    let file_name = Some(path.to_string_lossy().into_owned());
    let (model, tp) = facts.model_and_tp();
    let options = TriageOptions { file_name, model, tp, ..TriageOptions::default() };
    let mut found = triage(trace, &options, &sources);
    if let Some(stage) = stage {
        found = only(found, stage, path)?;
    }
    let plan = plan_repair(trace, &PlanOptions::default());
    let mut files = vec![read.source.clone()];
    files.extend(others.mapping.iter().chain(&others.captures).map(|read| read.source.clone()));
    let files = triage_artifacts(&Triaged {
        decoded: &read.decoded,
        report: &analyze(trace, &Options::default()),
        triage: &found,
        plan: Some(&plan),
        sources: &files,
        facts,
        options: ArtifactOptions { keep_names: given.keep_names },
        cutoff_pct,
    })?;
    Ok(Done { read, files })
}

/// The rows of one stage.
fn only(report: TriageReport, stage: Stage, path: &Path) -> Result<TriageReport> {
    if !report.stages.iter().any(|row| row.stage == stage) {
        let known: Vec<&str> = report.stages.iter().map(|row| row.stage.id()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name = path.display();
        let text = format!("{name} has no stage {}; its stages: {known}", stage.id());
        return Err(Usage(text).into());
    }
    Ok(report.only(stage))
}

impl Facts {
    /// What the user says, for the trace at `path`.
    ///
    /// # Errors
    /// When a file that was named cannot be read, or is no JSON object.
    pub fn read(&self, path: &Path) -> Result<UserFacts> {
        let mut facts = match &self.facts {
            Some(file) => UserFacts::from_json(&text(file)?)
                .with_context(|| format!("cannot use {}", file.display()))?,
            None => UserFacts::default(),
        };
        if let Some(target) = &self.target_arch {
            facts.target_arch = Some(target.clone());
        }
        let beside = traces::server_args(path);
        if let Some(file) =
            self.server_args.as_ref().or(beside.as_ref().filter(|_| facts.server_flags.is_none()))
        {
            facts
                .take_server_args(&text(file)?)
                .with_context(|| format!("cannot use {}", file.display()))?;
        }
        if let Some(file) = &self.benchmark_config {
            let bytes =
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            facts.take_benchmark_config(&bytes);
        }
        Ok(facts)
    }
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes the artifacts and the repaired trace.
fn write(folder: &Path, trace: &Path, done: &Done, zip: bool, interrupt: &Interrupt) -> Result<()> {
    let cannot = |path: &Path| format!("cannot write {}", path.display());
    std::fs::create_dir_all(folder).with_context(|| cannot(folder))?;
    for Artifact { name, text } in &done.files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| cannot(&path))?;
    }
    let fixed = folder.join(FIXED_TRACE);
    perfetto_fix::write_fixed(trace, &done.read, &fixed, interrupt)?;
    if zip {
        let bytes =
            std::fs::read(&fixed).with_context(|| format!("cannot read {}", fixed.display()))?;
        let path = folder.join(ARCHIVE);
        std::fs::write(&path, archive(&done.files, Some(&bytes))?)
            .with_context(|| cannot(&path))?;
    }
    eprintln!("{}: {} files", folder.display(), done.files.len() + 1 + usize::from(zip));
    Ok(())
}

fn stage(text: &str) -> Result<Stage, String> {
    let text = text.to_ascii_lowercase();
    let id = if text == "prefill" { "extend" } else { &text };
    Stage::EVERY.into_iter().find(|stage| stage.id() == id).ok_or_else(|| {
        let known: Vec<&str> = Stage::EVERY.iter().map(|stage| stage.id()).collect();
        format!("one of {}", known.join(", "))
    })
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("a number from 0 to 100".to_owned()),
    }
}
