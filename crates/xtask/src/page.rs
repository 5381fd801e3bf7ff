//! Builds the page, as index.html describes it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::contents::Contents;
use crate::digest::files;
use crate::glue::{self, Target};
use crate::imports::shorten;
use crate::reorder::reordered;
use crate::seal::seal;
use crate::shell;
use crate::styles;
use crate::tools::{self, PAGE_TARGET};
use crate::wasm::without_names;
use crate::workspace::{Workspace, read};

/// How the programs of the page are compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As they are deployed.
    Release,
    /// For a debugger: sooner compiled, slower, with the names of functions.
    Debug,
}

/// Builds the page into `folder`, as it is deployed.
pub fn build(workspace: &Workspace, folder: &Path) -> Result<()> {
    build_as(workspace, folder, Profile::Release)
}

/// Builds the page into `folder`. The folder changes at once, when the whole page is built.
pub fn build_as(workspace: &Workspace, folder: &Path, profile: Profile) -> Result<()> {
    let page = read(&workspace.root.join("index.html"))?;
    let contents = Contents::of(&page);
    let programs = compile(workspace, profile)?;
    let beside = |word: &str| {
        let mut name = folder.as_os_str().to_owned();
        name.push(word);
        PathBuf::from(name)
    };
    let (staging, old) = (beside(".new"), beside(".old"));
    remove_folder(&staging)?;
    fs::create_dir_all(&staging).with_context(|| format!("cannot create {}", staging.display()))?;
    bind(workspace, &contents, &programs, &staging)?;
    if profile == Profile::Release {
        make_small(&staging)?;
    }
    let sources = workspace.root.join("web");
    for file in &contents.files {
        copy(&sources.join(file), &staging.join(file))?;
    }
    for file in files(&sources.join(ASSETS))? {
        let file = Path::new(ASSETS).join(file);
        copy(&sources.join(&file), &staging.join(&file))?;
    }
    let page = styles::join(&workspace.root, &staging, &page)?;
    seal(&staging, &page, &read(&sources.join("sw.js"))?)?;
    remove_folder(&old)?;
    if folder.exists() {
        fs::rename(folder, &old).with_context(|| format!("cannot move {}", folder.display()))?;
    }
    fs::rename(&staging, folder).with_context(|| format!("cannot write {}", folder.display()))?;
    remove_folder(&old)
}

/// The folder of files that the page fetches at run time, below `web` and below the page.
const ASSETS: &str = "assets";
/// The program that the page itself runs; all others are workers.
const APP: &str = "app";

/// Compiles all programs of the page in one go; the folder in which they are.
fn compile(workspace: &Workspace, profile: Profile) -> Result<PathBuf> {
    tools::ensure_wasm_target()?;
    let mut build = shell::cargo();
    build.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    // RUSTFLAGS would replace the flags of .cargo/config.toml, SIMD included.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    if let Some(flags) = remap_flags(workspace) {
        build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
    }
    build.args(["build", "--locked", "--package", "web", "--bins", "--target", PAGE_TARGET]);
    let name = match profile {
        Profile::Release => {
            build.arg("--release");
            "release"
        }
        Profile::Debug => "debug",
    };
    shell::run(&mut build)?;
    Ok(workspace.target.join(PAGE_TARGET).join(name))
}

/// Writes the programs from `compiled` into `folder`, with their scripts.
fn bind(workspace: &Workspace, contents: &Contents, compiled: &Path, folder: &Path) -> Result<()> {
    let (app, workers): (Vec<&String>, Vec<&String>) =
        contents.programs.iter().partition(|program| *program == APP);
    for (target, programs) in [(Target::Page, app), (Target::Worker, workers)] {
        let paths: Vec<PathBuf> =
            programs.iter().map(|program| compiled.join(format!("{program}.wasm"))).collect();
        glue::write(workspace, target, folder, &paths)?;
    }
    Ok(())
}

/// A deployed page has no debug sections and no long names; `cargo xtask serve --debug` keeps them.
fn make_small(folder: &Path) -> Result<()> {
    for file in files(folder)?.iter().filter(|file| file.ends_with(".wasm")) {
        let path = folder.join(file);
        let whole = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let script_path = folder.join(file.replace("_bg.wasm", ".js"));
        let script = read(&script_path)?;
        let small = without_names(&whole).and_then(|wasm| shorten(&reordered(&wasm)?, &script));
        let (wasm, script) = small.with_context(|| file.clone())?;
        fs::write(&path, wasm)?;
        fs::write(&script_path, script)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
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
