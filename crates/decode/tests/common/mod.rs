//! What the tests of this folder share.
#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::panic, reason = "a test fails by panicking")]

use decode::{Decoded, Decoder, NotATrace, Problem, ProblemKind};

pub fn decode_in(file: &[u8], size: usize) -> Result<Decoded, NotATrace> {
    let mut decoder = Decoder::new();
    for chunk in file.chunks(size.max(1)) {
        decoder.push(chunk)?;
    }
    decoder.finish()
}

pub fn decode(file: impl AsRef<[u8]>) -> Result<Decoded, NotATrace> {
    decode_in(file.as_ref(), 1 << 20)
}

/// Everything a decoded file says, except for its compressed size.
pub fn digest(result: &Result<Decoded, NotATrace>) -> String {
    match result {
        Ok(decoded) => {
            format!("{:?}\n{:?}\n{}", decoded.trace, decoded.problems, decoded.source.json_bytes)
        }
        Err(error) => format!("{error:?}"),
    }
}

pub fn ids(problems: &[Problem]) -> Vec<&'static str> {
    let mut ids: Vec<_> = problems.iter().map(|problem| problem.kind.id()).collect();
    ids.sort_unstable();
    ids
}

pub fn problem(decoded: &Decoded, kind: ProblemKind) -> &Problem {
    let found = decoded.problems.iter().find(|problem| problem.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind:?} in {:?}", decoded.problems))
}

/// A gzip member.
pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    file.extend(miniz_oxide::deflate::compress_to_vec(plain, 6));
    let mut crc = crc32fast::Hasher::new();
    crc.update(plain);
    file.extend(crc.finalize().to_le_bytes());
    file.extend((plain.len() as u32).to_le_bytes());
    file
}
