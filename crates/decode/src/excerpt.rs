//! A piece of the file, fit to be shown.

/// Characters of an excerpt, at most.
const CHARS: usize = 120;

/// The beginning of `bytes` as printable text of at most 120 characters. Control characters are shown as
/// their pictures (U+2400...), invalid UTF-8 as U+FFFD.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    // A character has at most four bytes, so this much is enough; the cut may split the last character,
    // which then is beyond the limit anyway or replaced.
    let bytes = &bytes[..bytes.len().min(CHARS * 4)];
    let mut text: String =
        String::from_utf8_lossy(bytes).chars().take(CHARS).map(printable).collect();
    text.truncate(text.trim_end().len());
    text
}

fn printable(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        // What would break the line or its direction.
        '\u{80}'..='\u{9f}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => '\u{fffd}',
        '\u{2066}'..='\u{2069}' | '\u{feff}' => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_short_and_printable() {
        assert_eq!(
            excerpt(b"a\n\t\x00b\xffc \x7f"),
            "a\u{240a}\u{2409}\u{2400}b\u{fffd}c \u{2421}"
        );
        assert_eq!(excerpt("é".repeat(500).as_bytes()), "é".repeat(120));
        assert_eq!(excerpt(b""), "");
    }
}
