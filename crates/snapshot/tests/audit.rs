//! What an audit on real snapshots asked for: causes and remedies that the file shows, on small runs of the same form.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;

const MODULE: (&str, &str) = ("/py/site-packages/torch/nn/modules/module.py", "_call_impl");
const CHECKPOINT: (&str, &str) = ("/py/site-packages/torch/utils/checkpoint.py", "checkpoint");
const ADAM: (&str, &str) = ("/py/site-packages/torch/optim/adamw.py", "step");
const ENGINE: (&str, &str) = ("/py/site-packages/torch/autograd/graph.py", "_engine_run_backward");
const SAVED: (&str, &str) = ("??", "torch::autograd::SavedVariable::reset_data()");
const MAIN: (&str, &str) = ("/app/train.py", "main");
const PACKAGE: (&str, &str) = ("/py/site-packages/titan/model.py", "forward");
const LINEAR: (&str, &str) = ("/py/site-packages/torch/nn/modules/linear.py", "forward");

/// Blocks in one segment, each in a place of its own of 100 MiB.
#[derive(Default)]
struct Run {
    events: Vec<Value>,
    /// Slot, MiB, stack.
    live: Vec<(i64, i64, Value)>,
    marks: Vec<Value>,
}

fn frames(of: &[(&str, &str)]) -> Value {
    of.iter().map(|(file, name)| json!({"filename": file, "name": name, "line": 5})).collect()
}

impl Run {
    fn event(&mut self, action: &str, slot: i64, mib: i64, by: &Value) {
        let (at, time) = (A + slot * 100 * MIB, self.events.len());
        self.events.push(json!({"action": action, "addr": at, "size": mib * MIB, "stream": 0, "frames": by, "time_us": time}));
    }

    fn alloc(&mut self, slot: i64, mib: i64, by: &[(&str, &str)]) {
        self.event("alloc", slot, mib, &frames(by));
        self.live.push((slot, mib, frames(by)));
    }

    fn free(&mut self, slot: i64, by: &[(&str, &str)]) {
        let place = self.live.iter().position(|live| live.0 == slot).unwrap();
        let (_, mib, _) = self.live.remove(place);
        self.event("free_requested", slot, mib, &frames(by));
        self.event("free_completed", slot, mib, &frames(by));
    }

    fn oom(&mut self, mib: i64, free: i64) {
        self.event("oom", 0, mib, &frames(&[MODULE, MAIN]));
        self.events.last_mut().unwrap()["device_free"] = json!(free * MIB);
    }

    /// A step ends.
    fn step(&mut self) {
        let time = self.events.len();
        for (stage, at) in [("START", time - 2), ("END", time - 1)] {
            self.marks.push(json!({"stage": stage, "name": "Optimizer.step#AdamW.step", "device": 0, "time_us": at}));
        }
    }

    /// The report, of one segment with some slots.
    fn report(&self, slots: i64) -> (Value, String) {
        let mut blocks = Vec::new();
        for slot in 0..slots {
            let own = self.live.iter().find(|live| live.0 == slot);
            let (used, by) = own.map_or((0, json!([])), |(_, mib, by)| (*mib, by.clone()));
            let at = A + slot * 100 * MIB;
            if used > 0 {
                blocks.push(json!({"address": at, "size": used * MIB, "requested_size": used * MIB, "state": "active_allocated", "frames": by}));
            }
            if used < 100 {
                blocks.push(json!({"address": at + used * MIB, "size": (100 - used) * MIB, "requested_size": 0, "state": "inactive", "frames": []}));
            }
        }
        let used: i64 = self.live.iter().map(|live| live.1 * MIB).sum();
        let segment = json!({"device": 0, "address": A, "total_size": slots * 100 * MIB, "allocated_size": used, "active_size": used,
            "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false,
            "frames": [], "blocks": blocks});
        let document = json!({"segments": [segment], "device_traces": [self.events], "external_annotations": self.marks});
        let mut reader = Reader::new();
        reader.push(document.to_string().as_bytes()).unwrap();
        let report = analyze(&reader.finish().unwrap());
        let text = report::document("", &report.sections()).replace('\\', "");
        (serde_json::to_value(report).unwrap(), text)
    }
}

fn finding(report: &Value, rule: &str) -> Value {
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|it| it["rule"] == rule).cloned().unwrap_or_default()
}

