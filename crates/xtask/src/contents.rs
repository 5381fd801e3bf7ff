//! What the page is made of. index.html names every file by the name that it has before `seal` gives it another.

use std::collections::BTreeSet;

/// How the names of files end that the build puts next to index.html.
const KINDS: &[&str] = &[".js", ".json", ".wasm"];

/// The files that a page names, without its stylesheets (`styles`) and its folder of assets.
pub struct Contents {
    /// Programs of the package `web`, each a file of wasm with its script.
    pub programs: Vec<String>,
    /// Files of the folder `web`, copied as they are.
    pub files: Vec<String>,
}

impl Contents {
    pub fn of(page: &str) -> Contents {
        let named = named(page);
        let programs: Vec<String> = { named.iter() }
            .filter_map(|file| file.strip_suffix("_bg.wasm").map(str::to_owned))
            .collect();
        let is_built = |file: &str| {
            programs.iter().any(|program| {
                file.strip_prefix(program.as_str()).is_some_and(|end| OF_PROGRAM.contains(&end))
            })
        };
        let files = named.iter().filter(|file| !is_built(file)).map(|file| (*file).to_owned());
        Contents { files: files.collect(), programs }
    }
}

/// How the names of a program's files end.
const OF_PROGRAM: [&str; 2] = [".js", "_bg.wasm"];

/// The files next to the page that its attributes name, each once.
pub fn named(page: &str) -> BTreeSet<&str> {
    let values = page.split("=\"").skip(1).filter_map(|rest| rest.split('"').next());
    values
        .filter(|value| KINDS.iter().any(|kind| value.ends_with(kind)))
        .filter(|value| !value.contains(['/', ' ']))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Contents, named};

    const PAGE: &str = r#"<meta content="script-src 'self'" /><link href="manifest.json" /><link href="web/css/a.css" /><link href="app.js"><script src="boot.js" data-js="app.js" data-wasm="app_bg.wasm" data-lanes="lanes.js" data-lanes-wasm="lanes_bg.wasm"></script><link href="app_bg.wasm">"#;

    #[test]
    fn programs_are_compiled_and_other_files_copied() {
        let contents = Contents::of(PAGE);
        assert_eq!(contents.programs, ["app", "lanes"]);
        assert_eq!(contents.files, ["boot.js", "manifest.json"]);
    }

    #[test]
    fn a_file_that_is_named_twice_is_one_file() {
        assert_eq!(named(PAGE).iter().filter(|file| **file == "app.js").count(), 1);
    }

    #[test]
    fn the_page_of_this_repository_has_its_five_programs() {
        let page = include_str!("../../../index.html");
        let programs = ["app", "lanes", "snapshot", "triage", "worker"];
        assert_eq!(Contents::of(page).programs, programs);
    }
}
