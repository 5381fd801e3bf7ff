//! Where a device waits for the launching thread, on small traces.

use fixture::{Fixture, Slice, kernel, slice};

use super::*;
use crate::report::HostIndex;

/// A frame of the launching thread.
fn frame(name: &str) -> Slice<'_> {
    slice("python_function", name).on(1, 1)
}

/// A launch of 5 ns.
fn call(at: i64, id: i64) -> Slice<'static> {
    slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 5).link(id)
}

/// A thread that works for 60 ns in one function and 20 ns in an op of another before it launches.
fn waits() -> Fixture {
    let mut fixture = Fixture::default();
    fixture.push(frame("train.py(3): main").at(0, 200));
    fixture.push(call(5, 1));
    fixture.push(frame("data.py(7): decode").at(30, 60));
    fixture.push(frame("<built-in method zoom of Image object at 0x7f>").at(40, 45));
    fixture.push(frame("model.py(9): forward").at(95, 40));
    fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(110, 20));
    fixture.push(call(125, 2));
    fixture.push(kernel("a").at(15, 10).link(1));
    fixture.push(kernel("b").at(140, 10).link(2));
    fixture
}

fn places(fixture: Fixture) -> IdlePlaces {
    let trace = fixture.finish();
    let index = HostIndex::of(&trace);
    idle_places(&index.slices, &index.gpu, None).remove("0").expect("a device")
}

fn rows(places: &[IdlePlace]) -> Vec<(&str, i64, &str)> {
    places.iter().map(|one| (&*one.name, one.total_ns, &*one.inside)).collect()
}

#[test]
fn idle_time_until_a_launch_belongs_to_the_line_that_the_thread_is_in() {
    let found = places(waits());
    // From the end of the first kernel, 25, to the end of the second launch, 130.
    assert_eq!(found.host_ns, 105);
    assert_eq!(
        rows(&found.lines),
        [
            ("data.py:7 decode", 60, "built-in method zoom of Image object"),
            ("model.py:9 forward", 35, ""),
            ("train.py:3 main", 10, ""),
        ]
    );
    assert_eq!(rows(&found.ops), [("aten::mm", 20, "")]);
    let starts = found.lines.iter().chain(&found.ops).map(|one| one.longest_start_ns);
    assert_eq!(
        starts.collect::<Vec<_>>(),
        [Some(25); 4],
        "the only gap begins where the kernel ends"
    );
    assert_eq!((found.outside_lines_ns, found.outside_ops_ns), (0, 85));
    let around = found.around.expect("main is open all the time");
    assert_eq!((&*around.name, around.total_ns), ("train.py:3 main", 105));
}

#[test]
fn the_longest_gap_of_a_line_is_none_of_what_it_calls() {
    let mut fixture = Fixture::default();
    fixture.push(frame("train.py(3): main").at(0, 500));
    fixture.push(frame("data.py(7): decode").at(30, 60));
    fixture.push(frame("log.py(9): write").at(200, 20));
    for (id, at) in [(1, 5), (2, 95), (3, 225)] {
        fixture.push(call(at, id));
        fixture.push(kernel("k").at(at + 10, 10).link(id));
    }
    let found = places(fixture);
    let start =
        |name: &str| found.lines.iter().find(|line| line.name == name).unwrap().longest_start_ns;
    // From 25 to 100 the thread is in decode for 60; from 115 to 230 in main itself for 95.
    assert_eq!((start("data.py:7 decode"), start("train.py:3 main")), (Some(25), Some(115)));
    let mut fixture = Fixture::default();
    fixture.push(frame("train.py(3): main").at(0, 500));
    fixture.push(frame("data.py(7): decode").at(30, 190));
    for (id, at) in [(1, 5), (2, 225), (3, 260)] {
        fixture.push(call(at, id));
        fixture.push(kernel("k").at(at + 10, 10).link(id));
    }
    let found = places(fixture);
    let main = found.lines.iter().find(|line| line.name == "train.py:3 main").unwrap();
    // Of the gap from 25 to 230, main has 15; of that from 245 to 265, 20.
    assert_eq!((main.total_ns, main.longest_start_ns), (35, Some(245)));
}

#[test]
fn within_windows_only_their_time_counts() {
    let trace = waits().finish();
    let index = HostIndex::of(&trace);
    let found = idle_places(&index.slices, &index.gpu, Some(&[(0, 45), (100, 120)]));
    let found = &found["0"];
    assert_eq!(found.host_ns, 20 + 20);
    assert_eq!(
        rows(&found.lines),
        [
            ("model.py:9 forward", 20, ""),
            // (Half of the time is in the frame itself.)
            ("data.py:7 decode", 15, ""),
            ("train.py:3 main", 5, ""),
        ]
    );
}

