//! One event: from its text to its row.

mod draft;
mod number;

use scan::{
    Cursor, Spelling, Stop, Text, Value,
    strict::{self, Found},
    string::unescape,
};
use trace::{
    ByteSpan, Event, Flags, IdToken, ImporterNs, Phase, Stream, StringId, StringTable,
    TraceBuilder, TrackId, decimal,
};

use crate::problem::{ProblemKind, Problems};
use draft::{Arg, Draft, Field};
use number::Time;

/// Times from here on are counted from an origin, so that durations and shifts cannot overflow.
const FAR: i64 = 1 << 62;

/// Fills the columns, one event after the other.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) builder: TraceBuilder,
    pub(crate) problems: Problems,
    /// Whether the origin is decided: at the first event with a time.
    origin_known: bool,
    /// It is decided, and nothing is to be subtracted.
    origin_is_zero: bool,
    categories: Categories,
    /// Any event had a `ph`.
    pub(crate) any_phase: bool,
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

impl Events {
    pub(crate) fn is_event_key(key: &[u8]) -> bool {
        Field::is_known(key)
    }

    /// Reads the event at the cursor and stores it.
    #[inline]
    pub(crate) fn read(&mut self, offset: u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let draft = Draft::read(cursor)?;
        let text = &cursor.bytes()[..cursor.pos()];
        let mut notes = Notes { flags: Flags::default(), found: 0, text, offset };
        if cursor.lenient() || strict::needs_look(text) {
            self.look(&mut notes);
        }
        self.store(&draft, &mut notes);
        Ok(())
    }

    /// Finds out what is not strict JSON in the event's text.
    #[cold]
    fn look(&mut self, notes: &mut Notes<'_>) {
        let row = self.next_row();
        for Found { quirk, count, first } in strict::quirks(notes.text) {
            notes.flags.set(Flags::TEXT);
            // A little of what stands before it makes the place recognisable.
            let shown = &notes.text[first.start.saturating_sub(20)..];
            let at = notes.offset + first.start as u64;
            self.problems.note(ProblemKind::from(quirk), count, at, row, shown);
        }
    }

    fn next_row(&self) -> Option<u32> {
        u32::try_from(self.builder.trace().len()).ok()
    }

    #[inline]
    fn store(&mut self, draft: &Draft<'_>, notes: &mut Notes<'_>) {
        let phase = self.phase(draft, notes);
        let pid = id_token(self.builder.strings(), draft.some(Field::Pid));
        let tid = id_token(self.builder.strings(), draft.some(Field::Tid));
        let track = self.builder.track(pid, tid);
        let name = text_id(self.builder.strings(), draft.some(Field::Name));
        let (raw_category, class) =
            self.categories.find(self.builder.strings(), draft.some(Field::Cat));

        let (ts_ns, ts_odd) = self.ts(draft, phase, notes);
        let (dur_ns, dur_odd) = dur(draft, phase, notes);
        let importer = (ts_odd.is_some() || dur_odd.is_some()).then(|| {
            // The one that is not odd follows from its exact value.
            let origin = self.builder.trace().origin_ns;
            let exact = i64::try_from(i128::from(ts_ns) + origin).unwrap_or_default();
            ImporterNs {
                ts_ns: ts_odd.unwrap_or_else(|| decimal::importer_ns(exact)),
                dur_ns: dur_odd.unwrap_or_else(|| decimal::importer_ns(dur_ns)),
            }
        });

        let mut link = None;
        let mut stream = None;
        match phase {
            Phase::Complete => {
                link = number::link(draft.arg(Arg::Correlation));
                if class != Flags::default() {
                    notes.flags.set(class);
                    stream = self.stream(draft, pid, tid, notes);
                }
            }
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => link = flow(draft, notes),
            Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd => {
                async_id(draft, pid, notes)
            }
            Phase::Instant => instant(draft, notes),
            Phase::Counter => counter(draft, notes),
            Phase::Metadata => self.metadata(draft, name, track, notes),
            Phase::Begin | Phase::End | Phase::Other => {
                link = number::link(draft.arg(Arg::Correlation));
            }
        }
        check_others(draft, phase, notes);

        let event = Event {
            phase,
            flags: notes.flags,
            ts_ns,
            dur_ns,
            name,
            raw_category,
            track,
            link,
            external: number::link(draft.arg(Arg::ExternalId)),
            stream,
            span: ByteSpan { start: notes.offset, len: notes.text.len() as u64 },
        };
        let row = self.next_row();
        if !self.builder.push(&event, importer) {
            notes.add(ProblemKind::EventTooLong);
        }
        if notes.found != 0 {
            self.note(notes, row);
        }
    }

