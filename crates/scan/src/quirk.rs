//! What is not strict JSON in UTF-8: the ways to deviate, and how each is spelled strictly.

use std::ops::Range;

/// One way in which JSON text deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quirk {
    /// A raw control character inside a string.
    Control,
    /// An escape `\uD800`..`\uDFFF`, in a pair or alone.
    Surrogate,
    /// A backslash that starts no JSON escape.
    BadEscape,
    /// Bytes that are not UTF-8.
    Utf8,
    /// `NaN`, `Infinity` and similar, and numbers beyond a double (`1e400`).
    NonFinite,
    /// A number as `01`, `+5`, `.5` or `5.`.
    OddNumber,
    /// A comma that separates nothing.
    ExtraComma,
    /// No comma where one belongs.
    MissingComma,
    /// `[1,2}` or `{"a":1]`.
    WrongBracket,
    /// Not JSON, even to a lenient reader.
    NotJson,
}

impl Quirk {
    pub(crate) const COUNT: usize = Self::NotJson as usize + 1;
}

/// The quirks of one kind in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What kind.
    pub quirk: Quirk,
    /// How many.
    pub count: u64,
    /// Where the first one is.
    pub first: Range<usize>,
}

/// Receives deviations, in file order. Both variants use bounded memory, also for a text of only
/// stray commas.
#[derive(Debug)]
pub(crate) enum Log {
    /// Counts them.
    Tally(Box<[Option<Found>; Quirk::COUNT]>),
    /// Rewrites the text; it is written up to `at`.
    Rewrite { out: Vec<u8>, at: usize },
}

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Whether `bytes` may deviate in the two ways that [`crate::Cursor::lenient`] does not notice: control
/// characters other than the newline, and bytes beyond ASCII. `true` is a reason to check
/// ([`crate::strict::quirks`]), not a result: tabs between values and valid UTF-8 also give it.
#[inline]
#[must_use]
pub fn needs_look(bytes: &[u8]) -> bool {
    // Byte arithmetic only, so that it becomes a few vector instructions for each 16 or 32 bytes.
    bytes.iter().fold(0_u8, |seen, &byte| {
        seen | u8::from(byte >= 0x80) | (u8::from(byte < 0x20) & u8::from(byte != b'\n'))
    }) != 0
}

impl Log {
    /// Records a deviation outside strings.
    pub(crate) fn found(&mut self, quirk: Quirk, bytes: &[u8], range: Range<usize>) {
        let old = &bytes[range.clone()];
        let text: &[u8] = match quirk {
            Quirk::MissingComma => b",",
            Quirk::WrongBracket if old == b"}" => b"]",
            Quirk::WrongBracket => b"}",
            Quirk::NonFinite => &non_finite(old),
            Quirk::OddNumber => &respell(old),
            _ => b"",
        };
        self.edit(quirk, bytes, range, text);
    }

    /// Records a deviation that `text` corrects.
    fn edit(&mut self, quirk: Quirk, bytes: &[u8], range: Range<usize>, text: &[u8]) {
        match self {
            Self::Tally(tally) => match &mut tally[quirk as usize] {
                Some(found) => found.count += 1,
                none => *none = Some(Found { quirk, count: 1, first: range }),
            },
            Self::Rewrite { out, at } => {
                out.extend_from_slice(&bytes[*at..range.start]);
                out.extend_from_slice(text);
                *at = range.end;
            }
        }
    }

    /// The rewritten text, with the rest of `bytes`.
    pub(crate) fn into_text(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Tally(_) => Vec::new(),
            Self::Rewrite { mut out, at } => {
                out.extend_from_slice(bytes.get(at..).unwrap_or_default());
                out
            }
        }
    }
}

/// Reports every deviation inside the string body at `range` to `log`; returns whether there is any.
pub(crate) fn look_into(log: &mut Log, bytes: &[u8], range: Range<usize>) -> bool {
    let mut at = range.start;
    let mut any = false;
    for chunk in bytes[range].utf8_chunks() {
        let end = at + chunk.valid().len();
        while at < end {
            match bytes[at] {
                b'\\' => at = escape(log, &mut any, &bytes[..end], at),
                control @ ..0x20 => {
                    let code = format!("\\u{control:04x}");
                    let text = match control {
                        b'\n' => "\\n",
                        b'\r' => "\\r",
                        b'\t' => "\\t",
                        0x08 => "\\b",
                        0x0c => "\\f",
                        _ => &code,
                    };
                    log.edit(Quirk::Control, bytes, at..at + 1, text.as_bytes());
                    any = true;
                    at += 1;
                }
                _ => at += 1,
            }
        }
        let bad = chunk.invalid().len();
        if bad > 0 {
            log.edit(Quirk::Utf8, bytes, at..at + bad, REPLACEMENT);
            any = true;
            at += bad;
        }
    }
    any
}

