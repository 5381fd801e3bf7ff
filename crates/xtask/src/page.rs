//! Builds and serves the page.

use std::env;
use std::path::{Path, PathBuf};
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
    trunk.args(["--disable-address-lookup", "--port", &port.to_string()]);
    if !debug {
        trunk.arg("--release");
    }
    println!("The page will be at http://127.0.0.1:{port}/ once it is built. Ctrl+C ends it.");
    shell::run_last(&mut trunk)
}

fn trunk(workspace: &Workspace, subcommand: &str) -> Result<Command> {
    let tools = Tools::ensure(workspace)?;
    // Trunk runs cargo without a network.
    shell::run(shell::cargo().current_dir(&workspace.root).args(["fetch", "--locked"]))?;
    let mut trunk = tools.trunk()?;
    trunk.current_dir(&workspace.root).arg(subcommand).args(["--offline", "--skip-version-check"]);
    trunk.env("CARGO_TARGET_DIR", &workspace.target);
    // When a build fails, the compiler's message is enough; a backtrace of Trunk does not help.
    trunk.env("RUST_BACKTRACE", "0");
    // RUSTFLAGS would replace the flags of .cargo/config.toml, SIMD included.
    trunk.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    if let Some(flags) = remap_flags(workspace) {
        trunk.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
    }
    Ok(trunk)
}

/// Compiler flags, added to those of .cargo/config.toml, that keep paths of this machine out of the page: panics
/// name source files, and those of dependencies are in a home folder. The same sources then give the same page.
fn remap_flags(workspace: &Workspace) -> Option<String> {
    let home = || env::home_dir().map(|home| home.join(".cargo"));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)?;
    let places = [(cargo_home.as_path(), "/cargo"), (workspace.root.as_path(), "/kinetoscope")];
    let flags =
        places.map(|(place, name)| format!("--remap-path-prefix={}={name}", place.display()));
    // Cargo splits the variable at spaces and supports no quotes.
    flags.iter().all(|flag| !flag.contains(char::is_whitespace)).then(|| flags.join(" "))
}
