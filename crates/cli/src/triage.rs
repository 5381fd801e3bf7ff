//! `kinetoscope triage`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::{
    ARCHIVE, Artifact, ArtifactOptions, ArtifactOrder, FIXED_TRACE, NotFacts, NotMade, Part, Role,
    SUMMARY, SourceFile, Stored, UserFacts, archive, cutoff_of_text, fact_field, order_kernel_map,
    order_triage, ordered_artifacts, stage_of_word,
};
use kinetoscope::{Details, PlanOptions, Stage, TriageReport, plan_repair};

use crate::companions::{self, Companions, Kept};
use crate::failure::Usage;
use crate::input::{self, Opened};
use crate::interrupt::Interrupt;
use crate::traces::{self, Chosen};
use crate::{overlap, perfetto_fix};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    #[command(flatten)]
    companions: companions::Beside,
    /// Also write where the kernels came from, as JSON that --map reads; one trace only.
    #[arg(long, value_name = "FILE")]
    export_map: Option<PathBuf>,
    /// Also print what stands around the most urgent rows of the overlap table, drawn as text.
    #[arg(long)]
    timeline: bool,
    /// Also write the artifacts into this folder, with the repaired trace; one folder per trace if there are several.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// With --out: also all of them as one archive.
    #[arg(long, requires = "out")]
    zip: bool,
    /// Only this stage: extend, decode, mixed, capture, forward, backward, optimizer, all.
    #[arg(long, value_parser = stage_of_word)]
    stage: Option<Stage>,
    /// Only this device, where the trace has several: its number in the trace.
    #[arg(long, value_name = "N")]
    device: Option<String>,
    /// Kernels below this share of their stage stand in one row of the Markdown, in percent.
    #[arg(long, default_value_t = 1.0, value_parser = cutoff_of_text)]
    cutoff: f64,
    /// Also count what was launched before the window; by default it is left out, for it belongs to an earlier step.
    #[arg(long)]
    count_before_window: bool,
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
    pub keep_names: bool,
}

/// Triages each of the chosen traces.
///
/// # Errors
/// When a file cannot be read or written or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let chosen = arguments.traces.chosen()?;
    if arguments.export_map.is_some() && chosen.len() > 1 {
        let text = "--export-map takes one trace: name it, or choose a rank with --rank";
        return Err(Usage(text.to_owned()).into());
    }
    let mut companions = Kept::new(&arguments.companions);
    // Watched only once there is something to leave behind.
    let mut interrupt = None;
    for (at, Chosen { path, name }) in chosen.iter().enumerate() {
        let companions = companions.of(path)?;
        let facts = arguments.facts.read(path)?;
        let how = How {
            stage: arguments.stage,
            device: arguments.device.clone(),
            cutoff_pct: arguments.cutoff,
            count_before_window: arguments.count_before_window,
        };
        let given =
            Given { path, companions, facts: &facts, keep_names: arguments.facts.keep_names };
        let done = triage_one(&given, &how)?;
        if let Some(file) = &arguments.export_map {
            export(&given, &done, file)?;
        }
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
        if arguments.timeline {
            let document = overlap::document(&given, &done.read, &done.triage, overlap::ROWS, None);
            let pictures = document.surroundings();
            stdout.write_all(pictures.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes the kernel map of a trace.
fn export(given: &Given<'_>, done: &Done, file: &Path) -> Result<()> {
    let trace = &done.read.decoded.trace;
    let options = ArtifactOptions { keep_names: given.keep_names };
    let map = given.companions.with(None, |others| {
        order_kernel_map(trace, others, &done.sources, given.facts, options)
    })?;
    std::fs::write(file, map.file.text)
        .with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("{}: a map of {} kernels", file.display(), map.n_kernels);
    Ok(())
}

/// A file to triage, and what is known beside it.
pub struct Given<'a> {
    pub path: &'a Path,
    pub companions: &'a Companions,
    pub facts: &'a UserFacts,
    pub keep_names: bool,
}

/// A trace, triaged.
pub struct Done {
    pub read: Opened,
    pub triage: TriageReport,
    pub files: Vec<Artifact>,
    /// The files that it was made of, the measured one first.
    pub sources: Vec<SourceFile>,
}

/// What is wanted of a triage.
#[derive(Default)]
pub struct How {
    /// Only this stage.
    pub stage: Option<Stage>,
    /// Only this device.
    pub device: Option<String>,
    /// Kernels below this share of their stage stand in one row of the summary.
    pub cutoff_pct: f64,
    /// Whether what was launched before the window counts.
    pub count_before_window: bool,
}

impl How {
    fn part(&self) -> Part<'_> {
        Part {
            stage: self.stage,
            device: self.device.as_deref(),
            count_before_window: self.count_before_window,
        }
    }
}

/// Triages one file.
pub fn triage_one(given: &Given<'_>, how: &How) -> Result<Done> {
    let (read, details, triage) = triage_only(given, how)?;
    let plan = plan_repair(&read.decoded.trace, &PlanOptions::default());
    let mut sources = vec![read.source.clone()];
    sources.extend(given.companions.files().cloned());
    let files = given.companions.with(Some(&details), |others| {
        let order = ArtifactOrder {
            decoded: &read.decoded,
            file_name: &given.path.to_string_lossy(),
            plan: &plan,
            others: *others,
            sources: &sources,
            facts: given.facts,
            stage: how.stage,
            device: how.device.as_deref(),
            cutoff_pct: how.cutoff_pct,
            count_before_window: how.count_before_window,
            options: ArtifactOptions { keep_names: given.keep_names },
        };
        ordered_artifacts(&order, &triage)
    })?;
    Ok(Done { read, triage, files, sources })
}

/// Triages one file, and makes no artifacts of it.
pub fn triage_only(given: &Given<'_>, how: &How) -> Result<(Opened, Details, TriageReport)> {
    let Given { path, companions, facts, keep_names: _ } = given;
    let read = input::read(path, Role::Formal)?;
    let details = input::details(path, &read)?;
    let name = path.to_string_lossy();
    let trace = &read.decoded.trace;
    let part = how.part();
    let found = companions
        .with(Some(&details), |others| order_triage(trace, &name, others, facts, part))
        .map_err(|error| match error {
            NotMade::NoStage { .. } | NotMade::NoDevice { .. } => {
                Usage(format!("{} has {error}", path.display())).into()
            }
            other => anyhow::Error::new(other),
        })?;
    Ok((read, details, found))
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
