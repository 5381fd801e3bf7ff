//! Triage of the real traces, against facts that were measured elsewhere.

use std::collections::BTreeSet;

use trace::{Details, Trace};

use crate::arguments::Arguments;
use crate::attribution::Linker;
use crate::autograd::{self, Autograd};
use crate::nest::Nest;
use crate::{Confidence, KernelTableRow, Note, Sources, TriageOptions, TriageReport, triage};
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::Gpu;
use timeline::launches::Launches;
use timeline::recorded::{Recorded, recorded};

fn read(name: &str) -> Option<Trace> {
    let file = testkit::shared(&format!("corpus/traces/{name}.json.gz"))?;
    let mut decoder = decode::Decoder::new();
    decoder.push(&std::fs::read(file).unwrap()).map_err(|reason| reason.to_string()).unwrap();
    Some(decoder.finish().map_err(|reason| reason.to_string()).unwrap().trace)
}

fn of_pair(kind: &str) -> Option<(TriageReport, TriageReport)> {
    let formal = read(&format!("mi300_{kind}_decode_formal"))?;
    let capture = read(&format!("mi300_{kind}_decode_capture"))?;
    let options = TriageOptions::default();
    let alone = triage(&formal, &options, &Sources::default());
    let captures = [&capture];
    let sources = Sources { captures: &captures, ..Sources::default() };
    Some((alone, triage(&formal, &options, &sources)))
}

/// The numbers of triage.md 3.4: every kernel of the replay is one of the capture, name by name.
#[test]
fn every_replayed_kernel_is_traced_back_to_its_op_and_line() {
    for (kind, kernels, file) in
        [("vllm", 421, "vllm/model_executor/"), ("sglang", 544, "sglang/srt/")]
    {
        let Some((alone, mapped)) = of_pair(kind) else { return };
        assert_eq!((alone.coverage.graph_slices, alone.coverage.graph_mapped), (kernels, 0));
        assert_eq!(
            (mapped.coverage.graph_slices, mapped.coverage.graph_mapped),
            (kernels, kernels)
        );
        assert_eq!((mapped.coverage.replays, mapped.coverage.identical_replays), (1, 1));
        let replayed: Vec<_> = mapped
            .kernels
            .iter()
            .filter(|row| row.mapping_confidence == Confidence::Replay)
            .collect();
        assert!(!replayed.is_empty());
        for row in &replayed {
            assert!(!row.cpu_op.is_empty() && !row.cpu_op.contains("Graph"), "{row:?}");
            assert!(!row.python_location.is_empty(), "{row:?}");
        }
        assert!(replayed.iter().any(|row| row.python_location.contains(file)), "{kind}");
    }
}

/// Of all traces of the corpus together, the two captures find their replays, and nothing else is taken for a companion.
#[test]
fn captures_find_what_replays_them() {
    use crate::{RoleGuess, Signs, guess_roles};
    let names = [
        "mi300_sglang_decode_capture",
        "mi300_vllm_decode_capture",
        "mi300_vllm_decode_formal",
        "mi300_sglang_decode_formal",
        "mi300_sglang_prefilldecode",
        "mi300_qwen15_0.5b",
        "h100_qwen15_0.5b",
        "mi300_resnet_training",
        "torch_compile_triton",
        "cpu_only",
    ];
    let mut all = Vec::new();
    for name in names {
        let Some(trace) = read(name) else { return };
        all.push(Signs::of(&trace));
    }
    let all: Vec<&Signs> = all.iter().collect();
    let mut expected = [RoleGuess::Own; 10];
    expected[0] = RoleGuess::Capture(3);
    expected[1] = RoleGuess::Capture(2);
    assert_eq!(guess_roles(&all), expected);
}

/// A trace with the arguments that a second reading finds.
fn read_twice(name: &str) -> Option<(Trace, Details)> {
    let file = std::fs::read(testkit::shared(&format!("corpus/traces/{name}.json.gz"))?).unwrap();
    let mut decoder = decode::Decoder::new();
    decoder.push(&file).map_err(|reason| reason.to_string()).unwrap();
    let decoded = decoder.finish().map_err(|reason| reason.to_string()).unwrap();
    let mut reader = decode::DetailsReader::new(&decoded);
    reader.push(&file);
    let details = reader.finish();
    Some((decoded.trace, details))
}

