//! Reading files in pieces, with a progress bar on a terminal.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kinetoscope::artifacts::{Role, SourceDigest, SourceFile};
use kinetoscope::{Decoded, Decoder, Details, DetailsReader, text_of_file, wants_inputs};

/// Bytes per read: large enough that the calls do not count, small enough to stay in the cache.
const PIECE: usize = 1 << 20;

/// What tells a file that is read twice from one that changed in between.
#[derive(PartialEq, Eq)]
pub struct Version {
    len: u64,
    modified: Option<SystemTime>,
}

impl Version {
    /// The state of a file that can be read twice.
    ///
    /// # Errors
    /// When it cannot be read, or is a pipe, of which a second reading would find nothing.
    pub fn of(path: &Path) -> Result<Self> {
        let metadata =
            std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if !metadata.is_file() {
            bail!("cannot read {}: it is read twice, so it must be a regular file", path.display());
        }
        Ok(Self { len: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// Decodes a file.
///
/// # Errors
/// When it cannot be read, or is no trace (a `kinetoscope::NotATrace`, found again by `downcast_ref`).
pub fn decode(path: &Path) -> Result<Decoded> {
    decode_and(path, |_| {})
}

/// Decodes a file; its bytes are also shown to `look`.
fn decode_and(path: &Path, mut look: impl FnMut(&[u8])) -> Result<Decoded> {
    let mut decoder = Decoder::new();
    let mut failed = None;
    pieces(path, "reading", |piece| {
        look(piece);
        failed = decoder.push(piece).err();
        failed.is_none()
    })?;
    let decoded = match failed {
        Some(error) => Err(error),
        None => decoder.finish(),
    };
    decoded.with_context(|| path.display().to_string())
}

/// A trace and the file that it came from.
pub struct Opened {
    pub decoded: Decoded,
    pub source: SourceFile,
    pub version: Version,
}

/// Decodes a file and takes its digest on the way.
///
/// # Errors
/// As [`decode`].
pub fn read(path: &Path, role: Role) -> Result<Opened> {
    let version = Version::of(path)?;
    let mut digest = SourceDigest::default();
    let decoded = decode_and(path, |piece| digest.push(piece))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Opened { decoded, source: digest.finish(&name, role), version })
}

/// Reads the arguments that decoding leaves in the file.
///
/// # Errors
/// When it cannot be read any more, or has changed.
pub fn details(path: &Path, opened: &Opened) -> Result<Details> {
    details_of(path, &opened.decoded, &opened.version)
}

/// The same for a trace that was decoded alone; `version` is that of the file before.
///
/// # Errors
/// When it cannot be read any more, or has changed.
pub fn details_of(path: &Path, decoded: &Decoded, version: &Version) -> Result<Details> {
    read_details(path, DetailsReader::new(decoded), version)
}

/// The same with what the figures of the host need.
///
/// # Errors
/// As [`details_of`].
pub fn details_of_host(path: &Path, decoded: &Decoded, version: &Version) -> Result<Details> {
    read_details(path, DetailsReader::with_host(decoded, wants_inputs), version)
}

/// Only what the calls of the ops that `wants` chooses were called with, and what [`details_of`] has.
///
/// # Errors
/// As [`details_of`].
pub fn details_of_ops(
    path: &Path,
    decoded: &Decoded,
    version: &Version,
    wants: impl Fn(&str) -> bool,
) -> Result<Details> {
    read_details(path, DetailsReader::with_host(decoded, wants), version)
}

fn read_details(path: &Path, mut reader: DetailsReader<'_>, version: &Version) -> Result<Details> {
    pieces(path, "reading arguments", |piece| {
        reader.push(piece);
        !reader.is_done()
    })?;
    if Version::of(path)? != *version {
        bail!("{} changed while it was being read", path.display());
    }
    Ok(reader.finish())
}

/// The text of a small file, decompressed if it is gzip.
///
/// # Errors
/// When it cannot be read, or is not text.
pub fn text(path: &Path) -> Result<String> {
    let context = || format!("cannot read {}", path.display());
    let bytes = std::fs::read(path).with_context(context)?;
    text_of_file(&bytes).with_context(context)
}

/// Hands a file over piece by piece, until `take` returns `false`.
///
/// # Errors
/// When it cannot be read.
pub fn pieces(path: &Path, what: &str, mut take: impl FnMut(&[u8]) -> bool) -> Result<()> {
    let context = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let size = file.metadata().with_context(context)?.len();
    let bar = bar(what, size);
    let mut piece = vec![0; PIECE];
    loop {
        let n = file.read(&mut piece).with_context(context)?;
        bar.inc(n as u64);
        if n == 0 || !take(&piece[..n]) {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn bar(what: &str, size: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {bytes}/{total_bytes} {eta}");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what.to_owned());
    bar
}
