//! A memory snapshot on the command line and in wasm, compared with Python's `json.load` and with the reference program on the same
//! file.

use std::env;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::timeline::{ACTS, MOST_MS};
use super::triage::MEASURED;
use super::{Driver, Report, Scratch, median, megabytes, number, repeated};
use crate::shell;
use crate::workspace::Workspace;

/// Of the command line against the reference program.
const LEAST_RATIO: f64 = 20.0;
/// The same of wasm under Node, which compiles our program and copies the file twice before it looks at it.
const LEAST_WASM_RATIO: f64 = 10.0;
/// Of the reference's memory.
const MOST_SHARE: f64 = 0.2;
/// Wasm memory for a file of 200 MB and more.
const MOST_MEMORY: f64 = 300e6;
/// Half of a frame at 60 a second: the rest is for the canvas.
const MOST_FRAME_MS: f64 = 8.0;

/// Events of the file that is compared (270 MB), and of the one that is only looked at (2.5 GB would take Python 16 GB).
const COMPARED: usize = 100_000;
const LOOKED_AT: usize = 1_000_000;
/// Events of a file of a gigabyte.
const HUGE: usize = 400_000;
/// The page answers a person within this time while it takes that file.
const MOST_ANSWER_MS: f64 = 1000.0;

/// Measures both files.
pub(super) fn measure(workspace: &Workspace, driver: &Driver, report: &mut Report) -> Result<()> {
    println!("\n==== memory snapshots");
    let scratch = Scratch::new()?;
    let path = scratch.0.join("snapshot.json");
    // Frames are 71 to 99% of real files with stacks, with 12 to 1,396 distinct frames.
    write(&path, COMPARED, 24)?;
    let size = path.metadata()?.len() as f64;
    println!("{COMPARED} events with stacks of 24 frames, {}", megabytes(size));
    let ours = repeated(|| driver.run(&["snapshot".as_ref(), &path]))?;
    let ours_of = |key: &'static str| median(&ours, move |run| number(&run[key]));
    let cpu_s = ours_of("cpu_s")?;
    println!("decode at {:.0} MB per CPU-s", size / 1e6 / ours_of("decode_cpu_s")?);
    let (look_s, rest_s) = (ours_of("look_cpu_s")?, ours_of("rest_cpu_s")?);
    println!(
        "ours: decode and the first figures in {cpu_s:.2} CPU-s; then the pictures in {look_s:.2}, the rest of the report in {rest_s:.2}"
    );
    let memory = ours_of("memory_bytes")?;
    report.at_most("wasm memory, with what a person looks at", memory, 1e6, "MB", MOST_MEMORY);
    let per_event = memory / COMPARED as f64;
    report.at_most("  per event", per_event, 1.0, "B", f64::INFINITY);
    let python = env::var_os("KINETOSCOPE_PYTHON").unwrap_or_else(|| "python3".into());
    let run = |arguments: &[&Path]| -> Result<Value> {
        let mut command = Command::new(&python);
        command.args(["-c", MEASURED]).arg(&python).args(arguments);
        let printed = shell::output(&mut command)?;
        serde_json::from_str(&printed).with_context(|| format!("Python printed {printed:?}"))
    };
    let program = command_line(workspace)?;
    let native = repeated(|| {
        let mut command = Command::new(&python);
        command.args(["-c", MEASURED]).arg(&program).args(["memory", "--json"]).arg(&path);
        let printed = shell::output(&mut command)?;
        serde_json::from_str(&printed).with_context(|| format!("Python printed {printed:?}"))
    })?;
    let native_of = |key: &'static str| median(&native, move |run| number(&run[key]));
    let (native_s, native_bytes) = (native_of("cpu_s")?, native_of("process_bytes")?);
    println!("command line: {native_s:.2} CPU-s, {:.0} MB per CPU-s", size / 1e6 / native_s);
    let load = "import json, sys; json.load(open(sys.argv[1]))";
    let mut compare = |what: &str, run: &Value, least: [Option<f64>; 2]| -> Result<()> {
        let (theirs, peak) = (number(&run["cpu_s"])?, number(&run["process_bytes"])?);
        println!("{what}: {theirs:.1} CPU-s, {} (once) = 1x", megabytes(peak));
        // What the reference program computes; and with what only we compute: purposes, other settings, pictures, findings.
        report.at_least("command line, whole report", theirs / native_s, native_s, least[0]);
        let share = native_bytes / peak;
        report.at_most("  its memory, of theirs", share, 0.01, "%", MOST_SHARE);
        report.at_least("wasm, decode and the same figures", theirs / cpu_s, cpu_s, least[1]);
        let all_s = cpu_s + look_s + rest_s;
        report.at_least("  with pictures and the rest of the report", theirs / all_s, all_s, None);
        let share = memory / peak;
        report.at_most("  our memory, of theirs", share, 0.01, "%", MOST_SHARE);
        Ok(())
    };
    compare("Python's json.load", &run(&["-c".as_ref(), load.as_ref(), &path])?, [None; 2])?;
    match workspace.shared().map(|shared| shared.join("corpus/snapshots/reference.py")) {
        Some(script) if script.is_file() => {
            let least = [Some(LEAST_RATIO), Some(LEAST_WASM_RATIO)];
            compare("the reference program", &run(&[&script, &path])?, least)?;
        }
        _ => println!("NO REFERENCE PROGRAM (../shared/corpus/snapshots): NOT COMPARED"),
    }
    look(driver, &path, report)
}

