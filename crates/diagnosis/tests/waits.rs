//! How long a device waits, and for what, on tiny traces: each figure is given where the file shows it, and not where it does not.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{all_reduces, diagnosis, launch, of_file, with_details};
use diagnosis::{Diagnosis, Finding};
use fixture::{Fixture, kernel, slice};
use trace::{Collective, Details};

const REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32";
const SEND: &str = "ncclDevKernel_SendRecv";
const MS: i64 = 1_000_000;

fn found<'a>(diagnosis: &'a Diagnosis, rule: &str) -> &'a Finding {
    let found = diagnosis.findings.iter().find(|one| one.rule.id() == rule);
    found.unwrap_or_else(|| panic!("{rule}: {:?}", diagnosis.findings))
}

#[test]
fn a_place_of_a_graph_that_always_waits_has_no_fast_one_of_its_own() {
    // Ten launches of a graph with two all-reduces of 50 us, the first of which takes `first_us` of the launch.
    let with = |first_us: &dyn Fn(i64) -> i64| {
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let (at, link) = (n * 2 * MS, n + 1);
            let call = slice("cuda_runtime", "cudaGraphLaunch").at(at, 5_000).on(1, 1);
            fixture.push(call.link(link));
            fixture.push(kernel(REDUCE).at(at + 10_000, first_us(n) * 1_000).link(link));
            fixture.push(kernel("gemm").at(at + MS, 900_000).link(link));
            fixture.push(kernel(REDUCE).at(at + 1_900_000, 50_000).link(link));
        }
        let trace = fixture.finish();
        let kernels =
            (0..trace.len() as u32).filter(|row| trace.name_text(*row) != "cudaGraphLaunch");
        let launches =
            kernels.map(|row| (row, u32::from(trace.name_text(row) == "gemm"))).collect();
        let said = with_details(&trace, &Details { launches, ..Details::default() });
        found(&said, "M10").meaning.clone()
    };
    let waits = with(&|n| 300 + 40 * n);
    assert!(
        waits.contains("takes 480 µs at one place and 50.0 µs at another (medians)"),
        "{waits}"
    );
    assert!(waits.contains("they take 4.30 ms longer than"), "{waits}");
    let larger = with(&|_| 480);
    assert!(!larger.contains("they take"), "{larger}");
}

#[test]
fn what_a_collective_takes_above_its_bytes_at_a_slow_link_is_waiting() {
    let with = |us: i64, elements: i64| {
        let (mut fixture, mut details) = (Fixture::default(), Details::default());
        let (name, kind) =
            (details.texts.intern("all_to_allv"), details.texts.intern("Float;0;[0,1];"));
        let (in_elements, out_elements) = (elements, elements);
        details.collectives.push(Collective {
            name,
            kind,
            in_elements,
            out_elements,
            group_size: 2,
        });
        launch(&mut fixture, "gemm", 1, 0, 4_000, 500_000);
        launch(&mut fixture, REDUCE, 2, 10_000, 504_000, us * 1_000);
        details.collective_of.push((3, 0));
        launch(&mut fixture, "gemm", 3, 20_000, 504_000 + us * 1_000, 500_000);
        let said = with_details(&fixture.finish(), &details);
        let finding = found(&said, "M10");
        (finding.verdict, finding.meaning.clone(), said.actions)
    };
    // 24.6 kB take 0.05 ms twice on a slow link, and 0.05 ms to start.
    let (verdict, meaning, actions) = with(7_640, 6_144);
    assert_eq!(verdict, "waiting");
    let said = "one moves 24.6 kB in 7.64 ms. That is the first collective in the file";
    assert!(meaning.contains(said) || meaning.contains("24.0 KiB in 7.64 ms"), "{meaning}");
    assert!(
        meaning.contains("The excess is 7.54 ms in all: at least that is waiting"),
        "{meaning}"
    );
    assert!(actions.iter().all(|action| action.rule != "M10"), "{actions:?}");
    // 12 MB may take that long.
    let (verdict, meaning, _) = with(7_640, 3_000_000);
    assert_eq!(verdict, "exposed");
    assert!(meaning.starts_with("Part of it may be waiting for other ranks"), "{meaning}");
}

