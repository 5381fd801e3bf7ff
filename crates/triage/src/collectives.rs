//! Collectives that wait for other ranks: of equal calls, what the slow ones take more than the fast ones.
//!
//! [`timeline::equal`] has the rule and its limits.

use std::collections::BTreeMap;

use catalog::Category;
use dialect::calls::launches_graph;
use trace::{Details, Row};

use timeline::equal::{Call, Same, bytes_of, equal, group_of};
use timeline::gpu::Gpu;
use timeline::graph_places::{Launched, Place, graph_places, place_of};
use timeline::launches::Launches;

/// What collectives wait for other ranks: an estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Calls that were compared with equal ones.
    pub(crate) n_calls: u64,
    /// What they take.
    pub(crate) total_ns: i64,
    /// What of it is above the time of the fast ones among equal calls.
    pub(crate) excess_ns: i64,
    /// The collective with most of the excess, as PyTorch names it: `all_to_allv`; of those in graphs the kernel.
    pub(crate) name: String,
    /// What of the excess is that of collectives in graphs, which were compared by their places.
    pub(crate) of_graphs_ns: i64,
}

/// Compares the collectives of a device whose sizes are recorded, or which graphs launch. `None` where no three calls are equal, or none
/// takes longer than another.
#[inline(never)]
pub(crate) fn waiting(gpu: &Gpu<'_>, details: &Details) -> Option<Waiting> {
    let places = places(gpu, details);
    if details.collectives.is_empty() && places.is_empty() {
        return None;
    }
    // By collective and kernel: another algorithm takes another time.
    let calls = (0..gpu.len()).filter_map(|at| {
        let (slice, row) = (gpu.slice(at), gpu.row(at));
        let collective = details.collective(row);
        let same = match collective {
            Some(collective) => Same::Collective(collective),
            None => Same::Place(place_of(&places, row)?),
        };
        let of = collective.and_then(|collective| details.collectives.get(collective as usize));
        Some(Call {
            key: (same, slice.work),
            times: (slice.start_ns, slice.end_ns()),
            stream: slice.stream,
            group: of.map_or("", |of| group_of(details, of)),
            bytes: of.map_or(0, |of| bytes_of(details, of)),
            is_sized: collective.is_some(),
            like: match same {
                Same::Place(place) => Some(place.like()),
                Same::Collective(_) => None,
            },
        })
    });
    let mut all = Waiting::default();
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for group in equal(calls.collect()) {
        all.n_calls += group.n as u64;
        all.total_ns = all.total_ns.saturating_add(group.total_ns);
        all.excess_ns = all.excess_ns.saturating_add(group.excess_ns);
        let name = match group.key.0 {
            Same::Collective(collective) => {
                let of = details.collectives.get(collective as usize);
                of.map_or("", |of| details.texts.get(of.name))
            }
            Same::Place(place) => {
                all.of_graphs_ns = all.of_graphs_ns.saturating_add(group.excess_ns);
                gpu.trace.strings.get(place.name)
            }
        };
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(group.excess_ns);
    }
    let most = by_name.into_iter().max_by_key(|(_, excess_ns)| *excess_ns);
    all.name = most.map(|(name, _)| name.to_owned()).unwrap_or_default();
    (all.excess_ns > 0).then_some(all)
}

/// The places of the collectives that graphs launch; empty where no graph is launched, or all sizes are recorded.
fn places(gpu: &Gpu<'_>, details: &Details) -> Vec<(Row, Place)> {
    let is_communication =
        |at: usize| gpu.work(gpu.slice(at).work).category == Category::Communication;
    let mut own = (0..gpu.len()).filter(|at| is_communication(*at));
    let has_graphs = || gpu.trace.strings.marked(&launches_graph).contains(&true);
    if own.all(|at| details.collective(gpu.row(at)).is_some()) || !has_graphs() {
        return Vec::new();
    }
    let launches = Launches::of(gpu);
    let launched = (0..gpu.len()).filter_map(|at| {
        let (launch, row) = (launches.of_slice(at)?, gpu.row(at));
        let (start_ns, is_communication) = (gpu.slice(at).start_ns, is_communication(at));
        Some(Launched { launch, start_ns, row, is_communication })
    });
    graph_places(gpu.trace, details, launched.collect())
}

#[cfg(test)]
mod tests {
    use trace::{Collective, Row};

    use super::*;
    use fixture::{Fixture, kernel, slice};
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
            of_graphs_ns: 0,
        };
        assert_eq!(of(&calls), Some(expected));
        assert_eq!(of(&calls[..2]), None, "two calls");
        let other = [(2048, 10), (4096, 3_000), (2048, 12)];
        assert_eq!(of(&other), None, "one moves more");
        assert_eq!(of(&[(2048, 10); 6]), None, "all alike");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn in_graphs_the_first_collective_of_each_is_compared_with_the_others() {
        // Four launches of a graph with a product of some grid and two all-reduces, the first of which waits in two of them.
        let with = |of_others: i64, grids: Option<[u32; 4]>| {
            let mut fixture = Fixture::default();
            for (launch, first_us) in [16, 380, 16, 420].into_iter().enumerate() {
                let (at, link) = (launch as i64 * 1_000_000, launch as i64 + 1);
                let call = slice("cuda_runtime", "cudaGraphLaunch").at(at, 5_000).on(1, 1);
                fixture.push(call.link(link));
                fixture.push(
                    kernel("ncclDevKernel_AllReduce").at(at + 10_000, first_us * 1_000).link(link),
                );
                fixture.push(kernel("gemm").at(at + 500_000, 1_000).link(link));
                fixture.push(kernel("ncclDevKernel_AllReduce").at(at + 600_000, 20_000).link(link));
                // (Another graph has another number of kernels.)
                for more in 0..of_others * launch as i64 {
                    fixture.push(kernel("gemm").at(at + 700_000 + more * 2_000, 1_000).link(link));
                }
            }
            let trace = fixture.finish();
            let before = BeforeWindowSlices::of(&trace);
            let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
            // (The number of a launch config stands for it.)
            let products = (0..trace.len() as u32).filter(|row| trace.name_text(*row) == "gemm");
            let launches = products.zip(grids.into_iter().flatten()).collect();
            waiting(&gpu, &Details { launches, ..Details::default() })
        };
        let found = with(0, Some([8; 4])).unwrap();
        let figures = (found.n_calls, found.total_ns, found.excess_ns, found.of_graphs_ns);
        assert_eq!(figures, (8, 912_000, 768_000, 768_000));
        assert_eq!(found.name, "ncclDevKernel_AllReduce");
        assert_eq!(with(1, Some([8; 4])), None, "no two graphs are equal");
        assert_eq!(with(0, Some([1, 2, 3, 4])), None, "graphs of other batch sizes");
        assert_eq!(with(0, None), None, "nothing tells graphs of other batch sizes apart");
    }

    #[test]
    fn of_many_calls_a_tenth_may_be_faster() {
        let mut calls = vec![(2048, 100); 19];
        calls.push((2048, 1));
        assert_eq!(of(&calls), None, "one is an exception");
    }
}
