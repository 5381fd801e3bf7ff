//! `cargo xtask`: builds, serves, checks and packs this repository.
//!
//! Architecture invariant: a machine with git, rustup and a package manager is enough. Every command installs what it
//! needs, outside the clone. If it cannot, it prints one line with the command to run. Nothing is skipped silently.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod bench;
mod beside;
mod browser;
mod checks;
mod circles;
mod contents;
mod digest;
mod dist;
mod exports;
mod glue;
mod hygiene;
mod imports;
mod layers;
mod node;
mod outcome;
mod page;
mod parts;
mod paths;
mod reorder;
mod seal;
mod serve;
mod shell;
mod size;
mod steps;
mod styles;
mod tally;
mod tools;
mod wasm;
mod wasm_tests;
mod watch;
mod workspace;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::page::Profile;
use crate::workspace::Workspace;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  serve [--port N] [--debug]   build the page and serve it on 127.0.0.1 (default port 8080); rebuilds on a change
  test [--quick] [--only NAME]... [--allow-missing] [--list]
                               run every check; --quick omits those that need the wasm build;
                               --only runs the named checks; --list lists them; --allow-missing
                               skips checks that cannot run
  dist                         build dist/kinetoscope/, a static folder for any web host and path, and its zip
  bench [--pairs|--snapshots|--host|--timeline|--hostile] [FILE]...
                               compare speed with Perfetto's on a trace, and measure memory; compare triage of pairs
                               with the SGLang skill's (--pairs: only this), and memory snapshots with Python
                               (--snapshots: only this); the CPU's figures with decoding (--host: only this); frames of the timeline with those of speedscope and of naive
                               drawing (--timeline: only this, and only if asked for); the repair of a million hostile events with that of an
                               ordinary file (--hostile: the same); fails if a target is missed
  pictures                     take the pictures of the documentation from the running page
  golden                       run the tests and write their output as the expected output
  layers                       check the dependencies between crates
  advisories                   check the dependencies for known faults; needs the network

Environment:
  KINETOSCOPE_TOOLS            the folder for cargo-deny (default: in the user's cache folder)
  KINETOSCOPE_SHARED           the corpus of real traces (default: ../shared next to the checkout)
  KINETOSCOPE_CHROMIUM         Chromium for the browser tests
  KINETOSCOPE_FIREFOX          Firefox for the tests in Firefox
  KINETOSCOPE_SKILL            the SGLang skill's analyze_llm_torch_profile.py, which bench then measures
  KINETOSCOPE_PYTHON           the interpreter for the skill (default: python3)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    if matches!(command.as_str(), "help" | "--help" | "-h") {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let workspace = Workspace::find()?;
    let done = match command.as_str() {
        "serve" => {
            let options = Options::parse(rest, &["--debug"], &["--port"])?;
            let port = options
                .value("--port")
                .map_or(Ok(8080), str::parse)
                .context("--port takes a number")?;
            let profile = if options.flag("--debug") { Profile::Debug } else { Profile::Release };
            serve::serve(&workspace, port, profile)
        }
        "test" => {
            let options =
                Options::parse(rest, &["--quick", "--allow-missing", "--list"], &["--only"])?;
            return steps::test(
                &workspace,
                &steps::Selection {
                    quick: options.flag("--quick"),
                    allow_missing: options.flag("--allow-missing"),
                    list: options.flag("--list"),
                    only: options.values("--only"),
                },
            );
        }
        "bench" => {
            let (options, files): (Vec<String>, Vec<String>) =
                rest.iter().cloned().partition(|argument| argument.starts_with('-'));
            let only = match options.first().map(String::as_str) {
                None => None,
                Some("--pairs") => Some(bench::Only::Pairs),
                Some("--snapshots") => Some(bench::Only::Snapshots),
                Some("--timeline") => Some(bench::Only::Timeline),
                Some("--hostile") => Some(bench::Only::Hostile),
                Some("--host") => Some(bench::Only::Host),
                Some(option) => bail!("unexpected argument {option:?}\n\n{USAGE}"),
            };
            let met = bench::bench(&workspace, &files, only)?;
            return Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        "dist" => Options::parse(rest, &[], &[]).and_then(|_| dist::dist(&workspace)),
        "pictures" => Options::parse(rest, &[], &[]).and_then(|_| node::pictures(&workspace)),
        "golden" => Options::parse(rest, &[], &[]).and_then(|_| checks::golden(&workspace)),
        "layers" => Options::parse(rest, &[], &[]).and_then(|_| layers::check(&workspace)),
        "advisories" => Options::parse(rest, &[], &[]).and_then(|_| checks::advisories(&workspace)),
        unknown => {
            eprint!("xtask: unknown command {unknown:?}\n\n{USAGE}");
            return Ok(ExitCode::from(2));
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The options of one command, in order: flags, and options with a value (`--port 1` or `--port=1`).
struct Options(Vec<(String, Option<String>)>);

impl Options {
    fn parse(arguments: &[String], flags: &[&str], valued: &[&str]) -> Result<Options> {
        let mut options = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            if flags.contains(&name) && inline.is_none() {
                options.push((name.to_owned(), None));
            } else if valued.contains(&name) {
                let value = inline.or_else(|| rest.next().cloned());
                options.push((
                    name.to_owned(),
                    Some(value.with_context(|| format!("{name} needs a value"))?),
                ));
            } else {
                bail!("unexpected argument {argument:?}\n\n{USAGE}");
            }
        }
        Ok(Options(options))
    }

    fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    fn values(&self, name: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(key, _)| key == name)
            .filter_map(|(_, value)| value.clone())
            .collect()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).and_then(|(_, value)| value.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Option<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words, &["--debug"], &["--port"]).ok()
    }

    #[test]
    fn values_come_inline_or_after() {
        assert_eq!(
            parse("--port 1").and_then(|o| o.value("--port").map(str::to_owned)).as_deref(),
            Some("1")
        );
        let both = parse("--port=1 --debug --port=2");
        assert!(
            both.as_ref().is_some_and(|o| o.flag("--debug") && o.values("--port") == ["1", "2"])
        );
        assert_eq!(both.as_ref().and_then(|o| o.value("--port")), Some("2"));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in ["--prot 1", "--port", "--debug=yes", "serve"] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
