//! `kinetoscope perfetto-fix`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kinetoscope::{
    Decoded, Output, PlanOptions, Proof, RepairPlan, RepairReport, Repairer, plan_repair,
    repair_log_json,
};

use crate::failure::Usage;
use crate::input::{self, Opened};
use crate::interrupt::Interrupt;
use crate::output::{Pending, same_file};

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace: .json or .json.gz, from torch.profiler, SGLang or vLLM.
    trace: PathBuf,
    /// Where the repaired trace goes. Compressed unless the name ends in .json. Without it, run.json.gz
    /// becomes run.perfetto.json.gz beside it.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Also write the repair log: every rule, every changed event, and the proof of what was conserved.
    #[arg(long, value_name = "LOG.json")]
    log: Option<PathBuf>,
    /// Clip kernels that run far past their stream's next start (a fault of ROCm profilers). The only
    /// change that touches a duration; the original stays in the event's args.
    #[arg(long)]
    clip_impossible: bool,
    /// Append process labels ("GPU 0") to process names: Perfetto ignores labels in JSON traces.
    #[arg(long)]
    fold_labels: bool,
}

/// Repairs one file.
///
/// # Errors
/// When a file cannot be read or written, the input is no trace, or the proof of conservation fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { trace, output, log, clip_impossible, fold_labels } = arguments;
    let output = output.clone().unwrap_or_else(|| default_output(trace));
    refuse_overlap(trace, &output, log.as_deref())?;

    let version = input::Version::of(trace)?;
    let decoded = input::decode(trace)?;
    let options =
        PlanOptions { clip_impossible: *clip_impossible, fold_process_labels: *fold_labels };
    let plan = plan_repair(&decoded.trace, &options);
    // Before there is a file to leave behind.
    let interrupt = Interrupt::watch()?;
    let mut pending = Pending::create(&output)?;
    let proof = repair(trace, &decoded, &plan, &output, &mut pending, &interrupt)?;
    if input::Version::of(trace)? != version {
        bail!("{} changed while it was read: try again when it is written", trace.display());
    }
    let kept = if proof.holds { pending.keep()? } else { pending.keep_unproven(trace)? };

    if let Some(log) = log {
        let text = repair_log_json(&decoded, &plan, Some(&proof))?;
        std::fs::write(log, text).with_context(|| format!("cannot write {}", log.display()))?;
    }
    if !proof.holds {
        bail!("{}", not_proven(&proof, &kept));
    }
    say(&output, &decoded, &plan);
    Ok(())
}

fn not_proven(proof: &Proof, kept: &Path) -> String {
    let broken: Vec<&str> =
        proof.rows.iter().filter(|row| !row.holds).map(|row| row.quantity.as_str()).collect();
    format!(
        "the repaired file does not hold what the original did ({}): this is a fault in Kinetoscope; \
         please keep the original and report it. What was written is in {}",
        broken.join(", "),
        kept.display()
    )
}

/// Writes the repaired trace of a file that was read.
///
/// # Errors
/// When a file cannot be read or written, or the proof of conservation fails.
pub fn write_fixed(
    trace: &Path,
    read: &Opened,
    output: &Path,
    interrupt: &Interrupt,
) -> Result<()> {
    refuse_overlap(trace, output, None)?;
    let plan = plan_repair(&read.decoded.trace, &PlanOptions::default());
    let mut pending = Pending::create(output)?;
    let proof = repair(trace, &read.decoded, &plan, output, &mut pending, interrupt)?;
    if input::Version::of(trace)? != read.version {
        bail!("{} changed while it was read: try again when it is written", trace.display());
    }
    if proof.holds {
        pending.keep()?;
        return Ok(());
    }
    let kept = pending.keep_unproven(trace)?;
    bail!("{}", not_proven(&proof, &kept))
}

/// Streams the file through its repair.
fn repair(
    trace: &Path,
    decoded: &Decoded,
    plan: &RepairPlan,
    output: &Path,
    pending: &mut Pending,
    interrupt: &Interrupt,
) -> Result<Proof> {
    let form = if has_extension(output, "json") { Output::Json } else { Output::Gzip };
    let mut repairer = Repairer::new(decoded, plan, form);
    let mut block = Vec::new();
    let mut written = Ok(());
    input::pieces(trace, "repairing", |piece| {
        block.clear();
        repairer.push(piece, &mut block);
        written = pending.write(&block);
        written.is_ok() && !interrupt.is_noted()
    })?;
    interrupt.check()?;
    block.clear();
    let proof = repairer.finish(&mut block);
    written
        .and_then(|()| pending.write(&block))
        .with_context(|| format!("cannot write {}", output.display()))?;
    Ok(proof)
}

/// What was done, for the person at the terminal.
fn say(output: &Path, decoded: &Decoded, plan: &RepairPlan) {
    let report = RepairReport::new(decoded, plan);
    eprintln!("{}: {}", output.display(), report.verdict);
    for note in report.time_base.iter().chain(&report.impossible_note) {
        eprintln!("  {note}");
    }
    for problem in &decoded.problems {
        eprintln!(
            "  {} ({}), first at byte {}",
            problem.kind.title(),
            problem.count,
            problem.first_offset
        );
    }
}

/// No file is written over the input, and none over another.
fn refuse_overlap(trace: &Path, output: &Path, log: Option<&Path>) -> Result<(), Usage> {
    let taken = |path: &Path, other: &str| {
        Err(Usage(format!("{} is the {other}: choose another name", path.display())))
    };
    if same_file(trace, output) {
        return taken(output, "input");
    }
    match log {
        Some(log) if same_file(trace, log) => taken(log, "input"),
        // Neither need exist yet.
        Some(log) if log == output || same_file(log, output) => taken(log, "repaired file"),
        _ => Ok(()),
    }
}

/// `trace.json.gz` becomes `trace.perfetto.json.gz` beside it.
fn default_output(trace: &Path) -> PathBuf {
    let name = trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    trace.with_file_name(format!("{stem}.perfetto.json.gz"))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
