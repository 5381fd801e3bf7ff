//! Decimal text to nanoseconds: exactly, and with the arithmetic of Perfetto's importer.
//!
//! Trace times are microseconds in decimal (`"ts": 6520430063606.411`). At 1.7e15 us a double only
//! resolves 0.25 us, so a reader that uses doubles sees crossings that do not exist. Kinetoscope
//! reads the text exactly, and also models the importer's own arithmetic, because repair must predict what
//! the importer will do with a file.

/// A number of microseconds read from its decimal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Micros {
    /// Exact nanoseconds; digits below 1 ns are truncated (towards zero).
    pub ns: i128,
    /// Whether digits below 1 ns were truncated.
    pub sub_ns: bool,
    /// The importer's reading, when it is not [`importer_ns`] of `ns`.
    pub odd_importer_ns: Option<i64>,
}

/// Whether the importer reads `text` (of a number, or inside a string) as a number, of any size or length.
#[must_use]
pub fn is_number(text: &[u8]) -> bool {
    let is_finite = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    parse_micros(text).is_some() || std::str::from_utf8(text).is_ok_and(is_finite)
}

/// Times below this, of either sign, the importer reads as they are.
// Below 2^42 us the double's error stays under half a nanosecond: the way there and back is exact.
pub const EXACT_BELOW_NS: u64 = (1 << 42) * 1000;

/// The importer's nanoseconds for a time of `exact_ns` written with at most three decimals.
///
/// Perfetto v51 to v58, `util/json_parser.h` and `json_trace_parser.cc`: an integer is used as is;
/// anything with a fraction becomes `double(integer) + double(digits) / 10^n`, and then nanoseconds by
/// `llround(us * 1000)`, or by multiplying the integer when the sum came out integral. The number of
/// digits does not matter (5/10 and 500/1000 are the same double), so the exact value decides.
#[inline]
#[must_use]
pub fn importer_ns(exact_ns: i64) -> i64 {
    if exact_ns.unsigned_abs() < EXACT_BELOW_NS { exact_ns } else { rounded_ns(exact_ns) }
}

fn rounded_ns(exact_ns: i64) -> i64 {
    let (whole, fraction) = (exact_ns.unsigned_abs() / 1000, exact_ns.unsigned_abs() % 1000);
    if fraction == 0 {
        return exact_ns;
    }
    let magnitude = double_to_ns(whole as f64 + fraction as f64 / 1000.0);
    if exact_ns < 0 { magnitude.wrapping_neg() } else { magnitude }
}

/// The importer's last step: microseconds as a double to nanoseconds.
fn double_to_ns(us: f64) -> i64 {
    // `as` truncates towards zero, and saturates where C++ is undefined; such times are far outside the range of
    // either side.
    if us == us.trunc() {
        return (us as i64).wrapping_mul(1000);
    }
    // llround: half away from zero.
    let ns = us * 1000.0;
    let cut = ns as i64;
    let rest = ns - cut as f64;
    if rest >= 0.5 {
        cut.saturating_add(1)
    } else if rest <= -0.5 {
        cut.saturating_sub(1)
    } else {
        cut
    }
}

/// Reads the text of a JSON number (or of a string holding one) as microseconds.
///
/// Also reads spellings that JSON forbids but files contain: a leading `+`, leading zeros, `.5`, `5.`. `None` when it
/// is not a number.
#[must_use]
pub fn parse_micros(text: &[u8]) -> Option<Micros> {
    match parse_plain(text) {
        Some(ns) => Some(Micros { ns: i128::from(ns), sub_ns: false, odd_importer_ns: None }),
        None => parse_odd(text),
    }
}

/// The exact nanoseconds of a number in the common form: up to 16 digits, optionally a point and
/// up to three more. The importer's reading follows from them ([`importer_ns`]). `None` means only
/// that [`parse_micros`] must read the text.
#[inline]
#[must_use]
pub fn parse_plain(text: &[u8]) -> Option<i64> {
    let mut at = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let negative = text.first() == Some(&b'-');
    let int_start = at;
    let mut whole: i64 = 0;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        whole = whole.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let int_len = at - int_start;
    if int_len == 0 || int_len > 15 && (int_len > 16 || whole >= 1 << 53) {
        return None;
    }
    let mut ns = whole * 1000;
    if let Some(byte) = text.get(at) {
        let digits = &text[at + 1..];
        if *byte != b'.' || digits.len() > 3 {
            return None;
        }
        let mut weight = 100;
        for digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            ns += i64::from(digit) * weight;
            weight /= 10;
        }
    }
    Some(if negative { -ns } else { ns })
}

/// What lies beyond 10^30 us is taken for this: no column can hold it, and the importer's reading is kept beside it.
const BEYOND_NS: i128 = 10_i128.pow(33) + 1;

