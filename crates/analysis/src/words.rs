//! Labels and meanings of the fixed words in tables: what the page and Markdown show for an id of the artifacts.

use catalog::{Category, Family};
use report::{Cell, Word};

/// Views of a profiler step, by the file's raw category.
pub(crate) const STEP_SIDE: &[Word] = &[
    Word {
        id: "user_annotation",
        label: "CPU",
        meaning: "user_annotation: the step on its CPU thread",
    },
    Word {
        id: "gpu_user_annotation",
        label: "GPU",
        meaning: "gpu_user_annotation: the GPU work that the step launched",
    },
];

/// A category.
#[must_use]
pub fn of_category(category: Category) -> Cell<'static> {
    let meaning = category.help().trim_end_matches('.');
    Word { id: category.id(), label: category.title(), meaning }.into()
}

/// A category by its id.
#[must_use]
pub fn category(id: &str) -> Cell<'_> {
    match Category::from_id(id) {
        Some(category) => of_category(category),
        None => id.into(),
    }
}

/// The label of a category by its id.
#[must_use]
pub fn category_title(id: &str) -> &str {
    match Category::from_id(id) {
        Some(category) => category.title(),
        None => id,
    }
}

/// A family.
#[must_use]
pub fn of_family(family: Family) -> Cell<'static> {
    Word { id: family.id(), label: family.title(), meaning: "" }.into()
}

/// A family by its id.
#[must_use]
pub fn family(id: &str) -> Cell<'_> {
    match Family::from_id(id) {
        Some(family) => of_family(family),
        None => id.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_label() {
        assert_eq!(category("moe_route").show(), "MoE routing");
        assert_eq!(family("ck_tile").show(), "CK Tile");
    }

    fn unknown_shown<R: report::Row>() -> Vec<&'static str> {
        let is_column = |key: &&&str| R::COLUMNS.iter().any(|column| column.key == **key);
        R::SHOWN.iter().filter(|key| !is_column(key)).copied().collect()
    }

    #[test]
    fn the_columns_that_the_page_shows_first_are_columns() {
        for unknown in [unknown_shown::<crate::KernelRow>(), unknown_shown::<crate::DeviceRow>()] {
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }
}