    #[cold]
    fn note(&mut self, notes: &Notes<'_>, row: Option<u32>) {
        for kind in ProblemKind::ALL {
            if notes.found >> (*kind as u64) & 1 == 1 {
                self.problems.note(*kind, 1, notes.offset, row, notes.text);
            }
        }
    }

    #[inline]
    fn phase(&mut self, draft: &Draft<'_>, notes: &mut Notes<'_>) -> Phase {
        let letter = match draft.get(Field::Ph) {
            Some(Value::String(Text { raw, spelling: Spelling::Plain })) => raw.first().copied(),
            Some(Value::String(text)) => unescape(text.raw).bytes().next(),
            _ => None,
        };
        self.any_phase |= draft.get(Field::Ph).is_some();
        let Some(letter) = letter else {
            let kind = match draft.any {
                true => ProblemKind::UnreadablePhase,
                false => ProblemKind::EmptyEvent,
            };
            notes.flag(Flags::PHASE_UNREADABLE, kind);
            return Phase::Other;
        };
        Phase::of(letter)
    }

    /// Start relative to the origin, and the importer's reading when it is an odd one.
    #[inline]
    fn ts(&mut self, draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
        let (micros, text) = match number::time(draft.get(Field::Ts)) {
            Time::Plain(ns @ 0..FAR) if self.origin_is_zero => {
                notes.flags.set(Flags::HAS_TS);
                return (ns, None);
            }
            Time::Plain(ns) => (
                decimal::Micros { ns: i128::from(ns), sub_ns: false, odd_importer_ns: None },
                false,
            ),
            Time::Known { micros, text } => (micros, text),
            Time::Missing => {
                if phase != Phase::Metadata && !notes.flags.has(Flags::PHASE_UNREADABLE) {
                    notes.add(ProblemKind::MissingTs);
                }
                return (0, None);
            }
            Time::Unreadable => {
                notes.flag(Flags::TS_UNREADABLE, ProblemKind::UnreadableTs);
                return (0, None);
            }
        };
        if text {
            notes.add(ProblemKind::StringTime);
        }
        if micros.sub_ns {
            notes.flag(Flags::SUB_NS, ProblemKind::SubNs);
        }
        if phase != Phase::Metadata {
            if micros.ns < 0 {
                notes.add(ProblemKind::NegativeTs);
            }
            if !self.origin_known {
                self.origin_known = true;
                if micros.ns.unsigned_abs() > FAR as u128 {
                    self.builder.trace_mut().origin_ns =
                        micros.ns.div_euclid(1_000_000) * 1_000_000;
                }
                self.origin_is_zero = self.builder.trace().origin_ns == 0;
            }
        }
        match i64::try_from(micros.ns - self.builder.trace().origin_ns) {
            Ok(ns) => {
                notes.flags.set(Flags::HAS_TS);
                (ns, micros.odd_importer_ns)
            }
            Err(_) => {
                notes.flag(Flags::TS_UNREADABLE, ProblemKind::TimeOutOfRange);
                (0, micros.odd_importer_ns)
            }
        }
    }

    fn stream(
        &mut self,
        draft: &Draft<'_>,
        pid: IdToken,
        tid: IdToken,
        notes: &mut Notes<'_>,
    ) -> Option<trace::StreamId> {
        let strings = self.builder.strings();
        let mut token = |first, second, otherwise| match draft.arg(first).or(draft.arg(second)) {
            Some(value) => id_token(strings, Some(value)),
            None => otherwise,
        };
        let device = token(Arg::Device, Arg::DeviceId, pid);
        let stream = token(Arg::Stream, Arg::StreamTitled, tid);
        let id = self.builder.stream(Stream { device, stream });
        if id.is_none() {
            notes.add(ProblemKind::TooManyStreams);
        }
        id
    }

