//! The model on traces made by hand.

use super::*;
use fixture::{Fixture, kernel, slice};
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;

const US: i64 = 1_000;

/// Kernels as (launched, begun, duration) in µs, each launch of 1 µs, and calls that synchronise as (start, end).
fn wall(kernels: &[(i64, i64, i64)], waits: &[(i64, i64)]) -> Wall {
    let on: Vec<_> = kernels.iter().map(|(from, at, dur)| (7, *from, *at, *dur)).collect();
    on_streams(&on, waits)
}

/// The same, each kernel with its stream first.
fn on_streams(kernels: &[(i64, i64, i64, i64)], waits: &[(i64, i64)]) -> Wall {
    let mut fixture = Fixture::default();
    for (link, (stream, launched, begun, dur)) in (1..).zip(kernels) {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
        fixture.push(launch.at(launched * US, US));
        fixture.push(kernel("k").on(0, *stream).at(begun * US, dur * US).link(link));
    }
    for (from, to) in waits {
        let call = slice("cuda_runtime", "cudaDeviceSynchronize").on(1, 1);
        fixture.push(call.at(from * US, (to - from) * US));
    }
    of_fixture(fixture)
}

/// The wall of a trace of CUDA.
fn of_fixture(fixture: Fixture) -> Wall {
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
    Wall::of(&gpu, &Launches::of(&gpu), Lost::default())
}

#[test]
fn time_counts_where_work_is_queued() {
    // All launched at once, run one after the other.
    let queued = wall(&[(0, 10, 100), (1, 110, 100), (2, 210, 100)], &[]);
    assert_eq!(queued.span_ns, 300 * US);
    assert_eq!(queued.saved_ns(&[(0, 50 * US)]), 50 * US);
    assert_eq!(queued.saved_ns(&[(0, 50 * US), (1, 60 * US)]), 110 * US);
    assert_eq!(queued.saved_ns(&[]), 0);
}

#[test]
fn time_is_lost_where_the_gpu_waits_for_the_cpu() {
    // Each is launched long after the one before it was done.
    let starved = wall(&[(0, 2, 10), (100, 102, 10), (200, 202, 10)], &[]);
    assert_eq!(starved.saved_ns(&[(0, 9 * US)]), US, "a launch takes its microsecond");
    assert_eq!(starved.saved_ns(&[(2, 9 * US)]), 9 * US, "the last one ends the window");
}

#[test]
fn a_launch_that_goes_away_saves_its_cpu_time_where_the_gpu_is_idle() {
    let gone = |slice, cpu_us: i64| [Removed { slice, gpu_ns: 0, cpu_ns: cpu_us * US }];
    let starved = wall(&[(0, 2, 10), (100, 102, 10), (200, 202, 10)], &[]);
    assert_eq!(starved.saved_without(&gone(0, 40)), 40 * US);
    assert_eq!(starved.saved_without(&gone(0, 300)), 180 * US, "only while the GPU is idle");
    assert_eq!(starved.saved_without(&gone(2, 40)), 0, "nothing is launched after it");
    let queued = wall(&[(0, 10, 100), (1, 110, 100), (2, 210, 100)], &[]);
    assert_eq!(queued.saved_without(&gone(0, 40)), 0, "the GPU does not wait for the CPU");
    // A call that waits for the GPU makes the CPU's lead worthless.
    let waits = wall(&[(0, 2, 10), (20, 22, 10), (100, 102, 10)], &[(1, 15)]);
    assert_eq!(waits.saved_without(&gone(0, 10)), 0);
    assert_eq!(waits.saved_without(&gone(1, 10)), 10 * US);
    assert_eq!(starved.launch_ns([0, 1, 2].into_iter()), Some(100 * US));
}

#[test]
fn the_time_of_a_launch_is_without_calls_that_allocate_memory() {
    let mut fixture = Fixture::default();
    for (link, (thread, launched)) in (1..).zip([(1, 0), (1, 100), (1, 200), (2, 0), (2, 100)]) {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, thread).link(link);
        fixture.push(launch.at(launched * US, US));
        fixture.push(kernel("k").at((launched + 2 * thread) * US, US).link(link));
    }
    // Two in the time of the first launch. (Neither an op nor a frame of that name is a call.)
    for (category, name, at, dur) in [
        ("cuda_runtime", "cudaFree", 20, 30),
        ("cuda_runtime", "cudaMalloc", 60, 30),
        ("python_function", "<built-in method cudaMalloc>", 60, 30),
        ("cuda_runtime", "cudaMalloc", 250, 30),
    ] {
        fixture.push(slice(category, name).on(1, 1).at(at * US, dur * US));
    }
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
    let wall = Wall::of(&gpu, &Launches::of(&gpu), Lost::default());
    let of = |at: u32| wall.is_launched_alone(at).then(|| wall.spacing_ns(at) / US);
    let order: Vec<i64> = (0..gpu.len()).map(|at| gpu.slice(at).start_ns / US).collect();
    assert_eq!(order, [2, 4, 102, 104, 202]);
    assert_eq!([0, 1, 2, 3, 4].map(of), [Some(40), Some(100), Some(100), None, None]);
    assert!(wall.is_next_after(0, 100 * US) && !wall.is_next_after(0, 40 * US));
}

