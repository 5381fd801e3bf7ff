//! Equal launches of one kernel that take a different time.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{launch, with_details};
use diagnosis::Diagnosis;
use fixture::{Fixture, slice};
use trace::{Details, LaunchConfig, OpInputs};

const GEMM: &str = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn";

/// Six products of these durations in us, one after the other; `sizes` tells the first size of each, `beside` whether another kernel runs
/// meanwhile.
fn products(us: [i64; 6], sizes: impl Fn(usize) -> usize, beside: bool) -> Diagnosis {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    let types = details.texts.intern(r#"["c10::BFloat16","c10::BFloat16"]"#);
    details.configs.push(LaunchConfig { grid: Some([64, 1, 1]), ..Default::default() });
    let (mut at, mut row) = (100_000, 0);
    for (n, us) in us.into_iter().enumerate() {
        let called = n as i64 * 10_000;
        fixture.push(slice("cpu_op", "aten::mm").at(called, 8_000).on(1, 1));
        launch(&mut fixture, GEMM, n as i64 + 1, called + 1_000, at, us * 1_000);
        let dims = details.texts.intern(&format!("[[{},512],[512,512]]", sizes(n)));
        details.inputs.push(OpInputs { dims, types });
        details.ops.push((row, n as u32));
        details.launches.push((row + 2, 0));
        row += 3;
        if beside {
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(called + 4_000, 1_000).on(1, 1);
            fixture.push(call.link(100 + n as i64));
            let other = fixture::kernel("other").at(at + 1_000, us * 1_000 - 2_000).on(0, 8);
            fixture.push(other.link(100 + n as i64));
            row += 2;
        }
        at += us * 1_000;
    }
    with_details(&fixture.finish(), &details)
}

fn told(found: &Diagnosis) -> Option<&diagnosis::Finding> {
    found.findings.iter().find(|finding| finding.rule.id() == "equal_kernels")
}

#[test]
fn equal_products_that_differ_many_times_are_delayed_by_something_else() {
    let found = products([110, 100, 2_000, 110, 1_500, 105], |_| 4096, false);
    let told = told(&found).unwrap();
    assert!(told.observation.contains("input sizes take 100 µs to 2.00 ms"), "{told:?}");
    assert!(told.meaning.contains("take 3.93 ms in all"), "{told:?}");
    // Six times the fastest.
    assert!(told.meaning.contains("of its kind, 600 µs: an estimate"), "{told:?}");
    let headline = found.headline.as_deref().unwrap();
    let said =
        "; equal launches of one kernel take 100 µs to 2.00 ms, and the file does not show why.";
    assert!(headline.contains(said), "{headline}");
    assert!(!headline.contains("only less or faster GPU work"), "{headline}");
}

#[test]
fn products_of_other_sizes_or_beside_other_work_may_differ() {
    let slow = [110, 100, 2_000, 110, 1_500, 105];
    let sizes = |n: usize| if matches!(n, 2 | 4) { 65_536 } else { 4_096 };
    assert!(told(&products(slow, sizes, false)).is_none());
    assert!(told(&products(slow, |_| 4_096, true)).is_none());
    assert!(told(&products([110, 100, 105, 100, 2_000, 100], |_| 4_096, false)).is_none(), "one");
    assert!(told(&products([110, 100, 200, 110, 250, 105], |_| 4_096, false)).is_none(), "caches");
}

/// Twenty rounds of products of these names, each of which takes as many us as `us` tells for its round and number; `grid` tells its grid.
fn rounds(names: &[&str], us: impl Fn(i64, usize) -> i64, grid: impl Fn(i64) -> u32) -> Diagnosis {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    let (mut at, mut row) = (100_000, 0);
    for round in 0..20_i64 {
        for (n, name) in names.iter().enumerate() {
            launch(
                &mut fixture,
                name,
                i64::from(row) + 1,
                i64::from(row) * 4_000,
                at,
                us(round, n) * 1_000,
            );
            let grid = Some([grid(round), 1, 1]);
            details.launches.push((row + 1, details.configs.len() as u32));
            details.configs.push(LaunchConfig { grid, ..Default::default() });
            at += us(round, n) * 1_000;
            row += 2;
        }
    }
    with_details(&fixture.finish(), &details)
}

#[test]
fn equal_products_that_all_get_faster_at_once_follow_the_clock() {
    let names = ["volta_sgemm_128x64_tn", "volta_sgemm_128x64_nt", "volta_sgemm_128x64_nn"];
    let us = |n: usize| [862, 780, 787][n];
    let faster = |round: i64, n: usize| if round < 10 { us(n) } else { us(n) * 10 / 19 };
    let found = rounds(&names, faster, |_| 16);
    let told_of = told(&found).unwrap();
    let said = "Equal kernels run 1.90 times as fast from 24.3 ms after the first work of the GPU on: volta_sgemm_128x64_tn takes 862 µs \
                before and 453 µs after";
    assert!(told_of.observation.starts_with(said), "{told_of:?}");
    assert!(told_of.observation.contains("and 2 more names"), "{told_of:?}");
    assert!(told_of.meaning.contains("nvidia-smi --lock-gpu-clocks"), "{told_of:?}");
    let slower = rounds(&names, |round, n| faster(19 - round, n), |_| 16);
    assert!(told(&slower).unwrap().observation.contains("take 1.90 times as long"));
    assert!(told(&rounds(&names[..2], faster, |_| 16)).is_none(), "two kernels");
    assert!(
        told(&rounds(&names, faster, |round| 16 + u32::from(round < 10))).is_none(),
        "another size"
    );
    let little = |round: i64, n: usize| if round < 10 { us(n) } else { us(n) * 10 / 12 };
    assert!(told(&rounds(&names, little, |_| 16)).is_none(), "boost clocks");
    let one = |round: i64, n: usize| if n == 0 { faster(round, n) } else { us(n) };
    assert!(told(&rounds(&names, one, |_| 16)).is_none(), "one kernel of three");
    let stragglers = |round: i64, n: usize| if round % 5 == 0 { us(n) * 2 } else { us(n) };
    assert!(told(&rounds(&names, stragglers, |_| 16)).is_none(), "stragglers");
    let short = |round: i64, n: usize| faster(round, n) / 100;
    assert!(told(&rounds(&names, short, |_| 16)).is_none(), "short kernels");
}