/// The general case: many digits, an exponent, huge values.
#[cold]
fn parse_odd(text: &[u8]) -> Option<Micros> {
    let negative = text.first() == Some(&b'-');
    let body = &text[usize::from(matches!(text.first(), Some(b'-' | b'+')))..];
    let (mantissa, exponent) = match body.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let (int, frac) = match mantissa.iter().position(|byte| *byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &mantissa[mantissa.len()..]),
    };
    if int.is_empty() && frac.is_empty() || !int.iter().chain(frac).all(u8::is_ascii_digit) {
        return None;
    }
    let exponent: i32 = match exponent {
        None => 0,
        Some(digits) => std::str::from_utf8(digits).ok()?.parse().ok()?,
    };

    // Exact: the digits as one integer, shifted so that the last digit is a nanosecond.
    let mut ns: i128 = 0;
    let mut sub_ns = false;
    let places = (int.len() as i64) + i64::from(exponent) + 3;
    for (index, digit) in int.iter().chain(frac).map(|byte| byte - b'0').enumerate() {
        if (index as i64) < places {
            ns = ns.saturating_mul(10).saturating_add(i128::from(digit)).min(BEYOND_NS);
        } else {
            sub_ns |= digit != 0;
        }
    }
    for _ in (int.len() + frac.len()) as i64..places {
        if ns == 0 || ns == BEYOND_NS {
            break;
        }
        ns = ns.saturating_mul(10).min(BEYOND_NS);
    }
    let sign = if negative { -1 } else { 1 };
    let importer =
        importer_of_parts(negative, int, frac, mantissa.len() != body.len(), exponent, {
            mantissa.len() > int.len()
        })?;
    let follows = i64::try_from(sign * ns).ok().map(importer_ns) == Some(importer) && !sub_ns;
    Some(Micros { ns: sign * ns, sub_ns, odd_importer_ns: (!follows).then_some(importer) })
}

/// The importer's arithmetic on the parts of a number, overflow and all. `None` for what it cannot read either: a
/// double that is infinite.
fn importer_of_parts(
    negative: bool,
    int: &[u8],
    frac: &[u8],
    has_exponent: bool,
    exponent: i32,
    has_point: bool,
) -> Option<i64> {
    if !has_point && !has_exponent {
        // An integer that does not fit 64 bits is read as a double, of the wrapped digits.
        let text = std::str::from_utf8(int).unwrap_or_default();
        let fits = text.parse::<i64>().ok().map(|whole| if negative { -whole } else { whole });
        let least = || (negative && text.parse() == Ok(1_u64 << 63)).then_some(i64::MIN);
        if let Some(whole) = fits.or_else(least) {
            return Some(whole.wrapping_mul(1000));
        }
    }
    importer_double(negative, int, frac, exponent).map(double_to_ns)
}

/// `StringToDouble` of `util/json_parser.h`: digits are added up in 64 bits, which wrap.
fn importer_double(negative: bool, int: &[u8], frac: &[u8], exponent: i32) -> Option<f64> {
    let wrap = |digits: &[u8]| {
        digits.iter().fold(0_i64, |value, digit| {
            value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'))
        })
    };
    let mut us = wrap(int) as f64;
    if !frac.is_empty() {
        let scale = (0..frac.len()).fold(1_u64, |scale, _| scale.wrapping_mul(10));
        us += wrap(frac) as f64 / scale as f64;
    }
    if exponent != 0 {
        let power = 10_f64.powf(f64::from(exponent.saturating_abs()));
        us = if exponent < 0 { us / power } else { us * power };
    }
    us.is_finite().then_some(if negative { -us } else { us })
}

/// The importer's value of a JSON number that is no 64-bit integer.
#[must_use]
pub fn importer_value(text: &[u8]) -> Option<f64> {
    let (negative, body) = match text {
        [b'-', body @ ..] => (true, body),
        body => (false, body),
    };
    let end = body.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(body.len());
    let exponent = match body.get(end + 1..) {
        Some(digits) => std::str::from_utf8(digits).ok()?.parse().ok()?,
        None => 0,
    };
    let mut parts = body[..end].splitn(2, |byte| *byte == b'.');
    let (int, frac) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let digits = int.iter().chain(frac).all(u8::is_ascii_digit);
    if digits { importer_double(negative, int, frac, exponent) } else { None }
}

/// Whether C's `strtod` takes the whole of `text`, as the importer asks of a counter's value in quotes: blanks in
/// front, a sign, hexadecimal, infinities and NaN are all right.
#[must_use]
pub fn is_c_number(text: &[u8]) -> bool {
    let text = text
        .iter()
        .position(|byte| !matches!(byte, b' ' | 9..=13))
        .map_or(&[][..], |at| &text[at..]);
    let text = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    if matches!(&lower[..], b"inf" | b"infinity" | b"nan") {
        return true;
    }
    if let Some(name) = lower.strip_prefix(b"nan(").and_then(|rest| rest.strip_suffix(b")")) {
        return name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    }
    let (digits, is_digit, power): (&[u8], fn(&u8) -> bool, u8) = match lower.strip_prefix(b"0x") {
        Some(hexadecimal) => (hexadecimal, u8::is_ascii_hexdigit, b'p'),
        None => (&lower, u8::is_ascii_digit, b'e'),
    };
    let end = digits.iter().position(|byte| *byte == power).unwrap_or(digits.len());
    let mantissa: Vec<u8> = digits[..end].to_vec();
    let points = mantissa.iter().filter(|byte| **byte == b'.').count();
    let n_digits = mantissa.iter().filter(|byte| is_digit(byte)).count();
    let exponent = digits.get(end + 1..).is_none_or(|exponent| {
        let exponent =
            exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
        !exponent.is_empty() && exponent.iter().all(u8::is_ascii_digit)
    });
    n_digits > 0 && points <= 1 && n_digits + points == mantissa.len() && exponent
}