#[test]
fn an_op_that_goes_away_saves_its_time_where_the_gpu_is_idle() {
    let starved = wall(&[(0, 2, 10), (100, 102, 10), (200, 202, 10)], &[]);
    let us = |times: &[(i64, i64)]| -> Vec<(i64, i64)> {
        times.iter().map(|(from, to)| (from * US, to * US)).collect()
    };
    let of = |wall: &Wall, ops: &[(i64, i64)]| wall.saved_with_ops(&[], &us(ops));
    assert_eq!(of(&starved, &[(20, 60)]), 40 * US);
    assert_eq!(of(&starved, &[(20, 60), (120, 150)]), 70 * US);
    assert_eq!(of(&starved, &[(220, 260)]), 0, "nothing is launched after it");
    let gone = [Removed { slice: 1, gpu_ns: 9 * US, cpu_ns: 0 }];
    // (The launch of the last one takes its microsecond.)
    assert_eq!(starved.saved_with_ops(&gone, &us(&[(20, 60)])), 41 * US);
    let queued = wall(&[(0, 10, 100), (1, 110, 100), (2, 210, 100)], &[]);
    assert_eq!(of(&queued, &[(0, 1)]), 0, "the GPU does not wait for the CPU");
    // What comes before a wait for the GPU only makes that longer.
    let waits = wall(&[(0, 2, 50), (60, 62, 10), (100, 102, 10)], &[(10, 52)]);
    assert_eq!(of(&waits, &[(2, 8)]), 0);
    assert_eq!(of(&waits, &[(70, 90)]), 20 * US);
}

#[test]
fn the_microsecond_between_queued_kernels_is_no_wait_for_the_cpu() {
    let queued = wall(&[(0, 10, 100), (1, 111, 100), (2, 212, 100)], &[]);
    let gone = [Removed { slice: 0, gpu_ns: 0, cpu_ns: 40 * US }];
    assert_eq!(queued.saved_without(&gone), 0);
}

#[test]
fn a_graph_holds_its_kernels_up_to_its_last_pause_and_no_longer() {
    // The call lasts for 1 ms; the third kernel waits for it, the others follow each other.
    let graph = |kernels: &[(i64, i64)]| {
        let mut fixture = Fixture::default();
        let launch = slice("cuda_runtime", "hipGraphLaunch").on(1, 1).link(1);
        fixture.push(launch.at(0, 1_000 * US));
        for (begun, dur) in kernels {
            fixture.push(kernel("k").on(0, 7).at(begun * US, dur * US).link(1));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Rocm, &before, &Options::default());
        Wall::of(&gpu, &Launches::of(&gpu), Lost::default())
    };
    let wall = graph(&[(10, 50), (61, 50), (300, 100), (401, 100), (502, 100)]);
    assert_eq!(wall.saved_ns(&[(0, 20 * US)]), 0, "the third is launched no sooner");
    assert_eq!(wall.saved_ns(&[(2, 20 * US)]), 20 * US, "what follows it was there");
    assert_eq!(wall.saved_ns(&[(1, 20 * US), (2, 20 * US), (3, 30 * US)]), 50 * US);
}

#[test]
fn another_stream_limits_only_what_waits_for_it() {
    // A copy that is launched late, beside kernels that are queued.
    let beside = [(7, 0, 10, 100), (8, 100, 102, 5), (7, 2, 110, 100)];
    assert_eq!(on_streams(&beside, &[]).saved_ns(&[(0, 50 * US)]), 50 * US);
    // A kernel that begins when that copy ends, long after its own launch and the end of the one before it.
    let waits = [(7, 0, 10, 50), (8, 100, 102, 50), (7, 2, 153, 100)];
    assert_eq!(on_streams(&waits, &[]).saved_ns(&[(0, 40 * US)]), 0);
    assert_eq!(on_streams(&waits, &[]).saved_ns(&[(1, 40 * US)]), 40 * US);
    // The stream that ends last counts.
    let last = [(7, 0, 10, 100), (8, 1, 11, 150)];
    assert_eq!(on_streams(&last, &[]).saved_ns(&[(0, 90 * US)]), 0);
    assert_eq!(on_streams(&last, &[]).saved_ns(&[(1, 90 * US)]), 51 * US);
}

