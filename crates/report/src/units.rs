//! Formats times, sizes, counts and shares.
//!
//! Times, memory and file sizes have three significant digits and a suitable unit; a column has one
//! unit, chosen from its largest value ([`Scale`]). All rounding is on integers (half up), so the text of
//! a value is the same on every machine. The exact value is in titles and copies.

/// Shown for a missing value. Never `0`, because a missing value is not zero.
pub(crate) const MISSING: &str = "-";

/// Between groups of three digits.
pub const GROUP: char = '\u{2009}';

/// The unit of a column of times or sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The column has no unit in its header.
    None,
    /// A rung of ns, µs, ms, s.
    Time(usize),
    /// A rung of B, KiB, MiB, GiB, TiB.
    Bytes(usize),
    /// A rung of B, kB, MB, GB, TB.
    FileBytes(usize),
}

/// Units with their size in the smallest one, from small to large.
type Ladder = &'static [(&'static str, u64)];

const TIME: Ladder = &[("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const MEMORY: Ladder =
    &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const FILE: Ladder =
    &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];

impl Scale {
    /// The scale of times of which `largest` ns is the largest.
    #[must_use]
    pub fn time(largest: u64) -> Self {
        Self::Time(rung(TIME, largest))
    }

    /// The scale of memory sizes of which `largest` is the largest.
    #[must_use]
    pub fn bytes(largest: u64) -> Self {
        Self::Bytes(rung(MEMORY, largest))
    }

    /// The scale of file sizes of which `largest` is the largest.
    #[must_use]
    pub fn file_bytes(largest: u64) -> Self {
        Self::FileBytes(rung(FILE, largest))
    }

    /// The unit in the header: `µs`; empty when there is no unit.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        self.unit().map_or("", |(name, _)| name)
    }

    /// `value` (in ns or bytes) in this unit, without the unit's name.
    #[must_use]
    pub fn number(self, value: u64, negative: bool) -> String {
        let number = match self.unit() {
            None => count(value),
            Some((_, size)) => three_digits(value, size),
        };
        if negative && value != 0 { format!("-{number}") } else { number }
    }

    fn unit(self) -> Option<(&'static str, u64)> {
        let (ladder, rung) = match self {
            Self::None => return None,
            Self::Time(rung) => (TIME, rung),
            Self::Bytes(rung) => (MEMORY, rung),
            Self::FileBytes(rung) => (FILE, rung),
        };
        ladder.get(rung).copied()
    }
}

/// A duration: `820 ns`, `12.3 µs`, `4.56 ms`, `1.23 s`.
#[must_use]
pub fn time(ns: i64) -> String {
    let scale = Scale::time(ns.unsigned_abs());
    format!("{} {}", scale.number(ns.unsigned_abs(), ns < 0), scale.suffix())
}

/// A moment, as [`time`], with as many decimals as tell a hundredth of `span_ns` apart: what lies near others is told from them.
#[must_use]
pub fn moment(ns: i64, span_ns: i64) -> String {
    let scale = Scale::time(ns.unsigned_abs());
    let Some((name, unit)) = scale.unit() else { return time(ns) };
    let least = (span_ns.unsigned_abs() / 100).max(1);
    let (mut step, mut decimals) = (unit, 0);
    while step > least && step > 1 {
        step /= 10;
        decimals += 1;
    }
    let text = format!("{} {name}", fixed(ns as f64 / unit as f64, decimals));
    // (Three digits are never too many.)
    let short = time(ns);
    if short.len() >= text.len() { short } else { text }
}

/// A point on the file's clock: exact microseconds with three decimals, as the file spells them.
#[must_use]
pub fn instant(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", count(ns.unsigned_abs() / 1000), ns.unsigned_abs() % 1000)
}

/// A count: `1 204` with thin spaces.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// A whole number that may be negative, with groups.
#[must_use]
pub fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", count(value.unsigned_abs()))
}

/// A share: one decimal, `<0.1%` for positive values that would round to zero.
#[must_use]
pub fn percent(value: f64) -> String {
    if !value.is_finite() {
        MISSING.to_owned()
    } else if value > 0.0 && value < 0.1 {
        "<0.1%".to_owned()
    } else {
        format!("{}%", fixed(value, 1))
    }
}

/// `value` with this many decimals, as `{value:.n}` prints it: the exact value, rounded half to even. `-` where it is no number, or as
/// large as no share, time or coordinate can be. At most 12 decimals.
///
/// (The library's printing of floats has tables of 15 kB, which would be a part of the first download. Here a float is what it is:
/// a whole number times a power of two.)
#[must_use]
pub fn fixed(value: f64, decimals: u32) -> String {
    let decimals = decimals.min(12);
    match Binary::of(value).and_then(|binary| binary.rounded(decimals)) {
        Some((digits, _)) => decimal_text(value, digits, decimals),
        None => MISSING.to_owned(),
    }
}

