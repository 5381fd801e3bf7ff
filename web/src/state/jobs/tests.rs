//! Reading, stopping and losing workers, and what files tell each other, by the effects of each action.

use super::*;
use crate::protocol::{
    Analyses, Aside, BeforeWindowSum, Comparison, Diagnosis, EventRange, Format, KernelKey, Opened,
    Response, StepWindow,
};
use crate::state::effect::Purpose;
use crate::state::testing::{JOB, OTHER, Page};
use crate::state::{Action, Role};

#[test]
fn a_file_is_analysed_first_and_triage_is_loaded_once_the_repair_is_planned() {
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "1.json".into(), 100));
    assert_eq!(page.effects[0], Effect::Start(JOB, Program::First));
    assert_eq!(page.posted(), ["analyze"]);
    page.hear(Response::Opened { job: JOB, opened: Opened::default() });
    assert!(page.effects.is_empty());
    page.hear(Response::Report { job: JOB, report: Analyses::default() });
    assert_eq!(page.posted(), ["plan"], "once the tables are drawn");
    page.hear(Response::RepairPlanned { job: JOB, plan: Plan::default() });
    assert_eq!(page.effects[0], Effect::Start(JOB, Program::Triage));
    assert_eq!(page.posted(), ["triage"]);
    page.hear(Response::Triage { job: JOB, triage: Triage::default() });
    assert!(page.file(JOB).phase == Phase::Ready);
    assert_eq!(page.posted(), ["diagnose"], "it follows from triage, and nothing waits for it");
    page.hear(Response::Diagnosed { job: JOB, diagnosis: Diagnosis::default() });
    assert!(page.file(JOB).diagnosis.ready().is_some() && page.effects.is_empty());
}

#[test]
fn the_plan_waits_for_the_first_tables_unless_something_follows_from_it() {
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "1.json".into(), 100));
    page.hear(Response::Opened { job: JOB, opened: Opened::default() });
    let report = Response::Report { job: JOB, report: Analyses::default() };
    let report = || Action::Received(RequestId::default(), Box::new(report.clone()));
    let (drawing, effects) = crate::state::reduce(&page.state, report());
    assert_eq!(effects, [Effect::Watch(JOB)]);
    page.state = drawing.clone();
    page.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
    assert_eq!(page.posted(), ["plan", "repair"]);
    assert!(page.act(Action::Drawn(JOB)).effects.is_empty(), "it is asked for once");
    page.state = drawing;
    page.act(Action::Cancelled(JOB));
    assert!(page.act(Action::Drawn(JOB)).effects.is_empty(), "a file that was stopped meanwhile");
    page.act(Action::Restarted(JOB));
    assert!(page.act(Action::Drawn(JOB)).effects.is_empty(), "or is read again");
}

#[test]
fn a_diagnosis_of_a_former_reading_is_not_stored() {
    let mut page = Page::ready();
    let stale = page.file(JOB).diagnosis.pending().unwrap();
    page.act(Action::Restarted(JOB));
    let diagnosis = Diagnosis::default();
    page.act(Action::Received(stale, Box::new(Response::Diagnosed { job: JOB, diagnosis })));
    assert_eq!(page.file(JOB).diagnosis, Remote::Idle);
}

