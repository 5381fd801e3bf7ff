//! Stages of slices, on synthetic traces.

mod corpus;

use super::*;
use crate::idle::gaps::Gaps;
use crate::idle::{Cover, Host};
use fixture::{Fixture, Slice, kernel, slice};
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::launches::Launches;

fn with<R>(fixture: Fixture, name: Option<&str>, look: impl Fn(&Stages, &Gpu<'_>) -> R) -> R {
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Rocm, &before, &Options::default());
    look(&Stages::of(&gpu, &Launches::of(&gpu), name), &gpu)
}

fn stages_named(fixture: Fixture, name: Option<&str>) -> Vec<Stage> {
    with(fixture, name, |stages, gpu| (0..gpu.len()).map(|at| stages.stage(at)).collect())
}

fn stages(fixture: Fixture) -> Vec<Stage> {
    stages_named(fixture, None)
}

fn rows(fixture: Fixture) -> Vec<StageRow> {
    with(fixture, None, |stages, gpu| table(stages, gpu, &[]))
}

/// The rows of a trace alone.
fn table(stages: &Stages, gpu: &Gpu<'_>, exposed_ns: &[i64]) -> Vec<StageRow> {
    let (launches, host) = (Launches::of(gpu), Host::of(gpu.trace));
    let gaps = Gaps::alone(gpu, &launches);
    let (loader, allocations) = (host.cover(Cover::DataLoader), host.cover(Cover::Allocation));
    let waits = pace::Waits { gaps: &gaps, loader, allocations, is_blocked: false };
    stages.rows(gpu, &launches, exposed_ns, waits)
}

#[test]
fn a_file_s_name_is_not_that_of_two_kinds_of_steps() {
    let stages = |single_ns: i64| {
        let mut fixture = Fixture::default();
        let call = |name, link, at| slice("cuda_runtime", name).on(1, 1).link(link).at(at, 5);
        fixture.push(call("cudaLaunchKernel", 1, 0));
        fixture.push(kernel("flash_fwd").at(10, single_ns).link(1));
        fixture.push(call("cudaGraphLaunch", 2, 20));
        fixture.push(kernel("paged_attention").at(10_000, 1_000).link(2));
        stages_named(fixture, Some("run-DECODE.trace.json"))
    };
    assert_eq!(stages(100), [Stage::Decode; 2]);
    assert_eq!(stages(1_000), [Stage::All; 2], "half of it has no graph: a prefill");
}

/// Two training steps without annotations of the forward pass: each launches a kernel before its backward pass, one in it,
/// and one after it. The profiler marks the steps, or does not.
fn two_steps(marked: bool) -> Fixture {
    let mut fixture = Fixture::default();
    for step in 0..2_i64 {
        let start = step * 10_000;
        if marked {
            let name = ["ProfilerStep#1", "ProfilerStep#2"][step as usize];
            fixture.push(slice("user_annotation", name).on(PID, 1).at(start, 10_000));
        }
        let op = "autograd::engine::evaluate_function: AddmmBackward0";
        fixture.push(slice("cpu_op", op).on(PID, 2).at(start + 2_000, 1_000));
        for (n, thread, at) in [(0, 1, 1_000), (1, 2, 2_100), (2, 1, 6_000)] {
            let link = step * 3 + n + 1;
            let call = slice("cuda_runtime", "cudaLaunchKernel").link(link);
            fixture.push(call.on(PID, thread).at(start + at, 10));
            fixture.push(kernel("k").at(start + at + 50, 100).link(link));
        }
    }
    fixture
}

#[test]
fn what_follows_a_backward_pass_in_a_step_is_not_the_next_forward_pass() {
    use Stage::{All, Backward, Forward};
    let one = [Forward, Backward, All];
    assert_eq!(stages(two_steps(true)), [one, one].concat());
}

#[test]
fn a_kernel_of_a_transposed_convolution_is_no_backward_pass() {
    let mut fixture = Fixture::default();
    fixture.push(slice("user_annotation", "## forward ##").on(PID, 1).at(0, 100));
    for (link, at) in [(1, 10), (2, 200)] {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(PID, 1);
        fixture.push(launch.at(at, 5).link(link));
        fixture.push(kernel("cutlass_tensorop_s1688dgrad_optimized").at(at + 300, 50).link(link));
    }
    assert_eq!(stages(fixture), [Stage::Forward, Stage::All]);
}