/// `value`, or the bound that it is beyond; `least` for what is no number.
///
/// (`f64::clamp` prints its bounds where they are wrong, and brings the library's printing of floats: see [`fixed`].)
#[must_use]
#[allow(clippy::manual_clamp, reason = "said above")]
pub fn between(value: f64, least: f64, most: f64) -> f64 {
    value.max(least).min(most)
}

/// `value` with as few decimals as tell it from every other float, as `{value}` prints it below 2^53; numbers too small for 20 decimals are
/// cut there. `-` as for [`fixed`].
#[must_use]
pub fn shortest(value: f64) -> String {
    let Some(binary) = Binary::of(value) else { return MISSING.to_owned() };
    let each = (0..=20).filter_map(|decimals| Some((decimals, binary.rounded(decimals)?)));
    let mut last = None;
    for (decimals, (digits, is_it)) in each {
        last = Some((decimals, digits));
        if is_it {
            break;
        }
    }
    last.map_or_else(
        || MISSING.to_owned(),
        |(decimals, digits)| decimal_text(value, digits, decimals),
    )
}

/// A float: `mantissa` times two to the power of `-down`.
#[derive(Clone, Copy)]
struct Binary {
    mantissa: u128,
    down: i32,
}

impl Binary {
    /// `None` where it is no number.
    fn of(value: f64) -> Option<Self> {
        let bits = value.abs().to_bits();
        let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        // (Numbers without the hidden bit are so small that it makes no difference.)
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        value.is_finite().then_some(Self { mantissa: mantissa.into(), down: 1075 - exponent })
    }

    /// The number of units of the last decimal, and whether no other float is as near to that. `None` where it is too large.
    fn rounded(self, decimals: u32) -> Option<(u128, bool)> {
        let unit = 10_u128.pow(decimals);
        let scaled = self.mantissa * unit;
        if self.down <= 0 {
            let whole = scaled.checked_mul(1_u128.checked_shl(self.down.unsigned_abs())?)?;
            return Some((whole, true));
        }
        let Some(one) = 1_u128.checked_shl(self.down.unsigned_abs()).filter(|one| *one >> 127 == 0)
        else {
            return Some((0, self.mantissa == 0));
        };
        let (whole, rest) = (scaled / one, scaled % one);
        let up = rest > one / 2 || (rest == one / 2 && whole % 2 == 1);
        let off = if up { one - rest } else { rest };
        Some((whole + u128::from(up), off < unit / 2 || off == 0))
    }
}

fn decimal_text(value: f64, digits: u128, decimals: u32) -> String {
    let digits = format!("{digits:0width$}", width = decimals as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals as usize);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let point = if decimals == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// A number of digits with at most one point. The nearest float, as long as there are 15 digits at most: both parts of the division
/// are exact then. (The parser of the library has a table of 10 kB, which would be a part of the first download.)
#[must_use]
pub fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 15)?;
    Some(number as f64 / 10_u64.pow(fraction.len() as u32) as f64)
}

/// Memory: `820 B`, `1.20 GiB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    let scale = Scale::bytes(value);
    format!("{} {}", scale.number(value, false), scale.suffix())
}

/// The size of a file: `820 B`, `4.03 MB`.
#[must_use]
pub fn file_bytes(value: u64) -> String {
    let scale = Scale::file_bytes(value);
    format!("{} {}", scale.number(value, false), scale.suffix())
}

/// "1 row", "2 rows", "1 204 rows".
#[must_use]
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// The largest unit in which `value` is at least 1, after rounding to three digits: 999.6 µs is 1.00 ms.
fn rung(ladder: Ladder, value: u64) -> usize {
    let power = 10_u128.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(2));
    let rounded = (u128::from(value) + power / 2) / power * power;
    ladder.iter().rposition(|(_, size)| u128::from(*size) <= rounded.max(value.into())).unwrap_or(0)
}

