//! `bench-op`: the script of an op, as text and as Python.

use std::process::Command;

use testkit::{Kineto, event};

use crate::common::{Folder, assert_golden};

/// Three calls of `aten::addmm`, two of them with equal arguments, and one of an op without sizes.
fn trace() -> String {
    let mut trace = Kineto::new();
    let call = |n: i64, ns: i64, rows: i64| {
        event("X", "cpu_op", "aten::addmm")
            .on(5, 1)
            .at_ns(n * 100_000)
            .lasting_ns(ns)
            .raw_arg("Input Dims", &format!("[[8], [{rows}, 4], [4, 8], [], []]"))
            .raw_arg("Input Strides", "[[1], [4, 1], [1, 4], [], []]")
            .raw_arg(
                "Input type",
                r#"["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"]"#,
            )
            .raw_arg("Concrete Inputs", r#"["", "", "", "1", "1"]"#)
    };
    trace.push(call(0, 20_000, 64));
    trace.push(call(1, 30_000, 2));
    trace.push(call(2, 20_000, 64));
    trace.push(event("X", "cpu_op", "aten::relu").on(5, 1).at_ns(400_000).lasting_ns(1_000));
    trace.text()
}

#[test]
fn a_script_has_the_arguments_of_the_kind_with_most_time_and_is_python() {
    let folder = Folder::new("bench-op");
    folder.write("run.json", trace());
    let run = folder.run(&["bench-op", "run.json", "--op", "aten::addmm"]).done();
    assert_golden("bench_op.py.txt", &run.stdout);
    let second = folder.run(&["bench-op", "run.json", "--op", "aten::addmm", "--kind", "2"]).done();
    assert!(second.stdout.contains("tensor([2,4], [4,1], torch.bfloat16, 1)"), "{}", second.stdout);
    folder.write("script.py", &run.stdout);
    let script = folder.path().join("script.py");
    // (Without Python only the text is compared.)
    match Command::new("python3").args(["-m", "py_compile"]).arg(script).output() {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(error) => eprintln!("SKIPPED (no python3: {error})"),
    }
}

#[test]
fn what_is_missing_is_named() {
    let folder = Folder::new("bench-op-missing");
    folder.write("run.json", trace());
    for (op, more, says) in [
        ("aten::mm", None, "the trace has no op aten::mm"),
        ("aten::relu", None, "record_shapes=True"),
        ("aten::addmm", Some("3"), "the op has 2 kinds of calls"),
        ("addmm", None, "addmm is not a name in torch.ops"),
        ("vllm::rms_norm", None, "vllm::rms_norm needs more than PyTorch"),
    ] {
        let mut arguments = vec!["bench-op", "run.json", "--op", op];
        arguments.extend(more.iter().flat_map(|kind| ["--kind", kind]));
        let run = folder.run(&arguments);
        assert_eq!(run.code, 1, "{op}");
        assert!(run.stderr.contains(says), "{op}: {}", run.stderr);
    }
}

#[test]
fn all_scripts_are_printed_with_the_reasons_of_those_that_there_are_not() {
    let folder = Folder::new("bench-op-all");
    folder.write("run.json", trace());
    let run = folder.run(&["bench-op", "run.json", "--all"]).done();
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = |line: &serde_json::Value| {
        (line["op"].as_str().unwrap().to_owned(), line["kind"].as_u64(), line["calls"].as_u64())
    };
    let places: Vec<_> = lines.iter().map(place).collect();
    let addmm = |kind, calls| ("aten::addmm".to_owned(), Some(kind), Some(calls));
    assert_eq!(places, [addmm(1, 2), addmm(2, 1), ("aten::relu".to_owned(), Some(0), Some(0))]);
    let one = folder.run(&["bench-op", "run.json", "--op", "aten::addmm"]).done();
    assert_eq!(lines[0]["script"].as_str(), Some(&*one.stdout));
    assert!(lines[2]["reason"].as_str().unwrap().contains("record_shapes=True"));
    assert_eq!(folder.run(&["bench-op", "run.json"]).code, 2, "neither an op nor all");
}
