//! Gzip to plain bytes: several members, checked, and damage is data.

use zlib_rs::crc32::crc32;
use zlib_rs::{Inflate, InflateFlush, Status};

/// The two bytes that every gzip member starts with.
pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Output is handed over in pieces of at most this many bytes: few copies of deflate's window (32 KiB) between them.
const PIECE: usize = 1 << 18;
/// Deflate's window, as a power of two.
const WINDOW_BITS: u8 = 15;

/// What is wrong with a gzip file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The file ends inside a member.
    Truncated,
    /// A member's checksum does not match what was decompressed.
    Crc,
    /// A member's length does not match what was decompressed.
    Length,
    /// The compressed data makes no sense; reading ended there.
    Corrupt,
    /// Bytes after the last member that are no gzip member (zeros are padding, and no fault).
    Trailing,
}

/// One fault and where it is in the compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Offset in the compressed file.
    pub offset: u64,
    /// Offset in the decompressed file.
    pub plain_offset: u64,
}

/// The part of the file that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The ten bytes a member starts with.
    Head,
    /// Length of the extra field.
    ExtraLen,
    /// The extra field.
    Extra(u16),
    /// The file's name, up to a zero.
    Name,
    /// A comment, up to a zero.
    Comment,
    /// Checksum of the header.
    HeadCrc,
    /// Compressed data.
    Body,
    /// Checksum and length.
    Tail,
    /// After a member: another one, padding or rubbish.
    Between,
    /// Nothing more is read.
    Over,
}

/// Decompresses gzip bytes pushed in pieces.
pub struct Gunzip {
    part: Part,
    /// Bytes of a fixed-size part that arrived so far.
    fixed: [u8; 10],
    n_fixed: usize,
    /// The optional header fields of this member.
    flags: u8,
    inflate: Inflate,
    out: Vec<u8>,
    /// Of this member so far. By the inflater's own function: another crate would bring its tables a second time.
    crc: u32,
    /// Whether the checksum is looked at.
    checks: bool,
    /// Decompressed bytes of this member.
    member_len: u64,
    offset: u64,
    plain: u64,
    faults: Vec<Fault>,
}

impl std::fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gunzip")
            .field("part", &self.part)
            .field("offset", &self.offset)
            .field("plain", &self.plain)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Default for Gunzip {
    fn default() -> Self {
        Self {
            part: Part::Head,
            fixed: [0; 10],
            n_fixed: 0,
            flags: 0,
            inflate: Inflate::new(false, WINDOW_BITS),
            out: vec![0; PIECE],
            crc: 0,
            checks: true,
            member_len: 0,
            offset: 0,
            plain: 0,
            faults: Vec::new(),
        }
    }
}

impl Gunzip {
    /// A decompressor at the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for a file that was read, and checked, before: its checksums take a tenth of the time.
    #[must_use]
    pub fn again() -> Self {
        Self { checks: false, ..Self::default() }
    }

