//! The value of a JSON string.

use std::borrow::Cow;

use memchr::memchr;

use crate::quirk::{pair, unit};

/// The value of a string body (the bytes between the quotes): escapes resolved, surrogate pairs
/// joined, lone surrogates and invalid UTF-8 replaced by U+FFFD. A backslash that starts no JSON escape
/// is kept, as [`crate::strict::rewrite`] writes it.
#[must_use]
pub fn unescape(raw: &[u8]) -> Cow<'_, str> {
    let Some(mut at) = memchr(b'\\', raw) else {
        return String::from_utf8_lossy(raw);
    };
    let mut text = Vec::with_capacity(raw.len());
    text.extend_from_slice(&raw[..at]);
    while let Some(byte) = raw.get(at) {
        if *byte != b'\\' {
            text.push(*byte);
            at += 1;
            continue;
        }
        let plain = match raw.get(at + 1) {
            Some(same @ (b'"' | b'\\' | b'/')) => Some(*same),
            Some(b'b') => Some(0x08),
            Some(b'f') => Some(0x0c),
            Some(b'n') => Some(b'\n'),
            Some(b'r') => Some(b'\r'),
            Some(b't') => Some(b'\t'),
            _ => None,
        };
        if let Some(byte) = plain {
            text.push(byte);
            at += 2;
            continue;
        }
        let Some(first) = unit(raw, at) else {
            text.push(b'\\');
            at += 1;
            continue;
        };
        at += 6;
        let meaning = match (first, unit(raw, at)) {
            (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => {
                at += 6;
                pair(first, low)
            }
            _ => char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER),
        };
        let mut utf8 = [0; 4];
        text.extend_from_slice(meaning.encode_utf8(&mut utf8).as_bytes());
    }
    match String::from_utf8(text) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_escapes() {
        for (raw, meaning) in [
            ("plain é", "plain é"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"\u0041\u00e9\ud83d\ude00", "Aé\u{1f600}"),
            (r"\ud83d \ude00 \ud83d\u0041", "\u{fffd} \u{fffd} \u{fffd}A"),
            (r"\x \u12 \", r"\x \u12 \"),
        ] {
            assert_eq!(unescape(raw.as_bytes()), meaning, "{raw}");
        }
        assert_eq!(unescape(b"caf\xe9"), "caf\u{fffd}");
        assert_eq!(unescape(b"\\n\xff"), "\n\u{fffd}");
        assert!(matches!(unescape(b"plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn means_what_serde_reads() {
        let text = r#""a\u0000\u001f\"é\ud83d\ude00\\n""#;
        let raw = &text.as_bytes()[1..text.len() - 1];
        assert_eq!(unescape(raw), serde_json::from_str::<String>(text).unwrap());
    }
}