#[test]
fn the_span_of_a_stage_is_summed_over_steps() {
    for marked in [true, false] {
        let found = rows(two_steps(marked));
        let backward = found.iter().find(|row| row.stage == Stage::Backward).unwrap();
        assert_eq!((backward.busy_ns, backward.span_ns), (200, 200), "marked: {marked}");
        assert_eq!(backward.gpu_busy_pct, 100.0);
    }
}

#[test]
fn what_communication_adds_is_told_of_each_stage() {
    let mut fixture = Fixture::default();
    fixture.push(kernel("attn_fwd").at(0, 60));
    fixture.push(kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()").at(40, 40).on(0, 9));
    fixture.push(kernel("attn_fwd").at(120, 20));
    let found = with(fixture, None, |stages, gpu| table(stages, gpu, &[40, 20, 20]));
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
    let late = |ns: i64| (ns, 100.0 * ns as f64 / 195_000.0, Some(ns >= 39_000));
    assert_eq!(work(None), late(64_000));
    assert_eq!(work(Some((20_000, 70_000))), late(14_000));
    assert_eq!(work(Some((0, 200_000))), late(0));
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
        with(fixture, None, |stages, gpu| {
            let exposed_ns = [0, 0, 0, 0, 0, comm_us * 1_000];
            table(stages, gpu, &exposed_ns)
        })
        .remove(0)
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
    let row = table(&Stages::of(&gpu, &launches, None), &gpu, &[0, 0]).remove(0);
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

const MS: i64 = 1_000_000;
const PID: i64 = 400;

fn cpu(name: &str, tid: i64) -> Slice<'_> {
    slice("user_annotation", name).on(PID, tid)
}

/// A launch at `at_ms` on a thread, and its kernel at `gpu_ms` on stream 7.
fn launched(fixture: &mut Fixture, correlation: i64, tid: i64, at_ms: i64, gpu_ms: i64) {
    let launch = slice("cuda_runtime", "hipLaunchKernel").link(correlation).on(PID, tid);
    fixture.push(launch.at(at_ms * MS, 1_000));
    fixture.push(kernel("k").at(gpu_ms * MS, 1_000).link(correlation));
}

#[test]
fn work_belongs_to_the_window_that_launched_it() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("step[EXTEND bs=15 toks=15360]", 1).at(0, 10 * MS));
    fixture.push(cpu("step[DECODE bs=32]", 1).at(10 * MS, 10 * MS));
    // The prompt's kernels run while the next step is already launched.
    launched(&mut fixture, 1, 1, 5, 12);
    launched(&mut fixture, 2, 1, 9, 19);
    launched(&mut fixture, 3, 1, 11, 25);
    assert_eq!(stages(fixture), [Stage::Extend, Stage::Extend, Stage::Decode]);
}

#[test]
fn an_external_id_is_the_best_evidence_if_its_annotation_holds_the_launch() {
    let with_id = |launched_ms: i64| {
        let mut fixture = Fixture::default();
        fixture.push(cpu("prefill", 2).at(0, 10 * MS).external(7));
        fixture.push(cpu("decode", 1).at(0, 20 * MS).external(8));
        let launch = slice("cuda_runtime", "hipLaunchKernel").link(1).on(PID, 1);
        fixture.push(launch.at(launched_ms * MS, 1));
        fixture.push(kernel("k").at(30 * MS, 1).link(1).external(7));
        stages(fixture)
    };
    assert_eq!(with_id(5), [Stage::Extend]);
    assert_eq!(with_id(15), [Stage::Decode], "prefill was over");
    // Without its launch, a kernel cannot be of an annotation that begins later.
    let mut fixture = Fixture::default();
    fixture.push(cpu("prefill", 1).at(0, MS).external(6));
    fixture.push(cpu("decode", 1).at(50 * MS, MS).external(7));
    fixture.push(kernel("k").at(MS / 2, 1).external(7));
    fixture.push(kernel("k").at(70 * MS, 1).external(7));
    assert_eq!(stages(fixture), [Stage::Extend, Stage::Decode]);
}

