//! The time before the first GPU work, which no share counts.

use trace::{Row, Trace};

use crate::attribution::Linker;
use crate::idle::place::{Place, places};
use crate::idle::sentences::in_words;
use crate::takeaways::Before;
use timeline::intervals::{Interval, both, length};
use timeline::percent;

/// What covers this share of the time explains it, in percent.
const LEAD_PCT: f64 = 80.0;

/// What the CPU does in the `lead` before the first GPU work, whose span is `span_ns`. `loads` are the calls of data loaders.
pub(crate) fn before_work(
    trace: &Trace,
    linker: &mut Linker<'_>,
    lead: Interval,
    loads: &[Interval],
    span_ns: i64,
) -> Before {
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
