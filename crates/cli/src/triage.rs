//! `kinetoscope triage`.

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::{
    ARCHIVE, Artifact, ArtifactOptions, ArtifactOrder, FIXED_TRACE, FUSE, KERNELS, METADATA,
    NotFacts, NotMade, OVERLAP, Part, Role, SUMMARY, SourceFile, Stored, UserFacts, archive,
    cutoff_of_text, fact_field, order_kernel_map, order_triage, ordered_artifacts, stage_of_word,
};
use kinetoscope::{Details, PlanOptions, Stage, TriageReport, plan_repair};

use crate::companions::{self, Companions, Kept};
use crate::failure::Usage;
use crate::guard::Guard;
use crate::input::{self, Opened};
use crate::interrupt::Interrupt;
use crate::output::{OutputFolder, Pending, say_replaced};
use crate::traces::{self, Chosen};
use crate::{overlap, perfetto_fix, step};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    #[command(flatten)]
    companions: companions::Beside,
    /// Also write a kernel map (JSON that --map reads); one trace only, and not with --step.
    #[arg(long, value_name = "FILE", conflicts_with = "step")]
    export_map: Option<PathBuf>,
    /// Also print the neighbours of the top overlap rows, drawn as text.
    #[arg(long)]
    timeline: bool,
    /// Also write the artifacts and the repaired trace to this folder; with several traces, one folder each. Not with --step: artifacts
    /// are of the whole trace.
    #[arg(long, value_name = "DIR", conflicts_with = "step")]
    out: Option<PathBuf>,
    /// With --out: also write all files as one zip archive.
    #[arg(long, requires = "out")]
    zip: bool,
    /// Show only this stage: extend, decode, mixed, capture, forward, backward, weight-grad, optimizer, all (no stage).
    #[arg(long, value_parser = stage_of_word)]
    stage: Option<Stage>,
    /// Show only this device, by its number in the trace.
    #[arg(long, value_name = "N")]
    device: Option<String>,
    /// Cutoff in percent: the Markdown merges kernels below this share of their stage into one row.
    #[arg(long, default_value_t = 1.0, value_parser = cutoff_of_text)]
    cutoff: f64,
    /// Include kernels launched before profiling started. Excluded by default: they belong to an earlier step.
    #[arg(long, conflicts_with = "step")]
    count_before_window: bool,
    #[command(flatten)]
    step: step::Step,
    #[command(flatten)]
    facts: Facts,
}

