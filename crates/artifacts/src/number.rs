//! Numbers of the artifact contract: microseconds and percent, finite, without float noise.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time, nanoseconds inside and microseconds in the JSON, with at most three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i64);

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The division is rounded once, so the shortest text that reads back as its result is the decimal
        // with three places itself, up to 15 digits (eleven days).
        serializer.serialize_f64(self.0 as f64 / 1000.0)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self((f64::deserialize(deserializer)? * 1000.0).round() as i64))
    }
}

/// A share in percent, with at most four decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = (self.0 * 10_000.0).round() / 10_000.0;
        serializer.serialize_f64(if rounded.is_finite() { rounded } else { 0.0 })
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_have_at_most_three_decimals_and_no_noise() {
        for (ns, text) in [
            (0, "0.0"),
            (1, "0.001"),
            (-1_500, "-1.5"),
            (12_345, "12.345"),
            (100_100, "100.1"),
            (1_000_000, "1000.0"),
            (999_999_999_999_999, "999999999999.999"),
            (123_456_789_012_345, "123456789012.345"),
        ] {
            assert_eq!(serde_json::to_string(&Micros(ns)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Micros>(text).unwrap(), Micros(ns));
        }
        for ns in (0..2_000_000).step_by(7) {
            let text = serde_json::to_string(&Micros(ns)).unwrap();
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert!(decimals <= 3, "{text}");
        }
    }

    #[test]
    fn shares_are_short_and_finite() {
        let text = |value| serde_json::to_string(&Percent(value)).unwrap();
        assert_eq!(
            [text(100.0 / 3.0), text(0.1 + 0.2), text(f64::NAN), text(100.0)],
            ["33.3333", "0.3", "0.0", "100.0"]
        );
    }
}
