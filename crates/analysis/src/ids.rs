//! Enums in the JSON of rows: as their ids. The catalog knows no serde, so that fields name these functions.

use catalog::{Category, Family, OverlapClass};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// An enum that JSON has as its id.
pub trait AsId {
    /// The id; `None` is written as `null`.
    fn as_id(&self) -> Option<&'static str>;
}

/// An enum that is read from its id.
pub trait FromId: Sized {
    /// The value with this id.
    fn from_id(id: &str) -> Option<Self>;
}

impl AsId for Category {
    fn as_id(&self) -> Option<&'static str> {
        Some(self.id())
    }
}

impl AsId for Family {
    fn as_id(&self) -> Option<&'static str> {
        Some(self.id())
    }
}

impl AsId for OverlapClass {
    fn as_id(&self) -> Option<&'static str> {
        Some(self.id())
    }
}

impl<T: AsId> AsId for Option<T> {
    fn as_id(&self) -> Option<&'static str> {
        self.as_ref().and_then(T::as_id)
    }
}

impl FromId for Category {
    fn from_id(id: &str) -> Option<Self> {
        Category::from_id(id)
    }
}

impl FromId for Family {
    fn from_id(id: &str) -> Option<Self> {
        Family::from_id(id)
    }
}

/// Writes the id of a field: `#[serde(serialize_with = "analysis::ids::serialize")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: AsId, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    match value.as_id() {
        Some(id) => to.serialize_str(id),
        None => to.serialize_none(),
    }
}

/// Reads what [`serialize`] wrote: `#[serde(with = "analysis::ids")]`.
///
/// # Errors
/// If nothing has that id.
pub fn deserialize<'de, T: FromId, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let id = String::deserialize(from)?;
    T::from_id(&id).ok_or_else(|| D::Error::custom(format!("no such id: {id}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        #[serde(with = "super")]
        category: Category,
        #[serde(with = "super")]
        family: Family,
        #[serde(skip_deserializing, serialize_with = "serialize")]
        class: Option<OverlapClass>,
    }

    #[test]
    fn enums_are_written_and_read_by_their_ids() {
        for (category, family) in Category::ALL.iter().zip(Family::ALL) {
            let row = Row { category: *category, family: *family, class: None };
            let json = serde_json::to_string(&row).unwrap();
            let (category, family) = (category.id(), family.id());
            let expected =
                format!(r#"{{"category":"{category}","family":"{family}","class":null}}"#);
            assert_eq!(json, expected);
            assert_eq!(serde_json::from_str::<Row>(&json).unwrap(), row);
        }
        let class = Some(OverlapClass::Memory);
        let row = Row { category: Category::Other, family: Family::Nccl, class };
        assert!(serde_json::to_string(&row).unwrap().ends_with(r#""class":"memory"}"#));
        let unknown = r#"{"category":"thing","family":"nccl"}"#;
        let error = serde_json::from_str::<Row>(unknown).unwrap_err().to_string();
        assert!(error.contains("no such id: thing"), "{error}");
    }
}
