//! `kinetoscope scaling`: runs of one model at several batch sizes.

use testkit::{Kineto, event};

use crate::common::Folder;

/// Four steps of `ms` each, whose first op takes a batch of `batch`.
fn run(batch: i64, ms: i64, features: i64) -> String {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    for step in 0..4 {
        let at = step * ms * 1_000_000;
        let name = format!("ProfilerStep#{step}");
        let slice = event("X", "user_annotation", &name).on(1, 1).at_ns(at);
        trace.push(slice.lasting_ns(ms * 1_000_000));
        let op = event("X", "cpu_op", "aten::linear").on(1, 1).at_ns(at + 1_000).lasting_ns(5_000);
        let dims = format!("[[{batch}, {features}], [8, {features}]]");
        trace.push(op.raw_arg("Input Dims", &dims).raw_arg("Input type", r#"["float", "float"]"#));
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
fn runs_of_other_inputs_have_no_batch_sizes() {
    let folder = Folder::new("scaling-other");
    folder.write("a.json", run(8, 4, 64));
    folder.write("b.json", run(16, 4, 128));
    let said = folder.run(&["scaling", "a.json", "b.json"]).done().stdout;
    assert!(said.contains("No batch sizes to compare"), "{said}");
    assert_eq!(folder.run(&["scaling", "a.json"]).code, 2);
}