#[test]
fn reads_are_rated_by_the_idle_time_under_them() {
    // A kernel of 100 ms and reads: the first waits for it, the others for nothing.
    let with = |idle: i64| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, 0, 10_000, 100 * MS);
        for n in 0..5_i64 {
            let (at, end) = match n {
                0 => (20_000, 100 * MS + 20_000),
                n => (101 * MS + n * 2 * idle, 101 * MS + n * 2 * idle + idle),
            };
            fixture.push(slice("cpu_op", "aten::nonzero").at(at, end - at).on(1, 1));
            let call =
                slice("cuda_runtime", "cudaMemcpyAsync").at(at + 1_000, end - at - 2_000).on(1, 1);
            fixture.push(call.link(10 + n));
            let copy = slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)");
            fixture.push(copy.at(end - 2_000, 1_000).link(10 + n));
        }
        let finding = found(&diagnosis(fixture), "M6").clone();
        (finding.observation, finding.level)
    };
    let (few, low) = with(10_000);
    assert!(few.starts_with("5 aten::nonzero read from the GPU"), "{few}");
    assert!(
        few.contains("the GPU is idle for 44.0 µs during these reads") && !few.contains("100 ms"),
        "{few}"
    );
    let (many, high) = with(20 * MS);
    assert!(many.contains("the GPU is idle for 80"), "{many}");
    // (The highest level comes first.)
    assert!(high < low, "{high:?} {low:?}");
}

#[test]
fn idle_time_in_one_launch_of_a_graph_is_neither_between_launches_nor_outside_graphs() {
    // Kernels of 30 us every 60 us; then a launch that takes `call_us`, of a graph of fifty.
    let with = |call_us: i64| {
        let mut fixture = Fixture::default();
        for n in 0..20_i64 {
            fixture.push(slice("cpu_op", "aten::mm").at(n * 60_000, 50_000).on(1, 1));
            launch(&mut fixture, "gemm", n + 1, n * 60_000, n * 60_000 + 4_000, 30_000);
        }
        let at = 1_200_000;
        let end = at + call_us * 1_000;
        let call = slice("cuda_runtime", "cudaGraphLaunch").at(at, call_us * 1_000).on(1, 1);
        fixture.push(call.link(100));
        for n in 0..50_i64 {
            fixture.push(kernel("gemm").at(end + n * 100_000, 100_000).link(100));
        }
        diagnosis(fixture)
    };
    let slow = with(3_000);
    let headline = slow.headline.unwrap();
    assert!(headline.contains("of it within one cudaGraphLaunch of 50 nodes"), "{headline}");
    let late = slow.actions.iter().find(|one| ["M2", "M3"].contains(&&*one.rule));
    assert!(
        late.is_none_or(|one| one.bound_ns < MS && !one.hypothesis.contains("with_stack")),
        "{late:?}"
    );
    assert!(!with(20).headline.unwrap_or_default().contains("nodes"));
}

#[test]
fn the_kernel_before_which_most_late_time_lies_is_named() {
    // Ten times: five products, and a kernel of which every launch comes `late_us` late.
    let with = |late_us: i64, other_us: i64| {
        let mut fixture = Fixture::default();
        let (mut at, mut link) = (0, 0);
        for _ in 0..10 {
            for n in 0..6_i64 {
                let gap = if n == 5 { late_us } else { other_us } * 1_000;
                let name = if n == 5 { "linear_relu_square_kernel" } else { "gemm" };
                fixture.push(slice("cpu_op", "prepare_inputs").at(at, gap + 1_000).on(1, 1));
                at += gap + 10_000;
                link += 1;
                launch(&mut fixture, name, link, at, at + 4_000, 500_000);
                at += 510_000;
            }
        }
        let said = diagnosis(fixture);
        let action = said.actions.into_iter().find(|one| one.rule == "M3");
        action.map(|one| (one.action, one.hypothesis)).unwrap_or_default()
    };
    let (action, why) = with(2_000, 10);
    let expected = "Shorten what the CPU does before it launches linear_relu_square_kernel: 2.0";
    assert!(action.starts_with(expected), "{action}");
    assert!(why.contains("end with a launch of linear_relu_square_kernel: 10 times, 2.0"), "{why}");
    let (action, why) = with(1_000, 1_000);
    assert!(!action.contains("linear_relu") && !why.contains("linear_relu"), "{action} {why}");
    assert!(action.starts_with("Shorten"), "{action}");
}

