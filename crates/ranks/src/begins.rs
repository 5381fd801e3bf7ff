//! Ranks whose recordings begin apart: what the first collective waits for then came before them.

use report::units::time;
use timeline::intervals::Interval;

use crate::calls::RankCalls;
use crate::matched::Matched;
use crate::same_calls::Matches;

/// A smaller part than this of the longest wait for the late rank is not worth a sentence: a tenth.
const LEAST_PART: i64 = 10;

/// That the others wait for the late rank in the first collective because its recording begins later, in a sentence. `ranks` are on one
/// clock.
///
/// A rank records from one point of its program on, as from the begin of a step. Where the late rank comes there later than the others by
/// most of the wait, nothing in the files is the cause.
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
    let first_ns = first.iter().map(|(_, (from, _))| *from).min()?;
    let begin = |at: usize| Some((ranks.get(at)?.begins_ns?, at));
    let (begin_ns, _) = begin(first.iter().find(|(_, (from, _))| *from == last_ns)?.0)
        .filter(|(_, at)| ranks[*at].name == late)?;
    let (earliest_ns, earliest) = first.iter().filter_map(|(at, _)| begin(*at)).min()?;
    let (apart_ns, wait_ns) =
        (begin_ns.saturating_sub(earliest_ns), last_ns.saturating_sub(first_ns));
    let waits = matched.devices().filter_map(|(_, waits)| waits.exposed_for(late));
    let most_ns = waits.map(|wait| wait.ns).max()?;
    let is_cause = apart_ns.saturating_mul(2) > wait_ns;
    (is_cause && wait_ns.saturating_mul(LEAST_PART) > most_ns).then(|| {
        format!(
            "The recording of rank {late} begins {} after that of rank {}: what the others wait for it in the first collective, up to {}, \
             comes from before the recordings.",
            time(apart_ns),
            ranks[earliest].name,
            time(wait_ns)
        )
    })
}
