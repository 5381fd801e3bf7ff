//! Laws of strict rewriting, and that the cursor misses nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use scan::{Cursor, Stop, object::members, strict, string::unescape};

/// Text that is JSON, or nearly.
fn text() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"a\":",
        b"\"a\"",
        b"\"caf\xc3\xa9 \\n\"",
        b"\"\\ud83d\\ude00\\ud83d\"",
        b"\"\\u00e9\\uDC00\\x\\u1\"",
        b"\"\xff\x01\n\"",
        b" ",
        b"\n    ",
        b"\t",
        b"1",
        b"-2.50e+3",
        b"007",
        b".5",
        b"+5.",
        b"NaN",
        b"-Infinity",
        b"true",
        b"null",
        b"\\",
        b"\"",
        b"x",
    ];
    let part = (0..PARTS.len()).prop_map(|n| PARTS[n]);
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// JSON as a lenient reader takes it, so that rewriting has something to do.
fn lenient_value() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        Just(b"1".to_vec()),
        Just(b"-0.5e-3".to_vec()),
        Just(b"007.".to_vec()),
        Just(b"+.5".to_vec()),
        Just(b"-inf".to_vec()),
        Just(b"NaN".to_vec()),
        Just(b"false".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..8).prop_map(|body| {
            let body: Vec<_> =
                body.into_iter().filter(|byte| *byte != b'"' && *byte != b'\\').collect();
            [b"\"", &body[..], b"\""].concat()
        }),
        Just(b"\"\\ud83d\\ude00\\q\"".to_vec()),
    ];
    let comma = || prop_oneof![4 => Just(&b","[..]), 1 => Just(&b",, "[..]), 1 => Just(&b" "[..])];
    scalar.prop_recursive(4, 32, 5, move |inner| {
        let item = (inner.clone(), comma()).prop_map(|(item, comma)| [&item[..], comma].concat());
        let pair =
            (inner, comma()).prop_map(|(item, comma)| [b"\"k\" : ", &item[..], comma].concat());
        let close = || prop_oneof![5 => Just(true), 1 => Just(false)];
        prop_oneof![
            (proptest::collection::vec(item, 0..5), close()).prop_map(|(items, right)| {
                [b"[", &items.concat()[..], if right { b"]" } else { b"}" }].concat()
            }),
            (proptest::collection::vec(pair, 0..5), close()).prop_map(|(items, right)| {
                [b"{", &items.concat()[..], if right { b"}" } else { b"]" }].concat()
            }),
        ]
    })
}

fn rewritten(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    strict::rewrite(text, &mut out);
    out
}

/// Reads one value of `text`, which may go on.
fn read(text: &[u8]) -> (Result<usize, Stop>, bool, bool) {
    let mut cursor = Cursor::new(text);
    let result = cursor.skip_value();
    (result.map(|()| cursor.pos()), cursor.lenient(), cursor.needs_look())
}

fn check_rewriting(text: &[u8]) -> Result<(), TestCaseError> {
    let out = rewritten(text);
    prop_assert!(strict::is_strict(&out), "{} -> {}", text.escape_ascii(), out.escape_ascii());
    prop_assert_eq!(&rewritten(&out), &out, "rewriting is done once");
    if let Err(error) = serde_json::from_slice::<serde_json::Value>(&out) {
        // 1e999 is JSON, but no double, which serde_json minds.
        prop_assert!(error.to_string().contains("out of range"), "{error}: {}", out.escape_ascii());
    }
    prop_assert_eq!(strict::is_strict(text), out == text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn rewriting_any_text_gives_strict_json(text in text()) {
        check_rewriting(&text)?;
    }

    #[test]
    fn rewriting_lenient_json_gives_strict_json(text in lenient_value()) {
        let notable = strict::needs_look(&text);
        check_rewriting(&text)?;
        let (result, lenient, look) = read(&[&text[..], b" "].concat());
        prop_assert_eq!(result, Ok(text.len()));
        prop_assert!(look <= (lenient || notable), "no reason to look at {}", text.escape_ascii());
        prop_assert!(strict::is_strict(&text) || look, "no look at {}", text.escape_ascii());
        prop_assert!(strict::is_strict(&text) || lenient || notable, "missed in {}", text.escape_ascii());
        prop_assert!(!lenient || !strict::is_strict(&text), "invented in {}", text.escape_ascii());
    }

    #[test]
    fn what_serde_reads_is_strict(text in text()) {
        // Not the other way round: serde refuses great numbers.
        let strict = serde_json::from_slice::<serde_json::Value>(&text).is_ok();
        let surrogates = text.windows(3).any(|three| three == b"\\ud");
        prop_assert!(!strict || surrogates || strict::is_strict(&text));
    }

    #[test]
    fn what_is_decided_stays_decided(text in text(), more in text()) {
        let (result, ..) = read(&text);
        if result != Err(Stop::Incomplete) {
            prop_assert_eq!(read(&[&text[..], &more[..]].concat()).0, result);
        }
    }

    #[test]
    fn strings_mean_what_their_strict_form_means(body in proptest::collection::vec(
        prop_oneof![any::<u8>(), Just(b'\\'), Just(b'u'), Just(b'd'), Just(b'8'), Just(b'0')], 0..24))
    {
        let text = [b"\"", &body[..], b"\""].concat();
        prop_assume!(read(&text).0 == Ok(text.len()));
        let strict: String = serde_json::from_slice(&rewritten(&text)).unwrap();
        prop_assert_eq!(unescape(&body), strict);
    }

    #[test]
    fn members_tile_their_object(text in lenient_value()) {
        let mut end = 0;
        for member in members(&text) {
            prop_assert!(end < member.key.end && member.key.end < member.value.start);
            prop_assert!(read(&[&text[member.value.clone()], b" "].concat()).0.is_ok());
            end = member.value.end;
        }
    }
}
