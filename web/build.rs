//! Names the build: a digest of what the page and its worker are compiled from. Both carry it, so that a page notices a
//! worker of another build (`web::BUILD`). No clock and no version control: the same sources have the same name.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Relative to the repository.
const SOURCES: &[&str] = &["Cargo.lock", "Cargo.toml", "web/Cargo.toml", "web/src"];
/// Crates that are no part of the page.
const ASIDE: &[&str] = &["bench", "cli", "glue", "testkit", "xtask"];

fn main() -> Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = package.parent().unwrap_or(&package);
    let mut sources: Vec<PathBuf> = SOURCES.iter().map(|path| root.join(path)).collect();
    for entry in fs::read_dir(root.join("crates"))? {
        let entry = entry?;
        if !ASIDE.iter().any(|name| entry.file_name() == *name) {
            sources.push(entry.path().join("src"));
        }
    }
    let mut files = Vec::new();
    for source in &sources {
        println!("cargo:rerun-if-changed={}", source.display());
        walk(source, &mut files)?;
    }
    files.sort();
    let mut digest = Digest::default();
    for file in &files {
        // The same on every machine, wherever the repository lies and whatever separates its folders.
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let text = fs::read(file)?;
        digest.push(name.as_bytes());
        digest.push(&text.len().to_le_bytes());
        digest.push(&text);
    }
    println!("cargo:rustc-env=KINETOSCOPE_BUILD={:016x}", digest.0);
    Ok(())
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            walk(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_owned());
    }
    Ok(())
}

/// FNV-1a: builds are told apart here, nobody is kept from forging one.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
