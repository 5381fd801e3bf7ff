//! `kinetoscope triage`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::{
    ARCHIVE, Artifact, ArtifactOptions, ArtifactOrder, FIXED_TRACE, NotFacts, NotMade, Role,
    SUMMARY, Stored, UserFacts, archive, cutoff_of_text, fact_field, order_artifacts,
    stage_of_word,
};
use kinetoscope::trace::Trace;
use kinetoscope::{Details, PlanOptions, Sources, Stage, plan_repair};

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
    #[arg(long, value_parser = stage_of_word)]
    stage: Option<Stage>,
    /// Kernels below this share of their stage stand in one row of the Markdown, in percent.
    #[arg(long, default_value_t = 1.0, value_parser = cutoff_of_text)]
    cutoff: f64,
    /// Also count what was launched before the window; by default it is left out, for it belongs to an earlier step.
    #[arg(long)]
    count_before_window: bool,
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
    #[arg(long, value_name = "ARCH", value_parser = target_arch)]
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
    let captures = arguments.capture.iter().map(|path| {
        let read = input::read(path, Role::Capture)?;
        let details = input::details(path, &read)?;
        Ok((read, details))
    });
    let captures = captures.collect::<Result<Vec<_>>>()?;
    let mapping = arguments.mapping.as_deref().map(|path| input::read(path, Role::Mapping));
    // Watched only once there is something to leave behind.
    let mut interrupt = None;
    let others = Others { mapping: mapping.transpose()?, captures };
    for (at, Chosen { path, name }) in chosen.iter().enumerate() {
        let facts = arguments.facts.read(path)?;
        let how = How {
            stage: arguments.stage,
            cutoff_pct: arguments.cutoff,
            count_before_window: arguments.count_before_window,
        };
        let done = triage_one(path, &how, &others, &facts, &arguments.facts)?;
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
    captures: Vec<(Opened, Details)>,
}

/// A trace with its artifacts.
pub struct Done {
    pub read: Opened,
    pub files: Vec<Artifact>,
}

/// What is wanted of a triage.
#[derive(Default)]
pub struct How {
    /// Only this stage.
    stage: Option<Stage>,
    /// Kernels below this share of their stage stand in one row of the summary.
    cutoff_pct: f64,
    /// Whether what was launched before the window counts.
    count_before_window: bool,
}

/// Triages one file.
pub fn triage_one(
    path: &Path,
    how: &How,
    others: &Others,
    facts: &UserFacts,
    given: &Facts,
) -> Result<Done> {
    let read = input::read(path, Role::Formal)?;
    let trace = &read.decoded.trace;
    let details = input::details(path, &read)?;
    let captures: Vec<&Trace> =
        others.captures.iter().map(|(read, _)| &read.decoded.trace).collect();
    let capture_details: Vec<Option<&Details>> =
        others.captures.iter().map(|(_, details)| Some(details)).collect();
    let sources = Sources {
        captures: &captures,
        mapping: others.mapping.as_ref().map(|read| &read.decoded.trace),
        details: Some(&details),
        capture_details: &capture_details,
    };
    let plan = plan_repair(trace, &PlanOptions::default());
    let mut files = vec![read.source.clone()];
    let captures = others.captures.iter().map(|(read, _)| read);
    files.extend(others.mapping.iter().chain(captures).map(|read| read.source.clone()));
    let order = ArtifactOrder {
        decoded: &read.decoded,
        file_name: &path.to_string_lossy(),
        plan: &plan,
        others: sources,
        sources: &files,
        facts,
        stage: how.stage,
        cutoff_pct: how.cutoff_pct,
        count_before_window: how.count_before_window,
        options: ArtifactOptions { keep_names: given.keep_names },
    };
    let files = order_artifacts(&order).map_err(|error| match error {
        NotMade::NoStage { .. } => Usage(format!("{} has {error}", path.display())).into(),
        other => anyhow::Error::new(other),
    })?;
    Ok(Done { read, files })
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
        let path = folder.join(ARCHIVE);
        write_archive(&path, &done.files, &fixed).with_context(|| cannot(&path))?;
    }
    eprintln!("{}: {} files", folder.display(), done.files.len() + 1 + usize::from(zip));
    Ok(())
}

/// All files as one: the repaired trace is read twice rather than held.
fn write_archive(path: &Path, files: &[Artifact], fixed: &Path) -> Result<()> {
    let mut stored = Stored::default();
    input::pieces(fixed, "packing", |piece| {
        stored.push(piece);
        true
    })?;
    let around = archive(files, Some(&stored))?;
    let mut file = File::create(path)?;
    file.write_all(&around.before)?;
    std::io::copy(&mut File::open(fixed)?, &mut file)?;
    Ok(file.write_all(&around.after)?)
}

fn target_arch(text: &str) -> Result<String, NotFacts> {
    let field = fact_field("target_arch");
    let value = field.map_or(Ok(None), |field| field.value(text))?;
    Ok(value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default())
}
