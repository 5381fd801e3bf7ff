//! Writes wasm programs with the JavaScript that joins them to a browser or to Node, by the crate `glue`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::beside::Beside;
use crate::shell;
use crate::workspace::Workspace;

/// What runs a program.
#[derive(Clone, Copy)]
pub enum Target {
    /// A page, which imports the script as a module.
    Page,
    /// A worker, which loads the script by `importScripts`.
    Worker,
    Node,
}

/// Writes `NAME.js` and `NAME_bg.wasm` of every program `NAME.wasm` into `folder`.
pub fn write(
    workspace: &Workspace,
    target: Target,
    folder: &Path,
    programs: &[PathBuf],
) -> Result<()> {
    let mut glue = command(workspace);
    glue.current_dir(&workspace.root).arg(match target {
        Target::Page => "web",
        Target::Worker => "no-modules",
        Target::Node => "nodejs",
    });
    shell::run(glue.arg(folder).args(programs))
}

/// The program. Beside other steps it is built already: cargo would wait here until they have compiled.
fn command(workspace: &Workspace) -> Command {
    if Beside::here().is_some() {
        return Command::new(workspace.program("glue"));
    }
    let mut glue = shell::cargo();
    glue.env("CARGO_TARGET_DIR", &workspace.target);
    glue.args(["run", "--locked", "--quiet", "--package", "glue", "--"]);
    glue
}
