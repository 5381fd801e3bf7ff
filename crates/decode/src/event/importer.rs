//! Whether Perfetto's importer reads a text that is not strict JSON, and what it does if it does not.
//!
//! A copy of the decisions of `util/json_parser.h` and `json_trace_tokenizer.cc` (v55.3), made for the few texts that
//! deviate. Arrays and objects inside an event are skipped by their brackets alone; their text does not matter.

use trace::decimal::importer_value;

use super::number;

/// Why reading ends before the text does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The importer rejects the text.
    Wrong,
    /// It wants bytes that are not there.
    End,
}

type Read<T> = Result<T, Rejected>;

/// Bytes by which the importer tells kinds of files (`trace_type.cc`).
const LOOKAHEAD: usize = 64;

/// Whether the importer knows a file with this beginning for a JSON trace.
pub(crate) fn knows(head: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | 9..=13);
    let head = &head[..head.len().min(LOOKAHEAD)];
    let dense: Vec<u8> = head.iter().copied().filter(|byte| !is_blank(byte)).collect();
    let is_gecko = dense.starts_with(b"{\"meta\"") || dense.starts_with(b"{\"libs\"");
    !is_gecko && (dense.starts_with(b"{\"") || dense.starts_with(b"[{\""))
}

/// Whether the importer has nothing against the beginning of an event. (An integer beyond 64 bits, which does not matter
/// in a whole event, is its reason to reject one without an end.)
pub(crate) fn reads_start(text: &[u8]) -> bool {
    let mut reader = Reader { text, at: 0, overflows: false };
    reader.object() != Err(Rejected::Wrong) && !reader.overflows
}

/// Whether the importer reads an event.
pub(crate) fn reads_event(text: &[u8]) -> bool {
    let mut reader = Reader { text, at: 0, overflows: false };
    reader.object().is_ok()
}

/// Whether the importer reads a member of the outermost object: `key` with its quotes, and the text of its value.
pub(crate) fn reads_member(key: &[u8], value: &[u8]) -> bool {
    let starts =
        matches!(value.first(), Some(b'[' | b'{' | b'0'..=b'9' | b'-' | b'"' | b't' | b'f' | b'n'));
    starts && simple_string(key).is_some_and(<[u8]>::is_empty) && skips(value)
}

/// `ReadOneJsonString`: no control characters, no escapes but JSON's. The text behind the string.
fn simple_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        rest = match rest {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u', rest @ ..] => {
                rest
            }
            [b'\\' | 0..0x20 | 0x7f, ..] | [] => return None,
            [_, rest @ ..] => rest,
        };
    }
}

/// `SkipOneJsonValue`: brackets are counted, each kind by itself.
fn skips(value: &[u8]) -> bool {
    let (mut braces, mut brackets, mut rest) = (0_u64, 0_u64, value);
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'"' => {
                match simple_string(value.get(value.len() - behind.len() - 1..).unwrap_or_default())
                {
                    Some(behind) => rest = behind,
                    None => return false,
                }
            }
            b'[' => brackets += 1,
            b'{' => braces += 1,
            b']' if brackets == 0 => return false,
            b'}' if braces == 0 => return false,
            b']' => brackets -= 1,
            b'}' => braces -= 1,
            _ => {}
        }
    }
    braces == 0 && brackets == 0
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// There was an integer beyond 64 bits.
    overflows: bool,
}