#[test]
fn a_step_asks_for_the_diagnosis_again_and_the_list_of_steps_stays() {
    let mut page = Page::ready();
    let step = |name: &str| StepWindow { name: name.into(), ..StepWindow::default() };
    let whole = Diagnosis { steps: vec![step("a"), step("b")], ..Diagnosis::default() };
    page.hear(Response::Diagnosed { job: JOB, diagnosis: whole });
    page.act(Action::StepShown(JOB, Some(step("a"))));
    assert_eq!(page.posted(), ["diagnose"]);
    let first = page.file(JOB).diagnosis.pending().unwrap();
    page.act(Action::StepShown(JOB, Some(step("b"))));
    let stale = Response::Diagnosed { job: JOB, diagnosis: Diagnosis::default() };
    page.act(Action::Received(first, Box::new(stale)));
    assert!(page.file(JOB).diagnosis.ready().is_none(), "that of another step");
    assert!(page.file(JOB).shown_triage().is_none(), "not that of the whole file");
    let triage = Some(Triage { blocked_ns: 7, ..Triage::default() });
    page.hear(Response::Diagnosed {
        job: JOB,
        diagnosis: Diagnosis { triage: triage.map(Box::new), ..Diagnosis::default() },
    });
    assert_eq!(page.file(JOB).shown_triage().map(|triage| triage.blocked_ns), Some(7));
    assert!(page.file(JOB).diagnosis.ready().is_some());
    assert_eq!(page.file(JOB).steps.len(), 2, "a narrowed one has none");
    page.act(Action::StepShown(JOB, Some(step("b"))));
    assert!(page.posted().is_empty(), "it is shown already");
}

#[test]
fn a_worker_that_was_ended_is_started_again_and_plans_first() {
    let mut page = Page::ready();
    page.act(Action::Cancelled(JOB));
    assert_eq!(page.effects, [Effect::End(JOB)]);
    page.act(Action::RepairAsked(JOB, Format::Gzip, Purpose::Download));
    assert_eq!(page.effects[0], Effect::Start(JOB, Program::First));
    assert_eq!(page.posted(), ["plan", "repair"]);
    page.hear(Response::Opened { job: JOB, opened: Opened::default() });
    page.hear(Response::RepairPlanned { job: JOB, plan: Plan::default() });
    assert!(page.posted().is_empty(), "its triage is there");
}

#[test]
fn a_file_that_is_stopped_during_triage_asks_nothing_until_it_is_read_again() {
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "1.json".into(), 100));
    page.hear(Response::Opened { job: JOB, opened: Opened::default() });
    page.hear(Response::Report { job: JOB, report: Analyses::default() });
    page.hear(Response::RepairPlanned { job: JOB, plan: Plan::default() });
    let pending = page.file(JOB).ledger.asked.triage.unwrap();
    page.act(Action::Cancelled(JOB));
    assert_eq!(page.effects, [Effect::End(JOB)]);
    assert_eq!(page.file(JOB).phase, Phase::Cancelled);
    let late = Response::Triage { job: JOB, triage: Triage::default() };
    page.act(Action::Received(pending, Box::new(late)));
    assert!(page.file(JOB).triage.is_none() && page.file(JOB).phase == Phase::Cancelled);
    page.act(Action::RepairAsked(JOB, Format::Gzip, Purpose::Download));
    page.hear(Response::RepairPlanned { job: JOB, plan: Plan::default() });
    assert_eq!(page.posted(), ["triage"], "it never had one");
    page.act(Action::Cancelled(JOB)).act(Action::Restarted(JOB));
    page.settle(JOB);
    assert_eq!(page.file(JOB).phase, Phase::Ready);
}

#[test]
fn a_related_file_is_read_before_the_triage_that_needs_it() {
    let mut page = Page::reading();
    assert_eq!(page.posted(), ["add", "triage"]);
    assert_eq!(page.file(JOB).ledger.asked.unread, [OTHER]);
    page.hear(Response::Companion { job: JOB, companion: OTHER, failure: None });
    page.hear(Response::Triage { job: JOB, triage: Triage::default() });
    assert!(page.file(JOB).phase == Phase::Ready && page.file(JOB).ledger.asked.unread.is_empty());
    page.act(Action::KernelAsked(JOB, KernelKey::default()));
    assert_eq!(page.posted(), ["kernel"], "the worker knows it");
    page.act(Action::RoleSet(OTHER, Role::Own));
    assert_eq!(page.posted(), ["remove", "triage"]);
}

