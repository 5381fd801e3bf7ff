//! Communication that no other work can overlap, because the thread that would launch it is in one long call.

use host::HostSlice;
use host::class::Class;
use timeline::intervals::{Interval, both, length, length_within, union};

use super::Device;

/// A shorter call holds up no more than a launch does.
const LONG_NS: i64 = 100_000;
/// A call that ends so soon after a collective waited for it.
const SOON_NS: i64 = 100_000;

/// Times in which communication runs alone because the CPU launches nothing else.
pub(crate) struct Held<'f> {
    pub(crate) times: Vec<Interval>,
    /// The call with most of that.
    call: &'f str,
}

impl Held<'_> {
    /// `of_rest`: of what is not told to be waiting.
    pub(crate) fn sentence(&self, of_rest: bool) -> String {
        format!(
            "For {} of {} a launching thread is in {} or the like, not only until the communication ends, and what comes next is not launched: the bound \
             excludes that.",
            report::units::time(length(&self.times)),
            if of_rest { "the rest" } else { "the exposed time" },
            self.call
        )
    }
}

impl Device<'_> {
    /// When, within `exposed`, a launching thread allocates or frees memory or loads code, and what runs next on the device is not launched.
    pub(crate) fn held(&self, exposed: &[Interval]) -> Option<Held<'_>> {
        let slices = self.facts.slices;
        let threads = self.launching_threads();
        // (To free memory, or to allocate it anew, the driver waits for the device: then the call is over as soon as the communication is.)
        let ends = self.slices().filter(|one| one.is_communication).map(|one| one.slice.end_ns);
        let mut ends: Vec<i64> = ends.collect();
        trace::sort(&mut ends);
        let waits_for_communication = |call: &HostSlice| {
            let before = ends.partition_point(|end| *end <= call.end_ns).checked_sub(1);
            let end_ns = before.and_then(|at| ends.get(at)).copied().unwrap_or(i64::MIN);
            end_ns > call.start_ns && call.end_ns.saturating_sub(end_ns) < SOON_NS
        };
        let is_long = |call: &&HostSlice| {
            call.dur_ns() >= LONG_NS
                && matches!(slices.class(call), Class::Malloc | Class::Free | Class::ModuleLoad)
                && !waits_for_communication(call)
                && threads.contains(&slices.thread(call.row))
        };
        let calls = || slices.calls.iter().filter(is_long);
        let held = both(exposed, &union(calls().map(HostSlice::interval).collect()));
        // (Where what runs next is launched already, it waits for the communication, and not for the CPU.)
        let others = self.slices().filter(|one| !one.is_communication);
        let mut next: Vec<(i64, i64)> = others
            .map(|one| (one.slice.start_ns, one.launch.map_or(i64::MIN, |call| call.start_ns)))
            .collect();
        trace::sort(&mut next);
        let not_launched = |(from, to): Interval| {
            let (_, launch_ns) = next.get(next.partition_point(|(start, _)| *start < from))?;
            let until = to.min(*launch_ns);
            (from < until).then_some((from, until))
        };
        let times: Vec<Interval> = held.into_iter().filter_map(not_launched).collect();
        let call = calls().max_by_key(|call| length_within(&times, call.interval()))?;
        let call = slices.name(call);
        (!times.is_empty()).then_some(Held { times, call })
    }
}
