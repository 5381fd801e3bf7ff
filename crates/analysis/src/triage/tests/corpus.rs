//! Triage of the real traces, against facts that were measured elsewhere.

use trace::Trace;

use crate::triage::{Confidence, Sources, TriageOptions, TriageReport, triage};

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
    let sources = Sources { captures: &captures, mapping: None };
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
            .filter(|row| row.mapping_confidence == Confidence::Replay.id())
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
    use crate::triage::{RoleGuess, Signs, guess_roles};
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
