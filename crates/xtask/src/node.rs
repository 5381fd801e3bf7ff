//! Runs the Node tests: the page in a browser, and repaired traces in the real Perfetto.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::browser;
use crate::page;
use crate::shell;
use crate::workspace::Workspace;

/// The oldest version that the test packages support.
const OLDEST_NODE: u32 = 20;

/// Node with the test packages, or a line that explains how to get it.
pub fn ensure(workspace: &Workspace) -> Result<PathBuf, String> {
    let missing = || {
        format!(
            "no Node {OLDEST_NODE} or newer with npm: install it, as with `sudo apt-get install nodejs npm`"
        )
    };
    if find().is_none() {
        browser::apt_install("nodejs");
        browser::apt_install("npm");
    }
    let node = find().ok_or_else(missing)?;
    packages(workspace).map_err(|error| {
        format!("{error:#}: run `npm ci --ignore-scripts` in {}", tests_folder(workspace).display())
    })?;
    Ok(node)
}

/// Runs the test files under Node's own test runner, each in its own process.
pub fn run_tests(
    workspace: &Workspace,
    node: &Path,
    group: &str,
    environment: &[(&str, &Path)],
) -> Result<()> {
    let mut tests = Command::new(node);
    tests.current_dir(tests_folder(workspace)).args(["run.mjs", group]);
    for (name, value) in environment {
        tests.env(name, value);
    }
    tests.env("KINETOSCOPE_SAMPLES", workspace.samples());
    tests.env("KINETOSCOPE_TALLY", workspace.tally());
    if let Some(shared) = workspace.shared() {
        tests.env("KINETOSCOPE_SHARED", shared);
    }
    shell::run(&mut tests)
}

/// Takes the pictures of the documentation from the running page; they replace those in `docs/`.
///
/// # Errors
/// When the page cannot be built, or there is no Node or no Chromium.
pub fn pictures(workspace: &Workspace) -> Result<()> {
    let node = ensure(workspace).map_err(anyhow::Error::msg)?;
    let chromium = browser::ensure().map_err(anyhow::Error::msg)?;
    let built = workspace.tested_page();
    page::build(workspace, &built)?;
    let mut take = Command::new(node);
    take.current_dir(tests_folder(workspace)).arg("pictures.mjs").arg(workspace.root.join("docs"));
    take.env("KINETOSCOPE_PAGE", built).env("KINETOSCOPE_CHROMIUM", chromium);
    shell::run(&mut take)
}

fn tests_folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join("web/tests")
}

fn find() -> Option<PathBuf> {
    let node = shell::which("node")?;
    let version = shell::version(&node)?;
    let major: u32 = version.strip_prefix('v')?.split('.').next()?.parse().ok()?;
    (major >= OLDEST_NODE && npm().is_some()).then_some(node)
}

fn npm() -> Option<PathBuf> {
    shell::which(if cfg!(windows) { "npm.cmd" } else { "npm" })
}

/// Installs the versions of package-lock.json, unless they are installed.
fn packages(workspace: &Workspace) -> Result<()> {
    let folder = tests_folder(workspace);
    let lock = std::fs::read(folder.join("package-lock.json"))?;
    let installed = folder.join("node_modules/.installed-lock.json");
    if std::fs::read(&installed).is_ok_and(|bytes| bytes == lock) {
        return Ok(());
    }
    let npm = npm().unwrap_or_else(|| "npm".into());
    // No package needs its install script here, so none is run.
    shell::run(Command::new(npm).current_dir(&folder).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]))?;
    std::fs::write(&installed, lock)?;
    Ok(())
}
