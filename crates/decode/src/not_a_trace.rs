//! The error of a file that is not a trace.

use std::fmt;

use ingest::FileKind;

use crate::excerpt::excerpt;

/// The file is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATrace {
    /// What it is.
    pub kind: FileKind,
    /// Where that was seen, in the decompressed file.
    pub offset: u64,
    /// The text there, printable, at most 120 characters.
    pub excerpt: String,
}

impl NotATrace {
    pub(crate) fn new(kind: FileKind, offset: u64, text: &[u8]) -> Self {
        Self { kind, offset, excerpt: excerpt(text) }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.kind.title()
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        self.kind.advice()
    }
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, not a trace. {}", self.title(), self.advice())
    }
}

impl std::error::Error for NotATrace {}
