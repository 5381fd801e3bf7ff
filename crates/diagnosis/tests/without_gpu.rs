//! Files without GPU work: what their ops ran on, and what is said of them; and forward passes in training mode.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::Diagnosis;
use fixture::{Fixture, slice};

const MS: i64 = 1_000_000;

/// Ops of one thread: name, start and duration in ms.
fn ops(fixture: &mut Fixture, all: &[(&str, i64, i64)]) {
    for (name, start, dur) in all {
        fixture.push(slice("cpu_op", name).at(start * MS, dur * MS).on(1, 1));
    }
}

fn of(all: &[(&str, i64, i64)]) -> Diagnosis {
    let mut fixture = Fixture::default();
    ops(&mut fixture, all);
    diagnosis(fixture)
}

fn headline(found: &Diagnosis) -> &str {
    found.headline.as_deref().unwrap()
}

const RANDOM: [(&str, i64, i64); 3] =
    [("aten::randn", 0, 80), ("aten::normal_", 1, 78), ("aten::pow", 90, 10)];

#[test]
fn random_numbers_are_to_be_made_on_the_gpu_that_was_not_recorded() {
    let mut fixture = Fixture::default();
    ops(&mut fixture, &RANDOM);
    let call = slice("cuda_runtime", "cudaLaunchKernel").at(92 * MS, MS).on(1, 1);
    fixture.push(call.link(1));
    fixture.metadata("cuda_runtime_version", "12040");
    let found = diagnosis(fixture);
    assert!(
        headline(&found).starts_with("The file has 1 launch call and no GPU work"),
        "{found:?}"
    );
    let largest = "aten::normal_ takes 86.7% of the CPU time of the ops (78.0 ms of 90.0 ms).";
    assert!(headline(&found).ends_with(largest), "{}", headline(&found));
    let action = &found.actions[0];
    assert_eq!((action.remedy, action.bound_ns), ("random-on-gpu", 78 * MS));
    assert_eq!(
        (action.bound_of.words(), action.bound_pct),
        ("the time from the first op to the last", 78.0)
    );
    // An op of the GPU has its launch in it.
    let mut fixture = Fixture::default();
    ops(&mut fixture, &RANDOM);
    fixture.push(slice("cuda_runtime", "cudaLaunchKernel").at(5 * MS, MS).on(1, 1).link(1));
    fixture.metadata("cuda_runtime_version", "12040");
    assert!(diagnosis(fixture).actions.is_empty());
    // On a machine without one they can be made nowhere else.
    let on_cpu = of(&RANDOM);
    assert!(
        on_cpu.actions.is_empty() && headline(&on_cpu).starts_with("The file has no GPU work.")
    );
}

#[test]
fn products_of_several_ops_count_as_one() {
    let found = of(&[("aten::mm", 0, 30), ("aten::addmm", 30, 20), ("aten::add", 50, 40)]);
    let wanted = "Matrix products take 55.6% of the CPU time of the ops (50.0 ms of 90.0 ms), most of it in aten::mm.";
    assert!(headline(&found).ends_with(wanted), "{}", headline(&found));
}

#[test]
fn one_long_call_is_no_pace_of_its_op() {
    let mut all: Vec<(&str, i64, i64)> =
        (0..9).map(|n| ("aten::addcdiv_", 100 + n * 2, 1)).collect();
    all.extend([("aten::addcdiv_", 0, 50), ("aten::mul", 60, 20)]);
    let found = of(&all);
    let wanted = "(59.0 ms of 79.0 ms), 50.0 ms of it in one of 10 calls.";
    assert!(headline(&found).ends_with(wanted), "{}", headline(&found));
}

#[test]
fn ops_of_apples_gpu_are_told_from_those_of_the_cpu() {
    let linear = |inner: &'static str| {
        let each = |n: i64| [("aten::linear", n * 20, 10), (inner, n * 20 + 1, 5)];
        of(&(0..5).flat_map(each).collect::<Vec<_>>())
    };
    let own = linear("aten::empty");
    assert!(headline(&own).starts_with("The ops probably ran on a GPU that"), "{own:?}");
    let cpu = linear("aten::addmm");
    assert!(headline(&cpu).starts_with("The file has no GPU work."), "{}", headline(&cpu));
    let other = of(&[("mylib::json_dumps_state", 0, 10), ("aten::relu", 20, 5)]);
    assert!(headline(&other).starts_with("The file has no GPU work."), "{}", headline(&other));
    let named = of(&[("aten::_mps_convolution", 0, 10), ("aten::relu", 20, 5)]);
    assert!(headline(&named).starts_with("The ops ran on Apple's GPU"), "{}", headline(&named));
}

/// Verdicts on a forward pass of a batch norm, that counts its batches or does not, and a dropout, that drops or does not.
fn forward(counts: bool, drops: bool, backward: bool) -> Vec<String> {
    let mut fixture = Fixture::default();
    let mut all =
        vec![("aten::conv2d", 0, 5), ("aten::batch_norm", 10, 5), ("aten::dropout", 20, 5)];
    all.extend(counts.then_some(("aten::add_", 8, 1)));
    all.extend(drops.then_some(("aten::native_dropout", 21, 3)));
    all.extend(backward.then_some(("autograd::engine::evaluate_function: AddBackward0", 40, 5)));
    ops(&mut fixture, &all);
    launch(&mut fixture, "k", 1, MS, 2 * MS, MS);
    let found = diagnosis(fixture);
    let own = found.findings.iter().filter(|finding| finding.verdict == "training_mode");
    own.map(|finding| finding.observation.clone()).collect()
}

#[test]
fn training_mode_is_told_without_a_backward_pass_alone() {
    let both = "The model runs in training mode, and the file has no backward pass: 1 batch norm computes the statistics of the batch, and \
                1 dropout drops values.";
    assert_eq!(forward(true, true, false), [both]);
    assert_eq!(forward(true, true, true), [""; 0]);
    assert_eq!(forward(false, false, false), [""; 0]);
    let one = forward(false, true, false);
    assert!(one[0].ends_with("pass: 1 dropout drops values."), "{one:?}");
}
