//! Strings.

use memchr::memchr3;

use super::Cursor;
use crate::{
    Spelling, Stop, Text,
    lexis::{plain_escape, plain_run},
    quirk::{look_into, needs_look},
};

impl<'a> Cursor<'a> {
    /// Reads a string.
    ///
    /// # Errors
    /// See [`Stop`]; malformed when the next byte is not a quote.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Text<'a>, Stop> {
        if self.byte()? != b'"' {
            return Err(Stop::Malformed);
        }
        let start = self.pos + 1;
        let bytes = self.bytes;
        let rest = bytes.get(start..).unwrap_or_default();
        let len = plain_run(rest);
        if rest.get(len) == Some(&b'"') {
            self.pos = start + len + 1;
            return Ok(Text { raw: &rest[..len], spelling: Spelling::Plain });
        }
        self.odd_string(start)
    }

    /// A string with escapes, control characters or bytes beyond ASCII.
    fn odd_string(&mut self, start: usize) -> Result<Text<'a>, Stop> {
        let bytes = self.bytes;
        let mut at = start;
        let mut spelling = Spelling::Plain;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(found) = memchr3(b'"', b'\\', b'\n', rest) else {
                self.pos = bytes.len();
                return Err(self.end());
            };
            at += found;
            match bytes[at] {
                b'"' => break,
                b'\n' => {
                    self.lenient = true;
                    at += 1;
                }
                _ => {
                    spelling = Spelling::Escaped;
                    if !plain_escape(&bytes[at..]) {
                        self.lenient = true;
                    }
                    at += 2;
                }
            }
        }
        self.pos = at + 1;
        self.doubtful |= needs_look(&bytes[start..at]);
        if self.log.is_some() {
            self.look_into(start, at);
        }
        Ok(Text { raw: &bytes[start..at], spelling })
    }

    #[cold]
    fn look_into(&mut self, start: usize, end: usize) {
        if let Some(log) = &mut self.log {
            self.lenient |= look_into(log, self.bytes, start..end);
        }
    }
}
