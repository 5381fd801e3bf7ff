//! Files that may be ranks of one run. The worker of each writes down what its rank calls together with others; the page passes that on to
//! the worker of the file that is shown, which decides which of them are one run.

use crate::features::several::queries as roles;
use crate::protocol::{JobId, Request};
use crate::shared::Shared;
use crate::state::next::Next;
use crate::state::{FileEntry, Phase, Remote, Role, State, workers};

/// What the worker of another rank has written down, and the job of that file.
pub type OtherRank = (JobId, Shared<Vec<u8>>);

/// Asks for what files of several ranks call, and for the diagnosis of the one that is shown where its others are not those that it was
/// made with.
pub(crate) fn follow(next: &mut Next) {
    for job in to_ask(&next.state) {
        let id = workers::ask(next, Request::RankCalls { job });
        next.update(job, |file| file.calls = id.map_or(Remote::Idle, Remote::Pending));
    }
    let shown = next.state.selected_file().filter(|file| answers(file));
    let Some(file) = shown.filter(|file| !matches!(file.diagnosis, Remote::Idle)) else { return };
    // (One that is still read may be a rank, too: one diagnosis with all of them.)
    let job = file.job;
    let is_known = |file: &Shared<FileEntry>| {
        !matches!(file.phase, Phase::Working(_))
            && file.calls.pending().is_none()
            && (file.job == job || file.diagnosis.pending().is_none())
    };
    let others = others(&next.state, file);
    if others != file.ranks && next.state.files.iter().all(is_known) {
        next.update(job, |file| file.ranks = others);
        workers::diagnose(next, job);
    }
}

/// Whether its worker can be asked.
fn answers(file: &FileEntry) -> bool {
    file.phase == Phase::Ready && file.triage.is_some() && file.ledger.asked.triage_runs
}

/// Whether a file is measured, and no related file of another.
fn is_measured(state: &State, file: &FileEntry) -> bool {
    !matches!(roles::role(state, file.job), Role::Companion(..))
}

/// The rank of a file that is measured.
fn rank(state: &State, file: &FileEntry) -> Option<i64> {
    file.opened.as_ref()?.signs.rank.filter(|_| is_measured(state, file))
}

/// The files that were not asked yet, where there are several ranks.
fn to_ask(state: &State) -> Vec<JobId> {
    let ranks = state.files.iter().filter_map(|file| Some((file, rank(state, file)?)));
    let ranks: Vec<_> = ranks.filter(|(file, _)| file.triage.is_some()).collect();
    if ranks.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return Vec::new();
    }
    let idle = ranks.iter().filter(|(file, _)| file.calls == Remote::Idle && answers(file));
    idle.map(|(file, _)| file.job).collect()
}

/// What is known of the other ranks of a file; then of other runs that take inputs of one kind with it, where the sizes of their batches
/// differ. (Loops: iterators that collect take more of the page's budget.)
fn others(state: &State, own: &FileEntry) -> Vec<OtherRank> {
    let (mut ranks, mut runs) = (Vec::new(), Vec::new());
    let (mut are_ranks, mut are_sizes) = (false, false);
    if !is_measured(state, own) {
        return runs;
    }
    let own_rank = rank(state, own);
    for file in &state.files {
        if file.job == own.job || !is_measured(state, file) {
            continue;
        }
        let ranks_of_both = own_rank.zip(rank(state, file));
        let is_rank = ranks_of_both.is_some_and(|(own, other)| own != other);
        if let (Some(_), Some(calls)) = (ranks_of_both, file.calls.ready()) {
            are_ranks |= is_rank;
            ranks.push((file.job, calls.clone()));
        }
        let run = &file.scaling;
        // (Ranks of one run may have batches of their own.)
        if let (Some((kind, batch)), Some((own_kind, own_batch))) =
            (split(run), split(&own.scaling))
            && kind == own_kind
            && !is_rank
        {
            are_sizes |= batch != own_batch;
            runs.push((file.job, run.clone()));
        }
    }
    // (Two runs of one rank are none together.)
    if !are_ranks {
        ranks.clear();
    }
    if are_sizes {
        ranks.append(&mut runs);
    }
    ranks
}

