//! Any file in any pieces gives the same trace, and what the trace says about the file holds.
#![no_main]

use decode::{Decoded, Decoder, NotATrace};
use libfuzzer_sys::fuzz_target;

fn decode_in(file: &[u8], size: usize) -> Result<Decoded, NotATrace> {
    let mut decoder = Decoder::new();
    for chunk in file.chunks(size) {
        decoder.push(chunk)?;
    }
    decoder.finish()
}

fn digest(result: &Result<Decoded, NotATrace>) -> String {
    match result {
        Ok(decoded) => format!("{:?} {:?} {:?}", decoded.trace, decoded.problems, decoded.source),
        Err(error) => format!("{error:?}"),
    }
}

fuzz_target!(|input: &[u8]| {
    // The last byte says how to cut the rest.
    let Some((size, file)) = input.split_last() else { return };
    let result = decode_in(file, usize::MAX);
    let whole = digest(&result);
    assert_eq!(digest(&decode_in(file, usize::from(*size) + 1)), whole);
    assert_eq!(digest(&decode_in(file, 1)), whole);

    let Ok(Decoded { trace, problems, source }) = result else {
        return;
    };
    let layout = &trace.layout;
    let mut end = 0;
    for row in trace.rows() {
        let span = trace.span(row);
        assert!(span.start >= end && span.end() <= source.json_bytes, "spans are in order");
        end = span.end();
        if !source.gzip {
            let text = &file[span.start as usize..span.end() as usize];
            assert!(text.starts_with(b"{") && text.ends_with(b"}") || text.ends_with(b"]"));
            let flagged = trace.flags(row).has(trace::Flags::TEXT);
            assert_eq!(flagged, !scan::strict::is_strict(text), "{}", text.escape_ascii());
        }
    }
    for problem in &problems {
        assert!(problem.count > 0 && problem.first_offset <= source.json_bytes);
        assert!(problem.excerpt.chars().count() <= 120);
        assert!(problem.first_row.is_none_or(|row| (row as usize) < trace.len()));
    }
    for member in layout.before.iter().chain(&layout.after) {
        assert!(member.value_span.end() <= source.json_bytes);
        assert!(member.text.as_ref().is_none_or(|text| scan::strict::is_strict(text.as_bytes())));
    }
    if let Some(array) = layout.array {
        assert!(layout.start < array.open && array.open <= source.json_bytes);
        assert!(array.close.is_none_or(|close| close >= array.open));
    }
});
