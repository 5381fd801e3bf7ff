//! Iterations that are alike: which of their equal peaks is shown, and what stays in use from one to the next.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod made;

use made::{MIB, Run, Stack};

const LAYER: Stack = &[
    ("/app/net.py", "forward", 5),
    ("/py/site-packages/torch/nn/modules/module.py", "_call_impl", 7),
    ("/app/run.py", "main", 9),
];
const REBOUND: Stack =
    &[("??", "torch::autograd::deleteNode(torch::autograd::Node*)", 0), ("/app/run.py", "main", 9)];

/// Calls whose graph of 30 MiB is freed when the next call's result is bound; the first of these graphs stood before the first event.
fn calls(n: i64) -> Run {
    let mut run = Run::default();
    run.old(0, 10).old(1, 30);
    for call in 0..n {
        run.alloc(2 - call % 2, 30, LAYER).free(1 + call % 2, REBOUND);
    }
    run
}

#[test]
fn of_equal_peaks_the_one_with_most_recorded_allocations_is_shown() {
    let (report, text) = calls(4).report();
    // The figures are those of the first peak, as the reference program has them.
    let replay = &report["devices"]["0"]["replay"];
    assert_eq!(
        (replay["peak_requested"].as_i64(), &replay["peak_index"]),
        (Some(70 * MIB), &1.into())
    );
    assert_eq!(replay["peak_untraced_bytes"], 40 * MIB);
    assert_eq!(report["shown_peak"]["0"], serde_json::json!({"index": 4, "nth": 2, "times": 4}));
    assert!(
        text.contains(
            "peaks at 70.0 MiB on device 0, before event 4 of 12 (at the 2nd of 4 equal peaks, because more of it has a recorded allocation than \
             at the first, before event 1), 60.0 MiB (86%) of it from /app/net.py:5:forward."
        ),
        "{text}"
    );
    let said =
        "memory in use reaches this peak 4 times, to the byte: nothing grows from one to the next.";
    assert!(text.contains(said), "{text}");
    // Replayed from where the graph of before the recording is gone.
    let graph = made::finding(&report, "graph-without-backward").unwrap();
    let validation = graph["validation"].as_str().unwrap();
    assert!(
        validation.contains(
            "Without these blocks the events from 3 on peak at 10.0 MiB instead of 70.0 MiB."
        ),
        "{validation}"
    );
}

#[test]
fn the_first_of_equal_peaks_is_shown_where_no_other_has_more() {
    let mut run = Run::default();
    // (By a line of its own: a layer that allocates twice before the first peak may do so in each call.)
    run.alloc(0, 10, &[("/app/run.py", "main", 3)]);
    for _ in 0..3 {
        run.alloc(1, 30, LAYER).free(1, LAYER);
    }
    let (report, text) = run.report();
    assert!(report.get("shown_peak").is_none(), "{report:#}");
    assert!(
        text.contains("before event 2 of 10, ") && text.contains("this peak 3 times"),
        "{text}"
    );
}

/// Calls of some equal layers, and a head that allocates once per chunk.
fn layers(calls: i64, layers: i64, chunks: i64) -> String {
    const HEAD: Stack = &[("/app/net.py", "forward", 20), LAYER[1], ("/app/run.py", "main", 9)];
    let mut run = Run::default();
    run.old(0, 10);
    for _ in 0..calls {
        for _ in 0..layers {
            run.alloc(1, 30, LAYER).free(1, LAYER);
        }
        for _ in 0..chunks {
            run.alloc(2, 5, HEAD).free(2, HEAD);
        }
    }
    run.report().1
}

