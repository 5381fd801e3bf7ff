//! One event: from its text to its row.

mod category;
mod draft;
pub(crate) mod importer;
pub(crate) mod number;
mod phases;
mod recent;
mod times;

use scan::{
    Cursor, Decimal, Spelling, Stop, Text, Value,
    strict::{self, Found},
    string::unescape,
};
use trace::{
    Bind, ByteSpan, Event, Flags, IdToken, ImporterNs, ImporterStop, Phase, Stream, StreamId,
    StringId, StringTable, TraceBuilder, TrackId, decimal,
};

use crate::problem::{ProblemKind, Problems};
use category::Categories;
use draft::{Draft, Field, KnownKeys};
use phases::{async_id, check_others, counter, flow, instant, other};
use recent::Recent;
use times::dur;

/// Fills the columns, one event after the other.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) builder: TraceBuilder,
    pub(crate) problems: Problems,
    /// Whether the origin is decided: at the first event with a time.
    origin_known: bool,
    /// It is decided, and nothing is to be subtracted.
    origin_is_zero: bool,
    /// The events with a time so far, while theirs decide on an origin other than 0 and may be the odd ones out.
    origin_by: Option<Vec<(u32, decimal::Micros)>>,
    categories: Categories,
    keys: KnownKeys,
    tracks: Recent<TrackId>,
    streams: Recent<Option<StreamId>>,
    /// Any event had a `ph`.
    pub(crate) any_phase: bool,
    /// Whether any GPU work has a correlation, as in nearly all files.
    pub(crate) has_correlated_work: bool,
    /// What ids of Python frames are counted from.
    python_origin: Option<i64>,
    /// The first place at which Perfetto's importer gives up, or may.
    pub(crate) importer_stop: Option<ImporterStop>,
    /// What is read now lies behind the first document, where the importer does not look.
    pub(crate) behind: bool,
}

/// What is being said about the event at hand.
struct Notes<'a> {
    flags: Flags,
    found: u64,
    text: &'a [u8],
    offset: u64,
}

impl Notes<'_> {
    /// Kinds are few, so a set of them is a word.
    fn add(&mut self, kind: ProblemKind) {
        self.found |= 1 << kind as u64;
    }

    fn flag(&mut self, flag: Flags, kind: ProblemKind) {
        self.flags.set(flag);
        self.add(kind);
    }
}

const _: () = assert!(ProblemKind::ALL.len() <= 64, "a set of kinds is one word");

// What is never inlined here, or cold, is so for the reason that `scan` gives: V8's optimising compiler.
impl Events {
    pub(crate) fn is_event_key(key: &[u8]) -> bool {
        Field::is_known(key)
    }

    /// Reads the event at the cursor and stores it.
    #[inline(never)]
    pub(crate) fn read(&mut self, offset: u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let mut draft = Draft::default();
        draft.read(cursor, &mut self.keys)?;
        let text = &cursor.bytes()[..cursor.pos()];
        let mut notes = Notes { flags: Flags::default(), found: 0, text, offset };
        if cursor.needs_look() {
            self.look(&draft, &mut notes);
        }
        self.store(&draft, &mut notes);
        Ok(())
    }

    /// Finds out what is not strict JSON in the event's text.
    #[cold]
    #[inline(never)]
    fn look(&mut self, draft: &Draft<'_>, notes: &mut Notes<'_>) {
        let row = self.next_row();
        for Found { quirk, count, first } in strict::quirks(notes.text) {
            notes.flags.set(Flags::TEXT);
            // A little of what stands before it makes the place recognisable.
            let shown = &notes.text[first.start.saturating_sub(20)..];
            let at = notes.offset + first.start as u64;
            self.problems.note(ProblemKind::from(quirk), count, at, row, shown);
        }
        if !notes.flags.has(Flags::TEXT) {
            return;
        }
        let reads_args = || draft.args_text().is_none_or(importer::reads_event);
        let reads_ids = || phases::second_ids(notes.text).all(importer::reads_event);
        let looks_into_args = matches!(letter(draft), Some(b'C' | b'M' | b'T'));
        if !importer::reads_event(notes.text) {
            self.stop(
                notes.offset,
                "an event is not valid JSON to Perfetto, which rejects the whole file",
            );
        } else if (looks_into_args && !reads_args())
            || (draft.get(Field::Id2).is_some() && !reads_ids())
        {
            self.stop(
                notes.offset,
                "arguments that Perfetto parses are not valid JSON: the import may never end",
            );
        }
    }

