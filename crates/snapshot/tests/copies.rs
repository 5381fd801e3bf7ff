//! Copies of weights by autocast: who keeps them, and what the peak is without them. Graphs of the call before the recording.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod made;

use made::{Run, Stack, finding};

const MODULE: (&str, &str, i64) = ("/py/site-packages/torch/nn/modules/module.py", "_call_impl", 7);
const MAIN: (&str, &str, i64) = ("/app/run.py", "main", 9);
const LAYER: Stack = &[("/app/net.py", "forward", 5), MODULE, MAIN];
const COPY: (&str, &str, i64) =
    ("??", "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)", 0);
const CAST: Stack = &[COPY, ("/app/net.py", "forward", 6), MODULE, MAIN];
const GRAPH: Stack = &[("??", "torch::autograd::deleteNode(torch::autograd::Node*)", 0), MAIN];
const EXIT: Stack = &[("/py/site-packages/torch/amp/autocast_mode.py", "__exit__", 3), MAIN];
const ENGINE: Stack =
    &[("/py/site-packages/torch/autograd/graph.py", "_engine_run_backward", 5), MAIN];
const SOFTMAX: Stack = &[("/app/net.py", "attention_softmax", 8), MODULE, MAIN];
const ATTENTION_CAST: Stack = &[COPY, ("/app/net.py", "attention_softmax", 9), MODULE, MAIN];

fn text(report: &serde_json::Value, rule: &str, key: &str) -> String {
    let found = finding(report, rule).unwrap();
    found[key].as_str().unwrap().to_owned()
}

#[test]
fn without_a_graph_the_cache_of_autocast_keeps_copies_of_weights() {
    let mut run = Run::default();
    run.old(0, 40).old(1, 11);
    // Copies of a weight and of an input, and an activation; the graph frees all of them after autocast has ended.
    run.alloc(2, 20, CAST).alloc(3, 15, CAST).alloc(4, 30, LAYER);
    run.free(2, GRAPH).free(3, GRAPH).free(4, GRAPH);
    let (report, text_of_all) = run.report();
    let validation = text(&report, "graph-without-backward", "validation");
    assert!(
        validation.starts_with(
            "Without these blocks the recorded events peak at 71.0 MiB instead of 116 MiB. On top comes what one layer needs while it runs. \
             20.0 MiB of copies of weights by autocast (an estimate by their sizes: half of a weight's) are counted"
        ) && validation.ends_with("With cache_enabled=False: 51.0 MiB."),
        "{validation}"
    );
    let observation = text(&report, "graph-without-backward", "observation");
    assert!(observation.contains("45.0 MiB of the 116 MiB"), "{observation}");
    assert!(
        text_of_all.contains("copied by autocast with half the size of a weight"),
        "{text_of_all}"
    );
}

#[test]
fn a_checkpoint_drops_no_copy_that_the_cache_keeps() {
    let mut run = Run::default();
    run.old(0, 40).alloc(2, 20, CAST).alloc(3, 16, ATTENTION_CAST).alloc(4, 60, SOFTMAX);
    run.alloc(5, 10, LAYER).free(3, ENGINE).free(4, ENGINE).free(5, ENGINE).free(2, EXIT);
    let (report, _) = run.report();
    let validation = text(&report, "peak-class", "validation");
    assert!(
        validation.starts_with(
            "Without these blocks and the 16.0 MiB of copies by autocast, which a checkpoint drops too, the recorded events peak at 60.0 MiB \
             instead of 146 MiB."
        ) && validation
            .ends_with("Copies of weights by autocast, which are counted, stay until torch.autocast ends."),
        "{validation}"
    );
    // Attention has copies, which are no activations.
    let action = text(&report, "peak-class", "action");
    assert!(
        action.ends_with(
            "functions of attention hold 60.0 MiB of these and 16.0 MiB of copies by autocast, and without both the recorded events peak at \
             70.0 MiB."
        ),
        "{action}"
    );
}

#[test]
fn weights_in_the_lower_precision_need_half_and_no_copies() {
    let mut run = Run::default();
    run.old(0, 40).alloc(2, 20, CAST).alloc(3, 10, LAYER).free(3, LAYER).free(2, EXIT);
    let (report, _) = run.report();
    assert_eq!(
        text(&report, "peak-class", "validation"),
        "Without the copies of weights, and with these weights at half their size, the recorded events peak at 30.0 MiB instead of 70.0 MiB. \
         Without the copies alone (cache_enabled=False): 50.0 MiB; the copies of one layer come on top."
    );
    // A finding of its own, next to one on attention that holds more.
    let mut run = Run::default();
    run.old(0, 40).alloc(2, 20, CAST).alloc(3, 30, SOFTMAX).free(3, LAYER).free(2, EXIT);
    let (report, said) = run.report();
    assert!(finding(&report, "unfused-attention").is_some(), "{report:#}");
    let observation = text(&report, "peak-class", "observation");
    assert!(observation.contains("20.0 MiB of the 90.0 MiB in use"), "{observation}");
    assert!(!observation.contains("half the size"), "{observation}");
    assert!(!said.contains("Copies of activations"), "{said}");
    // Freed with a graph: only their sizes tell that they are of weights.
    let mut run = Run::default();
    run.old(0, 40).alloc(2, 20, CAST).alloc(3, 10, CAST).free(3, GRAPH).free(2, GRAPH);
    let validation = text(&run.report().0, "peak-class", "validation");
    assert!(
        validation.ends_with(
            "at 30.0 MiB instead of 70.0 MiB. Which copies are of weights is an estimate by their sizes."
        ),
        "{validation}"
    );
    // Where no weight has twice the size, nothing is halved.
    let mut run = Run::default();
    run.old(0, 30).alloc(2, 20, CAST).alloc(3, 10, LAYER).free(3, LAYER).free(2, EXIT);
    let (report, _) = run.report();
    assert_eq!(
        text(&report, "peak-class", "validation"),
        "Without these blocks the recorded events peak at 40.0 MiB instead of 60.0 MiB."
    );
}

