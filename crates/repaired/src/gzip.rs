//! Writing gzip, built on miniz_oxide.
//!
//! Level 1: deflate is by far the slowest part of a repair, and level 1 is five times as fast as level 6
//! for a file half as large again (measured, see the architecture notes). The header has no time and no
//! name, and input is cut into blocks of fixed size, so that the same bytes always give the same file,
//! however they arrived.

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress, create_comp_flags_from_zip_params,
};
use zlib_rs::crc32::crc32;

const LEVEL: i32 = 1;
/// Raw deflate: gzip has its own frame.
const RAW_WINDOW: i32 = -15;
const BLOCK: usize = 256 << 10;
/// RFC 1952: magic, deflate, no flags, no time, fastest, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Compresses a stream of bytes into one gzip member.
pub(crate) struct GzipWriter {
    deflate: Box<CompressorOxide>,
    crc: u32,
    len: u64,
    block: Vec<u8>,
    started: bool,
}

impl GzipWriter {
    pub(crate) fn new() -> Self {
        Self {
            deflate: Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(
                LEVEL, RAW_WINDOW, 0,
            ))),
            crc: 0,
            len: 0,
            block: Vec::with_capacity(BLOCK),
            started: false,
        }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let take = bytes.len().min(BLOCK - self.block.len());
            self.block.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.block.len() == BLOCK {
                self.deflate_block(TDEFLFlush::None, out);
            }
        }
    }

    pub(crate) fn finish(mut self, out: &mut Vec<u8>) {
        self.deflate_block(TDEFLFlush::Finish, out);
        out.extend_from_slice(&self.crc.to_le_bytes());
        // RFC 1952: the size modulo 2^32.
        out.extend_from_slice(&(self.len as u32).to_le_bytes());
    }

    fn deflate_block(&mut self, flush: TDEFLFlush, out: &mut Vec<u8>) {
        if !self.started {
            out.extend_from_slice(&HEADER);
            self.started = true;
        }
        self.crc = crc32(self.crc, &self.block);
        self.len += self.block.len() as u64;
        let mut input: &[u8] = &self.block;
        loop {
            let start = out.len();
            out.resize(start + BLOCK, 0);
            let (status, read, written) =
                compress(&mut self.deflate, input, &mut out[start..], flush);
            out.truncate(start + written);
            input = &input[read..];
            let done = match flush {
                TDEFLFlush::Finish => status != TDEFLStatus::Okay,
                _ => input.is_empty() && written < BLOCK,
            };
            if done {
                break;
            }
        }
        self.block.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(bytes: &[u8], piece: usize) -> Vec<u8> {
        let (mut writer, mut out) = (GzipWriter::new(), Vec::new());
        bytes.chunks(piece).for_each(|chunk| writer.push(chunk, &mut out));
        writer.finish(&mut out);
        out
    }

    #[test]
    fn comes_back_and_does_not_depend_on_the_pieces() {
        let text: Vec<u8> = (0..700_000_u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
        for bytes in [&text[..], b"", b"x"] {
            let whole = gzip(bytes, usize::MAX);
            assert_eq!(whole, gzip(bytes, 7919));
            let mut back = Vec::new();
            let mut gunzip = ingest::gunzip::Gunzip::new();
            gunzip.push(&whole, &mut |piece| back.extend_from_slice(piece));
            assert_eq!(gunzip.finish(), []);
            assert!(back == bytes);
        }
    }
}
