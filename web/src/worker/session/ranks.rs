//! The file as one rank of a run whose other ranks are in workers of their own.

use kinetoscope::{Details, HostIndex, OneRun, RankCalls, Runs};

use super::triage::OpenFile;

/// What is known of the ranks, in their order; empty where there are no others.
#[derive(Default)]
pub(super) struct Ranks {
    runs: Runs<'static>,
    own: usize,
}

impl Ranks {
    /// The run of the own file.
    pub(super) fn run(&self) -> Option<OneRun<'_>> {
        self.runs.with(self.own)
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
        let others = self.other_ranks.iter().filter_map(|bytes| RankCalls::from_bytes(bytes));
        let own = self.rank_calls(index);
        let mut calls: Vec<RankCalls> = others.collect();
        let at = calls.iter().filter(|other| other.order() < own.order()).count();
        kinetoscope::trace::sort_by(&mut calls, |a, b| a.order().cmp(&b.order()));
        calls.insert(at, own);
        Ranks { runs: Runs::of(calls), own: at }
    }
}