/// The first forward pass of a training run; `used` MiB of each place are in use.
fn first_forward(used: i64) -> Run {
    let mut run = Run::default();
    for slot in 0..10 {
        let by: &[_] = if slot < 2 { &[MODULE, CHECKPOINT, MAIN] } else { &[MODULE, MAIN] };
        run.alloc(slot, used, by);
    }
    run.marks = vec![
        json!({"stage": "START", "name": "Optimizer.zero_grad#AdamW.zero_grad", "device": 0, "time_us": 0}),
    ];
    run
}

#[test]
fn a_full_device_is_not_fragmented() {
    let mut run = first_forward(98);
    run.oom(100, 95);
    let (report, text) = run.report(10);
    let own = finding(&report, "out-of-memory");
    let said = |key: &str| own[key].as_str().unwrap().to_owned();
    assert_eq!(
        said("hypothesis"),
        "Capacity: 20.0 MiB free in 10 gaps on stream 0 and 95.0 MiB free on the device, 15.0 MiB more than the request, but 98% of \
         the reserved memory is in use: the device is full rather than fragmented. 980 MiB of the 980 MiB in use at the peak are \
         activations (confidence: low)."
    );
    let action = said("action");
    assert!(
        action.starts_with("Checkpoint the layers that are not checkpointed yet: 784 MiB"),
        "{action}"
    );
    assert!(action.contains("196 MiB inside") && !action.contains("stable"), "{action}");
    let validation = said("validation");
    assert!(
        validation.contains("no backward pass and no optimizer step")
            && validation.contains("needs 5.00 MiB more than is free on the device"),
        "{validation}"
    );
    // An optimizer step that is marked is none that is still to come.
    let mut later = first_forward(98);
    later.step();
    later.oom(100, 95);
    let after = finding(&later.report(10).0, "out-of-memory")["validation"].to_string();
    assert!(!after.contains("no backward pass"), "{after}");
    // The sentences on the failure have the state, too.
    assert!(!text.contains("at the time of the snapshot"), "{text}");
    // Of much that is free the cause is fragmentation, and the sum is told.
    let mut run = first_forward(60);
    run.oom(450, 95);
    let own = finding(&run.report(10).0, "out-of-memory")["hypothesis"].clone();
    assert_eq!(
        own,
        "Fragmentation: the 450 MiB request would have fit if defragmented: 400 MiB free in 10 gaps on stream 0 and 95.0 MiB free on \
         the device. The largest gap has 40.0 MiB."
    );
    // Nothing of the device is needed.
    let mut run = first_forward(60);
    run.oom(350, 0);
    let own = finding(&run.report(10).0, "out-of-memory")["hypothesis"].clone();
    assert_eq!(
        own,
        "Fragmentation: the 350 MiB request would have fit if defragmented: 400 MiB free in 10 gaps on stream 0. The largest gap has \
         40.0 MiB."
    );
}

#[test]
fn a_limit_of_the_process_is_told_where_the_device_had_room() {
    let mut run = first_forward(60);
    run.oom(350, 40_000);
    let (report, text) = run.report(10);
    let own = finding(&report, "out-of-memory");
    assert_eq!(
        own["hypothesis"],
        "A limit of the process refused it (torch.cuda.set_per_process_memory_fraction), because the device had 39.1 GiB free and the \
         segment for the request has 350 MiB. Below the limit, the 350 MiB request would have fit if defragmented: 400 MiB free in 10 \
         gaps on stream 0."
    );
    let action = own["action"].as_str().unwrap();
    assert!(
        action.starts_with("Raise the limit, which is below 1.32 GiB, to that at least, or remove it. If it is intended: ")
            && !action.contains("expandable_segments"),
        "{action}"
    );
    assert_eq!(own["confidence"], "medium");
    assert!(text.contains(", refused by a limit of the process, with 600 MiB of the"), "{text}");
    // The driver is asked for more than the request: 11 MiB are a segment of 12 MiB, 1 MiB of 2 MiB, 5 MiB of 20 MiB.
    for (mib, free, is_limit) in [
        (11, 11, false),
        (11, 12, true),
        (1, 1, false),
        (1, 2, true),
        (5, 19, false),
        (5, 20, true),
    ] {
        let mut run = first_forward(100);
        run.oom(mib, free);
        let own = finding(&run.report(10).0, "out-of-memory")["hypothesis"].to_string();
        assert_eq!(own.contains("limit of the process"), is_limit, "{mib} {free}: {own}");
    }
}

