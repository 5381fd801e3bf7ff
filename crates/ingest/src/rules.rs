//! The rules by which files are recognised, as tables.

mod json;
mod lines;
mod signatures;

use crate::{FileKind, Kind};

/// The first bytes of the (decompressed) file, which name most formats.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    bytes: Vec<u8>,
}

impl Beginning {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps what is wanted of the next bytes; the rest is returned.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while !self.is_enough() && !rest.is_empty() {
            let room = signatures::wanted(&self.bytes) - self.bytes.len();
            let (first, after) = rest.split_at(rest.len().min(room));
            self.bytes.extend_from_slice(first);
            rest = after;
        }
        rest
    }

    /// Whether no more bytes are wanted.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.bytes.len() >= signatures::wanted(&self.bytes)
    }

    /// The bytes kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there is nothing but blanks and zeros.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0)
    }

    /// What the file is, as far as its first bytes decide, and where that is seen. They are as many as are wanted, or the whole
    /// file when that is shorter.
    #[must_use]
    pub fn kind(&self) -> (Kind, usize) {
        if let Some(kind) = signatures::of(&self.bytes) {
            return (Kind::Other(kind), 0);
        }
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes);
        let text = text.trim_ascii_start();
        let kind = match lines::of(text).or_else(|| json::of_first_key(text)) {
            Some(kind) => Kind::Other(kind),
            None => Kind::Trace(json::producer(text)),
        };
        (kind, self.bytes.len() - text.len())
    }
}

/// A JSON file in which no events were found.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its first bytes.
    pub beginning: &'a Beginning,
    /// The first keys of its outermost object.
    pub keys: &'a [String],
    /// Whether it is an object; else it is an array.
    pub is_object: bool,
    /// Whether there are objects where events would be.
    pub has_records: bool,
    /// Whether it was read to its end.
    pub is_whole: bool,
}

impl Document<'_> {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        json::of_document(self)
    }
}

#[cfg(test)]
mod tests {
    use trace::Producer;

    use super::*;

    fn kind(head: &[u8]) -> (Kind, usize) {
        let mut beginning = Beginning::new();
        assert_eq!(beginning.take(head), b"");
        beginning.kind()
    }

    #[test]
    fn the_first_bytes_name_what_is_no_json() {
        for (id, file) in testkit::kinds() {
            if id == "damaged-gzip" {
                // Its bytes never get here.
                continue;
            }
            let is_json = matches!(file.trim_ascii_start(), [b'{' | b'[', ..]);
            match kind(&file) {
                (Kind::Other(kind), _) => assert_eq!(kind.id(), id, "{}", file.escape_ascii()),
                (Kind::Trace(_), _) => assert!(is_json || id == "empty", "{id}"),
            }
        }
    }

    #[test]
    fn what_may_be_a_trace_is_not_refused_by_its_beginning() {
        for (text, at) in
            [("", 0), ("  {\"a\":1}", 2), ("\n\n[ {\"ph\":\"X\"}]", 2), ("\u{feff} {", 4)]
        {
            assert_eq!(kind(text.as_bytes()), (Kind::Trace(Producer::Torch), at), "{text}");
        }
    }

    #[test]
    fn no_more_is_kept_than_is_wanted() {
        let mut beginning = Beginning::new();
        assert_eq!(beginning.take(&[b' '; 2000]).len(), 0);
        assert!(!beginning.is_enough() && beginning.is_blank());
        assert_eq!(beginning.take(&[b'{'; 2000]).len(), 1952);
        assert!(beginning.is_enough() && !beginning.is_blank());
        // The names of the tables of a database lie further back.
        let mut database = Beginning::new();
        let file = [&b"SQLite format 3\0"[..], &[0; 60_000], b"rocpd_"].concat();
        assert_eq!(database.take(&file), b"");
        assert_eq!(database.kind(), (Kind::Other(FileKind::Rocpd), 0));
    }
}
