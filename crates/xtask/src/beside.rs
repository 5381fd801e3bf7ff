//! Steps of `cargo xtask test` that run beside the others: those of the page, and after them the tests of wasm. A browser waits more than it computes, and a
//! link of a whole program keeps one processor busy. So they run in a process of their own, which is this program again, while
//! the other steps compile. (Cargo lets both work at a time: the page is built in another folder than the tests. What is built for wasm waits for what the tests
//! build, which is done by then.)
//!
//! A folder in `target/xtask/beside` is what the two processes share: what the steps print, their results, and a file that asks
//! them to stop.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::outcome::Done;
use crate::workspace::{Workspace, read};

/// The folder, in the process that runs the steps and in what it starts (`web/tests/lane.mjs` reads it, too).
const VARIABLE: &str = "KINETOSCOPE_BESIDE";
/// What the steps print.
const LOG: &str = "log.txt";
/// A line for each step that has ended.
const RESULTS: &str = "results.tsv";
/// Is there when the steps shall stop.
const STOP: &str = "stop";

/// The steps that run beside ours.
pub struct Running {
    child: Child,
    folder: PathBuf,
}

/// Starts these steps.
///
/// # Errors
/// When the shared folder cannot be written, or the process not started.
pub fn start(workspace: &Workspace, steps: &[&str]) -> Result<Running> {
    // (Of this process: another one may run in the same checkout.)
    let folder = workspace.target.join("xtask/beside").join(std::process::id().to_string());
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(folder.join(RESULTS), "").context("cannot write the results of steps")?;
    let log = File::create(folder.join(LOG)).context("cannot write what the steps print")?;
    let mut again = Command::new(env::current_exe().context("cannot find this program")?);
    again.arg("test").env(VARIABLE, &folder);
    for step in steps {
        again.args(["--only", step]);
    }
    again.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = again.spawn().context("cannot start this program again")?;
    println!("\n==== beside the steps below: {}", steps.join(", "));
    println!("They print into {}, which is shown at the end.", folder.join(LOG).display());
    Ok(Running { child, folder })
}

impl Running {
    /// The results so far.
    pub fn results(&self) -> Result<Vec<Done>> {
        Ok(read(&self.folder.join(RESULTS))?.lines().filter_map(Done::parse).collect())
    }

    /// Asks the steps to stop after the file of browser tests, or the step, that they are at.
    pub fn stop(&self) -> Result<()> {
        fs::write(self.folder.join(STOP), "").context("cannot ask the steps beside to stop")
    }

    /// Waits for the steps, and prints what they have printed. Their results, and whether their process says that all passed.
    pub fn finish(mut self) -> Result<(Vec<Done>, bool)> {
        println!("\n==== waiting for the steps beside");
        let status = self.child.wait().context("cannot wait for the steps beside")?;
        // (A program under test may print bytes that are no text.)
        let mut log =
            File::open(self.folder.join(LOG)).context("what the steps printed is gone")?;
        io::copy(&mut log, &mut io::stdout().lock())?;
        let results = self.results()?;
        // (Only disk space is lost if this fails.)
        let _ = fs::remove_dir_all(&self.folder);
        Ok((results, status.success()))
    }
}

/// The process that runs steps beside those of another.
pub struct Beside(PathBuf);

impl Beside {
    /// Of this process, if it is one.
    pub fn here() -> Option<Beside> {
        env::var_os(VARIABLE).map(|folder| Beside(PathBuf::from(folder)))
    }

    /// Passes on the result of a step.
    pub fn report(&self, done: &Done) -> Result<()> {
        let path = self.0.join(RESULTS);
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{}", done.line()))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// True if the other process has asked for an end.
    pub fn must_stop(&self) -> bool {
        self.0.join(STOP).exists()
    }
}
