//! Finds and rewrites text that is not strict JSON in UTF-8.

use crate::Cursor;
use crate::quirk::{Log, look_into};

pub use crate::quirk::{Found, Quirk, needs_look};

/// Whether `bytes` is one strict JSON value in UTF-8, white space around it allowed.
#[must_use]
pub fn is_strict(bytes: &[u8]) -> bool {
    quirks(bytes).next().is_none()
}

/// How one JSON value deviates, kind by kind.
pub fn quirks(bytes: &[u8]) -> impl Iterator<Item = Found> + use<> {
    let tally = match walk(bytes, Log::Tally(Box::new([const { None }; Quirk::COUNT]))) {
        (Log::Tally(tally), true) => *tally,
        _ => {
            let mut tally = [const { None }; Quirk::COUNT];
            let found = Found { quirk: Quirk::NotJson, count: 1, first: 0..bytes.len() };
            tally[Quirk::NotJson as usize] = Some(found);
            tally
        }
    };
    tally.into_iter().flatten()
}

/// Appends `bytes`, one JSON value as a lenient reader reads it, to `out` as strict JSON in UTF-8.
///
/// Strict text is copied byte for byte. Surrogate pairs become the character in UTF-8, lone
/// surrogates and invalid bytes U+FFFD, control characters escapes, `NaN` the string `"NaN"`; numbers are
/// respelled, commas and brackets corrected. Text that is not JSON becomes a string.
pub fn rewrite(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let log = Log::Rewrite { out: std::mem::take(out), at: 0 };
    match walk(bytes, log) {
        (log, true) => *out = log.into_text(bytes),
        (log, false) => {
            *out = log.into_text(b"");
            out.truncate(start);
            out.push(b'"');
            let body = string_of(bytes);
            let mut log = Log::Rewrite { out: std::mem::take(out), at: 0 };
            look_into(&mut log, &body, 0..body.len());
            *out = log.into_text(&body);
            out.push(b'"');
        }
    }
}

/// The body of a JSON string that spells `bytes`.
fn string_of(bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            body.push(b'\\');
        }
        body.push(*byte);
    }
    body
}

/// Reports every deviation in `bytes` to `log`; returns whether `bytes` is a JSON value at all.
fn walk(bytes: &[u8], log: Log) -> (Log, bool) {
    let mut cursor = Cursor::telling(bytes, log);
    let read = cursor.skip_value().is_ok();
    cursor.skip_ws();
    let whole = read && cursor.pos() == bytes.len();
    let log = cursor.into_log();
    (log.unwrap_or(Log::Rewrite { out: Vec::new(), at: 0 }), whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: impl AsRef<[u8]>) -> String {
        let mut out = Vec::new();
        rewrite(text.as_ref(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rewrites_each_quirk() {
        for (from, to) in [
            (r#"{"a":"\ud83d\ude00"}"#, "{\"a\":\"\u{1f600}\"}"),
            (
                r#"["\ud83d","\ude00x","\ud83d\u0041"]"#,
                "[\"\u{fffd}\",\"\u{fffd}x\",\"\u{fffd}\\u0041\"]",
            ),
            ("[\"a\nb\tc\u{1}\"]", r#"["a\nb\tc\u0001"]"#),
            (r#"["\x","\u12"]"#, r#"["\\x","\\u12"]"#),
            ("[NaN, -Infinity,inf , nan]", r#"["NaN", "-Infinity","Infinity" , "NaN"]"#),
            ("[01,+5,.5,5.,-007.50,+.e1x]", "\"[01,+5,.5,5.,-007.50,+.e1x]\""),
            ("[01,+5,.5,5.,-007.50,5.e3]", "[1,5,0.5,5.0,-7.50,5.0e3]"),
            ("[,1,,2,,]", "[1,2]"),
            (r#"{"a":1 "b":[1 2]"c":3}"#, r#"{"a":1 ,"b":[1 ,2],"c":3}"#),
            (r#"{"a":[1,2},"b":{"c":1]}"#, r#"{"a":[1,2],"b":{"c":1}}"#),
            ("[1e400,-1E+999,1e300]", "[\"1e400\",\"-1E+999\",1e300]"),
            ("undefined", "\"undefined\""),
            ("", "\"\""),
            (r#""a" "b\"#, r#""\"a\" \"b\\""#),
            ("[nan+.5]", "\"[nan+.5]\""),
        ] {
            assert_eq!(rewritten(from), to, "{from}");
            assert!(!is_strict(from.as_bytes()), "{from}");
            assert!(is_strict(to.as_bytes()), "{to}");
        }
        assert_eq!(rewritten(b"[\"caf\xe9 \xff\xfe\"]"), "[\"caf\u{fffd} \u{fffd}\u{fffd}\"]");
        assert_eq!(rewritten(b"\"\\\xff\""), "\"\\\\\u{fffd}\"");
    }

    #[test]
    fn strict_text_is_left_alone() {
        for text in [
            "0",
            " -1.5e+30 ",
            "null",
            r#""\u00e9\"\\\/ é 😀""#,
            "{\n\t\"a\" : [ ] , \"b\":{}\r\n}",
            "[[[1,2],[true,false,null]],{\"\":0}]",
        ] {
            assert!(is_strict(text.as_bytes()), "{text}");
            assert_eq!(rewritten(text), text);
        }
    }

    #[test]
    fn quirks_come_with_their_number_and_place() {
        let found: Vec<_> = quirks(br#"{"a":01,"b":[1,,],"c":NaN,}"#)
            .map(|Found { quirk, count, first }| (quirk, count, first))
            .collect();
        assert_eq!(
            found,
            [
                (Quirk::NonFinite, 1, 22..25),
                (Quirk::OddNumber, 1, 5..7),
                (Quirk::ExtraComma, 3, 14..15),
            ]
        );
    }

    #[test]
    fn a_look_is_needed_for_what_the_cursor_cannot_see() {
        assert!(!needs_look(b"{\"a\": 1,\n  \"b\": \"~ \"}"));
        assert!(needs_look(b"{\"a\": \"\t\"}"));
        assert!(needs_look("{\"a\": \"é\"}".as_bytes()));
    }
}
