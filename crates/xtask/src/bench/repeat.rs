//! Builds a large trace from a real one: its events repeated, each copy shifted in time and with its own ids.
//!
//! Text in, text out: numbers keep their spelling, so the large trace is as hard to parse as the real one.

use std::io::{self, Write};
use std::ops::Range;

use anyhow::{Context, Result};

/// Time between two copies, in whole microseconds.
const GAP_US: i128 = 1_000_000;
const ARRAY: &[u8] = b"\"traceEvents\"";

/// A number of the events that differs from copy to copy.
struct Place {
    digits: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Id,
}

/// Writes `json` with its events `n_copies` times. Names of processes and threads come once.
pub fn repeat(json: &[u8], n_copies: usize, out: &mut impl Write) -> Result<()> {
    let events = events(json).context("this file has no traceEvents to repeat")?;
    let (first, last) = match (events.first(), events.last()) {
        (Some(first), Some(last)) => (first.start, last.end),
        _ => anyhow::bail!("traceEvents is empty"),
    };
    let mut places = Vec::new();
    for event in events.iter().filter(|event| !is_metadata(&json[(*event).clone()])) {
        find_places(json, event.clone(), &mut places);
    }
    let value = |place: &Place| number(&json[place.digits.clone()]);
    let of = |kind| places.iter().filter(move |place| place.kind == kind).filter_map(value);
    let (start, end) = (of(Kind::Time).min().unwrap_or(0), of(Kind::Time).max().unwrap_or(0));
    let time_step = end - start + GAP_US;
    let id_step = of(Kind::Id).max().unwrap_or(0) + 1;

    out.write_all(&json[..last])?;
    for copy in 1..n_copies as i128 {
        let mut places = places.iter().peekable();
        for event in events.iter().filter(|event| !is_metadata(&json[(*event).clone()])) {
            out.write_all(b",\n")?;
            let mut at = event.start;
            while let Some(place) = places.next_if(|place| place.digits.end <= event.end) {
                out.write_all(&json[at..place.digits.start])?;
                let step = if place.kind == Kind::Time { time_step } else { id_step };
                let old = value(place).context("a number has no digits")?;
                write!(out, "{}", old + step * copy)?;
                at = place.digits.end;
            }
            out.write_all(&json[at..event.end])?;
        }
    }
    debug_assert!(first < last, "events come after one another");
    out.write_all(&json[last..]).map_err(io::Error::into)
}

/// Where the events of the first `traceEvents` are.
fn events(json: &[u8]) -> Option<Vec<Range<usize>>> {
    let name = json.windows(ARRAY.len()).position(|window| window == ARRAY)?;
    let open = name + json[name..].iter().position(|byte| *byte == b'[')?;
    let (mut depth, mut start, mut events) = (0, 0, Vec::new());
    let mut at = open + 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at),
            b'{' | b'[' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b']' if depth == 0 => return Some(events),
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    events.push(start..at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The last quote of the string that opens at `open`.
fn string_end(json: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    loop {
        match json.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') | None => return at,
            Some(_) => at += 1,
        }
    }
}

/// The numbers to change: `ts`, and the `id` of flow events, at the event's own level; correlation and External id in
/// its arguments.
fn find_places(json: &[u8], event: Range<usize>, places: &mut Vec<Place>) {
    let (mut depth, mut at) = (0, event.start);
    while at < event.end {
        match json[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = string_end(json, at);
                let kind = match (depth, json.get(at + 1..end).unwrap_or_default()) {
                    (1, b"ts") => Some(Kind::Time),
                    (1, b"id") | (2, b"correlation" | b"External id") => Some(Kind::Id),
                    _ => None,
                };
                at = end;
                if let Some((kind, digits)) = kind.zip(integer_after_colon(json, end + 1)) {
                    at = digits.end - 1;
                    places.push(Place { digits, kind });
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The digits before any decimal point of the number that is the value of a key.
fn integer_after_colon(json: &[u8], from: usize) -> Option<Range<usize>> {
    let skip = |at: usize, wanted: fn(&u8) -> bool| {
        at + json[at..].iter().take_while(|byte| wanted(byte)).count()
    };
    let colon = skip(from, u8::is_ascii_whitespace);
    if json.get(colon) != Some(&b':') {
        return None;
    }
    let start = skip(colon + 1, u8::is_ascii_whitespace);
    let end = skip(start, u8::is_ascii_digit);
    (end > start).then_some(start..end)
}

fn number(digits: &[u8]) -> Option<i128> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn is_metadata(event: &[u8]) -> bool {
    [&br#""ph": "M""#[..], br#""ph":"M""#]
        .iter()
        .any(|phase| event.windows(phase.len()).any(|window| window == *phase))
}

#[cfg(test)]
mod tests {
    use super::repeat;
    use serde_json::{Value, json};

    #[test]
    fn copies_come_later_and_with_ids_of_their_own() {
        let trace = br#"{"a":[{"id":5}], "traceEvents":[{"ph":"M","name":"process_name","args":{"name":"p"}},
            {"ph":"X","name":"\"ts\": 7","ts": 10.125,"dur":2,"args":{"correlation": 3,"External id":4}},
            {"ph":"s","id":3,"ts":11.5}], "b":1}"#;
        let mut out = Vec::new();
        repeat(trace, 3, &mut out).unwrap();
        let made: Value = serde_json::from_slice(&out).unwrap();
        let events = made["traceEvents"].as_array().unwrap();
        assert_eq!((events.len(), &made["b"]), (7, &json!(1)));
        // 11 - 10 and a second later; ids higher by 4 + 1.
        let second = &events[3];
        assert_eq!((&second["ts"], &second["name"]), (&json!(1_000_011.125), &json!("\"ts\": 7")));
        assert_eq!(second["args"], json!({"correlation": 8, "External id": 9}));
        assert_eq!((&events[6]["id"], &events[6]["ts"]), (&json!(13), &json!(2_000_013.5)));
    }

    #[test]
    fn what_has_no_events_is_refused() {
        for text in ["{}", r#"{"traceEvents":[]}"#, r#"{"traceEvents":[{"ts":1}"#] {
            assert!(repeat(text.as_bytes(), 2, &mut Vec::new()).is_err(), "{text}");
        }
    }
}