#[test]
fn a_crash_while_reading_a_related_file_goes_on_without_it() {
    let mut page = Page::reading();
    page.lose(JOB);
    assert_eq!(page.effects[0], Effect::End(JOB));
    assert_eq!(page.posted(), ["plan", "triage"], "without the file");
    let file = page.file(JOB);
    assert!(matches!(file.companions[0].phase, CompanionPhase::Failed(_)) && file.is_busy());
    page.settle(JOB);
    assert_eq!(page.file(JOB).phase, Phase::Ready);
    // A person may try it again: then it is sent again.
    page.act(Action::CompanionRetried(JOB, OTHER));
    assert_eq!(page.posted(), ["add", "triage"]);
    // Another reading of the file begins with a clean record.
    page.lose(JOB).act(Action::Restarted(JOB));
    assert!(page.file(JOB).ledger.crashed_on.is_empty());
}

#[test]
fn a_crash_while_reading_the_file_itself_is_the_end_of_it() {
    let mut page = Page::reading();
    page.act(Action::Cancelled(JOB)).act(Action::CompanionRetried(JOB, OTHER));
    assert_eq!(page.posted(), ["plan", "add", "triage"], "by new workers");
    page.lose(JOB);
    assert!(matches!(page.file(JOB).phase, Phase::Failed(_)));
    assert!(page.posted().is_empty());
}

#[test]
fn of_two_files_one_loses_its_worker_and_the_other_goes_on() {
    let mut page = Page::pair();
    page.act(Action::RepairAsked(OTHER, Format::Gzip, Purpose::Download));
    page.lose(JOB);
    assert_eq!(page.effects, [Effect::End(JOB)]);
    assert!(matches!(page.file(JOB).phase, Phase::Failed(_)));
    assert!(page.file(OTHER).repair.pending().is_some() && page.file(OTHER).phase == Phase::Ready);
    page.act(Action::Removed(JOB));
    assert_eq!(page.effects, [Effect::Close(JOB)]);
    page.lose(OTHER);
    assert!(matches!(page.file(OTHER).repair, Remote::Failed(_)), "the views stay");
    assert_eq!(page.file(OTHER).phase, Phase::Ready);
}

/// The other file is what the first one is compared with.
fn comparing() -> Page {
    let mut page = Page::pair();
    page.act(Action::RoleSet(OTHER, Role::Baseline(JOB)));
    page
}

#[test]
fn a_comparison_waits_for_the_description_of_the_other_run() {
    let mut page = comparing();
    assert_eq!(page.posted(), ["describe"]);
    assert!(matches!(page.effects[0], Effect::Post(_, Request::Describe { job: OTHER })));
    page.hear(Response::Described { job: OTHER, run: Ok(Vec::new()) });
    assert!(matches!(
        page.effects[..],
        [Effect::Post(_, Request::Compare { job: JOB, with: OTHER, .. })]
    ));
    let comparison = Ok(Comparison::default());
    page.hear(Response::Compared { job: JOB, with: OTHER, comparison });
    assert!(matches!(page.file(JOB).comparison, Some((OTHER, Remote::Ready(_)))));
    assert!(page.act(Action::DragOver(false)).effects.is_empty(), "it is not made twice");
}

#[test]
fn a_run_that_cannot_be_described_fails_the_comparison() {
    let mut page = comparing();
    page.hear(Response::Described { job: OTHER, run: Err(Failure::default()) });
    assert!(page.effects.is_empty());
    assert!(matches!(page.file(JOB).comparison, Some((OTHER, Remote::Failed(_)))));
}

#[test]
fn a_comparison_whose_other_run_lost_its_worker_begins_again_with_it() {
    let mut page = comparing();
    let stale = page.file(JOB).comparison.as_ref().unwrap().1.pending().unwrap();
    page.lose(OTHER);
    assert_eq!(page.file(JOB).comparison, Some((OTHER, Remote::Idle)));
    page.act(Action::Restarted(OTHER));
    page.settle(OTHER);
    assert_eq!(page.posted(), ["diagnose", "describe"]);
    let late = Response::Described { job: OTHER, run: Ok(Vec::new()) };
    page.act(Action::Received(stale, Box::new(late)));
    assert!(page.effects.is_empty(), "that was asked of the former worker");
}

