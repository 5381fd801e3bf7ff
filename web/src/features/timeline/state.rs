//! The timeline below a view, which follows the row that is selected in a table of the view; and other files below the timeline, on
//! its clock.

use super::queries::clock;
use crate::protocol::{Input, JobId};
use crate::state::lanes;
use crate::state::next::Next;
use crate::state::{Sought, View};

/// Another file below the timeline of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beneath {
    /// The other file.
    pub job: JobId,
    /// From the first slice of the file above to its own, in ns, if a person set that.
    pub by_hand_ns: Option<i64>,
}

/// What a person does to the files below a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another one is shown.
    Added,
    /// It is shown no longer.
    Removed,
    /// It begins at another time, or where its default is.
    Placed(Option<i64>),
}

/// A person changes what is below the timeline of a file.
pub(crate) fn change(next: &mut Next, job: JobId, other: JobId, change: Change) {
    if job == other || next.state.file(other).is_none() {
        return;
    }
    next.update(job, |file| {
        let known = file.beneath.iter_mut().find(|beneath| beneath.job == other);
        match (change, known) {
            (Change::Added, None) => file.beneath.push(Beneath { job: other, by_hand_ns: None }),
            (Change::Placed(by_hand_ns), Some(known)) => known.by_hand_ns = by_hand_ns,
            (Change::Removed, _) => file.beneath.retain(|beneath| beneath.job != other),
            _ => {}
        }
    });
}

/// A file was closed: it is below no other one.
pub(crate) fn closed(next: &mut Next, job: JobId) {
    let is_below = |beneath: &Beneath| beneath.job == job;
    let above = next.state.files.iter().filter(|file| file.beneath.iter().any(is_below));
    let above: Vec<JobId> = above.map(|file| file.job).collect();
    for file in above {
        next.update(file, |file| file.beneath.retain(|beneath| !is_below(beneath)));
    }
}

/// Has the lanes of the file that is shown drawn, and of those below it, and tells each picture its axis where that has changed.
pub(crate) fn draw(next: &mut Next) {
    let shown = next.state.selected_file().filter(|_| next.state.shows_timeline());
    let Some(own) = shown.cloned() else { return };
    lanes::draw(next, own.job);
    for beneath in &own.beneath {
        lanes::draw(next, beneath.job);
    }
    for (job, axis) in clock::axes(&next.state, &own) {
        if next.state.file(job).is_some_and(|file| file.axis != axis) {
            next.update(job, |file| file.axis.clone_from(&axis));
            lanes::look(next, job, Input::Axis(axis));
        }
    }
}

/// Selects the range of the address in a timeline that is shown. (One that is not yet read is told when it is.)
pub(crate) fn to_range(next: &mut Next) {
    let shown = next.state.selected_file().filter(|_| next.state.shows_timeline());
    let Some(file) = shown.filter(|file| file.lanes.ready().is_some()) else { return };
    let (job, seen) = (file.job, file.seen.as_ref().and_then(|seen| seen.range));
    let wanted = next.state.range.take();
    if seen != wanted {
        lanes::look(next, job, Input::Range(wanted));
    }
}

/// What a selected row is about, and the file and view of its table.
pub type Followed = (JobId, View, Sought);

/// A row of a table was selected.
pub(crate) fn follow(next: &mut Next, sought: Sought) {
    let view = next.state.view;
    next.state.followed = next.state.selected.map(|job| (job, view, sought));
    catch_up(next);
}

/// The timeline is below the views, or no longer.
pub(crate) fn dock(next: &mut Next, docked: bool) {
    next.state.docked = docked;
    catch_up(next);
}