#[test]
fn shapes_are_named_only_where_they_differ_between_steps() {
    for (sizes, is_told) in [([60, 60], false), ([60, 50], true)] {
        let mut run = Run::default();
        for slot in 1..5 {
            run.alloc(slot, 60, &[MODULE, MAIN]);
        }
        for mib in sizes {
            run.alloc(0, mib, &[MODULE, ("/app/data.py", "batch")]);
            run.alloc(9, 10, &[ENGINE, MAIN]);
            run.free(9, &[ENGINE, MAIN]);
            run.free(0, &[ENGINE, MAIN]);
            run.step();
        }
        run.oom(200, 0);
        let said = finding(&run.report(10).0, "out-of-memory")["action"].to_string();
        assert_eq!(said.contains("shapes stable: sizes"), is_told, "{said}");
    }
}

#[test]
fn a_graph_that_no_backward_pass_uses_is_told_with_no_grad() {
    let mut run = Run::default();
    run.live.push((9, 30, json!([])));
    for (slot, name) in (0..6).zip(["a", "b", "c", "d", "e", "f"]) {
        run.alloc(slot, 25, &[("/app/net.py", name), MODULE, MAIN]);
    }
    for slot in 0..6 {
        run.free(slot, &[SAVED, MAIN]);
    }
    let (report, text) = run.report(10);
    let said = "150 MiB (83%) of it activations saved for a backward pass that did not run, and 30.0 MiB (17%) allocated before the first event.";
    assert!(text.contains(said), "{text}");
    let own = finding(&report, "graph-without-backward");
    assert!(own["action"].as_str().unwrap().contains("torch.inference_mode()"), "{text}");
    assert!(!text.contains("Checkpoint"), "{text}");
    // With a backward pass in between, the graph was kept for it.
    run.events.clear();
    run.alloc(0, 90, &[("/app/net.py", "a"), MODULE, MAIN]);
    run.alloc(1, 1, &[ENGINE, MAIN]);
    run.free(1, &[ENGINE, MAIN]);
    run.free(0, &[SAVED, MAIN]);
    let (report, text) = run.report(10);
    assert!(finding(&report, "graph-without-backward").is_null(), "{text}");
}

/// Copies by autocast in three layers, until it ends; before them 60 MiB that were not recorded.
#[test]
fn copies_that_autocast_keeps_are_told_instead_of_the_line_that_makes_them() {
    const EXIT: (&str, &str) = ("/py/site-packages/torch/amp/autocast_mode.py", "__exit__");
    let mut run = Run::default();
    run.live.push((9, 60, json!([])));
    for (slot, name) in (0..3).zip(["query", "key", "value"]) {
        run.alloc(slot, 10, &[LINEAR, MODULE, ("/app/net.py", name), MODULE, MAIN]);
    }
    run.alloc(3, 5, &[MODULE, MAIN]);
    run.free(3, &[MODULE, MAIN]);
    for slot in 0..3 {
        run.free(slot, &[EXIT, MAIN]);
    }
    let (_, text) = run.report(10);
    let said = "60.0 MiB (63%) of it allocated before the first event; 30.0 MiB of the rest copies by autocast (10.0 MiB from /app/net.py:5:key).";
    assert!(text.contains(said), "{text}");
}

#[test]
fn lines_of_one_function_are_told_together() {
    let said = |line: i64| {
        let mut run = Run::default();
        run.live.push((9, 60, json!([])));
        for slot in 0..3 {
            run.alloc(slot, 10, &[("/app/net.py", "softmax"), MODULE, MAIN]);
            run.events.last_mut().unwrap()["frames"][0]["line"] = json!(5 + slot);
        }
        run.alloc(3, line, &[("/app/net.py", "linear"), MODULE, MAIN]);
        for slot in 0..4 {
            run.free(slot, &[MAIN]);
        }
        run.report(10).1
    };
    let text = said(11);
    let of_function = "; 30.0 MiB of the rest from /app/net.py:softmax (3 of its lines together).";
    assert!(text.contains(of_function), "{text}");
    // A line that has nearly as much is told.
    let text = said(28);
    assert!(text.contains("; 28.0 MiB of the rest from /app/net.py:5:linear."), "{text}");
}