    /// Notes a place at which the importer gives up, or may.
    pub(crate) fn stop(&mut self, offset: u64, reason: &'static str) {
        let is_first = self.importer_stop.as_ref().is_none_or(|stop| offset < stop.offset);
        if is_first && !self.behind {
            self.importer_stop = Some(ImporterStop { offset, reason });
        }
    }

    fn next_row(&self) -> Option<u32> {
        u32::try_from(self.builder.trace().len()).ok()
    }

    #[inline(never)]
    fn store(&mut self, draft: &Draft<'_>, notes: &mut Notes<'_>) {
        let phase = self.phase(draft, notes);
        let pid = id_token(self.builder.strings(), draft, Field::Pid);
        let tid = id_token(self.builder.strings(), draft, Field::Tid);
        let track = self.tracks.get(pid, tid, |pid, tid| self.builder.track(pid, tid));
        let name = name(self.builder.strings(), draft, phase);
        let (raw_category, class) = self.categories.find(self.builder.strings(), draft, phase);

        let (ts_ns, ts_odd) = self.ts(draft, phase, notes);
        let (dur_ns, dur_odd) = dur(draft, phase, notes);
        let is_odd = ts_odd.is_some() || dur_odd.is_some();
        let importer = is_odd.then(|| self.importer((ts_ns, ts_odd), (dur_ns, dur_odd)));

        let mut rejections = 0;
        let mut link = None;
        let mut external = number::link(draft, Field::ExternalId);
        let mut stream = None;
        match phase {
            Phase::Complete => {
                link = number::link(draft, Field::Correlation);
                if link.is_none() && external.is_none() && class == Flags::default() {
                    (link, external) = self.python_ids(draft, notes);
                }
                if class != Flags::default() {
                    self.has_correlated_work |= link.is_some() && notes.flags.has(Flags::HAS_TS);
                    notes.flags.set(class);
                    stream = self.stream(draft, pid, tid, notes);
                }
            }
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => link = flow(draft, notes),
            Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd => {
                async_id(draft, pid, notes)
            }
            Phase::Instant => instant(draft, notes),
            Phase::Counter => rejections = counter(draft, notes),
            Phase::Metadata => rejections = self.metadata(draft, name, track, notes),
            Phase::Begin | Phase::End => link = number::link(draft, Field::Correlation),
            Phase::Other => other(draft, letter(draft), notes),
        }
        let bind = check_others(draft, phase, notes);

        let event = Event {
            phase,
            flags: notes.flags,
            ts_ns,
            dur_ns,
            name,
            raw_category,
            track,
            link,
            external,
            stream,
            span: ByteSpan { start: notes.offset, len: notes.text.len() as u64 },
        };
        let row = self.next_row();
        if !push(&mut self.builder, &event, importer) {
            notes.add(ProblemKind::EventTooLong);
        } else if let Some(row) = row
            && class == Flags::default()
            && let Some(kernel @ Value::String(_)) = draft.some(Field::Kernel)
        {
            let kernel = other_text_id(self.builder.strings(), Some(kernel));
            self.builder.launches(row, kernel);
        }
        if let Some(row) = row
            && self.builder.trace().len() > row as usize
        {
            self.note_beside(row, bind, rejections);
        }
        if notes.found != 0 {
            self.note(notes, row);
        }
    }

    /// What few events have, and no column holds.
    #[inline]
    fn note_beside(&mut self, row: u32, bind: Option<Bind>, rejections: u32) {
        if let Some(bind) = bind {
            self.builder.binds(row, bind);
        }
        if rejections > 1 {
            self.builder.rejects(row, rejections);
        }
    }

