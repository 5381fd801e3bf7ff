//! Checks how the parts of the page use each other: what runs without a browser, what a worker needs, and that features have
//! no circles (docs/adr/0023-a-folder-per-feature.md).

use std::collections::BTreeMap;

use crate::circles;

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
        for name in part.never.iter().copied().flatten() {
            if let Some(line) = source.lines().position(|line| names(line, name)) {
                breaches.push(format!(
                    "web/src/{file}:{}: {} may not use {name}",
                    line + 1,
                    part.name
                ));
            }
        }
    }
    let features = files.iter().filter_map(|(file, source)| {
        let file = file.strip_prefix("features/")?;
        Some((file.to_owned(), source.replace("crate::features::", "crate::")))
    });
    let circles = circles::circles(&features.collect(), "mod.rs").into_iter();
    breaches.extend(circles.map(|circle| format!("web/src/features: {circle}")));
    breaches
}

/// Whether a line names a package, a module of the crate, or a file of a feature.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        let ends = after.starts_with("::") || after.starts_with(';') || after.starts_with(" as ");
        let is_package = BROWSER.contains(&name);
        let begins = ["crate::", "super::"].iter().any(|start| before.ends_with(start))
            || (is_package && before.ends_with("use "));
        // `features::<name>::view`
        let in_feature = before.contains("crate::features::") && before.ends_with("::");
        // Text that Yew shares instead of copying: it needs no browser.
        let is_text = after.starts_with("::AttrValue;");
        ends && !is_text && (begins || in_feature)
    })
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