/// Run details that are not in the trace.
#[derive(clap::Args)]
pub struct Facts {
    /// GPU architecture that you want to draw conclusions about, such as gfx950.
    #[arg(long, value_name = "ARCH", value_parser = target_arch)]
    target_arch: Option<String>,
    /// Run details (not in the trace) as a JSON object: experiment_id, trial_id, base_image... (docs/artifacts.md).
    #[arg(long, value_name = "FACTS.json")]
    facts: Option<PathBuf>,
    /// Launch flags of the server. Default: the server_args.json in the trace's folder or its parent folder.
    #[arg(long, value_name = "server_args.json")]
    server_args: Option<PathBuf>,
    /// Benchmark configuration file; only its hash is written.
    #[arg(long, value_name = "FILE")]
    benchmark_config: Option<PathBuf>,
    /// Keep names of hosts and users. By default they are removed.
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
        let text = "--export-map needs one trace: name it, or select a rank with --rank";
        return Err(Usage(text.to_owned()).into());
    }
    let guard = guard(&arguments.traces.trace, &chosen, &arguments.companions, &arguments.facts);
    guard.allow_stdout()?;
    guard.allow_all(outputs(arguments, &chosen).iter().map(PathBuf::as_path))?;
    let mut companions = Kept::new(&arguments.companions);
    // Signals are caught only while there may be something to remove.
    let mut interrupt = None;
    for (at, one) in chosen.iter().enumerate() {
        let companions = companions.of(&one.path)?;
        let facts = arguments.facts.read(&one.path)?;
        let how = How {
            stage: arguments.stage,
            device: arguments.device.clone(),
            cutoff_pct: arguments.cutoff,
            count_before_window: arguments.count_before_window,
            step: arguments.step.clone(),
        };
        let keep_names = arguments.facts.keep_names;
        let given = Given { path: &one.path, companions, facts: &facts, keep_names };
        let done = triage_one(&given, &how)?;
        if arguments.export_map.is_some() || arguments.out.is_some() {
            let interrupt = match &interrupt {
                Some(interrupt) => interrupt,
                None => interrupt.insert(Interrupt::watch()?),
            };
            let folder = folder_of(arguments, &chosen, one);
            let map = arguments.export_map.as_deref();
            write(&given, &done, map, folder.as_deref(), arguments.zip, &guard, interrupt)?;
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

/// The files that these commands read.
pub fn guard(
    given: &[PathBuf],
    chosen: &[Chosen],
    companions: &companions::Beside,
    facts: &Facts,
) -> Guard {
    let mut guard = Guard::of(given.iter().map(PathBuf::as_path));
    companions.inputs().iter().for_each(|path| guard.add(path));
    facts.inputs().iter().for_each(|path| guard.add(path));
    chosen
        .iter()
        .filter_map(|one| traces::server_args(&one.path))
        .for_each(|path| guard.add(&path));
    guard
}

/// The folder for the artifacts of a trace.
fn folder_of(arguments: &Arguments, chosen: &[Chosen], one: &Chosen) -> Option<PathBuf> {
    let out = arguments.out.as_ref()?;
    Some(if chosen.len() == 1 { out.clone() } else { out.join(&one.name) })
}

/// Every file that may be written.
fn outputs(arguments: &Arguments, chosen: &[Chosen]) -> Vec<PathBuf> {
    let mut outputs: Vec<PathBuf> = arguments.export_map.iter().cloned().collect();
    for folder in chosen.iter().filter_map(|one| folder_of(arguments, chosen, one)) {
        let names = [SUMMARY, METADATA, KERNELS, OVERLAP, FUSE, FIXED_TRACE];
        outputs.extend(names.iter().map(|name| folder.join(name)));
        outputs.extend(arguments.zip.then(|| folder.join(ARCHIVE)));
    }
    outputs
}

/// Begins the kernel map of a trace. The second is its number of kernels.
fn export(given: &Given<'_>, done: &Done, file: &Path, guard: &Guard) -> Result<(Pending, u64)> {
    let trace = &done.read.decoded.trace;
    let options = ArtifactOptions { keep_names: given.keep_names };
    let map = given.companions.with(None, |others| {
        order_kernel_map(trace, others, &done.sources, given.facts, options)
    })?;
    Ok((Pending::whole(guard.allow(file)?, map.file.text.as_bytes())?, map.n_kernels as u64))
}

/// A file to triage, with its related files and run details.
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
    /// Only this step.
    pub step: step::Step,
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
    let narrowed = how.step.trace(path, &read.decoded, &details)?;
    let trace = narrowed.as_ref().unwrap_or(&read.decoded.trace);
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
    /// The files that are named.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let named = self.facts.iter().chain(&self.server_args).chain(&self.benchmark_config);
        named.cloned().collect()
    }

    /// The run details for the trace at `path`.
    ///
    /// # Errors
    /// When a file that was named cannot be read, or is no JSON object.
    pub fn read(&self, path: &Path) -> Result<UserFacts> {
        let mut facts = match &self.facts {
            Some(file) => UserFacts::from_json(&input::text(file)?)
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
                .take_server_args(&input::text(file)?)
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

/// Writes the kernel map, the artifacts and the repaired trace. All get their names at the end, or none.
fn write(
    given: &Given<'_>,
    done: &Done,
    map: Option<&Path>,
    folder: Option<&Path>,
    zip: bool,
    guard: &Guard,
    interrupt: &Interrupt,
) -> Result<()> {
    // Dropped last: a folder can be removed when the files in it are.
    let mut made = None;
    let mut files = Vec::new();
    let mut lines = Vec::new();
    if let Some(map) = map {
        let (pending, n_kernels) = export(given, done, map, guard)?;
        files.push(pending);
        lines.push(format!("{}: map of {n_kernels} kernels", map.display()));
    }
    if let Some(folder) = folder {
        made = Some(OutputFolder::create(folder)?);
        let before = files.len();
        for Artifact { name, text } in &done.files {
            files.push(Pending::whole(guard.allow(&folder.join(name))?, text.as_bytes())?);
        }
        let fixed = folder.join(FIXED_TRACE);
        let fixed = perfetto_fix::write_fixed(given.path, &done.read, &fixed, guard, interrupt)?;
        if zip {
            files.push(write_archive(&folder.join(ARCHIVE), &done.files, fixed.place(), guard)?);
        }
        files.push(fixed);
        lines.push(format!("{}: {} files", folder.display(), files.len() - before));
    }
    interrupt.check()?;
    let kept = files.into_iter().map(Pending::keep).collect::<Result<Vec<_>>>()?;
    if let Some(made) = made {
        made.keep();
    }
    say_replaced(&kept);
    lines.iter().for_each(|line| eprintln!("{line}"));
    Ok(())
}

/// All files as one: the repaired trace is read twice rather than held in memory.
fn write_archive(path: &Path, files: &[Artifact], fixed: &Path, guard: &Guard) -> Result<Pending> {
    let mut stored = Stored::default();
    input::pieces(fixed, "packing", |piece| {
        stored.push(piece);
        true
    })?;
    let around = archive(files, Some(&stored))?;
    let mut archive = Pending::create(guard.allow(path)?)?;
    let cannot = || format!("cannot write {}", path.display());
    archive.write(&around.before).with_context(cannot)?;
    let mut fixed = File::open(fixed).with_context(cannot)?;
    let mut piece = vec![0; 1 << 20];
    loop {
        let n = fixed.read(&mut piece).with_context(cannot)?;
        if n == 0 {
            break;
        }
        archive.write(&piece[..n]).with_context(cannot)?;
    }
    archive.write(&around.after).and_then(|()| archive.flush()).with_context(cannot)?;
    Ok(archive)
}

fn target_arch(text: &str) -> Result<String, NotFacts> {
    let field = fact_field("target_arch");
    let value = field.map_or(Ok(None), |field| field.value(text))?;
    Ok(value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default())
}
