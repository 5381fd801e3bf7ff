//! Small files that are read as a whole: kernel maps, launch flags, lists of captures.

use std::fmt;

use crate::Unpacker;

/// More is not decompressed: such files have some hundred kilobytes.
const MOST_BYTES: usize = 256 << 20;

/// Why a file is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotText {
    /// It is larger than 256 MiB.
    TooLarge,
    /// It is gzip, and damaged.
    DamagedGzip,
    /// From this byte of the decompressed file on it is not UTF-8.
    NotUtf8(usize),
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "it is larger than 256 MiB"),
            Self::DamagedGzip => write!(f, "it is a damaged gzip file"),
            Self::NotUtf8(at) => write!(f, "it is not text in UTF-8 (byte {at})"),
        }
    }
}

impl std::error::Error for NotText {}

/// The text of a file, decompressed if it is gzip.
///
/// # Errors
/// When it is damaged, too large, or no UTF-8.
pub fn text_of_file(file: &[u8]) -> Result<String, NotText> {
    text_up_to(MOST_BYTES, file)
}

fn text_up_to(most: usize, file: &[u8]) -> Result<String, NotText> {
    let (mut unpacker, mut plain, mut is_too_large) = (Unpacker::new(), Vec::new(), false);
    let mut keep = |bytes: &[u8]| {
        is_too_large |= plain.len() + bytes.len() > most;
        if !is_too_large {
            plain.extend_from_slice(bytes);
        }
    };
    unpacker.push(file, &mut keep);
    let end = unpacker.finish(&mut keep);
    if is_too_large {
        return Err(NotText::TooLarge);
    }
    if !end.faults.is_empty() {
        return Err(NotText::DamagedGzip);
    }
    String::from_utf8(plain).map_err(|error| NotText::NotUtf8(error.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_compressed_or_not() {
        let plain = "{\"tp_size\": 8} é".as_bytes();
        let gzip = testkit::gzip(plain);
        for file in [plain, &gzip] {
            assert_eq!(text_of_file(file).unwrap().as_bytes(), plain);
        }
        assert_eq!(text_of_file(b"ab\xff"), Err(NotText::NotUtf8(2)));
        assert_eq!(text_of_file(&gzip[..gzip.len() - 1]), Err(NotText::DamagedGzip));
        assert_eq!(text_of_file(b""), Ok(String::new()));
        assert_eq!(text_up_to(4, b"abcd").unwrap(), "abcd");
        for file in [b"abcde".to_vec(), testkit::gzip(b"abcde")] {
            assert_eq!(text_up_to(4, &file), Err(NotText::TooLarge));
        }
    }
}