#[test]
fn ids_of_another_process_do_not_count() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("prefill", 1).at(0, MS).external(7).on(900, 1));
    fixture.push(cpu("decode", 1).at(0, MS).external(7));
    let launch = slice("cuda_runtime", "hipLaunchKernel").link(1).on(PID, 3);
    fixture.push(launch.at(MS / 2, 1));
    fixture.push(kernel("k").at(91 * MS, 1).link(1).external(7));
    assert_eq!(stages(fixture), [Stage::Decode]);
}

#[test]
fn a_kernel_whose_name_sounds_like_an_op_is_none() {
    let mut fixture = Fixture::default();
    fixture.push(kernel("softmaxBackward").at(0, MS));
    fixture.push(kernel("k").at(MS / 2, 1));
    fixture.push(slice("cpu_op", "MulBackward0").on(PID, 2).at(10 * MS, MS));
    launched(&mut fixture, 1, 2, 10, 20);
    assert_eq!(stages(fixture), [Stage::Backward, Stage::All, Stage::Backward]);
}

#[test]
fn without_a_launch_the_window_on_the_stream_tells() {
    let mut fixture = Fixture::default();
    fixture.push(slice("gpu_user_annotation", "prefill").at(100 * MS, 10 * MS));
    fixture.push(slice("gpu_user_annotation", "decode").at(100 * MS, 10 * MS).on(0, 8));
    fixture.push(kernel("k").at(101 * MS, 1));
    fixture.push(kernel("k").at(102 * MS, 1).on(0, 8));
    fixture.push(kernel("k").at(115 * MS, 1).on(0, 8));
    fixture.push(kernel("k").at(131 * MS, 1).on(0, 8));
    // Another device.
    fixture.push(kernel("k").at(132 * MS, 1).on(1, 8));
    let found = stages(fixture);
    assert_eq!(found, [Stage::Extend, Stage::Decode, Stage::Decode, Stage::All, Stage::All]);
}

#[test]
fn nearest_is_within_twenty_milliseconds() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("prefill", 1).at(0, 10 * MS));
    fixture.push(cpu("decode", 1).at(80 * MS, 10 * MS));
    for (correlation, at_ms) in [(1, 30), (2, 31), (3, 59), (4, 60), (5, 75), (6, 111)] {
        launched(&mut fixture, correlation, 1, at_ms, 200 + at_ms);
    }
    let found = stages(fixture);
    let (extend, decode, all) = (Stage::Extend, Stage::Decode, Stage::All);
    assert_eq!(found, [extend, all, all, decode, decode, all]);
}

#[test]
fn a_training_step_has_three_stages() {
    let mut fixture = Fixture::default();
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    for step in 0..2 {
        let at = step * 100;
        fixture.push(cpu("ProfilerStep#1", 1).at(at * MS, 99 * MS));
        fixture.push(slice("cpu_op", op).on(PID, 2).at((at + 20) * MS, MS / 2));
        fixture.push(slice("cpu_op", op).on(PID, 2).at((at + 21) * MS, MS));
        fixture.push(cpu("Optimizer.step#SGD.step", 1).at((at + 30) * MS, 10 * MS));
        let launches = [(1, 1, 10), (2, 1, 15), (3, 2, 20), (4, 2, 25), (5, 1, 26), (6, 1, 31)];
        for (correlation, tid, ms) in launches {
            launched(&mut fixture, 10 * step + correlation, tid, at + ms, at + ms + 50);
        }
    }
    let rows = rows(fixture);
    let found: Vec<_> = rows.iter().map(|it| (it.stage.id(), it.n_slices, it.n_windows)).collect();
    assert_eq!(found, [("forward", 4, 0), ("backward", 4, 2), ("optimizer", 4, 2)]);
    assert_eq!(rows[0].recognised_by, "launched before a backward pass");
    assert_eq!(rows[1].recognised_by, "the autograd engine's ops");
    assert_eq!(
        rows[2].recognised_by,
        "annotation Optimizer.step#SGD.step (2); launched between backward and optimizer (2)"
    );
}