/// Measures what a person who looks at a larger file waits for.
fn look(driver: &Driver, path: &Path, report: &mut Report) -> Result<()> {
    write(path, LOOKED_AT, 2)?;
    println!(
        "{LOOKED_AT} events with stacks of 2 frames, {}",
        megabytes(path.metadata()?.len() as f64)
    );
    let looked = repeated(|| driver.run(&["snapshot".as_ref(), path]))?;
    let looked_of = |key: &'static str| median(&looked, move |run| number(&run[key]));
    report.at_most("wasm memory", looked_of("memory_bytes")?, 1e6, "MB", MOST_MEMORY);
    report.at_most(
        "columns and state of a frame, p95",
        looked_of("frame_p95_ms")?,
        1.0,
        "ms",
        MOST_FRAME_MS,
    );
    report.at_most("  at most", looked_of("frame_max_ms")?, 1.0, "ms", f64::INFINITY);
    report.at_most(
        "what a person looks at, prepared in",
        looked_of("look_cpu_s")?,
        1e-3,
        "ms",
        f64::INFINITY,
    );
    in_browser(driver, path, report)?;
    gigabyte(driver, path, report)
}

/// Runs a part of `frames.mjs`.
fn frames_of(driver: &Driver, what: &str, path: &Path) -> Result<Value> {
    let mut run = Command::new(&driver.node);
    run.current_dir(&driver.folder).args(["frames.mjs", what]).arg(path);
    run.envs(driver.environment.iter().map(|(name, value)| (name, value)));
    let printed = shell::output(&mut run)?;
    serde_json::from_str(&printed).with_context(|| format!("the driver printed {printed:?}"))
}

/// Frames of the picture of memory in Chromium, on the page's thread and in the program that draws.
fn in_browser(driver: &Driver, path: &Path, report: &mut Report) -> Result<()> {
    println!("the same in Chromium: script in a frame, 95th percentile and longest");
    let found = frames_of(driver, "snapshot", path)?;
    for (act, thread) in ACTS.iter().flat_map(|act| [(act, "main"), (act, "worker")]) {
        let (p95, max) = (&found[act][thread]["p95"], &found[act][thread]["max"]);
        let what = format!("{act}, {thread} thread");
        let (Some(p95), Some(max)) = (p95.as_f64(), max.as_f64()) else {
            report.line(&what, "none", Some(("a figure".to_owned(), false)));
            continue;
        };
        let target = Some((format!("<= {MOST_MS:.0} ms"), p95 <= MOST_MS));
        report.line(&what, &format!("{p95:>8.1} ms {max:>8.1} ms"), target);
    }
    Ok(())
}

/// A snapshot of a gigabyte in Chromium: shown, or refused with a sentence, and the tab answers all the time.
fn gigabyte(driver: &Driver, path: &Path, report: &mut Report) -> Result<()> {
    write(path, HUGE, 24)?;
    println!("{HUGE} events with stacks of 24 frames, in Chromium");
    let found = frames_of(driver, "large", path)?;
    println!("{}: {}", megabytes(number(&found["file_bytes"])?), found["said"]);
    let is_said = found["said"].is_string();
    let seconds = format!("{:>8.1} s", number(&found["shown_s"])?);
    report.line("until it says so", &seconds, Some(("says something".to_owned(), is_said)));
    let bytes = number(&found["most_bytes"])?;
    report.at_most("memory of the browser, at most", bytes, 1e6, "MB", f64::INFINITY);
    let ms = number(&found["answered_ms"])?;
    report.at_most("the page answers within", ms, 1.0, "ms", MOST_ANSWER_MS);
    Ok(())
}