    /// How the importer reads two times of which one is odd. The other's reading follows from its exact value.
    #[inline(never)]
    fn importer(&self, ts: (i64, Option<i64>), dur: (i64, Option<i64>)) -> ImporterNs {
        let exact = i128::from(ts.0) + self.builder.trace().origin_ns;
        let exact = i64::try_from(exact).unwrap_or_default();
        ImporterNs {
            ts_ns: ts.1.unwrap_or_else(|| decimal::importer_ns(exact)),
            dur_ns: dur.1.unwrap_or_else(|| decimal::importer_ns(dur.0)),
        }
    }

    /// The ids of a frame of Python and of its caller, relative to the first in the file: they count on from
    /// one profile to the next, and small numbers are what the columns hold cheaply.
    #[inline]
    fn python_ids(
        &mut self,
        draft: &Draft<'_>,
        notes: &mut Notes<'_>,
    ) -> (Option<i64>, Option<i64>) {
        let Some(id) = number::link(draft, Field::PythonId) else { return (None, None) };
        notes.flags.set(Flags::PYTHON_IDS);
        let origin = *self.python_origin.get_or_insert(id.saturating_sub(1 << 30));
        let relative = |id: i64| id.checked_sub(origin);
        (relative(id), number::link(draft, Field::PythonParent).and_then(relative))
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, notes: &Notes<'_>, row: Option<u32>) {
        for kind in ProblemKind::ALL {
            if notes.found >> (*kind as u64) & 1 == 1 {
                self.problems.note(*kind, 1, notes.offset, row, notes.text);
            }
        }
    }

    #[inline]
    fn phase(&mut self, draft: &Draft<'_>, notes: &mut Notes<'_>) -> Phase {
        self.any_phase |= draft.get(Field::Ph).is_some();
        let Some(letter) = letter(draft) else {
            let kind = match draft.any {
                true => ProblemKind::UnreadablePhase,
                false => ProblemKind::EmptyEvent,
            };
            notes.flag(Flags::PHASE_UNREADABLE, kind);
            return Phase::Other;
        };
        Phase::of(letter)
    }

    #[inline(never)]
    fn stream(
        &mut self,
        draft: &Draft<'_>,
        pid: IdToken,
        tid: IdToken,
        notes: &mut Notes<'_>,
    ) -> Option<StreamId> {
        let strings = self.builder.strings();
        let mut token = |first, second, otherwise| {
            let mut fields = [first, second].into_iter();
            match fields.find(|field| draft.get(*field).is_some()) {
                Some(field) => id_token(strings, draft, field),
                None => otherwise,
            }
        };
        let device = token(Field::Device, Field::DeviceId, pid);
        let stream = token(Field::Stream, Field::StreamTitled, tid);
        let id = self
            .streams
            .get(device, stream, |device, stream| self.builder.stream(Stream { device, stream }));
        if id.is_none() {
            notes.add(ProblemKind::TooManyStreams);
        }
        id
    }

    #[cold]
    #[inline(never)]
    fn metadata(
        &mut self,
        draft: &Draft<'_>,
        name: StringId,
        track: TrackId,
        notes: &mut Notes<'_>,
    ) -> u32 {
        let name = self.builder.strings().get(name);
        let of_thread = name.starts_with("thread");
        let key = match name {
            "thread_name" | "process_name" => "name",
            "process_labels" => "labels",
            "thread_sort_index" | "process_sort_index" => "sort_index",
            _ => return 0,
        };
        // Each member of that key counts for itself, the last one stays.
        let mut rejected = 0;
        for value in phases::values(draft.args_text().unwrap_or_default(), key) {
            let is_read = match (key, value) {
                ("sort_index", Value::Number(text)) => {
                    self.sort_index(of_thread, track, number::truncated(text));
                    true
                }
                ("sort_index", Value::String(text)) => {
                    self.sort_index(of_thread, track, number::truncated(text.raw));
                    false
                }
                (_, Value::String(text)) if !text.raw.is_empty() => {
                    self.name(key, of_thread, track, text);
                    true
                }
                // Perfetto does not read the labels.
                _ => key == "labels",
            };
            rejected += u32::from(!is_read);
        }
        if rejected > 0 {
            notes.flag(Flags::ARGS_UNREADABLE, ProblemKind::MetadataArgument);
        }
        rejected
    }