    fn metadata(
        &mut self,
        draft: &Draft<'_>,
        name: StringId,
        track: TrackId,
        notes: &mut Notes<'_>,
    ) {
        let name = self.builder.strings().get(name);
        let key = match name {
            "thread_name" | "process_name" => "name",
            "process_labels" => "labels",
            "thread_sort_index" | "process_sort_index" => "sort_index",
            _ => return,
        };
        let what = (name.starts_with("thread"), key);
        let value = last_member(draft.args_text().unwrap_or_default(), key);
        let process = self.builder.trace().track_info(track).process;
        if key == "sort_index" {
            let index = number::link(value);
            if index.is_none() {
                notes.flag(Flags::ARGS_UNREADABLE, ProblemKind::MetadataArgument);
                return;
            }
            if what.0 {
                self.builder.track_mut(track).into_iter().for_each(|it| it.sort_index = index);
            } else {
                self.builder.process_mut(process).into_iter().for_each(|it| it.sort_index = index);
            }
            return;
        }
        let Some(Value::String(text)) = value else {
            // Perfetto does not read the labels, so it does not mind either.
            if key == "name" {
                notes.flag(Flags::ARGS_UNREADABLE, ProblemKind::MetadataArgument);
            }
            return;
        };
        let text = Some(self.builder.strings().intern(&unescape(text.raw)));
        if what.0 {
            self.builder.track_mut(track).into_iter().for_each(|it| it.name = text);
        } else if let Some(process) = self.builder.process_mut(process) {
            if key == "labels" { process.labels = text } else { process.name = text }
        }
    }
}

/// Duration, and the importer's reading when it is an odd one.
#[inline]
fn dur(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
    let (micros, text) = match number::time(draft.get(Field::Dur)) {
        Time::Plain(ns) => {
            notes.flags.set(Flags::HAS_DUR);
            if ns < 0 && phase == Phase::Complete {
                notes.add(ProblemKind::NegativeDur);
            }
            return (ns, None);
        }
        Time::Known { micros, text } => (micros, text),
        Time::Missing => {
            if phase == Phase::Complete {
                notes.add(ProblemKind::MissingDur);
            }
            return (0, None);
        }
        Time::Unreadable => {
            notes.flag(Flags::DUR_UNREADABLE, ProblemKind::UnreadableDur);
            return (0, None);
        }
    };
    if text {
        notes.add(ProblemKind::StringTime);
    }
    if micros.sub_ns {
        notes.flag(Flags::SUB_NS, ProblemKind::SubNs);
    }
    if micros.ns < 0 && phase == Phase::Complete {
        notes.add(ProblemKind::NegativeDur);
    }
    match i64::try_from(micros.ns) {
        Ok(ns) => {
            notes.flags.set(Flags::HAS_DUR);
            (ns, micros.odd_importer_ns)
        }
        Err(_) => {
            notes.flag(Flags::DUR_UNREADABLE, ProblemKind::TimeOutOfRange);
            (0, micros.odd_importer_ns)
        }
    }
}

fn flow(draft: &Draft<'_>, notes: &mut Notes<'_>) -> Option<i64> {
    if let Some(Value::String(bp)) = draft.get(Field::Bp)
        && bp.raw == b"e"
    {
        notes.flags.set(Flags::BIND_ENCLOSING);
    }
    match draft.some(Field::Id) {
        // Flows of the second version name themselves by bind_id.
        None if draft.some(Field::BindId).is_some() => None,
        None => {
            notes.flag(Flags::ID_UNREADABLE, ProblemKind::UnreadableFlowId);
            None
        }
        Some(value) => {
            let id = number::flow_id(value);
            if id.is_none() {
                notes.flag(Flags::ID_UNREADABLE, ProblemKind::UnreadableFlowId);
            }
            id
        }
    }
}

fn async_id(draft: &Draft<'_>, pid: IdToken, notes: &mut Notes<'_>) {
    let plain = matches!(draft.some(Field::Id), Some(Value::String(_) | Value::Number(_)));
    let second = matches!(draft.some(Field::Id2), Some(Value::Object(text))
        if last_member(text, "local").is_some() || last_member(text, "global").is_some());
    if pid == IdToken::Missing || !(plain || second) {
        notes.flag(Flags::ID_UNREADABLE, ProblemKind::MissingAsyncId);
    }
}

fn instant(draft: &Draft<'_>, notes: &mut Notes<'_>) {
    match draft.get(Field::Scope) {
        None => {}
        Some(Value::String(scope)) => match &*unescape(scope.raw) {
            "t" => {}
            "p" => notes.flags.set(Flags::SCOPE_WIDE),
            "g" => {
                notes.flags.set(Flags::SCOPE_WIDE);
                notes.flags.set(Flags::SCOPE_GLOBAL);
            }
            _ => notes.flag(Flags::SCOPE_UNREADABLE, ProblemKind::InstantScope),
        },
        Some(_) => notes.flag(Flags::SCOPE_UNREADABLE, ProblemKind::InstantScope),
    }
}

