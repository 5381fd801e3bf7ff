//! `kinetoscope perfetto-fix`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kinetoscope::{
    Decoded, Output, PlanOptions, Proof, RepairPlan, RepairReport, Repairer, other_work,
    plan_repair, repair_log_json,
};

use crate::guard::Guard;
use crate::input::{self, Opened};
use crate::interrupt::Interrupt;
use crate::output::{Kept, Pending, say_replaced};

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace: .json or .json.gz, from torch.profiler, SGLang or vLLM.
    trace: PathBuf,
    /// Output file. Compressed unless the name ends in .json. Default: run.json.gz becomes run.perfetto.json.gz in the same
    /// folder.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Also write the repair log: every rule, every changed event, and the verification.
    #[arg(long, value_name = "LOG.json")]
    log: Option<PathBuf>,
    /// Clip kernels that end long after the next start on their stream (a fault of ROCm profilers). No other option changes
    /// durations. The event's args keep the original duration.
    #[arg(long)]
    clip_impossible: bool,
    /// Append process labels ("GPU 0") to process names; Perfetto ignores labels in JSON traces.
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
    let guard = Guard::of([trace.as_path()]);
    guard.allow_all([output.as_path()].into_iter().chain(log.as_deref()))?;

    let version = input::Version::of(trace)?;
    let decoded = input::decode(trace)?;
    let options =
        PlanOptions { clip_impossible: *clip_impossible, fold_process_labels: *fold_labels };
    let plan = plan_repair(&decoded.trace, &options);
    // Before there is a file to leave behind.
    let interrupt = Interrupt::watch()?;
    let mut pending = Pending::create(guard.allow(&output)?)?;
    let proof = repair(trace, &decoded, &plan, &output, &mut pending, &interrupt)?;
    if input::Version::of(trace)? != version {
        bail!("{} changed while it was being read: try again when it is complete", trace.display());
    }
    let kept = if proof.holds { pending.keep()? } else { pending.keep_unproven(&guard)? };
    say_replaced(std::slice::from_ref(&kept));

    if let Some(log) = log {
        let text = repair_log_json(&decoded, &plan, Some(&proof))?;
        say_replaced(&[Pending::whole(guard.allow(log)?, text.as_bytes())?.keep()?]);
    }
    if !proof.holds {
        bail!("{}", not_proven(&proof, &kept.path));
    }
    say(&output, &decoded, &plan);
    Ok(())
}

fn not_proven(proof: &Proof, kept: &Path) -> String {
    let broken: Vec<&str> =
        proof.rows.iter().filter(|row| !row.holds).map(|row| row.quantity.as_str()).collect();
    format!(
        "verification failed: input and output differ ({}). This is a bug in Kinetoscope: keep the original and report it. \
         The unverified output is {}",
        broken.join(", "),
        kept.display()
    )
}

/// Writes the repaired trace of a file that was read; it has its name when the caller keeps it.
///
/// # Errors
/// When a file cannot be read or written, or the proof of conservation fails.
pub fn write_fixed(
    trace: &Path,
    read: &Opened,
    output: &Path,
    guard: &Guard,
    interrupt: &Interrupt,
) -> Result<Pending> {
    let plan = plan_repair(&read.decoded.trace, &PlanOptions::default());
    let mut pending = Pending::create(guard.allow(output)?)?;
    let proof = repair(trace, &read.decoded, &plan, output, &mut pending, interrupt)?;
    if input::Version::of(trace)? != read.version {
        bail!("{} changed while it was being read: try again when it is complete", trace.display());
    }
    if proof.holds {
        pending.flush().with_context(|| format!("cannot write {}", output.display()))?;
        return Ok(pending);
    }
    let Kept { path, .. } = pending.keep_unproven(guard)?;
    bail!("{}", not_proven(&proof, &path))
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
    let other = other_work(&decoded.trace);
    for note in other.iter().chain(&report.time_base).chain(&report.impossible_note) {
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
