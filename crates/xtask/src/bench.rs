//! `cargo xtask bench`: speed as a multiple of Perfetto's, both measured in one run on one file, and memory.
//!
//! Only ratios of CPU time are judged, with one exception whose target is in seconds. Every measurement is a
//! separate process; ours and Perfetto's alternate, so that load on the machine affects both.

mod host;
mod repeat;
mod snapshot;
mod timeline;
mod triage;

use std::env;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::tools;
use crate::workspace::Workspace;
use crate::{browser, glue, node, page, shell};

/// The default file in the folder of samples.
const SAMPLE: &str = "corpus/traces/mi300_xdit_sd35.json.gz";

/// Odd, so that there is a median.
const N_TURNS: usize = 5;
/// The large trace.
const LARGE_BYTES: usize = 500_000_000;

/// Node's options to compile every function with the optimising compiler before it runs. Without them the time of the
/// compiler, which runs concurrently, counts too: a third of Perfetto's and of ours.
const OPTIMISED_ONLY: &[&str] =
    &["--no-liftoff", "--no-wasm-tier-up", "--no-wasm-lazy-compilation"];

const LEAST_RATIO: f64 = 8.0;
const MOST_BYTES_PER_EVENT: f64 = 48.0;
const MOST_LARGE_MEMORY: f64 = 160e6;
const MOST_COLD_SECONDS: f64 = 1.0;
/// The page answers a person within this time while it takes a trace.
const MOST_STRETCH_SECONDS: f64 = 0.4;

/// A part of the measurements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Triage of pairs.
    Pairs,
    /// Memory snapshots.
    Snapshots,
    /// The CPU's figures.
    Host,
    /// Frames of the timeline.
    Timeline,
    /// The repair of files that are made to take long.
    Hostile,
}

/// Measures each file, triage of pairs and snapshots; false if a target was missed.
pub fn bench(workspace: &Workspace, files: &[String], only: Option<Only>) -> Result<bool> {
    if only == Some(Only::Hostile) {
        ensure!(files.is_empty(), "--hostile takes no file");
        return hostile(workspace);
    }
    let mut files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let scratch = Scratch::new()?;
    if files.is_empty() && only.is_none() {
        files.push(default_file(workspace, &scratch)?);
    }
    let has_page = !files.is_empty() || matches!(only, Some(Only::Timeline | Only::Snapshots));
    let driver = Driver::build(workspace, has_page)?;
    let mut missed = Vec::new();
    if only == Some(Only::Timeline) {
        let trace = files.pop().map_or_else(|| default_file(workspace, &scratch), Ok)?;
        let mut report = Report { missed: Vec::new() };
        timeline::measure(workspace, &driver, &trace, &mut report)?;
        return Ok(said(&report.missed));
    }
    for file in &files {
        println!("\n==== {}", file.display());
        let mut report = Report { missed: Vec::new() };
        measure(&driver, &scratch, file, &mut report)?;
        missed.extend(report.missed.iter().map(|what| format!("{}: {what}", file.display())));
    }
    let mut report = Report { missed: Vec::new() };
    let wants = |part| only.is_none_or(|only| only == part);
    if wants(Only::Host) {
        host::measure(&driver, &scratch, &mut report)?;
    }
    if wants(Only::Pairs) {
        triage::measure(workspace, &driver, &mut report)?;
    }
    if wants(Only::Snapshots) {
        snapshot::measure(workspace, &driver, &mut report)?;
    }
    missed.append(&mut report.missed);
    Ok(said(&missed))
}

/// Runs the test that repairs a million hostile events (docs/fuzzing.md): it prints its figures, and fails above its limit.
fn hostile(workspace: &Workspace) -> Result<bool> {
    let mut tests = shell::cargo();
    tests.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    tests.args(["test", "--locked", "--release", "--package", "kinetoscope"]);
    tests.args(["--test", "hostile_files", "--", "--ignored", "--nocapture"]);
    shell::run(&mut tests)?;
    Ok(said(&[]))
}

/// Prints what was missed; whether that is nothing.
fn said(missed: &[String]) -> bool {
    println!();
    for what in missed {
        println!("MISSED {what}");
    }
    if missed.is_empty() {
        println!("Every target is met.");
    }
    missed.is_empty()
}