#[test]
fn the_model_is_unsure_by_what_the_cpu_waits_where_several_streams_work() {
    let two = [(7, 0, 10, 100), (8, 1, 11, 150)];
    assert_eq!(on_streams(&two, &[]).unsure_ns(), 0, "the CPU never waits");
    // It waits from 131 on, and the last kernel ends at 161.
    assert_eq!(on_streams(&two, &[(131, 165)]).unsure_ns(), 30 * US);
    let one = [(7, 0, 10, 100), (7, 1, 110, 51)];
    assert_eq!(on_streams(&one, &[(131, 165)]).unsure_ns(), 0, "there is one to wait for");
}

#[test]
fn one_off_pauses_are_no_part_of_the_span() {
    let of = |starts_ms: &[i64]| {
        let kernels: Vec<(i64, i64, i64)> =
            starts_ms.iter().map(|ms| (ms * 1000 - 5, ms * 1000, 1000)).collect();
        let wall = wall(&kernels, &[]);
        (wall.span_ns / (1000 * US), wall.span())
    };
    let said = |ms, span: &str| (ms, span.to_owned());
    assert_eq!(of(&[1, 2, 3, 4]), said(4, "the GPU span"));
    assert_eq!(of(&[1, 2, 602, 603, 1003]), said(5, "the GPU span without one-off pauses"));
    // Four pauses of one length are the program's rhythm.
    assert_eq!(of(&[1, 101, 201, 301, 401]), said(401, "the GPU span"));
}

#[test]
fn a_pause_in_each_step_of_the_profiler_is_not_one_off() {
    // Three steps of 100 ms whose GPU work begins at these times, in ms, and takes 10 ms.
    let of = |starts_ms: &[i64]| {
        let mut fixture = Fixture::default();
        for step in 0..3_i64 {
            let name = format!("ProfilerStep#{step}");
            let range = slice("user_annotation", &name).on(1, 1);
            fixture.push(range.at(step * 100_000 * US, 100_000 * US));
        }
        for ms in starts_ms {
            fixture.push(kernel("k").at(ms * 1000 * US, 10_000 * US));
        }
        let wall = of_fixture(fixture);
        (wall.span_ns / (1000 * US), wall.span())
    };
    let said = |ms, span: &str| (ms, span.to_owned());
    // Each begins with 80 ms on the CPU: the first of these is before all GPU work. Or each ends with it.
    assert_eq!(of(&[80, 90, 180, 190, 280, 290]), said(220, "the GPU span"));
    assert_eq!(of(&[0, 10, 100, 110, 200, 210]), said(220, "the GPU span"));
    // Only two of the steps pause.
    let busy = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 170, 180, 190, 270, 280, 290];
    assert_eq!(of(&busy), said(160, "the GPU span without one-off pauses"));
}

#[test]
fn a_pause_after_work_from_before_the_window_is_one_off() {
    let mut fixture = Fixture::default();
    fixture.push(kernel("early").at(0, 1000 * US).link(9));
    let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(1);
    fixture.push(launch.at(900_000 * US, US));
    fixture.push(kernel("k").at(900_002 * US, 1000 * US).link(1));
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let options = Options { without_before_window: true, ..Options::default() };
    let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &options);
    let wall = Wall::of(&gpu, &Launches::of(&gpu), Lost::default());
    assert_eq!(wall.span_ns, 1000 * US, "neither the earlier step nor the pause");
    assert_eq!(wall.span(), "the GPU span without the earlier step and one-off pauses");
}

#[test]
fn what_is_lost_is_no_part_of_the_span_and_counts_once() {
    let mut fixture = Fixture::default();
    for at in [0, 600, 601] {
        fixture.push(kernel("k").at(at * 1000 * US, 1000 * US));
    }
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
    let set_up = [(100 * 1000 * US, 500 * 1000 * US)];
    let lost = Lost { set_up: &set_up, ..Lost::default() };
    let wall = Wall::of(&gpu, &Launches::of(&gpu), lost);
    assert_eq!(wall.span_ns, 3 * 1000 * US, "the set-up is a part of the pause");
    assert_eq!(wall.span(), "the GPU span without set-up and one-off pauses");
}