    fn sort_index(&mut self, of_thread: bool, track: TrackId, index: Option<i64>) {
        let process = self.builder.trace().track_info(track).process;
        if of_thread {
            self.builder.track_mut(track).into_iter().for_each(|it| it.sort_index = index);
        } else {
            self.builder.process_mut(process).into_iter().for_each(|it| it.sort_index = index);
        }
    }

    fn name(&mut self, key: &str, of_thread: bool, track: TrackId, text: Text<'_>) {
        let process = self.builder.trace().track_info(track).process;
        let text = Some(self.builder.strings().intern(&unescape(text.raw)));
        if of_thread {
            self.builder.track_mut(track).into_iter().for_each(|it| it.name = text);
        } else if let Some(process) = self.builder.process_mut(process) {
            if key == "labels" { process.labels = text } else { process.name = text }
        }
    }
}

/// A name or a raw category. Where these decide what belongs together, the importer goes by strings alone.
#[inline]
fn text_field<'a>(draft: &Draft<'a>, phase: Phase, field: Field) -> Option<Value<'a>> {
    let matches = || matches!(phase, Phase::Begin | Phase::End) || phase.is_flow();
    draft.some(field).filter(|value| matches!(value, Value::String(_)) || !matches())
}

#[inline(never)]
fn name(strings: &mut StringTable, draft: &Draft<'_>, phase: Phase) -> StringId {
    text_id(strings, text_field(draft, phase, Field::Name))
}

/// The letter of `ph`; text beyond it does not matter.
#[inline]
fn letter(draft: &Draft<'_>) -> Option<u8> {
    match draft.get(Field::Ph) {
        Some(Value::String(Text { raw, spelling: Spelling::Plain })) => raw.first().copied(),
        Some(Value::String(text)) => unescape(text.raw).bytes().next(),
        _ => None,
    }
}

/// A function of its own: see [`Events`].
#[inline(never)]
fn push(builder: &mut TraceBuilder, event: &Event, importer: Option<ImporterNs>) -> bool {
    builder.push(event, importer)
}

/// A pid, tid, device or stream.
#[inline]
fn id_token(strings: &mut StringTable, draft: &Draft<'_>, field: Field) -> IdToken {
    match draft.decimal(field).and_then(Decimal::integer) {
        Some(integer) => IdToken::Int(integer),
        None => odd_id_token(strings, draft.get(field)),
    }
}

/// An id that is no plain integer.
#[inline(never)]
fn odd_id_token(strings: &mut StringTable, value: Option<Value<'_>>) -> IdToken {
    match value {
        Some(Value::Number(text)) => match number::integer(text) {
            Some(integer) => IdToken::Int(integer),
            None => IdToken::Number(strings.intern(&String::from_utf8_lossy(text))),
        },
        Some(Value::String(text)) => IdToken::Text(intern(strings, text)),
        Some(Value::NonFinite(text)) => {
            IdToken::Number(strings.intern(&String::from_utf8_lossy(text)))
        }
        _ => IdToken::Missing,
    }
}

/// A name: the meaning of a string, or the spelling of anything else.
#[inline]
fn text_id(strings: &mut StringTable, value: Option<Value<'_>>) -> StringId {
    match value {
        Some(Value::String(text)) => intern(strings, text),
        other => other_text_id(strings, other),
    }
}

#[inline(never)]
fn other_text_id(strings: &mut StringTable, value: Option<Value<'_>>) -> StringId {
    match value {
        Some(Value::String(text)) => intern(strings, text),
        None | Some(Value::Null) => StringId::EMPTY,
        Some(Value::True) => strings.intern("true"),
        Some(Value::False) => strings.intern("false"),
        Some(
            Value::Number(text) | Value::NonFinite(text) | Value::Object(text) | Value::Array(text),
        ) => strings.intern(&String::from_utf8_lossy(text)),
    }
}

#[inline(never)]
fn intern(strings: &mut StringTable, text: Text<'_>) -> StringId {
    if !text.is_escaped()
        && let Some(id) = strings.intern_utf8(text.raw)
    {
        return id;
    }
    strings.intern(&unescape(text.raw))
}
