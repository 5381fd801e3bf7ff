//! What copies from the host still take from pinned memory, and beside how much they can run.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{launch, with_details};
use diagnosis::{Diagnosis, Finding};
use fixture::{Fixture, slice};
use trace::Details;

const US: i64 = 1_000;
const H100: &str = r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "warpSize": 32}]"#;

/// A copy of 21 MB in 1 ms, which the CPU waits for if it is of pageable memory, and kernels of 100 us: five of them after it, from
/// `kernels_us` on.
fn copied(kind: &str, device: &str, kernels_us: i64) -> Diagnosis {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    fixture.metadata("deviceProperties", device);
    let on = |category, name| slice(category, name).on(1, 2);
    fixture.push(on("cpu_op", "aten::copy_").at(0, 1_020 * US));
    fixture.push(on("cuda_runtime", "cudaMemcpyAsync").at(US, 1_015 * US).link(100));
    let name = format!("Memcpy HtoD ({kind} -> Device)");
    fixture.push(slice("gpu_memcpy", &name).at(10 * US, 1_000 * US).on(0, 20).link(100));
    details.copied_bytes.push((2, 21_000_000));
    for n in 0..5 {
        let at = (kernels_us + n * 100) * US;
        launch(&mut fixture, "gemm", n + 1, at - 5 * US, at, 100 * US);
    }
    with_details(&fixture.finish(), &details)
}

fn of_copies(found: &Diagnosis) -> &Finding {
    found.findings.iter().find(|finding| finding.rule.id() == "M7").unwrap()
}

#[test]
fn a_bound_leaves_out_what_the_bus_takes_and_no_kernel_hides() {
    // 21 MB take 333.3 us at 63 GB/s, and kernels run alone for 500.
    let hidden = copied("Pageable", H100, 1_020);
    assert_eq!(of_copies(&hidden).bound_ns, Some(1_000 * US), "{hidden:?}");
    // Beside the copy there is nothing left to hide it.
    let beside = copied("Pageable", H100, 400);
    let own = of_copies(&beside);
    assert!(own.meaning.contains("at 63 GB/s"), "{own:?}");
    let exposed_us = 500.0;
    assert_eq!(own.bound_ns.unwrap() / US, (exposed_us - exposed_us * 333.333 / 1_000.0) as i64);
    // Of a device that nothing is known of, all of it may go away.
    let unknown = copied("Pageable", r#"[{"id": 0, "name": "X"}]"#, 400);
    assert_eq!(of_copies(&unknown).bound_ns, Some(500 * US));
}

#[test]
fn the_wait_for_a_copy_goes_away_with_it() {
    let late = copied("Pageable", H100, 1_210);
    let own = of_copies(&late);
    assert_eq!(own.bound_ns, Some(1_200 * US), "until the next kernel: {own:?}");
    assert!(own.meaning.contains("The bound includes 200 µs in which the GPU is idle"), "{own:?}");
}

#[test]
fn copies_of_pinned_memory_hide_behind_the_kernels_that_run_alone() {
    let after = copied("Pinned", H100, 1_020);
    let own = of_copies(&after);
    assert_eq!(own.bound_ns, Some(500 * US));
    assert!(own.meaning.contains("Kernels run alone for 500 µs"), "{own:?}");
    let beside = copied("Pinned", H100, 400);
    let own = of_copies(&beside);
    assert_eq!(own.bound_ns, None);
    assert!(own.meaning.starts_with("Hardly any kernel time is left"), "{own:?}");
}

/// A copy of 50 MB in 10 ms, two of `bytes` in 1 ms each, and a kernel 2 ms after each of the three.
fn one_large(bytes: i64) -> Diagnosis {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    fixture.metadata("deviceProperties", H100);
    for (n, (bytes, ms)) in (0..).zip([(bytes, 1), (50_000_000, 10), (bytes, 1)]) {
        let at = n * 20_000 * US;
        let on = |category, name| slice(category, name).on(1, 2);
        fixture.push(on("cpu_op", "aten::copy_").at(at, 11_000 * US));
        fixture.push(on("cuda_runtime", "cudaMemcpyAsync").at(at + US, 10_900 * US).link(100 + n));
        let copy = slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)").on(0, 20);
        fixture.push(copy.at(at + 10 * US, ms * 1_000 * US).link(100 + n));
        details.copied_bytes.push((5 * n as trace::Row + 2, bytes));
        let next = at + (ms + 2) * 1_000 * US;
        launch(&mut fixture, "gemm", n + 1, next - 5 * US, next, 100 * US);
    }
    with_details(&fixture.finish(), &details)
}

#[test]
fn one_large_copy_among_small_ones_is_named_with_its_rate() {
    let found = one_large(4_097);
    let own = of_copies(&found);
    assert!(own.observation.contains(" One of 47.7 MiB takes 10.0 ms (5.0 GB/s)."), "{own:?}");
}

#[test]
fn what_the_gpu_waits_around_copies_of_a_few_bytes_is_not_saved_by_pinning_them() {
    let bound = |bytes| of_copies(&one_large(bytes)).bound_ns.unwrap();
    let (small, large) = (bound(4_096), bound(4_097));
    assert!(small < large, "{small} and {large}");
}

#[test]
fn few_launches_limit_nothing() {
    let late = |n: i64| {
        let mut fixture = Fixture::default();
        for n in 0..n {
            let at = n * 200 * US;
            launch(&mut fixture, "k", n + 1, at, at + 4 * US, 50 * US);
        }
        let found = common::diagnosis(fixture);
        found.findings.iter().any(|one| ["M2", "M3"].contains(&one.rule.id()))
    };
    assert!(late(6) && !late(4));
}
