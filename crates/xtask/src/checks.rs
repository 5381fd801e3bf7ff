//! Checks that run cargo.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;
use crate::tools;
use crate::workspace::Workspace;

/// Everything that runs in the browser: the core and the page.
const WASM_PACKAGES: &[&str] = &[
    "trace",
    "scan",
    "catalog",
    "report",
    "dialect",
    "ingest",
    "decode",
    "repair",
    "repaired",
    "timeline",
    "analysis",
    "triage",
    "snapshot",
    "lanes",
    "artifacts",
    "kinetoscope",
    "web",
    "bench",
];

pub fn format(workspace: &Workspace) -> Result<()> {
    tools::ensure_component("fmt", "rustfmt")?;
    shell::run(cargo(workspace).args(["fmt", "--all", "--check"]))
}

pub fn clippy_host(workspace: &Workspace) -> Result<()> {
    tools::ensure_component("clippy", "clippy")?;
    shell::run(cargo(workspace).args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

pub fn clippy_wasm(workspace: &Workspace) -> Result<()> {
    tools::ensure_component("clippy", "clippy")?;
    tools::ensure_wasm_target()?;
    let mut clippy = cargo(workspace);
    clippy.args(["clippy", "--locked", "--target", "wasm32-unknown-unknown"]);
    for package in WASM_PACKAGES {
        clippy.args(["--package", package]);
    }
    shell::run(clippy.args(["--", "-D", "warnings"]))
}

pub fn unit_tests(workspace: &Workspace) -> Result<()> {
    // A fixed seed: the same commit passes or fails every time. `cargo test` by itself draws new cases.
    let mut tests = cargo(workspace);
    tests.env("PROPTEST_RNG_SEED", "1").env("KINETOSCOPE_TALLY", workspace.tally());
    shell::run(tests.args(["test", "--locked", "--workspace"]))
}

pub fn documentation(workspace: &Workspace) -> Result<()> {
    shell::run(cargo(workspace).env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
    ]))
}

/// Licences, versions and sources of the dependencies. (Advisories need the network: [`advisories`].)
pub fn dependencies(workspace: &Workspace) -> Result<()> {
    deny(workspace, &["bans", "licenses", "sources"])
}

/// Known faults of the dependencies, from the database of the Rust Secure Code working group.
pub fn advisories(workspace: &Workspace) -> Result<()> {
    deny(workspace, &["advisories"])
}

fn deny(workspace: &Workspace, what: &[&str]) -> Result<()> {
    let mut deny = tools::deny()?;
    deny.current_dir(&workspace.root).args(["--locked", "check", "--hide-inclusion-graph"]);
    // A rule that matches nothing is out of date.
    shell::run(deny.args(["--deny", "warnings"]).args(what))
}

/// Compiles the fuzz targets, which are a workspace of their own, without linking them: that needs a nightly compiler.
pub fn fuzz_targets(workspace: &Workspace) -> Result<()> {
    let mut check = shell::cargo();
    check.current_dir(workspace.root.join("fuzz"));
    check.env("CARGO_TARGET_DIR", workspace.target.join("fuzz"));
    // Nothing is linked, so that libFuzzer's own C++ need not be compiled: its build script uses the file that it is given.
    check.env("CUSTOM_LIBFUZZER_PATH", workspace.target.join("fuzz/libfuzzer.a"));
    shell::run(check.args(["check", "--locked", "--all-targets"]))
}

/// Runs the tests so that golden files are written instead of compared.
pub fn golden(workspace: &Workspace) -> Result<()> {
    let mut tests = cargo(workspace);
    tests.env("UPDATE_EXPECT", "1");
    shell::run(tests.args(["test", "--locked", "--workspace"]))?;
    println!("Review the changes: git diff");
    Ok(())
}

/// Builds what the tests that Node runs need, as `cargo test` compiles it, so that it need not do so again: the command line, the
/// program that writes the samples, and [`glue`](crate::glue).
pub fn programs(workspace: &Workspace) -> Result<()> {
    let mut build = cargo(workspace);
    // (With `--workspace` the features of all crates are those of `cargo test`.)
    build.args(["build", "--locked", "--profile", "test", "--workspace"]);
    build.args(["--bin", "kinetoscope", "--bin", "glue", "--example", "make_samples"]);
    shell::run(&mut build)
}

/// Writes our own samples anew, as files: a sample that is gone must not be left from an earlier run.
pub fn write_samples(workspace: &Workspace) -> Result<()> {
    let folder = workspace.samples();
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut make = Command::new(workspace.program("examples/make_samples"));
    shell::run(make.current_dir(&workspace.root).arg(&folder))
}

fn cargo(workspace: &Workspace) -> Command {
    let mut command = shell::cargo();
    command.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    command
}