#[test]
fn what_counts_is_asked_for_once_and_the_former_answer_is_not_shown() {
    let triage = |counted| {
        let before_window = BeforeWindowSum { n_slices: 463, counted, total_ns: 1 };
        Triage { before_window, ..Triage::default() }
    };
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "1.json".into(), 100));
    page.settle_with(JOB, triage(false));
    page.act(Action::BeforeWindowSet(true));
    assert_eq!(page.posted(), ["triage"]);
    let stale = page.file(JOB).ledger.asked.triage.unwrap();
    assert!(page.act(Action::DragOver(true)).posted().is_empty(), "it is on its way");
    page.act(Action::BeforeWindowSet(false)).act(Action::BeforeWindowSet(true));
    page.act(Action::CompanionRetried(JOB, OTHER));
    let answer = Response::Triage { job: JOB, triage: triage(true) };
    page.act(Action::Received(stale, Box::new(answer.clone())));
    assert!(page.file(JOB).is_busy(), "another one was asked for since");
    page.hear(answer);
    assert_eq!(page.file(JOB).phase, Phase::Ready);
}

#[test]
fn a_file_that_is_no_trace_is_read_by_the_second_worker_and_then_needs_none() {
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "map.json".into(), 100));
    page.hear(Response::NoTrace { job: JOB, reader: Program::Triage });
    assert_eq!(page.effects, [Effect::End(JOB), Effect::Start(JOB, Program::Triage)]);
    let aside = Aside::Captures(Vec::new());
    page.hear(Response::Aside { job: JOB, aside });
    assert_eq!(page.effects, [Effect::End(JOB)]);
    assert!(!page.file(JOB).is_busy());
}

#[test]
fn a_large_snapshot_is_read_once_a_person_says_how_much_of_it() {
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "large.json.gz".into(), 200 << 20));
    page.hear(Response::NoTrace { job: JOB, reader: Program::Snapshot });
    assert_eq!(page.effects, [Effect::End(JOB)]);
    assert_eq!(page.file(JOB).phase, Phase::Asking);
    let events = EventRange { from: 0, to: Some(500) };
    page.act(Action::EventsChosen(JOB, events));
    assert_eq!(page.effects, [Effect::End(JOB), Effect::StartEvents(JOB, events)]);
    assert!(page.file(JOB).is_busy());
    // A second try reads the same part.
    page.lose(JOB);
    page.act(Action::Restarted(JOB));
    page.hear(Response::NoTrace { job: JOB, reader: Program::Snapshot });
    assert_eq!(page.effects, [Effect::End(JOB), Effect::StartEvents(JOB, events)]);
    // All of it is a choice, too.
    page.act(Action::EventsChosen(JOB, EventRange::default()));
    assert_eq!(page.effects[1], Effect::StartEvents(JOB, EventRange::default()));
}

#[test]
fn a_small_snapshot_is_read_at_once_and_a_part_of_it_when_asked() {
    let mut page = Page::empty();
    page.act(Action::Added(JOB, "small.json.gz".into(), 1 << 20));
    page.hear(Response::NoTrace { job: JOB, reader: Program::Snapshot });
    assert_eq!(page.effects, [Effect::End(JOB), Effect::Start(JOB, Program::Snapshot)]);
    let events = EventRange { from: 3, to: None };
    page.act(Action::EventsChosen(JOB, events));
    assert_eq!(page.effects, [Effect::End(JOB), Effect::StartEvents(JOB, events)]);
    // Of a trace there are no such events.
    page.act(Action::Added(OTHER, "run.json".into(), 1 << 20));
    page.act(Action::EventsChosen(OTHER, events));
    assert!(page.effects.is_empty());
}
