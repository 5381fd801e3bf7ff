//! The file as one rank of a run whose other ranks are in workers of their own.

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
        let own = self.rank_calls(index);
        let read = self.other_ranks.iter().map(|bytes| RankCalls::from_bytes(bytes)).enumerate();
        let mut calls: Vec<(usize, RankCalls)> =
            read.filter_map(|(nth, calls)| Some((nth, calls?))).collect();
        let at = calls.iter().filter(|(_, other)| other.order() < own.order()).count();
        kinetoscope::trace::sort_by(&mut calls, |(_, a), (_, b)| a.order().cmp(&b.order()));
        let mut others = vec![None; self.other_ranks.len()];
        for (place, (nth, _)) in calls.iter().enumerate() {
            others[*nth] = Some(place + usize::from(place >= at));
        }
        let mut calls: Vec<RankCalls> = calls.into_iter().map(|(_, calls)| calls).collect();
        calls.insert(at, own);
        Ranks { runs: Runs::of(calls), own: at, others }
    }
}
