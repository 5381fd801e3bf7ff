//! Every decision about workers, by the effects that it has.

use std::rc::Rc;

use kinetoscope::artifacts::{ARCHIVE, KERNELS, SUMMARY};

use super::*;
use crate::protocol::{
    Analyses, Aside, BeforeWindowSum, Chapter, Companion, Comparison, Diagnosis, EventRange, Input,
    KernelDetails, LanesFacts, Looked, MemoryPictures, Opened, OverlapWindow, Response, StepWindow,
    Surface,
};
use crate::state::testing::{said, step};
use crate::state::{Action, Role, Sought, State};

const JOB: JobId = JobId(1);
const OTHER: JobId = JobId(2);

/// A page, and the effects of its last action.
struct Page {
    state: State,
    effects: Vec<Effect>,
}

impl Page {
    fn new() -> Self {
        Self { state: State::default(), effects: Vec::new() }
    }

    /// One file that is triaged.
    fn ready() -> Self {
        let mut page = Self::new();
        page.act(Action::Added(JOB, "1.json".into(), 100));
        page.settle(JOB);
        page
    }

    /// Two of them.
    fn pair() -> Self {
        let mut page = Self::ready();
        page.act(Action::Added(OTHER, "2.json".into(), 100));
        page.settle(OTHER);
        page
    }

    /// A file whose worker reads another one.
    fn reading() -> Self {
        let mut page = Self::pair();
        page.act(Action::RoleSet(OTHER, Role::Companion(Companion::Mapping, JOB)));
        page
    }

    fn act(&mut self, action: Action) -> &mut Self {
        (self.state, self.effects) = step(&self.state, action);
        self
    }

    /// The worker answers whatever is pending.
    fn hear(&mut self, response: Response) -> &mut Self {
        self.act(said(response))
    }

    /// The workers answer everything up to triage.
    fn settle(&mut self, job: JobId) {
        self.settle_with(job, Triage::default());
    }

    fn settle_with(&mut self, job: JobId, triage: Triage) {
        self.hear(Response::Opened { job, opened: Opened::default() });
        self.hear(Response::Report { job, report: Analyses::default() });
        self.hear(Response::RepairPlanned { job, plan: Plan::default() });
        self.hear(Response::Triage { job, triage });
    }

    fn file(&self, job: JobId) -> &FileEntry {
        self.state.file(job).unwrap()
    }

    /// The requests of the last action, by name.
    fn posted(&self) -> Vec<&'static str> {
        let name = |effect: &Effect| match effect {
            Effect::Post(_, request) => Some(match request {
                Request::Open { .. } => "open",
                Request::AddCompanion { .. } => "add",
                Request::RemoveCompanion { .. } => "remove",
                Request::Analyze { .. } => "analyze",
                Request::Triage { .. } => "triage",
                Request::RankCalls { .. } => "rank calls",
                Request::OtherRanks { .. } => "other ranks",
                Request::Describe { .. } => "describe",
                Request::Compare { .. } => "compare",
                Request::PlanRepair { clip_impossible: false, .. } => "plan",
                Request::PlanRepair { clip_impossible: true, .. } => "plan with clips",
                Request::Repair { .. } => "repair",
                Request::Kernel { .. } => "kernel",
                Request::Window { .. } => "window",
                Request::BenchmarkConfig { .. } => "benchmark config",
                Request::Benchmark { .. } => "benchmark",
                Request::Diagnose { .. } => "diagnose",
                Request::Look { .. } => "look",
                Request::Memory { .. } => "memory",
                Request::Told { .. } => "told",
                Request::Changes { .. } => "changes",
                Request::InTrace { .. } => "in trace",
                Request::Levels { .. } => "levels",
                Request::Artifacts { .. } => "artifacts",
            }),
            _ => None,
        };
        self.effects.iter().filter_map(name).collect()
    }

    fn write(&mut self) -> RequestId {
        self.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
        let id = self.file(JOB).repair.pending().unwrap();
        let clip_impossible = self.file(JOB).ledger.clip_impossible;
        self.hear(Response::Repaired { job: JOB, repaired: repaired(clip_impossible) });
        id
    }

    fn lose(&mut self, job: JobId) -> &mut Self {
        self.act(Action::WorkerLost(job, Rc::new(Failure::default())))
    }
}