/// Different launches and different inputs, summed over kernel names; counted by a few lines of Python that join
/// kernels to launches by correlation and to ops by `External id`.
#[test]
fn launches_and_inputs_are_those_that_another_program_joins() {
    for (name, n_configs, n_shapes) in [
        ("h100_bert_small", 12, 15),
        ("mi250_toy_training", 13, 14),
        ("mi300_qwen15_0.5b", 30, 34),
        ("mi300_xdit_sd35", 195, 230),
        ("nccl", 194, 0),
        ("alexnet", 33, 0),
    ] {
        let Some((trace, details)) = read_twice(name) else { return };
        let sources = Sources { details: Some(&details), ..Sources::default() };
        // (One window for all, so that no stage splits the launches of a name.)
        let gpu = Gpu::new(
            &trace,
            timeline::device::platform(&trace),
            &BeforeWindowSlices::of(&trace),
            &TriageOptions::default().slices,
        );
        let linker = Linker::of(&trace, None);
        let arguments = Arguments::of(&gpu, &Launches::of(&gpu), &linker, sources.details);
        let mut configs = BTreeSet::new();
        let mut calls = BTreeSet::new();
        for at in 0..gpu.len() {
            let slice = gpu.slice(at);
            if gpu.is_kernel(&slice) {
                configs.extend(arguments.config_index(at).map(|config| (slice.work, config)));
                calls.extend(arguments.call_index(at).map(|call| (slice.work, call)));
            }
        }
        assert_eq!((configs.len(), calls.len()), (n_configs, n_shapes), "{name}");
        let report = triage(&trace, &TriageOptions::default(), &sources);
        let of_rows: u64 = report.kernels.iter().map(|row| row.n_launch_configs).sum();
        assert!(of_rows as usize >= n_configs, "{name}: {of_rows}");
    }
}

#[test]
fn rows_show_the_launches_with_most_time() {
    let Some((trace, details)) = read_twice("h100_bert_small") else { return };
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let report = triage(&trace, &TriageOptions::default(), &sources);
    let row = &report.kernels[0];
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    assert_eq!((row.launches, row.n_launch_configs, row.n_shapes), (17, 1, 1));
    assert_eq!((row.grid, row.block), (Some([40, 2, 1]), Some([128, 1, 1])));
    assert_eq!((row.registers, row.shared_bytes), (Some(88), Some(33_792)));
    assert_eq!((row.occupancy_pct, row.blocks_per_sm), (Some(4.0), Some(0.606)));
    assert_eq!(text(&row.shapes), "bf16[512], bf16[141,512], bf16[512,512]");
    assert_eq!(text(&row.gemm_shape), "141 x 512 x 512");
    assert!(report.launch_note.starts_with("Op, inputs, grid and block"), "{}", report.launch_note);

    let Some((trace, details)) = read_twice("mi300_xdit_sd35") else { return };
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let report = triage(&trace, &TriageOptions::default(), &sources);
    let row = report.kernels.iter().find(|row| row.launches == 760).unwrap();
    // The file says 75776 threads of 256.
    assert_eq!(row.grid, Some([296, 1, 1]));
    assert_eq!((row.n_shapes, text(&row.gemm_shape)), (3, "8192 x 2432 x 9728".into()));
    assert_eq!(row.occupancy_pct, None);

    let alone = triage(&trace, &TriageOptions::default(), &Sources::default());
    assert!(alone.kernels.iter().all(|row| row.grid.is_none() && row.shapes.is_none()));
    assert!(alone.launch_note.contains("were not read"), "{}", alone.launch_note);
    let columns = |report: &TriageReport| {
        let sections = report.sections(1.0);
        let table = sections.iter().flat_map(|it| &it.tables).find(|it| it.id == "kernel-table");
        table.map(|table| table.columns.iter().map(|it| it.key.to_string()).collect::<Vec<_>>())
    };
    let (with, without) = (columns(&report).unwrap(), columns(&alone).unwrap());
    assert!(with.contains(&"grid".to_owned()) && !with.contains(&"occupancy_pct".to_owned()));
    assert!(!without.contains(&"grid".to_owned()));
}

