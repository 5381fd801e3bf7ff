//! The last step of every build of the page: names every file by its content, so that builds never mix.
//!
//! After a deployment a browser could otherwise run a new app with an old worker. This step also gives the service worker the
//! list of all files of the build, with their digests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::contents::named;
use crate::digest::{Digest, files};

const UNSEALED: &str = r#"<meta name="build" content="dev""#;

/// Renames the files of `folder` that `page` names, and writes index.html and sw.js.
pub fn seal(folder: &Path, page: &str, service_worker: &str) -> Result<()> {
    let mut sealed = page.to_owned();
    for file in named(page) {
        let name = hashed_name(file, &Digest::of_file(&folder.join(file))?);
        sealed = sealed.replace(&format!("\"{file}\""), &format!("\"{name}\""));
        fs::rename(folder.join(file), folder.join(&name))
            .with_context(|| format!("cannot rename {file}"))?;
    }
    let page_path = folder.join("index.html");
    fs::write(&page_path, &sealed)?;

    // The build's name is a digest of all files, so it is computed before it is written into the page.
    let build = Digest::of(listing(folder)?.as_bytes()).name();
    sealed = replace_once(&sealed, UNSEALED, &UNSEALED.replace("dev", &build))?;
    fs::write(&page_path, &sealed)?;

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
    // worker_bg.wasm -> worker-0123456789abcdef_bg.wasm
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

    const PAGE: &str = r#"<meta name="build" content="dev" /><link rel="manifest" href="manifest.json" /><link href="./styles-0f.css" /><script src="boot.js" data-late="late.js" data-chart="chart.js" data-js="app.js" data-wasm="app_bg.wasm" data-worker="worker.js" data-worker-wasm="worker_bg.wasm" data-triage="triage.js" data-triage-wasm="triage_bg.wasm" data-snapshot="snapshot.js" data-snapshot-wasm="snapshot_bg.wasm" data-lanes="lanes.js" data-lanes-wasm="lanes_bg.wasm"></script><link rel="modulepreload" href="app.js" />"#;
    const SERVICE_WORKER: &str = r#"const BUILD = "__BUILD__"; const FILES = new Map(__FILES__);"#;

    /// Tests run concurrently, each in its own folder.
    static N_FOLDERS: AtomicUsize = AtomicUsize::new(0);

    fn sealed(worker: &str) -> (Vec<String>, String, String) {
        let n = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("kinetoscope-seal-{}-{n}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("manifest.json", "{}"),
            ("boot.js", "b"),
            ("late.js", "l"),
            ("chart.js", "c"),
            ("styles-0f.css", "p{}"),
            ("app.js", "a"),
            ("app_bg.wasm", "x"),
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
        seal(&folder, PAGE, SERVICE_WORKER).unwrap();
        let listed = super::files(&folder).unwrap();
        let page = fs::read_to_string(folder.join("index.html")).unwrap();
        let service_worker = fs::read_to_string(folder.join("sw.js")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        (listed, page, service_worker)
    }

    #[test]
    fn every_file_but_the_entries_is_named_by_its_content() {
        let (listed, page, service_worker) = sealed("one");
        assert_eq!(listed.len(), 17, "{listed:?}");
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
