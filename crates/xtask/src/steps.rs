//! `cargo xtask test`: runs the checks in order, and prints for each its name, time and the command to run it alone.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::{Workspace, is_ci};
use crate::{browser, checks, hygiene, layers, node, page, shell, size, tally, wasm_tests};

/// The options of `cargo xtask test`.
pub struct Selection {
    pub quick: bool,
    pub allow_missing: bool,
    pub list: bool,
    pub only: Vec<String>,
}

/// One check.
struct Step {
    name: &'static str,
    title: &'static str,
    /// Without wasm build, browser and Node.
    quick: bool,
    run: fn(&Workspace) -> Result<(), Stop>,
}

/// Why a check did not pass.
enum Stop {
    /// A check failed.
    Failed(anyhow::Error),
    /// The check could not run; the line explains what to do.
    Missing(String),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Ordered by frequency of failure and cost.
const STEPS: &[Step] = &[
    Step { name: "fmt", title: "formatting", quick: true, run: |w| Ok(checks::format(w)?) },
    Step {
        name: "hygiene",
        title: "licences, file lengths, no paths of this machine",
        quick: true,
        run: |w| Ok(hygiene::check(w)?),
    },
    Step {
        name: "layers",
        title: "dependencies between crates",
        quick: true,
        run: |w| Ok(layers::check(w)?),
    },
    Step {
        name: "deny",
        title: "licences, versions and sources of dependencies",
        quick: false,
        run: |w| Ok(checks::dependencies(w)?),
    },
    Step {
        name: "clippy",
        title: "clippy for the host",
        quick: true,
        run: |w| Ok(checks::clippy_host(w)?),
    },
    Step {
        name: "clippy-wasm",
        title: "clippy for wasm32",
        quick: false,
        run: |w| Ok(checks::clippy_wasm(w)?),
    },
    Step {
        name: "unit",
        title: "unit, golden and property tests",
        quick: true,
        run: |w| Ok(checks::unit_tests(w)?),
    },
    Step {
        name: "doc",
        title: "documentation without warnings",
        quick: false,
        run: |w| Ok(checks::documentation(w)?),
    },
    Step {
        name: "fuzz",
        title: "the fuzz targets compile",
        quick: false,
        run: |w| Ok(checks::fuzz_targets(w)?),
    },
    Step { name: "page", title: "wasm build and its size budget", quick: false, run: page_step },
    Step {
        name: "wasm",
        title: "tests of the worker's crates as wasm under Node",
        quick: false,
        run: wasm_step,
    },
    Step {
        name: "perfetto",
        title: "repaired traces in the real Perfetto",
        quick: false,
        run: perfetto_step,
    },
    Step { name: "browser", title: "the page in Chromium", quick: false, run: browser_step },
    Step { name: "firefox", title: "the page in Firefox", quick: false, run: firefox_step },
];

fn page_step(workspace: &Workspace) -> Result<(), Stop> {
    let folder = workspace.tested_page();
    page::build(workspace, &folder)?;
    Ok(size::check(&folder)?)
}

fn wasm_step(workspace: &Workspace) -> Result<(), Stop> {
    let node = node::ensure(workspace).map_err(Stop::Missing)?;
    Ok(wasm_tests::run(workspace, &node)?)
}

fn perfetto_step(workspace: &Workspace) -> Result<(), Stop> {
    let node = node::ensure(workspace).map_err(Stop::Missing)?;
    let program = checks::command_line(workspace)?;
    Ok(node::run_tests(workspace, &node, "perfetto", &[("KINETOSCOPE_CLI", &program)])?)
}

fn browser_step(workspace: &Workspace) -> Result<(), Stop> {
    let chromium = browser::ensure().map_err(Stop::Missing)?;
    tests_of_page(workspace, "browser", ("KINETOSCOPE_CHROMIUM", &chromium))
}

fn firefox_step(workspace: &Workspace) -> Result<(), Stop> {
    let firefox = browser::ensure_firefox().map_err(Stop::Missing)?;
    tests_of_page(workspace, "firefox", ("KINETOSCOPE_FIREFOX", &firefox))
}

/// Runs a group of tests of the page. `browser`: the variable that names the browser, and its program.
fn tests_of_page(workspace: &Workspace, group: &str, browser: (&str, &Path)) -> Result<(), Stop> {
    let node = node::ensure(workspace).map_err(Stop::Missing)?;
    let program = checks::command_line(workspace)?;
    // Builds the current sources; after the page check this takes a second.
    let page = workspace.tested_page();
    page::build(workspace, &page)?;
    let environment = [("KINETOSCOPE_CLI", &*program), ("KINETOSCOPE_PAGE", &*page), browser];
    Ok(node::run_tests(workspace, &node, group, &environment)?)
}

/// The result of a check.
enum Outcome {
    Passed,
    Failed,
    Missing(String),
}

/// Runs the checks and prints their results.
pub fn test(workspace: &Workspace, selection: &Selection) -> Result<ExitCode> {
    if selection.list {
        for step in STEPS {
            println!("{:<12} {}", step.name, step.title);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let steps = selected(selection)?;
    tally::clear(workspace)?;
    let mut done: Vec<(&Step, Outcome, Cost)> = Vec::new();
    for step in &steps {
        println!("\n==== {}: {}", step.name, step.title);
        let meter = Meter::start();
        let outcome = match (step.run)(workspace) {
            Ok(()) => Outcome::Passed,
            Err(Stop::Missing(what)) => Outcome::Missing(what),
            Err(Stop::Failed(error)) => {
                eprintln!("{}: {error:#}", step.name);
                Outcome::Failed
            }
        };
        let stop = matches!(outcome, Outcome::Failed)
            || (matches!(outcome, Outcome::Missing(_)) && is_ci());
        done.push((step, outcome, meter.read()));
        if stop {
            break;
        }
    }
    Ok(summary(workspace, selection, &done, steps.len()))
}

fn selected(selection: &Selection) -> Result<Vec<&'static Step>> {
    for name in &selection.only {
        if !STEPS.iter().any(|step| step.name == name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            bail!("no step is called {name:?}; there are {}", known.join(", "));
        }
    }
    let wanted = |step: &&Step| {
        if selection.only.is_empty() {
            !selection.quick || step.quick
        } else {
            selection.only.iter().any(|name| name == step.name)
        }
    };
    Ok(STEPS.iter().filter(wanted).collect())
}

fn summary(
    workspace: &Workspace,
    selection: &Selection,
    done: &[(&Step, Outcome, Cost)],
    n_selected: usize,
) -> ExitCode {
    println!("\n==== summary");
    let (mut n_passed, mut n_failed, mut n_missing) = (0, 0, 0);
    let mut total = Cost::default();
    for (step, outcome, cost) in done {
        total.add(cost);
        let (word, note) = match outcome {
            Outcome::Passed => {
                n_passed += 1;
                ("passed", String::new())
            }
            Outcome::Failed => {
                n_failed += 1;
                ("FAILED", format!("   run it alone: cargo xtask test --only {}", step.name))
            }
            Outcome::Missing(what) => {
                n_missing += 1;
                ("NOT RUN", format!("   {what}"))
            }
        };
        println!("{word:<8} {:<12} {cost}{note}", step.name);
    }
    println!("{:<8} {:<12} {total}", "", "total");
    let n_left = n_selected - done.len();
    if n_left > 0 {
        println!("{n_left} steps after it were not run.");
    }
    if selection.quick {
        let left_out: Vec<_> =
            STEPS.iter().filter(|step| !step.quick).map(|step| step.name).collect();
        println!("--quick omitted: {}", left_out.join(", "));
    }
    if let Some(notes) = tally::read(workspace) {
        print!("{}", tally::summary(&notes, workspace.shared().is_some()));
    }
    if n_missing > 0 && !selection.allow_missing {
        println!("A check that cannot run counts as failed, unless --allow-missing is given.");
        n_failed += n_missing;
        n_missing = 0;
    }
    let skipped = if n_missing > 0 { format!(", {n_missing} skipped") } else { String::new() };
    println!("{n_passed} passed, {n_failed} failed{skipped}");
    if n_failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures a check.
struct Meter {
    started: Instant,
    cpu_before: Option<f64>,
}

impl Meter {
    fn start() -> Meter {
        Meter { started: Instant::now(), cpu_before: shell::children_cpu_seconds() }
    }

    fn read(&self) -> Cost {
        let cpu = shell::children_cpu_seconds()
            .zip(self.cpu_before)
            .map(|(after, before)| after - before);
        Cost { wall: self.started.elapsed(), cpu_seconds: cpu }
    }
}

/// The time of a check.
#[derive(Default)]
struct Cost {
    wall: Duration,
    cpu_seconds: Option<f64>,
}

impl Cost {
    fn add(&mut self, other: &Cost) {
        self.wall += other.wall;
        if let Some(seconds) = other.cpu_seconds {
            *self.cpu_seconds.get_or_insert(0.0) += seconds;
        }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>7.1} s", self.wall.as_secs_f64())?;
        match self.cpu_seconds {
            Some(seconds) => write!(f, " {seconds:>7.1} CPU-s"),
            None => Ok(()),
        }
    }
}
