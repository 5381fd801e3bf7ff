//! Writes a zip archive in memory, for the page's combined download.
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

/// What an archive must know of a file that is stored in it as it is, and that need not lie in memory: how long it is,
/// and its checksum.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl Stored {
    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// How many there were.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// An archive whose last file lies elsewhere: it is `before`, the bytes of that file, and `after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Up to the file.
    pub before: Vec<u8>,
    /// From the end of the file on; empty if there is none.
    pub after: Vec<u8>,
}

/// An archive holds at most 65,535 files and 4 GiB without extensions that not every reader has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the archive would exceed 4 GiB: download the files one by one")
    }
}

impl std::error::Error for TooLarge {}

impl ZipWriter {
    /// Appends a file.
    ///
    /// # Errors
    /// When the archive would be too large for the format.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), TooLarge> {
        let deflated = miniz_oxide::deflate::compress_to_vec(bytes, LEVEL);
        let sizes = (number(deflated.len())?, number(bytes.len())?);
        self.head(name, DEFLATED, crc32fast::hash(bytes), sizes)?;
        self.out.extend(deflated);
        Ok(())
    }

    /// Writes what both headers of a file say, each in its place.
    fn head(
        &mut self,
        name: &str,
        method: u16,
        crc: u32,
        (packed, plain): (u32, u32),
    ) -> Result<(), TooLarge> {
        let offset = number(self.out.len())?;
        let name_len = u16::try_from(name.len()).map_err(|_| TooLarge)?;
        self.n_files = self.n_files.checked_add(1).ok_or(TooLarge)?;

        let mut common = Vec::with_capacity(26);
        for field in [VERSION, FLAGS, method, 0, DATE] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc, packed, plain] {
            common.extend(field.to_le_bytes());
        }
        common.extend(name_len.to_le_bytes());
        common.extend(0_u16.to_le_bytes());

        self.out.extend(b"PK\x03\x04");
        self.out.extend(&common);
        self.out.extend(name.as_bytes());

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
    pub fn finish(mut self) -> Result<Vec<u8>, TooLarge> {
        let end = self.end(self.out.len())?;
        self.out.extend(end);
        Ok(self.out)
    }

    /// The archive around one more file, which is stored as it is: it is compressed already.
    ///
    /// # Errors
    /// When it is too large for the format.
    pub(crate) fn finish_around(mut self, name: &str, file: &Stored) -> Result<Archive, TooLarge> {
        let bytes = u32::try_from(file.bytes).map_err(|_| TooLarge)?;
        self.head(name, STORED, file.crc.clone().finalize(), (bytes, bytes))?;
        let at = self.out.len().checked_add(bytes as usize).ok_or(TooLarge)?;
        let after = self.end(at)?;
        Ok(Archive { before: self.out, after })
    }

    /// The directory, which begins at byte `at`, and the archive's last record.
    fn end(&self, at: usize) -> Result<Vec<u8>, TooLarge> {
        let (offset, size) = (number(at)?, number(self.directory.len())?);
        let mut end = self.directory.clone();
        end.extend(b"PK\x05\x06\0\0\0\0");
        end.extend(self.n_files.to_le_bytes());
        end.extend(self.n_files.to_le_bytes());
        end.extend(size.to_le_bytes());
        end.extend(offset.to_le_bytes());
        end.extend(0_u16.to_le_bytes());
        Ok(end)
    }
}

fn number(n: usize) -> Result<u32, TooLarge> {
    u32::try_from(n).map_err(|_| TooLarge)
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
            zip.add("\u{fc}.md", b"").unwrap();
            let mut file = Stored::default();
            file.push(b"\x1f");
            file.push(b"\x8b");
            let Archive { before, after } = zip.finish_around("a.json.gz", &file).unwrap();
            [&before, &b"\x1f\x8b"[..], &after].concat()
        };
        let zip = write();
        assert_eq!(zip, write());
        let found = files(&zip);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b.json", "\u{fc}.md", "a.json.gz"]);
        assert_eq!(found[0].1, b"[]".repeat(500));
        assert_eq!(found[2].1, b"\x1f\x8b");
        assert!(zip.len() < 500, "{} bytes", zip.len());
        assert!(files(&ZipWriter::default().finish().unwrap()).is_empty());
    }
}
