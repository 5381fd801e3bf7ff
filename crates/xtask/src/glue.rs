//! Writes wasm programs with the JavaScript that joins them to a browser or to Node, by the crate `glue`.

use std::path::{Path, PathBuf};

use anyhow::Result;

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
    let mut glue = shell::cargo();
    glue.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    glue.args(["run", "--locked", "--quiet", "--package", "glue", "--"]);
    glue.arg(match target {
        Target::Page => "web",
        Target::Worker => "no-modules",
        Target::Node => "nodejs",
    });
    shell::run(glue.arg(folder).args(programs))
}
