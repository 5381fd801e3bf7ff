//! Checks the dependencies between crates against a table, which docs/architecture.md also has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::circles;
use crate::exports;
use crate::parts;
use crate::shell;
use crate::workspace::{Workspace, read};

/// A crate of the workspace and the crates of the workspace that it may use. Any other dependency is an error.
const LAYERS: &[Layer] = &[
    Layer { name: "trace", uses: &[], kind: Kind::Core },
    Layer { name: "scan", uses: &[], kind: Kind::Core },
    Layer { name: "catalog", uses: &[], kind: Kind::Core },
    Layer { name: "report", uses: &[], kind: Kind::Core },
    Layer { name: "scene", uses: &["report"], kind: Kind::Core },
    Layer { name: "dialect", uses: &["trace"], kind: Kind::Core },
    Layer { name: "ingest", uses: &["trace", "dialect"], kind: Kind::Core },
    Layer { name: "decode", uses: &["scan", "trace", "dialect", "ingest"], kind: Kind::Core },
    Layer { name: "repair", uses: &["scan", "trace", "dialect"], kind: Kind::Core },
    Layer { name: "snapshot", uses: &["scan", "ingest", "report"], kind: Kind::Core },
    Layer { name: "timeline", uses: &["trace", "dialect", "catalog", "report"], kind: Kind::Core },
    Layer {
        name: "lanes",
        uses: &["trace", "dialect", "catalog", "report", "timeline"],
        kind: Kind::Core,
    },
    Layer {
        name: "analysis",
        uses: &["trace", "dialect", "catalog", "report", "timeline"],
        kind: Kind::Core,
    },
    Layer { name: "wall", uses: &["trace", "dialect", "catalog", "timeline"], kind: Kind::Core },
    Layer {
        name: "triage",
        uses: &["trace", "dialect", "catalog", "report", "timeline", "analysis", "host", "wall"],
        kind: Kind::Core,
    },
    Layer {
        name: "host",
        uses: &["trace", "dialect", "catalog", "report", "timeline"],
        kind: Kind::Core,
    },
    Layer {
        name: "ranks",
        uses: &["trace", "dialect", "report", "timeline", "host"],
        kind: Kind::Core,
    },
    Layer {
        name: "diagnosis",
        uses: &[
            "trace", "dialect", "catalog", "report", "timeline", "host", "triage", "ranks", "wall",
        ],
        kind: Kind::Core,
    },
    Layer {
        name: "joint",
        uses: &["trace", "report", "timeline", "host", "snapshot"],
        kind: Kind::Core,
    },
    Layer {
        name: "repaired",
        uses: &["trace", "scan", "ingest", "decode", "catalog", "report", "repair"],
        kind: Kind::Core,
    },
    Layer {
        name: "artifacts",
        uses: &[
            "trace",
            "decode",
            "catalog",
            "report",
            "timeline",
            "analysis",
            "triage",
            "host",
            "ranks",
            "diagnosis",
            "snapshot",
            "joint",
            "repair",
            "repaired",
        ],
        kind: Kind::Core,
    },
    // The facade: it only names what the crates above have.
    Layer {
        name: "kinetoscope",
        uses: &[
            "trace",
            "ingest",
            "decode",
            "catalog",
            "report",
            "timeline",
            "analysis",
            "triage",
            "host",
            "ranks",
            "diagnosis",
            "repair",
            "repaired",
            "artifacts",
            "snapshot",
            "joint",
            "lanes",
            "scene",
        ],
        kind: Kind::Core,
    },
    // The app uses types of report and analysis; it holds no Trace, so it cannot run an analysis.
    Layer { name: "web", uses: &["kinetoscope", "report", "analysis"], kind: Kind::Page },
    Layer { name: "bench", uses: &["kinetoscope"], kind: Kind::Page },
    Layer { name: "cli", uses: &["kinetoscope"], kind: Kind::Host },
    Layer { name: "testkit", uses: &[], kind: Kind::Host },
    Layer { name: "fixture", uses: &["trace", "dialect"], kind: Kind::Host },
    Layer { name: "glue", uses: &[], kind: Kind::Host },
    Layer { name: "xtask", uses: &[], kind: Kind::Host },
];

/// Crates that tests of any crate may also use.
const TESTS_USE: &[&str] = &["testkit", "fixture", "decode"];

struct Layer {
    name: &'static str,
    uses: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Pure: runs in a browser tab, on a server and under a fuzzer alike.
    Core,
    /// May use the browser.
    Page,
    /// May use files, clocks, the environment and the terminal.
    Host,
}

/// Packages for the browser.
const BROWSER_PACKAGES: &[&str] =
    &["web-sys", "js-sys", "wasm-bindgen", "wasm-bindgen-futures", "yew", "gloo"];
