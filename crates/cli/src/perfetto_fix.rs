//! `kinetoscope perfetto-fix`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kinetoscope::{Output, PlanOptions, RepairReport, Repairer, plan_repair, repair_log_json};

use crate::input;

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace: .json or .json.gz, from torch.profiler, SGLang or vLLM.
    trace: PathBuf,
    /// Where the repaired trace goes. Compressed unless the name ends in .json.
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
    let output = arguments.output.clone().unwrap_or_else(|| default_output(&arguments.trace));
    if same_file(&arguments.trace, &output) {
        bail!("{} is the input: the output must be another file", output.display());
    }
    let decoded = input::decode(&arguments.trace)?;
    let options = PlanOptions {
        clip_impossible: arguments.clip_impossible,
        fold_process_labels: arguments.fold_labels,
    };
    let plan = plan_repair(&decoded.trace, &options);
    let form = if has_extension(&output, "json") { Output::Json } else { Output::Gzip };
    let mut repairer = Repairer::new(&decoded, &plan, form);

    // The output appears under its name only when it is whole.
    let partial = partial_name(&output);
    let context = || format!("cannot write {}", output.display());
    let mut file = BufWriter::new(File::create(&partial).with_context(context)?);
    let mut block = Vec::new();
    let mut written = Ok(());
    input::pieces(&arguments.trace, "repairing", |piece| {
        block.clear();
        repairer.push(piece, &mut block);
        written = file.write_all(&block);
        written.is_ok()
    })?;
    block.clear();
    let proof = repairer.finish(&mut block);
    written
        .and_then(|()| file.write_all(&block))
        .and_then(|()| file.flush())
        .with_context(context)?;
    std::fs::rename(&partial, &output).with_context(context)?;

    if let Some(log) = &arguments.log {
        let text = repair_log_json(&decoded, &plan, Some(&proof))?;
        std::fs::write(log, text).with_context(|| format!("cannot write {}", log.display()))?;
    }
    let report = RepairReport::new(&decoded, &plan);
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
    if !proof.holds {
        let broken: Vec<&str> =
            proof.rows.iter().filter(|row| !row.holds).map(|row| row.quantity.as_str()).collect();
        bail!(
            "the repaired file does not hold what the original did ({}): this is a fault in Kinetoscope; \
             please keep the original and report it",
            broken.join(", ")
        );
    }
    Ok(())
}

/// `trace.json.gz` becomes `trace.perfetto.json.gz` beside it.
fn default_output(trace: &Path) -> PathBuf {
    let name = trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    trace.with_file_name(format!("{stem}.perfetto.json.gz"))
}

fn partial_name(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    output.with_file_name(name)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::canonicalize(a), std::fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
