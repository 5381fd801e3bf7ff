//! M10, where equal collectives differ: what the slow ones take above the fast ones is waiting.

use std::collections::BTreeMap;

use report::units::{count, time};
use timeline::equal::{Call, Equal, Same, bytes_of, equal, group_of};
use timeline::graph_places::{Launched, graph_places, place_of};
use timeline::intervals::{Interval, both, length, union};
use trace::StringId;

use crate::Facts;
use crate::facts::Device;
use crate::rules::slow_transfer::Rate;

/// How much longer equal collectives take than the fast ones among them ([`timeline::equal`]).
pub(super) struct Excess {
    /// The sum over all sizes.
    pub(super) ns: i64,
    /// When of it no other kernel runs, as if each waited first.
    pub(super) exposed: Vec<Interval>,
    /// Kernels of the group with the most of it, its shortest and its longest.
    most: (usize, i64, i64),
    /// Whether these were compared by their place in graphs.
    most_by_place: bool,
    /// Of the kernel and graph with most of what graphs launch: what it takes at its slowest and its fastest place, where the places differ.
    places: Option<(i64, i64)>,
    /// What the link moves, where that shows it.
    pub(super) rate: Option<Rate>,
    /// Whether any were compared by size, and any by place.
    by_size: bool,
    by_place: bool,
}

impl Excess {
    /// What they take longer than.
    pub(super) fn than(&self) -> &'static str {
        match (self.by_size, self.by_place) {
            (true, true) => {
                "the fast ones of each size or place, or what the group's best bandwidth allows"
            }
            (_, false) => "the fast ones of each size, or what the group's best bandwidth allows",
            (false, true) => "the fast ones of each kernel in equal graphs",
        }
    }

    pub(super) fn sentence(&self) -> String {
        let (n, shortest, longest) = self.most;
        let of = match self.most_by_place {
            true => "at one place in launches of an equal graph",
            false => "of one kind and size",
        };
        // (A place at which every launch waits.)
        let places = self.places.map_or_else(String::new, |(slow_ns, fast_ns)| {
            let (slow, fast) = (time(slow_ns), time(fast_ns));
            format!(" In one graph, the same kernel takes {slow} at one place and {fast} at another (medians).")
        });
        let than = self.than();
        format!(
            "Equal collectives differ: {} {of} take {} to {}.{places} In all, they take {} longer than {than}: at least that is \
             waiting for other ranks, or a shared link. The traces of the other ranks show which. An estimate: {} of that is exposed, and \
             the bound excludes it.",
            count(n as u64),
            time(shortest),
            time(longest),
            time(self.ns),
            time(length(&self.exposed))
        )
    }
}

/// Collectives of one kernel, kind, group and size count as equal, and without a recorded size those at one place of equal graphs. `None`
/// where neither is known.
pub(super) fn excess(facts: &Facts<'_>, device: &Device<'_>) -> Option<Excess> {
    let launched = device.slices().filter_map(|one| {
        let (launch, row) = (one.launch?.row, one.slice.row);
        let is_communication = one.is_communication;
        Some(Launched { launch, start_ns: one.slice.start_ns, row, is_communication })
    });
    let own = || facts.gpu.on(device.id()).filter(|one| one.is_communication);
    let places = match own().all(|one| facts.details.collective(one.slice.row).is_some()) {
        true => Vec::new(),
        false => graph_places(facts.trace, facts.details, launched.collect()),
    };
    let calls = own().filter_map(|one| {
        let collective = facts.details.collective(one.slice.row);
        let same = match collective {
            Some(collective) => Same::Collective(collective),
            None => Same::Place(place_of(&places, one.slice.row)?),
        };
        let of = collective.and_then(|at| facts.details.collectives.get(at as usize));
        Some(Call {
            key: (facts.trace.name(one.slice.row), same),
            times: one.slice.interval(),
            stream: facts.trace.stream(one.slice.row),
            group: of.map_or("", |of| group_of(facts.details, of)),
            bytes: of.map_or(0, |of| bytes_of(facts.details, of)),
            is_sized: collective.is_some(),
            like: match same {
                Same::Place(place) => Some(place.like()),
                Same::Collective(_) => None,
            },
        })
    });
    let calls: Vec<Call<'_, (StringId, Same)>> = calls.collect();
    let places = far_places(&calls);
    let groups = equal(calls);
    let most = groups.iter().max_by_key(|group| group.excess_ns)?;
    let is_by_place = |group: &Equal<(StringId, Same)>| matches!(group.key.1, Same::Place(_));
    let waits = union(groups.iter().flat_map(|group| group.waits.iter().copied()).collect());
    let all_ns = own().fold(0_i64, |sum, one| sum.saturating_add(one.slice.dur_ns()));
    Some(Excess {
        rate: Rate::of(facts.details, &groups, all_ns),
        ns: groups.iter().fold(0, |sum, group| sum.saturating_add(group.excess_ns)),
        exposed: both(&waits, &device.exposed()),
        most: (most.n, most.shortest_ns, most.longest_ns),
        most_by_place: is_by_place(most),
        places,
        by_size: !groups.iter().all(is_by_place),
        by_place: groups.iter().any(is_by_place),
    })
}

/// The places of one kernel in a graph differ from this many times on, in percent.
const FAR_PCT: i64 = 150;

/// The medians of the slowest and the fastest place of one kernel in equal graphs, of those that differ most, each times its calls.
fn far_places(calls: &[Call<'_, (StringId, Same)>]) -> Option<(i64, i64)> {
    let mut times: BTreeMap<(i64, (StringId, Same)), Vec<i64>> = BTreeMap::new();
    for call in calls {
        let Some(like) = call.like else { continue };
        times.entry((like, call.key)).or_default().push(call.times.1.saturating_sub(call.times.0));
    }
    let medians: Vec<(i64, i64, i64)> = times
        .into_iter()
        .filter_map(|((like, _), mut own)| {
            Some((like, timeline::median(&mut own)?, own.len() as i64))
        })
        .collect();
    let of_kernel = |places: &[(i64, i64, i64)]| {
        let slow = places.iter().max_by_key(|(_, ns, _)| *ns)?;
        let fast = places.iter().min_by_key(|(_, ns, _)| *ns)?;
        let differ = slow.1.saturating_mul(100) >= fast.1.saturating_mul(FAR_PCT);
        differ.then_some(((slow.1 - fast.1).saturating_mul(slow.2), (slow.1, fast.1)))
    };
    let found = medians.chunk_by(|a, b| a.0 == b.0).filter_map(of_kernel);
    found.max_by_key(|(ns, _)| *ns).map(|(_, places)| places)
}
