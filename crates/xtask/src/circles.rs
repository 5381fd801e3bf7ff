//! Finds circles among the top-level modules of a crate: `a` uses `b`, and `b` uses `a` again.

use std::collections::{BTreeMap, BTreeSet};

/// By module: the modules that its product code names.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Each circle once, from its first module by name. `files` are the product sources of a crate by their path below `src`;
/// `root` is the one that declares the modules.
pub fn circles(files: &BTreeMap<String, String>, root: &str) -> Vec<String> {
    let Some(root) = files.get(root) else { return Vec::new() };
    let modules = || root.lines().filter_map(|line| line.trim_end().strip_suffix(';'));
    let mut uses: Uses<'_> = modules()
        .filter_map(|line| line.rsplit_once("mod ").map(|(_, name)| (name, BTreeSet::new())))
        .collect();
    // What the root takes out of a module is that module under another name.
    let mut aliases: BTreeMap<&str, &str> = uses.keys().map(|name| (*name, *name)).collect();
    for (at, _) in root.match_indices("use ") {
        let path = root[at + 4..].split(';').next().unwrap_or_default();
        let mut words = words(path);
        if let Some((module, _)) = words.next().and_then(|first| uses.get_key_value(first)) {
            words.for_each(|word| _ = aliases.entry(word).or_insert(module));
        }
    }
    for (file, source) in files {
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let (module, depth) = (path.split('/').next().unwrap_or_default(), path.split('/').count());
        let Some(own) = uses.get_mut(module) else { continue };
        let above = "super::".repeat(depth);
        let places = ["crate::", &above].into_iter().flat_map(|root| source.split(root).skip(1));
        own.extend(places.flat_map(firsts).filter_map(|name| aliases.get(name)).copied());
        own.remove(module);
    }
    uses.keys().filter_map(|start| circle(&uses, start)).collect()
}

/// The first names of what comes after `crate::`: one, or those of a group.
fn firsts(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else { return words(rest).take(1).collect() };
    let (mut found, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' => begins |= depth == 0,
            _ if begins && !char.is_whitespace() => {
                found.extend(words(&group[at..]).next());
                begins = false;
            }
            _ => {}
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    text.split(move |char| !is_word(char)).filter(|word| !word.is_empty())
}

/// The shortest way from a module back to it, over modules that come later by name.
fn circle(uses: &Uses<'_>, start: &str) -> Option<String> {
    let mut ways: Vec<Vec<&str>> = vec![vec![start]];
    let mut seen = BTreeSet::new();
    let mut at = 0;
    while let Some(way) = ways.get(at).cloned() {
        at += 1;
        for next in uses.get(way.last()?)? {
            if *next == start {
                return Some(format!("{} uses {start}", way.join(" uses ")));
            }
            if *next > start && seen.insert(*next) {
                ways.push([way.as_slice(), &[*next]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        circles(&files.collect(), "lib.rs")
    }

    #[test]
    fn modules_that_use_each_other_are_told_once() {
        let root = "mod a;\npub mod b;\npub(crate) mod c;\npub use c::{Two, three};\n";
        let chain = [("lib.rs", root), ("a.rs", "use crate::b::X;\n"), ("b.rs", "use super::Two;")];
        assert_eq!(found(&chain), [""; 0]);
        let (two, group) =
            ("use crate::{\n    d::{e},\n    a::Y,\n};\n", "fn f() { crate::a::g() }");
        for c in [two, group] {
            let circle = [chain[0], chain[1], chain[2], ("c/mod.rs", c)];
            assert_eq!(found(&circle), ["a uses b uses c uses a"]);
        }
        // A folder names its own module, and the modules of the crate one level up.
        let below = ("c/x.rs", "use super::{a, b};\nuse super::super::b::Z;\n");
        assert_eq!(found(&[chain[0], chain[1], chain[2], below]), ["b uses c uses b"]);
    }
}