#[test]
fn equal_peaks_of_the_layers_of_one_call_show_no_growth() {
    assert!(!layers(1, 3, 1).contains("this peak"), "{}", layers(1, 3, 1));
    assert!(!layers(2, 3, 1).contains("this peak"), "{}", layers(2, 3, 1));
    let text = layers(4, 3, 1);
    let said = "reaches this peak 12 times, to the byte, in at least 4 calls: nothing grows";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_head_in_chunks_is_one_call() {
    for calls in [1, 2] {
        let text = layers(calls, 6, 8);
        assert!(!text.contains("this peak"), "{text}");
    }
    let text = layers(4, 6, 8);
    let said = "reaches this peak 24 times, to the byte, in at least 4 calls: nothing grows";
    assert!(text.contains(said), "{text}");
    // Without a head nothing tells layers from calls.
    let text = layers(1, 6, 0);
    assert!(text.contains("this peak 6 times, to the byte: nothing grows"), "{text}");
}

const OUTPUT: Stack = &[("/app/net.py", "forward", 6), LAYER[1], ("/app/run.py", "main", 9)];
const LOSS: Stack = &[("/app/run.py", "main", 11)];
const BOUND: Stack = &[("/app/run.py", "main", 10)];

#[test]
fn results_that_wait_for_the_next_ones_are_told_with_the_peak_that_is_left() {
    let mut run = Run::default();
    run.old(0, 5);
    // The result is bound to the name of the one before, and the loss takes 19 MiB at once.
    for call in 0..5 {
        run.alloc(1 + call % 2, 20, OUTPUT);
        if call > 0 {
            run.free(2 - call % 2, BOUND);
        }
        run.alloc(3, 19, LOSS).free(3, LOSS);
    }
    let (report, _) = run.report();
    let own = made::finding(&report, "dominant-site").unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: /app/net.py:6:forward allocated 40.0 MiB of the 45.0 MiB in use at the peak (89%) in 2 blocks. They are results of 2 \
         calls: /app/run.py:10:main frees the oldest only after the next call has allocated its own."
    );
    assert_eq!(
        own["validation"],
        "Freed before the next call allocates, memory in use peaks at 44.0 MiB instead of 45.0 MiB, before event 2, where \
         /app/run.py:11:main holds 19.0 MiB. Without these, too, it peaks at 25.0 MiB."
    );
    assert!(
        own["action"]
            .as_str()
            .unwrap()
            .contains("Compute what /app/run.py:11:main allocates in parts, too")
    );
    // Graphs of two calls.
    let graph = made::finding(&calls(4).report().0, "graph-without-backward").unwrap();
    assert!(
        graph["observation"]
            .as_str()
            .unwrap()
            .contains("They are the graphs of 2 calls: /app/run.py:9:main"),
        "{graph}"
    );
    let validation = graph["validation"].as_str().unwrap();
    assert!(
        validation.ends_with("where the result is deleted (del) before the next call: 40.0 MiB."),
        "{validation}"
    );
}

#[test]
fn blocks_of_one_call_are_no_results_of_several() {
    let mut run = Run::default();
    for _ in 0..3 {
        run.alloc(1, 20, OUTPUT).alloc(2, 20, OUTPUT).free(1, BOUND).free(2, BOUND);
    }
    let own = made::finding(&run.report().0, "dominant-site").unwrap();
    assert!(!own["observation"].as_str().unwrap().contains("calls"), "{own}");
}

/// A script without a function: inputs, and a line that calls a module.
const INPUT: Stack = &[("/app/run.py", "<module>", 3)];
const CALL: Stack = &[("/app/run.py", "<module>", 4)];
const IN_CALL: Stack = &[LAYER[1], ("/app/run.py", "<module>", 4)];

#[test]
fn results_of_a_script_wait_for_the_next_ones_with_their_inputs() {
    let mut run = Run::default();
    run.old(0, 20);
    for call in 0..3 {
        let (input, old) = (1 + call % 2, 2 - call % 2);
        run.alloc(input, 2, INPUT).alloc(2 + input, 30, IN_CALL);
        // What the call needs for itself.
        run.alloc(5, 1, IN_CALL).free(5, IN_CALL);
        if call > 0 {
            run.free(2 + old, CALL).free(old, CALL);
        }
    }
    let (report, _) = run.report();
    let own = made::finding(&report, "dominant-site").unwrap();
    let observation = own["observation"].as_str().unwrap();
    assert!(
        observation.ends_with(
            "in 2 blocks. They are results of 2 calls: /app/run.py:4:<module> frees the oldest only after the next call has allocated its own."
        ),
        "{observation}"
    );
    // The inputs of a call are in use while it runs, and those of the next one before it begins.
    let validation = own["validation"].as_str().unwrap();
    assert!(validation.contains("peaks at 54.0 MiB instead of 85.0 MiB"), "{validation}");
}
