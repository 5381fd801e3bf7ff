//! Any bytes in any pieces give the same calls, and rewriting gives strict JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scan::{Cursor, Defect, Frame, Member, Scanner, Sink, Stop, object, strict, string};

/// Writes down what it is told, in short.
#[derive(Default, PartialEq, Debug)]
struct Log(Vec<(u64, u64, String)>);

impl Sink for Log {
    fn element(&mut self, offset: u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        cursor.skip_value()?;
        let text = &cursor.bytes()[..cursor.pos()];
        // What the cursor takes for strict is strict.
        if !cursor.lenient() && !strict::needs_look(text) {
            assert!(strict::is_strict(text), "missed in {}", text.escape_ascii());
        }
        for member in object::members(text) {
            let _ = string::unescape(&text[member.key]);
        }
        self.0.push((offset, cursor.pos() as u64, String::new()));
        Ok(())
    }

    fn frame(&mut self, frame: Frame) {
        self.0.push((0, 0, format!("{frame:?}")));
    }

    fn member(&mut self, member: &Member<'_>) {
        let text = format!("{:?} {:?}", member.key, member.value);
        self.0.push((member.key_offset, member.value_offset, text));
    }

    fn defect(&mut self, defect: &Defect<'_>) {
        self.0.push((defect.offset, defect.len, format!("{:?} {:?}", defect.kind, defect.excerpt)));
    }

    fn is_element_key(&self, key: &[u8]) -> bool {
        key == b"ph" || key == b"name"
    }
}

fn scan_in(text: &[u8], size: usize) -> Log {
    let mut log = Log::default();
    let mut scanner = Scanner::new("traceEvents");
    for chunk in text.chunks(size) {
        scanner.push(chunk, &mut log);
    }
    assert_eq!(scanner.finish(&mut log), text.len() as u64);
    log
}

fuzz_target!(|input: &[u8]| {
    // The last byte says how to cut the rest.
    let Some((size, text)) = input.split_last() else { return };
    let whole = scan_in(text, usize::MAX);
    assert_eq!(scan_in(text, usize::from(*size) + 1), whole);
    assert_eq!(scan_in(text, 1), whole);

    let mut out = Vec::new();
    strict::rewrite(text, &mut out);
    assert!(strict::is_strict(&out), "{}", out.escape_ascii());
    assert_eq!(strict::is_strict(text), out == text);
    match serde_json::from_slice::<serde::de::IgnoredAny>(&out) {
        Ok(_) => {}
        // serde_json limits these two; JSON does not.
        Err(error) => {
            let reason = error.to_string();
            let limit = reason.contains("recursion limit") || reason.contains("out of range");
            assert!(limit, "{reason}: {}", out.escape_ascii());
        }
    }
});