/// Two steps of forward and backward within a millisecond, with or without `zero_grad` between them.
fn close_steps(zero_grad_at: Option<i64>, op: &str, step: &str) -> Vec<(Stage, u64)> {
    const US: i64 = 1_000;
    let mut fixture = Fixture::default();
    for n in 0..2 {
        let at = n * 400 * US;
        for (number, tid, us) in [(1, 1, 20), (2, 1, 60), (3, 2, 110), (4, 2, 130), (5, 1, 160)] {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").link(10 * n + number);
            fixture.push(launch.on(PID, tid).at(at + us * US, US));
            fixture.push(kernel("k").at(at + (us + 5) * US, US).link(10 * n + number));
        }
        fixture.push(slice("cpu_op", op).on(PID, 2).at(at + 100 * US, 20 * US));
        fixture.push(slice("cpu_op", op).on(PID, 2).at(at + 125 * US, 20 * US));
        fixture.push(slice(step, "Optimizer.step#SGD.step").on(PID, 1).at(at + 155 * US, 20 * US));
        if let Some(us) = zero_grad_at {
            let zero_grad = "Optimizer.zero_grad#SGD.zero_grad";
            fixture.push(slice(step, zero_grad).on(PID, 1).at(at + us * US, 3 * US));
        }
    }
    rows(fixture).iter().map(|row| (row.stage, row.n_slices)).collect()
}

#[test]
fn clearing_gradients_between_forward_and_backward_changes_no_stage() {
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    let expected = [(Stage::Forward, 4), (Stage::Backward, 4), (Stage::Optimizer, 2)];
    for zero_grad_at in [None, Some(5), Some(80), Some(180)] {
        assert_eq!(close_steps(zero_grad_at, op, "user_annotation"), expected, "{zero_grad_at:?}");
    }
}

#[test]
fn annotations_that_old_profilers_record_as_ops_are_annotations() {
    let expected = [(Stage::Forward, 4), (Stage::Backward, 4), (Stage::Optimizer, 2)];
    for raw_category in ["Operator", "cpu_op"] {
        assert_eq!(close_steps(Some(80), "AddmmBackward", raw_category), expected);
    }
    // Somebody's own words, too; ops of a library and nodes of the autograd graph are none.
    let mut fixture = Fixture::default();
    for (n, name) in [(1, "backward"), (2, "lib::backward"), (3, "fwd pass"), (4, "aten::fwd")] {
        fixture.push(slice("Operator", name).on(PID, n).at(0, MS));
        launched(&mut fixture, n, n, 0, 100 + n);
    }
    // Beside the other threads' windows: the innermost counts.
    let found = stages(fixture);
    assert_eq!((found[0], found[2]), (Stage::Backward, Stage::Forward));
}

#[test]
fn annotations_name_the_phases_of_a_pipeline() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("ProfilerStep#1", 1).at(0, 99 * MS));
    for (at, name) in [(0, "attn(F)"), (10, "attn(B)"), (20, "mlp(W)"), (30, "attn(F)")] {
        fixture.push(cpu(name, 1).at(at * MS, 8 * MS));
    }
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    for at in [11, 21] {
        fixture.push(slice("cpu_op", op).on(PID, 2).at(at * MS, 5 * MS));
    }
    let launches = [(1, 1, 1), (2, 1, 10), (3, 2, 12), (4, 1, 20), (5, 2, 22), (6, 1, 31)];
    for (correlation, tid, ms) in launches {
        launched(&mut fixture, correlation, tid, ms, ms + 50);
    }
    let rows = rows(fixture);
    let found: Vec<_> = rows.iter().map(|row| (row.stage.id(), row.n_slices)).collect();
    assert_eq!(found, [("forward", 2), ("backward", 2), ("weight-grad", 2)]);
    assert_eq!(rows[2].recognised_by, "annotation mlp(W)");
}

