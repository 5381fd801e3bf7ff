//! Elementwise ops whose inputs are laid out in different ways.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{launch, with_details};
use diagnosis::{Diagnosis, Finding};
use fixture::{Fixture, slice};
use trace::{Details, OpInputs};

const US: i64 = 1_000;
const ANY: &str = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> > >";
const COPY: &str =
    "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>";
const CONTIGUOUS: &str =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >";

/// Calls of one op after another, each with its sizes, its kernel and that one's time in us, all launched ahead.
fn run(calls: &[(&str, &str, i64)]) -> Diagnosis {
    let mut fixture = Fixture::default();
    let mut details = Details::default();
    let types = details.texts.intern(r#"["float","float"]"#);
    let mut at = 100 * US;
    for (n, (dims, kernel, us)) in (0_i64..).zip(calls) {
        // (Each call has three events.)
        let row = 3 * n as trace::Row;
        fixture.push(slice("cpu_op", "aten::add").at(n * 10 * US, 8 * US).on(1, 1));
        launch(&mut fixture, kernel, n + 1, n * 10 * US + US, at, us * US);
        at += us * US;
        let dims = details.texts.intern(dims);
        details.inputs.push(OpInputs { dims, types });
        details.ops.push((row, n as u32));
    }
    with_details(&fixture.finish(), &details)
}

fn layouts(found: &Diagnosis) -> Option<&Finding> {
    found.findings.iter().find(|finding| finding.verdict == "layouts")
}

#[test]
fn calls_of_equal_sizes_that_take_longer_in_the_kernel_for_any_layout_are_told() {
    let large = "[[1024,4096,256],[1024,4096,256]]";
    let slow = [(large, ANY, 1_200), (large, ANY, 1_100), (large, ANY, 1_300)];
    let all = [&slow[..], &[(large, CONTIGUOUS, 480), (large, CONTIGUOUS, 500)]].concat();
    let found = run(&all);
    let finding = layouts(&found).unwrap();
    let said = "3 calls of aten::add [1024,4096,256] [1024,4096,256] take 1.20 ms each (median) in elementwise_kernel; with inputs of the same \
                sizes, vectorized_elementwise_kernel takes 490 µs.";
    assert_eq!(finding.observation, said);
    // 710, 610 and 810 us.
    assert_eq!(finding.bound_ns, Some(2_130 * US));
    assert_eq!(found.actions[0].remedy, "one-layout");
    assert!(layouts(&run(&slow)).is_none(), "nothing to compare with");
    let other = [&slow[..], &[("[[1024],[1024]]", CONTIGUOUS, 480)]].concat();
    assert!(layouts(&run(&other)).is_none(), "other sizes");
    let broadcast = "[[1024,4096,256],[]]";
    let by_number = [(broadcast, ANY, 1_200), (broadcast, CONTIGUOUS, 480)];
    assert!(layouts(&run(&by_number)).is_none(), "a tensor without dimensions is broadcast");
    let copies = slow.map(|(dims, _, us)| (dims, COPY, us));
    let copies = [&copies[..], &[(large, CONTIGUOUS, 480)]].concat();
    assert!(layouts(&run(&copies)).is_none(), "a copy to another layout");
    let short = slow.map(|(dims, kernel, us)| (dims, kernel, us / 20));
    let short = [&short[..], &[(large, CONTIGUOUS, 24)]].concat();
    assert!(layouts(&run(&short)).is_none(), "in a cache");
    let once = [
        &slow.map(|(dims, kernel, _)| (dims, kernel, 480))[..],
        &[slow[0], (large, CONTIGUOUS, 480)],
    ];
    assert!(layouts(&run(&once.concat())).is_none(), "one of several is late for another reason");
    let near = [&slow[..], &[(large, CONTIGUOUS, 900)]].concat();
    assert!(layouts(&run(&near)).is_none(), "as fast");
}