fn counter(draft: &Draft<'_>, notes: &mut Notes<'_>) {
    let sound = draft.args_text().is_some_and(|text| {
        scan::object::members(text)
            .all(|member| Cursor::whole(&text[member.value]).value().is_ok_and(number::is_numeric))
    });
    if !sound {
        notes.flag(Flags::ARGS_UNREADABLE, ProblemKind::CounterArgument);
    }
}

/// Keys that few events have.
#[inline]
fn check_others(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) {
    let times = [draft.get(Field::Tts), draft.get(Field::Tdur)];
    if times.iter().flatten().any(|value| !number::is_numeric(*value)) {
        notes.flag(Flags::THREAD_TIMES_UNREADABLE, ProblemKind::UnreadableThreadTime);
    }
    if draft.some(Field::BindId).is_some()
        && matches!(phase, Phase::Complete | Phase::Begin | Phase::AsyncBegin | Phase::AsyncInstant)
        && ![Field::FlowIn, Field::FlowOut]
            .iter()
            .any(|it| draft.get(*it) == Some(Value::Bool(true)))
    {
        notes.flag(Flags::ID_UNREADABLE, ProblemKind::FlowWithoutDirection);
    }
    if draft.duplicate {
        notes.add(ProblemKind::DuplicateKey);
    }
}

/// The value of the last member called `key`.
fn last_member<'a>(object: &'a [u8], key: &str) -> Option<Value<'a>> {
    let member = scan::object::members(object)
        .filter(|member| unescape(&object[member.key.start + 1..member.key.end - 1]) == key)
        .last()?;
    Cursor::whole(&object[member.value]).value().ok()
}

/// A pid, tid, device or stream.
#[inline]
fn id_token(strings: &mut StringTable, value: Option<Value<'_>>) -> IdToken {
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
        None | Some(Value::Null) => StringId::EMPTY,
        Some(Value::Bool(truth)) => strings.intern(if truth { "true" } else { "false" }),
        Some(
            Value::Number(text) | Value::NonFinite(text) | Value::Object(text) | Value::Array(text),
        ) => strings.intern(&String::from_utf8_lossy(text)),
    }
}

#[inline]
fn intern(strings: &mut StringTable, text: Text<'_>) -> StringId {
    if !text.is_escaped()
        && let Some(id) = strings.intern_utf8(text.raw)
    {
        return id;
    }
    strings.intern(&unescape(text.raw))
}

/// The raw categories of late, by length: a trace has some twenty, and each event one of them.
#[derive(Debug, Default)]
struct Categories([Option<Category>; 16]);

#[derive(Clone, Copy, Debug)]
struct Category {
    text: [u8; 24],
    len: usize,
    id: StringId,
    class: Flags,
}

impl Categories {
    /// The id of a category, and whether it is one of the GPU's.
    #[inline]
    fn find(&mut self, strings: &mut StringTable, value: Option<Value<'_>>) -> (StringId, Flags) {
        let Some(Value::String(text @ Text { raw, spelling: Spelling::Plain })) = value else {
            let id = text_id(strings, value);
            return (id, class(strings.get(id)));
        };
        let last = raw.last().copied().unwrap_or_default();
        let slot = (raw.len() ^ usize::from(last)) & 15;
        if let Some(known) = &self.0[slot]
            && known.text[..known.len] == *raw
        {
            return (known.id, known.class);
        }
        let id = intern(strings, text);
        let class = class(strings.get(id));
        let mut text = [0; 24];
        if let Some(place) = text.get_mut(..raw.len()) {
            place.copy_from_slice(raw);
            self.0[slot] = Some(Category { text, len: raw.len(), id, class });
        }
        (id, class)
    }
}

/// Whether events of this raw category run on the GPU.
fn class(category: &str) -> Flags {
    let is = |name: &str| category.eq_ignore_ascii_case(name);
    if is("kernel") {
        Flags::KERNEL
    } else if ["gpu_memcpy", "gpu_memset", "memcpy", "memset"].into_iter().any(is) {
        Flags::GPU_MEMORY
    } else {
        Flags::default()
    }
}