/// Checks the escape at `at` of a string body; returns where to continue.
fn escape(log: &mut Log, any: &mut bool, body: &[u8], at: usize) -> usize {
    let mut text = [0; 4];
    let (quirk, len, text) = match (body.get(at + 1), unit(body, at)) {
        (Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'), _) => return at + 2,
        (_, Some(high @ 0xD800..=0xDBFF)) => match unit(body, at + 6) {
            Some(low @ 0xDC00..=0xDFFF) => {
                (Quirk::Surrogate, 12, pair(high, low).encode_utf8(&mut text).as_bytes())
            }
            _ => (Quirk::Surrogate, 6, REPLACEMENT),
        },
        (_, Some(0xDC00..=0xDFFF)) => (Quirk::Surrogate, 6, REPLACEMENT),
        (_, Some(_)) => return at + 6,
        // The backslash is kept.
        _ => (Quirk::BadEscape, 1, &b"\\\\"[..]),
    };
    *any = true;
    log.edit(quirk, body, at..at + len, text);
    at + len
}

/// The UTF-16 unit that the escape `\uXXXX` at `at` names.
pub(crate) fn unit(body: &[u8], at: usize) -> Option<u16> {
    let hex = body.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

/// The character of a surrogate pair.
pub(crate) fn pair(high: u16, low: u16) -> char {
    let code = 0x10000 + ((u32::from(high) & 0x3FF) << 10 | (u32::from(low) & 0x3FF));
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// How a number is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Sound,
    Odd,
    NonFinite,
}

/// The parts of a number in any spelling.
struct Parts<'a> {
    sign: &'a [u8],
    int: &'a [u8],
    fraction: Option<&'a [u8]>,
    /// With its `e` and sign.
    exponent: &'a [u8],
}

fn parts(token: &[u8]) -> Option<Parts<'_>> {
    let (sign, rest) = token.split_at(usize::from(matches!(token.first(), Some(b'+' | b'-'))));
    let (mantissa, exponent) = rest
        .split_at(rest.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(rest.len()));
    let (int, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
        Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
        None => (mantissa, None),
    };
    let digits = fraction.unwrap_or_default();
    if int.is_empty() && digits.is_empty() || !int.iter().chain(digits).all(u8::is_ascii_digit) {
        return None;
    }
    if let Some(power) = exponent.get(1..) {
        let power = power.strip_prefix(b"-").or(power.strip_prefix(b"+")).unwrap_or(power);
        if power.is_empty() || !power.iter().all(u8::is_ascii_digit) {
            return None;
        }
    }
    Some(Parts { sign, int, fraction, exponent })
}

/// The kind of number that `token` is; `None` when it is not a number.
pub(crate) fn number(token: &[u8]) -> Option<Number> {
    let Some(parts) = parts(token) else {
        let word = token.strip_prefix(b"-").or(token.strip_prefix(b"+")).unwrap_or(token);
        let known = ["nan", "inf", "infinity"];
        let found = known.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
        return found.then_some(Number::NonFinite);
    };
    let odd = parts.sign == b"+"
        || parts.int.is_empty()
        || (parts.int.len() > 1 && parts.int[0] == b'0')
        || parts.fraction.is_some_and(<[u8]>::is_empty);
    if parts.exponent.len() > 3 && !is_finite(token) {
        return Some(Number::NonFinite);
    }
    Some(if odd { Number::Odd } else { Number::Sound })
}

/// Whether a number fits a double, with its power of ten by itself as Perfetto computes it.
fn is_finite(token: &[u8]) -> bool {
    let power = token.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or_default() + 1;
    let fits = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    let whole = std::str::from_utf8(token).is_ok_and(fits);
    let power = std::str::from_utf8(&token[power..]).unwrap_or_default();
    whole && fits(&format!("1e{power}"))
}

fn non_finite(token: &[u8]) -> Vec<u8> {
    let word = token.strip_prefix(b"-").or(token.strip_prefix(b"+")).unwrap_or(token);
    let text = match (word.eq_ignore_ascii_case(b"nan"), token.first()) {
        _ if word.iter().any(u8::is_ascii_digit) => token,
        (true, _) => b"NaN",
        (false, Some(b'-')) => b"-Infinity",
        (false, _) => b"Infinity",
    };
    [b"\"", text, b"\""].concat()
}

fn respell(token: &[u8]) -> Vec<u8> {
    let Some(Parts { sign, int, fraction, exponent }) = parts(token) else {
        return token.to_vec();
    };
    let mut text = Vec::with_capacity(token.len() + 2);
    if sign == b"-" {
        text.push(b'-');
    }
    let zeros = int.iter().take_while(|digit| **digit == b'0').count();
    match &int[zeros..] {
        [] => text.push(b'0'),
        digits => text.extend_from_slice(digits),
    }
    if let Some(fraction) = fraction {
        text.push(b'.');
        text.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
    }
    text.extend_from_slice(exponent);
    text
}
