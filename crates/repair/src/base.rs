//! One time base for all events.

use trace::decimal::importer_ns;
use trace::{Flags, Phase, Row, Trace};

use crate::perfetto::Prediction;
use crate::rows::RowSet;
use crate::types::{BaseReason, TimeBase};

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

/// Times less than this apart from the base are read exactly: below 2^42 us a double holds three decimals.
const EXACT_NS: i64 = (1 << 42) * 1000;

/// The base to subtract, when the importer cannot hold the file's times.
///
/// The base is a whole number of milliseconds, at most the smallest time of any event but metadata (of metadata
/// where the file holds nothing else), so nothing becomes negative. Subtracting it changes no distance between events; at 1.7e15 us it alone repairs every crossing
/// that only the importer's doubles made.
///
/// Where the file's times span more than the importer can hold (an event at time 0 in a file of 2024), the base is
/// that of most events. Those before it keep their time: see [`TimeBase::apply`].
///
/// Events that are set aside (`aside`) do not count: they are not in the file that is shifted.
#[inline(never)]
pub(crate) fn choose(trace: &Trace, reason: BaseReason, aside: &RowSet) -> Option<TimeBase> {
    let counts = |row: &Row| {
        let flags = trace.flags(*row);
        flags.has(Flags::HAS_TS) && !flags.has(Flags::V8_SAMPLE) && !aside.contains(*row)
    };
    // (A file may hold nothing but metadata.)
    let is_event = |row: &Row| trace.phase(*row) != Phase::Metadata;
    let any = trace.rows().any(|row| counts(&row) && is_event(&row));
    let has_time = |row: &Row| counts(row) && (!any || is_event(row));
    let times = || trace.rows().filter(has_time).map(|row| trace.ts_ns(row));
    let (earliest, latest) = (times().min()?, times().max()?);
    let base_of = |earliest: i64| (trace.origin_ns + i128::from(earliest)).div_euclid(MS) * MS;
    let is_read = |time: i64| {
        let shifted = i64::try_from(trace.origin_ns + i128::from(time) - base_of(earliest));
        shifted.is_ok_and(|ns| importer_ns(ns) == ns)
    };
    let first = match latest.checked_sub(earliest) {
        Some(span) if span < EXACT_NS - MS as i64 => earliest,
        _ if times().all(is_read) => earliest,
        _ => start_of_most(times().collect()),
    };
    let ns = base_of(first);
    (ns != 0).then_some(TimeBase { ns, reason })
}

/// The first of the times from which on most others lie within what the importer holds.
#[inline(never)]
fn start_of_most(mut times: Vec<i64>) -> i64 {
    trace::sort(&mut times);
    let (mut end, mut best) = (0, (0, 0));
    for start in 0..times.len() {
        let holds = |time: &i64| {
            time.checked_sub(times[start]).is_some_and(|far| far < EXACT_NS - MS as i64)
        };
        while times.get(end).is_some_and(holds) {
            end += 1;
        }
        if end - start > best.0 {
            best = (end - start, start);
        }
    }
    times.get(best.1).copied().unwrap_or_default()
}

/// Events that keep their time: those before the base, and those that the shift would take out of range.
#[inline(never)]
pub(crate) fn outliers(trace: &Trace, base: &TimeBase) -> Vec<Row> {
    let is_kept = |row: &Row| {
        let ts = trace.origin_ns + i128::from(trace.ts_ns(*row));
        trace.phase(*row) != Phase::Metadata
            && trace.flags(*row).has(Flags::HAS_TS)
            && base.apply(ts) != ts - base.ns
    };
    trace.rows().filter(is_kept).collect()
}

/// How many events a base shifts.
#[inline(never)]
pub(crate) fn n_shifted(trace: &Trace) -> u64 {
    trace.rows().filter(|row| trace.flags(*row).has(Flags::HAS_TS)).count() as u64
}

/// How much more than the base would leave an outlier keeps of its time, when it is a slice with a length.
pub(crate) fn kept_back(trace: &Trace, base: &TimeBase, row: Row) -> i128 {
    let is_slice = trace.phase(row) == Phase::Complete
        && trace.flags(row).has(Flags::HAS_DUR)
        && trace.dur_ns(row) >= 0;
    let ts = trace.origin_ns + i128::from(trace.ts_ns(row));
    if is_slice { base.apply(ts) - (ts - base.ns) } else { 0 }
}
