//! The table on traces made by hand; real ones stand in `corpus`.

mod corpus;

use catalog::{OverlapClass, Platform};
use report::Row as _;
use trace::Trace;

use super::{Overlap, OverlapOptions, OverlapRow, Risk, Verdict, overlap};
use crate::priority::Priority;
use crate::stages::Stage;
use fixture::{Fixture, Slice, kernel, slice};
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::Gpu;
use timeline::launches::Launches;
use wall::Wall;

const GEMM: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_ISA942";
const REDUCE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const NORM: &str = "void aiter::add_rmsnorm_quant_kernel<float>(int)";
const H2D: &str = "Memcpy HtoD (Pageable -> Device)";

const MS: i64 = 1_000_000;

fn of(fixture: Fixture) -> Overlap {
    by_stage(&fixture.finish(), &|_| Stage::All)
}

fn by_stage(trace: &Trace, stage_of: &dyn Fn(usize) -> Stage) -> Overlap {
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, Platform::Rocm, &before, &Options::default());
    let launches = Launches::of(&gpu);
    let wall = Wall::of(&gpu, &launches, wall::Lost::default());
    let options = OverlapOptions { wall: Some(&wall), ..OverlapOptions::default() };
    overlap(&gpu, &launches, stage_of, None, &options)
}

fn row<'a>(found: &'a Overlap, name: &str) -> &'a OverlapRow {
    found.rows.iter().find(|row| row.kernel_name == name).unwrap()
}

fn filled(slices: impl IntoIterator<Item = Slice<'static>>) -> Fixture {
    let mut fixture = Fixture::default();
    for slice in slices {
        fixture.push(slice);
    }
    fixture
}

#[test]
fn one_stream_lists_only_what_could_move_to_a_second_one() {
    let found = of(filled([
        slice("gpu_memcpy", H2D).at(0, 6 * MS),
        slice("gpu_memcpy", H2D).at(10 * MS, 4 * MS),
        kernel(GEMM).at(20 * MS, 40 * MS),
        kernel(NORM).at(60 * MS, 10 * MS),
        kernel(REDUCE).at(80 * MS, 20 * MS),
    ]));
    assert_eq!(
        found.note,
        "No second stream: only communication and copies are examined for overlap."
    );
    let rows: Vec<_> = found
        .rows
        .iter()
        .map(|row| (row.kernel_name.as_str(), row.priority, row.recommendation.as_deref()))
        .collect();
    assert_eq!(
        rows,
        [
            (REDUCE, Some(Priority::P1), Some("overlap with independent compute")),
            (H2D, Some(Priority::P1), Some("pinned host memory and non_blocking=True")),
        ]
    );
    assert!(found.rows[1].reason.contains("Its host side is pageable"), "{}", found.rows[1].reason);
    assert!(
        found.rows[0].reason.contains("the stage runs on one stream"),
        "{}",
        found.rows[0].reason
    );
}

#[test]
fn a_copy_is_prefetched_only_where_a_later_one_is_of_comparable_size() {
    let advice = |second_ns: i64| {
        let found = of(filled([
            slice("gpu_memcpy", H2D).at(0, 10 * MS),
            slice("gpu_memcpy", H2D).at(12 * MS, second_ns),
            kernel(GEMM).at(20 * MS, 40 * MS),
        ]));
        let copy = row(&found, H2D);
        (copy.priority, copy.recommendation.clone(), copy.savings_bound_ns.is_some())
    };
    let pinned = "pinned host memory and non_blocking=True".to_owned();
    assert_eq!(advice(5 * MS), (Some(Priority::P1), Some(pinned), true));
    assert_eq!(advice(5 * MS - 1), (None, None, false));
}

