//! `kinetoscope scaling`: runs of one model at several batch sizes.

use testkit::{Kineto, event};

use crate::common::Folder;

/// Four steps of `ms` each, whose first op takes a batch of `batch`.
fn run(batch: i64, ms: i64, features: i64) -> String {
    steps(ms, &[("aten::linear", &format!("[[{batch}, {features}], [8, {features}]]"))])
}

/// Four steps of `ms` each, which call these ops with these sizes.
fn steps(ms: i64, ops: &[(&str, &str)]) -> String {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    for step in 0..4 {
        let at = step * ms * 1_000_000;
        let name = format!("ProfilerStep#{step}");
        let slice = event("X", "user_annotation", &name).on(1, 1).at_ns(at);
        trace.push(slice.lasting_ns(ms * 1_000_000));
        for (start_us, (name, dims)) in (1..).step_by(10).zip(ops) {
            let op = event("X", "cpu_op", name).on(1, 1).at_ns(at + start_us * 1_000);
            let op = op.lasting_ns(5_000).raw_arg("Input Dims", dims);
            trace.push(op.raw_arg("Input type", r#"["float", "float"]"#));
        }
    }
    trace.text()
}

#[test]
fn throughput_follows_the_batch_size() {
    let folder = Folder::new("scaling");
    for (batch, ms) in [(8, 4), (1, 2), (16, 16)] {
        folder.write(&format!("b{batch}.json"), run(batch, ms, 64));
    }
    let found = folder.run(&["scaling", "b8.json", "b1.json", "b16.json", "--json"]).done().json();
    let rows: Vec<(i64, i64, f64)> = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let number = |key: &str| row[key].as_f64().unwrap();
            (number("batch") as i64, number("p50_ns") as i64, number("gain"))
        })
        .collect();
    assert_eq!(rows, [(1, 2_000_000, 1.0), (8, 4_000_000, 4.0), (16, 16_000_000, 2.0)]);
    let said = folder.run(&["scaling", "b8.json", "b1.json", "b16.json"]).done().stdout;
    assert!(said.contains("It is highest at batch size 8."), "{said}");
}

#[test]
fn a_weight_or_a_gradient_is_no_batch() {
    let folder = Folder::new("scaling-embedding");
    for (batch, ms) in [(4, 2), (8, 3)] {
        let indices = format!("[[8192, 128], [{batch}, 512], [], [], []]");
        let ops = [("aten::zero_", "[[8192, 128]]"), ("aten::embedding", indices.as_str())];
        folder.write(&format!("b{batch}.json"), steps(ms, &ops));
    }
    let found = folder.run(&["scaling", "b4.json", "b8.json", "--json"]).done().json();
    let batches: Vec<_> =
        found["rows"].as_array().unwrap().iter().map(|row| &row["batch"]).collect();
    assert_eq!(batches, [4, 8]);
}

#[test]
fn runs_of_other_inputs_have_no_batch_sizes() {
    let folder = Folder::new("scaling-other");
    folder.write("a.json", run(8, 4, 64));
    folder.write("b.json", run(16, 4, 128));
    let said = folder.run(&["scaling", "a.json", "b.json"]).done().stdout;
    assert!(said.contains("No batch sizes to compare"), "{said}");
    assert_eq!(folder.run(&["scaling", "a.json"]).code, 2);
}
