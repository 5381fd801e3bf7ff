//! Colours of categories, and their labels.

pub use kinetoscope::report::palette::paint;

/// The label of a category; one that the catalog lacks (a raw category of the file) is its own label.
#[must_use]
pub fn title(category: &str) -> String {
    kinetoscope::words::category(category).show()
}

#[cfg(test)]
mod tests {
    use kinetoscope::Category;
    use kinetoscope::report::palette::{Hue, is_known};

    #[test]
    fn every_category_has_a_paint_and_every_hue_a_token_and_a_class() {
        for category in Category::ALL {
            let id = category.id();
            assert!(is_known(id), "{id} has no row");
        }
        let (tokens, classes) =
            (include_str!("../../css/tokens.css"), include_str!("../../css/bar.css"));
        for hue in Hue::ALL {
            let id = hue.id();
            assert!(tokens.contains(&format!("--hue-{id}: ")), "{id} has no token");
            assert!(classes.contains(&format!(".hue-{id} {{")), "{id} has no class");
        }
    }
}
