//! The file as one rank of a run whose other ranks are in workers of their own.

use kinetoscope::trace::sort_numbers;
use kinetoscope::{Details, HostIndex, OneRun, RankCalls, Runs};

use super::triage::OpenFile;

/// What is known of the ranks, in their order; empty where there are no others.
#[derive(Default)]
pub(super) struct Ranks {
    runs: Runs<'static>,
    own: usize,
    /// The places of the others, in the order in which the page has passed them on; `None` of what cannot be read.
    others: Vec<Option<usize>>,
}

impl Ranks {
    /// The run of the own file.
    pub(super) fn run(&self) -> Option<OneRun<'_>> {
        self.runs.with(self.own)
    }

    /// What is to be added to the times of each other file, in ns, so that its collectives end with those of the own one.
    pub(super) fn clocks(&self) -> Vec<i64> {
        let run = self.run();
        let slow = |file| run.as_ref().map_or(0, |run| run.clock_ns(file));
        let own = slow(self.own);
        // (Of another run nothing is known.)
        let is_of_run = |file: &usize| run.as_ref().is_some_and(|run| run.holds(*file));
        let by = |file: &Option<usize>| file.filter(is_of_run).map_or(0, |file| slow(file) - own);
        self.others.iter().map(by).collect()
    }
}

impl OpenFile {
    /// What its rank calls together with others.
    pub(super) fn rank_calls(&self, index: &HostIndex<'_>) -> RankCalls {
        let none = Details::default();
        let details = self.details.as_ref().unwrap_or(&none);
        // (The page asks it of files that tell their rank.)
        let rank = kinetoscope::rank(&self.decoded.trace, &self.name).unwrap_or_default();
        RankCalls::of(index, details, rank, &self.name)
    }

    /// The same of all ranks that the page has passed on, as the command line reads them of a folder.
    pub(super) fn ranks(&self, index: &HostIndex<'_>) -> Ranks {
        if self.other_ranks.is_empty() {
            return Ranks::default();
        }
        let own = Some(self.rank_calls(index));
        let others = self.other_ranks.iter().map(|bytes| RankCalls::from_bytes(bytes));
        let mut all: Vec<Option<RankCalls>> = std::iter::once(own).chain(others).collect();
        let is_read = |nth: &u32| all[*nth as usize].is_some();
        let mut order: Vec<u32> = (0..all.len() as u32).filter(is_read).collect();
        let key = |nth: u32| all[nth as usize].as_ref().map(RankCalls::order);
        sort_numbers(&mut order, &|a, b| key(a).cmp(&key(b)));
        let place = |nth: u32| order.iter().position(|of| *of == nth);
        let mut places = (0..all.len() as u32).map(place);
        let own = places.next().flatten().unwrap_or_default();
        let others = places.collect();
        let calls: Vec<RankCalls> =
            order.iter().filter_map(|nth| all[*nth as usize].take()).collect();
        Ranks { runs: Runs::of(calls), own, others }
    }
}
