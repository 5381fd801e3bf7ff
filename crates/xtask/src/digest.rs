//! Digests of files, as names and as Subresource Integrity values.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes.
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    pub fn of_file(path: &Path) -> Result<Digest> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Digest::of(&bytes))
    }

    /// The first 16 hexadecimal digits, for names of files.
    pub fn name(&self) -> String {
        self.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// As a Subresource Integrity value.
    pub fn integrity(&self) -> String {
        format!("sha256-{}", STANDARD.encode(self.0))
    }
}

/// Every file below `folder`, relative to it, with `/` between names, in byte order.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        let here = folder.join(&relative);
        for entry in
            fs::read_dir(&here).with_context(|| format!("cannot list {}", here.display()))?
        {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
                found.push(names.join("/"));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn digests_are_as_browsers_write_them() {
        let digest = Digest::of(b"");
        assert_eq!(digest.integrity(), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(digest.name(), "e3b0c44298fc1c14");
    }
}
