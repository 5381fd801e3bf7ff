//! Ranks whose recordings begin apart: what the first collective waits for then came before them.

use report::units::time;
use timeline::intervals::Interval;

use crate::calls::RankCalls;
use crate::matched::Matched;
use crate::same_calls::Matches;

/// A smaller part than this of the longest wait for the late rank is not worth a sentence: a tenth.
const LEAST_PART: i64 = 10;

/// That a rank waits for the late one in the first collective because the recording of that one begins later, in a sentence. `ranks` are on
/// one clock.
///
/// A rank records from one point of its program on, as from the begin of a step. Where the late rank comes there later than the other one,
/// so much of the wait has no cause in the files; the rest has. Of files that do not tell when their recording begins, nothing is said.
pub(crate) fn begins_late(
    ranks: &[&RankCalls],
    matches: &[Matches],
    matched: &Matched,
) -> Option<String> {
    let (late, _) = matched.latest()?;
    let calls = matches.iter().filter(|found| !found.is_broadcast).flat_map(|found| &found.calls);
    let joined = |of_all: &[(usize, Interval)]| of_all.iter().map(|(_, (from, _))| *from).max();
    let first = calls.min_by_key(|of_all| joined(of_all))?;
    let last_ns = joined(first)?;
    let begin = |at: usize| ranks.get(at)?.begins_ns;
    let (last, _) = first.iter().find(|(_, (from, _))| *from == last_ns)?;
    let begin_ns = begin(*last).filter(|_| ranks[*last].name == late)?;
    let explained = |(at, (from, _)): &(usize, Interval)| {
        let apart_ns = begin_ns.saturating_sub(begin(*at)?);
        let wait_ns = last_ns.saturating_sub(*from);
        Some((apart_ns.min(wait_ns), wait_ns, apart_ns, *at))
    };
    let all = first.iter().filter_map(explained);
    let mostly =
        all.filter(|(explained_ns, wait_ns, ..)| explained_ns.saturating_mul(2) > *wait_ns);
    let (explained_ns, _, apart_ns, other) = mostly.max()?;
    let waits = matched.devices().filter_map(|(_, waits)| waits.exposed_for(late));
    let most_ns = waits.map(|wait| wait.ns).max()?;
    (explained_ns.saturating_mul(LEAST_PART) > most_ns).then(|| {
        format!(
            "The recording of rank {late} begins {} after that of rank {}: of what the others wait for it in the first collective, up to {} \
             comes from before the recordings.",
            time(apart_ns),
            ranks[other].name,
            time(explained_ns)
        )
    })
}
