//! Collectives that wait for other ranks: of equal calls, what the slow ones take more than the fast ones.
//!
//! A kernel of a collective runs until every rank has joined. Calls with the same sizes, number format and group move the same
//! bytes, so what one takes above the fastest is mostly waiting for a rank that comes later. It is an estimate: other traffic on
//! the link, and kernels that run at the same time, slow a collective, too.

use std::collections::BTreeMap;

use trace::Details;

use timeline::gpu::Gpu;

/// Fewer equal calls say little about how long such a call takes without waiting.
const LEAST_CALLS: usize = 5;
/// Of the equal calls, the one that counts as not waiting: one in ten is faster, so that of fewer than ten it is the fastest.
const FAST_SHARE: usize = 10;

/// What collectives wait for other ranks: an estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Calls that were compared with equal ones.
    pub(crate) n_calls: u64,
    /// What they take.
    pub(crate) total_ns: i64,
    /// What of it is above the time of the fast ones among equal calls.
    pub(crate) excess_ns: i64,
    /// The collective with most of the excess, as PyTorch names it: `all_to_allv`.
    pub(crate) name: String,
}

/// Compares the collectives of a device whose sizes are recorded. `None` where no five calls are equal, or none takes longer than
/// another.
#[inline(never)]
pub(crate) fn waiting(gpu: &Gpu<'_>, details: &Details) -> Option<Waiting> {
    if details.collectives.is_empty() {
        return None;
    }
    // By collective and kernel: another algorithm takes another time.
    let mut equal: BTreeMap<(u32, usize), Vec<i64>> = BTreeMap::new();
    for at in 0..gpu.len() {
        if let Some(collective) = details.collective(gpu.row(at)) {
            let slice = gpu.slice(at);
            equal.entry((collective, slice.work)).or_default().push(slice.dur_ns);
        }
    }
    let mut all = Waiting { n_calls: 0, total_ns: 0, excess_ns: 0, name: String::new() };
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for ((collective, _), mut times) in equal {
        if times.len() < LEAST_CALLS {
            continue;
        }
        trace::sort(&mut times);
        let fast_ns = times.get(times.len() / FAST_SHARE).copied().unwrap_or_default();
        let total_ns = times.iter().copied().fold(0_i64, i64::saturating_add);
        let excess_ns =
            times.iter().map(|ns| (ns - fast_ns).max(0)).fold(0_i64, i64::saturating_add);
        all.n_calls += times.len() as u64;
        all.total_ns = all.total_ns.saturating_add(total_ns);
        all.excess_ns = all.excess_ns.saturating_add(excess_ns);
        let name =
            details.collectives.get(collective as usize).map(|of| details.texts.get(of.name));
        let sum = by_name.entry(name.unwrap_or_default()).or_default();
        *sum = sum.saturating_add(excess_ns);
    }
    let most = by_name.into_iter().max_by_key(|(_, excess_ns)| *excess_ns);
    all.name = most.map(|(name, _)| name.to_owned()).unwrap_or_default();
    (all.excess_ns > 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use trace::{Collective, Row};

    use super::*;
    use fixture::{Fixture, kernel};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;

    const SEND: &str = "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)";

    /// Collectives as (elements, duration in µs), one after the other.
    fn of(calls: &[(i64, i64)]) -> Option<Waiting> {
        let (mut fixture, mut details) = (Fixture::default(), Details::default());
        for ((elements, us), row) in calls.iter().zip(0_i64..) {
            fixture.push(kernel(SEND).at(row * 1_000_000, us * 1_000));
            let (name, kind) =
                (details.texts.intern("all_to_allv"), details.texts.intern("Float;0;"));
            let call = Collective {
                name,
                kind,
                in_elements: *elements,
                out_elements: *elements,
                group_size: 2,
            };
            let known = details.collectives.iter().position(|known| *known == call);
            let index = known.unwrap_or_else(|| {
                details.collectives.push(call);
                details.collectives.len() - 1
            });
            details.collective_of.push((row as Row, index as u32));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
        waiting(&gpu, &details)
    }

    #[test]
    fn what_equal_calls_take_above_the_fastest_is_waiting() {
        let calls = [(2048, 10), (2048, 3_000), (2048, 12), (2048, 11), (2048, 800)];
        let expected = Waiting {
            n_calls: 5,
            total_ns: 3_833_000,
            excess_ns: 3_783_000,
            name: "all_to_allv".to_owned(),
        };
        assert_eq!(of(&calls), Some(expected));
        assert_eq!(of(&calls[..4]), None, "four calls");
        let other = [(2048, 10), (4096, 3_000), (2048, 12), (2048, 11), (2048, 800)];
        assert_eq!(of(&other), None, "one moves more");
        assert_eq!(of(&[(2048, 10); 6]), None, "all alike");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn of_many_calls_a_tenth_may_be_faster() {
        let mut calls = vec![(2048, 100); 19];
        calls.push((2048, 1));
        assert_eq!(of(&calls), None, "one is an exception");
    }
}
