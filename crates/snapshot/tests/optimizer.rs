//! What an optimizer of a program does with parameters and state.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod made;

use made::{Run, Stack, finding};

const CALL: (&str, &str, i64) = ("/py/site-packages/torch/nn/modules/module.py", "_call_impl", 7);
const STEP: (&str, &str, i64) = ("/py/site-packages/torch/optim/optimizer.py", "wrapper", 3);
/// A module and an optimizer in one file.
const BUILD_NET: Stack = &[("/app/run.py", "__init__", 10)];
const FORWARD: Stack = &[("/app/run.py", "forward", 15), CALL];
const BUILD_ADAM: Stack = &[("/app/run.py", "__init__", 20)];
const UPDATE: Stack = &[("/app/run.py", "step", 25), STEP];
const ENGINE: Stack = &[("/py/site-packages/torch/autograd/graph.py", "_engine_run_backward", 5)];

/// A weight, a state, and steps that make both anew; `mib` of activations.
fn training(mib: i64) -> Run {
    let mut run = Run::default();
    run.alloc(0, 8, BUILD_NET).alloc(1, 8, BUILD_ADAM);
    let (mut weight, mut state, mut next) = (0, 1, 2);
    for _ in 0..3 {
        run.alloc(9, mib, FORWARD).free(9, ENGINE);
        // A temporary of the same size; the new state, and at once the end of the old one; the same with the weight.
        run.alloc(8, 8, UPDATE).alloc(next, 8, UPDATE).free(8, UPDATE).free(state, UPDATE);
        run.alloc(next + 1, 8, UPDATE).free(weight, UPDATE);
        (state, weight, next) = (next, next + 1, if next == 2 { 4 } else { 2 });
    }
    run
}

#[test]
fn parameters_that_an_optimizer_makes_anew_are_no_state() {
    let (report, _) = training(40).report();
    let rows = report["classes"]["0"].as_array().unwrap();
    let of = |class: &str, key: &str| -> i64 {
        let rows = rows.iter().filter(|row| row["class"] == class);
        rows.map(|row| row[key].as_i64().unwrap()).sum::<i64>() / made::MIB
    };
    assert_eq!((of("parameter", "allocated_bytes"), of("parameter", "peak_bytes")), (32, 8));
    assert_eq!(
        (of("optimizer_state", "allocated_bytes"), of("optimizer_state", "peak_bytes")),
        (32, 8)
    );
    assert_eq!(of("unknown", "allocated_bytes"), 0);
    let own = finding(&report, "optimizer-state-replaced").unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: the optimizer allocates 24.0 MiB of state and frees 24.0 MiB of older state, and allocates 24.0 MiB of parameters in \
         place of older ones, in all its steps."
    );
    assert!(own["validation"].as_str().unwrap().contains("and no memory: the peak stays"), "{own}");
}

#[test]
fn tensors_made_anew_are_bounded_by_the_peak_without_both() {
    // The peak is in the optimizer: a weight, two states and a temporary.
    let (report, _) = training(1).report();
    let own = finding(&report, "optimizer-state-replaced").unwrap();
    assert_eq!(
        own["validation"],
        "With each old tensor overwritten by its new one, the recorded events peak at 24.0 MiB instead of 32.0 MiB."
    );
}