#[test]
fn a_kernels_name_says_backward_only_where_no_engine_is_recorded() {
    let work = |annotated: bool, engine: bool| {
        let mut fixture = Fixture::default();
        if engine {
            let op = "autograd::engine::evaluate_function: AddmmBackward0";
            fixture.push(slice("cpu_op", op).on(PID, 2).at(50 * MS, MS));
        } else {
            fixture.push(cpu("Optimizer.step#SGD.step", 1).at(50 * MS, MS));
        }
        if annotated {
            fixture.push(cpu("forward", 1).at(0, 20 * MS));
        }
        let names = [
            "flash_bwd_dq_kernel",
            "void cunn_SoftMaxBackward<4>()",
            "k",
            "triton_per_fused_native_layer_norm_native_layer_norm_backward_0",
        ];
        for (n, name) in (1..).zip(names) {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").link(n).on(PID, 1);
            fixture.push(launch.at(10 * MS + n, 1));
            fixture.push(kernel(name).at(10 * MS + 10 + n, 1).link(n));
        }
        rows(fixture)
    };
    let found = |rows: &[StageRow]| -> Vec<_> {
        rows.iter().map(|row| (row.stage, row.n_slices)).collect()
    };
    let named = work(false, false);
    assert_eq!(found(&named), [(Stage::Backward, 2), (Stage::All, 2)]);
    assert_eq!(named[0].recognised_by, "names of kernels");
    assert_eq!(found(&work(true, false)), [(Stage::Forward, 4)]);
    assert_eq!(found(&work(false, true)), [(Stage::Forward, 4)]);
}

/// Two steps of a compiled model: TorchInductor names its kernels, and the ops that launch them, after ops whose arithmetic
/// they contain.
fn compiled(call: &str) -> Vec<StageRow> {
    const GENERATED: &str = "triton_per_fused_add_native_layer_norm_native_layer_norm_backward_3";
    let mut fixture = Fixture::default();
    for step in 0..2 {
        let at = step * 100 * MS;
        fixture.push(cpu("ProfilerStep#2", 1).at(at, 60 * MS));
        fixture.push(slice("cpu_op", "CompiledFunction").on(PID, 1).at(at + 9 * MS, 10 * MS));
        let engine = "autograd::engine::evaluate_function: CompiledFunctionBackward";
        fixture.push(slice("cpu_op", engine).on(PID, 2).at(at + 20 * MS, 10 * MS));
        fixture.push(cpu("Optimizer.step#AdamW.step", 1).at(at + 40 * MS, MS));
        for (n, tid, ms) in [(1, 1, 10), (2, 1, 11), (3, 2, 21), (4, 2, 22), (5, 2, 23)] {
            let (number, start_ns) = (step * 10 + n, at + ms * MS);
            fixture.push(slice("cpu_op", GENERATED).on(PID, tid).at(start_ns - 5, 20));
            fixture.push(slice("cuda_driver", call).on(PID, tid).link(number).at(start_ns, 5));
            fixture.push(kernel(GENERATED).at(start_ns + 30 * MS, MS / 2).link(number));
        }
        launched(&mut fixture, step * 10 + 9, 1, step * 100 + 40, step * 100 + 60);
    }
    rows(fixture)
}

#[test]
fn names_of_the_compiler_say_nothing_of_the_pass() {
    for call in ["cuLaunchKernel", "cudaGraphLaunch"] {
        let rows = compiled(call);
        let found: Vec<_> =
            rows.iter().map(|row| (row.stage, row.n_slices, row.n_windows)).collect();
        let expected = [(Stage::Forward, 4, 0), (Stage::Backward, 6, 2), (Stage::Optimizer, 2, 2)];
        assert_eq!(found, expected, "{call}");
        let told: Vec<_> = rows.iter().map(|row| row.recognised_by.as_str()).collect();
        let (engine, optimizer) =
            ("the autograd engine's ops", "annotation Optimizer.step#AdamW.step");
        assert_eq!(told, ["launched before a backward pass", engine, optimizer], "{call}");
    }
}

#[test]
fn ops_are_read_like_annotations_only_where_the_profiler_writes_none() {
    let work = |annotates: bool| {
        let mut fixture = Fixture::default();
        if annotates {
            fixture.push(cpu("ProfilerStep#1", 3).at(0, MS));
        }
        let op = slice("cpu_op", "RegisterPostBackwardFunction");
        fixture.push(op.on(PID, 1).at(MS, 5 * MS));
        launched(&mut fixture, 1, 1, 2, 3);
        rows(fixture).remove(0)
    };
    let old = work(false);
    assert_eq!(old.stage, Stage::Backward);
    assert_eq!(old.recognised_by, "op RegisterPostBackwardFunction");
    assert_eq!(work(true).stage, Stage::All);
}

