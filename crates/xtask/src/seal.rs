//! The last step of every build of the page: names every file by its content, so that builds never mix.
//!
//! Trunk names the app's files by content, but not the workers' and the copied ones. After a deployment a browser could
//! then run a new app with an old worker. This step renames these files too, and gives the service worker the list of
//! all files of the build, with their digests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::digest::{Digest, files};
use crate::imports::shorten;
use crate::reorder::reordered;
use crate::styles;
use crate::wasm::without_names;
use crate::workspace::{Workspace, read};

/// Files with fixed names, and their attributes in index.html.
const UNHASHED: &[(&str, &str)] = &[
    ("manifest.json", "href"),
    ("boot.js", "src"),
    ("late.js", "data-late"),
    ("chart.js", "data-chart"),
    ("worker.js", "data-worker"),
    ("worker_bg.wasm", "data-worker-wasm"),
    ("triage.js", "data-triage"),
    ("triage_bg.wasm", "data-triage-wasm"),
    ("snapshot.js", "data-snapshot"),
    ("snapshot_bg.wasm", "data-snapshot-wasm"),
    ("lanes.js", "data-lanes"),
    ("lanes_bg.wasm", "data-lanes-wasm"),
];
/// The files of the app begin so.
const APP: &str = "app-";
const UNSEALED: &str = r#"<meta name="build" content="dev""#;

