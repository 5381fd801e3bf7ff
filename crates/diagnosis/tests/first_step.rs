//! A single step that the profiler starts in.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::Diagnosis;
use fixture::{Fixture, slice};
use triage::WallPart;

const US: i64 = 1_000;

/// A step of SGLang's scheduler with this loop: the profiler starts for 300 us, then `launches` kernels are launched 100 us apart, and each runs for
/// `kernel_us` as soon as it is launched and the one before it is over.
fn step(event_loop: &str, launches: i64, kernel_us: i64) -> Diagnosis {
    diagnosis(steps(event_loop, launches, kernel_us, 1))
}

/// The same with as many calls of its function.
fn steps(event_loop: &str, launches: i64, kernel_us: i64, n_steps: i64) -> Fixture {
    let mut fixture = Fixture::default();
    let cpu_us = 400 + 100 * launches;
    let event_loop = format!("sglang/srt/managers/scheduler.py(1594): {event_loop}");
    let mixin = "sglang/srt/managers/scheduler_profiler_mixin.py";
    let (predicate, start) =
        (format!("{mixin}(379): _profile_batch_predicate"), format!("{mixin}(222): start_profile"));
    let frames = [
        (event_loop.as_str(), 0, cpu_us + launches * kernel_us),
        ("sglang/srt/managers/scheduler.py(3006): run_batch", 1, cpu_us),
        (&predicate, 2, 301),
        (&start, 2, 300),
    ];
    for ((name, at, us), id) in frames.into_iter().zip(1..) {
        let frame = slice("python_function", name).at(at * US, us * US).on(1, 1);
        fixture.push(frame.python(id, (id > 1).then_some(id - 1)));
    }
    let mut free_ns = 0;
    for n in 0..launches {
        let called = (400 + 100 * n) * US;
        let at = free_ns.max(called + 3 * US);
        free_ns = at + kernel_us * US;
        launch(&mut fixture, "gemm", n + 1, called, at, kernel_us * US);
    }
    for n in 1..n_steps {
        let again = slice("python_function", frames[1].0).at((cpu_us + n * 20) * US, 10 * US);
        fixture.push(again.on(1, 1).python(10 + n, Some(1)));
    }
    fixture
}

#[test]
fn several_steps_are_no_single_one_whatever_annotations_tell() {
    let headline = |n| diagnosis(steps("event_loop_overlap", 30, 80, n)).headline.unwrap();
    assert!(headline(1).contains("This is one step"), "{}", headline(1));
    assert!(!headline(2).contains("This is one step"), "{}", headline(2));
}

#[test]
fn an_empty_queue_at_the_start_is_no_late_launch_of_a_scheduler_that_works_ahead() {
    // 3.4 ms on the CPU, 2.4 ms on the GPU: the rest is late, and no more.
    let found = step("event_loop_overlap", 30, 80);
    let headline = found.headline.as_deref().unwrap();
    let said = "run_batch takes 3.10 ms on the CPU, and the GPU's work 2.40 ms: in a stream of steps, late launches cost";
    assert!(headline.contains(said), "{headline}");
    assert!(!headline.contains("The GPU is idle"), "{headline}");
    let late = found.findings.iter().find(|one| one.verdict == "host_bound").unwrap();
    // (Of the 700 us that the CPU takes longer, 551 are idle here.)
    let late_ns: i64 = found
        .wall
        .iter()
        .filter(|row| matches!(row.part, WallPart::Launch | WallPart::HostCompute))
        .map(|row| row.total_ns)
        .sum();
    assert_eq!(late.bound_ns, Some(late_ns.min(700 * US)), "{late:?}");
    assert!(
        headline.contains(&format!("cost about {} a step", report::units::time(late_ns))),
        "{headline}"
    );
    assert!(found.findings.iter().all(|one| one.verdict != "launch_bound"));
}

#[test]
fn a_scheduler_that_waits_for_each_step_launches_late() {
    let found = step("event_loop_normal", 30, 80);
    let headline = found.headline.as_deref().unwrap();
    assert!(headline.contains("is idle in the gaps between launches"), "{headline}");
    assert!(!headline.contains("stream of steps"), "{headline}");
}
