//! What strings and words are made of, byte by byte.

use memchr::memchr3;

/// Bytes that a number or a bare word is made of.
#[inline]
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

/// The first quote, backslash or newline.
#[inline(always)]
pub(crate) fn string_stop(bytes: &[u8]) -> Option<usize> {
    // Keys are shorter than a word, for which a call of `memchr` does not pay.
    if let Some(word) = bytes.first_chunk::<8>() {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let word = u64::from_le_bytes(*word);
        // The lowest bit set is at a zero byte of `x`; bits above it may be wrong.
        let zero = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
        let at = |byte: u8| zero(word ^ (LOW * u64::from(byte)));
        let found = at(b'"') | at(b'\\') | at(b'\n');
        if found != 0 {
            return Some(found.trailing_zeros() as usize / 8);
        }
        return memchr3(b'"', b'\\', b'\n', &bytes[8..]).map(|found| found + 8);
    }
    memchr3(b'"', b'\\', b'\n', bytes)
}

/// Whether the escape at the start of `bytes` is strict JSON and no surrogate. False when cut short:
/// a string that goes on is read again, and one that does not is no string.
#[inline]
pub(crate) fn plain_escape(bytes: &[u8]) -> bool {
    match bytes.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
        Some(b'u') => match bytes.get(2..6) {
            Some(hex) => {
                hex.iter().all(u8::is_ascii_hexdigit)
                    && (!matches!(hex[0], b'd' | b'D') || matches!(hex[1], b'0'..=b'7'))
            }
            None => false,
        },
        _ => false,
    }
}
