//! Launches that come late behind collectives which all wait.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{all_reduces, launch, with_details};
use fixture::Fixture;

const NAME: &str = "ncclDevKernel_AllReduce_Sum_f32";

#[test]
fn where_all_collectives_wait_the_best_rate_of_the_group_tells_how_long() {
    // Twenty times a product of 5 us and an all-reduce of 60 to 100 us, launched every 110 us; then a large one that shows the rate of the
    // links: at it, the others take 10 us.
    let with = |large_ns: i64| {
        let (mut fixture, mut details) = (Fixture::default(), all_reduces(&[600_000, 6_000_000]));
        for n in 0..20_i64 {
            let at = n * 110_000;
            launch(&mut fixture, "gemm", 2 * n + 1, at, at + 3_000, 5_000);
            launch(&mut fixture, NAME, 2 * n + 2, at + 4_000, at + 8_000, 60_000 + n % 5 * 10_000);
            details.collective_of.push((4 * n as u32 + 3, 0));
        }
        launch(&mut fixture, NAME, 100, 2_200_000, 2_204_000, large_ns);
        details.collective_of.push((81, 1));
        let found = with_details(&fixture.finish(), &details);
        let finding = found.findings.into_iter().find(|one| one.rule.id() == "M2").unwrap();
        (finding.verdict, finding.bound_ns.unwrap(), finding.meaning)
    };
    let (verdict, bound_ns, meaning) = with(100_000);
    assert_eq!(verdict, "launch_bound_behind_communication");
    let told = "they take 1.40 ms more than the fast ones of each size, or what the group's best bandwidth allows";
    assert!(meaning.contains(told), "{meaning}");
    // The rate of the large one is that of the others: then they wait no longer than the fast ones show.
    let (_, less_ns, less) = with(600_000);
    assert!(less.contains("more than fast ones of the same kernels and sizes"), "{less}");
    // What they show is the least that they wait, so that the bound is all communication behind late launches.
    assert!(meaning.starts_with("For at least 1.40 ms"), "{meaning}");
    assert!(less.starts_with("For at least 400 µs"), "{less}");
    // (1.6 ms of the twenty, and 497 us of idle time before launches that are late: the large one has nothing behind it.)
    assert_eq!((bound_ns, less_ns), (2_097_000, 2_097_000));
    assert!(meaning.contains("ms or more. The bound, an estimate,"), "{meaning}");
}

#[test]
fn collectives_that_are_all_as_long_as_others_of_their_size_are_transfer() {
    // Twenty times a product of 5 us, an all-reduce of 40 us (or of 40 and 50), and a smaller one that waits for others.
    let with = |longest_ns: i64| {
        let (mut fixture, mut details) = (Fixture::default(), all_reduces(&[600_000, 1_000]));
        for n in 0..20_i64 {
            let at = n * 120_000;
            launch(&mut fixture, "gemm", 3 * n + 1, at, at + 3_000, 5_000);
            let steady_ns = if n % 2 == 0 { 40_000 } else { longest_ns };
            launch(&mut fixture, NAME, 3 * n + 2, at + 4_000, at + 8_000, steady_ns);
            let waits_ns = 10_000 + n % 5 * 10_000;
            launch(&mut fixture, NAME, 3 * n + 3, at + 7_000, at + 8_000 + steady_ns, waits_ns);
            details.collective_of.push((6 * n as u32 + 3, 0));
            details.collective_of.push((6 * n as u32 + 5, 1));
        }
        let found = with_details(&fixture.finish(), &details);
        let finding = found.findings.into_iter().find(|one| one.rule.id() == "M2").unwrap();
        assert_eq!(finding.verdict, "launch_bound_behind_communication");
        (finding.bound_ns.unwrap(), finding.meaning)
    };
    let (bound_ns, meaning) = with(40_000);
    let steady = "without 800 µs of collectives that take as long as all others of their size,";
    assert!(meaning.contains(steady), "{meaning}");
    let (more_ns, meaning) = with(50_000);
    assert!(!meaning.contains("take as long as"), "{meaning}");
    assert!(more_ns - bound_ns >= 800_000, "{bound_ns} and {more_ns}");
}
