//! Checks that every repository file must pass.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell;
use crate::workspace::{Workspace, read};

/// Lines of a file of code, and of any other.
const MAX_CODE_LINES: usize = 500;
const MAX_LINES: usize = 800;
/// How the names of files of code end.
const CODE: &[&str] = &[".rs", ".mjs", ".js", ".css", ".html"];
/// Files that may be long: tables, tests, generated files and licences.
const MAY_BE_LONG: &[&str] = &[
    "/tests/",
    "/tests.rs",
    ".test.mjs",
    "/table.rs",
    "Cargo.lock",
    "package-lock.json",
    "LICENSE",
    "/golden/",
];

/// A test of the page that calls this waits for a time, however busy the machine is.
const WAIT: &str = ".waitForTimeout(";

/// Prints every fault, and fails if there is one.
pub fn check(workspace: &Workspace) -> Result<()> {
    let listing =
        shell::output(Command::new("git").current_dir(&workspace.root).args(["ls-files", "-z"]))?;
    let files: Vec<&str> = listing.split('\0').filter(|file| !file.is_empty()).collect();
    let mut faults = Vec::new();
    let own_places = own_places(workspace);
    for file in &files {
        let path = workspace.root.join(file);
        // Deleted but not yet committed, or not text.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        faults.extend(text_faults(file, &text, &own_places));
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !files.contains(&licence) {
            faults.push(format!("{licence}: is missing"));
        }
    }
    for manifest in files.iter().filter(|file| is_member_manifest(file)) {
        let text = read(&workspace.root.join(manifest))?;
        for line in ["license.workspace = true", "[lints]\nworkspace = true"] {
            if !text.contains(line) {
                faults.push(format!("{manifest}: lacks {line:?}"));
            }
        }
    }
    let remedies = read(&workspace.root.join(REMEDIES))?;
    let is_test = |file: &str| file.ends_with("tests.rs") || file.contains("/tests/");
    let is_source = |file: &&&str| file.ends_with(".rs") && **file != REMEDIES && !is_test(file);
    let of_rust = files.iter().filter(is_source);
    let sources: Vec<String> =
        of_rust.filter_map(|file| fs::read_to_string(workspace.root.join(file)).ok()).collect();
    faults.extend(unoffered(&remedies, &sources));
    let toolchain = read(&workspace.root.join("rust-toolchain.toml"))?;
    faults.extend(toolchain_fault(&toolchain, &read(&workspace.root.join("Cargo.toml"))?));
    faults.extend(style_faults(&files, &read(&workspace.root.join("index.html"))?));
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!("{} faults", faults.len());
    }
    println!("{} files are in order", files.len());
    Ok(())
}

/// Everything that is advised.
const REMEDIES: &str = "crates/catalog/src/remedies/table.rs";

/// Remedies that no source names: they are never printed.
fn unoffered(remedies: &str, sources: &[String]) -> Vec<String> {
    let ids =
        remedies.lines().filter_map(|line| line.trim().strip_prefix("id: \"")?.strip_suffix("\","));
    let is_named = |id: &str| sources.iter().any(|text| text.contains(&format!("\"{id}\"")));
    let lost = ids.filter(|id| !is_named(id));
    lost.map(|id| format!("{REMEDIES}: nothing offers {id:?}")).collect()
}

/// Paths of this machine, which no file may name, because they are meaningless on another.
fn own_places(workspace: &Workspace) -> Vec<String> {
    let home = env::var_os("HOME").map(Into::into);
    let parent = workspace.root.parent().map(Path::to_owned);
    let places = [Some(workspace.root.clone()), parent, home].into_iter().flatten();
    // "/" alone would be everywhere.
    places
        .filter(|place| place.components().count() > 1)
        .map(|place| format!("{}/", place.display()))
        .collect()
}

fn text_faults(file: &str, text: &str, own_places: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let n_lines = text.lines().count();
    let is_code = CODE.iter().any(|end| file.ends_with(end));
    let most = if is_code { MAX_CODE_LINES } else { MAX_LINES };
    if n_lines > most && !MAY_BE_LONG.iter().any(|part| file.contains(part)) {
        faults.push(format!("{file}: {n_lines} lines, more than {most}"));
    }
    for (at, line) in text.lines().enumerate() {
        for place in own_places.iter().filter(|place| names_place(line, place)) {
            faults.push(format!("{file}:{}: names {place}, a place of this machine", at + 1));
        }
    }
    let waits = text.lines().enumerate().filter(|(_, line)| line.contains(WAIT));
    for (at, _) in waits.filter(|_| file.ends_with(".test.mjs")) {
        let instead =
            "`until` waits for what happens, `meanwhile` for what must not (web/tests/page.mjs)";
        faults.push(format!("{file}:{}: waits for a time: {instead}", at + 1));
    }
    if text.contains("\r\n") {
        faults.push(format!("{file}: has Windows line ends"));
    }
    faults
}

