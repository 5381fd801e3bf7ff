//! The paths that a source names, by what they stand for: groups are taken apart, and `self`, `super` and names that a `use` of the same
//! file binds are resolved.

use std::collections::BTreeMap;

/// A path from `crate` or a package on, and its line, from 1.
pub type Named = (usize, Vec<String>);

/// Every path in the product code of a file, `file` being its place below `src`.
pub fn named(file: &str, source: &str) -> Vec<Named> {
    let mut reader = Reader { source, at: 0, found: Vec::new() };
    reader.read();
    let mut module: Vec<String> =
        file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    module.insert(0, "crate".to_owned());
    let bound: BTreeMap<&str, Vec<String>> = { reader.found.iter() }
        .filter_map(|path| Some((path.bound?, resolved(&path.words, &module, &BTreeMap::new()))))
        .collect();
    let named = reader.found.iter().map(|path| {
        let line = source[..path.at].matches('\n').count() + 1;
        let known = if path.bound.is_some() { &BTreeMap::new() } else { &bound };
        (line, resolved(&path.words, &module, known))
    });
    named.collect()
}

fn resolved(words: &[&str], module: &[String], bound: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let ups = words.iter().take_while(|word| **word == "super").count();
    let rest = |from: usize| words[from..].iter().map(|word| (*word).to_owned());
    match words {
        ["super", ..] => {
            let above = module[..module.len().saturating_sub(ups).max(1)].iter().cloned();
            above.chain(rest(ups)).collect()
        }
        ["self", ..] => module.iter().cloned().chain(rest(1)).collect(),
        [first, ..] if bound.contains_key(first) => {
            bound[first].iter().cloned().chain(rest(1)).collect()
        }
        _ => rest(0).collect(),
    }
}

struct Path<'a> {
    at: usize,
    words: Vec<&'a str>,
    /// Of a `use`: the name that it binds.
    bound: Option<&'a str>,
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    found: Vec<Path<'a>>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            if !is_word(next) {
                self.at += next.len_utf8();
                continue;
            }
            let (at, word) = (self.at, self.word());
            if word == "use" {
                self.uses(&[]);
                continue;
            }
            let mut words = vec![word];
            while self.rest().starts_with("::") && self.rest()[2..].starts_with(is_word) {
                self.at += 2;
                words.push(self.word());
            }
            if words.len() > 1 {
                self.found.push(Path { at, words, bound: None });
            }
        }
    }

    /// What a `use` names behind a prefix.
    fn uses(&mut self, prefix: &[&'a str]) {
        let mut words = prefix.to_vec();
        loop {
            self.blanks();
            let at = self.at;
            match self.rest().chars().next() {
                Some('{') => {
                    self.at += 1;
                    while self.at < self.source.len() && !self.takes("}") {
                        self.uses(&words);
                        self.takes(",");
                        self.blanks();
                    }
                    return;
                }
                Some('*') => {
                    self.at += 1;
                    words.push("*");
                }
                Some(next) if is_word(next) => words.push(self.word()),
                Some(':') => self.at += 2,
                _ => {
                    // (Nothing that a `use` has.)
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                    return;
                }
            }
            self.blanks();
            if self.takes("::") {
                continue;
            }
            if words.len() > 1 {
                words.pop_if(|last| *last == "self");
            }
            let mut bound = words.last().copied();
            if self.rest().starts_with("as ") {
                self.at += 3;
                self.blanks();
                bound = Some(self.word());
            }
            self.found.push(Path { at, words, bound });
            return;
        }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|char| !is_word(char)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::named;

    fn paths(file: &str, source: &str) -> Vec<String> {
        named(file, source)
            .into_iter()
            .map(|(line, path)| format!("{line} {}", path.join("::")))
            .collect()
    }

    #[test]
    fn groups_and_relative_paths_are_taken_apart() {
        let source = "use crate::{\n    a::{self, b as c},\n    d::*,\n};\nuse super::super::e;\n";
        let expected = ["2 crate::a", "2 crate::a::b", "3 crate::d::*", "5 crate::e"];
        assert_eq!(paths("x/y.rs", source), expected);
        assert_eq!(
            paths("x/mod.rs", "use self::z;\nuse super::w;"),
            ["1 crate::x::z", "2 crate::w"]
        );
    }

    #[test]
    fn a_name_stands_for_what_binds_it() {
        let source = "use crate::features as of;\nfn f() { of::a::view::draw(); other::g() }";
        let expected = ["1 crate::features", "2 crate::features::a::view::draw", "2 other::g"];
        assert_eq!(paths("state/x.rs", source), expected);
    }
}
