//! Ranks whose recordings begin apart: what the first collective waits for then came before them.

use report::units::time;
use timeline::intervals::Interval;

use crate::calls::RankCalls;
use crate::same_calls::Matches;

/// Recordings that begin apart by less explain no wait that is worth a word: 0.1 ms.
const LEAST_NS: i64 = 100_000;
/// Beside longer waits than so many times it, it is not worth a sentence.
const LEAST_PART: i64 = 10;

/// A collective: its ranks, and when each is in it.
type Call = [(usize, Interval)];

/// The waits of ranks on one clock that come from before their recordings: each in the first collective that the rank takes part in, which
/// brings it in step with the others.
///
/// A rank records from one point of its program on, as from the begin of a step. Where the last one to join comes there later than
/// another rank, so much of the wait of that one has no cause in the files; the rest has. If their programs have passed
/// one place since, what is left of that is by how much the last one passes it later. Of files that do not tell when their recording begins, nothing
/// is known.
#[derive(Default)]
pub(crate) struct BeforeRecordings<'a>(Vec<Before<'a>>);

/// What one rank waits because of that.
struct Before<'a> {
    rank: usize,
    /// Its first collective, and the rank that joins it last.
    first: &'a Call,
    last: usize,
    /// By how much the recording of the last rank begins later, in ns.
    apart_ns: i64,
    /// How much of the wait that explains, in ns: from its begin on.
    explained_ns: i64,
}

impl<'a> BeforeRecordings<'a> {
    pub(crate) fn of(ranks: &[&RankCalls], matches: &'a [Matches]) -> Self {
        let calls = matches.iter().filter(|found| !found.is_broadcast);
        let calls = calls.flat_map(|found| &found.calls);
        let joined = |of_all: &Call| of_all.iter().map(|(_, (from, _))| *from).max();
        // By rank, with the time at which the last one joins.
        let mut firsts: Vec<Option<(i64, &'a Call)>> = vec![None; ranks.len()];
        for of_all in calls {
            let Some(last_ns) = joined(of_all) else { continue };
            for (rank, _) in of_all {
                let first = firsts.get_mut(*rank);
                let first = first.filter(|first| first.is_none_or(|(ns, _)| last_ns < ns));
                if let Some(first) = first {
                    *first = Some((last_ns, of_all));
                }
            }
        }
        let begin = |at: usize| ranks.get(at)?.begins_ns;
        let before = |(rank, first): (usize, Option<(i64, &'a Call)>)| {
            let (last_ns, first) = first?;
            let own = ranks.get(rank)?;
            let (_, times) = *first.iter().find(|(at, _)| *at == rank)?;
            let (last, _) = first.iter().find(|(_, (from, _))| *from == last_ns)?;
            let apart_ns = begin(*last)?.saturating_sub(begin(rank)?);
            let wait_ns = last_ns.saturating_sub(times.0);
            let launched_ns = own.launch_ns(times).unwrap_or(times.0);
            let late_ns = least_late_ns(own, ranks.get(*last)?, launched_ns);
            let explained_ns = apart_ns.min(wait_ns).min(late_ns.unwrap_or(i64::MAX)).max(0);
            // (Where most of the wait is in the recordings, the files have its cause.)
            let is_most = explained_ns.saturating_mul(2) > wait_ns && explained_ns >= LEAST_NS;
            is_most.then_some(Before { rank, first, last: *last, apart_ns, explained_ns })
        };
        Self(firsts.into_iter().enumerate().filter_map(before).collect())
    }

    /// How much of the wait of a rank in a call comes from before, in ns.
    pub(crate) fn explained_ns(&self, of_all: &Call, rank: usize) -> i64 {
        let is_it = |wait: &&Before<'_>| wait.rank == rank && std::ptr::eq(wait.first, of_all);
        self.0.iter().find(is_it).map_or(0, |wait| wait.explained_ns)
    }

    /// That these waits are not counted, in a sentence, where they are much beside the longest of those that are.
    pub(crate) fn sentence(&self, ranks: &[&RankCalls], longest_ns: i64) -> Option<String> {
        let most = self.0.iter().max_by_key(|wait| wait.explained_ns)?;
        let is_much = most.explained_ns.saturating_mul(LEAST_PART) > longest_ns;
        is_much.then_some(())?;
        Some(format!(
            "The recording of rank {} begins {} after that of rank {}: the part of the first collective in which the others wait for it \
             because of that, up to {}, is not counted.",
            ranks.get(most.last)?.name,
            time(most.apart_ns),
            ranks.get(most.rank)?.name,
            time(most.explained_ns)
        ))
    }
}

/// By how much `last` comes later to the annotations that the program of `rank` begins before `at_ns`: to the one to which it comes least
/// later, because no delay from before is left of more than that. `None` where both have none of one name, equally often.
fn least_late_ns(rank: &RankCalls, last: &RankCalls, at_ns: i64) -> Option<i64> {
    fn of<'a>(rank: &'a RankCalls, name: &str) -> Vec<&'a (String, i64)> {
        rank.marks.iter().filter(|(other, _)| other == name).collect()
    }
    let begun = rank.marks.iter().filter(|(_, begun_ns)| *begun_ns <= at_ns);
    let late = begun.filter_map(|mark| {
        let (own, others) = (of(rank, &mark.0), of(last, &mark.0));
        let place = own.iter().position(|other| *other == mark)?;
        let (_, last_ns) = others.get(place).filter(|_| own.len() == others.len())?;
        Some(last_ns.saturating_sub(mark.1))
    });
    late.min()
}
