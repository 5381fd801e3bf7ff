//! Graphs that are captured again and again.

use host::HostSlice;
use host::class::Class;
use host::links::GpuSlice;
use timeline::intervals::{length_within, without};
use triage::WallPart;

use super::Device;

/// Captures after runs of graphs from which on it is none of a start, and so many times as long pauses have to be with one.
const LEAST_AGAIN: usize = 2;
const AGAIN_LONGER: i64 = 5;

/// Pauses in which graphs are captured after graphs ran without a capture: the recording then is no start of the program. The pauses
/// without one tell how much of those with one is due to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturesAgain {
    /// How many such pauses.
    pub(crate) n: usize,
    /// The idle time in them.
    pub(crate) own_ns: i64,
    /// The idle time of a pause without a capture: the median.
    pub(crate) plain_ns: i64,
}

impl Device<'_> {
    /// Those of this device, if it has any.
    #[must_use]
    pub(crate) fn captures_again(&self) -> Option<CapturesAgain> {
        let slices = self.facts.slices;
        let begins = slices.calls.iter();
        let begins = begins.filter(|call| dialect::calls::begins_capture(slices.name(call)));
        let mut begins: Vec<i64> = begins.map(|call| call.start_ns).collect();
        if begins.is_empty() {
            return None;
        }
        trace::sort(&mut begins);
        let gaps = without(&self.gaps_told(), &self.times(WallPart::DataLoading));
        let graphs = self.graphs();
        let pauses = graphs.windows(2).filter_map(|pair| {
            let [(_, from_ns), (_, to_ns)] = pair else { return None };
            let next = begins.get(begins.partition_point(|ns| ns < from_ns));
            Some((next.is_some_and(|ns| ns < to_ns), length_within(&gaps, (*from_ns, *to_ns))))
        });
        let pauses: Vec<(bool, i64)> = pauses.skip_while(|(captures, _)| *captures).collect();
        let of =
            |captures: bool| pauses.iter().filter(move |one| one.0 == captures).map(|one| one.1);
        let (n, own_ns): (usize, i64) = (of(true).count(), of(true).sum());
        let plain_ns = timeline::median(&mut of(false).collect::<Vec<_>>())?;
        let mean_ns = own_ns.checked_div(n as i64)?;
        let is_longer = mean_ns >= plain_ns.saturating_mul(AGAIN_LONGER);
        (n >= LEAST_AGAIN && is_longer).then_some(CapturesAgain { n, own_ns, plain_ns })
    }

    /// When each graph is launched, and when its first work starts.
    #[must_use]
    pub(crate) fn graphs(&self) -> Vec<(HostSlice, i64)> {
        let slices = self.facts.slices;
        let of_graph = |one: &GpuSlice| {
            let launch = one.launch.filter(|call| slices.class(call) == Class::GraphLaunch)?;
            Some((launch, one.slice.start_ns))
        };
        let mut graphs: Vec<(HostSlice, i64)> = self.slices().filter_map(of_graph).collect();
        trace::sort_by_key(&mut graphs, |(launch, start_ns)| (launch.start_ns, *start_ns));
        graphs.dedup_by_key(|(launch, _)| launch.row);
        graphs
    }
}
