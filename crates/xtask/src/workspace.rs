//! Folders and versions of the workspace.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The checkout and its folders.
pub struct Workspace {
    /// The folder of the workspace's Cargo.toml.
    pub root: PathBuf,
    /// Cargo's target folder, whatever the environment calls it.
    pub target: PathBuf,
}

impl Workspace {
    pub fn find() -> Result<Workspace> {
        let here = env::current_dir().context("the current folder is gone")?;
        let root = here
            .ancestors()
            .find(|folder| folder.join("crates/xtask/Cargo.toml").is_file())
            .context("run cargo xtask inside the checkout")?
            .to_owned();
        // Relative to the current folder, as for cargo itself.
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => here.join(folder),
            None => root.join("target"),
        };
        Ok(Workspace { root, target })
    }

    /// The sample traces, which are not part of the checkout.
    pub fn shared(&self) -> Option<PathBuf> {
        let folder = match env::var_os("KINETOSCOPE_SHARED") {
            Some(folder) => PathBuf::from(folder),
            None => self.root.parent()?.join("shared"),
        };
        folder.join("corpus").is_dir().then_some(folder)
    }

    /// A program that is compiled as `cargo test` does it ([`crate::checks::programs`]).
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// Where our own samples are written as files, for the tests that Node runs.
    pub fn samples(&self) -> PathBuf {
        self.target.join("xtask/samples")
    }

    /// Where tests note what they ran on.
    pub fn tally(&self) -> PathBuf {
        self.target.join("xtask/tally.tsv")
    }

    /// Where `dist` puts the page, and `serve` builds it.
    pub fn dist(&self) -> PathBuf {
        self.root.join("dist/kinetoscope")
    }

    /// The page under test: not in `dist`, so that a running `serve` is not disturbed.
    pub fn tested_page(&self) -> PathBuf {
        self.target.join("xtask/page")
    }
}

/// `fs::read_to_string`, with the path in the error.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// True in continuous integration, where a missing tool is a failure.
pub fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
