//! The size budget of the page, as a web host sends it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::digest::files;

/// Budgets for the compressed files, slightly above the current sizes: the workers are compiled for speed, the app for
/// size. Give the reason in the commit that raises one.
const BUDGET: &[Share] = &[
    Share { what: "app wasm", start: "app-", end: "_bg.wasm", but: &[], bytes: 350_500 },
    Share { what: "worker wasm", start: "worker-", end: "_bg.wasm", but: &[], bytes: 371_000 },
    Share { what: "triage wasm", start: "triage-", end: "_bg.wasm", but: &[], bytes: 1_529_500 },
    Share { what: "snapshot wasm", start: "snapshot-", end: "_bg.wasm", but: &[], bytes: 463_500 },
    Share { what: "lanes wasm", start: "lanes-", end: "_bg.wasm", but: &[], bytes: 351_500 },
    // What the first screen waits for (docs/adr/0013-two-worker-programs.md).
    Share {
        what: "page and first worker",
        start: "",
        end: "",
        but: &["triage-", "snapshot-", "lanes-", "late-", "chart-"],
        bytes: 749_900,
    },
];

/// Files by the start and the end of their names, but those with another start, and their common budget.
struct Share {
    what: &'static str,
    start: &'static str,
    end: &'static str,
    but: &'static [&'static str],
    bytes: u64,
}

/// Prints the sizes and fails if one is over its budget.
pub fn check(folder: &Path) -> Result<()> {
    let mut sizes = Vec::new();
    for file in files(folder)? {
        let bytes = fs::read(folder.join(&file)).with_context(|| format!("cannot read {file}"))?;
        sizes.push((file, bytes.len(), compressed_size(&bytes)?));
    }
    println!("{:>11} {:>11}  file", "bytes", "gzip -9");
    for (file, plain, compressed) in &sizes {
        println!("{plain:>11} {compressed:>11}  {file}");
    }
    let mut over = Vec::new();
    for share in BUDGET {
        // The example trace is fetched only on request.
        let own = sizes
            .iter()
            .filter(|(file, ..)| !file.starts_with("assets/"))
            .filter(|(file, ..)| file.starts_with(share.start) && file.ends_with(share.end))
            .filter(|(file, ..)| !share.but.iter().any(|other| file.starts_with(other)));
        let total: u64 = own.map(|(.., compressed)| *compressed).sum();
        ensure!(total > 0, "the page has no {}", share.what);
        println!("{}: {total} of {} bytes compressed", share.what, share.bytes);
        if total > share.bytes {
            over.push(share.what);
        }
    }
    ensure!(over.is_empty(), "over the size budget: {}", over.join(", "));
    Ok(())
}

fn compressed_size(bytes: &[u8]) -> Result<u64> {
    let mut encoder = GzEncoder::new(Counter(0), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.0)
}

/// Counts the bytes written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
