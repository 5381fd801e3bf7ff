//! The time before the first GPU work, which no share counts.

use trace::{Row, Trace, TrackId};

use crate::attribution::Linker;
use crate::idle::place::{Place, places};
use crate::idle::words::in_words;
use crate::idle::{Cover, Host};
use crate::takeaways::Before;
use timeline::before_window::each_launch;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, both, length};
use timeline::percent;

/// What covers this share of the time explains it, in percent.
const LEAD_PCT: f64 = 80.0;

/// The time from the start of the trace to the first GPU work, if there is any.
pub(crate) fn lead(devices: &[Gpu<'_>], zero_ns: i64) -> Option<Interval> {
    let first = devices.iter().filter(|gpu| !gpu.is_empty()).map(|gpu| gpu.slice(0).start_ns);
    first.min().map(|ns| (zero_ns, ns))
}

/// What the CPU does before the first GPU work of these devices.
pub(crate) fn before_first(
    devices: &[Gpu<'_>],
    linker: &mut Linker<'_>,
    host: &Host,
    lead: Interval,
    span_ns: i64,
) -> Before {
    devices.first().map_or_else(Before::default, |first| {
        let thread = launching(first.trace, devices);
        before_work(first.trace, linker, host, (lead, thread), span_ns)
    })
}

/// The thread that launches the first GPU work, if its launch is recorded: others may wait for work of their own.
#[inline(never)]
fn launching(trace: &Trace, devices: &[Gpu<'_>]) -> Option<TrackId> {
    let own = devices.iter().filter(|gpu| !gpu.is_empty());
    let first = own.min_by_key(|gpu| gpu.slice(0).start_ns)?;
    let link = trace.link(first.row(0))?;
    let mut found = None;
    each_launch(trace, |row, correlation| {
        if correlation == link && found.is_none() {
            found = Some(trace.track(row));
        }
    });
    found
}

/// What the CPU does in the `lead` before the first GPU work, whose span is `span_ns`.
fn before_work(
    trace: &Trace,
    linker: &mut Linker<'_>,
    host: &Host,
    (lead, thread): (Interval, Option<TrackId>),
    span_ns: i64,
) -> Before {
    let loads = host.cover(Cover::DataLoader);
    // (The profiler's own span, from its start on, is no work of the program.)
    let first_ns =
        [host.first_ns(), loads.first().map(|first| first.0)].into_iter().flatten().min();
    let lead = (first_ns.unwrap_or(lead.0).clamp(lead.0, lead.1.max(lead.0)), lead.1);
    let lead_ns = length(&[lead]);
    let found = places(trace, &[(lead, thread)], lead_ns.saturating_add(span_ns));
    let Place { call, range, frame, profiler } = found.first().copied().unwrap_or_default();
    let covers = |row: &Row| {
        let shared = trace.end_ns(*row).min(lead.1).saturating_sub(trace.ts_ns(*row).max(lead.0));
        percent(shared, lead_ns) >= LEAD_PCT
    };
    let place = Place { call: call.filter(covers), range: range.filter(covers), frame, profiler };
    Before {
        ns: lead_ns,
        loader_ns: length(&both(&[lead], loads)),
        place: in_words(trace, linker, lead, &place),
    }
}
