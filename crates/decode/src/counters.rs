//! The second reading for a picture: the values of counters, which no column has.

use ingest::Unpacker;
use scan::{Cursor, Value, object::members, string::unescape};
use trace::{Flags, Phase, Row, StringId, StringTable, Trace};

use crate::Decoded;
use crate::pieces::{Cut, Pieces};

/// Values of counters.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Keys of the arguments.
    pub texts: StringTable,
    /// The event, the key of its argument, and the value, in the order of the file.
    pub samples: Vec<(Row, StringId, f64)>,
    /// Events whose arguments could not be read.
    pub n_unread: u64,
}

/// Reads the [`Counters`] of a trace out of the file that it was decoded from.
///
/// Sans-I/O: [`CountersReader::push`] the file (compressed or not, as it was decoded) in any pieces, then
/// [`CountersReader::finish`]. The result does not depend on the pieces.
pub struct CountersReader<'a> {
    unpacker: Unpacker,
    reader: Reader<'a>,
}

/// The decompressed side.
struct Reader<'a> {
    trace: &'a Trace,
    next: Option<Row>,
    pieces: Pieces,
    found: Counters,
}

impl<'a> CountersReader<'a> {
    /// A reader for the file that `decoded` was read from; `None` of a trace without counters.
    #[must_use]
    pub fn new(decoded: &'a Decoded) -> Option<Self> {
        let trace = &decoded.trace;
        let (pieces, found) = (Pieces::default(), Counters::default());
        let mut reader = Reader { trace, next: None, pieces, found };
        reader.advance(0);
        reader.next?;
        Some(Self { unpacker: Unpacker::again(decoded.source.gzip), reader })
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, file_bytes: &[u8]) {
        let Self { unpacker, reader } = self;
        unpacker.push(file_bytes, &mut |plain| reader.push(plain));
    }

    /// The file is over.
    #[must_use]
    pub fn finish(mut self) -> Counters {
        while let Some(row) = self.reader.next {
            self.reader.found.n_unread += 1;
            self.reader.advance(row + 1);
        }
        self.reader.found
    }
}

impl Reader<'_> {
    /// Finds the next counter with a time from `row` on.
    fn advance(&mut self, row: Row) {
        let trace = self.trace;
        self.next = (row..trace.len() as Row).find(|row| {
            trace.phase(*row) == Phase::Counter && trace.flags(*row).has(Flags::HAS_TS)
        });
    }

    fn push(&mut self, bytes: &[u8]) {
        while let Some(row) = self.next {
            match self.pieces.text(self.trace.span(row), bytes) {
                Cut::Later => break,
                Cut::TooLong => self.found.n_unread += 1,
                Cut::Whole(text) => self.read(row, &text),
            }
            self.advance(row + 1);
        }
        self.pieces.pass(bytes);
    }

    fn read(&mut self, row: Row, text: &[u8]) {
        let args = members(text).filter(|member| text.get(member.key.clone()) == Some(b"\"args\""));
        let Some(args) = args.last().and_then(|member| text.get(member.value)) else {
            self.found.n_unread += 1;
            return;
        };
        for member in members(args) {
            let (Some(key), Some(value)) = (args.get(member.key), args.get(member.value)) else {
                continue;
            };
            let value = Cursor::whole(value).value().ok().and_then(|value| number(&value));
            let key = unescape(key.get(1..key.len().saturating_sub(1)).unwrap_or_default());
            if let Some(value) = value {
                let series = self.found.texts.intern(&key);
                self.found.samples.push((row, series, value));
            }
        }
    }
}

/// A number, also in quotes: Perfetto takes both.
fn number(value: &Value<'_>) -> Option<f64> {
    let text = match value {
        Value::Number(text) => text,
        Value::String(text) => text.raw.trim_ascii(),
        _ => return None,
    };
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;

    const FILE: &str = r#"{"traceEvents":[
        {"ph":"X","name":"k","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":2},
        {"ph":"C","name":"memory","pid":1,"ts":2,"args":{"used":10,"free":"2.5","text":"x","none":null}},
        {"ph":"C","name":"no time","pid":1,"args":{"used":10}},
        {"ph":"C","name":"memory","pid":1,"ts":3,"args":{"used":-1e3,"a\"b":0}},
        {"ph":"C","name":"no value","pid":1,"ts":4}]}"#;

    fn read(piece: usize) -> (Vec<(Row, String, f64)>, u64) {
        let mut decoder = Decoder::new();
        decoder.push(FILE.as_bytes()).unwrap();
        let decoded = decoder.finish().unwrap();
        let mut reader = CountersReader::new(&decoded).unwrap();
        FILE.as_bytes().chunks(piece).for_each(|bytes| reader.push(bytes));
        let found = reader.finish();
        let text = |(row, series, value): &(Row, StringId, f64)| {
            (*row, found.texts.get(*series).to_owned(), *value)
        };
        (found.samples.iter().map(text).collect(), found.n_unread)
    }

    #[test]
    fn every_number_of_a_counter_is_a_sample_whatever_the_pieces() {
        let sample = |row, series: &str, value| (row, series.to_owned(), value);
        let wanted = vec![
            sample(1, "used", 10.0),
            sample(1, "free", 2.5),
            sample(3, "used", -1000.0),
            sample(3, "a\"b", 0.0),
        ];
        for piece in [1, 7, 64, FILE.len()] {
            assert_eq!(read(piece), (wanted.clone(), 1), "pieces of {piece}");
        }
    }

    #[test]
    fn a_trace_without_counters_is_not_read_again() {
        let mut decoder = Decoder::new();
        decoder
            .push(br#"{"traceEvents":[{"ph":"X","name":"k","pid":0,"tid":7,"ts":1,"dur":2}]}"#)
            .unwrap();
        assert!(CountersReader::new(&decoder.finish().unwrap()).is_none());
    }
}