/// Whether `line` contains `place`, and not as the end of a longer path or word.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.as_bytes().get(at.wrapping_sub(1)).copied();
        !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.-/*~}>".contains(&byte))
    })
}

fn is_member_manifest(file: &str) -> bool {
    file == "web/Cargo.toml"
        || (file.starts_with("crates/")
            && file.matches('/').count() == 2
            && file.ends_with("/Cargo.toml"))
}

/// The compiler that checks the repository is the oldest that its manifests allow: a newer feature would go unnoticed.
fn toolchain_fault(toolchain: &str, manifest: &str) -> Option<String> {
    let value = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.map(|rest| rest.trim_end_matches('"').to_owned())
    };
    let (channel, oldest) = (value(toolchain, "channel"), value(manifest, "rust-version"));
    let agree = channel.as_ref().zip(oldest.as_ref()).is_some_and(|(channel, oldest)| {
        channel == oldest
            || channel.strip_prefix(&**oldest).is_some_and(|rest| rest.starts_with('.'))
    });
    (!agree).then(|| {
        format!(
            "rust-toolchain.toml: channel {channel:?}, but Cargo.toml has rust-version {oldest:?}"
        )
    })
}

/// A stylesheet without a link in the page would be unused; a link without the file stops the build.
fn style_faults(files: &[&str], page: &str) -> Vec<String> {
    let sheets = files.iter().filter(|file| file.starts_with("web/css/") && file.ends_with(".css"));
    sheets
        .filter(|sheet| !page.contains(&format!("href=\"{sheet}\"")))
        .map(|sheet| format!("{sheet}: index.html has no link to it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{style_faults, text_faults, toolchain_fault};

    #[test]
    fn a_remedy_that_nothing_offers_is_found() {
        let table = "        id: \"torch-compile\",\n        id: \"lost\",\n";
        let sources = ["const OFFERED: &[&str] = &[\"torch-compile\"];".to_owned()];
        let found = super::unoffered(table, &sources);
        assert_eq!(found, [format!("{}: nothing offers \"lost\"", super::REMEDIES)]);
    }

    #[test]
    fn files_are_short_unless_they_are_tables_or_tests() {
        let of = |file: &str, n: usize| text_faults(file, &"x\n".repeat(n), &[]).len();
        for (file, most) in [("crates/scan/src/lib.rs", 500), ("docs/formats.md", 800)] {
            assert_eq!((of(file, most), of(file, most + 1)), (0, 1), "{file}");
        }
        for file in [
            "crates/scan/src/tests.rs",
            "crates/scan/tests/all.rs",
            "crates/catalog/src/remedies/table.rs",
        ] {
            assert_eq!(of(file, 2000), 0, "{file}");
        }
        // A name that only ends like that of tests is one of code.
        assert_eq!(of("crates/scan/src/contests.rs", 501), 1);
    }

    #[test]
    fn places_of_this_machine_are_found_and_others_not() {
        let places = ["/builds/clone/".to_owned()];
        assert_eq!(text_faults("a.md", "see `/builds/clone/x`", &places).len(), 1);
        assert!(text_faults("a.md", "see my/builds/clone/x", &places).is_empty());
    }

    #[test]
    fn tests_of_the_page_wait_for_what_happens() {
        let line = "await page.waitForTimeout(300);";
        let found = text_faults("web/tests/dock.test.mjs", line, &[]);
        assert!(found.len() == 1 && found[0].starts_with("web/tests/dock.test.mjs:1: "));
        assert!(text_faults("web/tests/page.mjs", line, &[]).is_empty(), "which has `meanwhile`");
    }

    #[test]
    fn the_compiler_is_the_oldest_allowed() {
        let manifest = "rust-version = \"1.95\"\n";
        for (channel, agrees) in [
            ("1.95.0", true),
            ("1.95", true),
            ("1.96.0", false),
            ("1.950", false),
            ("stable", false),
        ] {
            let toolchain = format!("[toolchain]\nchannel = \"{channel}\"\n");
            assert_eq!(toolchain_fault(&toolchain, manifest).is_none(), agrees, "{channel}");
        }
    }

    #[test]
    fn every_style_sheet_is_linked() {
        let files = ["web/css/a.css", "web/css/b.css", "web/src/lib.rs"];
        let page = r#"<link rel="stylesheet" href="web/css/a.css" />"#;
        assert_eq!(style_faults(&files, page), ["web/css/b.css: index.html has no link to it"]);
    }
}
