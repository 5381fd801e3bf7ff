//! Stages of real traces, against figures that were computed elsewhere.

use super::*;

fn rows(name: &str) -> Option<Vec<StageRow>> {
    let path = testkit::real_trace(name)?;
    let mut decoder = decode::Decoder::new();
    decoder.push(&std::fs::read(&path).unwrap()).unwrap();
    let trace = decoder.finish().unwrap().trace;
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Unknown, &before, &Options::default());
    let stages = Stages::of(&gpu, &Launches::of(&gpu), path.to_str());
    Some(table(&stages, &gpu))
}

/// Stage, slices, kernels, total, busy and span in ns, passes.
type Expected = (Stage, u64, u64, i64, i64, i64, u64);

fn check(name: &str, expected: &[Expected]) -> Option<Vec<StageRow>> {
    let rows = rows(name)?;
    let found: Vec<Expected> = rows
        .iter()
        .map(|row| {
            let StageRow { n_slices, n_kernels, total_ns, busy_ns, span_ns, n_windows, .. } = row;
            (row.stage, *n_slices, *n_kernels, *total_ns, *busy_ns, *span_ns, *n_windows)
        })
        .collect();
    assert_eq!(found, expected, "{name}");
    Some(rows)
}

#[test]
fn sglang_decode_is_one_step_of_32_requests() {
    let stage = (Stage::Decode, 558, 555, 9_778_614, 9_772_926, 473_749_943, 1);
    let Some(rows) = check("mi300_sglang_decode_formal", &[stage]) else { return };
    assert_eq!(rows[0].batch.as_deref(), Some("bs 32, 32785 tokens of context"));
    assert_eq!(rows[0].recognised_by, "annotation step[DECODE bs=32] and another");
}

#[test]
fn prefilldecode_in_a_name_is_neither_and_its_step_is_a_prompt() {
    // 485 of them run after the annotation has ended; all were launched in it.
    let stage = (Stage::Extend, 534, 527, 492_811_563, 492_806_877, 987_288_887, 1);
    let Some(rows) = check("mi300_sglang_prefilldecode", &[stage]) else { return };
    assert_eq!(rows[0].batch.as_deref(), Some("15 requests, 15360 tokens"));
    assert_eq!(rows[0].recognised_by, "annotation step[EXTEND bs=15 toks=15360] and another");
}

#[test]
fn vllm_decode_is_told_by_its_generation_requests() {
    let stage = (Stage::Decode, 434, 425, 10_717_708, 10_717_708, 10_743_181, 1);
    let Some(rows) = check("mi300_vllm_decode_formal", &[stage]) else { return };
    assert_eq!(rows[0].batch.as_deref(), Some("bs 32, 55086 tokens of context"));
}

#[test]
fn captures_are_captures_though_their_files_are_called_decode() {
    let stage = (Stage::Capture, 10, 7, 28_830, 28_830, 57_795_418, 1);
    let Some(rows) = check("mi300_vllm_decode_capture", &[stage]) else { return };
    assert_eq!(rows[0].batch.as_deref(), Some("bs 32"));
    let stage = (Stage::Capture, 2, 2, 11_015, 11_015, 11_016, 1);
    check("mi300_sglang_decode_capture", &[stage]);
}

#[test]
fn training_is_forward_backward_and_optimizer() {
    let expected = [
        (Stage::Forward, 855, 651, 6_567_186, 6_553_076, 6_712_077, 3),
        (Stage::Backward, 1827, 1584, 61_737_725, 49_590_235, 49_714_762, 3),
        (Stage::Optimizer, 3, 3, 90_756, 90_756, 90_756, 3),
        (Stage::All, 968, 757, 31_834_405, 27_767_989, 30_050_104, 0),
    ];
    let Some(rows) = check("mi300_resnet_training", &expected) else { return };
    let told: Vec<_> = rows.iter().map(|row| row.recognised_by.as_str()).collect();
    assert_eq!(
        told,
        [
            "annotation DistributedDataParallel.forward (846); launched before a backward pass (9)",
            "the autograd engine's ops",
            "annotation Optimizer.step#SGD.step",
            "launched before profiling started"
        ]
    );
}

