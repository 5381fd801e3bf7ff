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