#[test]
fn a_cpu_that_waits_for_the_gpu_launches_sooner() {
    let kernels = [(0, 2, 100), (110, 112, 10), (200, 202, 10)];
    assert_eq!(wall(&kernels, &[]).saved_ns(&[(0, 50 * US)]), US);
    // It waits for the first kernel, and goes on to launch the others.
    assert_eq!(wall(&kernels, &[(2, 103)]).saved_ns(&[(0, 50 * US)]), 51 * US - US);
    // It waited for the last two microseconds only.
    assert_eq!(wall(&kernels, &[(100, 103)]).saved_ns(&[(0, 50 * US)]), 3 * US);
}

#[test]
fn a_launch_that_waits_for_a_place_in_the_queue_follows_the_gpu() {
    // 300 kernels of 100 µs are launched at once; each later launch takes as long as a kernel, because the queue is full.
    let saved_ns = |call_us: i64| {
        let mut fixture = Fixture::default();
        let mut at = 0;
        for n in 0..900_i64 {
            let dur = if n < 300 { 1 } else { call_us };
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(n + 1);
            fixture.push(launch.at(at * US, dur * US));
            at += dur;
            fixture.push(kernel("k").at((400 + n * 100) * US, 100 * US).link(n + 1));
        }
        let wall = of_fixture(fixture);
        let removed: Vec<(u32, i64)> = (0..600).map(|slice| (slice, 80 * US)).collect();
        wall.saved_ns(&removed)
    };
    assert_eq!(saved_ns(100), 600 * 80 * US, "the launches come sooner, too");
    assert!(saved_ns(99) < 40_000 * US, "a CPU that takes as long");
}

#[test]
fn a_wait_that_no_call_shows_is_one() {
    // Two kernels of 20 ms are queued; the third is launched 42 ms later, 100 µs after the second ends.
    let kernels = [(0, 10, 20_000), (5, 20_010, 20_000), (40_110, 40_115, 10)];
    assert_eq!(wall(&kernels, &[]).saved_ns(&[(0, 5_000 * US)]), 5_000 * US);
    // Another thread launched the second one while this one was quiet, and the GPU still runs it.
    let busy = [(0, 10, 20_000), (20_300, 20_310, 20_000), (20_400, 40_310, 10)];
    assert!(wall(&busy, &[]).saved_ns(&[(0, 5_000 * US)]) > 4_000 * US, "the second waited");
    let mut queued = Fixture::default();
    for (thread, link, launched, begun, dur) in
        [(1, 1, 0, 10, 20_000), (2, 2, 10_000, 20_010, 20_000), (1, 3, 20_100, 40_010, 10)]
    {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, thread).link(link);
        queued.push(launch.at(launched * US, US));
        queued.push(kernel("k").at(begun * US, dur * US).link(link));
    }
    let trace = queued.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
    let queued = Wall::of(&gpu, &Launches::of(&gpu), Lost::default());
    assert!(queued.waits.is_empty(), "the GPU was not done: {:?}", queued.waits);
    // It is launched long after.
    let late = [(0, 10, 20_000), (5, 20_010, 20_000), (48_000, 48_005, 10)];
    assert!(wall(&late, &[]).saved_ns(&[(0, 5_000 * US)]) < 10 * US);
}

#[test]
fn a_copy_from_pageable_memory_holds_up_the_cpu() {
    let saved_ns = |call_us: i64| {
        let mut fixture = Fixture::default();
        let copy = slice("cuda_runtime", "cudaMemcpyAsync").on(1, 1).link(1);
        fixture.push(copy.at(0, call_us * US));
        let name = "Memcpy HtoD (Pageable -> Device)";
        fixture.push(slice("gpu_memcpy", name).at(20 * US, 100 * US).link(1));
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(2);
        fixture.push(launch.at(130 * US, US));
        fixture.push(kernel("k").at(132 * US, 10 * US).link(2));
        of_fixture(fixture).saved_ns(&[(0, 80 * US)])
    };
    assert_eq!(saved_ns(118), 81 * US - US, "its call is over a little before the copy");
    assert_eq!(saved_ns(10), US, "one that only queues it");
}

