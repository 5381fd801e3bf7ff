//! What keeps the GPU waiting in a stage: launches, other ranks, other stages.

use super::*;

#[test]
fn what_communication_adds_is_told_of_each_stage() {
    let mut fixture = Fixture::default();
    fixture.push(kernel("attn_fwd").at(0, 60));
    fixture.push(kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()").at(40, 40).on(0, 9));
    fixture.push(kernel("attn_fwd").at(120, 20));
    let found = with(fixture, None, table);
    assert_eq!((found[0].busy_ns, found[0].span_ns), (100, 140));
    assert_eq!((found[0].busy_pct, found[0].exposed_comm_pct), (100.0 * 100.0 / 140.0, 20.0));
}

/// Kernels of 5 µs, each launched by a call of 4 µs and begun `wait_us` after it, every `every_us`.
fn paced(every_us: i64, wait_us: i64, call: &str) -> StageRow {
    let mut fixture = Fixture::default();
    for n in 1..=5 {
        let at = n * every_us * 1_000;
        fixture.push(slice("cuda_runtime", call).link(n).on(PID, 1).at(at, 4_000));
        fixture.push(kernel("k").at(at + 4_000 + wait_us * 1_000, 5_000).link(n));
    }
    rows(fixture).remove(0)
}

#[test]
fn launches_are_the_limit_where_the_gpu_is_idle_and_waits_for_none() {
    let told = |row: &StageRow| (row.wait_p50_ns, row.kernel_p50_ns, row.launch_bound);
    let bound = paced(20, 3, "cudaLaunchKernel");
    assert_eq!(told(&bound), (Some(3_000), Some(5_000), Some(true)));
    assert_eq!(bound.gpu_busy_pct, 100.0 * 25.0 / 85.0);
    // Kernels wait in the queue.
    assert_eq!(paced(20, 25, "cudaLaunchKernel").launch_bound, Some(false));
    // The GPU is busy.
    assert_eq!(paced(6, 3, "cudaLaunchKernel").launch_bound, Some(false));
    // Kernels that begin before their calls are over.
    assert_eq!(told(&paced(20, -2, "cudaLaunchKernel")), (Some(-2_000), Some(5_000), Some(true)));
    assert_eq!(told(&paced(20, 3, "cudaGraphLaunch")), (None, None, None));
}

#[test]
fn a_gap_counts_up_to_the_end_of_the_late_launch_and_without_the_data_loader() {
    let work = |loader: Option<(i64, i64)>| {
        let mut fixture = Fixture::default();
        if let Some((start_ns, dur_ns)) = loader {
            let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            fixture.push(cpu(name, 1).at(start_ns, dur_ns));
        }
        for (n, start_ns) in [(1, 0), (2, 100_000)] {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1);
            fixture.push(launch.at(start_ns, 4_000));
        }
        fixture.push(kernel("k").at(5_000, 35_000).link(1));
        // 36 µs after its launch call.
        fixture.push(kernel("k").at(140_000, 60_000).link(2));
        let row = rows(fixture).remove(0);
        (row.late_ns, row.late_pct, row.launch_bound)
    };
    // Busy are 95 µs; all 100 µs of the gap count, not only what is before the end of the launch.
    let late = |ns: i64, of: f64| (ns, 100.0 * ns as f64 / of, Some(ns as f64 >= 0.2 * of));
    assert_eq!(work(None), late(64_000, 195_000.0));
    // The loader's part of the gap is no time of the stage.
    assert_eq!(work(Some((20_000, 70_000))), late(14_000, 145_000.0));
    assert_eq!(work(Some((0, 200_000))), late(0, 95_000.0));
}

#[test]
fn time_in_which_memory_is_allocated_is_not_the_launches() {
    let mut fixture = Fixture::default();
    for (n, start_ns) in [(1, 0), (2, 100_000)] {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1);
        fixture.push(launch.at(start_ns, 4_000));
    }
    fixture.push(slice("cuda_runtime", "cudaMalloc").on(PID, 1).at(20_000, 70_000));
    fixture.push(kernel("k").at(5_000, 35_000).link(1));
    fixture.push(kernel("k").at(140_000, 60_000).link(2));
    let row = rows(fixture).remove(0);
    assert_eq!((row.late_ns, row.launch_bound), (14_000, Some(false)));
}

