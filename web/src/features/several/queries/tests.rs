//! Roles, related files and choices, by the state that files and answers lead to.

use super::choices::{MOST_TARGETS, Question, choices, questions};
use super::*;
use crate::protocol::{Opened, Response};
use crate::state::Action;
use crate::state::testing::{reduce, said};

fn opened(job: u32, signs: Signs) -> [Action; 2] {
    let opened = Opened { signs: Shared::new(signs), ..Opened::default() };
    let response = Response::Opened { job: JobId(job), opened };
    [Action::Added(JobId(job), format!("{job}.json"), 10), said(response)]
}

fn replay() -> Signs {
    Signs { n_ran: 3, replays: vec![3], replayed_names: vec![1, 2], ..Signs::default() }
}

fn capture() -> Signs {
    Signs { n_captured: 3, captures: vec![3], captured_names: vec![1, 2], ..Signs::default() }
}

fn after(actions: impl IntoIterator<Item = Action>) -> State {
    actions.into_iter().fold(State::default(), |state, action| reduce(&state, action))
}

const CAPTURE: JobId = JobId(1);
const RUN: JobId = JobId(2);

fn beside(role: Companion) -> Beside {
    Beside { job: CAPTURE, role, listed: None }
}

fn pair() -> State {
    after([opened(1, capture()), opened(2, replay())].concat())
}

#[test]
fn a_pair_finds_itself_and_the_measured_trace_is_shown() {
    let state = pair();
    assert_eq!(role(&state, CAPTURE), Role::Companion(Companion::Capture, RUN));
    assert_eq!(role(&state, RUN), Role::Own);
    assert_eq!(state.selected, Some(RUN));
    let companions: Vec<_> = wanted(&state).into_iter().map(|of| of.companions).collect();
    assert_eq!(companions, [vec![], vec![beside(Companion::Capture)]]);
}

#[test]
fn a_card_that_a_person_picked_stays() {
    let first = after(opened(1, capture()));
    let picked = reduce(&first, Action::Selected(CAPTURE));
    let state = opened(2, replay()).into_iter().fold(picked, |state, act| {
        let state = reduce(&state, act);
        reduce(&state, Action::Selected(CAPTURE))
    });
    assert_eq!(state.selected, Some(CAPTURE));
}

#[test]
fn a_person_knows_better_and_may_take_it_back() {
    let state = reduce(&pair(), Action::RoleSet(CAPTURE, Role::Own));
    assert!(wanted(&state).iter().all(|of| of.companions.is_empty()));
    let mapping = Role::Companion(Companion::Mapping, RUN);
    let state = reduce(&state, Action::RoleSet(CAPTURE, mapping));
    assert_eq!(wanted(&state)[1].companions, [beside(Companion::Mapping)]);
    let chosen: Vec<String> = choices(&state, CAPTURE)
        .into_iter()
        .filter(|choice| choice.chosen)
        .map(|choice| choice.text)
        .collect();
    assert_eq!(chosen, ["Mapping trace for 2.json"]);
    assert!(choices(&state, RUN).is_empty(), "a companion has none of its own");
}

fn without_graphs(names: &[u32]) -> Signs {
    Signs { n_ran: 3, has_ops: true, ran_names: names.to_vec(), ..Signs::default() }
}

#[test]
fn of_two_runs_none_becomes_the_mapping_of_the_other_unasked() {
    let state = after([opened(1, without_graphs(&[1, 2])), opened(2, replay())].concat());
    assert_eq!((role(&state, CAPTURE), role(&state, RUN)), (Role::Own, Role::Own));
    let question = Question { job: CAPTURE, of: RUN, of_name: "2.json".into() };
    assert_eq!(questions(&state), [Some(question.clone()), None]);
    assert!(wanted(&state).iter().all(|of| of.companions.is_empty()));
    let mapping = Role::Companion(Companion::Mapping, RUN);
    for answer in [mapping, Role::Baseline(RUN), Role::Own] {
        let state = reduce(&state, Action::RoleSet(CAPTURE, answer));
        assert_eq!((role(&state, CAPTURE), questions(&state)), (answer, vec![None, None]));
    }
    // The view of comparisons compares them meanwhile, and asks on.
    let shown = reduce(&reduce(&state, Action::Selected(RUN)), Action::Shown(View::Compare));
    assert_eq!(baseline(&shown, RUN), Some(CAPTURE));
    assert_eq!(questions(&shown), [Some(question), None]);
}

#[test]
fn with_two_runs_open_the_view_of_comparisons_takes_the_other_one() {
    let two = after([opened(1, replay()), opened(2, replay())].concat());
    let shown = reduce(&reduce(&two, Action::Selected(CAPTURE)), Action::Shown(View::Compare));
    assert_eq!((baseline(&two, CAPTURE), baseline(&shown, CAPTURE)), (None, Some(RUN)));
    assert_eq!(baseline(&shown, RUN), None, "of the run that is shown");
    let undone = reduce(&shown, Action::RoleSet(RUN, Role::Own));
    assert_eq!(baseline(&undone, CAPTURE), None);
    let three = opened(3, replay()).into_iter().fold(shown, |state, act| reduce(&state, act));
    let three = reduce(&three, Action::Selected(CAPTURE));
    assert_eq!(baseline(&three, CAPTURE), None, "of several a person chooses");
}