#[test]
fn copies_before_a_longer_wait_for_workers_save_nothing() {
    // Three steps, each with a copy of 10 ms and 20 ms of compute, and before each of them a wait for a batch.
    let saved = |waits_ms: [i64; 3]| {
        let mut fixture = Fixture::default();
        let mut at_ns = 0;
        for ms in waits_ms {
            let loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
            fixture.push(slice("user_annotation", loader).on(1, 1).at(at_ns, ms * MS));
            at_ns += ms * MS;
            fixture.push(slice("gpu_memcpy", H2D).at(at_ns, 10 * MS));
            fixture.push(kernel(GEMM).at(at_ns + 10 * MS, 20 * MS));
            at_ns += 30 * MS;
        }
        let found = of(fixture);
        let copy = row(&found, H2D);
        (copy.savings_bound_ns, copy.paced_ns, copy.reason.clone())
    };
    let (bound_ns, paced_ns, _) = saved([1, 1, 1]);
    assert_eq!((bound_ns, paced_ns), (Some(30 * MS), 0), "batches are there");
    let (bound_ns, paced_ns, reason) = saved([1, 5, 21]);
    assert_eq!((bound_ns, paced_ns), (Some(10 * MS), 20 * MS), "{reason}");
    assert!(
        reason.contains("would only turn into waiting for the data loader's workers"),
        "{reason}"
    );
}

#[test]
fn copies_of_two_stages_share_the_waits_for_workers() {
    // Two copies of 10 ms in each of three steps, one of each stage, and before each step but the first a wait of 10 ms.
    let found = |waits_ms: [i64; 3], stage_of: &dyn Fn(usize) -> Stage| {
        let mut fixture = Fixture::default();
        let mut at_ns = 0;
        for ms in waits_ms {
            let loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
            fixture.push(slice("user_annotation", loader).on(1, 1).at(at_ns, ms * MS));
            at_ns += ms * MS;
            for _ in 0..2 {
                fixture.push(slice("gpu_memcpy", H2D).at(at_ns, 10 * MS));
                fixture.push(kernel(GEMM).at(at_ns + 10 * MS, 10 * MS));
                at_ns += 20 * MS;
            }
        }
        let found = by_stage(&fixture.finish(), stage_of);
        let copies = found.rows.iter().filter(|row| row.kernel_name == H2D);
        copies.map(|row| row.savings_bound_ns.unwrap_or_default()).sum::<i64>()
    };
    let late = [1, 11, 11];
    assert_eq!(found(late, &|_| Stage::All), 40 * MS, "the waits take 20 of 60 ms");
    let by_turns = |at: usize| if at % 4 < 2 { Stage::Forward } else { Stage::Backward };
    assert_eq!(found(late, &by_turns), 40 * MS);
    assert_eq!(found([1, 1, 1], &by_turns), 60 * MS, "batches are there");
}

#[test]
fn a_stream_that_does_next_to_nothing_is_no_second_one() {
    let side = || kernel("neg").at(21 * MS, MS / 10).on(0, 20);
    let kernels = || [kernel(GEMM).at(20 * MS, 40 * MS), side(), kernel(NORM).at(60 * MS, 10 * MS)];
    let without = of(filled(kernels()));
    assert!(!without.note.contains("No second stream"), "nothing could move: {}", without.note);
    let with = |copy_ns: i64| {
        let copy = slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)").at(75 * MS, copy_ns);
        of(filled(kernels().into_iter().chain([copy])))
    };
    let small = with(2 * MS);
    assert!(!small.note.contains("No second stream"), "less than 5%: {}", small.note);
    let found = with(3 * MS);
    assert!(found.rows.iter().all(|row| row.priority.is_none()), "{:?}", found.rows);
    let said = "No second stream that does 1% of the work: only communication and copies";
    assert!(found.note.starts_with(said), "{}", found.note);
    let alone = "Copies of pageable memory run alone for 3.00 ms";
    assert!(found.note.contains(alone) && !small.note.contains("pageable"), "{}", found.note);
    // (Of 70 ms they overlap for 0.1.)
    assert!(!found.note.contains("Two or more streams"), "{}", found.note);
}

