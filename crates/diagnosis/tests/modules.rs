//! Modules: equal ones fold, the backward pass belongs to them, and the table adds up.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::of_file;
use testkit::{Kineto, event};

/// Three layers of two products; each product is done again, backward, by the engine's thread.
fn training() -> String {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    let mut correlation = 0;
    let slice = |cat: &str, name: &str, tid: i64, at: i64, ns: i64| {
        event("X", cat, name).on(1, tid).at_ns(at).lasting_ns(ns)
    };
    let mut kernels = Vec::new();
    let mut launch = |tid: i64, at: i64, ns: i64| {
        correlation += 1;
        let call = slice("cuda_runtime", "cudaLaunchKernel", tid, at, 1_000);
        kernels.push(call.arg("correlation", correlation));
        let start = 1_000_000 + i64::from(correlation) * 100_000;
        let kernel = event("X", "kernel", "gemm").on(0, 7).at_ns(start).lasting_ns(ns);
        let kernel = kernel.arg("device", 0).arg("stream", 7).arg("correlation", correlation);
        kernels.push(kernel);
    };
    let mut number = 100;
    trace.push(
        event("X", "python_function", "nn.Module: Model_0").on(1, 1).at_ns(0).lasting_ns(300_000),
    );
    for layer in 0..3_i64 {
        let at = layer * 100_000;
        let name = format!("nn.Module: Layer_{layer}");
        let frame = event("X", "python_function", &name).on(1, 1).at_ns(at);
        trace.push(frame.lasting_ns(90_000));
        for (part, ns) in [(0, 10_000), (1, 30_000)] {
            number += 1;
            let (at, name) =
                (at + part * 40_000, format!("nn.Module: Linear_{}", 2 * layer + part));
            let frame = event("X", "python_function", &name).on(1, 1).at_ns(at);
            trace.push(frame.lasting_ns(30_000));
            let op = event("X", "cpu_op", "aten::addmm").on(1, 1).at_ns(at + 1_000);
            trace
                .push(op.lasting_ns(20_000).arg("Sequence number", number).arg("Fwd thread id", 0));
            launch(1, at + 2_000, ns);
            let back = 400_000 + at;
            let node = "autograd::engine::evaluate_function: AddmmBackward0";
            let op = event("X", "cpu_op", node).on(1, 2).at_ns(back).lasting_ns(20_000);
            trace.push(op.arg("Sequence number", number).arg("Fwd thread id", 1));
            launch(2, back + 1_000, 2 * ns);
        }
    }
    // Outside modules.
    launch(1, 950_000, 5_000);
    kernels.into_iter().for_each(|kernel| trace.push(kernel));
    trace.text()
}

#[test]
fn equal_layers_fold_and_the_backward_pass_is_theirs() {
    let modules = of_file(training().as_bytes()).modules.unwrap();
    let rows: Vec<(&str, u64, i64, i64)> = modules
        .rows
        .iter()
        .map(|row| (&*row.path, row.instances, row.forward_ns, row.backward_ns))
        .collect();
    assert_eq!(
        rows,
        [
            ("Model", 1, 120_000, 240_000),
            ("Model/Layer", 3, 120_000, 240_000),
            ("Model/Layer/Linear #1", 3, 30_000, 60_000),
            ("Model/Layer/Linear #2", 3, 90_000, 180_000),
        ]
    );
    assert_eq!((modules.device_ns, modules.outside_ns, modules.unlinked_ns), (365_000, 5_000, 0));
    let layer = &modules.rows[1];
    assert_eq!((layer.least_ns, layer.most_ns, layer.self_ns), (120_000, 120_000, 0));
    let section = modules.section(true);
    assert!(section.drawings[0].svg().contains("Layer x 3"), "{}", section.drawings[0].svg());
}

#[test]
fn the_outermost_modules_and_the_rest_are_all_gpu_time() {
    let mut n = 0;
    for sample in testkit::trace_samples() {
        let bytes = sample.bytes();
        let Some(modules) = of_file(&bytes).modules else { continue };
        n += 1;
        let of = |row: &diagnosis::TreeRow| row.forward_ns + row.backward_ns;
        let outermost: i64 = modules.rows.iter().filter(|row| row.depth == 0).map(of).sum();
        let own: i64 = modules.rows.iter().map(|row| row.self_ns).sum();
        assert_eq!(outermost, own, "{}", sample.name);
        let all = outermost + modules.outside_ns + modules.unlinked_ns;
        assert_eq!(all, modules.device_ns, "{}", sample.name);
    }
    assert!(n >= 3, "only {n} samples have modules");
}

#[test]
fn a_first_call_that_takes_most_of_the_time_is_told_apart() {
    // Five calls of one module, the first of which may be long; a kernel of each call, and one of none.
    let section = |first_ns: i64, says_share: bool| {
        let mut trace = Kineto::new().with("schemaVersion", "1");
        let mut kernels = Vec::new();
        let mut launch = |at: i64, link: i64| {
            let call = event("X", "cuda_runtime", "cudaLaunchKernel").on(1, 1).at_ns(at);
            kernels.push(call.lasting_ns(1_000).arg("correlation", link));
            let kernel = event("X", "kernel", "gemm").on(0, 7).at_ns(at + 5_000).lasting_ns(9_000);
            let kernel = kernel.arg("device", 0).arg("stream", 7);
            kernels.push(kernel.arg("correlation", link));
        };
        for n in 0..5_i64 {
            let at = n * 10_000_000;
            let frame = event("X", "python_function", "nn.Module: Linear_0").on(1, 1).at_ns(at);
            trace.push(frame.lasting_ns(if n == 0 { first_ns } else { 50_000 }));
            launch(at + 1_000, n + 1);
        }
        launch(60_000_000, 9);
        kernels.into_iter().for_each(|kernel| trace.push(kernel));
        of_file(trace.text().as_bytes()).modules.unwrap().section(says_share)
    };
    let longest = |first_ns: i64| {
        let section = section(first_ns, true);
        let table = &section.tables[0];
        table.columns.iter().any(|column| column.key == "cpu_most_ns")
    };
    assert!(longest(2_000_000), "2 of 2.2 ms are the first call");
    assert!(!longest(60_000), "all are about as long");
    assert_eq!(section(60_000, true).intro.len(), 1);
    assert!(section(60_000, false).intro.is_empty(), "the GPU is idle for most of the time");
}
