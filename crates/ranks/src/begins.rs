//! Ranks whose recordings begin apart: what the first collective waits for then came before them.

use report::units::time;
use timeline::intervals::Interval;

use crate::calls::RankCalls;
use crate::same_calls::Matches;

/// Recordings that begin apart by less explain no wait that is worth a sentence: 0.1 ms.
const LEAST_NS: i64 = 100_000;

/// The waits in the first collective of ranks on one clock that come from before their recordings.
///
/// A rank records from one point of its program on, as from the begin of a step. Where the last one to join comes there later than
/// another rank, so much of the wait of that one has no cause in the files; the rest has. Of files that do not tell when their recording
/// begins, nothing is known.
pub(crate) struct BeforeRecordings<'a> {
    first: &'a [(usize, Interval)],
    last: usize,
    waits: Vec<Before>,
}

/// What one rank waits because of that.
struct Before {
    rank: usize,
    /// By how much the recording of the last rank begins later, in ns.
    apart_ns: i64,
    /// How much of the wait that explains, in ns: from its begin on.
    explained_ns: i64,
}

impl<'a> BeforeRecordings<'a> {
    /// `None` where the first collective shows no such wait.
    pub(crate) fn of(
        ranks: &[&RankCalls],
        matches: impl Iterator<Item = &'a Matches>,
    ) -> Option<Self> {
        let calls = matches.filter(|found| !found.is_broadcast).flat_map(|found| &found.calls);
        let joined = |of_all: &[(usize, Interval)]| of_all.iter().map(|(_, (from, _))| *from).max();
        let first = calls.min_by_key(|of_all| joined(of_all))?;
        let last_ns = joined(first)?;
        let begin = |at: usize| ranks.get(at)?.begins_ns;
        let (last, _) = first.iter().find(|(_, (from, _))| *from == last_ns)?;
        let begin_ns = begin(*last)?;
        let before = |(rank, (from, _)): &(usize, Interval)| {
            let apart_ns = begin_ns.saturating_sub(begin(*rank)?);
            let wait_ns = last_ns.saturating_sub(*from);
            let explained_ns = apart_ns.min(wait_ns);
            // (Where most of the wait is in the recordings, the files have its cause.)
            let is_most = explained_ns.saturating_mul(2) > wait_ns && explained_ns >= LEAST_NS;
            is_most.then_some(Before { rank: *rank, apart_ns, explained_ns })
        };
        let waits: Vec<Before> = first.iter().filter_map(before).collect();
        (!waits.is_empty()).then_some(Self { first, last: *last, waits })
    }

    /// How much of the wait of a rank in a call comes from before, in ns.
    pub(crate) fn explained_ns(&self, of_all: &[(usize, Interval)], rank: usize) -> i64 {
        let own = self.waits.iter().find(|wait| wait.rank == rank);
        let own = own.filter(|_| std::ptr::eq(self.first, of_all));
        own.map_or(0, |wait| wait.explained_ns)
    }

    /// That these waits are not counted, in a sentence.
    pub(crate) fn sentence(&self, ranks: &[&RankCalls]) -> Option<String> {
        let most = self.waits.iter().max_by_key(|wait| wait.explained_ns)?;
        Some(format!(
            "The recording of rank {} begins {} after that of rank {}: the part of the first collective in which the others wait for it \
             because of that, up to {}, is not counted.",
            ranks.get(self.last)?.name,
            time(most.apart_ns),
            ranks.get(most.rank)?.name,
            time(most.explained_ns)
        ))
    }
}