#[test]
fn training_with_names_of_its_own_is_read_the_same() {
    check(
        "nccl",
        &[
            (Stage::Forward, 1356, 879, 38_768_022, 38_768_022, 292_759_653, 3),
            (Stage::Backward, 2391, 1794, 124_339_538, 116_653_714, 308_933_197, 3),
            (Stage::Optimizer, 27, 27, 2_078_278, 2_078_278, 28_202_374, 3),
        ],
    );
    check(
        "ns_resolution_absolute_us",
        &[
            (Stage::Forward, 2300, 1495, 150_438_660, 150_438_660, 154_345_800, 5),
            (Stage::Backward, 3750, 2810, 316_482_979, 316_482_979, 320_107_698, 5),
            (Stage::Optimizer, 45, 45, 5_532_802, 5_532_802, 5_565_186, 5),
        ],
    );
}

#[test]
fn training_without_annotations_is_told_by_the_autograd_engine() {
    check(
        "mi250_toy_training",
        &[
            (Stage::Forward, 8, 6, 92_081, 92_081, 1_031_366, 0),
            (Stage::Backward, 7, 7, 48_480, 48_480, 7_297_638, 1),
            (Stage::Optimizer, 1, 1, 8_481, 8_481, 8_481, 1),
        ],
    );
    check(
        "normalization_layers",
        &[
            (Stage::Forward, 85, 81, 496_098, 496_098, 881_428_959, 0),
            (Stage::Backward, 88, 87, 522_534, 522_534, 181_768_058, 3),
        ],
    );
}

#[test]
fn inference_without_annotations_has_one_row() {
    for name in ["mi300_qwen15_0.5b", "h100_bert_small", "mi300_xdit_sd35", "mi210_gpu_only"] {
        let Some(rows) = rows(name) else { return };
        assert_eq!((rows.len(), rows[0].stage), (1, Stage::All), "{name}");
    }
    let Some(rows) = rows("cpu_only") else { return };
    assert!(rows.is_empty());
}

/// Medians of kernels whose launch is known, counted by a script that joins them by correlation (of an even number the mean
/// of the two in the middle, rounded half up).
#[test]
fn waits_and_lengths_are_those_that_another_program_finds() {
    for (name, wait_ns, kernel_ns, bound) in [
        ("h100_bert_small", 1_667, 4_641, true),
        ("mi300_bert_small", 14_267, 4_810, true),
        ("h100_qwen15_0.5b", 1_203_133, 29_152, false),
        ("mi300_qwen15_0.5b", 1_760_858, 18_001, false),
        // 37% of its time are gaps in which the CPU dispatches compiled regions.
        ("mi300_xdit_sd35", 9_776, 21_551, true),
    ] {
        let Some(rows) = rows(name) else { return };
        let [row] = &rows[..] else { panic!("{name}: {} stages", rows.len()) };
        assert_eq!(
            (row.wait_p50_ns, row.kernel_p50_ns, row.launch_bound),
            (Some(wait_ns), Some(kernel_ns), Some(bound)),
            "{name}"
        );
    }
}

fn small(name: &str) -> Option<Vec<(Stage, u64, i64)>> {
    let file = std::fs::read(testkit::shared(&format!("corpus/training/{name}.json"))?).unwrap();
    let mut decoder = decode::Decoder::new();
    decoder.push(&file).unwrap();
    let trace = decoder.finish().unwrap().trace;
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Unknown, &before, &Options::default());
    let rows = table(&Stages::of(&gpu, &Launches::of(&gpu), None), &gpu);
    Some(rows.iter().map(|row| (row.stage, row.n_slices, row.total_ns)).collect())
}

#[test]
fn where_gradients_are_cleared_changes_no_stage() {
    let (Some(first), Some(mid)) = (small("stage_zero_first"), small("stage_zero_mid")) else {
        return;
    };
    assert_eq!(first, mid);
    let stages: Vec<Stage> = mid.iter().map(|(stage, ..)| *stage).collect();
    assert_eq!(stages, [Stage::Forward, Stage::Backward, Stage::Optimizer]);
}

#[test]
fn an_id_of_an_annotation_that_begins_later_says_nothing() {
    let Some(found) = small("stage_external_id") else { return };
    assert_eq!(found, [(Stage::Optimizer, 1, 3_000), (Stage::All, 1, 9_000)]);
}

/// By a script that joins kernels to launches and launches to annotations of any thread.
#[test]
fn a_pipeline_has_the_phases_of_its_annotations() {
    let Some(rows) = rows("deepseek_h800_train") else { return };
    let found: Vec<_> = rows.iter().map(|row| (row.stage, row.n_slices, row.total_ns)).collect();
    assert_eq!(
        found,
        [
            (Stage::Forward, 375, 97_391_000),
            (Stage::Backward, 540, 111_611_000),
            (Stage::WeightGrad, 68, 35_067_000),
        ]
    );
}
