//! The contract between a row's JSON and its columns.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Asserts that the JSON object of `row` has exactly `keys`, in this order.
///
/// # Panics
/// When they differ, or when `row` is not a JSON object.
#[allow(clippy::panic, reason = "a failed assertion")]
#[track_caller]
pub fn assert_keys<'a, R: serde::Serialize>(row: &R, keys: impl IntoIterator<Item = &'a str>) {
    let text = serde_json::to_string(row).unwrap_or_default();
    let found: Keys = match serde_json::from_str(&text) {
        Ok(found) => found,
        Err(error) => panic!("no JSON object ({error}): {text}"),
    };
    let keys: Vec<&str> = keys.into_iter().collect();
    assert_eq!(found.0, keys, "the keys of the JSON (left) are the keys of the columns (right)");
}

/// The keys of an object in the order of its text.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Keys;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize)]
    struct Row {
        name: &'static str,
        total_ns: i64,
    }

    #[test]
    fn equal_keys_pass() {
        assert_keys(&Row { name: "", total_ns: 0 }, ["name", "total_ns"]);
    }

    #[test]
    #[should_panic(expected = "the keys of the JSON")]
    fn another_order_fails() {
        assert_keys(&Row { name: "", total_ns: 0 }, ["total_ns", "name"]);
    }
}
