//! Finds functions and constants that are `pub` though no other package names them: they belong to their crate (`pub(crate)`), where
//! the compiler says when nobody uses them any more.

use std::collections::{BTreeMap, BTreeSet};

/// What begins an item that other packages may use. Types are left out: those of fields and results are used without being named.
const ITEMS: [&str; 4] = ["pub fn ", "pub const fn ", "pub const ", "pub static "];

/// The words of sources without their comments.
pub fn words(sources: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        for line in source.lines() {
            let code = line.split("//").next().unwrap_or_default();
            let words = code.split(|char: char| !(char.is_alphanumeric() || char == '_'));
            found.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    found
}

/// The items of a crate's product sources, by path below `src`, that none of `others` names. (Words, not paths: an item with the name of
/// another one passes.)
pub fn breaches(files: &BTreeMap<String, String>, others: &[&BTreeSet<String>]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, source) in files {
        for line in source.lines().map(str::trim_start) {
            let Some(rest) = ITEMS.iter().find_map(|item| line.strip_prefix(item)) else {
                continue;
            };
            let name = rest.split(|char: char| !(char.is_alphanumeric() || char == '_')).next();
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            if !others.iter().any(|words| words.contains(name)) {
                found.push(format!("src/{file}: no other package uses {name}: make it pub(crate)"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_nobody_else_names_is_found() {
        let source = "pub fn used() {}\n    pub fn own() {}\npub(crate) fn inner() {}\npub const fn zero() {}\npub const MOST: u8 = 1;\npub struct Row;";
        let files = BTreeMap::from([("lib.rs".to_owned(), source.to_owned())]);
        let other = words(["use it::{used, zero}; // own MOST".to_owned()]);
        let found = breaches(&files, &[&other]);
        let names: Vec<&str> = found.iter().filter_map(|line| line.split(' ').nth(5)).collect();
        assert_eq!(names, ["own:", "MOST:"], "{found:?}");
    }
}
