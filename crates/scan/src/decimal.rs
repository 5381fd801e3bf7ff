//! Numbers in the common form, eight digits a step.

use std::num::NonZeroU64;

use crate::{
    Cursor,
    lexis::{digits, n_digits, others, thousandths},
};

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

/// Sixteen digits, a point, three more and what ends the number, rounded up to words.
pub(crate) const AHEAD: usize = 24;

impl Cursor<'_> {
    /// Reads a [`Decimal`] in plain spelling, if one follows and a byte after it ends the number;
    /// otherwise reads nothing. Near the end of the slice it may miss one.
    #[inline(never)]
    pub fn decimal(&mut self) -> Option<Decimal> {
        let rest = self.rest();
        let mut padded = [0; AHEAD];
        let ahead = match rest.first_chunk() {
            Some(ahead) => ahead,
            None if rest.len() < 8 => return None,
            None => {
                padded.get_mut(..rest.len())?.copy_from_slice(rest);
                &padded
            }
        };
        let (decimal, len) = read(ahead)?;
        self.advance(len);
        Some(decimal)
    }

    /// Moves over a number that [`Cursor::decimal`] reads; false if none follows.
    #[inline(always)]
    pub(crate) fn skip_decimal(&mut self) -> bool {
        match self.rest().first_chunk().and_then(n_digits_of_short) {
            Some(len) => {
                self.advance(len);
                true
            }
            None => self.decimal().is_some(),
        }
    }
}

/// The number at the start of `ahead`, and its length.
// All places in an array of a known length are known to be in it.
#[inline(always)]
pub(crate) fn read(ahead: &[u8; AHEAD]) -> Option<(Decimal, usize)> {
    if !ahead[0].is_ascii_digit() {
        return None;
    }
    let (mut len, high) = digits(*ahead.first_chunk()?);
    let mut whole = u64::from(high);
    if len == 8 && ahead[8].is_ascii_digit() {
        let (more, low) = digits(*ahead[8..].first_chunk()?);
        whole = whole * *POWERS.get(more)? + u64::from(low);
        len += more;
    }
    if ahead[0] == b'0' && len > 1 {
        return None;
    }
    let mut end = ahead[len];
    let mut fraction = 0;
    let point = end == b'.';
    if point {
        let (n, value) = thousandths(*ahead[len + 1..].first_chunk()?);
        if n == 0 || n == 4 {
            return None;
        }
        fraction = u64::from(value);
        len += 1 + n;
        end = ahead[len];
    }
    if !ends_number(end) {
        return None;
    }
    Some((Decimal::new(whole, point, fraction)?, len))
}

/// How many digits a [`Decimal`] has that begins here, if it has less than eight and no point.
#[inline(always)]
pub(crate) fn n_digits_of_short(ahead: &[u8; 8]) -> Option<usize> {
    let len = n_digits(others(*ahead));
    let is_sound = ahead.get(len).is_some_and(|end| ends_number(*end))
        && (len == 1 || (len > 1 && ahead[0] != b'0'));
    is_sound.then_some(len)
}

#[inline(always)]
fn ends_number(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']' | b' ' | b'\n')
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
        assert_eq!(digits(*b"99\xb0\xb9\x80abc"), (2, 99));
    }

    #[test]
    fn thousandths_are_counted_and_read() {
        assert_eq!(thousandths(*b"123,"), (3, 123));
        assert_eq!(thousandths(*b"09}9"), (2, 90));
        assert_eq!(thousandths(*b"7/99"), (1, 700));
        assert_eq!(thousandths(*b":999").0, 0);
        assert_eq!(thousandths(*b"\xb9\xb9\xb9\xb9").0, 0);
        assert_eq!(thousandths(*b"9999").0, 4);
    }

    #[test]
    fn skips_what_it_reads() {
        for number in [
            "0",
            "7",
            "00",
            "01",
            "12",
            "1234567",
            "12345678",
            "123456789012",
            "1.5",
            "-1",
            ".5",
            "",
            "x",
        ] {
            for end in [", ", "}", "]", " ", "\n", ".", "x", "\"", ":"] {
                for more in ["", "\"more\": 1, \"even more\": 2, \"the most\": 3"] {
                    let text = format!("{number}{end}{more}");
                    let (mut read, mut skipped) =
                        (Cursor::new(text.as_bytes()), Cursor::new(text.as_bytes()));
                    let reads = read.decimal().is_some();
                    // It may see more where the text ends soon.
                    assert!(skipped.skip_decimal() == reads || more.is_empty(), "{text}");
                    assert!(skipped.pos() == read.pos() || more.is_empty(), "{text}");
                }
            }
        }
    }
}