fn repaired(clip_impossible: bool) -> Repaired {
    Repaired {
        format: Format::Json,
        bytes: 1,
        file_name: "1.repaired.json".into(),
        clip_impossible,
        proven: true,
        proof: Shared::default(),
    }
}

fn around(event: u32) -> OverlapWindow {
    OverlapWindow {
        device: String::new(),
        representative: event,
        start_ns: 0,
        end_ns: 1,
        file_start_ns: None,
        lanes: Vec::new(),
        n_left_out: 0,
    }
}

fn saved(effects: &[Effect]) -> Vec<(RequestId, &str)> {
    let of = |effect| match effect {
        &Effect::Save(BlobKey { id, .. }, ref name) => Some((id, name.as_str())),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

#[test]
fn a_file_is_analysed_first_and_triage_is_loaded_once_the_repair_is_planned() {
    let mut page = Page::new();
    page.act(Action::Added(JOB, "1.json".into(), 100));
    assert_eq!(page.effects[0], Effect::Start(JOB, Program::First));
    assert_eq!(page.posted(), ["analyze", "plan"]);
    page.hear(Response::Opened { job: JOB, opened: Opened::default() });
    page.hear(Response::Report { job: JOB, report: Analyses::default() });
    assert!(page.effects.is_empty());
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
fn a_benchmark_is_copied_or_the_reason_is_said() {
    let mut page = Page::ready();
    let asked = || Action::BenchmarkAsked("aten::mm".into());
    page.act(asked());
    assert_eq!(page.posted(), ["benchmark"]);
    let said = |script| Response::Benchmark { job: JOB, op: "aten::mm".into(), script };
    page.hear(said(Err("no sizes".into())));
    assert!(page.effects.is_empty());
    assert_eq!(page.state.notices[0].what, "aten::mm: no sizes.");
    page.act(asked()).hear(said(Ok("script".into())));
    let copy = Effect::CopyText("script".into(), "Copied a benchmark of aten::mm".into());
    assert_eq!(page.effects, [copy]);
}

#[test]
fn reading_again_clears_outputs_and_clips() {
    let mut page = Page::ready();
    page.act(Action::Replanning(JOB, true));
    assert_eq!(page.posted(), ["plan with clips"]);
    page.hear(Response::RepairPlanned { job: JOB, plan: Plan::default() });
    let written = page.write();
    page.act(Action::Cancelled(JOB)).act(Action::Restarted(JOB));
    assert!(page.effects.contains(&Effect::Drop(JOB, written)));
    assert_eq!(page.posted(), ["analyze", "plan"], "without clips");
    page.settle(JOB);
    page.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
    assert_eq!(page.posted(), ["repair"], "the former file is not saved");
}

#[test]
fn another_plan_lets_go_of_what_was_written_by_the_former_one() {
    let mut page = Page::ready();
    let written = page.write();
    assert_eq!(saved(&page.effects), [(written, "1.repaired.json")]);
    page.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
    assert_eq!(saved(&page.effects), [(written, "1.repaired.json")], "it is there");
    page.act(Action::LogAsked(JOB));
    assert_eq!(saved(&page.effects), [(written, "1.repaired.log.json")]);
    page.act(Action::Replanning(JOB, true));
    assert_eq!(page.effects[0], Effect::Drop(JOB, written));
    page.hear(Response::RepairPlanned { job: JOB, plan: Plan::default() });
    assert!(page.act(Action::LogAsked(JOB)).effects.is_empty());
    let clipped = page.write();
    assert_ne!(page.file(JOB).ledger.in_force().unwrap().plan, PlanNumber::default());
    assert_eq!(saved(&page.effects), [(clipped, "1.repaired.json")]);
}

#[test]
fn a_repaired_file_of_a_former_plan_is_neither_stored_nor_saved() {
    let mut page = Page::ready();
    page.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
    let stale = page.file(JOB).repair.pending().unwrap();
    page.act(Action::Replanning(JOB, true));
    let late = Response::Repaired { job: JOB, repaired: repaired(false) };
    page.act(Action::Received(stale, Box::new(late)));
    assert_eq!(page.effects, [Effect::Drop(JOB, stale)]);
    assert!(page.file(JOB).ledger.written.is_none() && page.file(JOB).repair == Remote::Idle);
}

#[test]
fn a_plan_that_was_asked_for_before_is_not_shown() {
    let mut page = Page::ready();
    page.act(Action::Replanning(JOB, true));
    let stale = page.file(JOB).ledger.asked.plan.unwrap();
    page.act(Action::Replanning(JOB, false));
    let plan = Plan { n_changes: 7, ..Plan::default() };
    page.act(Action::Received(stale, Box::new(Response::RepairPlanned { job: JOB, plan })));
    assert!(page.file(JOB).is_busy() && page.file(JOB).plan.as_ref().unwrap().n_changes == 0);
}

#[test]
fn the_answer_about_another_row_is_dropped() {
    let mut page = Page::ready();
    let key = |name: &str| KernelKey { kernel_name: name.into(), ..KernelKey::default() };
    page.act(Action::KernelAsked(JOB, key("a")));
    let first = page.file(JOB).kernel.pending().unwrap();
    page.act(Action::KernelAsked(JOB, key("b")));
    let answer = |name: &str| {
        let kernel = KernelDetails { key: key(name), ..KernelDetails::default() };
        Response::Kernel { job: JOB, kernel }
    };
    page.act(Action::Received(first, Box::new(answer("a"))));
    assert!(page.file(JOB).kernel.pending().is_some());
    page.hear(answer("b"));
    assert_eq!(page.file(JOB).kernel.ready().unwrap().key, key("b"));

    page.act(Action::WindowAsked(JOB, 3)).act(Action::Cancelled(JOB));
    assert_eq!(page.file(JOB).window, Remote::Idle, "nobody will answer");
    page.hear(Response::Window { job: JOB, window: around(3) });
    assert_eq!(page.file(JOB).window, Remote::Idle);
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
    let mut page = Page::new();
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
    let mut page = Page::new();
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

fn made(page: &mut Page, wish: &ArtifactWish, names: &[&str]) -> RequestId {
    let id = page.file(JOB).artifacts.pending().unwrap();
    let files = names.iter().map(|name| ArtifactFile { name: (*name).into(), bytes: 1 }).collect();
    let artifacts = Artifacts { wish: wish.clone(), files };
    page.hear(Response::Artifacts { job: JOB, artifacts });
    id
}

#[test]
fn artifacts_are_kept_as_long_as_they_are_what_is_wished_for() {
    let mut page = Page::ready();
    let wish = ArtifactWish::default();
    let ask = |name, wish: &ArtifactWish, what| {
        Action::ArtifactAsked(JOB, name, Box::new(wish.clone()), what)
    };
    page.act(ask(SUMMARY, &wish, Use::Copy));
    assert!(page.file(JOB).is_busy());
    let texts = made(&mut page, &wish, &[SUMMARY, KERNELS]);
    assert_eq!(page.effects, [Effect::Copy(BlobKey { job: JOB, id: texts, name: SUMMARY })]);
    page.act(ask(KERNELS, &wish, Use::Save));
    assert_eq!(saved(&page.effects), [(texts, KERNELS)], "it was made with the other");
    // More of the same wish is added; the archive has the texts, too.
    page.act(ask(ARCHIVE, &wish, Use::Save));
    let archive = made(&mut page, &wish, &[SUMMARY, ARCHIVE]);
    assert_eq!(saved(&page.effects), [(archive, ARCHIVE)]);
    let there = page.file(JOB).artifacts.ready().unwrap();
    let names: Vec<&str> = there.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, [SUMMARY, ARCHIVE, KERNELS]);
    // Another wish makes all of them stale.
    let other = ArtifactWish { keep_names: true, ..wish };
    page.act(ask(SUMMARY, &other, Use::Save));
    assert_eq!(page.posted(), ["artifacts"]);
    let last = made(&mut page, &other, &[SUMMARY]);
    assert_eq!(
        page.effects,
        [
            Effect::Drop(JOB, texts),
            Effect::Drop(JOB, archive),
            Effect::Save(BlobKey { job: JOB, id: last, name: SUMMARY }, SUMMARY.into())
        ]
    );
}

#[test]
fn perfetto_gets_the_file_when_it_is_written_or_at_once() {
    let mut page = Page::ready();
    page.act(Action::PerfettoOpened { job: JOB, blocked: false });
    assert_eq!(page.state.perfetto, PerfettoState::Writing(JOB));
    let repaired = Repaired { format: Format::Gzip, ..repaired(false) };
    page.hear(Response::Repaired { job: JOB, repaired });
    assert!(matches!(page.effects[..], [Effect::HandOver(..)]));
    page.act(Action::PerfettoOpened { job: JOB, blocked: false });
    assert!(matches!(page.effects[..], [Effect::HandOver(..)]), "it is there");
    page.act(Action::PerfettoOpened { job: JOB, blocked: true });
    assert!(page.effects.is_empty());
    assert_eq!(page.state.perfetto, PerfettoState::Blocked(JOB));
}

#[test]
fn a_file_that_is_no_trace_is_read_by_the_second_worker_and_then_needs_none() {
    let mut page = Page::new();
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
    let mut page = Page::new();
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
    let mut page = Page::new();
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

#[test]
fn the_digest_of_a_configuration_is_a_run_detail() {
    let mut page = Page::ready();
    page.act(Action::BenchmarkConfigChosen(b"{}".to_vec()));
    let [Effect::Post(_, Request::BenchmarkConfig { job: JOB, bytes })] = &page.effects[..] else {
        panic!("{:?}", page.effects)
    };
    assert_eq!(bytes, b"{}");
    page.hear(Response::BenchmarkConfig { job: JOB, digest: "sha256:1".into() });
    assert_eq!(page.state.form.facts["benchmark_config_hash"], "sha256:1");
}

#[test]
fn changes_since_an_earlier_snapshot_are_asked_of_the_later_one() {
    let mut page = Page::pair();
    for (job, byte) in [(JOB, 1), (OTHER, 2)] {
        let aside = Aside::Snapshot {
            is_timeline: false,
            summary: String::new(),
            chapters: Vec::new(),
            charts: Vec::new(),
            summed: vec![byte],
            run: Vec::new(),
        };
        page.hear(Response::Aside { job, aside });
    }
    page.act(Action::EarlierChosen(OTHER, Some(JOB)));
    assert_eq!(page.posted(), ["changes"]);
    let asked = page.effects.iter().find_map(|effect| match effect {
        Effect::Post(_, Request::Changes { job, earlier }) => Some((*job, earlier.clone())),
        _ => None,
    });
    assert_eq!(asked, Some((OTHER, vec![1])));
    page.hear(Response::Changes { job: OTHER, chapters: Vec::new() });
    assert!(
        page.file(OTHER)
            .changes
            .as_ref()
            .is_some_and(|(of, found)| *of == JOB && found.ready().is_some())
    );
    // Without a choice no answer is kept.
    page.act(Action::EarlierChosen(OTHER, None));
    assert!(page.file(OTHER).changes.is_none() && page.posted().is_empty());
    page.hear(Response::Changes { job: OTHER, chapters: Vec::new() });
    assert!(page.file(OTHER).changes.is_none());
}

#[test]
fn a_trace_is_asked_what_it_says_of_a_snapshot() {
    let mut page = Page::pair();
    let aside = Aside::Snapshot {
        is_timeline: false,
        summary: String::new(),
        chapters: Vec::new(),
        charts: Vec::new(),
        summed: Vec::new(),
        run: vec![7],
    };
    page.hear(Response::Aside { job: OTHER, aside });
    page.act(Action::TraceChosen(OTHER, Some(JOB)));
    let asked = page.effects.iter().find_map(|effect| match effect {
        Effect::Post(_, Request::InTrace { job, snapshot, run }) => {
            Some((*job, *snapshot, run.clone()))
        }
        _ => None,
    });
    assert_eq!(asked, Some((JOB, OTHER, vec![7])));
    let answer = Response::InTrace { job: JOB, snapshot: OTHER, chapter: Chapter::default() };
    page.hear(answer.clone());
    let said = |page: &Page| page.file(OTHER).in_trace.as_ref().map(|of| of.1.ready().is_some());
    assert_eq!(said(&page), Some(true));
    page.act(Action::TraceChosen(OTHER, None));
    assert_eq!(said(&page), None);
    page.hear(answer);
    assert_eq!(said(&page), None, "nobody asks any more");
}

#[test]
fn memory_of_a_trace_is_drawn_when_its_view_is_shown_and_again_by_a_new_worker() {
    let mut page = Page::ready();
    page.act(Action::Shown(View::Memory));
    assert!(page.posted().is_empty(), "nothing is known of its memory");
    let diagnosis = Diagnosis { memory: vec![7], ..Diagnosis::default() };
    page.hear(Response::Diagnosed { job: JOB, diagnosis });
    assert_eq!(page.posted(), ["memory"]);
    let is_loaded = |page: &Page| page.effects.contains(&Effect::Load(JOB, Program::Snapshot));
    assert!(is_loaded(&page));
    page.act(Action::Shown(View::Memory));
    assert!(page.posted().is_empty() && !is_loaded(&page), "it is drawn once");
    page.hear(Response::Memory { job: JOB, pictures: MemoryPictures::default() });
    assert!(page.file(JOB).memory.ready().is_some());
    // A step has no memory of its own: that of the whole file stays.
    let step = StepWindow { name: "s".into(), start_ns: 0, end_ns: 1 };
    page.act(Action::StepShown(JOB, Some(step)));
    page.hear(Response::Diagnosed { job: JOB, diagnosis: Diagnosis::default() });
    assert_eq!(page.file(JOB).recorded_memory.to_vec(), [7]);
    // Ended workers take the picture along; the next reading of the file brings it back.
    page.act(Action::Cancelled(JOB));
    assert!(page.file(JOB).memory == Remote::Idle && page.posted().is_empty());
    page.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
    assert!(page.posted().contains(&"memory"), "{:?}", page.posted());
}

#[test]
fn the_timeline_is_read_when_its_view_is_shown_and_again_by_a_new_worker() {
    let mut page = Page::ready();
    let starts = |page: &Page| page.effects.contains(&Effect::Start(JOB, Program::Lanes));
    assert!(!starts(&page));
    page.act(Action::Shown(View::Timeline));
    assert!(starts(&page));
    page.act(Action::Shown(View::Overview));
    page.act(Action::Shown(View::Timeline));
    assert!(!starts(&page), "it is read once");
    let facts = LanesFacts { says: "3 slices".into(), ..LanesFacts::default() };
    page.hear(Response::Lanes { job: JOB, lanes: Ok(facts) });
    assert_eq!(page.file(JOB).lanes.ready().map(|facts| &*facts.says), Some("3 slices"));
    let looked = Looked { says: "a slice".into(), ..Looked::default() };
    page.hear(Response::Looked { job: JOB, program: Program::Lanes, looked });
    assert!(page.file(JOB).seen.is_some() && page.file(JOB).looked.is_none());
    page.act(Action::Cancelled(JOB));
    assert!(page.file(JOB).lanes == Remote::Idle && page.file(JOB).seen.is_none());
}

#[test]
fn a_slice_is_shown_in_the_timeline_which_is_read_first() {
    let mut page = Page::ready();
    page.act(Action::InTimeline(Sought::Event(7)));
    assert_eq!(page.state.view, View::Timeline);
    assert_eq!(page.effects[0], Effect::Start(JOB, Program::Lanes));
    let look = Request::Look { job: JOB, surface: Surface::Over, input: Input::Event(7) };
    assert!(matches!(&page.effects[1], Effect::Post(_, request) if *request == look));
    page.act(Action::InTimeline(Sought::Event(8)));
    assert_eq!(page.effects.len(), 1, "the worker runs");
}

#[test]
fn a_timeline_below_the_view_is_read_and_keeps_the_view() {
    let mut page = Page::ready();
    page.act(Action::Shown(View::Triage));
    page.act(Action::Docked(true));
    assert!(page.effects.contains(&Effect::Start(JOB, Program::Lanes)));
    page.act(Action::InTimeline(Sought::Event(7)));
    assert_eq!(page.state.view, View::Triage);
    assert_eq!(page.posted(), ["look"]);
    page.act(Action::Docked(false));
    page.act(Action::InTimeline(Sought::Event(7)));
    assert_eq!(page.state.view, View::Timeline);
}

#[test]
fn a_timeline_below_the_view_follows_the_selected_row() {
    let mut page = Page::ready();
    page.act(Action::Shown(View::Triage));
    page.act(Action::Followed(Sought::Event(7)));
    assert!(page.posted().is_empty() && page.state.view == View::Triage, "there is no timeline");
    page.act(Action::Docked(true));
    assert_eq!(page.posted(), ["look"], "it shows the row that was selected before it was there");
    page.act(Action::Followed(Sought::Moment(5)));
    assert_eq!((page.posted(), page.state.view), (vec!["look"], View::Triage));
    // It keeps what a person looks at in it when it is removed and comes again.
    page.act(Action::Docked(false));
    page.act(Action::Docked(true));
    assert!(page.posted().is_empty());
    // A row of another view is not selected any more.
    page.act(Action::Docked(false));
    page.act(Action::Followed(Sought::Event(8)));
    page.act(Action::Shown(View::Fuse));
    page.act(Action::Docked(true));
    assert!(page.posted().is_empty());
    // Tables of the timeline change with it.
    page.act(Action::Shown(View::Timeline));
    page.act(Action::Followed(Sought::Event(7)));
    assert!(page.posted().is_empty());
}

#[test]
fn why_devices_stand_still_goes_to_the_lanes_once_both_are_there() {
    let diagnosis = || Diagnosis { told: vec![1, 2], ..Diagnosis::default() };
    let mut page = Page::ready();
    page.act(Action::Shown(View::Diagnosis));
    page.hear(Response::Diagnosed { job: JOB, diagnosis: diagnosis() });
    assert!(!page.posted().contains(&"told"), "nothing draws lanes yet");
    page.act(Action::Shown(View::Timeline));
    assert_eq!(page.posted(), ["told"]);

    let mut page = Page::ready();
    page.act(Action::Shown(View::Timeline));
    assert!(page.posted().is_empty());
    page.act(Action::Shown(View::Diagnosis));
    page.hear(Response::Diagnosed { job: JOB, diagnosis: diagnosis() });
    assert!(page.posted().contains(&"told"));
}

#[test]
fn a_name_is_sought_in_the_timeline_and_its_first_slice_is_shown() {
    let mut page = Page::ready();
    page.act(Action::InTimeline(Sought::Name("gemm".to_owned())));
    assert_eq!(page.posted(), ["look"]);
}
