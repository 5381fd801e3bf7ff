//! Indexes over a [`trace::Trace`] that every analysis needs: the GPU slices with their kinds of work, the calls that launched
//! them, what was launched before profiling started, the devices, and sets of times.
//!
//! Constraints of this crate:
//!
//! * an index never fails, logs, reads a clock or iterates a hash map; the same trace and options give the same index;
//! * only GPU slices have index vectors (nine bytes each), because they are few among the events of a trace;
//! * it knows no report of its own: what is said about the figures is the analyses' matter.

#![warn(unreachable_pub)]

pub mod batches;
pub mod before_kineto;
pub mod before_window;
pub mod captures;
pub mod dependent;
pub mod device;
pub mod equal;
pub mod first;
pub mod gpu;
pub mod graph_places;
pub mod inputs;
pub mod intervals;
pub mod launches;
pub mod lost_calls;
pub mod narrow;
pub mod ranks;
pub mod recorded;
pub mod streams;
pub mod torchscript;
pub mod uncached;
pub mod versions;

use serde::{Deserialize, Serialize};
use trace::Trace;

/// Which GPU slices count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Only this device's GPU slices, by the name it has in the table of devices; all devices by default.
    pub device: Option<String>,
    /// Leaves kernels and copies that were launched before the window out of every figure. By default they
    /// count, as in any plain sum over the file, and are marked and counted apart beside it.
    pub without_before_window: bool,
}

/// `part` in percent of `whole`; 0 of nothing.
#[must_use]
pub fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// The median; of an even number of values the mean of the two in the middle, half a nanosecond rounded up. It changes
/// the order of the values.
#[must_use]
pub fn median(values: &mut [i64]) -> Option<i64> {
    let half = values.len().checked_sub(1)? / 2;
    let even = values.len().is_multiple_of(2);
    let (_, low, above) = values.select_nth_unstable(half);
    let low = *low;
    let high = above.iter().copied().min().filter(|_| even).unwrap_or(low);
    // (In 128 bits: the sum of two times may not fit.)
    let sum = i128::from(low) + i128::from(high);
    i64::try_from((sum + 1).div_euclid(2)).ok()
}

/// A point of the trace on the file's own clock, when that fits 64 bits.
#[must_use]
pub fn absolute_ns(trace: &Trace, ts_ns: i64) -> Option<i64> {
    i64::try_from(trace.origin_ns.checked_add(i128::from(ts_ns))?).ok()
}

/// Times that no clock of a running machine tells: ns from here on count from 1970.
const SINCE_1970_NS: i128 = 1_000_000_000_000_000_000;

/// What makes a time of the trace one since 1970, in ns; `first_ns` is one of its times. `None` where the file does not tell: its times
/// count from something else, and it has no `baseTimeNanoseconds`.
#[must_use]
pub fn since_1970(trace: &Trace, first_ns: i64) -> Option<i64> {
    let first = trace.origin_ns + i128::from(first_ns);
    let base = trace.metadata.int("baseTimeNanoseconds").map_or(0, i128::from);
    let since = if first >= SINCE_1970_NS { trace.origin_ns } else { trace.origin_ns + base };
    (i128::from(first_ns) + since >= SINCE_1970_NS).then(|| i64::try_from(since).ok()).flatten()
}
