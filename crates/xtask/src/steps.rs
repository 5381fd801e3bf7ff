//! `cargo xtask test`: runs the checks, those of the page beside the others, and prints for each its name, time and the
//! command to run it alone.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::beside::{self, Beside};
use crate::outcome::{Cost, Done, Meter, Outcome};
use crate::workspace::{Workspace, is_ci};
use crate::{browser, checks, hygiene, layers, node, page, size, tally, wasm_tests};

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
    place: Place,
    run: fn(&Workspace) -> Result<(), Stop>,
}

/// When a check runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In seconds, before all others.
    First,
    /// With cargo, one after the other.
    Cargo,
    /// Beside those of cargo ([`beside`]): of the page, and what shall not wait for the tests.
    Beside,
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
    Step {
        name: "fmt",
        title: "formatting",
        quick: true,
        place: Place::First,
        run: |w| Ok(checks::format(w)?),
    },
    Step {
        name: "hygiene",
        title: "licences, file lengths, no paths of this machine",
        quick: true,
        place: Place::First,
        run: |w| Ok(hygiene::check(w)?),
    },
    Step {
        name: "layers",
        title: "dependencies between crates",
        quick: true,
        place: Place::First,
        run: |w| Ok(layers::check(w)?),
    },
    Step {
        name: "deny",
        title: "licences, versions and sources of dependencies",
        quick: false,
        place: Place::Cargo,
        run: |w| Ok(checks::dependencies(w)?),
    },
    Step {
        name: "clippy",
        title: "clippy for the host",
        quick: true,
        place: Place::Cargo,
        run: |w| Ok(checks::clippy_host(w)?),
    },
    Step {
        name: "clippy-wasm",
        title: "clippy for wasm32",
        quick: false,
        place: Place::Cargo,
        run: |w| Ok(checks::clippy_wasm(w)?),
    },
    Step {
        name: "unit",
        title: "unit, golden and property tests",
        quick: true,
        place: Place::Cargo,
        run: |w| Ok(checks::unit_tests(w)?),
    },
    Step {
        name: "doc",
        title: "documentation without warnings",
        quick: false,
        place: Place::Cargo,
        run: |w| Ok(checks::documentation(w)?),
    },
    Step {
        name: "fuzz",
        title: "the fuzz targets compile",
        quick: false,
        place: Place::Cargo,
        run: |w| Ok(checks::fuzz_targets(w)?),
    },
    Step {
        name: "page",
        title: "wasm build and its size budget",
        quick: false,
        place: Place::Beside,
        run: page_step,
    },
    Step {
        name: "perfetto",
        title: "repaired traces in the real Perfetto",
        quick: false,
        place: Place::Cargo,
        run: perfetto_step,
    },
    Step {
        name: "browser",
        title: "the page in Chromium",
        quick: false,
        place: Place::Beside,
        run: browser_step,
    },
    Step {
        name: "firefox",
        title: "the page in Firefox",
        quick: false,
        place: Place::Beside,
        run: firefox_step,
    },
    Step {
        name: "wasm",
        title: "tests of the worker's crates as wasm under Node",
        quick: false,
        place: Place::Beside,
        run: wasm_step,
    },
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
    let program = workspace.program("kinetoscope");
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
    let program = workspace.program("kinetoscope");
    // Builds the current sources; after the page check this takes a second.
    let page = workspace.tested_page();
    page::build(workspace, &page)?;
    let environment = [("KINETOSCOPE_CLI", &*program), ("KINETOSCOPE_PAGE", &*page), browser];
    Ok(node::run_tests(workspace, &node, group, &environment)?)
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
    if let Some(other) = Beside::here() {
        return run_beside(workspace, &steps, &other);
    }
    let meter = Meter::start();
    tally::clear(workspace)?;
    let done = run_all(workspace, &steps)?;
    Ok(summary(workspace, selection, &done, &steps, &meter.read()))
}

/// Runs the checks: the first ones, then those of the page and of wasm beside the others, until one fails.
fn run_all(workspace: &Workspace, steps: &[&Step]) -> Result<Vec<Done>> {
    let (first, rest): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|step| step.place == Place::First);
    let mut done = Vec::new();
    if !run_in_order(workspace, &first, &mut done, || Ok(false))? {
        return Ok(done);
    }
    let (others, cargo): (Vec<&Step>, Vec<&Step>) =
        rest.iter().partition(|step| step.place == Place::Beside);
    let is_beside = !others.is_empty() && !cargo.is_empty();
    prepare(workspace, &rest, is_beside)?;
    if !is_beside {
        run_in_order(workspace, &rest, &mut done, || Ok(false))?;
        return Ok(done);
    }
    let names: Vec<&str> = others.iter().map(|step| step.name).collect();
    let running = beside::start(workspace, &names)?;
    let one_failed = || Ok(running.results()?.iter().any(ends));
    if !run_in_order(workspace, &cargo, &mut done, one_failed)? {
        running.stop()?;
    }
    let (results, passed) = running.finish()?;
    add_results(&mut done, results, &names, passed);
    Ok(done)
}

