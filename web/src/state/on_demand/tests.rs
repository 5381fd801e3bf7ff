//! What views ask for, by the effects of each action.

use super::*;
use crate::protocol::{
    Chapter, Diagnosis, Format, Input, KernelDetails, LanesFacts, Looked, MemoryPictures,
    OverlapWindow, Response, StepWindow, Surface,
};
use crate::state::effect::Purpose;
use crate::state::testing::{JOB, OTHER, Page};
use crate::state::{Action, Sought};

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
    assert!(page.file(JOB).lanes.pending().is_some() && page.file(JOB).seen.is_none());
    assert!(starts(&page), "what was drawn ended with its worker");
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
