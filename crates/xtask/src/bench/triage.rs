//! Triage of pairs in wasm, compared with the SGLang skill on the same files.
//!
//! The skill is measured in the same run if `KINETOSCOPE_SKILL` names its script (and `KINETOSCOPE_PYTHON`, if needed,
//! the interpreter). Otherwise its recorded figure, from another machine, is used, and the output notes this.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Driver, N_TURNS, OPTIMISED_ONLY, Report, median, megabytes, number, repeated};
use crate::shell;
use crate::workspace::Workspace;

const LEAST_RATIO: f64 = 20.0;

/// Recorded figures of the skill, measured once on a machine with two cores.
struct Recorded {
    cpu_s: f64,
    peak_bytes: f64,
}

/// Two traces of one run.
struct Pair {
    title: &'static str,
    formal: &'static str,
    role: &'static str,
    other: &'static str,
    recorded: Option<Recorded>,
}

const PAIRS: [Pair; 2] = [
    Pair {
        title: "mi300_xdit_sd35, as its own mapping",
        formal: "mi300_xdit_sd35",
        role: "mapping",
        other: "mi300_xdit_sd35",
        recorded: Some(Recorded { cpu_s: 38.6, peak_bytes: 881e6 }),
    },
    Pair {
        title: "mi300_vllm_decode, the largest pair, with its capture",
        formal: "mi300_vllm_decode_formal",
        role: "capture",
        other: "mi300_vllm_decode_capture",
        recorded: None,
    },
];

/// Runs a command, discards its output, and prints its CPU time and memory as JSON.
pub(super) const MEASURED: &str = "import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == 'darwin' else 1024
print(json.dumps({'cpu_s': used.ru_utime + used.ru_stime, 'process_bytes': used.ru_maxrss * unit}))";

/// Measures every pair, if the samples are there.
pub(super) fn measure(workspace: &Workspace, driver: &Driver, report: &mut Report) -> Result<()> {
    println!("\n==== triage of pairs, from two .json.gz to tables and summary, without the repair");
    let Some(traces) = workspace.shared().map(|shared| shared.join("corpus/traces")) else {
        println!("NO SAMPLE PAIRS (../shared/corpus/traces): NOT MEASURED");
        return Ok(());
    };
    let skill = env::var_os("KINETOSCOPE_SKILL").map(PathBuf::from);
    let python = env::var_os("KINETOSCOPE_PYTHON").unwrap_or_else(|| "python3".into());
    for pair in &PAIRS {
        let [formal, other] =
            [pair.formal, pair.other].map(|name| traces.join(format!("{name}.json.gz")));
        println!("{}", pair.title);
        let arguments: [&Path; 4] =
            ["triage".as_ref(), &formal, pair.role.as_ref(), other.as_ref()];
        let ours = repeated(|| driver.run(&arguments))?;
        let compiled = repeated(|| driver.run_with(OPTIMISED_ONLY, &arguments))?;
        let cpu_s = median(&ours, |run| number(&run["cpu_s"]))?;
        let compiled_s = median(&compiled, |run| number(&run["loaded_cpu_s"]))?;
        let bytes = |key: &'static str| median(&ours, move |run| number(&run[key]));
        let theirs = match &skill {
            Some(script) => {
                let run = run_skill(&python, script, &other, &formal)?;
                let (cpu_s, peak) = (number(&run["cpu_s"])?, number(&run["process_bytes"])?);
                let once = "measured once in this run";
                Some((Recorded { cpu_s, peak_bytes: peak }, once))
            }
            None => pair.recorded.as_ref().map(|Recorded { cpu_s, peak_bytes }| {
                let old = "A RECORDED FIGURE of another machine; set KINETOSCOPE_SKILL to measure";
                (Recorded { cpu_s: *cpu_s, peak_bytes: *peak_bytes }, old)
            }),
        };
        match theirs {
            Some((theirs, how)) => {
                println!(
                    "the SGLang skill: {:.1} CPU-s, {} ({how}) = 1x",
                    theirs.cpu_s,
                    megabytes(theirs.peak_bytes)
                );
                let ratio = theirs.cpu_s / cpu_s;
                report.at_least("triage in wasm, cold", ratio, cpu_s, Some(LEAST_RATIO));
                let ratio = theirs.cpu_s / compiled_s;
                report.at_least("  compiled in full before the start", ratio, compiled_s, None);
            }
            None => println!(
                "triage in wasm, cold: {cpu_s:.2} CPU-s, compiled in full before the start: \
                 {compiled_s:.2} CPU-s; NO RATIO without KINETOSCOPE_SKILL"
            ),
        }
        report.at_most("  wasm memory", bytes("memory_bytes")?, 1e6, "MB", f64::INFINITY);
        report.at_most(
            "  the whole process, Node included",
            bytes("process_bytes")?,
            1e6,
            "MB",
            f64::INFINITY,
        );
    }
    println!(
        "(ours: the median of {N_TURNS}, each in a separate process; cold includes compiling our wasm)"
    );
    Ok(())
}

fn run_skill(python: &OsString, script: &Path, mapping: &Path, formal: &Path) -> Result<Value> {
    let mut command = Command::new(python);
    command.args(["-c", MEASURED]).arg(python).arg(script).arg("triage");
    command.arg("--mapping-input").arg(mapping).arg("--formal-input").arg(formal);
    let printed = shell::output(&mut command)?;
    serde_json::from_str(&printed).with_context(|| format!("the skill's run printed {printed:?}"))
}
