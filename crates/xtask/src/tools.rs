//! The tools that a build needs: the targets and components of the compiler, and cargo-deny in a pinned version, from PATH, else
//! from a cache, else built once into the cache.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Newer versions need a newer compiler than ours.
const DENY_VERSION: &str = "0.20.2";

/// A tool that cargo can build.
struct Tool<'a> {
    package: &'a str,
    program: &'a str,
    version: &'a str,
    /// Cargo profile settings: a tool runs for seconds, so low optimisation is enough.
    profile: &'a [(&'a str, &'a str)],
}

/// cargo-deny, which checks the dependencies against deny.toml.
pub fn deny() -> Result<Command> {
    let deny = Tool {
        package: "cargo-deny",
        program: "cargo-deny",
        version: DENY_VERSION,
        profile: &[("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "0"), ("DEBUG", "0")],
    };
    let folder = deny.ensure()?;
    let path =
        folder.map_or_else(|| "cargo-deny".into(), |folder| folder.join(executable("cargo-deny")));
    Ok(Command::new(path))
}

impl Tool<'_> {
    /// The folder of the cached tool; `None` if PATH has the right version.
    fn ensure(&self) -> Result<Option<PathBuf>> {
        let on_path = shell::which(self.program).and_then(|path| shell::version(&path));
        if on_path.is_some_and(|line| line.split_whitespace().nth(1) == Some(self.version)) {
            return Ok(None);
        }
        let cache = cache()?;
        let name = format!("{}-{}", self.package, self.version);
        let installed = cache.join(&name);
        let folder = installed.join("bin");
        if !folder.join(executable(self.program)).is_file() {
            self.build(&cache, &name, &installed)?;
        }
        Ok(Some(folder))
    }

    /// Builds in a separate folder and then renames it: an interrupted build leaves nothing that looks complete, and
    /// the next build continues where it stopped.
    fn build(&self, cache: &Path, name: &str, installed: &Path) -> Result<()> {
        let work = cache.join(".build").join(name);
        fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
        // One build at a time; a process that waited finds it done. The system releases the lock when this process ends.
        let lock = File::create(cache.join(".build").join(format!("{name}.lock")))?;
        lock.lock().context("cannot lock the tools folder")?;
        if installed.join("bin").join(executable(self.program)).is_file() {
            return Ok(());
        }
        println!(
            "Building {} {} once, into {} (minutes).",
            self.package,
            self.version,
            installed.display()
        );
        let root = work.join("root");
        let mut command = shell::cargo();
        // Outside the checkout, whose .cargo/config.toml does not apply, and without the variables of our own builds.
        command.current_dir(&work);
        for (variable, _) in env::vars_os() {
            let variable = variable.to_string_lossy().into_owned();
            if variable.ends_with("RUSTFLAGS")
                || variable.starts_with("CARGO_BUILD_")
                || variable.starts_with("CARGO_PROFILE_")
                || variable == "CARGO_TARGET_DIR"
            {
                command.env_remove(variable);
            }
        }
        for (setting, value) in self.profile {
            command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
        }
        command.arg("install").args(["--locked", "--version", self.version]);
        command
            .arg("--target-dir")
            .arg(work.join("target"))
            .arg("--root")
            .arg(&root)
            .arg(self.package);
        shell::run(&mut command)?;
        if installed.exists() {
            fs::remove_dir_all(installed)
                .with_context(|| format!("cannot remove {}", installed.display()))?;
        }
        fs::rename(&root, installed)
            .with_context(|| format!("cannot create {}", installed.display()))?;
        // Only disk space is lost if this fails.
        let _ = fs::remove_dir_all(&work);
        Ok(())
    }
}

/// `KINETOSCOPE_TOOLS`, else a folder of the user's cache: outside the clone, so that a fresh clone does not build them again.
fn cache() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("KINETOSCOPE_TOOLS") {
        return Ok(PathBuf::from(folder));
    }
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("LOCALAPPDATA"))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("no HOME: set KINETOSCOPE_TOOLS to a folder for the tools")?;
    Ok(base.join("kinetoscope/tools"))
}

/// The target of the page.
pub const PAGE_TARGET: &str = "wasm32-unknown-unknown";

/// The standard library of the page's target.
pub fn ensure_wasm_target() -> Result<()> {
    ensure_target(PAGE_TARGET)
}

/// A target's standard library. Checked explicitly: rustup ignores a missing target silently,
/// and the build then fails far from the cause.
pub fn ensure_target(target: &str) -> Result<()> {
    let mut rustc = Command::new("rustc");
    let libraries = shell::output(rustc.args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    if shell::which("rustup").is_none() {
        bail!(
            "the target {target} is missing and there is no rustup: install the target from the source of your Rust"
        );
    }
    shell::run(Command::new("rustup").args(["target", "add", target]))
}

/// `rustfmt` or `clippy`, which rustup's minimal profile leaves out.
pub fn ensure_component(subcommand: &str, component: &str) -> Result<()> {
    if shell::succeeds(shell::cargo().args([subcommand, "--version"])) {
        return Ok(());
    }
    shell::run(Command::new("rustup").args(["component", "add", component]))
}

fn executable(program: &str) -> String {
    format!("{program}{}", env::consts::EXE_SUFFIX)
}
