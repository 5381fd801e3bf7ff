//! Skips one token of any length over any number of chunks.

use memchr::{memchr, memchr2, memmem};

/// What is being skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From a quote to its match.
    String,
    /// From a bracket to its match.
    Container,
    /// Anything up to white space, a comma, bracket, quote or colon; at least one byte.
    Token,
    /// `// ...` up to the end of the line.
    LineComment,
    /// `/* ... */`.
    BlockComment,
}

impl Kind {
    /// The kind of token that starts with `first`.
    pub(crate) fn of(first: u8) -> Self {
        match first {
            b'"' => Self::String,
            b'{' | b'[' => Self::Container,
            _ => Self::Token,
        }
    }
}

/// The state of a skip between two chunks. It keeps the beginning of the skipped text.
#[derive(Debug)]
pub(crate) struct Skip {
    kind: Kind,
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Bytes skipped so far.
    pub(crate) len: u64,
    /// The first bytes, at most `keep`.
    pub(crate) kept: Vec<u8>,
    keep: usize,
    depth: u64,
    in_string: bool,
    escape: bool,
    last: u8,
}

impl Skip {
    pub(crate) fn new(kind: Kind, start: u64, keep: usize) -> Self {
        Self {
            kind,
            start,
            len: 0,
            kept: Vec::new(),
            keep,
            depth: 0,
            in_string: false,
            escape: false,
            last: 0,
        }
    }

    /// Whether this is a comment.
    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }

    /// Whether everything skipped is also kept.
    pub(crate) fn kept_all(&self) -> bool {
        self.kept.len() as u64 == self.len
    }

    /// Skips in `bytes`; returns the number of bytes, and whether the end was reached.
    #[inline(never)]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        let end = match self.kind {
            Kind::String | Kind::Container => self.value(bytes),
            Kind::Token => bytes.iter().enumerate().position(|(index, byte)| {
                (index > 0 || self.len > 0)
                    && matches!(
                        byte,
                        b' ' | b'\n'
                            | b'\t'
                            | b'\r'
                            | b','
                            | b':'
                            | b'"'
                            | b'{'
                            | b'}'
                            | b'['
                            | b']'
                    )
            }),
            Kind::LineComment => memchr(b'\n', bytes),
            Kind::BlockComment => self.block_comment(bytes),
        };
        let len = end.unwrap_or(bytes.len());
        let room = self.keep - self.kept.len();
        self.kept.extend_from_slice(&bytes[..len.min(room)]);
        self.len += len as u64;
        if let Some(last) = bytes[..len].last() {
            self.last = *last;
        }
        (len, end.is_some())
    }

    #[inline(never)]
    fn value(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            if self.in_string {
                if self.escape {
                    bytes.get(at)?;
                    at += 1;
                    self.escape = false;
                }
                at += memchr2(b'"', b'\\', bytes.get(at..)?)? + 1;
                if bytes[at - 1] == b'\\' {
                    self.escape = true;
                    continue;
                }
                self.in_string = false;
                if self.depth == 0 {
                    return Some(at);
                }
            }
            let byte = bytes.get(at)?;
            at += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
    }

    #[cold]
    fn block_comment(&self, bytes: &[u8]) -> Option<usize> {
        // `/*/` is not closed yet, hence the look at how much there was before.
        if self.len > 2 && self.last == b'*' && bytes.first() == Some(&b'/') {
            return Some(1);
        }
        let opened = 2_u64.saturating_sub(self.len) as usize;
        let at = memmem::find(bytes.get(opened..)?, b"*/")?;
        Some(opened + at + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_in_any_chunking() {
        for (kind, text, rest) in [
            (Kind::String, r#""a\"b\\""#, r#","c""#),
            (Kind::Container, r#"{"a":["}]\"",{}],"b":"]"}"#, "}]"),
            (Kind::Token, "nonsense", ",1"),
            (Kind::Token, "}", "{"),
            (Kind::LineComment, "// a, ] }", "\n{"),
            (Kind::BlockComment, "/*/ a ** ] */", "*/{"),
        ] {
            let all = format!("{text}{rest}");
            for size in 1..=all.len() {
                let mut skip = Skip::new(kind, 0, 100);
                let done = all.as_bytes().chunks(size).any(|chunk| skip.feed(chunk).1);
                assert!(done, "{all} by {size}");
                assert_eq!(skip.kept, text.as_bytes(), "{all} by {size}");
                assert!(skip.kept_all());
            }
        }
    }

    #[test]
    fn keeps_no_more_than_asked() {
        let mut skip = Skip::new(Kind::String, 7, 4);
        assert_eq!(skip.feed(b"\"abcdef"), (7, false));
        assert_eq!(skip.feed(b"gh\" "), (3, true));
        assert_eq!((skip.kept.as_slice(), skip.len), (&b"\"abc"[..], 10));
        assert!(!skip.kept_all());
    }
}
