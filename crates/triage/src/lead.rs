//! The time before the first GPU work, which no share counts.

use trace::{Row, Trace};

use crate::attribution::Linker;
use crate::idle::place::{Place, places};
use crate::idle::sentences::in_words;
use crate::idle::{Cover, Host};
use crate::takeaways::Before;
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

/// What the CPU does in the `lead` before the first GPU work, whose span is `span_ns`.
pub(crate) fn before_work(
    trace: &Trace,
    linker: &mut Linker<'_>,
    host: &Host,
    lead: Interval,
    span_ns: i64,
) -> Before {
    let loads = host.cover(Cover::DataLoader);
    // (The profiler's own span, from its start on, is no work of the program.)
    let first_ns =
        [host.first_ns(), loads.first().map(|first| first.0)].into_iter().flatten().min();
    let lead = (first_ns.unwrap_or(lead.0).clamp(lead.0, lead.1.max(lead.0)), lead.1);
    let lead_ns = length(&[lead]);
    let found = places(trace, &[(lead, None)], lead_ns.saturating_add(span_ns));
    let Place { call, range, frame } = found.first().copied().unwrap_or_default();
    let covers = |row: &Row| {
        let shared = trace.end_ns(*row).min(lead.1).saturating_sub(trace.ts_ns(*row).max(lead.0));
        percent(shared, lead_ns) >= LEAD_PCT
    };
    let place = Place { call: call.filter(covers), range: range.filter(covers), frame };
    Before {
        ns: lead_ns,
        loader_ns: length(&both(&[lead], loads)),
        place: in_words(trace, linker, lead, &place),
    }
}