#[test]
fn what_is_computed_again_on_the_engines_thread_is_backward() {
    let mut fixture = Fixture::default();
    let op = "autograd::engine::evaluate_function: CheckpointFunctionBackward";
    fixture.push(slice("cpu_op", op).on(PID, 2).at(10 * MS, 10 * MS));
    fixture.push(cpu("FSDP::pre_forward", 2).at(12 * MS, 2 * MS));
    launched(&mut fixture, 1, 2, 13, 14);
    assert_eq!(stages(fixture), [Stage::Backward]);
}

#[test]
fn passes_on_the_engines_thread_are_runs_of_it() {
    let mut fixture = Fixture::default();
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    for (correlation, at) in [(1, 10), (2, 12), (3, 14)] {
        fixture.push(slice("cpu_op", op).on(PID, 2).at(at * MS, 2 * MS));
        fixture.push(cpu("FSDP::post_backward", 2).at(at * MS, MS));
        launched(&mut fixture, correlation, 2, at, at + 50);
    }
    let rows = rows(fixture);
    assert_eq!((rows[0].stage, rows[0].n_slices, rows[0].n_windows), (Stage::Backward, 3, 1));
}

#[test]
fn threads_of_the_engine_that_run_at_the_same_time_are_one_pass() {
    let mut fixture = Fixture::default();
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    // Two steps on two devices: each has a thread of its own.
    for (correlation, tid, at) in [(1, 2, 10), (2, 3, 11), (3, 2, 300), (4, 3, 301)] {
        fixture.push(slice("cpu_op", op).on(PID, tid).at(at * MS, 2 * MS));
        launched(&mut fixture, correlation, tid, at, at + 50);
    }
    // Another process is a pass of its own.
    fixture.push(slice("cpu_op", op).on(PID + 1, 2).at(10 * MS, 2 * MS));
    let rows = rows(fixture);
    assert_eq!((rows[0].stage, rows[0].n_windows), (Stage::Backward, 3));
}

#[test]
fn what_was_launched_before_the_recording_is_not_near_anything() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("step[DECODE bs=4]", 1).at(10 * MS, 10 * MS));
    launched(&mut fixture, 1, 1, 11, 12);
    fixture.push(kernel("k").at(10 * MS, 1_000).link(99));
    let rows = rows(fixture);
    let found: Vec<_> = rows.iter().map(|row| (row.stage, row.recognised_by.as_str())).collect();
    let decode = (Stage::Decode, "annotation step[DECODE bs=4]");
    assert_eq!(found, [decode, (Stage::All, "launched before profiling started")]);
}

#[test]
fn a_scripts_thread_that_runs_the_engine_is_backward_only_within_its_ops() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("ProfilerStep#1", 1).at(0, 99 * MS));
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    fixture.push(slice("cpu_op", op).on(PID, 1).at(10 * MS, MS));
    launched(&mut fixture, 1, 1, 5, 50);
    launched(&mut fixture, 2, 1, 10, 51);
    launched(&mut fixture, 3, 1, 60, 60);
    assert_eq!(stages(fixture), [Stage::Forward, Stage::Backward, Stage::All]);
}

#[test]
fn the_scale_of_the_loss_is_updated_by_the_optimizer() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("Optimizer.step#Adam.step", 1).at(10 * MS, MS));
    launched(&mut fixture, 1, 1, 10, 10);
    let launch = slice("cuda_runtime", "cudaLaunchKernel").on(PID, 1).link(2);
    fixture.push(launch.at(12 * MS, MS / 10));
    let update = kernel("at::native::amp_update_scale_cuda_kernel(float*, int*, float*)");
    fixture.push(update.at(12 * MS + MS / 2, MS / 10).link(2));
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    fixture.push(slice("cpu_op", op).on(PID, 2).at(40 * MS, MS));
    launched(&mut fixture, 3, 2, 40, 41);
    assert_eq!(stages(fixture), [Stage::Optimizer, Stage::Optimizer, Stage::Backward]);
}

#[test]
fn work_between_the_passes_of_training_has_no_stage() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("Optimizer.step#SGD.step", 1).at(10 * MS, MS));
    launched(&mut fixture, 1, 1, 9, 9);
    launched(&mut fixture, 2, 1, 10, 10);
    assert_eq!(stages(fixture), [Stage::All, Stage::Optimizer]);
}

