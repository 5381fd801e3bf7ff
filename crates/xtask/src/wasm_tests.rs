//! `cargo xtask test --only wasm`: the tests of the crates that a worker is made of, as wasm under Node. They find what only 32
//! bits break (a size in a `usize`), and what the instructions of SIMD or the formatting of floats could do otherwise.
//!
//! The target is wasm32-wasip1: that of the page has no way to print or to read a file. Both have the same instructions, checked
//! here, so that a crate without files, clocks and threads is the same code in both (docs/adr/0024-wasm-tests-under-wasi.md).

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;
use crate::tools;
use crate::workspace::{Workspace, read};

const TARGET: &str = "wasm32-wasip1";

/// From bytes to tables and back, with the crates whose figures are sizes.
const PACKAGES: &[&str] = &[
    "trace", "scan", "dialect", "ingest", "decode", "report", "repair", "repaired", "timeline",
    "analysis", "snapshot", "lanes", "ranks",
];

/// Builds the tests and runs them.
pub fn run(workspace: &Workspace, node: &Path) -> Result<()> {
    tools::ensure_target(TARGET)?;
    let (page, tests) =
        (instructions(workspace, tools::PAGE_TARGET)?, instructions(workspace, TARGET)?);
    ensure!(page == tests, "the page has {page:?}, its tests {tests:?}: see .cargo/config.toml");
    let programs = programs(workspace)?;
    let mut run = Command::new(node);
    run.current_dir(workspace.root.join("web/tests")).args(["--no-warnings", "wasm.mjs"]);
    // A fixed seed, as natively.
    run.env("PROPTEST_RNG_SEED", "1")
        .arg(&workspace.root)
        .args(programs.into_iter().flat_map(|(source, program)| [source, program]));
    // The command is not printed: it names each of the programs.
    let status = run.status().context("cannot start node")?;
    ensure!(status.success(), "tests failed as wasm ({status})");
    Ok(())
}

/// The instructions that programs of a target may use, and the size of an address, with the flags of .cargo/config.toml.
fn instructions(workspace: &Workspace, target: &str) -> Result<Vec<String>> {
    let config = read(&workspace.root.join(".cargo/config.toml"))?;
    let flags = flags(&config, target)
        .with_context(|| format!(".cargo/config.toml has no rustflags for {target}"))?;
    let mut rustc = Command::new("rustc");
    rustc.current_dir(&workspace.root).args(["--print", "cfg", "--target", target]).args(flags);
    let settings = shell::output(&mut rustc)?;
    let kept = ["target_feature", "target_pointer_width", "target_endian"];
    let lines = settings.lines().filter(|line| kept.iter().any(|start| line.starts_with(start)));
    // How the library of C is linked is no instruction.
    let lines = lines.filter(|line| !line.contains("crt-static"));
    Ok(lines.map(str::to_owned).collect())
}

/// The flags of a target: a list of strings in one line.
fn flags<'a>(config: &'a str, target: &str) -> Option<Vec<&'a str>> {
    let (_, table) = config.split_once(&format!("[target.{target}]\n"))?;
    let line = table.lines().next()?.strip_prefix("rustflags = ")?;
    Some(line.split('"').skip(1).step_by(2).collect())
}

/// Builds the tests: source and program of each.
fn programs(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let mut build = shell::cargo();
    build.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    // RUSTFLAGS would replace the flags of .cargo/config.toml, SIMD included.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    build.args(["test", "--locked", "--no-run", "--lib", "--tests", "--target", TARGET]);
    build.args(["--message-format", "json-render-diagnostics"]);
    for package in PACKAGES {
        build.args(["--package", package]);
    }
    let messages = shell::output(&mut build)?;
    let mut programs: Vec<(String, String)> =
        messages.lines().filter_map(|message| program(message, &workspace.root)).collect();
    programs.sort();
    ensure!(!programs.is_empty(), "cargo built no test program");
    Ok(programs)
}

/// The test program that a message of cargo is about, after its source.
fn program(message: &str, root: &Path) -> Option<(String, String)> {
    let message: Value = serde_json::from_str(message).ok()?;
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let source = source.strip_prefix(root).unwrap_or(source);
    Some((source.display().to_string(), message["executable"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{flags, program};

    #[test]
    fn flags_are_those_of_the_target() {
        let config =
            "[target.a]\nrustflags = [\"-C\", \"x\"]\n\n[target.b]\nrustflags = [\"-O\"]\n";
        assert_eq!(flags(config, "a"), Some(vec!["-C", "x"]));
        assert_eq!(flags(config, "b"), Some(vec!["-O"]));
        assert_eq!(flags(config, "c"), None);
    }

    #[test]
    fn test_programs_are_taken_and_libraries_not() {
        let of = |is_test: bool, executable: &str| {
            let source = r#"{"src_path":"/clone/a/src/lib.rs"}"#;
            let message = format!(
                r#"{{"profile":{{"test":{is_test}}},"target":{source},"executable":{executable}}}"#
            );
            program(&message, Path::new("/clone"))
        };
        let test = ("a/src/lib.rs".to_owned(), "/t/a-1.wasm".to_owned());
        assert_eq!(of(true, r#""/t/a-1.wasm""#), Some(test));
        assert_eq!(of(false, "null"), None);
        assert_eq!(program(r#"{"reason":"build-finished"}"#, Path::new("/clone")), None);
    }
}