fn default_file(workspace: &Workspace, scratch: &Scratch) -> Result<PathBuf> {
    if let Some(file) = workspace.shared().map(|shared| shared.join(SAMPLE)).filter(|f| f.is_file())
    {
        return Ok(file);
    }
    println!(
        "NO SAMPLE TRACE (../shared/{SAMPLE}): MEASURING THE EXAMPLE TRACE, which is small and synthetic."
    );
    let file = scratch.0.join("example.json.gz");
    let mut make = shell::cargo();
    make.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    make.args(["run", "--quiet", "--locked", "--release", "--package", "testkit"]);
    shell::run(make.args(["--example", "make_example"]).arg(&file))?;
    Ok(file)
}

fn measure(driver: &Driver, scratch: &Scratch, file: &Path, report: &mut Report) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (json, compressed) = both_forms(bytes)?;
    let (raw, gz) = (scratch.0.join("raw.json"), scratch.0.join("trace.json.gz"));
    fs::write(&raw, &json)?;
    fs::write(&gz, &compressed)?;

    let (mut perfetto, mut decode, mut main) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..N_TURNS {
        eprintln!("turn {} of {N_TURNS}", turn + 1);
        perfetto.push(driver.run(&["perfetto".as_ref(), raw.as_ref()])?);
        decode.push(driver.run(&["ours".as_ref(), raw.as_ref(), "decode".as_ref()])?);
        main.push(driver.run(&["ours".as_ref(), raw.as_ref(), "repair".as_ref()])?);
    }
    let optimised = |arguments: &[&Path]| repeated(|| driver.run_with(OPTIMISED_ONLY, arguments));
    let theirs_optimised =
        median(&optimised(&["perfetto".as_ref(), raw.as_ref()])?, |run| number(&run["cpu_s"]))?;
    let ours_optimised = optimised(&["ours".as_ref(), raw.as_ref(), "main".as_ref()])?;
    let theirs = median(&perfetto, |run| number(&run["cpu_s"]))?;
    let stage = |name: &'static str| move |run: &Value| number(&run["stages"][name]["cpu_s"]);
    let [analyze, plan] = ["analyze", "plan"].map(stage);
    let decode_s = median(&decode, stage("decode"))?;
    let main_s = median(&main, |run| Ok(stage("decode")(run)? + analyze(run)? + plan(run)?))?;
    let repaired_s = median(&main, |run| number(&run["cpu_s"]))?;
    let n_events = number(&decode[0]["n_events"])?;
    println!(
        "{n_events} events, {} of JSON, {} compressed",
        megabytes(json.len() as f64),
        megabytes(compressed.len() as f64)
    );
    println!(
        "Perfetto v55.3 (wasm, Node) imports the raw JSON in {theirs:.2} CPU-s = 1x; engine start not counted."
    );
    println!("{:<58} {:>8} {:>8}   target", "ours, the same raw JSON", "x", "CPU-s");
    report.at_least("decode", theirs / decode_s, decode_s, Some(LEAST_RATIO));
    report.at_least("decode + analyses + plan", theirs / main_s, main_s, Some(LEAST_RATIO));
    for (name, seconds) in [("analyses", median(&main, analyze)?), ("plan", median(&main, plan)?)] {
        report.at_least(&format!("  of which {name}"), theirs / seconds, seconds, None);
    }
    report.at_least(
        "all of the above and the repaired .json.gz",
        theirs / repaired_s,
        repaired_s,
        None,
    );
    println!(
        "both compiled in full before the start: Perfetto's import in {theirs_optimised:.2} CPU-s = 1x"
    );
    for (name, seconds) in [
        ("decode", median(&ours_optimised, stage("decode"))?),
        ("decode + analyses + plan", median(&ours_optimised, |run| number(&run["cpu_s"]))?),
    ] {
        report.at_least(name, theirs_optimised / seconds, seconds, None);
    }
    println!("{:<58} {:>8}            target", "memory", "");
    report.at_most(
        "bytes per event",
        number(&decode[0]["heap_bytes"])? / n_events,
        1.0,
        "B",
        MOST_BYTES_PER_EVENT,
    );
    print_memory(&main[0], report, None)?;

    cold(driver, &gz, theirs, report)?;
    large(driver, scratch, &json, report)
}

