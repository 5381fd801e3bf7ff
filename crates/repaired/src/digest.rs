//! Counts the content of a file independently of the trace model, to verify that a repair loses nothing.
//!
//! A digest is taken of the bytes that go into a repair and of the bytes that come out of it, with its own
//! pass over the JSON. It shares the scanner with the decoder, but neither the columns nor the plan, so a
//! fault in these shows as a difference.

use std::hash::Hasher;

use scan::{Cursor, Defect, Frame, Member, Scanner, Sink, Stop, Value, strict, string};
use trace::{IdHasher, Phase, decimal::parse_micros};

/// Counts and sums of one JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    /// Complete slices with a readable time and a duration of at least 0.
    pub slices: u64,
    /// Their summed duration in ns.
    pub dur_ns: i128,
    /// Their summed start in ns: with a time base subtracted, it falls by exactly so much for each.
    pub ts_ns: i128,
    /// Sum over these slices of a hash of (name, category, duration, arguments): equal exactly when the
    /// slices are the same, in whatever order (up to a chance of about 2^-64).
    pub fingerprint: u64,
    /// `B` and `E` events with a time.
    pub begins_ends: u64,
    /// Instants with a time.
    pub instants: u64,
    /// Counter samples with a time.
    pub counters: u64,
    /// Flow events with a time.
    pub flows: u64,
    /// Async events with a time.
    pub asyncs: u64,
    /// Metadata events.
    pub metadata: u64,
    /// Everything else: without a time, without a phase, or of a phase that Perfetto ignores.
    pub others: u64,
}

impl Digest {
    /// All events.
    pub(crate) fn events(&self) -> u64 {
        let Self {
            slices,
            dur_ns: _,
            ts_ns: _,
            fingerprint: _,
            begins_ends,
            instants,
            counters,
            flows,
            asyncs,
            metadata,
            others,
        } = self;
        slices + begins_ends + instants + counters + flows + asyncs + metadata + others
    }
}

/// Takes a digest of JSON bytes in any pieces.
pub(crate) struct Digester {
    scanner: Scanner,
    reader: Reader,
}

#[derive(Default)]
struct Reader {
    digest: Digest,
    origin_ns: i128,
    scratch: Vec<u8>,
}

impl Digester {
    /// A digester of a text whose times are read as distances from `origin_ns`: a time that does not fit
    /// into 64 bits there is no time (see [`trace::Trace::origin_ns`]).
    pub(crate) fn new(origin_ns: i128) -> Self {
        let reader = Reader { origin_ns, ..Reader::default() };
        Self { scanner: Scanner::new("traceEvents"), reader }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.scanner.push(bytes, &mut self.reader);
    }

    pub(crate) fn finish(self) -> Digest {
        let Self { scanner, mut reader } = self;
        scanner.finish(&mut reader);
        reader.digest
    }
}

impl Sink for Reader {
    fn element(&mut self, _offset: u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let start = cursor.pos();
        let fields = Fields::read(cursor)?;
        let text = &cursor.bytes()[start..cursor.pos()];
        if cursor.needs_look() {
            // Judge the text by what repair would make of it.
            self.scratch.clear();
            strict::rewrite(text, &mut self.scratch);
            let fields = Fields::read(&mut Cursor::whole(&self.scratch)).unwrap_or_default();
            self.digest.add(&fields, self.origin_ns);
        } else {
            self.digest.add(&fields, self.origin_ns);
        }
        Ok(())
    }

    fn frame(&mut self, _frame: Frame) {}

    fn member(&mut self, _member: &Member<'_>) {}

    fn defect(&mut self, _defect: &Defect<'_>) {}

    fn is_element_key(&self, key: &[u8]) -> bool {
        decode::is_event_key(key)
    }
}

/// The values that the digest looks at; of duplicates the last, as in Perfetto.
#[derive(Default)]
struct Fields<'a> {
    phase: Option<Phase>,
    ts: Option<&'a [u8]>,
    dur: Option<Value<'a>>,
    name: &'a [u8],
    category: &'a [u8],
    args: &'a [u8],
}

impl<'a> Fields<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Stop> {
        let mut fields = Self::default();
        if cursor.peek()? != b'{' {
            cursor.skip_value()?;
            return Ok(fields);
        }
        cursor.enter();
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            let unescaped;
            let key = if key.raw.contains(&b'\\') {
                unescaped = string::unescape(key.raw);
                unescaped.as_bytes()
            } else {
                key.raw
            };
            let wanted = matches!(key, b"ph" | b"ts" | b"dur" | b"name" | b"cat" | b"args");
            cursor.skip_ws();
            let start = cursor.pos();
            let value = if wanted && key != b"args" {
                Some(cursor.value()?)
            } else {
                cursor.skip_value()?;
                None
            };
            let text = &cursor.bytes()[start..cursor.pos()];
            match (key, value) {
                (b"ph", Some(Value::String(text))) => {
                    fields.phase = text.raw.first().map(|letter| Phase::of(*letter));
                }
                (b"ph", _) => fields.phase = None,
                (b"ts", Some(Value::Number(number))) => fields.ts = Some(number),
                // What is no number does not take the place of one.
                (b"ts", _) if fields.ts.is_some() && !decode::is_time(value) => {}
                (b"ts", Some(Value::String(text))) => fields.ts = Some(text.raw),
                (b"ts", _) => fields.ts = None,
                (b"dur", _) if fields.dur.is_some() && !decode::is_time(value) => {}
                (b"dur", value) => fields.dur = value,
                (b"name", _) => fields.name = text,
                (b"cat", _) => fields.category = text,
                (b"args", _)
                    if fields.args.first() == Some(&b'{') && text.first() != Some(&b'{') => {}
                (b"args", _) => fields.args = text,
                _ => {}
            }
        }
        Ok(fields)
    }
}

impl Digest {
    fn add(&mut self, fields: &Fields<'_>, origin_ns: i128) {
        let ns = |text: Option<&[u8]>| text.and_then(parse_micros).map(|micros| micros.ns);
        let ts = ns(fields.ts).filter(|ts| i64::try_from(*ts - origin_ns).is_ok());
        let dur = match fields.dur {
            Some(Value::String(text)) => Some(text.raw),
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        let dur = ns(dur).filter(|dur| (0..=i128::from(i64::MAX)).contains(dur));
        match fields.phase {
            Some(Phase::Metadata) => self.metadata += 1,
            Some(_) if ts.is_none() => self.others += 1,
            Some(Phase::Complete) => match dur {
                Some(dur) => {
                    self.slices += 1;
                    self.dur_ns += dur;
                    self.ts_ns += ts.unwrap_or_default();
                    self.fingerprint = self.fingerprint.wrapping_add(fields.hash(dur));
                }
                None => self.others += 1,
            },
            Some(Phase::Begin | Phase::End) => self.begins_ends += 1,
            Some(Phase::Instant) => self.instants += 1,
            Some(Phase::Counter) => self.counters += 1,
            Some(phase) if phase.is_flow() => self.flows += 1,
            Some(Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd) => self.asyncs += 1,
            _ => self.others += 1,
        }
    }
}

impl Fields<'_> {
    fn hash(&self, dur_ns: i128) -> u64 {
        let mut hasher = IdHasher::default();
        for text in [self.name, self.category, self.args] {
            let (words, rest) = text.as_chunks::<8>();
            for word in words {
                hasher.write_u64(u64::from_le_bytes(*word));
            }
            hasher.write(rest);
            hasher.write_usize(text.len());
        }
        hasher.write_u64(dur_ns as u64);
        hasher.finish()
    }
}