/// The program of the command line, built.
fn command_line(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = shell::cargo();
    build.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    build.args(["build", "--quiet", "--locked", "--release", "--package", "cli"]);
    shell::run(&mut build)?;
    Ok(workspace.target.join("release/kinetoscope").with_extension(env::consts::EXE_EXTENSION))
}

/// Writes a snapshot of one device: blocks of fifty sizes from three hundred stacks, reused by size, in a segment of 64 GiB.
fn write(path: &Path, events: usize, depth: usize) -> Result<()> {
    const FIRST: u64 = 1 << 32;
    const SEGMENT: u64 = 64 << 30;
    const STACKS: u64 = 300;
    let frames: Vec<String> = (0..STACKS).map(|stack| frames(stack, depth)).collect();
    let size = |stack: u64| (1 + stack % 50) << 16;
    let mut out = BufWriter::new(File::create(path)?);
    write!(out, r#"{{"device_traces": [["#)?;
    let (mut seed, mut time, mut top, mut n) = (3_u64, 1_700_000_000_000_000_u64, FIRST, 0);
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut live: std::collections::VecDeque<(u64, u64)> = std::collections::VecDeque::new();
    let mut free: Vec<Vec<u64>> = vec![Vec::new(); 50];
    let mut put = |action: &str, address: u64, size: u64, frames: &str| -> Result<()> {
        time += 7;
        let comma = if n > 0 { ", " } else { "" };
        n += 1;
        write!(
            out,
            r#"{comma}{{"action": "{action}", "addr": {address}, "size": {size}, "stream": 0, "time_us": {time}, "frames": {frames}}}"#
        )?;
        Ok(())
    };
    put("segment_alloc", FIRST, SEGMENT, "[]")?;
    let mut written = 1;
    while written < events {
        if live.len() > 8000 || !live.is_empty() && random(100) < 42 {
            // The last one that was allocated, as temporaries are, or the first.
            let block = if random(2) == 0 { live.pop_back() } else { live.pop_front() };
            let Some((address, stack)) = block else { continue };
            for action in ["free_requested", "free_completed"] {
                put(action, address, size(stack), &frames[stack as usize])?;
            }
            written += 2;
            free[(stack % 50) as usize].push(address);
        } else {
            let stack = random(STACKS);
            let address = free[(stack % 50) as usize].pop().unwrap_or_else(|| {
                top += size(stack);
                top - size(stack)
            });
            put("alloc", address, size(stack), &frames[stack as usize])?;
            written += 1;
            live.push_back((address, stack));
        }
    }
    let mut blocks: Vec<(u64, u64)> = live.into();
    blocks.sort_unstable();
    let used: u64 = blocks.iter().map(|(_, stack)| size(*stack)).sum();
    write!(
        out,
        r#"]], "segments": [{{"device": 0, "address": {FIRST}, "total_size": {SEGMENT}, "allocated_size": {used}, "active_size": {used}, "requested_size": {used}, "stream": 0, "segment_type": "large", "blocks": ["#
    )?;
    let mut at = FIRST;
    let inactive = |low: u64, high: u64| {
        format!(
            r#"{{"address": {low}, "size": {}, "requested_size": 0, "state": "inactive", "frames": []}}"#,
            high - low
        )
    };
    for (address, stack) in blocks {
        if address > at {
            write!(out, "{}, ", inactive(at, address))?;
        }
        let (size, frames) = (size(stack), &frames[stack as usize]);
        write!(
            out,
            r#"{{"address": {address}, "size": {size}, "requested_size": {size}, "state": "active_allocated", "frames": {frames}}}, "#
        )?;
        at = address + size;
    }
    write!(out, "{}]}}]}}", inactive(at, FIRST + SEGMENT))?;
    out.flush()?;
    Ok(())
}

/// The frames of a stack: four of the program, then those of packages.
fn frames(stack: u64, depth: usize) -> String {
    let frame = |level: usize| {
        let file = if level < 4 {
            format!("/app/model/layer{}.py", (stack * 7 + level as u64) % 40)
        } else {
            "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py".to_owned()
        };
        format!(
            r#"{{"name": "fn{level}", "filename": "{file}", "line": {}}}"#,
            stack * 3 + level as u64
        )
    };
    format!("[{}]", (0..depth).map(frame).collect::<Vec<_>>().join(", "))
}
