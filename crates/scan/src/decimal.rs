//! Numbers in the common form, eight digits a step.

use std::num::NonZeroU64;

use crate::{Cursor, lexis::digits};

/// A number that is not negative, below 2^52, with at most three digits after the point.
///
/// One word, so that it stays in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal(NonZeroU64);

impl Decimal {
    /// Bits below this one are the fraction, in thousandths.
    const POINT: u32 = 10;
    /// From this bit on: the integer part.
    const WHOLE: u32 = Self::POINT + 1;
    /// Always set.
    const MARK: u64 = 1 << 63;

    fn new(whole: u64, point: bool, thousandths: u64) -> Option<Self> {
        if whole >> (63 - Self::WHOLE) != 0 {
            return None;
        }
        let word = whole << Self::WHOLE | u64::from(point) << Self::POINT | thousandths;
        NonZeroU64::new(word | Self::MARK).map(Self)
    }

    fn whole(self) -> i64 {
        ((self.0.get() & !Self::MARK) >> Self::WHOLE).cast_signed()
    }

    /// The number, when it has no point.
    #[inline]
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        (self.0.get() >> Self::POINT & 1 == 0).then(|| self.whole())
    }

    /// A thousand times the number.
    #[inline]
    #[must_use]
    pub fn times_1000(self) -> i64 {
        self.whole() * 1000 + (self.0.get() & ((1 << Self::POINT) - 1)).cast_signed()
    }
}

/// Powers of ten.
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

impl Cursor<'_> {
    /// Reads a [`Decimal`] in plain spelling, if one follows and a byte after it ends the number;
    /// otherwise reads nothing. Near the end of the slice it may miss one.
    #[inline(never)]
    pub fn decimal(&mut self) -> Option<Decimal> {
        let rest = self.rest();
        let (mut len, high) = digits(*rest.first_chunk()?);
        let mut whole = u64::from(high);
        if len == 8 {
            let (more, low) = digits(*rest[8..].first_chunk()?);
            whole = whole * *POWERS.get(more)? + u64::from(low);
            len += more;
        }
        if len == 0 || len > 16 || (rest[0] == b'0' && len > 1) {
            return None;
        }
        let mut thousandths = 0;
        let point = rest.get(len) == Some(&b'.');
        if point {
            let (n, value) = digits(*rest[len + 1..].first_chunk()?);
            let unit = *[0, 100, 10, 1].get(n)?;
            if unit == 0 {
                return None;
            }
            thousandths = u64::from(value) * unit;
            len += 1 + n;
        }
        if !matches!(rest.get(len), Some(b',' | b'}' | b']' | b' ' | b'\n')) {
            return None;
        }
        let decimal = Decimal::new(whole, point, thousandths)?;
        self.advance(len);
        Some(decimal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Option<i64>, i64)> {
        let mut cursor = Cursor::new(text.as_bytes());
        let decimal = cursor.decimal();
        let end = text.find([',', '}', ']', ' ', '\n']).unwrap_or_default();
        assert_eq!(cursor.pos(), if decimal.is_some() { end } else { 0 }, "{text}");
        decimal.map(|it| (it.integer(), it.times_1000()))
    }

    #[test]
    fn reads_plain_numbers() {
        let rest = ", \"more\": 12345678";
        for (text, integer, times_1000) in [
            ("0", Some(0), 0),
            ("7", Some(7), 7_000),
            ("12345678", Some(12_345_678), 12_345_678_000),
            ("123456789", Some(123_456_789), 123_456_789_000),
            ("4503599627370495", Some((1 << 52) - 1), 4_503_599_627_370_495_000),
            ("0.5", None, 500),
            ("1.25", None, 1_250),
            ("2915995397672.546", None, 2_915_995_397_672_546),
            ("1712195495519762.655", None, 1_712_195_495_519_762_655),
            ("3.0", None, 3_000),
        ] {
            assert_eq!(read(&format!("{text}{rest}")), Some((integer, times_1000)), "{text}");
        }
        for end in ["}, {\"more\": 1}", "], \"more\"", "\n  more more", " more more more"] {
            assert_eq!(read(&format!("12.5{end}")), Some((None, 12_500)), "{end}");
        }
    }

    #[test]
    fn leaves_everything_else() {
        for text in [
            "-1",
            "+1",
            "01",
            "00",
            ".5",
            "5.",
            "5.1234",
            "1e3",
            "1.5e3",
            "4503599627370496",
            "NaN",
            "12345678901234567",
            "\"1\"",
            "1x",
            "1.x",
            "1.5x",
            "null",
            "",
        ] {
            assert_eq!(read(&format!("{text}, \"more\": 12345678")), None, "{text}");
        }
        assert_eq!(read("12,"), None, "too near to the end");
    }

    #[test]
    fn digits_are_counted_and_read() {
        assert_eq!(digits(*b"12345678"), (8, 12_345_678));
        assert_eq!(digits(*b"123/5678"), (3, 123));
        assert_eq!(digits(*b"9:999999"), (1, 9));
        assert_eq!(digits(*b"\xff2345678"), (0, 0));
        assert_eq!(digits(*b"99\xb0\xb9\x80abc"), (2, 99));
    }
}
