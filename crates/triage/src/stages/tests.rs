//! Stages of slices, on synthetic traces.

mod corpus;
mod passes;
mod waiting;

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
    with(fixture, None, table)
}

/// The rows of a trace alone.
fn table(stages: &Stages, gpu: &Gpu<'_>) -> Vec<StageRow> {
    let (launches, host) = (Launches::of(gpu), Host::of(gpu.trace));
    let gaps = Gaps::alone(gpu, &launches);
    let (loader, allocations) = (host.cover(Cover::DataLoader), host.cover(Cover::Allocation));
    let waits = pace::Waits { gaps: &gaps, loader, allocations, set_up: &[], is_blocked: false };
    stages.rows(gpu, &launches, waits)
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
    assert_eq!(row.recognised_by, "no evidence of a stage");
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
