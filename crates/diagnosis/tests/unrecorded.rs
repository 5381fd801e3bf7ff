//! Idle time in which nothing is recorded on the CPU: what is said of where it lies, and of how long the pauses are.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::{Diagnosis, Finding};
use fixture::{Fixture, slice};

const MS: i64 = 1_000_000;

/// Rounds of two ops that launch 4 ms of work each, and a pause of `pauses` (ns) after each but the last; `name` tells the second op of a
/// round.
fn rounds(pauses: &[i64], name: impl Fn(usize) -> &'static str) -> Fixture {
    let mut fixture = Fixture::default();
    let mut at = 0;
    for n in 0..=pauses.len() {
        for (nth, op) in ["aten::to", name(n)].into_iter().enumerate() {
            fixture.push(slice("cpu_op", op).at(at, 10_000).on(1, 1));
            launch(&mut fixture, "gemm", (2 * n + nth) as i64 + 1, at + 2_000, at + 6_000, 4 * MS);
            at += 4 * MS + 6_000;
        }
        at += pauses.get(n).copied().unwrap_or_default();
    }
    fixture
}

fn unrecorded(diagnosis: &Diagnosis) -> Option<&Finding> {
    diagnosis.findings.iter().find(|finding| finding.verdict == "unrecorded")
}

#[test]
fn pauses_between_the_same_ops_are_told_together_and_that_they_grow() {
    let found = diagnosis(rounds(&[2, 3, 4, 6, 8, 10].map(|ms| ms * MS), |_| "aten::cat"));
    let finding = unrecorded(&found).unwrap();
    let expected = "The GPU is idle for 33.0 ms (37.0% of its span) while nothing is recorded on the CPU that explains it, in 6 pauses of \
                    2.00 ms to 10.0 ms each, after aten::cat and before aten::to.";
    assert_eq!(finding.observation, expected);
    assert!(finding.meaning.starts_with("They grow, from 2.00 ms to 10.0 ms"), "{finding:?}");
    let action = &found.actions[0];
    assert_eq!((action.remedy, action.bound_ns), ("record-stacks", 33 * MS));
    assert_eq!(action.place, "", "no line of Python is known");
    // As many pauses in another order.
    let found = diagnosis(rounds(&[10, 3, 8, 6, 4, 2].map(|ms| ms * MS), |_| "aten::cat"));
    assert_eq!(unrecorded(&found).unwrap().meaning, "");
}

#[test]
fn equal_pauses_are_those_of_a_timer() {
    let meaning = |pauses: [i64; 4]| {
        let found = diagnosis(rounds(&pauses.map(|ms| ms * MS), |_| "aten::cat"));
        unrecorded(&found).unwrap().meaning.clone()
    };
    let expected = "They differ by at most 0.5%, which suggests a timer (time.sleep, polling).";
    assert_eq!(meaning([200, 201, 200, 200]), expected);
    assert_eq!(meaning([200, 230, 200, 200]), "");
    assert_eq!(meaning([5, 5, 5, 5]), "", "so short a pause may be any work");
}

#[test]
fn one_long_pause_is_told_by_its_place_in_the_file() {
    let found = diagnosis(rounds(&[2 * MS, 80 * MS, 3 * MS], |_| "aten::cat"));
    let observation = &unrecorded(&found).unwrap().observation;
    let expected =
        "80.0 ms of it in one pause 18.0 ms into the file, after aten::cat and before aten::to.";
    assert!(observation.ends_with(expected), "{observation}");
    // Of pauses between many ops the longest.
    let names = ["aten::cat", "aten::add", "aten::mul", "aten::sub", "aten::div"];
    let found = diagnosis(rounds(&[5, 6, 7, 5].map(|ms| ms * MS), |n| names[n]));
    let observation = &unrecorded(&found).unwrap().observation;
    assert!(
        observation.contains("in 4 pauses, the longest of which (7.00 ms) begins "),
        "{observation}"
    );
    assert!(observation.ends_with(", after aten::mul and before aten::to."), "{observation}");
}

#[test]
fn pieces_of_one_gap_between_many_ops_are_told_as_that_gap() {
    let with = |n: i64| {
        let mut fixture = rounds(&[MS, 60 * MS, MS], |_| "aten::cat");
        // Ops of 0.5 ms, evenly in the gap of 60 ms.
        for at in (1..=n).map(|nth| 17 * MS + 24_000 + nth * (60 * MS / (n + 1)) - MS / 4) {
            fixture.push(slice("cpu_op", "aten::item").at(at, MS / 2).on(1, 1));
        }
        unrecorded(&diagnosis(fixture)).unwrap().observation.clone()
    };
    let said = with(30);
    let expected = "in one gap of 60.0 ms that begins 17.0 ms into the file, between the ends and starts of ops and calls, such as 30 of \
                    aten::item.";
    assert!(said.ends_with(expected), "{said}");
    // Few pieces are pauses as others are.
    assert!(!with(5).contains("one gap"), "{}", with(5));
}

#[test]
fn what_explains_a_pause_is_told_instead() {
    let with = |category: &'static str, name: &'static str| {
        let mut fixture = rounds(&[20 * MS, 20 * MS], |_| "aten::cat");
        for n in 0..2 {
            let at = n * (28 * MS + 12_000) + 8 * MS + 20_000;
            fixture.push(slice(category, name).at(at, 20 * MS - 20_000).on(1, 1));
        }
        diagnosis(fixture)
    };
    assert!(unrecorded(&with("user_annotation", "evaluate")).is_none(), "an annotation");
    assert!(unrecorded(&with("cpu_op", "prepare")).is_none(), "an op");
    // Where frames are recorded, stacks are no advice.
    let mut fixture = rounds(&[20 * MS, 20 * MS], |_| "aten::cat");
    fixture.push(slice("python_function", "train.py(7): step").at(0, 1_000).on(1, 1));
    let found = diagnosis(fixture);
    assert_eq!(found.actions[0].remedy, "record-ranges", "{:?}", found.actions);
    // Little of it is no action: 1.5 of 89.5 ms.
    let mut pauses = [0; 10];
    pauses[5] = MS * 3 / 2;
    assert!(unrecorded(&diagnosis(rounds(&pauses, |_| "aten::cat"))).is_none());
    // What lies in an annotation is told there, and only the rest here.
    let mut fixture = rounds(&[20 * MS, 20 * MS], |_| "aten::cat");
    fixture.push(slice("user_annotation", "evaluate").at(8 * MS + 30_000, 19 * MS).on(1, 1));
    let found = diagnosis(fixture);
    let rest = unrecorded(&found).unwrap().bound_ns.unwrap();
    assert!((20 * MS..22 * MS).contains(&rest), "{rest}");
}
