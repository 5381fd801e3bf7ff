//! Numbers and bare words.

use super::Cursor;
use crate::{
    Stop, Value,
    lexis::is_token,
    quirk::{Number, Quirk, number},
};

impl<'a> Cursor<'a> {
    /// Reads a number or a bare word.
    #[inline(always)]
    pub(super) fn token(&mut self) -> Result<Value<'a>, Stop> {
        let start = self.pos;
        match self.decimal() {
            Some(_) => Ok(Value::Number(&self.bytes[start..self.pos])),
            None => self.other_token(),
        }
    }

    /// The numbers that [`Cursor::decimal`] leaves, and words.
    #[inline(never)]
    pub(super) fn other_token(&mut self) -> Result<Value<'a>, Stop> {
        let bytes = self.bytes;
        let start = self.pos;
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        let int = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let mut sound = at > int && (bytes[int] != b'0' || at == int + 1);
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            let fraction = at;
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            sound &= at > fraction;
        }
        match bytes.get(at) {
            Some(byte) if sound && !is_token(*byte) => {
                self.pos = at;
                Ok(Value::Number(&bytes[start..at]))
            }
            _ => self.odd_token(start),
        }
    }

    /// Everything that [`Cursor::token`] does not handle: words, exponents, numbers in odd spelling.
    #[cold]
    fn odd_token(&mut self, start: usize) -> Result<Value<'a>, Stop> {
        let rest = &self.bytes[start..];
        let len = rest.iter().position(|byte| !is_token(*byte)).unwrap_or(rest.len());
        self.pos = start + len;
        if len == rest.len() && !self.complete {
            return Err(Stop::Incomplete);
        }
        let token = &rest[..len];
        match token {
            b"true" => return Ok(Value::True),
            b"false" => return Ok(Value::False),
            b"null" => return Ok(Value::Null),
            _ => {}
        }
        match number(token) {
            Some(Number::Sound) => Ok(Value::Number(token)),
            Some(Number::Odd) => {
                self.quirk(Quirk::OddNumber, start, start + len);
                Ok(Value::Number(token))
            }
            Some(Number::NonFinite) => {
                self.quirk(Quirk::NonFinite, start, start + len);
                Ok(Value::NonFinite(token))
            }
            None => Err(Stop::Malformed),
        }
    }
}