/// From the compressed file to the table of kernels, in a fresh process.
fn cold(driver: &Driver, gz: &Path, theirs: f64, report: &mut Report) -> Result<()> {
    let runs = repeated(|| driver.run(&["cold".as_ref(), gz]))?;
    let seconds = median(&runs, |run| number(&run["cpu_s"]))?;
    println!(
        "{:<58} {:>8} {:>8}   target",
        "cold, from the .json.gz to the table of kernels", "x", "CPU-s"
    );
    report.seconds(
        "in Node, compiling our wasm included",
        theirs,
        seconds,
        Some(MOST_COLD_SECONDS),
    );
    if !cfg!(target_os = "linux") {
        println!(
            "the page in Chromium: NOT MEASURED, because only Linux reports the CPU time of other processes"
        );
        return Ok(());
    }
    let runs = repeated(|| driver.run(&["page".as_ref(), gz]))?;
    let seconds = |name: &'static str| median(&runs, move |run| number(&run[name]));
    report.seconds(
        "in Chromium, all its processes, from the drop",
        theirs,
        seconds("cpu_s")?,
        Some(MOST_COLD_SECONDS),
    );
    report.seconds("  of which the worker's thread", theirs, seconds("worker_cpu_s")?, None);
    report.seconds(
        "  3 s later (the plan and its drawing done)",
        theirs,
        seconds("settled_cpu_s")?,
        None,
    );
    report.seconds(
        "  before the drop: the browser's own start and our page's",
        theirs,
        seconds("start_cpu_s")?,
        None,
    );
    report.seconds("  3 s of a page at rest, for comparison", theirs, seconds("idle_cpu_s")?, None);
    report.seconds(
        "  the longest stretch without an answer (of the clock)",
        theirs,
        seconds("longest_s")?,
        Some(MOST_STRETCH_SECONDS),
    );
    Ok(())
}

/// The same events repeated, to measure memory.
fn large(driver: &Driver, scratch: &Scratch, json: &[u8], report: &mut Report) -> Result<()> {
    let n_copies = ((LARGE_BYTES as f64 / json.len() as f64).round() as usize).max(1);
    let path = scratch.0.join("large.json");
    let mut out = BufWriter::new(File::create(&path)?);
    repeat::repeat(json, n_copies, &mut out)?;
    out.flush()?;
    let size = path.metadata()?.len();
    let run = driver.run(&["ours".as_ref(), path.as_ref(), "main".as_ref()])?;
    println!(
        "a trace of {}, {} events: the same {n_copies} times",
        megabytes(size as f64),
        number(&run["n_events"])?
    );
    print_memory(&run, report, Some(MOST_LARGE_MEMORY))?;
    fs::remove_file(&path)?;
    Ok(())
}

/// Wasm memory never shrinks: its size after a stage is the peak so far. The target applies to the last stage before repair.
fn print_memory(run: &Value, report: &mut Report, most: Option<f64>) -> Result<()> {
    for (name, what) in [
        ("decode", "decode"),
        ("analyze", "+ analyses"),
        ("plan", "+ plan"),
        ("repair", "+ repaired .json.gz"),
    ] {
        let bytes = &run["stages"][name]["memory_bytes"];
        if bytes.is_null() {
            continue;
        }
        let what = format!("wasm memory after {what}");
        let most = most.unwrap_or(f64::INFINITY);
        report.at_most(&what, number(bytes)?, 1e6, "MB", most);
    }
    Ok(())
}

/// Prints results and remembers which missed their target.
struct Report {
    missed: Vec<String>,
}

impl Report {
    fn at_least(&mut self, what: &str, ratio: f64, seconds: f64, least: Option<f64>) {
        let target = least.map(|least| (format!(">= {least:.0}x"), ratio >= least));
        self.line(what, &format!("{ratio:>7.2}x {seconds:>8.2}"), target);
    }

    fn seconds(&mut self, what: &str, theirs: f64, seconds: f64, most: Option<f64>) {
        let target = most.map(|most| (format!("<= {most:.0} s"), seconds <= most));
        let ratio = theirs / seconds;
        self.line(what, &format!("{ratio:>7.2}x {seconds:>8.2}"), target);
    }

