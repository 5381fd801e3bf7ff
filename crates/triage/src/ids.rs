//! Enums in the JSON of rows: as their ids.

use catalog::{Category, Family, OverlapClass};
use serde::Serializer;

/// An enum of the catalog, which knows no serde.
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

impl Id for OverlapClass {
    fn id(&self) -> &'static str {
        OverlapClass::id(*self)
    }
}

/// Writes the id.
pub(crate) fn serialize<T: Id, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.id())
}

/// Serialises enums of this crate as what their `id` says.
macro_rules! serialize_as_id {
    ($($kind:ty),*) => {
        $(impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.id())
            }
        })*
    };
}

pub(crate) use serialize_as_id;
