//! What each phase needs beside a time: ids, scopes, arguments.

use scan::{Cursor, Decimal, Value, string::unescape};
use trace::{Flags, IdToken, Phase};

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
    // Any text will do; a number with a point is a parser failure (measured on v55.3).
    let plain = match draft.some(Field::Id) {
        Some(Value::String(_)) => true,
        Some(Value::Number(number)) => {
            !number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
        }
        _ => false,
    };
    let second = matches!(draft.some(Field::Id2), Some(Value::Object(text))
        if last_member(text, "local").is_some() || last_member(text, "global").is_some());
    if pid == IdToken::Missing || !(plain || second) {
        notes.flag(Flags::ID_UNREADABLE, ProblemKind::MissingAsyncId);
    }
}

#[cold]
#[inline(never)]
pub(super) fn instant(draft: &Draft<'_>, notes: &mut Notes<'_>) {
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

#[cold]
#[inline(never)]
pub(super) fn counter(draft: &Draft<'_>, notes: &mut Notes<'_>) {
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
pub(super) fn check_others(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) {
    let times = [draft.get(Field::Tts), draft.get(Field::Tdur)];
    if times.iter().flatten().any(|value| !number::is_numeric(*value)) {
        notes.flag(Flags::THREAD_TIMES_UNREADABLE, ProblemKind::UnreadableThreadTime);
    }
    if draft.some(Field::BindId).is_some()
        && matches!(phase, Phase::Complete | Phase::Begin | Phase::AsyncBegin | Phase::AsyncInstant)
        && ![Field::FlowIn, Field::FlowOut].iter().any(|it| draft.get(*it) == Some(Value::True))
    {
        notes.flag(Flags::ID_UNREADABLE, ProblemKind::FlowWithoutDirection);
    }
    if draft.duplicate {
        notes.add(ProblemKind::DuplicateKey);
    }
}

/// The value of the last member called `key`.
pub(super) fn last_member<'a>(object: &'a [u8], key: &str) -> Option<Value<'a>> {
    let member = scan::object::members(object)
        .filter(|member| unescape(&object[member.key.start + 1..member.key.end - 1]) == key)
        .last()?;
    Cursor::whole(&object[member.value]).value().ok()
}