/// Shows what was selected last, once, if that is in the view above the timeline.
fn catch_up(next: &mut Next) {
    let state = &next.state;
    // (A table of the timeline itself changes with every slice that is selected.)
    let shown = state.docked && state.view != View::Timeline;
    let place = (state.selected, state.view);
    if let Some((job, view, sought)) = next.state.followed.take_if(|_| shown)
        && place == (Some(job), view)
    {
        lanes::show(next, sought);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::protocol::{
        Analyses, Aside, Charted, Format, LanesFacts, Looked, Opened, Plan, Program, Request,
        Response, Triage,
    };
    use crate::queries::address::Address;
    use crate::shared::Shared;
    use crate::state::testing::{said, step};
    use crate::state::{Action, Effect, FileEntry, Phase, Purpose, Remote, State};

    const FIRST: JobId = JobId(1);
    const SECOND: JobId = JobId(2);
    /// Two moments of one clock, in ns since 1970.
    const AT: i64 = 1_700_000_000_000_000_000;

    /// Where an axis begins and ends, and its offset.
    type Axis = (i64, i64, i64);

    struct Page {
        state: State,
        effects: Vec<Effect>,
    }

    impl Page {
        /// Two files are open; the timeline of the first is shown, and read.
        fn two() -> Self {
            let mut page = Self { state: State::default(), effects: Vec::new() };
            for job in [FIRST, SECOND] {
                page.act(Action::Added(job, format!("rank{}.json", job.0), 10));
                page.act(said(Response::Opened { job, opened: Opened::default() }));
                page.act(said(Response::Report { job, report: Analyses::default() }));
                page.act(said(Response::RepairPlanned { job, plan: Plan::default() }));
                page.act(said(Response::Triage { job, triage: Triage::default() }));
            }
            page.act(Action::Selected(FIRST));
            page.act(Action::Shown(View::Timeline));
            page.read(FIRST, AT, 1_000);
            page.effects.clear();
            page
        }

        fn act(&mut self, action: Action) {
            let (state, effects) = step(&self.state, action);
            self.state = state;
            self.effects.extend(effects);
        }

        fn change(&mut self, change: Change) {
            self.act(Action::Beneath(FIRST, SECOND, change));
        }

        /// The lanes of a file are read.
        fn read(&mut self, job: JobId, starts_ns: i64, span_ns: i64) {
            let starts_ns = Some(starts_ns);
            let facts = LanesFacts { starts_ns, span_ns, ..LanesFacts::default() };
            self.act(said(Response::Lanes { job, lanes: Ok(facts) }));
        }

        /// The axes that were told since it was looked at last.
        fn axes(&mut self) -> Vec<(JobId, Option<Axis>)> {
            let told = |effect: Effect| match effect {
                Effect::Post(_, Request::Look { job, input: Input::Axis(axis), .. }) => {
                    Some((job, axis.map(|axis| (axis.from, axis.to, axis.offset))))
                }
                _ => None,
            };
            std::mem::take(&mut self.effects).into_iter().filter_map(told).collect()
        }

        fn file(&self, job: JobId) -> &Shared<FileEntry> {
            self.state.file(job).expect("it is open")
        }
    }

    #[test]
    fn a_file_below_is_read_and_both_have_one_axis() {
        let mut page = Page::two();
        page.change(Change::Added);
        assert!(page.effects.contains(&Effect::Start(SECOND, Program::Lanes)));
        assert_eq!(page.axes(), [], "it is not read yet");
        page.read(SECOND, AT - 300, 500);
        let both = [(FIRST, Some((-300, 1_000, 0))), (SECOND, Some((0, 1_300, -300)))];
        assert_eq!(page.axes(), both);
        page.change(Change::Added);
        assert_eq!((page.axes(), page.file(FIRST).beneath.len()), (vec![], 1), "it is there");
        assert_eq!(clock::followers(&page.state, FIRST), [(SECOND, 300)]);
        assert_eq!(clock::followers(&page.state, SECOND), [(FIRST, -300)]);
    }

    #[test]
    fn the_range_of_an_address_is_told_once_and_one_that_is_seen_is_not() {
        let go = |hash: &str| Action::Addressed(Address::of_step(hash));
        let told = |page: &mut Page| -> Vec<Option<(i64, i64)>> {
            let range = |effect| match effect {
                Effect::Post(_, Request::Look { input: Input::Range(range), .. }) => Some(range),
                _ => None,
            };
            std::mem::take(&mut page.effects).into_iter().filter_map(range).collect()
        };
        let mut page = Page::two();
        page.act(go("#v=1&view=timeline&range=5..90"));
        assert_eq!(told(&mut page), [Some((5, 90))]);
        let looked = Looked { range: Some((5, 90)), ..Looked::default() };
        page.act(said(Response::Looked { job: FIRST, program: Program::Lanes, looked }));
        page.act(go("#v=1&view=timeline&range=5..90"));
        page.act(go("#v=1&view=overview"));
        assert_eq!(told(&mut page), [], "it is seen, and then no timeline is shown");
        page.act(go("#v=1&view=timeline"));
        assert_eq!(told(&mut page), [None], "back to the timeline without a range");
        page.act(Action::Selected(SECOND));
        page.act(go("#v=1&view=timeline&range=1..2"));
        assert_eq!(told(&mut page), [], "the other file is not read");
    }

    #[test]
    fn the_range_of_a_link_waits_for_the_file() {
        let mut page = Page { state: State::default(), effects: Vec::new() };
        page.state = crate::queries::page::addressed(page.state, "#v=1&view=timeline&range=5..90");
        page.act(Action::Added(FIRST, "a.json".to_owned(), 10));
        page.act(said(Response::Opened { job: FIRST, opened: Opened::default() }));
        let is_range = |effect: &Effect| {
            matches!(
                effect,
                Effect::Post(_, Request::Look { input: Input::Range(Some((5, 90))), .. })
            )
        };
        assert_eq!(page.effects.iter().filter(|effect| is_range(effect)).count(), 1);
        assert_eq!(page.state.range, None);
    }

    #[test]
    fn an_offset_by_hand_moves_both_axes_until_it_is_reset() {
        let mut page = Page::two();
        page.change(Change::Added);
        page.read(SECOND, AT + 200, 500);
        page.axes();
        page.change(Change::Placed(Some(5_000)));
        let moved = [(FIRST, Some((0, 5_500, 0))), (SECOND, Some((-5_000, 500, 5_000)))];
        assert_eq!(page.axes(), moved);
        let below = &clock::together(&page.state, FIRST).below[0];
        assert_eq!((below.offset_ns, below.is_by_hand), (Some(5_000), true));
        assert_eq!(below.said, "Set by hand. Without that 200 ns: By the clocks of both files.");
        page.change(Change::Placed(None));
        let reset = [(FIRST, Some((0, 1_000, 0))), (SECOND, Some((-200, 800, 200)))];
        assert_eq!(page.axes(), reset);
    }

    #[test]
    fn what_is_removed_or_closed_leaves_the_file_with_its_own_axis() {
        let mut page = Page::two();
        page.change(Change::Added);
        page.read(SECOND, AT, 500);
        page.axes();
        page.change(Change::Removed);
        assert_eq!(page.axes(), [(FIRST, None)]);
        assert!(clock::followers(&page.state, FIRST).is_empty());
        // It is told its own axis where it is shown for itself.
        page.act(Action::Selected(SECOND));
        assert_eq!(page.axes(), [(SECOND, None)]);
        page.act(Action::Selected(FIRST));
        page.change(Change::Added);
        assert_eq!(page.axes().len(), 2);
        page.act(Action::Removed(SECOND));
        assert_eq!(page.axes(), [(FIRST, None)]);
        assert!(page.file(FIRST).beneath.is_empty());
    }

    #[test]
    fn a_worker_that_was_ended_is_told_its_axis_again() {
        let mut page = Page::two();
        page.change(Change::Added);
        page.read(SECOND, AT, 500);
        page.axes();
        page.act(Action::Cancelled(SECOND));
        assert_eq!(page.axes(), [(FIRST, None)], "nothing is below that is read");
        page.act(Action::Restarted(SECOND));
        page.act(said(Response::Opened { job: SECOND, opened: Opened::default() }));
        page.read(SECOND, AT, 500);
        assert_eq!(page.axes().len(), 2);
    }

    const SNAPSHOT: JobId = JobId(3);

    fn aside(has_times: bool) -> Action {
        let aside = Aside::Snapshot {
            is_timeline: false,
            summary: String::new(),
            chapters: Vec::new(),
            charts: vec![Charted { has_times, ..Charted::default() }],
            summed: Vec::new(),
            run: Vec::new(),
        };
        said(Response::Aside { job: SNAPSHOT, aside })
    }

    /// How often the memory of the snapshot was asked for since it was looked at last.
    fn n_asked(page: &mut Page) -> usize {
        let is_asked = |effect: &Effect| matches!(effect, Effect::Post(_, Request::Levels { job }) if *job == SNAPSHOT);
        std::mem::take(&mut page.effects).iter().filter(|effect| is_asked(effect)).count()
    }

    #[test]
    fn the_memory_of_a_snapshot_is_below_a_trace_once_its_program_has_written_it_down() {
        let mut page = Page::two();
        page.act(Action::Added(SNAPSHOT, "snapshot.json".to_owned(), 10));
        page.act(Action::Selected(FIRST));
        page.act(aside(false));
        assert_eq!(clock::together(&page.state, FIRST).others.len(), 1, "it has no times");
        page.act(aside(true));
        assert_eq!(clock::together(&page.state, FIRST).others.len(), 2);
        page.act(Action::Beneath(FIRST, SNAPSHOT, Change::Added));
        assert_eq!(n_asked(&mut page), 1);
        page.act(said(Response::Levels { job: SNAPSHOT, recorded: vec![1] }));
        assert!(page.effects.contains(&Effect::Load(SNAPSHOT, Program::Lanes)));
        page.axes();
        page.read(SNAPSHOT, AT, 2_000);
        assert_eq!(page.axes().len(), 2);
    }

    #[test]
    fn a_worker_that_crashed_is_asked_for_no_picture_until_its_file_is_read_again() {
        let mut page = Page::two();
        page.act(Action::Added(SNAPSHOT, "snapshot.json".to_owned(), 10));
        page.act(Action::Selected(FIRST));
        page.act(aside(true));
        page.act(Action::Beneath(FIRST, SNAPSHOT, Change::Added));
        page.change(Change::Added);
        page.effects.clear();
        for job in [SNAPSHOT, SECOND] {
            page.act(Action::WorkerLost(job, Rc::default()));
            page.act(Action::Selected(FIRST));
            assert!(matches!(page.file(job).phase, Phase::Failed(_)), "it says what happened");
            assert_eq!(page.file(job).lanes, Remote::Idle);
        }
        assert!(!page.effects.contains(&Effect::Start(SECOND, Program::Lanes)));
        assert_eq!(n_asked(&mut page), 0);
        page.act(Action::Restarted(SNAPSHOT));
        page.act(aside(true));
        assert_eq!(n_asked(&mut page), 1);
    }

    #[test]
    fn a_picture_that_ended_with_a_repair_is_drawn_again() {
        let mut page = Page::two();
        page.act(Action::RepairAsked(FIRST, Format::Gzip, Purpose::Download));
        page.effects.clear();
        page.act(Action::Cancelled(FIRST));
        assert!(page.effects.contains(&Effect::Start(FIRST, Program::Lanes)));
        page.read(FIRST, AT, 1_000);
        assert!(page.file(FIRST).lanes.ready().is_some());
    }

    #[test]
    fn a_file_is_not_below_itself_nor_one_that_is_closed() {
        let mut page = Page::two();
        page.act(Action::Beneath(FIRST, FIRST, Change::Added));
        page.act(Action::Beneath(FIRST, JobId(7), Change::Added));
        assert!(page.file(FIRST).beneath.is_empty());
        let together = clock::together(&page.state, FIRST);
        assert_eq!(together.others, [(SECOND, "rank2.json".to_owned())]);
    }
}
