//! A pull parser over a slice that may be incomplete.

mod text;
mod token;

use crate::{
    Stop, Text, Value,
    nest::Nest,
    quirk::{Log, Quirk},
};

/// Reads values out of a slice, leniently, and flags deviations.
///
/// Results are stable when more bytes follow: a longer slice with the same beginning gives the same result, or
/// turns [`Stop::Incomplete`] into one. The [`crate::Scanner`] relies on it.
// The small steps are inlined by force: what they return is three words and a tag, and passing that
// through memory made decoding a third slower.
#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    lenient: bool,
    /// A string contains control characters or bytes beyond ASCII.
    doubtful: bool,
    /// The slice ends where the text ends, so that a number may touch the end.
    complete: bool,
    /// Receives every deviation, in file order, if requested; see [`crate::strict`].
    log: Option<Box<Log>>,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`, which may continue later.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0, lenient: false, doubtful: false, complete: false, log: None }
    }

    /// A cursor at the start of `bytes`, after which nothing follows.
    #[must_use]
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self { complete: true, ..Self::new(bytes) }
    }

    /// A cursor over the whole of `bytes` that reports every deviation to `log`.
    pub(crate) fn telling(bytes: &'a [u8], log: Log) -> Self {
        Self { log: Some(Box::new(log)), ..Self::whole(bytes) }
    }

    pub(crate) fn into_log(self) -> Option<Log> {
        self.log.map(|log| *log)
    }

    /// Bytes read so far; after [`Stop::Malformed`] where reading failed.
    #[inline]
    #[must_use]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// The slice from the start, read or not.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether anything read so far was not strict JSON.
    ///
    /// Control characters other than the newline, and bytes beyond ASCII, are not checked: see
    /// [`Cursor::needs_look`].
    #[inline]
    #[must_use]
    pub fn lenient(&self) -> bool {
        self.lenient
    }

    /// Whether the text so far may deviate from strict JSON in UTF-8: a reason to check
    /// ([`crate::strict::quirks`]), not a result.
    #[inline]
    #[must_use]
    pub fn needs_look(&self) -> bool {
        self.lenient || self.doubtful
    }

    /// Clears [`Cursor::needs_look`]; [`Cursor::doubt_again`] restores it.
    pub(crate) fn take_doubts(&mut self) -> (bool, bool) {
        (std::mem::take(&mut self.lenient), std::mem::take(&mut self.doubtful))
    }

    pub(crate) fn doubt_again(&mut self, (lenient, doubtful): (bool, bool)) {
        self.lenient |= lenient;
        self.doubtful |= doubtful;
    }

    /// The bytes that are not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.pos..).unwrap_or_default()
    }

    /// Marks `len` bytes as read.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        self.pos += len;
    }

    #[cold]
    fn quirk(&mut self, quirk: Quirk, from: usize, to: usize) {
        self.lenient = true;
        if let Some(log) = &mut self.log {
            log.found(quirk, self.bytes, from..to);
        }
    }

    /// Skips white space.
    #[inline(always)]
    pub fn skip_ws(&mut self) {
        // One-line files have at most one space here.
        let Some(byte) = self.bytes.get(self.pos) else { return };
        if *byte > b' ' {
            return;
        }
        if *byte == b' ' && self.bytes.get(self.pos + 1).is_some_and(|next| *next > b' ') {
            self.pos += 1;
            return;
        }
        self.skip_ws_run();
    }

    #[inline(never)]
    fn skip_ws_run(&mut self) {
        while let Some(byte) = self.bytes.get(self.pos) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                break;
            }
            self.pos += 1;
            // Indentation.
            while self.bytes.get(self.pos..self.pos + 4) == Some(b"    ") {
                self.pos += 4;
            }
        }
    }

    #[inline(always)]
    fn byte(&self) -> Result<u8, Stop> {
        match self.bytes.get(self.pos) {
            Some(byte) => Ok(*byte),
            None => Err(self.end()),
        }
    }

    /// The stop reason at the end of the slice.
    #[cold]
    fn end(&self) -> Stop {
        if self.complete { Stop::Malformed } else { Stop::Incomplete }
    }

    /// The next byte that is not white space; does not consume it.
    ///
    /// # Errors
    /// [`Stop::Incomplete`] when only white space is left.
    #[inline(always)]
    pub fn peek(&mut self) -> Result<u8, Stop> {
        self.skip_ws();
        self.byte()
    }

    /// Consumes the `{` or `[` that [`Cursor::peek`] saw.
    #[inline]
    pub fn enter(&mut self) {
        self.pos += 1;
    }

    /// The next key of the object entered, with the cursor then at its value; `None` past its end.
    /// `first` is true on the first call for this object.
    ///
    /// # Errors
    /// See [`Stop`].
    #[inline(always)]
    pub fn next_key(&mut self, first: bool) -> Result<Option<Text<'a>>, Stop> {
        if !self.next(first, true)? {
            return Ok(None);
        }
        let key = self.string()?;
        self.colon()?;
        Ok(Some(key))
    }

    /// Moves over the comma to the next member or item; `false` past the closing bracket.
    #[inline(always)]
    pub fn next(&mut self, first: bool, object: bool) -> Result<bool, Stop> {
        let mut byte = self.peek()?;
        let mut comma = None;
        if byte == b',' {
            let at = self.pos;
            comma = Some(at);
            self.pos += 1;
            byte = self.peek()?;
            if first || byte == b',' {
                (byte, comma) = self.stray_commas(first, at)?;
            }
        }
        match byte {
            b'}' | b']' => {
                if let Some(at) = comma
                    && !first
                {
                    self.quirk(Quirk::ExtraComma, at, at + 1);
                }
                if (byte == b'}') != object {
                    self.quirk(Quirk::WrongBracket, self.pos, self.pos + 1);
                }
                self.pos += 1;
                Ok(false)
            }
            _ => {
                if comma.is_none() && !first {
                    self.quirk(Quirk::MissingComma, self.pos, self.pos);
                }
                Ok(true)
            }
        }
    }

    /// Skips surplus commas: all but the last one, or all when no item precedes
    /// them. Returns the byte after them and the offset of the last one. `comma` is the offset of the first one.
    #[cold]
    fn stray_commas(&mut self, first: bool, comma: usize) -> Result<(u8, Option<usize>), Stop> {
        let mut last = comma;
        loop {
            let byte = self.peek()?;
            if byte != b',' {
                if first {
                    self.quirk(Quirk::ExtraComma, last, last + 1);
                }
                return Ok((byte, Some(last)));
            }
            self.quirk(Quirk::ExtraComma, last, last + 1);
            last = self.pos;
            self.pos += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn colon(&mut self) -> Result<(), Stop> {
        if self.peek()? != b':' {
            return Err(Stop::Malformed);
        }
        self.pos += 1;
        self.skip_ws();
        Ok(())
    }

    /// Reads one value; objects and arrays are skipped and returned as their text.
    ///
    /// # Errors
    /// See [`Stop`].
    #[inline(always)]
    pub fn value(&mut self) -> Result<Value<'a>, Stop> {
        match self.peek()? {
            b'"' => self.string().map(Value::String),
            b'{' => {
                let start = self.pos;
                self.skip_container()?;
                Ok(Value::Object(&self.bytes[start..self.pos]))
            }
            b'[' => {
                let start = self.pos;
                self.skip_container()?;
                Ok(Value::Array(&self.bytes[start..self.pos]))
            }
            _ => self.token(),
        }
    }

    /// Skips one value of any kind.
    ///
    /// # Errors
    /// See [`Stop`].
    #[inline]
    pub fn skip_value(&mut self) -> Result<(), Stop> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_token(),
        }
    }

    /// Reads a string whose text does not matter. (Inlined at each place, it would be most of the code that skips.)
    #[inline(never)]
    fn skip_string(&mut self) -> Result<(), Stop> {
        self.string().map(drop)
    }

    #[inline(never)]
    fn skip_token(&mut self) -> Result<(), Stop> {
        if self.skip_decimal() {
            return Ok(());
        }
        self.other_token().map(drop)
    }

    /// Skips a container of any depth without recursion.
    fn skip_container(&mut self) -> Result<(), Stop> {
        let mut nest = Nest::default();
        nest.push(self.byte()? == b'{');
        self.pos += 1;
        let mut first = true;
        let mut ahead = self.ahead();
        loop {
            let object = nest.in_object();
            if !ahead.next_item(first) {
                let more = if ahead.is_at(if object { b'}' } else { b']' }) {
                    ahead.enter();
                    false
                } else {
                    self.go_to(ahead);
                    let more = self.next(first, object)?;
                    ahead = self.ahead();
                    more
                };
                if !more {
                    if !nest.pop() {
                        self.go_to(ahead);
                        return Ok(());
                    }
                    first = false;
                    continue;
                }
            }
            if object {
                self.go_to(ahead);
                self.skip_string()?;
                self.colon()?;
                ahead = self.ahead();
            }
            first = false;
            if ahead.plain_string().is_some() || ahead.skip_short_integer() {
                continue;
            }
            self.go_to(ahead);
            match self.byte()? {
                b'"' => self.skip_string()?,
                open @ (b'{' | b'[') => {
                    nest.push(open == b'{');
                    self.pos += 1;
                    first = true;
                }
                _ => self.skip_token()?,
            }
            ahead = self.ahead();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> (Result<Vec<String>, Stop>, bool) {
        let mut cursor = Cursor::new(text.as_bytes());
        let mut keys = Vec::new();
        let mut read = || {
            assert_eq!(cursor.peek()?, b'{');
            cursor.enter();
            while let Some(key) = cursor.next_key(keys.is_empty())? {
                keys.push(String::from_utf8_lossy(key.raw).into_owned());
                cursor.skip_value()?;
            }
            Ok(())
        };
        let result = read();
        (result.map(|()| keys), cursor.lenient())
    }

    #[test]
    fn walks_an_object() {
        let (found, lenient) =
            keys(r#" {"a":1 , "b" : [1,{"x":"]}"},[]],"c":{"d":{}},"e":"\"" } "#);
        assert_eq!(found.unwrap(), ["a", "b", "c", "e"]);
        assert!(!lenient);
    }

    #[test]
    fn is_lenient_and_says_so() {
        for text in [
            r#"{"a":1,,"b":2}"#,
            r#"{,"a":1,"b":2}"#,
            r#"{"a":1,"b":2,}"#,
            r#"{"a":1"b":2}"#,
            r#"{"a":[1 2],"b":2}"#,
            r#"{"a":[1,2},"b":2}"#,
            r#"{"a":1,"b":2]"#,
            r#"{"a":01,"b":+5}"#,
            r#"{"a":.5,"b":5.}"#,
            r#"{"a":NaN,"b":-Infinity}"#,
            r#"{"a":"\ud83d\ude00","b":1}"#,
            r#"{"a":"\x","b":1}"#,
            "{\"a\":\"x\ny\",\"b\":1}",
        ] {
            let (found, lenient) = keys(text);
            assert_eq!(found.as_deref(), Ok(&["a".to_owned(), "b".to_owned()][..]), "{text}");
            assert!(lenient, "{text}");
        }
    }

    #[test]
    fn a_cut_is_incomplete_at_every_byte() {
        let text = r#"{"a":[1,-2.5e3,{"b":"\u00e9\\"}],"c":null,"d":true,"e":"x"}"#;
        for end in 1..text.len() {
            assert_eq!(keys(&text[..end]).0, Err(Stop::Incomplete), "{}", &text[..end]);
        }
        assert_eq!(keys(text).0.unwrap().len(), 4);
    }

    #[test]
    fn what_is_no_json_is_malformed() {
        for text in ["{'a':1}", "{\"a\" 1}", "{\"a\":}", "{a:1}", "{\"a\":nope,", "{\"a\":1:2}"] {
            assert_eq!(keys(text).0, Err(Stop::Malformed), "{text}");
        }
    }

    #[test]
    fn values_have_no_padding() {
        assert_eq!(size_of::<Option<Value<'_>>>(), 3 * size_of::<usize>());
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let (found, lenient) = keys(&deep);
        assert_eq!(found.unwrap(), ["a"]);
        assert!(!lenient);
    }
}
