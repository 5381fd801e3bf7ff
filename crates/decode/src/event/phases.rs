//! What each phase needs beside a time: ids, scopes, arguments.

use scan::{Cursor, Decimal, Value, string::unescape};
use trace::{Bind, Flags, IdToken, Phase};

use super::{
    Notes,
    draft::{Draft, Field},
    number,
};
use crate::problem::ProblemKind;

#[inline(never)]
pub(super) fn flow(draft: &Draft<'_>, notes: &mut Notes<'_>) -> Option<i64> {
    if let Some(Value::String(bp)) = draft.get(Field::Bp)
        && bp.raw == b"e"
    {
        notes.flags.set(Flags::BIND_ENCLOSING);
    }
    match draft.decimal(Field::Id).and_then(Decimal::integer) {
        Some(id) => Some(id),
        None => odd_flow_id(draft, notes),
    }
}

/// The id of a flow that is no plain integer.
#[inline(never)]
fn odd_flow_id(draft: &Draft<'_>, notes: &mut Notes<'_>) -> Option<i64> {
    let Some(value) = draft.some(Field::Id) else {
        // Flows of the second version name themselves by bind_id.
        if draft.some(Field::BindId).is_none() {
            notes.flag(Flags::ID_UNREADABLE, ProblemKind::UnreadableFlowId);
        }
        return None;
    };
    let id = number::flow_id(value);
    if id.is_none() {
        notes.flag(Flags::ID_UNREADABLE, ProblemKind::UnreadableFlowId);
    }
    id
}

#[cold]
#[inline(never)]
pub(super) fn async_id(draft: &Draft<'_>, pid: IdToken, notes: &mut Notes<'_>) {
    // An integer, or any text (measured on v55.3).
    let is_id = |value: Value<'_>| match value {
        Value::String(_) => true,
        Value::Number(number) => number::integer(number).is_some(),
        _ => false,
    };
    // A later `id2` replaces only the members that it has.
    let second = |key| second_ids(notes.text).filter_map(|text| last_member(text, key)).last();
    let has_id = match draft.get(Field::Id) {
        Some(id) if is_id(id) => true,
        _ if draft.get(Field::Id2).is_none() => false,
        _ => ["local", "global"].into_iter().any(|key| second(key).is_some_and(is_id)),
    };
    if pid == IdToken::Missing || !has_id {
        notes.flag(Flags::ID_UNREADABLE, ProblemKind::MissingAsyncId);
    }
}

#[cold]
#[inline(never)]
pub(super) fn instant(draft: &Draft<'_>, notes: &mut Notes<'_>) {
    // What is no known scope, or no text, is that of the thread (measured on v55.3).
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

/// How many arguments of a counter the importer rejects.
#[cold]
#[inline(never)]
pub(super) fn counter(draft: &Draft<'_>, notes: &mut Notes<'_>) -> u32 {
    let rejected = draft.args_text().map_or(1, |text| {
        let values =
            scan::object::members(text).map(|member| Cursor::whole(&text[member.value]).value());
        values.filter(|value| !value.is_ok_and(number::is_count)).count()
    });
    if rejected > 0 {
        notes.flag(Flags::ARGS_UNREADABLE, ProblemKind::CounterArgument);
    }
    u32::try_from(rejected).unwrap_or(u32::MAX)
}

/// Phases that make no slice. Most of them Perfetto ignores.
#[cold]
#[inline(never)]
pub(super) fn other(draft: &Draft<'_>, letter: Option<u8>, notes: &mut Notes<'_>) {
    match letter {
        Some(b'T') => {
            notes.flags.set(Flags::THREAD_STATE);
            if draft.get(Field::Dur).is_none() {
                notes.flag(Flags::ARGS_UNREADABLE, ProblemKind::MissingDur);
            }
        }
        Some(b'P') => {
            notes.flags.set(Flags::V8_SAMPLE);
            if let Some(id @ Value::String(_)) = draft.get(Field::Id)
                && number::flow_id(id).is_none()
            {
                notes.flag(Flags::ID_UNREADABLE, ProblemKind::UnreadableSample);
            }
        }
        Some(_) => notes.add(ProblemKind::IgnoredPhase),
        None => {}
    }
}

/// Keys that few events have. Returns the flow that a slice itself is an end point of.
#[inline(never)]
pub(super) fn check_others(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) -> Option<Bind> {
    let times = [draft.get(Field::Tts), draft.get(Field::Tdur)];
    if times.iter().flatten().any(|value| !number::is_time(*value)) {
        notes.flag(Flags::THREAD_TIMES_UNREADABLE, ProblemKind::UnreadableThreadTime);
    }
    if draft.duplicate {
        notes.add(ProblemKind::DuplicateKey);
    }
    if let Some(field) = draft.stops {
        let kind = match field {
            Field::Dur => ProblemKind::UnreadableDur,
            _ => ProblemKind::UnreadableThreadTime,
        };
        notes.flag(Flags::THREAD_TIMES_UNREADABLE, kind);
    }
    match draft.some(Field::BindId) {
        Some(value) => bind(draft, value, phase, notes),
        None => None,
    }
}

#[cold]
#[inline(never)]
fn bind(draft: &Draft<'_>, value: Value<'_>, phase: Phase, notes: &mut Notes<'_>) -> Option<Bind> {
    let binds =
        matches!(phase, Phase::Complete | Phase::Begin | Phase::AsyncBegin | Phase::AsyncInstant);
    // An id that cannot be read is ignored without a word.
    let id = number::flow_id(value).filter(|_| binds)?;
    let is_true = |field| draft.get(field) == Some(Value::True);
    let bind = Bind { id, flow_in: is_true(Field::FlowIn), flow_out: is_true(Field::FlowOut) };
    if !bind.flow_in && !bind.flow_out {
        notes.flag(Flags::BIND_UNDIRECTED, ProblemKind::FlowWithoutDirection);
    }
    Some(bind)
}

/// The objects that are an `id2` of the event. The importer reads every one (measured on v55.3).
pub(super) fn second_ids(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    values(event, "id2").filter_map(|value| match value {
        Value::Object(text) => Some(text),
        _ => None,
    })
}

/// The values of the members called `key`, in order.
pub(super) fn values<'a>(object: &'a [u8], key: &str) -> impl Iterator<Item = Value<'a>> {
    scan::object::members(object)
        .filter(move |member| unescape(&object[member.key.start + 1..member.key.end - 1]) == key)
        .filter_map(|member| Cursor::whole(&object[member.value]).value().ok())
}

/// The value of the last member called `key`.
fn last_member<'a>(object: &'a [u8], key: &str) -> Option<Value<'a>> {
    values(object, key).last()
}