/// Packages for programs with a terminal.
const HOST_PACKAGES: &[&str] = &["anyhow", "clap", "indicatif", "signal-hook"];
/// Modules for files, clocks and the environment; analyses of the same bytes must always give the same result.
const HOST_MODULES: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "time::Instant",
];

/// Fails with every breach.
pub fn check(workspace: &Workspace) -> Result<()> {
    let metadata = shell::output(shell::cargo().current_dir(&workspace.root).args([
        "metadata",
        "--locked",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let members = members(&metadata)?;
    let mut breaches = dependency_breaches(&members);
    let named = named(workspace, &members)?;
    for layer in LAYERS {
        if layer.kind == Kind::Core {
            breaches.extend(browser_breaches(workspace, layer.name)?);
        }
        if layer.kind != Kind::Host
            && let Some(member) = members.get(layer.name)
        {
            let folder = Path::new(&member.folder).join("src");
            let files = product_files(&folder)?;
            source_breaches(workspace, &folder, &files, &mut breaches);
            if layer.kind == Kind::Core {
                let circles = circles::circles(&files, "lib.rs").into_iter();
                breaches.extend(circles.map(|circle| format!("{}: {circle}", layer.name)));
                let others = named.iter().filter(|(of, _)| *of != layer.name);
                let others: Vec<_> = others.map(|(_, words)| words).collect();
                let unused = exports::breaches(&files, &others).into_iter();
                breaches.extend(unused.map(|one| format!("{}: {one}", layer.name)));
            }
            if layer.name == "web" {
                breaches.extend(parts::breaches(&files));
            }
        }
    }
    for breach in &breaches {
        println!("{breach}");
    }
    if !breaches.is_empty() {
        bail!("{} dependencies that the layers do not allow", breaches.len());
    }
    println!(
        "{} crates have only allowed dependencies, no circles of modules, and export no function that no other uses",
        members.len()
    );
    Ok(())
}

/// A package of the workspace.
struct Member {
    folder: String,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    for_tests: bool,
}

fn members(metadata: &Value) -> Result<BTreeMap<String, Member>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let dependencies = dependencies.filter_map(|dependency| {
                let for_tests = dependency["kind"].as_str() == Some("dev");
                Some(Dependency { name: text(&dependency["name"])?, for_tests })
            });
            let manifest = text(&package["manifest_path"]).context("a package has no manifest")?;
            let folder = Path::new(&manifest).parent().context("a manifest has no folder")?;
            let member = Member {
                folder: folder.to_string_lossy().into_owned(),
                dependencies: dependencies.collect(),
            };
            Ok((text(&package["name"]).context("a package has no name")?, member))
        })
        .collect()
}

/// The words in the code of each package, of its integration tests (they see what other packages see), and of the fuzz targets.
fn named(
    workspace: &Workspace,
    members: &BTreeMap<String, Member>,
) -> Result<Vec<(String, BTreeSet<String>)>> {
    let mut found = Vec::new();
    let mut folders = vec![("fuzz".to_owned(), workspace.root.join("fuzz/fuzz_targets"))];
    for (name, member) in members {
        folders.push((name.clone(), Path::new(&member.folder).join("src")));
        // (Those of the page are not in Rust, and beside thousands of files of Node.)
        let beside: &[&str] = if name == "web" { &[] } else { &["tests", "examples", "benches"] };
        for beside in beside {
            let folder = Path::new(&member.folder).join(beside);
            folders.push((format!("{name}/{beside}"), folder));
        }
    }
    for (name, folder) in folders.into_iter().filter(|(_, folder)| folder.is_dir()) {
        let files = crate::digest::files(&folder)?.into_iter();
        let sources = files.filter(|file| file.ends_with(".rs"));
        let sources: Vec<String> =
            sources.map(|file| read(&folder.join(file))).collect::<Result<_>>()?;
        found.push((name, exports::words(sources)));
    }
    Ok(found)
}

fn dependency_breaches(members: &BTreeMap<String, Member>) -> Vec<String> {
    let mut breaches = Vec::new();
    let known: BTreeSet<&str> = LAYERS.iter().map(|layer| layer.name).collect();
    for name in members.keys().filter(|name| !known.contains(name.as_str())) {
        breaches.push(format!("{name}: has no row in crates/xtask/src/layers.rs"));
    }
    for layer in LAYERS {
        let Some(member) = members.get(layer.name) else {
            breaches.push(format!(
                "{}: has a row in crates/xtask/src/layers.rs but is not a package",
                layer.name
            ));
            continue;
        };
        for dependency in &member.dependencies {
            let name = dependency.name.as_str();
            let ours = members.contains_key(name);
            let allowed =
                layer.uses.contains(&name) || (dependency.for_tests && TESTS_USE.contains(&name));
            if ours && !allowed {
                breaches.push(format!("{}: may not use {name}", layer.name));
            }
            if BROWSER_PACKAGES.contains(&name) && layer.kind != Kind::Page {
                breaches.push(format!("{}: {name} belongs under web/", layer.name));
            }
            if HOST_PACKAGES.contains(&name) && layer.kind != Kind::Host && !dependency.for_tests {
                breaches.push(format!("{}: {name} belongs in cli or xtask", layer.name));
            }
        }
    }
    breaches
}

