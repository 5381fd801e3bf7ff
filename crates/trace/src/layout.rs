//! The JSON document around the events, as far as repair needs it to write it again.

use crate::ByteSpan;

/// The outermost JSON value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container {
    /// `{"traceEvents": [...], ...}`.
    #[default]
    Object,
    /// `[...]`, the bare array form.
    Array,
}

/// The program that wrote a trace, as far as its beginning shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Producer {
    /// torch.profiler, or a program that is not recognised.
    #[default]
    Torch,
    /// The profiler of ONNX Runtime.
    OnnxRuntime,
    /// The profiler of XLA (JAX, TensorFlow).
    Xla,
}

/// One key and value of the outermost object, except `traceEvents`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The key with escapes resolved.
    pub key: String,
    /// Where the key lies, quotes included.
    pub key_span: ByteSpan,
    /// Where the value lies.
    pub value_span: ByteSpan,
    /// The value's JSON text, when it is short enough to keep (1 MiB); strict JSON.
    pub text: Option<String>,
}

/// Where the event array of one document lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArraySpan {
    /// Offset just past `[`.
    pub open: u64,
    /// Offset of the closing `]`; `None` when the file ends before it.
    pub close: Option<u64>,
}

/// Where and why Perfetto's importer gives up on a file, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImporterStop {
    /// Offset of the place.
    pub offset: u64,
    /// What is there and what the importer does, in a few words.
    pub reason: &'static str,
}

/// The document's frame. Offsets are into the decompressed file.
///
/// Output has three parts: the *prefix* from `start` up to `array.open`, the events, and the
/// *suffix* from `array.close` to `end`. Everything else between events (commas, blanks, junk, a second
/// document's frame) is gap: repair keeps a gap of white space around one comma and rewrites any
/// other as one comma.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Object or bare array.
    pub container: Container,
    /// First byte of the document: past a byte order mark (leading white space stays).
    pub start: u64,
    /// The event array of the first document; `None` when there is none.
    pub array: Option<ArraySpan>,
    /// Offset just past the first document's last byte; `None` when it was never closed.
    pub end: Option<u64>,
    /// Size of the decompressed file in bytes, as far as it could be read.
    pub file_len: u64,
    /// The first document's members before the event array, in file order.
    pub before: Vec<Member>,
    /// The first document's members after the event array, in file order.
    pub after: Vec<Member>,
    /// The prefix is not strict JSON (stray comma, control character in a string...):
    /// it must be written again from `before`.
    pub prefix_needs_rewrite: bool,
    /// The same for the suffix and `after`. Also set when `end` is `None`.
    pub suffix_needs_rewrite: bool,
    /// Some gap between events is not white space around exactly one comma, or some text was skipped.
    pub gaps_need_rewrite: bool,
    /// Number of consecutive JSON documents; 1 for a sound file.
    pub documents: u32,
    /// Bytes after the end that are neither white space nor part of a document.
    pub trailing_bytes: u64,
    /// Bytes of an unfinished last event that were cut off.
    pub lost_tail_bytes: u64,
    /// The first place at which the importer gives up on the file, or may.
    pub importer_stop: Option<ImporterStop>,
    /// How many events lie in the first document, where the importer stops reading; `None` when all do.
    pub importer_rows: Option<u32>,
}

/// Top-level members that the report shows; the texts are JSON values as spelled in the file.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// Key and JSON text of every kept top-level member, in file order, of every document.
    pub members: Vec<(String, String)>,
}

impl Metadata {
    /// The JSON text of the first member called `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }

    /// The member `key` as an integer.
    #[must_use]
    pub fn int(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }
}