    /// Reads the next piece of the file and hands its plain bytes to `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = self.step(rest, sink);
            self.offset += used as u64;
            rest = &rest[used..];
        }
    }

    /// Nothing follows: what is wrong with the file, in file order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Fault> {
        if !matches!(self.part, Part::Between | Part::Over) {
            self.fault(FaultKind::Truncated);
        }
        self.faults
    }

    /// Reads some of `bytes`, which are not empty; how many.
    fn step(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> usize {
        match self.part {
            Part::Head => self.fixed(bytes, 10, Self::head),
            Part::ExtraLen => self.fixed(bytes, 2, |this| {
                this.part = Part::Extra(u16::from_le_bytes([this.fixed[0], this.fixed[1]]));
            }),
            Part::Extra(len) => {
                let used = bytes.len().min(usize::from(len));
                self.part = Part::Extra(len - used as u16);
                if usize::from(len) == used {
                    self.after_extra();
                }
                used
            }
            Part::Name | Part::Comment => match memchr::memchr(0, bytes) {
                Some(at) => {
                    if self.part == Part::Name {
                        self.after_name()
                    } else {
                        self.after_comment()
                    }
                    at + 1
                }
                None => bytes.len(),
            },
            Part::HeadCrc => self.fixed(bytes, 2, |this| this.part = Part::Body),
            Part::Body => self.inflate(bytes, sink),
            Part::Tail => self.fixed(bytes, 8, Self::tail),
            Part::Between => self.between(bytes),
            Part::Over => bytes.len(),
        }
    }

    fn fixed(&mut self, bytes: &[u8], len: usize, done: impl FnOnce(&mut Self)) -> usize {
        let used = bytes.len().min(len - self.n_fixed);
        self.fixed[self.n_fixed..self.n_fixed + used].copy_from_slice(&bytes[..used]);
        self.n_fixed += used;
        if self.n_fixed == len {
            self.n_fixed = 0;
            done(self);
        }
        used
    }

    /// RFC 1952, 2.3: magic, method (8 is deflate, the only one), flags, time, two hints.
    fn head(&mut self) {
        if self.fixed[..2] != MAGIC || self.fixed[2] != 8 {
            let kind = if self.plain == 0 { FaultKind::Corrupt } else { FaultKind::Trailing };
            self.fault(kind);
            self.part = Part::Over;
            return;
        }
        self.flags = self.fixed[3];
        self.inflate.reset(false);
        self.crc = 0;
        self.member_len = 0;
        if self.flags & 4 != 0 { self.part = Part::ExtraLen } else { self.after_extra() }
    }

    fn after_extra(&mut self) {
        if self.flags & 8 != 0 { self.part = Part::Name } else { self.after_name() }
    }

    fn after_name(&mut self) {
        if self.flags & 16 != 0 { self.part = Part::Comment } else { self.after_comment() }
    }

    fn after_comment(&mut self) {
        self.part = if self.flags & 2 != 0 { Part::HeadCrc } else { Part::Body };
    }

    /// Decompresses until the bytes are used up or the member's data end; how many bytes that took.
    fn inflate(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> usize {
        let mut used = 0;
        loop {
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let rest = bytes.get(used..).unwrap_or_default();
            let status = self.inflate.decompress(rest, &mut self.out, InflateFlush::NoFlush);
            used += (self.inflate.total_in() - before_in) as usize;
            let n_out = (self.inflate.total_out() - before_out) as usize;
            let plain = &self.out[..n_out];
            if n_out > 0 {
                if self.checks {
                    self.crc = crc32(self.crc, plain);
                }
                sink(plain);
            }
            self.member_len += n_out as u64;
            self.plain += n_out as u64;
            match status {
                Ok(Status::StreamEnd) => {
                    self.part = Part::Tail;
                    return used;
                }
                // More may be inside: it was cut by the end of the piece.
                Ok(_) if n_out == PIECE => {}
                Ok(_) => return used,
                Err(_) => {
                    self.offset += used as u64;
                    self.fault(FaultKind::Corrupt);
                    self.offset -= used as u64;
                    self.part = Part::Over;
                    return bytes.len().max(used);
                }
            }
        }
    }

    fn tail(&mut self) {
        let [a, b, c, d, e, f, g, h, ..] = self.fixed;
        if self.checks && u32::from_le_bytes([a, b, c, d]) != self.crc {
            self.fault(FaultKind::Crc);
        }
        // The length is kept modulo 2^32.
        if u32::from_le_bytes([e, f, g, h]) != self.member_len as u32 {
            self.fault(FaultKind::Length);
        }
        self.part = Part::Between;
    }

    fn between(&mut self, bytes: &[u8]) -> usize {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros > 0 {
            return zeros;
        }
        if bytes[0] == MAGIC[0] {
            self.part = Part::Head;
            return 0;
        }
        self.fault(FaultKind::Trailing);
        self.part = Part::Over;
        bytes.len()
    }

    fn fault(&mut self, kind: FaultKind) {
        self.faults.push(Fault { kind, offset: self.offset, plain_offset: self.plain });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gzip member with every optional field when `rich`.
    pub(super) fn gzip(plain: &[u8], rich: bool) -> Vec<u8> {
        let mut file = vec![0x1f, 0x8b, 8, if rich { 0b1_1110 } else { 0 }, 1, 2, 3, 4, 0, 3];
        if rich {
            file.extend_from_slice(b"\x03\x00abcname\0comment\0\x12\x34");
        }
        file.extend(miniz_oxide::deflate::compress_to_vec(plain, 6));
        file.extend(crc32fast::hash(plain).to_le_bytes());
        file.extend((plain.len() as u32).to_le_bytes());
        file
    }

    fn gunzip(file: &[u8], size: usize) -> (Vec<u8>, Vec<FaultKind>) {
        let mut plain = Vec::new();
        let mut gunzip = Gunzip::new();
        for chunk in file.chunks(size) {
            gunzip.push(chunk, &mut |bytes| plain.extend_from_slice(bytes));
        }
        let faults = gunzip.finish();
        (plain, faults.into_iter().map(|fault| fault.kind).collect())
    }

    fn sample() -> Vec<u8> {
        (0..200_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 20).to_le_bytes()).collect()
    }

    #[test]
    fn members_and_headers_in_any_chunking() {
        let plain = sample();
        let mut file = gzip(&plain, true);
        file.extend(gzip(b"", false));
        file.extend(gzip(b"tail", false));
        file.extend([0; 100]);
        let expected = [&plain[..], b"tail"].concat();
        for size in [1, 7, 1000, 1 << 20] {
            assert_eq!(gunzip(&file, size), (expected.clone(), Vec::new()), "pieces of {size}");
        }
    }

    #[test]
    fn a_cut_keeps_what_was_before_it() {
        let plain = sample();
        let file = gzip(&plain, false);
        for len in (0..64).chain([file.len() / 2, file.len() - 9, file.len() - 8, file.len() - 1]) {
            let (got, faults) = gunzip(&file[..len], 1000);
            assert!(plain.starts_with(&got), "{len}");
            assert_eq!(faults, [FaultKind::Truncated], "{len}");
        }
        assert!(gunzip(&file[..file.len() / 2], 1000).0.len() > plain.len() / 3);
        assert_eq!(gunzip(&file[..file.len() - 8], 1000).0, plain);
    }

    #[test]
    fn damage_is_named() {
        let plain = b"some text, some text".repeat(50);
        let file = gzip(&plain, false);
        let with = |from_end: usize| {
            let mut file = file.clone();
            let at = file.len() - from_end;
            file[at] ^= 0xff;
            file
        };
        assert_eq!(gunzip(&with(8), 99), (plain.clone(), vec![FaultKind::Crc]));
        let mut again = Gunzip::again();
        again.push(&with(8), &mut |_| ());
        assert_eq!(again.finish(), [], "it was told the first time");
        assert_eq!(gunzip(&with(1), 99), (plain.clone(), vec![FaultKind::Length]));
        assert_eq!(gunzip(&[&file[..], b"rubbish"].concat(), 99).1, [FaultKind::Trailing]);
        assert_eq!(gunzip(&[&file[..], b"\x1frubbish??"].concat(), 99).1, [FaultKind::Trailing]);
        let mut corrupt = file;
        corrupt[10] = 0xff;
        assert_eq!(gunzip(&corrupt, 99).1, [FaultKind::Corrupt]);
        assert_eq!(gunzip(b"\x1f\x8b\x07_______", 99).1, [FaultKind::Corrupt]);
    }
}