#[test]
fn a_first_optimizer_step_is_told_with_the_peak_of_the_next() {
    let mut run = Run::default();
    run.live.push((9, 30, json!([])));
    run.alloc(0, 60, &[("/app/net.py", "a"), MODULE, MAIN]);
    run.alloc(1, 10, &[ENGINE, MAIN]);
    run.free(0, &[ENGINE, MAIN]);
    run.alloc(2, 40, &[ADAM, MAIN]);
    run.alloc(3, 40, &[ADAM, ("/app/other.py", "step")]);
    let (report, text) = run.report(10);
    let said = "The next step peaks near 180 MiB (an estimate): the optimizer allocates 80.0 MiB of state from event 4 on, which stays.";
    assert!(text.contains(said), "{text}");
    let own = finding(&report, "peak-class")["validation"].to_string();
    assert!(
        own.contains("the next step peaks near 180 MiB") && own.contains("near 100 MiB"),
        "{own}"
    );
    // State that was there before shows the peak of a step.
    run.live.push((4, 5, json!([])));
    run.free(4, &[ADAM, MAIN]);
    let (_, text) = run.report(10);
    assert!(!text.contains("The next step"), "{text}");
}

#[test]
fn a_table_that_repeats_the_peak_is_for_the_page() {
    let mut run = Run::default();
    for (slot, name) in (0..4).zip(["a", "b", "c", "d"]) {
        run.alloc(slot, 50, &[("/app/net.py", name)]);
    }
    run.alloc(4, 1, &[MAIN]);
    run.free(4, &[MAIN]);
    let (_, text) = run.report(5);
    assert!(text.contains("Alive at the peak by call site"), "{text}");
    assert!(!text.contains("Blocks in use by call site"), "{text}");
    // What stays is other than what peaks.
    run.free(3, &[MAIN]);
    run.alloc(3, 45, &[MAIN]);
    let (_, text) = run.report(5);
    assert!(text.contains("Blocks in use by call site"), "{text}");
}

#[test]
fn a_package_that_calls_pytorch_is_the_call_site() {
    let mut run = Run::default();
    run.alloc(0, 50, &[LINEAR, MODULE, PACKAGE, MODULE]);
    let (report, text) = run.report(1);
    assert!(text.contains("all of it from /py/site-packages/titan/model.py:5:forward"), "{text}");
    // The figures of the reference program have its call sites.
    let row = &report["devices"]["0"]["replay"]["peak_by_site"][0];
    assert_eq!(row["site"], "/py/site-packages/torch/nn/modules/linear.py:5:forward");
}

#[test]
fn a_single_step_has_no_table_but_what_it_asks_the_driver_for() {
    let mut run = Run::default();
    run.event("segment_alloc", 0, 500, &frames(&[MAIN]));
    run.alloc(0, 50, &[ENGINE, MAIN]);
    run.step();
    let (_, text) = run.report(5);
    assert!(!text.contains("Memory by step"), "{text}");
    assert!(text.contains("The only recorded step takes 1 segment or page"), "{text}");
}

#[test]
fn the_sum_of_a_broadcast_gradient_is_named_after_the_engine() {
    const NATIVE: (&str, &str) = ("??", "c10::StorageImpl::StorageImpl(c10::SymInt)");
    const SUM: (&str, &str) =
        ("??", "torch::autograd::InputMetadata::reduce_grad(at::Tensor&) const");
    const RUN: (&str, &str) =
        ("??", "torch::autograd::Engine::evaluate_function(std::shared_ptr<x>)");
    const NODE: (&str, &str) = ("??", "torch::autograd::generated::MmBackward0::apply(x)");
    let said = |by: &[(&str, &str)]| {
        let mut run = Run::default();
        run.alloc(0, 30, by);
        run.alloc(1, 5, &[MAIN]);
        let (report, text) = run.report(2);
        (report["devices"]["0"]["replay"]["peak_by_site"][0]["site"].clone(), text)
    };
    let (site, text) = said(&[NATIVE, SUM, RUN]);
    assert!(text.contains("autograd&gt; reduce_grad"), "{text}");
    // The figures of the reference program name the innermost frame.
    assert_eq!(site, "??:5:c10::StorageImpl::StorageImpl(c10::SymInt)");
    let (site, text) = said(&[NATIVE, NODE, RUN]);
    assert_eq!(site, "<autograd> MmBackward0");
    assert!(!text.contains("reduce_grad"), "{text}");
}
