//! Launches of a candidate that run far longer than their equals: another process probably had the GPU meanwhile.

use std::collections::BTreeMap;

use catalog::Category;

use super::find::Candidate;
use super::lanes::Lanes;
use crate::arguments::Arguments;

/// A launch that runs so many times as long as the median of its equals was interrupted, where there are so many of them, and no more than
/// one in so many does.
const INTERRUPTED: i64 = 20;
const EQUALS: usize = 5;
const SELDOM: usize = 50;

/// The launches of a candidate that were interrupted, and the median of the equals of each, in ns. Equal launches are of one kernel with one
/// launch config and equal inputs. (Without recorded inputs, two graphs that launch a kernel with one config may differ in the work that it
/// does, and so may two replays of one: none is equal.)
#[inline(never)]
pub(super) fn interrupted(
    lanes: &Lanes<'_>,
    arguments: Option<&Arguments>,
    candidate: &Candidate,
) -> BTreeMap<u32, i64> {
    let Some(arguments) = arguments else { return BTreeMap::new() };
    let mut equal: BTreeMap<(u32, u32, u32), Vec<u32>> = BTreeMap::new();
    let finds = candidate.split.iter();
    let parts = finds.filter_map(|find| candidate.slices.get(find.from as usize..find.to as usize));
    for at in parts.flatten().copied() {
        let slice = at as usize;
        let work = lanes.code_of_slice(at).work;
        // (A collective waits for other ranks.)
        let is_own = lanes.gpu.works[work as usize].category != Category::Communication;
        let same = arguments.config_index(slice).zip(arguments.call_index(slice));
        if let Some((config, call)) = same.filter(|_| is_own) {
            equal.entry((work, config, call)).or_default().push(at);
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
