//! Integers and ids out of JSON values.

use scan::{Value, string::unescape};
use trace::decimal::{Micros, is_c_number, is_number, parse_micros, parse_plain};

use super::draft::{Draft, Field};

/// A decimal integer, when `text` is one that fits.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() <= 18 {
        let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        return Some(if digits.len() == text.len() { value } else { -value });
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A correlation or external id.
#[inline]
pub(super) fn link(draft: &Draft<'_>, field: Field) -> Option<i64> {
    match draft.decimal(field) {
        Some(decimal) => decimal.integer(),
        None => link_of(draft.get(field)?),
    }
}

/// An integer, or a string holding one.
#[inline(never)]
pub(crate) fn link_of(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Number(text) => integer(text),
        Value::String(text) => integer(text.raw),
        _ => None,
    }
}

/// The id of a flow as Perfetto reads it: integers as they are, strings with `strtoull` in base 16
/// (`CStringToUInt64`), which must take the whole text.
#[inline(never)]
pub(super) fn flow_id(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Number(text) => integer(text),
        Value::String(text) => hexadecimal(unescape(text.raw).as_bytes()),
        _ => None,
    }
}

fn hexadecimal(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    // `strtoull` answers the greatest number when it is too great, sign or not.
    let value = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16);
    Some(
        match value {
            Ok(value) if negative => value.wrapping_neg(),
            Ok(value) => value,
            Err(_) => u64::MAX,
        }
        .cast_signed(),
    )
}

/// A time as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The key is absent.
    Missing,
    /// There is something else than a number.
    Unreadable,
    /// Nanoseconds with nothing odd about them.
    Plain(i64),
    /// A number; `text` when it was written as a string.
    Known { micros: Micros, text: bool },
    /// Text with a number in it that JSON would not take for one, and nor does the importer: `"+5"`.
    Rejected(Micros),
}

/// Reads `ts` or `dur`.
#[inline]
pub(super) fn time(draft: &Draft<'_>, field: Field) -> Time {
    match draft.decimal(field) {
        Some(us) => Time::Plain(us.times_1000()),
        None => draft.get(field).map_or(Time::Missing, time_of),
    }
}

/// A time of less usual spelling.
#[inline(never)]
fn time_of(value: Value<'_>) -> Time {
    let (micros, text) = match value {
        Value::Number(number) => match parse_plain(number) {
            Some(ns) => return Time::Plain(ns),
            None => (parse_micros(number), false),
        },
        Value::String(text) => {
            let text = unescape(text.raw);
            let micros = parse_micros(text.as_bytes());
            match micros {
                Some(micros) if !is_json_number(text.as_bytes()) => return Time::Rejected(micros),
                micros => (micros, true),
            }
        }
        _ => (None, false),
    };
    micros.map_or(Time::Unreadable, |micros| Time::Known { micros, text })
}

/// Whether the importer takes the value for a time: a number, or a string holding one.
pub(crate) fn is_time(value: Value<'_>) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => {
            let text = unescape(text.raw);
            is_json_number(text.as_bytes()) && is_number(text.as_bytes())
        }
        _ => false,
    }
}

/// Whether the importer takes the value for a counter's.
pub(super) fn is_count(value: Value<'_>) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => is_c_number(unescape(text.raw).as_bytes()),
        _ => false,
    }
}

/// Whether `text` is a number as JSON spells them.
fn is_json_number(text: &[u8]) -> bool {
    let is_number = text.first().is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit());
    is_number && scan::strict::is_strict(text) && !text.ends_with(b" ")
}

/// A number cut to an integer.
pub(super) fn truncated(text: &[u8]) -> Option<i64> {
    integer(text).or_else(|| {
        let value = std::str::from_utf8(text).ok()?.parse::<f64>().ok()?;
        value.is_finite().then_some(value as i64)
    })
}

#[cfg(test)]
mod tests {
    use scan::{Spelling, Text};

    use super::*;

    #[test]
    fn integers() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"-42"), Some(-42));
        assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in ["9223372036854775808", "1.0", "1e3", "", "-", "+1", "0x1"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn flow_ids_as_perfetto_reads_them() {
        let text = |raw: &'static str| {
            let spelling = if raw.contains('\\') { Spelling::Escaped } else { Spelling::Plain };
            flow_id(Value::String(Text { raw: raw.as_bytes(), spelling }))
        };
        assert_eq!(flow_id(Value::Number(b"12")), Some(12));
        // Measured: what does not fit 64 bits with a sign is a double, and no id.
        assert_eq!(flow_id(Value::Number(b"18446744073709551615")), None);
        assert_eq!(flow_id(Value::Number(b"1.5")), None);
        assert_eq!(flow_id(Value::Null), None);
        assert_eq!(text("12"), Some(0x12));
        assert_eq!(text("0xff"), Some(255));
        assert_eq!(text(r"\u0061"), Some(10));
        assert_eq!(text("fffffffffffffffff"), Some(-1));
        assert_eq!(text("0x"), None);
        assert_eq!(text("12 "), None);
        assert_eq!(text("xyz"), None);
        assert_eq!(text(""), None);
    }
}
