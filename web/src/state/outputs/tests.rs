//! What is written, kept, saved and dropped, by the effects of each action.

use kinetoscope::artifacts::{KERNELS, SUMMARY};

use super::*;
use crate::protocol::{Analyses, Plan, Response};
use crate::state::Action;
use crate::state::testing::{JOB, Page, repaired_copy};

fn saved(effects: &[Effect]) -> Vec<(RequestId, &str)> {
    let of = |effect| match effect {
        &Effect::Save(BlobKey { id, .. }, ref name) => Some((id, name.as_str())),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
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
    page.hear(Response::Report { job: JOB, report: Analyses::default() });
    assert_eq!(page.posted(), ["plan"], "without clips");
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
    let late = Response::Repaired { job: JOB, repaired: repaired_copy(false) };
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
    let repaired = Repaired { format: Format::Gzip, ..repaired_copy(false) };
    page.hear(Response::Repaired { job: JOB, repaired });
    assert!(matches!(page.effects[..], [Effect::HandOver(..)]));
    page.act(Action::PerfettoOpened { job: JOB, blocked: false });
    assert!(matches!(page.effects[..], [Effect::HandOver(..)]), "it is there");
    page.act(Action::PerfettoOpened { job: JOB, blocked: true });
    assert!(page.effects.is_empty());
    assert_eq!(page.state.perfetto, PerfettoState::Blocked(JOB));
}
