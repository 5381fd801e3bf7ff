//! Two peaks that are nearly equal, which need two changes.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod made;

use made::{Run, Stack, finding};

const MAIN: (&str, &str, i64) = ("/app/run.py", "main", 9);
const LAYER: Stack = &[
    ("/app/net.py", "forward", 5),
    ("/py/site-packages/torch/nn/modules/module.py", "_call_impl", 7),
    MAIN,
];
const ENGINE: Stack =
    &[("/py/site-packages/torch/autograd/graph.py", "_engine_run_backward", 5), MAIN];
const ADAM: Stack = &[
    ("/py/site-packages/torch/optim/adam.py", "_multi_tensor_adam", 5),
    ("/py/site-packages/torch/optim/adam.py", "step", 5),
    MAIN,
];

/// A step with 40 MiB of weights and state, 30 MiB of activations, and 20 MiB of gradients with temporaries of some MiB.
fn step(temporaries: i64) -> Run {
    let mut run = Run::default();
    run.old(0, 40).alloc(1, 30, LAYER).free(1, ENGINE).alloc(2, 20, ENGINE);
    run.alloc(3, temporaries, ADAM).free(3, ADAM).alloc(4, 1, LAYER);
    run
}

#[test]
fn what_stands_before_the_first_event_is_of_adam_where_it_has_the_sizes_of_gradients_three_times() {
    let of_adam = |sizes: [i64; 6], optimizer: &str| {
        let mut run = Run::default();
        for (slot, mib) in (0..).zip(sizes) {
            run.old(slot, mib);
        }
        run.alloc(8, 9, LAYER).alloc(6, 6, ENGINE).alloc(7, 2, ENGINE).free(8, ENGINE);
        run.mark(optimizer, 0).alloc(9, 1, ADAM).free(9, ADAM);
        let (_, text) = run.report();
        assert!(text.contains("of it allocated before the first event"), "{text}");
        text.contains("weights and the two moments of Adam (an estimate")
    };
    assert!(of_adam([6, 6, 6, 2, 2, 2], "Optimizer.step#AdamW.step"));
    assert!(!of_adam([6, 6, 6, 2, 2, 2], "Optimizer.step#SGD.step"));
    assert!(!of_adam([6, 6, 5, 3, 2, 2], "Optimizer.step#AdamW.step"));
    // (It has a moment and a norm.)
    assert!(!of_adam([6, 6, 6, 2, 2, 2], "Optimizer.step#Adamax.step"));
}

#[test]
fn two_peaks_that_are_nearly_equal_are_one_finding() {
    let (report, text) = step(9).report();
    let own = finding(&report, "near-equal-peaks").unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: two peaks are nearly equal: 70.0 MiB before event 1, with 30.0 MiB of activations, and 69.0 MiB before event 5, with \
         9.00 MiB of temporaries of the optimizer, freed within its step."
    );
    assert_eq!(
        own["validation"],
        "Without both the recorded events peak at 61.0 MiB instead of 70.0 MiB. On top comes what a checkpoint keeps: the inputs of the \
         layers, and one layer while backward computes it again."
    );
    let action = own["action"].as_str().unwrap();
    assert!(action.starts_with("Lower both: checkpoint") && action.contains("fused=True"), "{own}");
    // The higher one may be that of the optimizer.
    let (report, _) = step(11).report();
    let own = finding(&report, "near-equal-peaks").unwrap();
    let observation = own["observation"].as_str().unwrap();
    assert!(observation.contains("70.0 MiB before event 1, with 30.0 MiB of act"), "{observation}");
    assert!(finding(&report, "optimizer-temporaries").is_none());
    assert!(!text.contains("peak-class"), "{text}");
    // A change for the higher one is enough.
    for mib in [1, 30] {
        assert_eq!(finding(&step(mib).report().0, "near-equal-peaks"), None, "{mib}");
    }
}
