//! The passes of training: forward, backward, optimizer.

use super::*;

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
fn a_span_begins_anew_after_other_stages_and_not_after_idle_time() {
    // Prefills at 0 to 2 and 30 to 32 ms, with so many kernels of a decode in between, 5 ms apart.
    let with = |n_decodes: i64| {
        let mut fixture = Fixture::default();
        fixture.push(cpu("step[EXTEND bs=15 toks=15360]", 1).at(0, 2 * MS));
        fixture.push(cpu("step[DECODE bs=32]", 1).at(5 * MS, 20 * MS));
        fixture.push(cpu("step[EXTEND bs=15 toks=15360]", 1).at(30 * MS, 2 * MS));
        let decodes = (0..n_decodes).map(|n| 5 + 5 * n);
        for (n, at_ms) in (1..).zip([0, 1].into_iter().chain(decodes).chain([30, 31])) {
            launched(&mut fixture, n, 1, at_ms, at_ms);
        }
        let found = rows(fixture);
        found.iter().find(|row| row.stage == Stage::Extend).unwrap().span_ns
    };
    // (A kernel takes 1 us.)
    assert_eq!(with(3), 2 * (MS + 1_000), "two spans");
    assert_eq!(with(1), 31 * MS + 1_000, "one kernel of another stage, and idle time");
    assert_eq!(with(0), 31 * MS + 1_000, "idle time alone");
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

/// The compiler traces a backward pass with tensors that have no data: on the thread of the script, and it is none.
#[test]
fn what_the_compiler_traces_is_no_backward_pass() {
    let mut fixture = Fixture::default();
    let compiling = "aot_trace_joint_graph (dynamo_timed)";
    fixture.push(slice("user_annotation", compiling).on(PID, 1).at(0, 10 * MS));
    fixture.push(cpu("backward._backward_impl (dynamo_timed)", 1).at(0, 10 * MS));
    let node = "autograd::engine::evaluate_function: ReluBackward0";
    fixture.push(slice("cpu_op", node).on(PID, 1).at(MS, MS));
    let engine = "autograd::engine::evaluate_function: CompiledFunctionBackward";
    fixture.push(slice("cpu_op", engine).on(PID, 2).at(30 * MS, 10 * MS));
    launched(&mut fixture, 1, 1, 20, 20);
    launched(&mut fixture, 2, 2, 32, 32);
    let found: Vec<_> = rows(fixture).iter().map(|row| (row.stage, row.n_slices)).collect();
    assert_eq!(found, [(Stage::Forward, 1), (Stage::Backward, 1)]);
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
fn what_is_computed_again_on_the_engines_thread_is_backward() {
    let mut fixture = Fixture::default();
    let op = "autograd::engine::evaluate_function: CheckpointFunctionBackward";
    fixture.push(slice("cpu_op", op).on(PID, 2).at(10 * MS, 10 * MS));
    fixture.push(cpu("FSDP::pre_forward", 2).at(12 * MS, 2 * MS));
    launched(&mut fixture, 1, 2, 13, 14);
    assert_eq!(stages(fixture), [Stage::Backward]);
}

#[test]
fn between_what_fsdp_does_around_modules_their_forward_pass_runs() {
    let mut fixture = Fixture::default();
    let op = "autograd::engine::evaluate_function: AddmmBackward0";
    for (layer, at) in [(0, 10), (1, 20)] {
        fixture.push(cpu(&format!("FSDP::pre_forward (layers.{layer})"), 1).at(at * MS, 2 * MS));
        launched(&mut fixture, layer + 1, 1, at + 5, at + 50);
        fixture.push(cpu("FSDP::post_forward", 1).at((at + 7) * MS, MS));
    }
    fixture.push(slice("cpu_op", op).on(PID, 2).at(40 * MS, MS));
    launched(&mut fixture, 3, 2, 40, 90);
    assert_eq!(stages(fixture), [Stage::Forward, Stage::Forward, Stage::Backward]);
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
fn the_span_of_a_stage_is_summed_over_steps() {
    for marked in [true, false] {
        let found = rows(two_steps(marked));
        let backward = found.iter().find(|row| row.stage == Stage::Backward).unwrap();
        assert_eq!((backward.busy_ns, backward.span_ns), (200, 200), "marked: {marked}");
        assert_eq!(backward.gpu_busy_pct, 100.0);
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
