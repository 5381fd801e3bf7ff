//! Launches of a candidate that another process, or the profiler, interrupted: they run far longer than their equals.

use std::collections::BTreeMap;

use catalog::Category;
use trace::Row;

use super::find::Candidate;
use super::lanes::Lanes;
use super::removed::in_graph;
use crate::arguments::Arguments;
use crate::site::Attribution;
use timeline::launches::Launches;

/// A launch that runs so many times as long as the median of its equals was interrupted, where there are so many of them, and no more than
/// one in so many does.
const INTERRUPTED: i64 = 20;
const EQUALS: usize = 5;
const SELDOM: usize = 50;

/// What launches of one kernel with one launch config have in common if they do equal work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Same {
    /// The inputs of their op, by index.
    Inputs(u32),
    /// A graph launches them, and each is the one of this number in its launch of the graph: a replay has the same inputs.
    Place(u32),
}

/// The launches of a candidate that were interrupted, and the median of the equals of each, in ns.
#[inline(never)]
pub(super) fn interrupted(
    lanes: &Lanes<'_>,
    launches: &Launches,
    attribution: Option<&Attribution>,
    arguments: Option<&Arguments>,
    candidate: &Candidate,
) -> BTreeMap<u32, i64> {
    let Some(arguments) = arguments else { return BTreeMap::new() };
    let mut equal: BTreeMap<(u32, u32, Same), Vec<u32>> = BTreeMap::new();
    let mut of_replay: BTreeMap<(Row, u32, u32), u32> = BTreeMap::new();
    let finds = candidate.split.iter();
    let parts = finds.filter_map(|find| candidate.slices.get(find.from as usize..find.to as usize));
    for at in parts.flatten().copied() {
        let work = lanes.code_of_slice(at).work;
        // (A collective waits for other ranks.)
        if lanes.gpu.works[work as usize].category == Category::Communication {
            continue;
        }
        let slice = at as usize;
        let Some(config) = arguments.config_index(slice) else { continue };
        let replay = launches.of_slice(slice).filter(|_| in_graph(attribution, at));
        let same = match replay {
            Some(launch) => {
                let n = of_replay.entry((launch, work, config)).or_default();
                *n += 1;
                Some(Same::Place(*n))
            }
            None => arguments.call_index(slice).map(Same::Inputs),
        };
        if let Some(same) = same {
            equal.entry((work, config, same)).or_default().push(at);
        }
    }
    equal.into_values().flat_map(|launches| far_longer(lanes, launches)).collect()
}

/// Those of equal launches that run far longer than the median, with it.
fn far_longer(lanes: &Lanes<'_>, mut launches: Vec<u32>) -> Vec<(u32, i64)> {
    if launches.len() < EQUALS {
        return Vec::new();
    }
    let dur_ns = |at: &u32| lanes.gpu.slice(*at as usize).dur_ns;
    let mut times: Vec<i64> = launches.iter().map(dur_ns).collect();
    let median_ns = timeline::median(&mut times).unwrap_or_default();
    let n = launches.len();
    launches.retain(|at| median_ns > 0 && dur_ns(at) > INTERRUPTED.saturating_mul(median_ns));
    if launches.len() > 1 && launches.len().saturating_mul(SELDOM) > n {
        return Vec::new();
    }
    launches.into_iter().map(|at| (at, median_ns)).collect()
}