    fn at_most(&mut self, what: &str, value: f64, per: f64, unit: &str, most: f64) {
        let target =
            most.is_finite().then(|| (format!("<= {:.0} {unit}", most / per), value <= most));
        self.line(what, &format!("{:>8.1} {unit:<8}", value / per), target);
    }

    fn line(&mut self, what: &str, figures: &str, target: Option<(String, bool)>) {
        let verdict = match &target {
            None => String::new(),
            Some((target, true)) => format!("   {target}"),
            Some((target, false)) => {
                self.missed.push(format!("{what}: {} (target {target})", figures.trim()));
                format!("   {target}   MISSED")
            }
        };
        println!("{what:<58} {figures}{verdict}");
    }
}

/// The programs to measure.
struct Driver {
    node: PathBuf,
    folder: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Driver {
    /// Builds our wasm for Node, and the page if it is to be measured.
    fn build(workspace: &Workspace, with_page: bool) -> Result<Driver> {
        let node = node::ensure(workspace).map_err(anyhow::Error::msg)?;
        let chromium = with_page.then(browser::ensure).transpose().map_err(anyhow::Error::msg)?;
        tools::ensure_wasm_target()?;
        let mut build = shell::cargo();
        build.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
        // RUSTFLAGS would replace the flags of .cargo/config.toml, SIMD included.
        build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        build.args(["build", "--locked", "--release", "--package", "bench"]);
        shell::run(build.args(["--target", tools::PAGE_TARGET]))?;
        let out = workspace.target.join("xtask/bench");
        let program = workspace.target.join(tools::PAGE_TARGET).join("release").join("bench.wasm");
        glue::write(workspace, glue::Target::Node, &out, &[program])?;
        let mut environment = vec![("KINETOSCOPE_BENCH_JS", out.join("bench.js"))];
        if let Some(chromium) = chromium {
            let built_page = workspace.tested_page();
            page::build(workspace, &built_page)?;
            environment.push(("KINETOSCOPE_PAGE", built_page));
            environment.push(("KINETOSCOPE_CHROMIUM", chromium));
        }
        Ok(Driver { node, folder: workspace.root.join("web/tests"), environment })
    }

    fn run(&self, arguments: &[&Path]) -> Result<Value> {
        self.run_with(&[], arguments)
    }

    fn run_with(&self, node_options: &[&str], arguments: &[&Path]) -> Result<Value> {
        let mut command = Command::new(&self.node);
        command.current_dir(&self.folder).args(node_options).arg("bench.mjs").args(arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let printed = shell::output(&mut command)?;
        serde_json::from_str(&printed).with_context(|| format!("the driver printed {printed:?}"))
    }
}

fn repeated(mut run: impl FnMut() -> Result<Value>) -> Result<Vec<Value>> {
    (0..N_TURNS).map(|_| run()).collect()
}

fn median(runs: &[Value], of: impl Fn(&Value) -> Result<f64>) -> Result<f64> {
    let mut values = runs.iter().map(of).collect::<Result<Vec<f64>>>()?;
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("nothing was measured")
}

fn number(value: &Value) -> Result<f64> {
    match value.as_f64() {
        Some(value) => Ok(value),
        None => bail!("the driver printed {value} instead of a number"),
    }
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

/// A file as JSON and as .json.gz, from either of them.
fn both_forms(bytes: Vec<u8>) -> Result<(Vec<u8>, Vec<u8>)> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut json = Vec::new();
        MultiGzDecoder::new(&*bytes)
            .read_to_end(&mut json)
            .context("cannot decompress the file")?;
        return Ok((json, bytes));
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&bytes)?;
    Ok((bytes, encoder.finish()?))
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let folder = env::temp_dir().join(format!("kinetoscope-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // At worst a temporary folder is left.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{both_forms, median, number};
    use serde_json::json;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let runs = [json!(3), json!(1), json!(90)];
        assert!((median(&runs, number).unwrap() - 3.0).abs() < 1e-9);
        assert!(median(&[json!("x")], number).is_err());
    }

    #[test]
    fn either_form_gives_both() {
        let (json, gz) = both_forms(b"{}".to_vec()).unwrap();
        assert_eq!(both_forms(gz.clone()).unwrap(), (json, gz));
    }
}
