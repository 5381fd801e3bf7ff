//! Collectives that wait for other ranks: of equal calls, what the slow ones take more than the fast ones.
//!
//! [`timeline::equal`] has the rule and its limits.

use std::collections::BTreeMap;

use trace::Details;

use timeline::equal::{Call, bytes_of, equal, group_of};
use timeline::gpu::Gpu;

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

/// Compares the collectives of a device whose sizes are recorded. `None` where no three calls are equal, or none takes longer than
/// another.
#[inline(never)]
pub(crate) fn waiting(gpu: &Gpu<'_>, details: &Details) -> Option<Waiting> {
    if details.collectives.is_empty() {
        return None;
    }
    // By collective and kernel: another algorithm takes another time.
    let calls = (0..gpu.len()).filter_map(|at| {
        let slice = gpu.slice(at);
        let collective = details.collective(gpu.row(at))?;
        let of = details.collectives.get(collective as usize);
        Some(Call {
            key: (collective, slice.work),
            times: (slice.start_ns, slice.end_ns()),
            group: of.map_or("", |of| group_of(details, of)),
            bytes: of.map_or(0, |of| bytes_of(details, of)),
        })
    });
    let mut all = Waiting { n_calls: 0, total_ns: 0, excess_ns: 0, name: String::new() };
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for group in equal(calls.collect()) {
        all.n_calls += group.n as u64;
        all.total_ns = all.total_ns.saturating_add(group.total_ns);
        all.excess_ns = all.excess_ns.saturating_add(group.excess_ns);
        let (collective, _) = group.key;
        let name =
            details.collectives.get(collective as usize).map(|of| details.texts.get(of.name));
        let sum = by_name.entry(name.unwrap_or_default()).or_default();
        *sum = sum.saturating_add(group.excess_ns);
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
        assert_eq!(of(&calls[..2]), None, "two calls");
        let other = [(2048, 10), (4096, 3_000), (2048, 12)];
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