impl Reader<'_> {
    fn byte(&self) -> Read<u8> {
        self.text.get(self.at).copied().ok_or(Rejected::End)
    }

    fn blanks(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Read<()> {
        if self.byte()? != byte {
            return Err(Rejected::Wrong);
        }
        self.at += 1;
        self.blanks();
        Ok(())
    }

    fn object(&mut self) -> Read<()> {
        self.take(b'{')?;
        while self.byte()? != b'}' {
            self.blanks();
            self.string()?;
            self.blanks();
            self.take(b':')?;
            self.value()?;
            self.blanks();
            match self.byte()? {
                b',' => self.take(b',')?,
                b'}' => {}
                _ => return Err(Rejected::Wrong),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// A string whose escapes are resolved.
    fn string(&mut self) -> Read<()> {
        let start = self.at + 1;
        self.skip_string()?;
        let mut at = start;
        while at + 1 < self.at {
            if self.text[at] != b'\\' {
                at += 1;
                continue;
            }
            if self.text[at + 1] == b'u' {
                let digits = self.text.get(at + 2..at + 6).ok_or(Rejected::End)?;
                let digits = std::str::from_utf8(digits).map_err(|_| Rejected::Wrong)?;
                let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let unit = u16::from_str_radix(digits, 16).map_err(|_| Rejected::Wrong)?;
                if !is_hex || (0xD800..0xE000).contains(&unit) {
                    return Err(Rejected::Wrong);
                }
                at += 4;
            }
            at += 2;
        }
        Ok(())
    }

    fn skip_string(&mut self) -> Read<()> {
        if self.byte()? != b'"' {
            return Err(Rejected::Wrong);
        }
        self.at += 1;
        loop {
            match self.byte()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Read<()> {
        match self.byte()? {
            b'{' => self.block(b'{', b'}'),
            b'[' => self.block(b'[', b']'),
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    /// `ScanToEndOfDelimitedBlock`: counts brackets of one kind.
    fn block(&mut self, open: u8, close: u8) -> Read<()> {
        let mut depth = 0_u64;
        loop {
            match self.byte()? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                byte if byte == open => depth += 1,
                byte if byte == close => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Read<()> {
        match self.text.get(self.at..self.at + word.len()) {
            Some(found) if found == word => {}
            Some(_) => return Err(Rejected::Wrong),
            None => return Err(Rejected::End),
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Read<()> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.text.get(reader.at), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at - from
        };
        self.at += usize::from(self.byte()? == b'-');
        let leading = self.byte()?;
        let n = digits(self);
        if n == 0 || (leading == b'0' && n > 1) {
            return Err(Rejected::Wrong);
        }
        if self.byte()? == b'.' {
            self.at += 1;
            if digits(self) == 0 {
                return Err(Rejected::Wrong);
            }
        }
        if matches!(self.byte()?, b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.byte()?, b'+' | b'-'));
            if digits(self) == 0 {
                return Err(Rejected::Wrong);
            }
        }
        let text = &self.text[start..self.at];
        let is_integer = !text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        self.overflows |= is_integer && number::integer(text).is_none();
        match importer_value(text) {
            Some(_) => Ok(()),
            None => Err(Rejected::Wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_v55_3_reads_and_what_it_rejects() {
        for text in [
            r#"{}"#,
            r#"{"a":1,}"#,
            r#"{ "a" : [1,2}] , "b":{"c":NaN,"d":"\ud83d"} }"#,
            r#"{"a":"\q","b":"\u00e9"}"#,
            "{\"a\":\"x\ny\"}",
            r#"{"a":-0.5e-3,"b":99999999999999999999}"#,
        ] {
            assert!(reads_event(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"a":1,,"b":2}"#,
            r#"{,"a":1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":01}"#,
            r#"{"a":+5}"#,
            r#"{"a":.5}"#,
            r#"{"a":5.}"#,
            r#"{"a":NaN}"#,
            r#"{"a":1e400}"#,
            r#"{"a":"\ud83d\ude00"}"#,
            r#"{"\ud83d":1}"#,
            r#"{"a":"\u12"}"#,
            r#"{"a":[1,2}}"#,
        ] {
            assert!(!reads_event(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_v55_3_rejects_of_an_event_without_an_end() {
        for text in [
            r#"{"a":"#,
            r#"{"a":99999999999999999999"#,
            r#"{"a":-9223372036854775808,"b"#,
            r#"{"a":99999999999999999999.5,"b"#,
            r#"{"a":{"b":99999999999999999999},"c"#,
        ] {
            assert!(reads_start(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"a":99999999999999999999,"#,
            r#"{"a":9223372036854775808 "#,
            r#"{"a":-9223372036854775809,"b":1"#,
        ] {
            assert!(!reads_start(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn members_of_the_document() {
        let reads = |key: &str, value: &str| reads_member(key.as_bytes(), value.as_bytes());
        assert!(reads("\"a\"", "[{\"b\":NaN}]"));
        assert!(reads("\"a\"", "\"\\ud83d\""));
        for (key, value) in [
            ("\"a\"", "NaN"),
            ("\"a\"", "\"x\ny\""),
            ("\"a\"", "[1,2}"),
            ("\"a\"", "\"\\q\""),
            ("\"a\u{7f}\"", "1"),
            ("\"a\"", "+1"),
        ] {
            assert!(!reads(key, value), "{key}: {value}");
        }
    }
}
