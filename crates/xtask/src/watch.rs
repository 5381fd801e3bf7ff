//! Notices that a source of the page has changed, by the times of the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::workspace::Workspace;

/// What the page is built from. The root of the repository also has target/, which changes with every build.
const SOURCES: &[&str] = &[".cargo", "index.html", "Cargo.toml", "Cargo.lock", "crates", "web"];
/// Folders of tests, which are no part of the page. Those of `web` have the packages of Node.
const ASIDE: &str = "tests";

/// The files as they were when they were last looked at.
#[derive(PartialEq)]
pub struct Sources(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Sources {
    pub fn of(workspace: &Workspace) -> Sources {
        let mut found = BTreeMap::new();
        for source in SOURCES {
            look(&workspace.root.join(source), &mut found);
        }
        Sources(found)
    }

    /// Whether they are others than at the last look. (A file that appears or goes is a change, too.)
    pub fn changed(&mut self, workspace: &Workspace) -> bool {
        let now = Sources::of(workspace);
        let changed = now != *self;
        *self = now;
        changed
    }
}

/// Files that go while this looks at them are left out: the next look has them.
fn look(path: &Path, found: &mut BTreeMap<PathBuf, (Option<SystemTime>, u64)>) {
    let Ok(metadata) = fs::metadata(path) else { return };
    if !metadata.is_dir() {
        found.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
        return;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name() != ASIDE) {
        look(&entry.path(), found);
    }
}

#[cfg(test)]
mod tests {
    use super::Sources;
    use crate::workspace::Workspace;
    use std::fs;

    #[test]
    fn sources_are_watched_and_tests_and_builds_not() {
        let root = std::env::temp_dir().join(format!("kinetoscope-watch-{}", std::process::id()));
        for folder in ["web/src", "web/tests", "target"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let write = |file: &str, text: &str| fs::write(root.join(file), text).unwrap();
        write("web/src/a.rs", "a");
        let workspace = Workspace { root: root.clone(), target: root.join("target") };
        let mut sources = Sources::of(&workspace);
        let mut after = |file: &str, text: &str| {
            write(file, text);
            sources.changed(&workspace)
        };
        assert!(!after("web/tests/a.mjs", "x"), "a test");
        assert!(!after("target/a.o", "x"), "what a build writes");
        assert!(after("web/src/a.rs", "longer"), "a change");
        assert!(after("web/src/b.rs", "b"), "another file");
        assert!(!after("target/a.o", "y"), "nothing since");
        fs::remove_file(root.join("web/src/b.rs")).unwrap();
        assert!(sources.changed(&workspace), "a file less");
        fs::remove_dir_all(&root).unwrap();
    }
}
