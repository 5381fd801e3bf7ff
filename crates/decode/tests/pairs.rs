//! Launches and their GPU work in files without correlations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::decode;

/// A call and a kernel, as text, by the arguments of each.
fn events(name: &str, cat: &str, ts: u32, args: &str) -> String {
    format!(
        r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":2,"args":{{{args}}}}}"#
    )
}

/// The correlation of each event.
fn links(events: &[String]) -> Vec<Option<i64>> {
    let file = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    let trace = decode(file).unwrap().trace;
    trace.rows().map(|row| trace.link(row)).collect()
}

#[test]
fn a_launch_and_a_kernel_with_one_external_id_are_a_pair_where_nothing_has_a_correlation() {
    let external = |id: u32| format!(r#""External id":{id}"#);
    let op = |id| events("aten::mm", "cpu_op", 1, &external(id));
    let query = |id| events("hipGetDevicePropertiesR0600", "cuda_runtime", 1, &external(id));
    let launch = |id, ts| events("hipExtModuleLaunchKernel", "cuda_runtime", ts, &external(id));
    let kernel = |id, ts| events("Cijk_Ailk", "kernel", ts, &external(id));
    // (Ops are counted by themselves: that one has the number of the launch in another says nothing.)
    let file = [op(2), query(1), launch(2, 3), launch(4, 5), kernel(2, 9), kernel(4, 12)];
    assert_eq!(links(&file), [None, None, Some(2), Some(4), Some(2), Some(4)]);
    // An op that launches twice: its id is that of both.
    let file = [op(7), launch(7, 3), launch(7, 5), kernel(7, 9), kernel(7, 12)];
    assert_eq!(links(&file), [None; 5]);
    assert_eq!(links(&[launch(7, 30), kernel(7, 9)]), [None; 2], "launched after it ran");
    let correlated = events("k", "kernel", 20, r#""External id":8,"correlation":3"#);
    assert_eq!(links(&[launch(2, 3), kernel(2, 9), correlated]), [None, None, Some(3)]);
}