/// A kernel of a graph has neither grid nor inputs; its capture has both. Figures from Python, as above.
#[test]
fn a_capture_tells_how_replayed_kernels_were_launched() {
    for (kind, n_captured, n_configs, grid, shapes, gemm) in [
        ("vllm", 421, 20, [912, 1, 1], "bf16[32,3072], bf16[32,32]", None),
        (
            "sglang",
            544,
            18,
            [288, 1, 1],
            "bf16[32,4096], bf16[4096,24576]",
            Some("32 x 24576 x 4096"),
        ),
    ] {
        let Some((formal, details)) = read_twice(&format!("mi300_{kind}_decode_formal")) else {
            return;
        };
        let Some((capture, of_capture)) = read_twice(&format!("mi300_{kind}_decode_capture"))
        else {
            return;
        };
        let (captures, capture_details) = ([&capture], [Some(&of_capture)]);
        let sources = Sources {
            captures: &captures,
            details: Some(&details),
            capture_details: &capture_details,
            ..Sources::default()
        };
        let report = triage(&formal, &TriageOptions::default(), &sources);
        let row = &report.kernels[0];
        assert_eq!(row.grid, Some(grid), "{kind}");
        assert_eq!(row.shapes.as_deref(), Some(shapes), "{kind}");
        assert_eq!(row.gemm_shape.as_deref(), gemm, "{kind}");
        let captured = |row: &KernelTableRow| -> Option<u64> {
            row.notes.iter().find_map(|note| match note {
                Note::LaunchFromCapture(n) => Some(*n),
                _ => None,
            })
        };
        let rows = || report.kernels.iter().filter(|row| captured(row).is_some());
        assert_eq!(rows().filter_map(captured).sum::<u64>(), n_captured, "{kind}");
        let configs: u64 = rows().map(|row| row.n_launch_configs).sum();
        assert!(configs >= n_configs, "{kind}: {configs}");
    }
}

/// Three GEMMs of one kernel in a row, whose inputs have the same rows and inner size: found by a few lines of Python, too.
#[test]
fn products_of_one_input_are_told_by_what_their_ops_were_called_with() {
    for name in
        ["mi300_qwen15_0.5b", "h100_qwen15_0.5b", "mi300_bert_small", "torch_compile_triton"]
    {
        let Some((trace, details)) = read_twice(name) else { return };
        let sources = Sources { details: Some(&details), ..Sources::default() };
        let found = |sources: &Sources<'_>| {
            let report = triage(&trace, &TriageOptions::default(), sources);
            // Never advised: no file records whether it is the same tensor.
            assert!(report.fuse.iter().all(|row| row.pattern_id != "K10"), "{name}");
            report.fuse_note.is_some_and(|note| note.contains("(K10)"))
        };
        assert_eq!((found(&sources), found(&Sources::default())), (true, false), "{name}");
    }
}

/// GPU time with a line of its own, and with that of the forward pass: counted by a script that finds the ops by their
/// numbers and the frames by time.
#[test]
fn lines_of_the_forward_pass_are_those_that_another_program_finds() {
    for (name, own_ns, forward_ns) in [
        // (24 sums of gradients, 102,896 ns, belong to no line.)
        ("mi300_resnet_training", 10_867_900, 9_098_508 - 102_896),
        ("normalization_layers", 496_098, 478_928),
        // No stacks were recorded.
        ("nccl", 0, 0),
    ] {
        let Some((trace, details)) = read_twice(name) else { return };
        let coverage = |details| {
            let sources = Sources { details, ..Sources::default() };
            triage(&trace, &TriageOptions::default(), &sources).coverage
        };
        let found = coverage(Some(&details));
        assert_eq!(
            (found.python_ns - found.forward_ns, found.forward_ns),
            (own_ns, forward_ns),
            "{name}"
        );
        // An arrow ends at the node's own op; what the engine launches around it, only the numbers tell.
        let by_arrows = coverage(None).forward_ns;
        assert!((forward_ns * 98 / 100..=forward_ns).contains(&by_arrows), "{name}: {by_arrows}");
    }
}

/// By arrows and by numbers every op of a backward pass leads to the same op; in older traces numbers are alone. How
/// many there are was counted by a script.
#[test]
fn numbers_lead_where_arrows_do() {
    for (name, n_arrows, n_numbers) in [
        ("mi250_toy_training", 4, 8),
        ("mi300_resnet_training", 213, 426),
        ("nccl", 543, 1086),
        ("normalization_layers", 51, 102),
        ("ns_resolution_absolute_us", 905, 1810),
        ("integer_us_control", 0, 4764),
    ] {
        let Some((trace, details)) = read_twice(name) else { return };
        let recorded = recorded(&trace);
        let ops = Nest::of(&trace, |row| *recorded.of(&trace, row) == Recorded::Op);
        let arrows = Autograd::of(&trace, &ops, None).links;
        let numbers = autograd::by_number(&trace, &details, &[]);
        assert_eq!((arrows.len(), numbers.len()), (n_arrows, n_numbers), "{name}");
        for link in arrows {
            assert!(numbers.contains(&link), "{name}: {link:?}");
        }
    }
}
