//! Byte classes of strings and words.

/// Bytes of a number or a bare word.
#[inline]
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// High bits at the bytes that are not literal in a string: quote, backslash, control characters, and what is beyond ASCII. Those
/// above the first may be wrong.
#[inline(always)]
pub(crate) fn not_plain(bytes: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(bytes);
    // The lowest high bit is at a byte that is less than the one subtracted, or not ASCII. (The quote takes the place of the
    // space, next to the control characters.)
    let controls = (word ^ (LOW * 2)).wrapping_sub(LOW * (1 + u64::from(b'"' ^ 2)));
    let backslashes = (word ^ (LOW * u64::from(b'\\'))).wrapping_sub(LOW);
    (controls | backslashes | word) & HIGH
}

/// How many bytes at the start of `bytes` are literal in a string: printable ASCII except quote and
/// backslash.
#[inline]
pub(crate) fn plain_run(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let found = not_plain(*word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let plain = |byte: &&u8| matches!(byte, b' '..0x80) && !matches!(byte, b'"' | b'\\');
    at + rest.iter().take_while(plain).count()
}

/// High bits at the bytes that are not digits. Those above the first may be wrong.
#[inline(always)]
pub(crate) fn others(bytes: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(bytes) ^ (LOW * u64::from(b'0'));
    (word.wrapping_add(LOW * (0x80 - 10)) | word) & HIGH
}

/// How many digits are in front of the first of the [`others`].
#[inline(always)]
pub(crate) fn n_digits(others: u64) -> usize {
    others.trailing_zeros() as usize / 8
}

/// How many of eight bytes are digits, up to the first other byte, and their value. The first must be one.
#[inline(always)]
pub(crate) fn digits(bytes: [u8; 8]) -> (usize, u32) {
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let word = u64::from_le_bytes(bytes) ^ (LOW * u64::from(b'0'));
    let len = n_digits(others(bytes));
    // Zeros in front, so that there are always eight digits; then pairs, then fours, then all at once.
    let word = word.wrapping_shl(64 - 8 * len as u32);
    let word = word.wrapping_mul(10).wrapping_add(word >> 8);
    let outer = (word & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let inner = (word >> 16 & PAIRS).wrapping_mul(1 + (10_000 << 32));
    (len, (outer.wrapping_add(inner) >> 32) as u32)
}

/// How many of four bytes are digits, up to the first other byte, and the thousandths that they are after a point if they are
/// one to three.
#[inline(always)]
pub(crate) fn thousandths(bytes: [u8; 4]) -> (usize, u32) {
    let word = u32::from_le_bytes(bytes) ^ (LOW as u32 * u32::from(b'0'));
    let others = (word.wrapping_add(LOW as u32 * (0x80 - 10)) | word) & HIGH as u32;
    let len = others.trailing_zeros() / 8;
    // Zeros behind, which make tenths and hundredths of one digit or two.
    let word = word & 1_u32.wrapping_shl(8 * len).wrapping_sub(1);
    (len as usize, (word & 0xff) * 100 + (word >> 8 & 0xff) * 10 + (word >> 16 & 0xff))
}

/// Whether the escape at the start of `bytes` is strict JSON and not a surrogate. False when truncated:
/// if more bytes follow, the string is read again, and otherwise it is not a string.
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