#[test]
fn a_companion_of_a_closed_file_stands_for_itself() {
    let mapping = Action::RoleSet(CAPTURE, Role::Companion(Companion::Mapping, RUN));
    let state = reduce(&reduce(&pair(), mapping), Action::Removed(RUN));
    assert_eq!(role(&state, CAPTURE), Role::Own);
}

fn stands_aside(job: u32, aside: Aside) -> [Action; 2] {
    let response = Response::Aside { job: JobId(job), aside };
    [Action::Added(JobId(job), format!("{job}.json"), 10), said(response)]
}

fn map(job: u32, names: &[u32]) -> [Action; 2] {
    let names = names.to_vec();
    stands_aside(job, Aside::Map { names, n_kernels: 1, stages: Vec::new() })
}

#[test]
fn a_kernel_map_finds_its_trace_and_is_never_shown_before_it() {
    let other = Signs { ran_names: vec![7, 8], ..Signs::default() };
    let all = [map(3, &[1, 7, 8]), opened(1, replay()), opened(2, other)].concat();
    let state = after(all);
    let of_other = Role::Companion(Companion::Map, JobId(2));
    assert_eq!(role(&state, JobId(3)), of_other);
    assert_eq!(state.selected, Some(JobId(1)));
    let texts: Vec<String> =
        choices(&state, JobId(3)).into_iter().map(|choice| choice.text).collect();
    assert_eq!(texts, ["Not used", "Kernel map for 1.json", "Kernel map for 2.json"]);
    // A second one of the same trace takes its place, and gives it back to nobody.
    let state = map(4, &[9]).into_iter().fold(state, |state, act| reduce(&state, act));
    assert_eq!(role(&state, JobId(4)), Role::Own);
    let state = reduce(&state, Action::RoleSet(JobId(4), of_other));
    assert_eq!((role(&state, JobId(3)), role(&state, JobId(4))), (Role::Own, of_other));
    assert!(choices(&after(map(3, &[1])), JobId(3)).is_empty(), "alone there is no choice");
}

#[test]
fn a_list_tells_of_the_captures_that_it_names() {
    let facts =
        |name: &str, size| CaptureFacts { name: name.into(), batch_size: Some(size), mode: None };
    let list = vec![facts("9.json", 1), facts("1.json.gz", 32)];
    let list = stands_aside(3, Aside::Captures(list));
    let state = list.into_iter().fold(pair(), |state, act| reduce(&state, act));
    let listed = Some(facts("1.json", 32));
    let expected = Beside { listed, ..beside(Companion::Capture) };
    assert_eq!(wanted(&state)[1].companions, [expected]);
    assert_eq!(state.selected, Some(RUN));
    let Some(Aside::Captures(list)) = state.file(JobId(3)).unwrap().aside.as_deref() else {
        panic!("no list")
    };
    let used: Vec<bool> =
        captures_of_list(&state, list).into_iter().map(|(_, used)| used).collect();
    assert_eq!(used, [false, true]);
    assert!(choices(&state, JobId(3)).is_empty());
}

#[test]
fn with_dozens_of_files_a_card_offers_a_few_plausible_targets() {
    let all: Vec<Action> = (1..=77).flat_map(|job| opened(job, replay())).collect();
    let state = after(all);
    let role = Role::Baseline(JobId(70));
    let state = reduce(&state, Action::RoleSet(JobId(77), role));
    let state = reduce(&state, Action::Selected(JobId(60)));
    let of_last = choices(&state, JobId(77));
    assert_eq!(of_last.len(), 1 + 3 * MOST_TARGETS);
    let targets: Vec<JobId> = of_last.iter().filter_map(|choice| choice.role.of()).collect();
    assert!(targets.contains(&JobId(70)) && targets.contains(&JobId(60)));
    assert!(targets.is_sorted(), "in the order of the cards, the roles of each together");
    assert_eq!(of_last.iter().filter(|choice| choice.chosen).count(), 1);
}

#[test]
fn one_baseline_at_a_time() {
    let state = after([opened(1, replay()), opened(2, replay()), opened(3, replay())].concat());
    let state = reduce(&state, Action::RoleSet(JobId(2), Role::Baseline(JobId(1))));
    let state = reduce(&state, Action::RoleSet(JobId(3), Role::Baseline(JobId(1))));
    assert_eq!(baseline(&state, JobId(1)), Some(JobId(3)));
    assert_eq!((role(&state, JobId(2)), baseline(&state, JobId(3))), (Role::Own, None));
    assert!(comparisons(&state).is_empty(), "not before both are triaged");
}