#[test]
fn a_model_that_calls_forward_while_it_serves_is_serving() {
    let mut fixture = Fixture::default();
    fixture.push(cpu("execute_context_2(100)_generation_17(17)", 1).at(0, 10 * MS));
    fixture.push(cpu("gpu_model_runner: forward", 1).at(MS, 8 * MS));
    launched(&mut fixture, 1, 1, 5, 20);
    let rows = rows(fixture);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].stage, Stage::Mixed);
    assert_eq!(rows[0].batch.as_deref(), Some("2 context and 17 generation requests, 117 tokens"));
}

#[test]
fn two_names_of_one_pass_are_one_pass() {
    let mut fixture = Fixture::default();
    for (at, bs) in [(0, 1), (20, 32)] {
        let outer = format!("execute_{bs}_context_0(sq0sk0)_generation_{bs}(sq{bs}sk70)");
        fixture.push(cpu(&outer, 1).at(at * MS, 10 * MS));
        fixture.push(cpu(&format!("step[DECODE bs={bs}]"), 1).at((at + 1) * MS, 8 * MS));
        launched(&mut fixture, at + 1, 1, at + 2, at + 3);
        launched(&mut fixture, at + 2, 1, at + 3, at + 4);
    }
    launched(&mut fixture, 90, 1, 0, 50);
    let rows = rows(fixture);
    let row = &rows[0];
    assert_eq!((rows.len(), row.n_windows, row.n_slices), (1, 2, 5));
    assert_eq!(row.batch.as_deref(), Some("bs 1 to 32, 70 tokens of context"));
    assert_eq!(row.recognised_by, "annotation step[DECODE bs=1] and 2 others");
}

#[test]
fn the_files_name_counts_where_no_annotation_does() {
    let work = || {
        let mut fixture = Fixture::default();
        launched(&mut fixture, 1, 1, 5, 20);
        fixture
    };
    assert_eq!(stages_named(work(), Some("run-TP-0-EXTEND.json.gz")), [Stage::Extend]);
    assert_eq!(stages_named(work(), Some("prefilldecode.json.gz")), [Stage::All]);
    let mut fixture = work();
    fixture.push(cpu("step[DECODE bs=32]", 1).at(4 * MS, 3 * MS));
    assert_eq!(stages_named(fixture, Some("run-TP-0-EXTEND.json.gz")), [Stage::Decode]);
    let mut fixture = work();
    fixture.push(cpu("step[DECODE bs=32]", 1).at(400 * MS, 3 * MS));
    assert_eq!(stages_named(fixture, Some("run-EXTEND.json.gz")), [Stage::All], "contradicted");
    let mut fixture = work();
    fixture.push(cpu("step[DECODE bs=32]", 1).at(400 * MS, 3 * MS));
    assert_eq!(stages_named(fixture, Some("run-DECODE.json.gz")), [Stage::Decode]);
}

#[test]
fn without_any_sign_there_is_one_row() {
    let rows = rows({
        let mut fixture = Fixture::default();
        fixture.push(cpu("ProfilerStep#1", 1).at(0, 99 * MS));
        launched(&mut fixture, 1, 1, 5, 20);
        fixture.push(slice("gpu_memcpy", "Memcpy").at(30 * MS, 3_000));
        fixture
    });
    let row = &rows[0];
    assert_eq!((rows.len(), row.stage, row.n_slices, row.n_kernels), (1, Stage::All, 2, 1));
    assert_eq!((row.total_ns, row.busy_ns, row.share_pct), (4_000, 4_000, 100.0));
    assert_eq!((row.n_windows, row.batch.as_deref()), (0, None));
    assert_eq!(row.recognised_by, "nothing that tells the stage");
    testkit::assert_keys(row, <StageRow as report::Row>::COLUMNS.iter().map(|column| column.key));
}

#[test]
fn stages_have_ids_and_an_order() {
    for (at, stage) in Stage::EVERY.into_iter().enumerate() {
        assert_eq!(stage as usize, at);
        assert_eq!(serde_json::to_value(stage).unwrap(), stage.id());
    }
    for (at, evidence) in Evidence::EVERY.into_iter().enumerate() {
        assert_eq!(evidence as usize, at);
    }
}
