//! A zip archive in memory: what the page offers as one download.
//!
//! Of our own, on the deflate and the CRC that the core has already: the format is two headers per file, the `zip`
//! crate would add its reader and its error types to the page, and an archive must be the same bytes every time
//! (one date, files in the given order, no attributes of a system). PKWARE APPNOTE 6.3.10, sections 4.3.7 to 4.3.16.

/// Deflate, level 6: artifacts are small, and people send them.
const LEVEL: u8 = 6;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// Needs version 2.0: deflate.
const VERSION: u16 = 20;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// 1980-01-01, 00:00: the first date of the format.
const DATE: u16 = 1 << 5 | 1;

/// Writes an archive.
#[derive(Debug, Default)]
pub struct ZipWriter {
    out: Vec<u8>,
    directory: Vec<u8>,
    n_files: u16,
}

/// An archive holds at most 65,535 files and 4 GiB without extensions that not every reader has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the archive would exceed 4 GiB: take the files one by one")
    }
}

impl std::error::Error for TooLarge {}

impl ZipWriter {
    /// Appends a file. What is compressed already (`.gz`) is stored as it is.
    ///
    /// # Errors
    /// When the archive would be too large for the format.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), TooLarge> {
        let deflated;
        let (method, data) = if name.ends_with(".gz") {
            (STORED, bytes)
        } else {
            deflated = miniz_oxide::deflate::compress_to_vec(bytes, LEVEL);
            (DEFLATED, &deflated[..])
        };
        let number = |n: usize| u32::try_from(n).map_err(|_| TooLarge);
        let (offset, packed, plain) =
            (number(self.out.len())?, number(data.len())?, number(bytes.len())?);
        let name_len = u16::try_from(name.len()).map_err(|_| TooLarge)?;
        self.n_files = self.n_files.checked_add(1).ok_or(TooLarge)?;

        // What both headers of a file say.
        let mut common = Vec::with_capacity(26);
        for field in [VERSION, FLAGS, method, 0, DATE] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc32fast::hash(bytes), packed, plain] {
            common.extend(field.to_le_bytes());
        }
        common.extend(name_len.to_le_bytes());
        common.extend(0_u16.to_le_bytes());

        self.out.extend(b"PK\x03\x04");
        self.out.extend(&common);
        self.out.extend(name.as_bytes());
        self.out.extend(data);

        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&common);
        // Comment, disk, internal and external attributes.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        Ok(())
    }

    /// The archive.
    ///
    /// # Errors
    /// When it is too large for the format.
    pub fn finish(self) -> Result<Vec<u8>, TooLarge> {
        let Self { mut out, directory, n_files } = self;
        let offset = u32::try_from(out.len()).map_err(|_| TooLarge)?;
        let size = u32::try_from(directory.len()).map_err(|_| TooLarge)?;
        out.extend(directory);
        out.extend(b"PK\x05\x06\0\0\0\0");
        out.extend(n_files.to_le_bytes());
        out.extend(n_files.to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u16_at(bytes: &[u8], at: usize) -> usize {
        usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    }

    fn u32_at(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
    }

    /// Reads by the directory, as readers do.
    fn files(zip: &[u8]) -> Vec<(String, Vec<u8>)> {
        let end = zip.len() - 22;
        assert_eq!(&zip[end..end + 4], b"PK\x05\x06");
        let (n, mut at) = (u16_at(zip, end + 10), u32_at(zip, end + 16));
        assert_eq!(at + u32_at(zip, end + 12), end);
        let mut found = Vec::new();
        for _ in 0..n {
            assert_eq!(&zip[at..at + 4], b"PK\x01\x02");
            let (method, crc) = (u16_at(zip, at + 10), u32_at(zip, at + 16));
            let (packed, plain) = (u32_at(zip, at + 20), u32_at(zip, at + 24));
            let (name_len, local) = (u16_at(zip, at + 28), u32_at(zip, at + 42));
            let name = String::from_utf8(zip[at + 46..at + 46 + name_len].to_vec()).unwrap();
            assert_eq!(&zip[local..local + 4], b"PK\x03\x04");
            // Both headers tell the same.
            assert_eq!(zip[local + 4..local + 30], zip[at + 6..at + 32]);
            let data = &zip[local + 30 + name_len..][..packed];
            let bytes = match method {
                0 => data.to_vec(),
                _ => miniz_oxide::inflate::decompress_to_vec(data).unwrap(),
            };
            assert_eq!((bytes.len(), crc32fast::hash(&bytes) as usize), (plain, crc));
            found.push((name, bytes));
            at += 46 + name_len;
        }
        found
    }

    #[test]
    fn an_archive_comes_back_and_is_the_same_every_time() {
        let write = || {
            let mut zip = ZipWriter::default();
            zip.add("b.json", &b"[]".repeat(500)).unwrap();
            zip.add("a.json.gz", b"\x1f\x8b").unwrap();
            zip.add("\u{fc}.md", b"").unwrap();
            zip.finish().unwrap()
        };
        let zip = write();
        assert_eq!(zip, write());
        let found = files(&zip);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b.json", "a.json.gz", "\u{fc}.md"]);
        assert_eq!(found[0].1, b"[]".repeat(500));
        assert_eq!(found[1].1, b"\x1f\x8b");
        assert!(zip.len() < 500, "{} bytes", zip.len());
        assert!(files(&ZipWriter::default().finish().unwrap()).is_empty());
    }
}
