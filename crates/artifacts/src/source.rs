//! The source files of an analysis, by digest, which identify the trace of an artifact.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a file was used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The trace that was measured.
    #[default]
    Formal,
    /// A trace that tells where kernels come from.
    Mapping,
    /// The capture of a graph.
    Capture,
    /// A memory snapshot.
    Memory,
}

impl Role {
    /// What a person reads.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Formal => "measured trace",
            Self::Mapping => "mapping trace",
            Self::Capture => "capture",
            Self::Memory => "memory snapshot",
        }
    }
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its name, without folders.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes as they lie in the file, in lower-case hex.
    pub sha256: String,
    /// What it was used for.
    pub role: Role,
}

/// Takes the digest of a file that arrives in pieces.
#[derive(Clone, Default)]
pub struct SourceDigest {
    sha256: Sha256,
    bytes: u64,
}

impl SourceDigest {
    /// Takes the next piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The source: `name` loses its folders, which often hold a user's name.
    #[must_use]
    pub fn finish(self, name: &str, role: Role) -> SourceFile {
        SourceFile {
            name: base_name(name).to_owned(),
            bytes: self.bytes,
            sha256: hex(&self.sha256.finalize()),
            role,
        }
    }
}

/// SHA-256 of some bytes in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    out
}

/// The last part of a path of any system.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_does_not_depend_on_the_pieces() {
        let mut digest = SourceDigest::default();
        digest.push(b"a");
        digest.push(b"bc");
        let source = digest.finish("/home/me/run.json", Role::Formal);
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((source.name.as_str(), source.bytes), ("run.json", 3));
        assert_eq!((source.sha256.as_str(), sha256_hex(b"abc").as_str()), (abc, abc));
    }
}
