//! The JSON documents have the keys that `docs/formats.md` describes, and no others.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Folder, damaged, damaged_from};

/// Paths of everything in a document that is no object: `gpu.busy_ns`, `kernels[].family`.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                paths(value, &format!("{path}{dot}{key}"), found);
            }
        }
        Value::Array(rows) if rows.iter().all(Value::is_object) => {
            assert!(!rows.is_empty(), "the test's trace leaves {path} empty");
            rows.iter().for_each(|row| paths(row, &format!("{path}[]"), found));
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// The keys in the first column of the table under a heading: `.count` continues the key before it.
fn documented(heading: &str) -> BTreeSet<String> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md"));
    let text = text.unwrap();
    let heading = format!("\n{heading}\n");
    let section = text.split_once(&heading).unwrap().1;
    let section = section.split("\n#").next().unwrap_or_default();
    let mut keys = BTreeSet::new();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    for names in rows {
        let mut parent = String::new();
        for name in names.split(", ").map(|name| name.trim_matches('`')) {
            let name = match name.strip_prefix('.') {
                Some(name) => format!("{parent}.{name}"),
                None => name.to_owned(),
            };
            parent = name.rsplit_once('.').map_or("", |(parent, _)| parent).to_owned();
            keys.insert(name);
        }
    }
    // What has parts is described by its parts.
    let all = keys.clone();
    keys.retain(|key| !all.iter().any(|other| other.starts_with(&format!("{key}."))));
    keys
}

/// Puts `keys` under `path`, in place of the row that refers to them.
fn expand(found: &mut BTreeSet<String>, path: &str, keys: impl IntoIterator<Item = String>) {
    assert!(found.remove(path), "{path} is described: {found:?}");
    let path = path.to_owned();
    found.extend(keys.into_iter().map(|key| format!("{path}.{key}")));
}

#[track_caller]
fn assert_same(found: &BTreeSet<String>, described: &BTreeSet<String>) {
    let missing: Vec<_> = described.difference(found).collect();
    let silent: Vec<_> = found.difference(described).collect();
    assert!(missing.is_empty(), "described, but not there: {missing:?}");
    assert!(silent.is_empty(), "there, but not described: {silent:?}");
}

/// The keys of one row, out of a document's.
fn rows(of: &BTreeSet<String>, path: &str) -> BTreeSet<String> {
    let prefix = format!("{path}.");
    of.iter().filter_map(|key| key.strip_prefix(&prefix)).map(str::to_owned).collect()
}

fn breakdown() -> BTreeSet<String> {
    let mut described = documented("## Breakdown");
    let families = rows(&described, "categories[]");
    let families = families.into_iter().filter(|key| key != "category" && key != "bucket");
    let families: BTreeSet<String> = families.chain(["family".to_owned()]).collect();
    expand(&mut described, "families[]", families);
    expand(&mut described, "perfetto.prediction", documented("### Prediction"));
    described
}

#[test]
fn the_breakdown_is_as_described() {
    let folder = Folder::new("keys");
    folder.write("run.json", damaged());
    let json = folder.run(&["breakdown", "run.json", "--json"]).done().json();
    let mut found = BTreeSet::new();
    paths(&json, "", &mut found);
    assert_same(&found, &breakdown());
}

#[test]
fn the_repair_log_is_as_described() {
    let folder = Folder::new("log-keys");
    // The base is there to be described, too.
    folder.write("run.json", damaged_from(1_695_835_535_123_456_789));
    folder.run(&["perfetto-fix", "run.json", "-o", "out.json", "--log", "log.json"]).done();
    let log: Value = serde_json::from_str(&folder.text("log.json")).unwrap();
    let mut found = BTreeSet::new();
    paths(&log, "", &mut found);
    let mut described = documented("## Repair log");
    for side in ["before", "after"] {
        expand(&mut described, side, documented("### Prediction"));
    }
    expand(&mut described, "problems[]", rows(&breakdown(), "problems[]"));
    assert_same(&found, &described);
}
