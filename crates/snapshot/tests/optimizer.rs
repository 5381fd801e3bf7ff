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
    // The old state and the new one are told apart.
    let own = finding(&report, "peak-class").unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: 16.0 MiB of the 32.0 MiB in use at the peak (50%) are optimizer state, 8.00 MiB of them from \
         /app/run.py:20:__init__; 8.00 MiB of it are older copies that the optimizer has already made anew."
    );
}

const CAST: Stack = &[
    ("??", "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)", 0),
    ("/app/run.py", "forward", 15),
    CALL,
];

#[test]
fn copies_of_weights_that_outlive_a_step_are_stale() {
    let run = |is_kept: bool| {
        let mut run = Run::default();
        run.alloc(0, 8, BUILD_NET).alloc(4, 6, BUILD_NET);
        for step in 0..2 {
            if step == 0 || !is_kept {
                // The copy of a weight, and one of an input.
                run.alloc(1, 4, CAST).alloc(2, 7, CAST).free(2, ENGINE);
            }
            run.alloc(3, 20, FORWARD).free(3, ENGINE);
            if !is_kept {
                run.free(1, ENGINE);
            }
            run.alloc(5, 1, UPDATE).free(5, UPDATE);
        }
        run.report().0
    };
    let own = finding(&run(true), "autocast-stale-weights").unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: 1 copy of weights by autocast (4.00 MiB) stays in use over a step of the optimizer and into the forward pass after it."
    );
    assert_eq!(finding(&run(false), "autocast-stale-weights"), None);
}

const MATMUL: Stack =
    &[("/app/sdpa_attention.py", "forward", 4), CALL, ("/app/net.py", "forward", 8), CALL];
const SOFTMAX: Stack = &[("/app/softmax.py", "forward", 2), CALL, MATMUL[0], CALL, MATMUL[2], CALL];
const MODEL: Stack = &[
    ("/app/softmax.py", "forward", 2),
    CALL,
    ("/app/attention_is_all.py", "forward", 4),
    CALL,
    ("/app/attention_is_all.py", "forward", 14),
    CALL,
    ("/app/attention_is_all.py", "forward", 24),
    CALL,
];

#[test]
fn attention_is_known_by_its_file_too_and_saved_once() {
    let found = |by: Stack| {
        let mut run = Run::default();
        run.alloc(1, 20, MATMUL).alloc(2, 30, by).alloc(3, 10, FORWARD);
        run.free(3, ENGINE).free(2, ENGINE).free(1, ENGINE);
        finding(&run.report().0, "unfused-attention")
    };
    let own = found(SOFTMAX).unwrap();
    assert!(own["observation"].as_str().unwrap().contains("50.0 MiB of the 60.0 MiB"), "{own}");
    let validation = own["validation"].as_str().unwrap();
    assert!(
        validation.contains(
            "But 50.0 MiB of these are among the activations, which a checkpoint drops too: without both the recorded events peak at 0 B, \
             without the activations alone at 0 B."
        ),
        "{validation}"
    );
    // A document tells it with the activations, which a checkpoint drops too.
    let mut run = Run::default();
    run.alloc(1, 20, MATMUL).alloc(2, 30, SOFTMAX).alloc(3, 10, FORWARD);
    run.free(3, ENGINE).free(2, ENGINE).free(1, ENGINE);
    let (report, text) = run.report();
    let own = finding(&report, "peak-class").unwrap();
    let action = own["action"].as_str().unwrap();
    assert!(
        action.ends_with(
            "hold 50.0 MiB of these, and without them the recorded events peak at 10.0 MiB."
        ),
        "{action}"
    );
    assert!(!text.contains("unfused-attention"), "{text}");
    // Attention that is the most of what is left is a finding of its own.
    let mut run = Run::default();
    run.alloc(1, 20, SOFTMAX).free(1, SOFTMAX);
    run.alloc(2, 30, SOFTMAX).alloc(3, 10, FORWARD).free(3, ENGINE).free(2, ENGINE);
    let (_, text) = run.report();
    assert!(text.contains("unfused-attention"), "{text}");
    // A file with a whole model says nothing, and a linear layer is no softmax.
    let mut run = Run::default();
    run.alloc(2, 30, MODEL).alloc(3, 10, FORWARD).free(3, ENGINE).free(2, ENGINE);
    assert_eq!(finding(&run.report().0, "unfused-attention"), None);
    assert_eq!(found(FORWARD), None);
}
