//! One stylesheet for the page. The sources have one per component, but a browser would have to fetch all of them before it
//! draws, and a web host compresses each alone: the texts for their names and digests are longer than many of them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::digest::Digest;
use crate::workspace::read;

/// The links of index.html stand between these.
const BEGIN: &str = "<!-- styles -->";
const END: &str = "<!-- /styles -->";

/// Joins the stylesheets of the checkout that `page` links, in its order, into one file of `folder`; the page with a link to that.
pub fn join(root: &Path, folder: &Path, page: &str) -> Result<String> {
    let missing = || format!("index.html has no links between {BEGIN} and {END}");
    let (before, rest) = page.split_once(BEGIN).with_context(missing)?;
    let (links, after) = rest.split_once(END).with_context(missing)?;
    let mut joined = String::new();
    for link in links.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let address = link.split_once("href=\"").and_then(|(_, rest)| rest.split_once('"'));
        let (address, _) = address.with_context(|| format!("no link to a stylesheet: {link}"))?;
        joined.push_str(&without_comments(&read(&root.join(address))?));
    }
    ensure!(!joined.is_empty(), missing());
    let digest = Digest::of(joined.as_bytes());
    let name = format!("styles-{}.css", digest.name());
    fs::write(folder.join(&name), joined).with_context(|| format!("cannot write {name}"))?;
    let link = format!(
        "<link rel=\"stylesheet\" href=\"./{name}\" integrity=\"{}\"/>",
        digest.integrity()
    );
    Ok(format!("{before}{link}{after}"))
}

/// A stylesheet without comments, indentation and empty lines. (Ours have no text with a comment's mark in it.)
fn without_comments(sheet: &str) -> String {
    let mut text = String::new();
    let mut rest = sheet;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::{join, without_comments};
    use std::fs;

    #[test]
    fn comments_and_indentation_are_not_served() {
        let sheet = "/* One\n   two. */\np {\n  color: red; /* warm */\n}\n\n/* end";
        assert_eq!(without_comments(sheet), "p {\ncolor: red;\n}\n");
    }

    #[test]
    fn the_order_of_the_links_is_that_of_the_one_sheet() {
        let root = std::env::temp_dir().join(format!("kinetoscope-styles-{}", std::process::id()));
        let folder = root.join("page");
        fs::create_dir_all(&folder).unwrap();
        fs::write(root.join("b.css"), "p{color:red}").unwrap();
        fs::write(root.join("a.css"), "p{color:blue}").unwrap();
        let page = "<head><!-- styles -->\n  <link href=\"b.css\"/>\n  <link href=\"a.css\"/>\n<!-- /styles --></head>";
        let joined = join(&root, &folder, page).unwrap();
        let left: Vec<String> = crate::digest::files(&folder).unwrap();
        let [name] = &left[..] else { panic!("{left:?}") };
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let again = join(&root, &folder, &joined);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(text, "p{color:red}\np{color:blue}\n");
        assert!(joined.starts_with("<head><link rel=\"stylesheet\"") && joined.contains(name));
        assert!(again.is_err(), "a page is joined once");
    }
}