#[test]
fn busy_time_without_earlier_launches_says_so() {
    let trace = {
        let mut fixture = Fixture::default();
        let launch = |n: i64| slice("cuda_runtime", "cudaLaunchKernel").link(n).on(400, 1);
        fixture.push(launch(1).at(0, 1_000));
        fixture.push(launch(2).at(2_000, 1_000));
        fixture.push(kernel(GEMM).at(1_000, MS).link(99));
        fixture.push(kernel(GEMM).at(2 * MS, 10 * MS).link(1));
        fixture.push(kernel(NORM).at(4 * MS, 2 * MS).on(0, 9).link(2));
        fixture.finish()
    };
    let before = BeforeWindowSlices::of(&trace);
    let note = |without_before_window: bool| {
        let options = Options { without_before_window, ..Options::default() };
        let gpu = Gpu::new(&trace, Platform::Rocm, &before, &options);
        let launches = Launches::of(&gpu);
        overlap(&gpu, &launches, &|_| Stage::All, None, &OverlapOptions::default()).note
    };
    let whole = "for 2.00 ms of 11.0 ms busy time (18.2%)";
    assert!(note(false).contains(whole), "{}", note(false));
    let part = "for 2.00 ms of 10.0 ms busy time of the work launched while profiling (20.0%)";
    assert!(note(true).contains(part), "{}", note(true));
}

#[test]
fn memory_bound_kernels_are_not_advised_by_their_class() {
    let act = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(int)";
    let gather = "void at::native::vectorized_gather_kernel<16, long>(char*)";
    let found = of(filled([
        kernel(act).at(0, 10 * MS),
        kernel(gather).at(10 * MS, 10 * MS),
        kernel(NORM).at(20 * MS, 10 * MS),
        kernel(GEMM).at(50 * MS, 10 * MS).on(0, 20),
    ]));
    let advice = |name| (row(&found, name).priority, row(&found, name).recommendation.as_deref());
    assert_eq!(advice(act), (None, None));
    assert!(row(&found, act).reason.contains("a fused kernel already: Activation and mult"));
    assert_eq!(row(&found, act).savings_bound_ns, None);
    assert_eq!(advice(gather), (None, None));
    assert_eq!(advice(NORM), (None, None));
    assert!(
        row(&found, NORM).reason.contains("GPU's memory, whose bandwidth"),
        "{}",
        row(&found, NORM).reason
    );
}

#[test]
fn exposed_communication_may_save_at_most_the_exposed_compute() {
    let found = of(filled([
        kernel(GEMM).at(0, 10 * MS).on(0, 7),
        kernel(REDUCE).at(8 * MS, 22 * MS).on(0, 9),
    ]));
    let reduce = row(&found, REDUCE);
    assert_eq!(
        (reduce.total_ns, reduce.hidden_ns, reduce.exclusive_ns),
        (22 * MS, 2 * MS, 20 * MS)
    );
    assert_eq!(reduce.hidden_by_compute_ns, 2 * MS);
    assert_eq!(reduce.hidden_by.as_deref(), Some(GEMM));
    assert_eq!((reduce.verdict, reduce.priority), (Verdict::Headroom, Some(Priority::P1)));
    assert_eq!(reduce.savings_bound_ns, Some(8 * MS), "the GEMM is exposed no longer");
    assert_eq!(reduce.formal_signal, "22.0 ms, 73.3% of busy, 90.9% exposed, 9.1% hidden");
    assert!(reduce.reason.contains("It is an estimate"), "{}", reduce.reason);
    let gemm = row(&found, GEMM);
    assert_eq!((gemm.priority, gemm.recommendation.as_deref()), (None, None));
    assert_eq!(gemm.savings_bound_ns, None);
    assert_eq!(
        gemm.overlap_class,
        OverlapClass::Compute,
        "_Bias_ in a Tensile name is a capability"
    );
    assert!(
        found.note.starts_with("Two or more streams ran at the same time for 2.00 ms"),
        "{}",
        found.note
    );
}