/// What a run begins with: the kind of its inputs, and the size of its batch.
fn split(run: &[u8]) -> Option<(u64, u32)> {
    let (kind, rest) = run.split_first_chunk()?;
    Some((u64::from_le_bytes(*kind), u32::from_le_bytes(*rest.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        Analyses, Diagnosis, Opened, Plan, RequestId, Response, Signs, StepWindow, Triage,
    };
    use crate::state::testing::{said, step};
    use crate::state::{Action, Effect};

    const FIRST: JobId = JobId(1);
    const SECOND: JobId = JobId(2);

    #[derive(Default)]
    struct Page {
        state: State,
        effects: Vec<Effect>,
    }

    impl Page {
        fn act(&mut self, action: Action) {
            let (state, effects) = step(&self.state, action);
            self.state = state;
            self.effects.extend(effects);
        }

        /// A file of a rank is added, read, triaged and diagnosed.
        fn add(&mut self, job: JobId, rank: i64) {
            self.act(Action::Added(job, format!("{}.json", job.0), 10));
            self.settle(job, rank);
        }

        fn settle(&mut self, job: JobId, rank: i64) {
            let signs = Shared::new(Signs { rank: Some(rank), ..Signs::default() });
            self.act(said(Response::Opened { job, opened: Opened { signs, ..Opened::default() } }));
            self.act(said(Response::Report { job, report: Analyses::default() }));
            self.act(said(Response::RepairPlanned { job, plan: Plan::default() }));
            self.act(said(Response::Triage { job, triage: Triage::default() }));
            self.diagnosed(job);
        }

        fn diagnosed(&mut self, job: JobId) {
            self.act(said(Response::Diagnosed { job, diagnosis: Diagnosis::default() }));
        }

        fn called(&mut self, job: JobId, bytes: &[u8]) {
            self.act(said(Response::RankCalls { job, calls: bytes.to_vec() }));
        }

        /// What was asked about ranks since it was looked at last.
        fn asked(&mut self) -> Vec<(JobId, String)> {
            let told = |effect: Effect| match effect {
                Effect::Post(_, Request::RankCalls { job }) => Some((job, "calls".to_owned())),
                Effect::Post(_, Request::OtherRanks { job, others }) => {
                    let others: Vec<&[u8]> = others.iter().map(|bytes| &***bytes).collect();
                    Some((job, format!("others {others:?}")))
                }
                Effect::Post(_, Request::Diagnose { job, .. }) => {
                    Some((job, "diagnose".to_owned()))
                }
                _ => None,
            };
            std::mem::take(&mut self.effects).into_iter().filter_map(told).collect()
        }

        /// Two ranks, both diagnosed; the first is shown.
        fn two() -> Self {
            let mut page = Self::default();
            page.add(FIRST, 0);
            page.act(Action::Added(SECOND, "2.json".into(), 10));
            page.act(Action::Selected(FIRST));
            page.settle(SECOND, 1);
            assert_eq!(
                page.asked(),
                [
                    (FIRST, "diagnose".to_owned()),
                    (SECOND, "diagnose".to_owned()),
                    (FIRST, "calls".to_owned()),
                    (SECOND, "calls".to_owned()),
                ]
            );
            page.called(FIRST, &[1]);
            assert_eq!(page.asked(), [], "the other has not answered");
            page.called(SECOND, &[2]);
            page
        }
    }

    fn told(job: JobId, others: &str) -> [(JobId, String); 2] {
        [(job, others.to_owned()), (job, "diagnose".to_owned())]
    }

    #[test]
    fn the_file_that_is_shown_is_diagnosed_again_once_the_other_ranks_are_known() {
        let mut page = Page::two();
        assert_eq!(page.asked(), told(FIRST, "others [[2]]"));
        page.diagnosed(FIRST);
        page.act(Action::Selected(SECOND));
        assert_eq!(page.asked(), told(SECOND, "others [[1]]"));
        page.diagnosed(SECOND);
        page.act(Action::Selected(FIRST));
        assert_eq!(page.asked(), [], "nothing has changed for it");
    }

    #[test]
    fn a_diagnosis_with_ranks_that_are_gone_is_not_stored() {
        let mut page = Page::two();
        let stale = page.state.file(FIRST).and_then(|file| file.diagnosis.pending());
        page.asked();
        page.act(Action::Removed(SECOND));
        assert_eq!(page.asked(), told(FIRST, "others []"));
        let diagnosis = Diagnosis::default();
        let answer = Response::Diagnosed { job: FIRST, diagnosis };
        page.act(Action::Received(stale.unwrap_or_default(), Box::new(answer)));
        assert!(page.state.file(FIRST).is_some_and(|file| file.diagnosis.ready().is_none()));
        page.diagnosed(FIRST);
        assert!(page.state.file(FIRST).is_some_and(|file| file.diagnosis.ready().is_some()));
        assert_ne!(stale, Some(RequestId::default()));
    }

    #[test]
    fn a_rank_that_is_being_read_is_waited_for() {
        let mut page = Page::two();
        page.diagnosed(FIRST);
        page.asked();
        page.act(Action::Added(JobId(3), "3.json".into(), 10));
        page.act(Action::Selected(FIRST));
        page.act(Action::Removed(SECOND));
        assert_eq!(page.asked(), [], "the third may be a rank");
        page.settle(JobId(3), 2);
        page.called(JobId(3), &[3]);
        let mut asked = page.asked();
        assert_eq!(asked.split_off(asked.len() - 2), told(FIRST, "others [[3]]"));
    }

    #[test]
    fn two_files_of_one_rank_and_related_files_are_not_asked() {
        let mut page = Page::default();
        page.add(FIRST, 0);
        page.add(SECOND, 0);
        assert!(!page.asked().iter().any(|(_, what)| what == "calls"));
        let mut page = Page::two();
        page.diagnosed(FIRST);
        page.asked();
        let capture = Role::Companion(crate::protocol::Companion::Mapping, FIRST);
        page.act(Action::RoleSet(SECOND, capture));
        page.act(said(Response::Companion { job: FIRST, companion: SECOND, failure: None }));
        page.act(said(Response::Triage { job: FIRST, triage: Triage::default() }));
        assert!(page.asked().contains(&(FIRST, "others []".to_owned())));
    }

    #[test]
    fn a_worker_that_was_ended_is_told_again() {
        let mut page = Page::two();
        page.diagnosed(FIRST);
        page.asked();
        page.act(Action::Cancelled(FIRST));
        assert_eq!(page.asked(), [], "and no worker is started for it");
        page.act(Action::Restarted(FIRST));
        page.settle(FIRST, 0);
        page.called(FIRST, &[1]);
        let mut asked = page.asked();
        assert_eq!(asked.split_off(asked.len() - 2), told(FIRST, "others [[2]]"));
        // (A step has no other ranks, but stays with them when it is left.)
        page.diagnosed(FIRST);
        page.act(Action::StepShown(FIRST, Some(StepWindow::default())));
        assert_eq!(page.asked(), [(FIRST, "diagnose".to_owned())]);
    }

    /// A run whose inputs are of this kind and whose batch has this size.
    fn run(kind: u8, batch: u8) -> Vec<u8> {
        vec![0xFF, kind, 0, 0, 0, 0, 0, 0, batch, 0, 0, 0]
    }

    #[test]
    fn runs_of_one_kind_are_told_of_each_other_where_their_batch_sizes_differ() {
        let told = |runs: &[Vec<u8>]| {
            let mut page = Page::default();
            for (at, scaling) in runs.iter().enumerate() {
                let job = JobId(at as u32 + 1);
                page.act(Action::Added(job, format!("{at}.json"), 10));
                page.act(Action::Selected(FIRST));
                let opened = Opened::default();
                page.act(said(Response::Opened { job, opened }));
                page.act(said(Response::Report { job, report: Analyses::default() }));
                page.act(said(Response::RepairPlanned { job, plan: Plan::default() }));
                page.act(said(Response::Triage { job, triage: Triage::default() }));
                let scaling = Shared::new(scaling.clone());
                let diagnosis = Diagnosis { scaling, ..Diagnosis::default() };
                page.act(said(Response::Diagnosed { job, diagnosis }));
            }
            let asked = page.asked();
            asked.into_iter().filter(|(_, what)| what.starts_with("others")).collect::<Vec<_>>()
        };
        let others = |runs: &[Vec<u8>]| vec![(FIRST, format!("others {runs:?}"))];
        assert_eq!(told(&[run(1, 8), run(1, 16)]), others(&[run(1, 16)]));
        let mut last = told(&[run(1, 8), run(1, 16), run(2, 32), run(1, 8)]);
        let last = last.split_off(last.len() - 1);
        assert_eq!(last, others(&[run(1, 16), run(1, 8)]), "all runs of this kind");
        assert_eq!(told(&[run(1, 8), run(2, 16), Vec::new()]), [], "of another kind");
        assert_eq!(told(&[run(1, 8), run(1, 8)]), [], "one size has nothing to compare");
        assert_eq!(told(&[Vec::new(), Vec::new()]), [], "no sizes");
    }
}