/// A package of the core must not depend on a browser package indirectly either.
fn browser_breaches(workspace: &Workspace, name: &str) -> Result<Vec<String>> {
    let mut tree = shell::cargo();
    tree.current_dir(&workspace.root).args([
        "tree",
        "--locked",
        "--package",
        name,
        "--edges",
        "normal,build",
    ]);
    tree.args(["--target", "wasm32-unknown-unknown", "--prefix", "none", "--format", "{p}"]);
    let tree = shell::output(&mut tree)?;
    let used: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let reached = BROWSER_PACKAGES.iter().filter(|package| used.contains(*package));
    Ok(reached
        .map(|package| format!("{name}: reaches {package} through its dependencies"))
        .collect())
}

/// The product code of each file of a crate, by its path below `folder`.
fn product_files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let files = crate::digest::files(folder)?.into_iter();
    let sources = files.filter(|file| file.ends_with(".rs") && !is_test_file(file));
    sources.map(|file| Ok((file.clone(), product(&read(&folder.join(&file))?)))).collect()
}

/// The product code of a file, each line at its place: no comments, and no tests, which are at its end.
fn product(source: &str) -> String {
    let mut lines = source.lines().peekable();
    let mut product = String::new();
    while let Some(line) = lines.next() {
        let is_for_tests = line.trim() == "#[cfg(test)]";
        if is_for_tests && lines.peek().is_some_and(|next| next.trim_end().ends_with('{')) {
            break;
        }
        if !line.trim_start().starts_with("//") {
            product.push_str(line);
        }
        product.push('\n');
    }
    product
}

fn source_breaches(
    workspace: &Workspace,
    folder: &Path,
    files: &BTreeMap<String, String>,
    breaches: &mut Vec<String>,
) {
    for (file, source) in files {
        let path = folder.join(file);
        let shown = path.strip_prefix(&workspace.root).unwrap_or(&path).display().to_string();
        for (number, module) in host_uses(source) {
            breaches.push(format!("{shown}:{number}: {module} belongs in cli or xtask"));
        }
    }
}

fn is_test_file(file: &str) -> bool {
    file.split('/').any(|name| matches!(name, "tests" | "tests.rs"))
}

/// Lines of product code that name one of [`HOST_MODULES`]. Tests may read files.
fn host_uses(product: &str) -> Vec<(usize, &'static str)> {
    product
        .lines()
        .enumerate()
        .flat_map(|(at, line)| {
            HOST_MODULES
                .iter()
                .filter(move |module| line.contains(**module))
                .map(move |module| (at + 1, *module))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, Value, dependency_breaches, host_uses, members, product};

    fn metadata(dependency: &str, kind: &str) -> Value {
        let package = |name: &str, dependencies: Value| serde_json::json!({ "name": name, "manifest_path": format!("/{name}/Cargo.toml"), "dependencies": dependencies });
        let packages: Vec<Value> = LAYERS
            .iter()
            .map(|layer| {
                let own = serde_json::json!([{ "name": dependency, "kind": kind }]);
                package(layer.name, if layer.name == "scan" { own } else { serde_json::json!([]) })
            })
            .collect();
        serde_json::json!({ "packages": packages })
    }

    fn breaches(dependency: &str, kind: &str) -> Vec<String> {
        dependency_breaches(&members(&metadata(dependency, kind)).unwrap())
    }

    #[test]
    fn a_layer_may_not_use_what_its_row_does_not_name() {
        assert!(breaches("memchr", "normal").is_empty());
        assert_eq!(breaches("trace", "normal"), ["scan: may not use trace"]);
        assert_eq!(breaches("web-sys", "normal"), ["scan: web-sys belongs under web/"]);
        assert_eq!(breaches("anyhow", "normal"), ["scan: anyhow belongs in cli or xtask"]);
        assert!(breaches("testkit", "dev").is_empty());
    }

    #[test]
    fn product_code_may_not_read_the_world() {
        let source = "//! std::fs in words\n#[cfg(test)]\nmod tests;\nuse std::time::Instant;\nlet a = std::fs::read(p);\n#[cfg(test)]\nmod more {\n use std::fs; }\n";
        assert_eq!(host_uses(&product(source)), [(4, "time::Instant"), (5, "std::fs")]);
    }
}