#[test]
fn a_frame_that_lost_its_end_ends_with_the_one_around_it() {
    let mut fixture = Fixture::default();
    fixture.push(frame("train.py(3): main").at(0, 1_000));
    fixture.push(call(5, 1));
    fixture.push(frame("data.py(7): decode").at(30, 60));
    fixture.push(frame("data.py(9): close").at(40, 5_000));
    // After both: it lies in the outermost alone.
    fixture.push(frame("model.py(9): forward").at(95, 20));
    fixture.push(call(200, 2));
    fixture.push(kernel("a").at(15, 10).link(1));
    fixture.push(kernel("b").at(210, 10).link(2));
    let found = places(fixture);
    let forward = found.lines.iter().find(|line| line.name == "model.py:9 forward").unwrap();
    assert_eq!((found.host_ns, forward.total_ns), (205 - 25, 20));
    let sum: i64 = found.lines.iter().map(|line| line.total_ns).sum();
    assert_eq!(sum, found.host_ns);
    let close = found.lines.iter().find(|line| line.name == "data.py:9 close").unwrap();
    assert_eq!(close.total_ns, 90 - 40);
}

#[test]
fn a_thread_that_waits_for_work_is_told_apart() {
    let mut fixture = waits();
    let of = |fixture: Fixture, within: Interval| {
        let trace = fixture.finish();
        let index = HostIndex::of(&trace);
        waits_for_others_within(&index.slices, &index.gpu, 0, &[within])
    };
    assert_eq!(of(waits(), (0, 200)), None);
    let frame = "vllm/distributed/device_communicators/shm_broadcast.py(680): acquire_read";
    fixture.push(slice("python_function", frame).on(1, 1).at(32, 50));
    let found = of(fixture, (0, 72)).expect("it waits");
    assert_eq!((found.total_ns, found.n), (40, 1));
    assert!(found.name.ends_with("acquire_read"), "{}", found.name);
}

#[test]
fn a_thread_waits_for_gloo_on_another_thread_of_its_process() {
    const MS: i64 = 1_000_000;
    let with = |gloo: Option<(i64, i64)>, works: bool| {
        let mut fixture = Fixture::default();
        for (id, at) in [(1, 0), (2, 20 * MS)] {
            let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1);
            fixture.push(call.at(at, 5_000).link(id));
            fixture.push(kernel("a").at(at + 10_000, 10_000).link(id));
        }
        if let Some((pid, tid)) = gloo {
            let all_reduce = slice("user_annotation", "gloo:all_reduce").on(pid, tid);
            fixture.push(all_reduce.at(2 * MS, 10 * MS));
            // (Another bucket at the same time.)
            let all_reduce = slice("user_annotation", "gloo:all_reduce").on(pid, tid + 1);
            fixture.push(all_reduce.at(3 * MS, 10 * MS));
        }
        if works {
            fixture.push(slice("cpu_op", "aten::mul").on(1, 1).at(2 * MS, 15 * MS));
        }
        let trace = fixture.finish();
        let index = HostIndex::of(&trace);
        waits_for_others_within(&index.slices, &index.gpu, 0, &[(0, 30 * MS)])
    };
    let found = with(Some((1, 7)), false).expect("it waits");
    assert_eq!((&*found.name, found.total_ns), ("gloo:all_reduce", 11 * MS));
    assert_eq!(with(None, false), None);
    assert_eq!(with(Some((1, 7)), true), None, "it works meanwhile");
    assert_eq!(with(Some((2, 7)), false), None, "another process");
}

#[test]
fn a_queued_launch_waits_for_no_line() {
    let mut fixture = Fixture::default();
    for (id, at) in [(1, 0), (2, 6)] {
        let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1);
        fixture.push(call.at(at, 5).link(id));
    }
    fixture.push(kernel("a").at(20, 10).link(1));
    fixture.push(kernel("b").at(40, 10).link(2));
    let found = places(fixture);
    assert_eq!((found.host_ns, found.lines.len(), found.ops.len()), (0, 0, 0));
}

#[test]
fn a_step_that_begins_long_before_its_first_kernel_waits_from_its_start() {
    let mut fixture = waits();
    fixture.push(slice("user_annotation", "ProfilerStep#1").on(1, 1).at(-40, 240));
    let found = places(fixture);
    // 50 until the first launch is over; after the last kernel only the profiler works.
    assert_eq!(found.host_ns, 105 + 50);
    let main = found.lines.iter().find(|line| line.name == "train.py:3 main").unwrap();
    // (The first 40 are before it.)
    assert_eq!((main.total_ns, found.outside_lines_ns), (10 + 10, 40));
}

#[test]
fn an_op_has_the_time_of_those_that_it_calls() {
    let mut fixture = waits();
    let op = |name| slice("cpu_op", name).on(1, 1);
    // (A step of an old profiler is around all of it.)
    fixture.push(op("ProfilerStep#1").at(0, 200));
    fixture.push(op("autograd::engine::evaluate_function: MmBackward0").at(100, 32));
    fixture.push(op("aten::t").at(104, 4));
    let found = places(fixture);
    // From 100 to 130, of which aten::mm has 20 and aten::t 4.
    assert_eq!(rows(&found.calls), [("MmBackward0", 30, "")]);
}
