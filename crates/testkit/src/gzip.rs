//! Gzip files, without the product's own writer and reader.

/// A gzip file of one member. It has no name and no time, and its system is "unknown": nothing in it depends on the machine.
#[must_use]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    file.extend(miniz_oxide::deflate::compress_to_vec(bytes, 9));
    file.extend(crc32fast::hash(bytes).to_le_bytes());
    // The size is stored modulo 2^32 by the format.
    file.extend((bytes.len() as u32).to_le_bytes());
    file
}

/// The content of a gzip file of one member, for a test that must not rely on the product's own reader;
/// bytes that are not gzip are returned unchanged, for a broken file `None`.
#[must_use]
pub fn gunzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let Some(rest) = bytes.strip_prefix(&[0x1f, 0x8b, 8]) else { return Some(bytes.to_vec()) };
    let flags = *rest.first()?;
    let mut body = rest.get(7..)?;
    if flags & 4 != 0 {
        let len = usize::from(u16::from_le_bytes([*body.first()?, *body.get(1)?]));
        body = body.get(2 + len..)?;
    }
    for text in [8, 16] {
        if flags & text != 0 {
            body = body.get(body.iter().position(|byte| *byte == 0)? + 1..)?;
        }
    }
    if flags & 2 != 0 {
        body = body.get(2..)?;
    }
    miniz_oxide::inflate::decompress_to_vec(body).ok()
}