#[test]
fn savings_are_counted_step_by_step() {
    let mut fixture = Fixture::default();
    for step in 0..2 {
        let start = step * 100 * MS;
        let name = ["ProfilerStep#1", "ProfilerStep#2"][step as usize];
        fixture.push(slice("user_annotation", name).at(start, 90 * MS).on(1, 1));
        for correlation in [2 * step, 2 * step + 1] {
            let launch = slice("cuda_runtime", "hipLaunchKernel").link(correlation);
            fixture.push(launch.at(start + 1000 + correlation, 10).on(1, 1));
        }
    }
    // The first step has only communication to show, the second compute as well; both run late.
    fixture.push(kernel(REDUCE).at(150 * MS, 20 * MS).on(0, 9).link(0));
    fixture.push(kernel(NORM).at(180 * MS, 5 * MS).on(0, 7).link(1));
    fixture.push(kernel(REDUCE).at(210 * MS, 20 * MS).on(0, 9).link(2));
    fixture.push(kernel(GEMM).at(240 * MS, 6 * MS).on(0, 7).link(3));
    let found = of(fixture);
    assert_eq!(row(&found, REDUCE).savings_bound_ns, Some(6 * MS), "0 and 6 ms");
    assert_eq!(row(&found, NORM).savings_bound_ns, None);
}

#[test]
fn what_ran_in_no_recorded_step_has_no_bound() {
    let mut fixture = Fixture::default();
    // ROCm's profiler marks a few microseconds of a step.
    fixture.push(slice("gpu_user_annotation", "ProfilerStep#1").at(0, MS).on(0, 7));
    fixture.push(kernel(GEMM).at(0, 10 * MS).on(0, 7));
    fixture.push(kernel(REDUCE).at(20 * MS, 10 * MS).on(0, 9));
    fixture.push(kernel(NORM).at(40 * MS, 10 * MS).on(0, 7));
    let found = of(fixture);
    for name in [REDUCE, NORM] {
        assert_eq!(row(&found, name).savings_bound_ns, None);
        assert!(!row(&found, name).reason.contains("saves"), "{}", row(&found, name).reason);
        assert_eq!(row(&found, name).priority, None, "nothing is known");
    }
}

/// Two rounds: GEMM on stream 7, reduction on stream 9 right after it, GEMM on stream 7 right after that.
fn in_turn() -> Fixture {
    let mut fixture = Fixture::default();
    for round in 0..2 {
        let start = round * 10 * MS;
        fixture.push(kernel(GEMM).at(start, 2 * MS).on(0, 7).link(10 * round + 1));
        fixture.push(kernel(REDUCE).at(start + 2 * MS, MS).on(0, 9).link(10 * round + 2));
        fixture.push(kernel(GEMM).at(start + 3 * MS, 2 * MS).on(0, 7).link(10 * round + 3));
    }
    fixture
}

#[test]
fn event_waits_are_evidence_of_dependency() {
    // Without them, streams that take turns without a pause are.
    let found = of(in_turn());
    let reduce = row(&found, REDUCE);
    assert_eq!((reduce.dependency_risk, reduce.waited_pct), (Risk::High, None));
    assert_ne!(reduce.priority, Some(Priority::P1));

    // As CUPTI records it: on the stream that waits.
    let mut fixture = in_turn();
    for round in 0..2 {
        let start = round * 10 * MS;
        fixture.push(slice("cuda_sync", "Stream Wait Event").at(start + 2 * MS - 50, 3).on(0, 9));
    }
    let found = of(fixture);
    let reduce = row(&found, REDUCE);
    assert_eq!((reduce.dependency_risk, reduce.waited_pct), (Risk::High, Some(100.0)));
    assert_eq!(reduce.recommendation, None, "its consumer follows");
    assert!(
        reduce.reason.ends_with("next to work that looks dependent, so nothing is advised."),
        "{}",
        reduce.reason
    );

    // As the runtime records it: before a launch. Here the GEMM waits for the reduction, in one round.
    let mut fixture = in_turn();
    for correlation in [1, 2, 3, 11, 12, 13] {
        let launch = slice("cuda_runtime", "hipLaunchKernel").at(correlation * 10, 1);
        fixture.push(launch.on(1, 1).link(correlation));
    }
    fixture.push(slice("cuda_runtime", "hipStreamWaitEvent").at(25, 1).on(1, 1).link(99));
    let found = of(fixture);
    let reduce = row(&found, REDUCE);
    assert_eq!((reduce.dependency_risk, reduce.waited_pct), (Risk::High, Some(50.0)));
    assert_eq!(
        reduce.savings_bound_ns,
        Some(MS),
        "the one that the GEMM waits for has nothing to overlap with"
    );
}

