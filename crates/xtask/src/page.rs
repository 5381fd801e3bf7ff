//! Building and serving the page.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Builds the page into `folder`, as it is deployed.
pub fn build(workspace: &Workspace, folder: &Path) -> Result<()> {
    let mut trunk = trunk(workspace, "build")?;
    trunk.args(["--release", "--dist"]).arg(folder);
    std::fs::create_dir_all(folder)?;
    shell::run(&mut trunk)
}

/// Builds the page, serves it on the loopback interface, and builds again when a file changes.
pub fn serve(workspace: &Workspace, port: u16, debug: bool) -> Result<()> {
    let mut trunk = trunk(workspace, "serve")?;
    trunk.args(["--port", &port.to_string()]);
    if !debug {
        trunk.arg("--release");
    }
    println!("The page will be at http://127.0.0.1:{port}/ once it is built. Ctrl+C ends it.");
    shell::run(&mut trunk)
}

fn trunk(workspace: &Workspace, subcommand: &str) -> Result<Command> {
    let tools = Tools::ensure(workspace)?;
    // Trunk runs cargo without a network.
    shell::run(shell::cargo().current_dir(&workspace.root).args(["fetch", "--locked"]))?;
    let mut trunk = tools.trunk()?;
    trunk.current_dir(&workspace.root).arg(subcommand).args(["--offline", "--skip-version-check"]);
    trunk.env("CARGO_TARGET_DIR", &workspace.target);
    // A build that fails is the compiler's message; where in Trunk it came through helps nobody.
    trunk.env("RUST_BACKTRACE", "0");
    // RUSTFLAGS would replace the flags of .cargo/config.toml, and SIMD with them.
    trunk.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    Ok(trunk)
}