/// Writes `ns` as microseconds with at least `decimals` and at most three decimals.
///
/// `decimals` keeps the file's own look (`12.500` stays three digits wide).
#[must_use]
pub fn write_micros(ns: i128, decimals: usize) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, fraction) = (ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
    let needed = match fraction {
        0 => 0,
        f if f % 100 == 0 => 1,
        f if f % 10 == 0 => 2,
        _ => 3,
    };
    let width = needed.max(decimals.min(3));
    if width == 0 {
        return format!("{sign}{whole}");
    }
    let digits = format!("{fraction:03}");
    format!("{sign}{whole}.{}", &digits[..width])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> i128 {
        parse_micros(text.as_bytes()).unwrap().ns
    }

    #[test]
    fn reads_decimals_exactly() {
        assert_eq!(ns("1695835535123451.100"), 1_695_835_535_123_451_100);
        assert_eq!(ns("0.001"), 1);
        assert_eq!(ns("-20"), -20_000);
        assert_eq!(ns("1.5e3"), 1_500_000);
        assert_eq!(ns("15e-1"), 1_500);
        assert_eq!(ns("5.0e0"), 5_000);
        assert_eq!(ns("9223372036854775807"), 9_223_372_036_854_775_807_000);
        assert_eq!(ns(".5"), 500);
        assert_eq!(ns("5."), 5_000);
        assert_eq!(ns("007"), 7_000);
        let odd = parse_micros(b"1.23456").unwrap();
        assert_eq!((odd.ns, odd.sub_ns, odd.odd_importer_ns), (1_234, true, Some(1_235)));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", ".", "abc", "1.2.3", "1e", "NaN", "1 2", "0x10", "1e999", "--1"] {
            assert_eq!(parse_micros(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_importer_rounds_big_times_to_its_own_grid() {
        // At 1.7e15 us adjacent doubles are 0.25 us apart (52 bits of mantissa, 2^50 <= 1.7e15 < 2^51).
        assert_eq!(importer_ns(1_695_835_535_123_451_100), 1_695_835_535_123_451_000);
        assert_eq!(importer_ns(1_695_835_535_123_451_000), 1_695_835_535_123_451_000);
        assert_eq!(importer_ns(-1_500), -1_500);
    }

    #[test]
    fn below_2_to_the_42_us_nothing_is_rounded() {
        let limit = (1_i64 << 42) * 1000;
        // Where doubles are coarsest, and all over the range below.
        let near = limit - 200_000..limit;
        let far = (0..200_000).map(|n| n * (limit / 200_000) + n % 1000);
        for ns in near.chain(far) {
            assert_eq!(rounded_ns(ns), ns);
            assert_eq!(rounded_ns(-ns), -ns);
        }
    }

    #[test]
    fn too_many_digits_overflow_as_measured() {
        // Measured with Perfetto v55.3: 5.12345678901234567890123 us becomes 28,990 ns, because its digits overflow.
        let odd = parse_micros(b"5.12345678901234567890123").unwrap();
        assert_eq!(odd.odd_importer_ns, Some(28_990));
        assert_eq!(odd.ns, 5_123);
    }

    #[test]
    fn what_no_column_holds_is_read_as_the_importer_reads_it() {
        let odd = |text: &str| parse_micros(text.as_bytes()).unwrap().odd_importer_ns.unwrap();
        // A double cut to 64 bits, times 1000: it wraps.
        assert_eq!(odd("1e99"), -1000);
        assert_eq!(odd("9223372036854775807"), -1000);
        assert_eq!(odd("18446744073709551617"), 1000);
        assert_eq!(importer_value(b"18446744073709551617"), Some(1.0));
        assert_eq!(importer_value(b"7.5"), Some(7.5));
        assert_eq!(importer_value(b"1e999"), None);
    }

    #[test]
    fn c_numbers() {
        for text in [
            "1",
            " 5",
            "+5",
            ".5",
            "5.",
            "0x10",
            "0x1.8p3",
            "1e5",
            "1e400",
            "inf",
            "-Infinity",
            "nan",
        ] {
            assert!(is_c_number(text.as_bytes()), "{text}");
        }
        for text in ["", " ", "5 ", "x", "1e", "0x", "--1", "1.2.3", ".", "infx"] {
            assert!(!is_c_number(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        assert_eq!(write_micros(1_500, 0), "1.5");
        assert_eq!(write_micros(1_500, 3), "1.500");
        assert_eq!(write_micros(-20_000, 0), "-20");
        assert_eq!(write_micros(1, 0), "0.001");
        for ns in [0, 1, 999, 1_000, 123_456_789, -5] {
            assert_eq!(parse_micros(write_micros(ns, 2).as_bytes()).unwrap().ns, ns);
        }
    }
}