/// Adds the results of the steps `names` that another process ran. `passed`: whether it says that all did. If it does not, and none of its
/// steps is said to have failed, it ended by itself, and has said nothing of the step that it was at.
fn add_results(done: &mut Vec<Done>, results: Vec<Done>, names: &[&str], passed: bool) {
    let has = |name: &&&str| results.iter().any(|one| one.step == **name);
    let at = names.iter().find(|name| !has(name)).or(names.last()).filter(|_| !passed);
    let ended = at.filter(|_| !results.iter().any(ends)).map(|name| Done {
        step: (*name).to_owned(),
        outcome: Outcome::Failed,
        cost: Cost::default(),
    });
    done.extend(results);
    done.extend(ended);
}

/// Installs, builds and writes what several steps use: two of them must not do it at the same time.
fn prepare(workspace: &Workspace, steps: &[&Step], is_beside: bool) -> Result<()> {
    let has = |name: &str| steps.iter().any(|step| step.name == name);
    let tests = ["perfetto", "browser", "firefox"].iter().any(|name| has(name));
    // (Whoever needs what cannot be installed says so.)
    if tests || has("wasm") {
        let _ = node::ensure(workspace);
    }
    if has("browser") {
        let _ = browser::ensure();
    }
    if has("firefox") {
        let _ = browser::ensure_firefox();
    }
    // (Beside others, the build of the page finds its own program built.)
    if tests || is_beside {
        checks::programs(workspace)?;
    }
    if tests { checks::write_samples(workspace) } else { Ok(()) }
}

/// Runs these checks one after the other, until one fails or `must_stop`. True if all ran.
fn run_in_order(
    workspace: &Workspace,
    steps: &[&Step],
    done: &mut Vec<Done>,
    must_stop: impl Fn() -> Result<bool>,
) -> Result<bool> {
    for step in steps {
        if must_stop()? {
            return Ok(false);
        }
        let one = run(workspace, step);
        let end = ends(&one);
        done.push(one);
        if end {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run(workspace: &Workspace, step: &Step) -> Done {
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
    Done { step: step.name.to_owned(), outcome, cost: meter.read() }
}

/// True if no further check is run after this one.
fn ends(done: &Done) -> bool {
    matches!(done.outcome, Outcome::Failed)
        || (matches!(done.outcome, Outcome::Missing(_)) && is_ci())
}

/// Runs checks for the process that has started this one.
fn run_beside(workspace: &Workspace, steps: &[&Step], other: &Beside) -> Result<ExitCode> {
    for step in steps {
        let done = run(workspace, step);
        // (Its tests have stopped early, too: what it found is not known.)
        if other.must_stop() {
            break;
        }
        other.report(&done)?;
        if ends(&done) {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
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
    done: &[Done],
    steps: &[&Step],
    total: &Cost,
) -> ExitCode {
    println!("\n==== summary");
    let (mut n_passed, mut n_failed, mut n_missing) = (0, 0, 0);
    for Done { step, outcome, cost } in done {
        let (word, note) = match outcome {
            Outcome::Passed => {
                n_passed += 1;
                ("passed", String::new())
            }
            Outcome::Failed => {
                n_failed += 1;
                ("FAILED", format!("   run it alone: cargo xtask test --only {step}"))
            }
            Outcome::Missing(what) => {
                n_missing += 1;
                ("NOT RUN", format!("   {what}"))
            }
        };
        println!("{word:<8} {step:<12} {cost}{note}");
    }
    println!("{:<8} {:<12} {total}", "", "total");
    let left: Vec<&str> = steps
        .iter()
        .map(|step| step.name)
        .filter(|name| done.iter().all(|done| done.step != *name))
        .collect();
    if !left.is_empty() {
        println!("not run, or stopped: {}", left.join(", "));
        // (Whoever stopped them has failed. If nobody has, it is not known what they would have found.)
        n_failed = n_failed.max(1);
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

#[cfg(test)]
mod tests {
    use super::{Cost, Done, Outcome, add_results};

    fn done(step: &str, outcome: Outcome) -> Done {
        Done { step: step.to_owned(), outcome, cost: Cost::default() }
    }

    fn failed(results: Vec<Done>, passed: bool) -> Vec<String> {
        let mut all = Vec::new();
        add_results(&mut all, results, &["page", "browser"], passed);
        let failed = all.into_iter().filter(|one| one.outcome == Outcome::Failed);
        failed.map(|one| one.step).collect()
    }

    #[test]
    fn a_process_that_ends_by_itself_has_failed_at_a_step() {
        let passed = |step| done(step, Outcome::Passed);
        assert_eq!(failed(vec![passed("page")], false), ["browser"]);
        assert_eq!(failed(Vec::new(), false), ["page"]);
        assert_eq!(failed(vec![passed("page"), passed("browser")], false), ["browser"]);
        assert_eq!(failed(vec![done("page", Outcome::Failed)], false), ["page"], "it says so");
        assert!(failed(vec![passed("page")], true).is_empty(), "it was asked to stop");
    }
}
