use super::*;
use crate::Stop;

/// Records every call.
#[derive(Default)]
struct Log(Vec<String>);

impl Sink for Log {
    fn element(&mut self, offset: u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        cursor.skip_value()?;
        let text = String::from_utf8_lossy(&cursor.bytes()[..cursor.pos()]);
        self.0.push(format!("{offset} {text}"));
        Ok(())
    }

    fn frame(&mut self, frame: Frame) {
        self.0.push(match frame {
            Frame::Start { offset, object } => format!("{offset} start object={object}"),
            Frame::ArrayOpen { offset } => format!("{offset} open"),
            Frame::ArrayClose { offset } => format!("{offset} close"),
            Frame::End { offset } => format!("{offset} end"),
        });
    }

    fn member(&mut self, member: &Member<'_>) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.0.push(format!(
            "{} member {}: {}+{} {}",
            member.key_offset,
            text(member.key),
            member.value_offset,
            member.value_len,
            text(member.value)
        ));
    }

    fn defect(&mut self, defect: &Defect<'_>) {
        let Defect { kind, place, offset, len, count, .. } = *defect;
        self.0.push(format!("{offset} {kind:?} {place:?} len={len} count={count}"));
    }

    fn is_element_key(&self, key: &[u8]) -> bool {
        matches!(key, b"ph" | b"name" | b"n")
    }
}

fn scan(text: &[u8], size: usize) -> Vec<String> {
    let mut log = Log::default();
    let mut scanner = Scanner::new("ev");
    for chunk in text.chunks(size) {
        scanner.push(chunk, &mut log);
    }
    assert_eq!(scanner.finish(&mut log), text.len() as u64);
    log.0
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let whole = scan(text.as_bytes(), usize::MAX);
    assert_eq!(whole, expected, "{text}");
    for size in 1..text.len().min(80) {
        assert_eq!(scan(text.as_bytes(), size), whole, "{text} in pieces of {size}");
    }
}

#[test]
fn a_sound_object() {
    check(
        r#" {"a":[1,{"ev":[]}], "ev" : [ {"n":"]}"} , {"n":2}] ,"z":"é" } "#,
        &[
            "1 start object=true",
            r#"2 member "a": 6+13 [1,{"ev":[]}]"#,
            "29 open",
            r#"30 {"n":"]}"}"#,
            r#"43 {"n":2}"#,
            "50 close",
            r#"53 member "z": 57+4 "é""#,
            "63 end",
        ],
    );
}

