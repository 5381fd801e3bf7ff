//! Rule 2: one time base for all events.

use trace::{Flags, Phase, Trace};

use crate::perfetto::Prediction;
use crate::plan::{Action, BaseReason, RepairPlan, TimeBase};

const MS: i128 = 1_000_000;

/// Why the importer cannot hold the times of the file, if it cannot. `all` is what it would do with every document
/// of the file: the repaired one has them all.
pub(crate) fn reason(trace: &Trace, all: &Prediction) -> Option<BaseReason> {
    if trace.origin_ns != 0 {
        Some(BaseReason::Overflow)
    } else if all.negative_times > 0 {
        Some(BaseReason::Negative)
    } else {
        (all.misread_times > 0).then_some(BaseReason::Rounding)
    }
}

/// The base to subtract, when the importer cannot hold the file's times.
///
/// The base is a whole number of milliseconds, at most the smallest time of any event but metadata, so
/// nothing becomes negative. Subtracting it changes no distance between events; at 1.7e15 us it alone
/// repairs every crossing that only the importer's doubles made.
///
/// Events that `plan` sets aside do not count: they are not in the file that is shifted.
#[inline(never)]
pub(crate) fn choose(trace: &Trace, reason: BaseReason, plan: &RepairPlan) -> Option<TimeBase> {
    let earliest = trace
        .rows()
        .filter(|row| trace.phase(*row) != Phase::Metadata && trace.flags(*row).has(Flags::HAS_TS))
        .filter(|row| plan.edit(*row).is_none_or(|edit| edit.action != Action::SetAside))
        .map(|row| trace.ts_ns(row))
        .min()?;
    let ns = (trace.origin_ns + i128::from(earliest)).div_euclid(MS) * MS;
    (ns != 0).then_some(TimeBase { ns, reason })
}

/// How many events a base shifts.
#[inline(never)]
pub(crate) fn n_shifted(trace: &Trace) -> u64 {
    trace.rows().filter(|row| trace.flags(*row).has(Flags::HAS_TS)).count() as u64
}

/// Chooses the base of a plan that has one again, now that more is known of what is set aside.
pub(crate) fn choose_again(trace: &Trace, plan: &mut RepairPlan) {
    if let Some(first) = plan.base {
        let again = choose(trace, first.reason, plan);
        plan.base = again.or(Some(TimeBase { ns: 0, ..first }));
    }
}
