//! Events that kill or flag the import as they are.

use trace::{Flags, IdToken, Phase, Row, Trace, each_row};

use crate::types::{Action, RepairPlan, Rule};
use crate::view::View;

/// Plans what happens to events that Perfetto cannot read.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan) {
    // HAS_TS and HAS_DUR, KERNEL and the like are no defects; nearly every event, and file, ends here.
    let defects = Flags::DUR_UNREADABLE.0
        | Flags::TS_UNREADABLE.0
        | Flags::ODD_NUMBER.0
        | Flags::TS_REJECTED.0
        | Flags::DUR_REJECTED.0
        | Flags::BIND_UNDIRECTED.0
        | Flags::ID_UNREADABLE.0
        | Flags::ARGS_UNREADABLE.0
        | Flags::SCOPE_UNREADABLE.0
        | Flags::PHASE_UNREADABLE.0
        | Flags::THREAD_TIMES_UNREADABLE.0;
    let all_seen = trace.layout.documents <= 1 && trace.origin_ns == 0;
    if all_seen && plan.before.reads_all_events() && trace.seen_flags().0 & defects == 0 {
        return;
    }
    each_row(trace, |row| {
        let flags = trace.flags(row);
        let phase = trace.phase(row);
        let needs_place = phase == Phase::Instant;
        let needs_dur =
            phase == Phase::Complete && (!flags.has(Flags::HAS_DUR) || trace.dur_ns(row) < 0);
        let needs_link = phase.is_flow() && trace.link(row).is_none();
        let early = phase == Phase::Metadata && is_early(trace, row);
        let lacks_ts = !flags.has(Flags::HAS_TS) && phase != Phase::Metadata;
        if flags.0 & defects != 0 || needs_dur || needs_link || needs_place || lacks_ts || early {
            event(trace, row, plan);
        }
    });
}

#[inline(never)]
fn event(trace: &Trace, row: Row, plan: &mut RepairPlan) {
    let (phase, flags) = (trace.phase(row), trace.flags(row));
    let without_time = phase != Phase::Metadata && !flags.has(Flags::HAS_TS);
    let is_async = matches!(phase, Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd);
    let without_id = match phase {
        _ if phase.is_flow() => flags.has(Flags::ID_UNREADABLE) || trace.link(row).is_none(),
        _ => (is_async || phase == Phase::Other) && flags.has(Flags::ID_UNREADABLE),
    };
    // A thread state without a length is an error; other phases of no slice are ignored.
    let without_length = phase == Phase::Other && flags.has(Flags::ARGS_UNREADABLE);
    if without_time || without_id || without_length || flags.has(Flags::PHASE_UNREADABLE) {
        plan.change(row, Rule::SetAside, None, |edit| edit.action = Action::SetAside);
        return;
    }
    let dur_stops = flags.has(Flags::DUR_UNREADABLE);
    if phase == Phase::Complete && (!flags.has(Flags::HAS_DUR) || trace.dur_ns(row) < 0) {
        plan.change(row, Rule::SliceToInstant, None, |edit| {
            edit.action = Action::Instant;
            // A thread instant without a tid is rejected, and one with the tid 0 would fold into a thread.
            edit.scope = without_thread(trace, row);
        });
    } else if dur_stops || flags.has(Flags::THREAD_TIMES_UNREADABLE) {
        // (An instant has these moved to its arguments anyway.)
        plan.change(row, Rule::ThreadTimes, None, |edit| edit.thread_times = true);
    }
    if phase == Phase::Metadata && plan.base.is_none() && is_early(trace, row) {
        // Metadata has no place in time, but before 0 the importer drops it and says so.
        plan.change(row, Rule::NumberSpelling, None, |edit| edit.ts_ns = Some(0));
    }
    let reads_early = || trace.importer_ns(row).is_some_and(|odd| odd.ts_ns < 0);
    if phase == Phase::Metadata && flags.has(Flags::TS_BEYOND) && reads_early() {
        // Out of our range, but not of the importer's.
        plan.change(row, Rule::NumberSpelling, None, |edit| edit.ts_ns = Some(0));
    }
    if flags.has(Flags::ARGS_UNREADABLE) {
        plan.change(row, Rule::Arguments, None, |edit| edit.arguments = true);
    }
    if flags.has(Flags::BIND_UNDIRECTED) {
        // A slice with a bind_id but no direction: an error flag and no arrow. The id goes.
        plan.change(row, Rule::Arguments, None, |edit| edit.arguments = true);
    }
    let view = View::of(trace);
    if phase == Phase::Instant
        && (view.instant_is_homeless(row) || flags.has(Flags::SCOPE_UNREADABLE))
    {
        // One that is said of a process, and names none, is said of all.
        let scope = match flags.has(Flags::SCOPE_WIDE) {
            true => "g",
            false => without_thread(trace, row).unwrap_or("t"),
        };
        plan.change(row, Rule::InstantScope, None, |edit| edit.scope = Some(scope));
    }
    let is_rejected = (flags.has(Flags::TS_REJECTED) && phase != Phase::Metadata)
        || flags.has(Flags::DUR_REJECTED);
    if is_rejected {
        plan.change(row, Rule::NumberSpelling, None, |edit| edit.numbers = true);
    }
    // With a time base `ts` is written anew anyway, but `dur` is not.
    if let Some(odd) = trace.importer_ns(row) {
        let ts = trace.origin_ns + i128::from(trace.ts_ns(row));
        let far = |importer: i64, exact: i128| (i128::from(importer) - exact).abs() > 1;
        let bad_ts = flags.has(Flags::HAS_TS) && far(odd.ts_ns, ts);
        let bad_dur = flags.has(Flags::HAS_DUR) && far(odd.dur_ns, i128::from(trace.dur_ns(row)));
        if !is_rejected && (bad_dur || (bad_ts && plan.base.is_none())) {
            plan.change(row, Rule::NumberSpelling, None, |edit| edit.numbers = true);
        }
    }
}

/// Whether an event lies before time 0 of the file (the columns count from the trace's origin).
fn is_early(trace: &Trace, row: Row) -> bool {
    trace.origin_ns + i128::from(trace.ts_ns(row)) < 0
}

/// The scope of an instant that names no thread; `None` when it does.
fn without_thread(trace: &Trace, row: Row) -> Option<&'static str> {
    let track = trace.track(row);
    match (trace.process_of(track).pid, trace.track_info(track).tid) {
        (_, tid) if tid != IdToken::Missing => None,
        (IdToken::Missing, _) => Some("g"),
        _ => Some("p"),
    }
}