#[test]
fn a_bare_array_and_empty_ones() {
    check(r#"[{"n":1}]"#, &["0 start object=false", "1 open", r#"1 {"n":1}"#, "8 close", "9 end"]);
    check("[]", &["0 start object=false", "1 open", "1 close", "2 end"]);
    check("{}", &["0 start object=true", "2 end"]);
    check(r#"{"ev":[]}"#, &["0 start object=true", "7 open", "7 close", "9 end"]);
    check("", &[]);
    check(" \n", &[]);
}

#[test]
fn a_byte_order_mark_and_text_outside() {
    check(
        "\u{feff}[{\"n\":1}] x [y] ",
        &[
            "0 ByteOrderMark Outside len=3 count=1",
            "3 start object=false",
            "4 open",
            r#"4 {"n":1}"#,
            "11 close",
            "12 end",
            "13 Outside Outside len=5 count=4",
        ],
    );
}

#[test]
fn commas_everywhere() {
    check(
        r#"{,"a":1 "b":2,,"ev":[,{"n":1}{"n":2},,{"n":3},,],}"#,
        &[
            "0 start object=true",
            "1 ExtraComma Before len=1 count=1",
            r#"2 member "a": 6+1 1"#,
            "8 MissingComma Before len=0 count=1",
            r#"8 member "b": 12+1 2"#,
            "13 ExtraComma Before len=2 count=1",
            "21 open",
            r#"22 {"n":1}"#,
            "21 ExtraComma Among len=1 count=1",
            r#"29 {"n":2}"#,
            "29 MissingComma Among len=0 count=1",
            r#"38 {"n":3}"#,
            "36 ExtraComma Among len=2 count=1",
            "46 TrailingComma Among len=1 count=1",
            "45 ExtraComma Among len=2 count=1",
            "47 close",
            "48 TrailingComma After len=1 count=1",
            "50 end",
        ],
    );
}

#[test]
fn junk_between_elements() {
    check(
        "[null,{\"n\":1},\"x,]\",[{\"n\":9}],/*,{*/ // ]\n12 {\"n\":2},}]",
        &[
            "0 start object=false",
            "1 open",
            "1 Junk Among len=4 count=1",
            r#"6 {"n":1}"#,
            "14 Junk Among len=5 count=1",
            "20 Junk Among len=9 count=1",
            "30 Junk Among len=6 count=1",
            "37 Junk Among len=4 count=1",
            "42 Junk Among len=2 count=1",
            r#"45 {"n":2}"#,
            "45 MissingComma Among len=0 count=1",
            "53 Junk Among len=1 count=1",
            "52 TrailingComma Among len=1 count=1",
            "54 close",
            "55 end",
        ],
    );
}

#[test]
fn damage_is_stepped_over() {
    check(
        r#"[{"n":1},{"n":"a"b"},{"x":[{"y":1}]},{"n":2}]"#,
        &[
            "0 start object=false",
            "1 open",
            r#"1 {"n":1}"#,
            "9 Malformed Among len=28 count=1",
            r#"37 {"n":2}"#,
            "44 close",
            "45 end",
        ],
    );
    check(
        r#"[{"n":1,"a":[1},{"n":2},{"n":3}]"#,
        &[
            "0 start object=false",
            "1 open",
            "1 Malformed Among len=15 count=1",
            r#"16 {"n":2}"#,
            r#"24 {"n":3}"#,
            "31 close",
            "32 end",
        ],
    );
}

#[test]
fn the_end_comes_too_early() {
    check(
        r#"{"ev":[{"n":1},{"n":{"a":2"#,
        &[
            "0 start object=true",
            "7 open",
            r#"7 {"n":1}"#,
            "15 Truncated Among len=11 count=1",
            "26 UnclosedArray Among len=0 count=1",
        ],
    );
    check(
        r#"{"ev":[],"z":[1"#,
        &[
            "0 start object=true",
            "7 open",
            "7 close",
            "9 Truncated After len=6 count=1",
            "15 UnclosedObject After len=0 count=1",
        ],
    );
    check(
        r#"{"ev":[{"n":1}}"#,
        &[
            "0 start object=true",
            "7 open",
            r#"7 {"n":1}"#,
            "14 UnclosedArray Among len=1 count=1",
            "14 close",
            "15 end",
        ],
    );
}

#[test]
fn wrong_brackets_of_the_frame() {
    check(
        r#"{"ev":[{"n":1}},"z":1]"#,
        &[
            "0 start object=true",
            "7 open",
            r#"7 {"n":1}"#,
            "14 WrongBracket Among len=1 count=1",
            "14 close",
            r#"16 member "z": 20+1 1"#,
            "21 WrongBracket After len=1 count=1",
            "22 end",
        ],
    );
}

#[test]
fn second_array_and_second_document() {
    check(
        r#"{"ev":[{"n":1}],"ev":[{"n":2}]}{"\u0065v":[{"n":3}]}"#,
        &[
            "0 start object=true",
            "7 open",
            r#"7 {"n":1}"#,
            "14 close",
            "16 SecondArray After len=4 count=1",
            "22 open",
            r#"22 {"n":2}"#,
            "29 close",
            "31 end",
            "31 SecondDocument Outside len=1 count=1",
            "31 start object=true",
            "43 open",
            r#"43 {"n":3}"#,
            "50 close",
            "52 end",
        ],
    );
}

#[test]
fn a_second_document_may_begin_with_a_comma() {
    check(
        r#"[,{"n":1}]x[, {"n":2}]"#,
        &[
            "0 start object=false",
            "1 open",
            r#"2 {"n":1}"#,
            "1 ExtraComma Among len=1 count=1",
            "9 close",
            "10 end",
            "10 Outside Outside len=1 count=1",
            "11 SecondDocument Outside len=1 count=1",
            "11 start object=false",
            "12 open",
            r#"14 {"n":2}"#,
            "12 ExtraComma Among len=1 count=1",
            "21 close",
            "22 end",
        ],
    );
}

#[test]
fn members_that_are_none() {
    check(
        r#"{"a" "b":,"c":1,nonsense,"ev":3}"#,
        &[
            "0 start object=true",
            "1 Junk Before len=3 count=1",
            "5 Junk Before len=3 count=1",
            r#"10 member "c": 14+1 1"#,
            "16 Junk Before len=8 count=1",
            r#"25 member "ev": 30+1 3"#,
            "32 end",
        ],
    );
}

#[test]
fn hostile_nesting_takes_linear_time() {
    for unit in
        ["{\"n\":[", "[", "{", "{\"n\":", "{\"n\":\"", "{\"n\":{\"n\" ", "}", ",", "{\"", "]"]
    {
        for head in ["[", "{\"ev\":["] {
            let text = format!("{head}{}", unit.repeat(100_000));
            scan(text.as_bytes(), usize::MAX);
            scan(text.as_bytes(), 1000);
        }
    }
}

#[test]
fn a_carry_of_any_length_is_read_once_it_is_whole() {
    let long = format!("[{{\"n\":\"{}\"}},{{\"n\":2}}]", "x".repeat(100_000));
    let whole = scan(long.as_bytes(), usize::MAX);
    assert_eq!(whole.len(), 6);
    for size in [1, 7, 64, 1000, 4096, 99_999] {
        assert_eq!(scan(long.as_bytes(), size), whole);
    }
}

#[test]
fn an_event_that_is_cut_in_a_string_takes_none_of_the_next() {
    check(
        "[{\"ph\":\"X\",\"cat\":\"Ker\n{\"ph\":\"i\"},{\"n\":1}]",
        &[
            "0 start object=false",
            "1 open",
            "1 Malformed Among len=21 count=1",
            "22 {\"ph\":\"i\"}",
            "33 {\"n\":1}",
            "40 close",
            "41 end",
        ],
    );
}

#[test]
fn an_event_that_is_cut_behind_a_colon_takes_none_of_the_next() {
    check(
        "[{\"ph\":\"X\",\"name\":\"void at::{\"ph\":\"i\"}]",
        &[
            "0 start object=false",
            "1 open",
            "1 Malformed Among len=27 count=1",
            "28 {\"ph\":\"i\"}",
            "38 close",
            "39 end",
        ],
    );
}