/// Seals the folder from the environment of Trunk's hook.
pub fn from_hook(workspace: &Workspace) -> Result<()> {
    let folder = env::var_os("TRUNK_STAGING_DIR");
    let folder = PathBuf::from(folder.context("this is Trunk's hook: run trunk build")?);
    if env::var("TRUNK_PROFILE").is_ok_and(|profile| profile == "release") {
        make_small(&folder)?;
    }
    seal(&folder, &read(&workspace.root.join("web/sw.js"))?)
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

fn seal(folder: &Path, service_worker: &str) -> Result<()> {
    let page_path = folder.join("index.html");
    let mut page = styles::join(folder, &read(&page_path)?)?;
    for (file, attribute) in UNHASHED {
        let name = hashed_name(file, &Digest::of_file(&folder.join(file))?);
        page = replace_once(
            &page,
            &format!("{attribute}=\"{file}\""),
            &format!("{attribute}=\"{name}\""),
        )?;
        fs::rename(folder.join(file), folder.join(&name))
            .with_context(|| format!("cannot rename {file}"))?;
    }
    // Their names by Trunk are of their contents before they were made small.
    for file in files(folder)?.iter().filter(|file| file.starts_with(APP)) {
        let (_, end) = file.split_at(file.find(['_', '.']).unwrap_or(file.len()));
        let name = format!("{APP}{}{end}", Digest::of_file(&folder.join(file))?.name());
        ensure!(page.contains(file.as_str()), "index.html has no link to {file}");
        page = page.replace(file.as_str(), &name);
        fs::rename(folder.join(file), folder.join(&name))
            .with_context(|| format!("cannot rename {file}"))?;
    }
    fs::write(&page_path, &page)?;

    // The build's name is a digest of all files, so it is computed before it is written into the page.
    let build = Digest::of(listing(folder)?.as_bytes()).name();
    page = replace_once(&page, UNSEALED, &UNSEALED.replace("dev", &build))?;
    fs::write(&page_path, &page)?;

    let service_worker = replace_once(service_worker, "\"__BUILD__\"", &format!("\"{build}\""))?;
    let service_worker = replace_once(&service_worker, "__FILES__", &listing(folder)?)?;
    fs::write(folder.join("sw.js"), service_worker)?;
    Ok(())
}

/// `[["path","digest"],..]`: JSON, and so JavaScript.
fn listing(folder: &Path) -> Result<String> {
    let mut rows = Vec::new();
    for file in files(folder)? {
        let digest = Digest::of_file(&folder.join(&file))?;
        rows.push(serde_json::json!([file, digest.integrity()]));
    }
    Ok(serde_json::Value::from(rows).to_string())
}

fn hashed_name(file: &str, digest: &Digest) -> String {
    // worker_bg.wasm -> worker-0123456789abcdef_bg.wasm, as Trunk names the app's.
    let stem_end = file.find(['_', '.']).unwrap_or(file.len());
    let (stem, rest) = file.split_at(stem_end);
    format!("{stem}-{}{rest}", digest.name())
}

fn replace_once(text: &str, from: &str, to: &str) -> Result<String> {
    let n = text.matches(from).count();
    ensure!(n == 1, "{from} occurs {n} times; the build expects it once");
    Ok(text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::{Digest, hashed_name, replace_once, seal};
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const PAGE: &str = r#"<meta name="build" content="dev" /><link rel="manifest" href="manifest.json" /><!-- styles --><link href="./a.css" /><!-- /styles --><script src="boot.js" data-late="late.js" data-chart="chart.js" data-js="./app-0f.js" data-worker="worker.js" data-worker-wasm="worker_bg.wasm" data-triage="triage.js" data-triage-wasm="triage_bg.wasm" data-snapshot="snapshot.js" data-snapshot-wasm="snapshot_bg.wasm" data-lanes="lanes.js" data-lanes-wasm="lanes_bg.wasm"></script>"#;
    const SERVICE_WORKER: &str = r#"const BUILD = "__BUILD__"; const FILES = new Map(__FILES__);"#;

    /// Tests run concurrently, each in its own folder.
    static N_FOLDERS: AtomicUsize = AtomicUsize::new(0);

    fn sealed(worker: &str) -> (Vec<String>, String, String) {
        let n = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("kinetoscope-seal-{}-{n}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("index.html", PAGE),
            ("manifest.json", "{}"),
            ("boot.js", "b"),
            ("late.js", "l"),
            ("chart.js", "c"),
            ("a.css", "p{}"),
            ("app-0f.js", "a"),
            ("worker.js", worker),
            ("worker_bg.wasm", "w"),
            ("triage.js", "t"),
            ("triage_bg.wasm", "u"),
            ("snapshot.js", "m"),
            ("snapshot_bg.wasm", "n"),
            ("lanes.js", "o"),
            ("lanes_bg.wasm", "p"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        seal(&folder, SERVICE_WORKER).unwrap();
        let listed = super::files(&folder).unwrap();
        let page = fs::read_to_string(folder.join("index.html")).unwrap();
        let service_worker = fs::read_to_string(folder.join("sw.js")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        (listed, page, service_worker)
    }

    #[test]
    fn every_file_but_the_entries_is_named_by_its_content() {
        let (listed, page, service_worker) = sealed("one");
        assert_eq!(listed.len(), 16, "{listed:?}");
        for name in listed.iter().filter(|name| !["index.html", "sw.js"].contains(&name.as_str())) {
            assert!(name.contains('-'), "{name}");
            assert!(page.contains(&format!("{name}\"")), "{page}");
            assert!(service_worker.contains(&format!("[\"{name}\",\"sha256-")), "{service_worker}");
        }
        // The service worker caches the page as it is served.
        assert!(service_worker.contains(&Digest::of(page.as_bytes()).integrity()));
    }

    #[test]
    fn another_worker_is_another_build() {
        assert_eq!(sealed("one"), sealed("one"));
        let (one, two) = (sealed("one"), sealed("two"));
        assert_ne!(one.1, two.1);
        assert_ne!(one.2, two.2);
    }

    #[test]
    fn names_keep_their_ending() {
        let digest = Digest::of(b"");
        assert_eq!(hashed_name("worker_bg.wasm", &digest), "worker-e3b0c44298fc1c14_bg.wasm");
        assert_eq!(hashed_name("boot.js", &digest), "boot-e3b0c44298fc1c14.js");
    }

    #[test]
    fn a_page_that_is_not_as_expected_is_an_error() {
        assert!(replace_once("a", "b", "c").is_err());
        assert!(replace_once("bb", "b", "c").is_err());
    }
}