#[test]
fn all_instances_decide_the_risk_not_the_longest() {
    // One long norm right before a GEMM; three short ones far from everything.
    let mut slices = vec![
        kernel(NORM).at(0, 9 * MS).on(0, 7),
        kernel(GEMM).at(9 * MS, MS).on(0, 7),
        kernel(GEMM).at(9 * MS, 2 * MS).on(0, 9),
    ];
    slices.extend((2..5).map(|n| kernel(NORM).at(n * 20 * MS, MS).on(0, 7)));
    let found = of(filled(slices));
    let norm = row(&found, NORM);
    assert_eq!((norm.dependency_risk, norm.tight_pct, norm.n_instances), (Risk::Low, 25.0, 4));
    assert_eq!((norm.priority, norm.recommendation.as_deref()), (None, None));
    assert_eq!(norm.representative, 0);
}

#[test]
fn what_is_hidden_already_gains_little() {
    let found = of(filled([
        kernel(GEMM).at(0, 10 * MS).on(0, 7),
        kernel(NORM).at(MS, 5 * MS).on(0, 9),
        kernel(NORM).at(10 * MS, MS).on(0, 9),
    ]));
    let norm = row(&found, NORM);
    assert_eq!((norm.verdict, norm.priority), (Verdict::LowRoiHidden, None));
    assert_eq!(norm.recommendation, None);
}

#[test]
fn stages_are_judged_apart_and_captures_not_at_all() {
    let trace = filled([
        kernel(REDUCE).at(0, MS).on(0, 9),
        kernel(GEMM).at(0, 2 * MS).on(0, 7),
        kernel(REDUCE).at(100 * MS, MS).on(0, 9),
        kernel(REDUCE).at(200 * MS, MS).on(0, 9),
        kernel(GEMM).at(300 * MS, 10_000).on(0, 7),
    ])
    .finish();
    let found = by_stage(&trace, &|at| {
        [Stage::Decode, Stage::Decode, Stage::Extend, Stage::Capture, Stage::All][at]
    });
    let rows: Vec<_> = found.rows.iter().map(|row| (row.stage, row.kernel_name.as_str())).collect();
    assert_eq!(rows, [(Stage::Decode, GEMM), (Stage::Extend, REDUCE), (Stage::Decode, REDUCE)]);
    assert!(found.note.starts_with("No second stream in extend/prefill:"), "{}", found.note);
}

#[test]
fn nothing_is_said_of_nothing() {
    let found = of(Fixture::default());
    assert!(
        found.rows.is_empty() && found.note.starts_with("This trace has no GPU slices"),
        "{}",
        found.note
    );
}

#[test]
fn json_keys_are_column_keys() {
    let found =
        of(filled([kernel(REDUCE).at(0, 20 * MS).on(0, 9), kernel(GEMM).at(0, 2 * MS).on(0, 7)]));
    testkit::assert_keys(row(&found, REDUCE), OverlapRow::COLUMNS.iter().map(|column| column.key));
    for column in OverlapRow::COLUMNS {
        assert!(column.help.ends_with('.'), "{}: help is a sentence", column.key);
    }
    for row in &found.rows {
        assert!(row.reason.ends_with('.') && !row.reason.contains(".."), "{}", row.reason);
    }
}

#[test]
fn what_saves_less_than_a_hundredth_is_a_row_that_documents_leave_out() {
    // The reduction can hide behind no more than the part of the product that runs alone.
    let with = |alone_ns: i64| {
        of(filled([
            kernel(GEMM).at(0, alone_ns + 2 * MS).on(0, 7),
            kernel(REDUCE).at(alone_ns, 100 * MS).on(0, 9),
        ]))
    };
    let printed = |found: &Overlap| {
        let row = row(found, REDUCE);
        (row.is_advice(), row.is_printed())
    };
    assert_eq!(printed(&with(5 * MS)), (true, true));
    assert_eq!(printed(&with(700_000)), (true, false), "0.7 of 100.7 ms");
}
