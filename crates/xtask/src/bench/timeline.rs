//! Frames of the timeline in Chromium, with those of speedscope and of drawing every slice in each frame, in the same run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Driver, Report};
use crate::shell;
use crate::workspace::Workspace;

/// The version that is compared.
const SPEEDSCOPE: &str = "speedscope@1.25.0";

/// A frame at 60 Hz has 16.7 ms; half of it is for scripts, the rest for the browser.
pub(super) const MOST_MS: f64 = 8.0;
/// What is below the pointer is told at once.
const MOST_HOVER_MS: f64 = 4.0;
/// From the worker's first answer to the first picture.
const MOST_FIRST_MS: f64 = 300.0;

const PROGRAMS: [(&str, &str); 3] =
    [("ours", "Kinetoscope"), ("naive", "every slice, each frame"), ("speedscope", "speedscope")];
pub(super) const ACTS: [&str; 3] = ["zoom", "pan", "hover"];

pub(super) fn measure(
    workspace: &Workspace,
    driver: &Driver,
    trace: &Path,
    report: &mut Report,
) -> Result<()> {
    let folder = workspace.target.join("xtask/bench/frames");
    fs::create_dir_all(&folder)?;
    let mut run = Command::new(&driver.node);
    run.current_dir(&driver.folder).args(["frames.mjs", "timeline"]).arg(&folder).arg(trace);
    run.envs(driver.environment.iter().map(|(name, value)| (name, value)));
    match speedscope(&folder) {
        Ok(page) => {
            run.env("KINETOSCOPE_SPEEDSCOPE", page);
        }
        Err(error) => println!("SPEEDSCOPE IS NOT MEASURED: {error:#}"),
    }
    let printed = shell::output(&mut run)?;
    let found: Value = serde_json::from_str(&printed)
        .with_context(|| format!("the driver printed {printed:?}"))?;
    for (file, programs) in found.as_object().into_iter().flatten() {
        println!("\n==== {file}: script in a frame, 95th percentile and longest");
        for (id, title) in PROGRAMS {
            let of = &programs[id];
            if of.is_object() && ACTS.iter().all(|act| of[*act]["main"].is_null()) {
                println!("{title}: no frame, it does not show this file");
            }
            for (act, thread) in ACTS.iter().flat_map(|act| [(act, "main"), (act, "worker")]) {
                let (p95, max) = (of[act][thread]["p95"].as_f64(), of[act][thread]["max"].as_f64());
                let (Some(p95), Some(max)) = (p95, max) else {
                    if id == "ours" {
                        let target = Some(("a figure".to_owned(), false));
                        report.line(&format!("{act}, {title}, {thread} thread"), "none", target);
                    }
                    continue;
                };
                let most = if *act == "hover" { MOST_HOVER_MS } else { MOST_MS };
                let target = (id == "ours").then(|| (format!("<= {most:.0} ms"), p95 <= most));
                let what = format!("{act}, {title}, {thread} thread");
                report.line(&what, &format!("{p95:>8.1} ms {max:>8.1} ms"), target);
            }
        }
        if let Some(first) = programs["ours"]["first_ms"].as_f64() {
            let target = Some((format!("<= {MOST_FIRST_MS:.0} ms"), first <= MOST_FIRST_MS));
            report.line("first lanes, once the trace is read", &format!("{first:>8.0} ms"), target);
        }
    }
    Ok(())
}

/// The page of speedscope, from its package.
fn speedscope(folder: &Path) -> Result<PathBuf> {
    let page = folder.join("node_modules/speedscope/dist/release");
    if !page.join("index.html").is_file() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        shell::run(install.arg(folder).arg(SPEEDSCOPE))?;
    }
    Ok(page)
}
