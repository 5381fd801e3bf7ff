//! Enums of the catalog in the JSON of rows: as their ids.

use catalog::{Category, Family};
use serde::Serializer;

/// What has an id in files.
pub(crate) trait Id {
    fn id(&self) -> &'static str;
}

impl Id for Category {
    fn id(&self) -> &'static str {
        Category::id(*self)
    }
}

impl Id for Family {
    fn id(&self) -> &'static str {
        Family::id(*self)
    }
}

/// Writes the id.
pub(crate) fn serialize<T: Id, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.id())
}