#[test]
fn a_cpu_that_waits_elsewhere_may_be_late_in_a_stage() {
    let bound = |late_pct: f64, cpu_waits: bool| {
        let figures = pace::Pace { late_pct, cpu_waits, ..pace::Pace::default() };
        pace::Pace { wait_p50_ns: Some(1_000), ..figures }.is_launch_bound(0.0)
    };
    assert_eq!((bound(19.9, false), bound(20.0, false)), (Some(false), Some(true)));
    assert_eq!((bound(49.9, true), bound(50.0, true)), (Some(false), Some(true)));
}

#[test]
fn a_stage_that_waits_for_other_ranks_is_not_judged() {
    let work = |comm_us: i64| {
        let mut fixture = Fixture::default();
        for n in 1..=5 {
            let at = n * 20_000;
            fixture
                .push(slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1).at(at, 4_000));
            fixture.push(kernel("k").at(at + 7_000, 5_000).link(n));
        }
        let name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()";
        let launch = slice("cuda_runtime", "cudaLaunchKernel").link(9).on(PID, 1);
        fixture.push(launch.at(120_000, 4_000));
        fixture.push(kernel(name).at(124_000, comm_us * 1_000).link(9).on(0, 9));
        rows(fixture).remove(0)
    };
    assert_eq!((work(10).launch_bound, work(10).kernel_p50_ns), (Some(true), Some(5_000)));
    assert_eq!(work(60).launch_bound, None, "most of its busy time is communication");
}

#[test]
fn what_no_stage_holds_is_not_judged_beside_stages() {
    let work = |annotated: bool| {
        let mut fixture = Fixture::default();
        if annotated {
            fixture.push(cpu("Optimizer.step#SGD.step", 2).at(0, 1_000));
            fixture.push(slice("cuda_runtime", "cudaLaunchKernel").link(9).on(PID, 2).at(500, 1));
            fixture.push(kernel("k").at(900, 10).link(9));
        }
        for n in 1..=5 {
            let at = n * 20_000;
            fixture
                .push(slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1).at(at, 4_000));
            fixture.push(kernel("k").at(at + 7_000, 5_000).link(n));
        }
        let rows = rows(fixture);
        let all = rows.iter().find(|row| row.stage == Stage::All).unwrap();
        (rows.len(), all.launch_bound)
    };
    assert_eq!(work(false), (1, Some(true)));
    assert_eq!(work(true), (2, None));
}

#[test]
fn what_was_launched_before_the_window_keeps_the_gpu_busy() {
    let mut fixture = Fixture::default();
    for (n, at) in [(1, 10), (2, 90)] {
        fixture.push(slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1).at(at - 5, 1));
        fixture.push(kernel("k").at(at, 10).link(n));
    }
    // In the span by 10, by 30, and not at all.
    for (n, at, dur) in [(7, 0, 30), (8, 40, 30), (9, 120, 9)] {
        fixture.push(kernel("early").at(at, dur).on(0, 9).link(n));
    }
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let options = Options { without_before_window: true, ..Options::default() };
    let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &options);
    let launches = Launches::of(&gpu);
    let row = table(&Stages::of(&gpu, &launches, None), &gpu).remove(0);
    assert_eq!((row.busy_ns, row.span_ns), (20, 90));
    assert_eq!(row.gpu_busy_pct, 100.0 * 60.0 / 90.0);
}

#[test]
fn what_other_stages_run_keeps_the_gpu_busy() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("step[DECODE bs=1]", 1).at(0, 40_000));
    fixture.push(cpu("step[EXTEND bs=1 toks=9]", 1).at(40_000, 20_000));
    fixture.push(cpu("step[DECODE bs=1]", 1).at(60_000, 40_000));
    for (n, at, dur) in [(1, 10_000, 10_000), (2, 50_000, 10_000), (3, 80_000, 20_000)] {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1);
        fixture.push(launch.at(at - 2_000, 1_000));
        fixture.push(kernel("k").at(at, dur).link(n));
    }
    let rows = rows(fixture);
    let decode = rows.iter().find(|row| row.stage == Stage::Decode).unwrap();
    assert_eq!((decode.span_ns, decode.busy_ns), (90_000, 30_000));
    assert_eq!(decode.gpu_busy_pct, 100.0 * 40.0 / 90.0);
}