/// `value / size` with three significant digits, half rounded up; more digits before the point stay.
fn three_digits(value: u64, size: u64) -> String {
    let (value, size) = (u128::from(value), u128::from(size));
    // Decimals that make sense: none for the smallest unit; enough for three significant digits; never so
    // many that they would say more than the smallest unit holds.
    let most = size.ilog10();
    let mut decimals = 0;
    let mut power = 1_u128;
    while decimals < most && value * power < 100 * size && value != 0 {
        power *= 10;
        decimals += 1;
    }
    let mut scaled = (value * power * 2 + size) / (size * 2);
    // 9.996 rounds to 10.00, which has one digit too many.
    if decimals > 0 && scaled >= 1000 {
        scaled = (scaled + 5) / 10;
        decimals -= 1;
        power /= 10;
    }
    let whole = count(u64::try_from(scaled / power).unwrap_or(u64::MAX));
    if decimals == 0 {
        return whole;
    }
    let fraction = scaled % power;
    format!("{whole}.{fraction:0width$}", width = decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_nearest_float() {
        for text in ["0", "100", "1.5", ".25", "3.", "0.1", "99.999", "123456789.123456"] {
            assert_eq!(decimal(text), text.parse().ok(), "{text}");
        }
        for text in ["", ".", "1.2.3", "1234567890123456"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn times_read_with_three_digits_and_a_unit_that_fits() {
        for (ns, text) in [
            (0, "0 ns"),
            (1, "1 ns"),
            (820, "820 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_345, "12.3 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (4_556_000, "4.56 ms"),
            (1_234_567_890, "1.23 s"),
            (99_950_000_000, "100 s"),
            (12_345_678_901_234, "12\u{2009}346 s"),
            (-12_345, "-12.3 µs"),
            (i64::MIN, "-9\u{2009}223\u{2009}372\u{2009}037 s"),
        ] {
            assert_eq!(time(ns), text, "{ns}");
        }
    }

    #[test]
    fn a_float_has_the_digits_of_the_library() {
        for (value, decimals, text) in [
            (0.25, 1, "0.2"),
            (0.35, 1, "0.3"),
            (-0.0, 2, "-0.00"),
            (99.95, 1, "100.0"),
            (7.5, 0, "8"),
        ] {
            assert_eq!(fixed(value, decimals), text);
            assert_eq!(fixed(value, decimals), format!("{value:.*}", decimals as usize));
        }
        for value in [f64::NAN, f64::INFINITY, f64::MAX] {
            assert_eq!(
                (fixed(value, 1), shortest(value)),
                (MISSING.to_owned(), MISSING.to_owned())
            );
        }
        for value in [0.0, 0.1, 100.0, 1.0 / 3.0, 12.3, 99.999_999_999_999_99, 1e-5] {
            assert_eq!(shortest(value), value.to_string());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_float_has_the_digits_of_the_library(value in -1e24..1e24_f64, scale in -40..1_i32, decimals in 0..=12_u32) {
            let value = value * 10_f64.powi(scale);
            proptest::prop_assert_eq!(fixed(value, decimals), format!("{value:.*}", decimals as usize));
        }

        #[test]
        fn a_share_is_printed_in_full_as_by_the_library(part in 0..u64::MAX, whole in 1..u64::MAX) {
            let share = 100.0 * part as f64 / whole as f64;
            proptest::prop_assume!((1e-3..1e15).contains(&share));
            proptest::prop_assert_eq!(shortest(share).parse::<f64>().ok(), Some(share));
            proptest::prop_assert!(shortest(share).len() <= share.to_string().len());
        }

        #[test]
        fn a_tie_is_rounded_to_even(eighths in -80_000..80_000_i32, decimals in 0..=3_u32) {
            let value = f64::from(eighths) / 8.0;
            proptest::prop_assert_eq!(fixed(value, decimals), format!("{value:.*}", decimals as usize));
        }
    }

    #[test]
    fn a_column_has_one_unit_and_no_value_vanishes_in_it() {
        let scale = Scale::time(64_100_000);
        assert_eq!(scale.suffix(), "ms");
        let shown =
            [64_100_000, 4_556_000, 820_000, 12_345, 820, 1, 0].map(|ns| scale.number(ns, false));
        assert_eq!(shown, ["64.1", "4.56", "0.820", "0.0123", "0.000820", "0.000001", "0"]);
        assert_eq!(Scale::time(1).number(1234, false), "1\u{2009}234");
        assert_eq!(Scale::None.number(1234, false), "1\u{2009}234");
    }

    #[test]
    fn memory_is_binary_and_files_are_decimal() {
        assert_eq!(bytes(820), "820 B");
        assert_eq!(bytes(1 << 10), "1.00 KiB");
        assert_eq!(bytes(1_288_490_189), "1.20 GiB");
        assert_eq!(bytes(1_048_474), "1.00 MiB");
        assert_eq!(bytes(205_600_000_000), "191 GiB");
        assert_eq!(file_bytes(999), "999 B");
        assert_eq!(file_bytes(4_029_954), "4.03 MB");
        assert_eq!(file_bytes(u64::MAX), "18\u{2009}446\u{2009}744 TB");
    }

    #[test]
    fn shares_never_round_to_nothing() {
        for (value, text) in
            [(0.0, "0.0%"), (0.01, "<0.1%"), (0.1, "0.1%"), (43.04, "43.0%"), (100.0, "100.0%")]
        {
            assert_eq!(percent(value), text);
        }
        assert_eq!(percent(f64::NAN), MISSING);
    }

    #[test]
    fn counts_and_instants_have_groups() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_204), "1\u{2009}204");
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
        assert_eq!(instant(-1_500), "-1.500");
        assert_eq!(instant(1_419_247_332_684), "1\u{2009}419\u{2009}247\u{2009}332.684");
        assert_eq!(plural(1, "row", "rows"), "1 row");
        assert_eq!(plural(1_204, "row", "rows"), "1\u{2009}204 rows");
    }
}