#[test]
fn idle_time_of_which_nothing_is_recorded_stays_without_the_profiler() {
    // Short kernels launched one by one, and in between `pause_ms` in which nothing is recorded.
    let with = |pause_ms: i64| {
        let mut fixture = Fixture::default();
        for n in 0..200_i64 {
            let at = n * 60_000 + if n < 100 { 0 } else { pause_ms * MS };
            fixture.push(slice("cpu_op", "aten::add").at(at, 55_000).on(1, 1));
            launch(&mut fixture, "elementwise", n + 1, at, at + 4_000, 40_000);
        }
        let said = diagnosis(fixture);
        let late = said.findings.into_iter().find(|one| ["M2", "M3"].contains(&one.rule.id()));
        late.map(|one| one.meaning).unwrap_or_default()
    };
    let paused = with(2);
    let said = "between about 10.0 ms (the GPU's work, without communication, and 2.0";
    assert!(paused.contains(said), "{paused}");
    let without = with(0);
    assert!(
        without.contains("between about 8.00 ms (the GPU's work, without communication)"),
        "{without}"
    );
}

/// What is said of waits in twenty steps: an op copies from memory of the CPU and waits for the copy, and what comes next is launched later.
fn copied_from(memory: &str) -> (Diagnosis, String) {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name, at, dur| slice(raw_category, name).at(at, dur).on(1, 1);
    let copy = format!("Memcpy HtoD ({memory} -> Device)");
    for n in 0..20_i64 {
        let (at, link) = (n * MS, 2 * n + 1);
        fixture.push(cpu("cpu_op", "aten::copy_", at, 220_000));
        fixture.push(cpu("cuda_runtime", "cudaMemcpyAsync", at + 5_000, 10_000).link(link));
        fixture.push(cpu("cuda_runtime", "cudaStreamSynchronize", at + 18_000, 200_000));
        fixture.push(slice("gpu_memcpy", &copy).at(at + 20_000, 190_000).link(link));
        launch(&mut fixture, "gemm", link + 1, at + 400_000, at + 404_000, 100_000);
    }
    let said = diagnosis(fixture);
    let observation = found(&said, "M5").observation.clone();
    (said, observation)
}

#[test]
fn what_the_gpu_stands_still_after_a_pageable_copy_is_no_cost_of_a_read() {
    let advised = |said: &Diagnosis| said.actions.iter().any(|one| one.rule == "M5");
    let (said, text) = copied_from("Pageable");
    assert!(text.contains("is of copies to it from pageable memory") && !advised(&said), "{text}");
    let (said, text) = copied_from("Pinned");
    assert!(!text.contains("pageable") && advised(&said), "{text}: {:?}", said.actions);
}

#[test]
fn what_a_call_of_the_cpu_holds_back_is_not_for_overlap() {
    // Ten times: a product, an exchange of 10 ms, meanwhile `call` for `call_us` on a thread, and a product that is launched `queued` or after it.
    let with = |call: &str, call_us: i64, thread: i64, queued: bool| {
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let (at, link) = (n * 20 * MS, 3 * n);
            launch(&mut fixture, "gemm", link + 1, at, at + 10_000, 4 * MS);
            launch(&mut fixture, SEND, link + 2, at + 4_000, at + 4_010_000, 10 * MS);
            if queued {
                launch(&mut fixture, "gemm", link + 3, at + 8_000, at + 14_020_000, 4 * MS);
            }
            let call = slice("cuda_runtime", call).at(at + 4_100_000, call_us * 1_000);
            fixture.push(call.on(1, thread));
            if !queued {
                let launched = at + 13 * MS;
                launch(&mut fixture, "gemm", link + 3, launched, at + 14_020_000, 4 * MS);
            }
        }
        let said = diagnosis(fixture);
        let finding = found(&said, "M10").clone();
        (finding.bound_ns, finding.meaning)
    };
    let (bound, meaning) = with("cudaMalloc", 8_000, 1, false);
    let said = "For 80.0 ms of the exposed time a launching thread is in cudaMalloc or the like, not only until the communication ends, and what comes next is not launched";
    assert!(meaning.contains(said), "{meaning}");
    assert!(bound.is_some_and(|ns| ns <= 20 * MS), "{bound:?}");
    let gates = [
        ("cudaMalloc", 90, 1, false, "little of it"),
        ("cudaMalloc", 8_000, 1, true, "the product waits for the exchange"),
        ("cudaMalloc", 8_000, 2, false, "another thread"),
        ("cudaStreamSynchronize", 8_000, 1, false, "it waits for the exchange"),
        ("cudaFree", 9_915, 1, false, "it ends with the exchange"),
    ];
    for (call, us, thread, queued, why) in gates {
        let (_, meaning) = with(call, us, thread, queued);
        assert!(!meaning.contains("is not launched"), "{why}: {meaning}");
    }
}