#[test]
fn a_copy_that_blocks_the_cpu_begins_as_soon_as_the_gpu_is_done() {
    let mut fixture = Fixture::default();
    let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(1);
    fixture.push(launch.at(0, US));
    fixture.push(kernel("k").at(2 * US, 100 * US).link(1));
    let copy = slice("cuda_runtime", "cudaMemcpyAsync").on(1, 1).link(2);
    fixture.push(copy.at(5 * US, 110 * US));
    let name = "Memcpy DtoH (Device -> Pageable)";
    fixture.push(slice("gpu_memcpy", name).at(102 * US, 10 * US).link(2));
    let wall = of_fixture(fixture);
    assert_eq!(wall.saved_ns(&[(0, 80 * US)]), 80 * US);
}

/// Two kernels, and between their launches a call of the data loader.
fn loaded(loader: &str) -> Wall {
    let mut fixture = Fixture::default();
    for (link, at) in [(1, 0), (2, 90_000)] {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
        fixture.push(launch.at(at * US, US));
        fixture.push(kernel("k").at((at + 2) * US, 10 * US).link(link));
    }
    fixture.push(slice("user_annotation", loader).on(1, 1).at(20 * US, 80_000 * US));
    of_fixture(fixture)
}

#[test]
fn a_cpu_that_waits_for_the_workers_of_a_loader_has_no_lead() {
    let gone = [Removed { slice: 0, gpu_ns: 0, cpu_ns: 10 * US }];
    let workers = loaded("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    assert_eq!(workers.saved_without(&gone), 0);
    let alone = loaded("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    assert_eq!(alone.saved_without(&gone), 10 * US);
    // The pause is of each step, not of one.
    assert_eq!((alone.one_off.len(), alone.span().as_str()), (0, "the GPU span"));
    assert!(!loaded("another range").one_off.is_empty());
}

#[test]
fn what_the_cpu_does_before_it_waits_is_no_wait() {
    // Ten milliseconds of work on the GPU; the CPU launches more when they are over.
    let of = |waits: &[(i64, i64)]| {
        let wall = wall(&[(0, 2, 10_000), (10_020, 10_025, 10)], waits);
        wall.saved_ns(&[(0, 8_000 * US)]) / US
    };
    assert!((8_000..8_010).contains(&of(&[])), "nothing tells what it did: {}", of(&[]));
    assert!((8_000..8_010).contains(&of(&[(2, 10_005)])), "it waited");
    assert!((1_000..1_010).contains(&of(&[(9_002, 10_005)])), "it worked for 9 ms");
}

#[test]
fn a_wait_of_another_thread_tells_nothing_of_the_launching_one() {
    let mut fixture = Fixture::default();
    for (link, at) in [(1, 0), (2, 10_020)] {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
        fixture.push(launch.at(at * US, US));
    }
    fixture.push(kernel("k").at(2 * US, 10_000 * US).link(1));
    fixture.push(kernel("k").at(10_025 * US, 10 * US).link(2));
    let wait = slice("cuda_runtime", "cudaEventSynchronize").on(1, 2);
    fixture.push(wait.at(9_002 * US, 1_003 * US));
    let wall = of_fixture(fixture);
    let saved_us = wall.saved_ns(&[(0, 8_000 * US)]) / US;
    assert!((8_000..8_010).contains(&saved_us), "{saved_us}");
}

/// A graph of 250 kernels, which takes 2 ms to launch, and a kernel that the CPU launches after work of its own, when the graph is done.
fn long_graph(work_us: i64) -> Wall {
    let mut fixture = Fixture::default();
    let launch = slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).link(1);
    fixture.push(launch.at(0, 2_000 * US));
    for nth in 0..250 {
        fixture.push(kernel("k").at((100 + nth * 50) * US, 50 * US).link(1));
    }
    let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(2);
    fixture.push(launch.at((2_000 + work_us) * US, US));
    fixture.push(kernel("k").at((2_010 + work_us) * US, 10 * US).link(2));
    of_fixture(fixture)
}

#[test]
fn the_launch_of_a_long_graph_waits_for_nothing_of_it() {
    let gone: Vec<(u32, i64)> = (0..250).map(|slice| (slice, 20 * US)).collect();
    let wall = long_graph(20_000);
    assert!(wall.saved_ns(&gone) < 10 * US, "the CPU comes when it comes");
}

#[test]
fn without_launches_nothing_limits_it() {
    let mut fixture = Fixture::default();
    fixture.push(kernel("k").at(0, 100 * US));
    fixture.push(kernel("k").at(500 * US, 100 * US));
    let wall = of_fixture(fixture);
    assert!(!wall.linked);
    assert_eq!(wall.saved_ns(&[(0, 40 * US)]), 40 * US);
}
