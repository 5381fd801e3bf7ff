//! Where a kernel came from, as a reader of the report sees it: paths, every place of a collective, its op, its modules.

use serde_json::Value;
use testkit::{Kineto, KinetoEvent, event};

use crate::common::Folder;
use crate::triage::json;

const ALL_REDUCE: &str =
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

fn cpu(cat: &str, name: &str, at: i64, dur: i64) -> KinetoEvent {
    event("X", cat, name).on(1, 1).at_ns(at * 1_000).lasting_ns(dur * 1_000)
}

/// A launch inside what was pushed before it, and its kernel of `dur` us.
fn launch(trace: &mut Kineto, kernel: &str, correlation: i64, at: i64, dur: i64) {
    trace.push(cpu("cuda_runtime", "cudaLaunchKernel", at, 1).arg("correlation", correlation));
    let kernel = event("X", "kernel", kernel).on(0, 7).at_ns(1_000_000 + at * 1_000);
    let kernel = kernel.lasting_ns(dur * 1_000).arg("correlation", correlation);
    trace.push(kernel.arg("device", 0).arg("stream", 7));
}

/// Frames that lie in each other, outermost first.
fn frames(trace: &mut Kineto, names: &[&str], at: i64) {
    for (depth, name) in (0..).zip(names) {
        trace.push(cpu("python_function", name, at + depth, 90 - 2 * depth));
    }
}

fn kernels(trace: &Kineto, name: &str) -> (Vec<Value>, String) {
    let folder = Folder::new(name);
    folder.write("t.json", trace.text());
    let run = folder.run(&["triage", "t.json", "--out", "out"]).done();
    let rows = json(&folder, "out/kernel_table.json");
    (rows.as_array().cloned().unwrap_or_default(), run.stdout)
}

#[test]
fn a_collective_has_every_place_with_its_share_and_the_op_that_tells() {
    let mut trace = Kineto::new();
    let dispatch = [
        "vllm/distributed/parallel_state.py(400): all_reduce",
        "torch/distributed/c10d_logger.py(81): wrapper",
        "torch/distributed/distributed_c10d.py(2800): all_reduce",
    ];
    let places = [
        ("nn.Module: Attention_0", "vllm/model_executor/models/m.py(10): forward", 60),
        ("nn.Module: Attention_1", "vllm/model_executor/models/m.py(20): forward", 15),
        ("nn.Module: MLP_0", "vllm/model_executor/models/m.py(20): forward", 25),
    ];
    for (n, (module, line, dur)) in (1_i64..).zip(places) {
        let at = n * 100;
        let around = [module, line, dispatch[0], dispatch[1], dispatch[2]];
        frames(&mut trace, &around, at);
        trace.push(cpu("cpu_op", "c10d::allreduce_", at + 10, 60));
        trace.push(cpu("cpu_op", "record_param_comms", at + 12, 50));
        trace.push(cpu("user_annotation", "nccl:all_reduce", at + 13, 40));
        launch(&mut trace, ALL_REDUCE, n, at + 20, dur);
    }
    let (rows, report) = kernels(&trace, "places-collective");
    let row = &rows[0];
    assert_eq!(row["python_location"], "vllm/model_executor/models/m.py:10 forward");
    assert_eq!(row["location_share_pct"], 60.0, "{row:#}");
    assert_eq!(
        row["locations"],
        serde_json::json!([
            "vllm/model_executor/models/m.py:10 forward (60.0%)",
            "vllm/model_executor/models/m.py:20 forward (40.0%)",
        ])
    );
    assert_eq!(row["modules"], "Attention");
    assert_eq!(row["cpu_op"], "c10d::allreduce_");
    assert!(!report.contains("record\\_param\\_comms"), "{report}");
}

#[test]
fn modules_that_do_not_hold_all_the_time_have_their_share() {
    let mut trace = Kineto::new();
    for (n, (module, dur)) in (1_i64..).zip([("nn.Module: A_0", 60), ("nn.Module: B_0", 40)]) {
        frames(&mut trace, &[module, "vllm/model_executor/layers/linear.py(7): forward"], n * 100);
        trace.push(cpu("cpu_op", "record_param_comms", n * 100 + 12, 50));
        trace.push(cpu("user_annotation", "nccl:all_reduce", n * 100 + 13, 40));
        launch(&mut trace, ALL_REDUCE, n, n * 100 + 20, dur);
    }
    let (rows, _) = kernels(&trace, "places-modules");
    assert_eq!(rows[0]["modules"], "A (60.0%); B (40.0%)");
    assert_eq!(rows[0]["location_share_pct"], 100.0);
    assert_eq!(rows[0]["locations"], serde_json::json!([]));
    assert_eq!(rows[0]["cpu_op"], "nccl:all_reduce", "no other op is around it");
}

#[test]
fn a_path_begins_with_its_package() {
    let mut trace = Kineto::new();
    let lines = [
        (
            "/app/xDiT/xfuser/model_executor/models/transformers/transformer_flux.py(264): forward",
            "one",
        ),
        ("/workspace/transformers/train.py(9): step", "two"),
        ("/opt/venv/lib/python3.12/site-packages/mine/transformers/models/net.py(3): f", "three"),
    ];
    for (n, (line, kernel)) in (1_i64..).zip(lines) {
        frames(&mut trace, &[line], n * 100);
        launch(&mut trace, kernel, n, n * 100 + 20, 50 - n);
    }
    let (rows, report) = kernels(&trace, "places-paths");
    let found: Vec<&str> = rows.iter().filter_map(|row| row["python_location"].as_str()).collect();
    let expected = [
        "xfuser/model_executor/models/transformers/transformer_flux.py:264 forward",
        "/workspace/transformers/train.py:9 step",
        "mine/transformers/models/net.py:3 f",
    ];
    assert_eq!(found, expected);
    assert!(!report.contains(" transformers/tr"), "{report}");
}