#[test]
fn a_slow_link_is_told_where_no_rank_is_late() {
    // Ten steps with two all-reduces of so many floats, the second of which starts `apart_us` after the first ends.
    let with = |elements: i64, us: i64, apart_us: i64| {
        let mut details = all_reduces(&[elements]);
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let (at, link) = (n * 100 * MS, 3 * n);
            launch(&mut fixture, "gemm", link + 1, at, at + 10_000, 9 * MS);
            let (first, ns) = (at + 10 * MS, us * 1_000);
            launch(&mut fixture, REDUCE, link + 2, at + 4_000, first, ns);
            let second = first + ns + apart_us * 1_000;
            launch(&mut fixture, REDUCE, link + 3, at + 8_000, second, ns);
            let row = 6 * n as u32;
            details.collective_of.extend([(row + 3, 0), (row + 5, 0)]);
        }
        let said = with_details(&fixture.finish(), &details);
        let finding = said.findings.into_iter().find(|one| one.rule.id() == "M10");
        finding.map(|one| one.meaning).unwrap_or_default()
    };
    // 16 MB between two ranks, each of which sends as much.
    let slow = with(4_000_000, 4_000, 2);
    assert!(slow.contains("they take 4.00 ms (median) for "), "{slow}");
    assert!(slow.contains("Over 2 ranks that is 4.00 GB/s (bus bandwidth"), "{slow}");
    assert!(slow.contains("unless a rank comes later by as much each time"), "{slow}");
    let others = [
        (4_000_000, 4_000, 50, "a rank may be late"),
        (4_000_000, 400, 2, "40 GB/s"),
        (1_000_000, 1_000, 2, "latency"),
    ];
    for (elements, us, apart_us, why) in others {
        let said = with(elements, us, apart_us);
        assert!(!said.contains("GB/s (bus"), "{why}: {said}");
    }
}

/// 200 reads of 8 bytes, so many us apart, after a launch each. The kernels take 5 us, and the device is idle between them.
fn read_one_by_one(apart_us: i64) -> Diagnosis {
    let mut events = Vec::new();
    let mut push = |raw_category: &str, name: &str, (at, dur): (i64, i64), args: String| {
        let (pid, tid) = if raw_category.starts_with("cuda") { (1, 1) } else { (0, 7) };
        events.push(format!(
            r#"{{"ph": "X", "cat": "{raw_category}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {at}, "dur": {dur}, "args": {args}}}"#
        ));
    };
    for n in 0..200_i64 {
        let (at, id) = (n * apart_us, 2 * n + 1);
        let linked = |id: i64| format!(r#"{{"correlation": {id}}}"#);
        push("cuda_runtime", "cudaLaunchKernel", (at, 4), linked(id));
        push(
            "kernel",
            "eq",
            (at + 8, 5),
            format!(r#"{{"correlation": {id}, "device": 0, "stream": 7}}"#),
        );
        push("cuda_runtime", "cudaMemcpyAsync", (at + 10, 90), linked(id + 1));
        let copied =
            format!(r#"{{"correlation": {}, "device": 0, "stream": 7, "bytes": 8}}"#, id + 1);
        push("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", (at + 70, 2), copied);
    }
    of_file(format!(r#"{{"traceEvents": [{}]}}"#, events.join(",")).as_bytes())
}

#[test]
fn a_loop_that_reads_its_values_one_by_one_costs_all_of_its_idle_time() {
    let said = read_one_by_one(200);
    let action = said.actions.iter().find(|one| one.remedy == "copy-once").unwrap();
    // Between the kernel and the copy, and from the copy to the next kernel.
    assert_eq!(action.bound_ns, (200 * 57 + 199 * 136) * 1_000);
    assert!(
        found(&said, "M5").meaning.starts_with("In one loop, of 200 reads"),
        "{:?}",
        found(&said, "M5")
    );
    // Further apart they are no such loop: what the waits cost remains.
    let apart = read_one_by_one(2_000);
    assert!(!found(&apart, "M5").meaning.contains("loop"), "{:?}", found(&apart, "M5"));
}