/// A call whose graph and result stand before the first event, and the next call; `last` is the size of its last block, `by` allocates the
/// one before.
fn second_call(last: i64, by: Stack) -> Run {
    let mut run = Run::default();
    run.old(0, 10).old(1, 30).old(2, 6).old(3, 4);
    run.alloc(4, 30, LAYER).alloc(5, 6, by).alloc(6, last, LAYER);
    run.free(3, &[MAIN]).free(2, GRAPH).free(1, GRAPH);
    run
}

#[test]
fn the_graph_of_the_call_before_the_recording_is_known_by_its_sizes() {
    let (report, said) = second_call(4, LAYER).report();
    assert_eq!(
        text(&report, "graph-without-backward", "observation"),
        "Device 0: 72.0 MiB of the 90.0 MiB in use at the peak (80%) were saved in forward for a backward pass that the recording does not \
         have. They are the graphs of 2 calls: /app/run.py:9:main frees the oldest only after the next call has allocated its own."
    );
    assert_eq!(
        text(&report, "graph-without-backward", "validation"),
        "Without these blocks the recorded events peak at 18.0 MiB instead of 90.0 MiB. On top comes what one layer needs while it runs. \
         With the graph, where the result is deleted (del) before the next call: 50.0 MiB."
    );
    // What has no stack is not counted twice.
    assert!(said.contains("and 14.0 MiB (16%) allocated before the first event"), "{said}");
    let (report, _) = second_call(5, LAYER).report();
    assert_eq!(finding(&report, "graph-without-backward"), None);
    // An equal size tells nothing of what is allocated outside of forward.
    let (report, said) = second_call(4, &[MAIN]).report();
    let observation = text(&report, "graph-without-backward", "observation");
    assert!(observation.contains("66.0 MiB of the 90.0 MiB"), "{observation}");
    assert!(said.contains("allocated outside forward, backward and optimizer"), "{said}");
}

#[test]
fn a_deleted_result_goes_with_its_graph() {
    let mut run = Run::default();
    run.old(0, 10);
    const HEAD: Stack = &[("/app/net.py", "forward", 20), MODULE, MAIN];
    for call in 0..4 {
        let (new, old) = (1 + call % 2 * 2, 3 - call % 2 * 2);
        run.alloc(new, 30, LAYER).alloc(new + 1, 5, HEAD);
        if call > 0 {
            run.free(old, GRAPH).free(old + 1, &[MAIN]);
        }
    }
    let (report, _) = run.report();
    let validation = text(&report, "graph-without-backward", "validation");
    assert!(validation.ends_with("before the next call: 45.0 MiB."), "{validation}");
}

#[test]
fn copies_of_inputs_for_no_backward_pass_are_no_activations() {
    let mut run = Run::default();
    run.old(0, 9).alloc(1, 15, CAST).alloc(2, 15, ATTENTION_CAST).alloc(3, 10, LAYER);
    run.free(1, GRAPH).free(2, GRAPH).free(3, GRAPH);
    let (report, said) = run.report();
    assert!(said.contains("30.0 MiB (61%) of it copies by autocast"), "{said}");
    assert!(finding(&report, "graph-without-backward").is_some(), "{report:#}");
    // Copies are of no backward pass, but the activations are: it has temporaries.
    let mut run = Run::default();
    run.old(0, 9).alloc(1, 30, CAST).alloc(2, 20, SOFTMAX).free(1, GRAPH).free(2, ENGINE);
    let validation = text(&run.report().0, "unfused-attention", "validation");
    assert!(validation.contains("Temporaries of their backward pass"), "{validation}");
}

#[test]
fn a_weight_that_is_freed_has_no_copy() {
    const MOVE: Stack = &[("/py/site-packages/torch/nn/modules/module.py", "_apply", 7), MAIN];
    let said = |is_freed: bool| {
        let mut run = Run::default();
        run.old(0, 9).alloc(1, 40, MOVE);
        if is_freed {
            run.free(1, &[MAIN]);
        }
        // The second one has no weight of its own.
        run.alloc(2, 20, CAST).alloc(3, 20, CAST).alloc(4, 30, LAYER);
        run.free(2, GRAPH).free(3, GRAPH).free(4, GRAPH);
        run.report().1
    };
    const RULE: &str = "copied by autocast with half the size of a weight";
    assert!(
        said(false).contains(&format!(
            "{RULE}, freed with the graph without a backward pass | medium | 20.0 | 1 |"
        )),
        "{}",
        said(false)
    );
    assert!(!said(true).contains(RULE), "{}", said(true));
}
