//! Checks how the parts of the page use each other: what runs without a browser, what a worker needs, and that features have
//! no circles (docs/adr/0023-a-folder-per-feature.md).

use std::collections::BTreeMap;

use crate::circles;
use crate::paths;

/// Parts of the page, by a file or a folder of that name, and what their product code must not name. Other dependencies follow
/// from the types.
const PARTS: &[Part] = &[
    Part { name: "protocol", never: &[BROWSER, &["state", "queries", "views", "worker"], DRAWN] },
    Part { name: "state", never: &[BROWSER, &["worker"], DRAWN] },
    Part { name: "queries", never: &[BROWSER, &["worker"], DRAWN] },
    Part { name: "worker", never: &[&["yew", "state", "views", "components"]] },
];

/// Packages that need a browser.
const BROWSER: &[&str] = &["yew", "gloo", "web_sys", "js_sys"];
/// What draws and what has effects.
const DRAWN: &[&str] = &["components", "tasks", "view"];

struct Part {
    name: &'static str,
    never: &'static [&'static [&'static str]],
}

/// Every breach in `files`, the product sources of the page by their path below `src`.
pub fn breaches(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in files {
        let part = |part: &&Part| file.trim_end_matches(".rs").split('/').any(|at| at == part.name);
        let Some(part) = PARTS.iter().find(part) else { continue };
        let named = paths::named(file, source);
        for name in part.never.iter().copied().flatten() {
            if let Some((line, _)) = named.iter().find(|(_, path)| names(path, name)) {
                breaches.push(format!("web/src/{file}:{line}: {} may not use {name}", part.name));
            }
        }
    }
    let features = files.iter().filter_map(|(file, source)| {
        let of_feature = file.strip_prefix("features/")?.to_owned();
        // (The root declares the features.)
        if of_feature == "mod.rs" {
            return Some((of_feature, source.clone()));
        }
        let used = paths::named(file, source).into_iter().filter_map(|(_, path)| {
            path.strip_prefix(&["crate".to_owned(), "features".to_owned()])?.first().cloned()
        });
        Some((of_feature, used.map(|name| format!("crate::{name};")).collect()))
    });
    let circles = circles::circles(&features.collect(), "mod.rs").into_iter();
    breaches.extend(circles.map(|circle| format!("web/src/features: {circle}")));
    breaches
}

/// Whether a path is of a package, a module of the crate, or a file of a feature.
fn names(path: &[String], name: &str) -> bool {
    let is = |at: usize, name: &str| path.get(at).is_some_and(|word| word == name || word == "*");
    if BROWSER.contains(&name) {
        // Text that Yew shares instead of copying: it needs no browser.
        let is_text = path.get(1).is_some_and(|word| word == "AttrValue");
        return path.first().is_some_and(|first| first == name) && !is_text;
    }
    // `crate::view`, `crate::features::<name>::view`
    path.first().is_some_and(|first| first == "crate")
        && (is(1, name) || (is(1, "features") && (is(2, "*") || is(3, name))))
}

#[cfg(test)]
mod tests {
    use super::breaches;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        breaches(&files.iter().map(|(file, text)| ((*file).into(), (*text).into())).collect())
    }

    #[test]
    fn what_runs_without_a_browser_names_none() {
        let sound = [
            // A file of the state that is called so.
            ("queries/page.rs", "use yew::AttrValue;"),
            ("state/mod.rs", "mod view;\npub use view::Theme;"),
            ("features/a/view.rs", "use yew::prelude::*;\nuse super::queries::rows;"),
            ("features/a/queries.rs", "use crate::state::State;\nuse crate::views::View;"),
            ("worker/port.rs", "use web_sys::File;\nuse crate::tasks::browser::number_of;"),
        ];
        assert_eq!(found(&sound), [""; 0]);
        let breach = |file, text| found(&[(file, text)]);
        assert_eq!(
            breach("features/a/queries.rs", "\nuse yew::prelude::*;"),
            ["web/src/features/a/queries.rs:2: queries may not use yew"]
        );
        assert_eq!(
            breach("features/t/queries/order.rs", "fn f() { crate::tasks::save() }").len(),
            1
        );
        assert_eq!(breach("state/jobs.rs", "use crate::features::a::view as a;").len(), 1);
        assert_eq!(breach("features/a/protocol.rs", "use crate::state::State;").len(), 1);
        assert_eq!(breach("worker/session/first.rs", "use crate::state::State;").len(), 1);
        // Other spellings of the same.
        for text in [
            "use crate::{\n    features::b::{queries, view::Row},\n};",
            "use super::{queries::rows, view};",
            "use crate::features as of;\nfn f() { of::b::view::draw() }",
            "use crate::{self as page};\nfn f() { page::tasks::save() }",
            "use crate::*;",
            "fn f() -> yew::Html { yew::html!() }",
            "use {std::rc::Rc, yew::Html};",
        ] {
            assert_eq!(breach("features/a/state.rs", text).len().min(1), 1, "{text}");
        }
    }

    #[test]
    fn features_have_no_circles() {
        let root = ("features/mod.rs", "pub mod a;\npub mod b;\n");
        let one = ("features/a/view.rs", "use crate::features::b::queries::rows;");
        assert_eq!(found(&[root, one]), [""; 0]);
        let back = ("features/b/queries.rs", "use super::super::a::queries::rows;");
        assert_eq!(found(&[root, one, back]), ["web/src/features: a uses b uses a"]);
    }
}
