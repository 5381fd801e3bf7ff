//! Real traces: what is found is what really follows in them.

use std::path::Path;

use super::*;
use crate::attribution::Linker;
use crate::stages::Stages;
use crate::{Sources, framework, replay};
use timeline::launches::Launches;

fn decode(path: &Path) -> Trace {
    let mut decoder = decode::Decoder::new();
    for chunk in std::fs::read(path).unwrap().chunks(1 << 16) {
        decoder.push(chunk).unwrap();
    }
    decoder.finish().unwrap().trace
}

/// Id, status, occurrences and time in ns of every row of a trace in the corpus.
type Seen = (&'static str, &'static str, u64, i64);

fn seen(fuse: &Fuse) -> Vec<(&str, &str, u64, i64)> {
    let rows = fuse.rows.iter();
    rows.map(|row| (row.pattern_id.as_str(), row.status.id(), row.n_occurrences, row.related_ns))
        .collect()
}

#[test]
fn real_traces_show_what_really_follows_in_them() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    let opportunity = "opportunity";
    let fused = "already_fused";
    // Counted by hand over the kernels of each stream by another program in another language.
    let expected: &[(&str, &[Seen])] = &[
        (
            "mi300_qwen15_0.5b",
            &[
                ("K01", opportunity, 71, 8_245_218),
                ("K03", opportunity, 68, 6_387_662),
                ("K02", opportunity, 35, 2_452_160),
                ("K05", opportunity, 70, 1_004_195),
            ],
        ),
        (
            "h100_qwen15_0.5b",
            &[
                ("K01", opportunity, 70, 10_534_397),
                ("K03", opportunity, 68, 9_843_022),
                ("K02", opportunity, 35, 3_140_596),
                ("K05", opportunity, 69, 1_228_827),
            ],
        ),
        ("mi300_bert_small", &[("K05", opportunity, 9, 55_268)]),
        ("mi210_gpu_only", &[("K09", opportunity, 59, 616_995)]),
        (
            "mi300_vllm_decode_formal",
            &[("K13", opportunity, 24, 494_941), ("K08", opportunity, 24, 286_150)],
        ),
        (
            "mi300_sglang_decode_formal",
            &[("F07", opportunity, 36, 369_360), ("F04", fused, 36, 324_367)],
        ),
        (
            "mi300_sglang_prefilldecode",
            &[
                ("F13", opportunity, 36, 23_483_738),
                ("F04", fused, 36, 16_508_145),
                ("F01", fused, 72, 8_699_121),
            ],
        ),
        ("mi300_xdit_sd35", &[("K09", opportunity, 32, 9_322_217)]),
        ("nccl", &[("K09", opportunity, 165, 14_726_199), ("K12", opportunity, 3, 2_078_278)]),
        ("ns_resolution_absolute_us", &[("K12", opportunity, 5, 5_532_802)]),
        ("torch_compile_triton", &[]),
        ("normalization_layers", &[]),
    ];
    for (name, expected) in expected {
        let trace = decode(&folder.join(format!("{name}.json.gz")));
        let context = of(framework::framework(&trace).framework);
        let places = |gpu: &Gpu<'_>| {
            Some(attribution::attribute(gpu, &Launches::of(gpu), &mut Linker::of(&trace, None)))
        };
        let platform = timeline::device::platform(&trace);
        let found = look_on(&trace, |_| Stage::All, places, &context, platform);
        assert_eq!(seen(&found), *expected, "{name}");
    }
}

#[test]
fn replayed_kernels_have_the_operators_of_their_capture() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    let expected: &[(&str, Framework, &[Seen])] = &[
        (
            "mi300_sglang_decode",
            Framework::Sglang,
            &[
                ("F13", "opportunity", 36, 700_781),
                ("F01", "already_fused", 72, 346_844),
                ("F04", "already_fused", 36, 324_367),
            ],
        ),
        // Operators tell of "unquantized" products here, which are no quantization.
        (
            "mi300_vllm_decode",
            Framework::Vllm,
            &[
                ("K13", "opportunity", 24, 494_941),
                ("F42", "already_fused", 48, 326_031),
                ("K08", "opportunity", 24, 286_150),
            ],
        ),
    ];
    for (name, framework, expected) in expected {
        let trace = decode(&folder.join(format!("{name}_formal.json.gz")));
        let capture = decode(&folder.join(format!("{name}_capture.json.gz")));
        let places = |gpu: &Gpu<'_>| {
            let launches = Launches::of(gpu);
            let mut places = attribution::attribute(gpu, &launches, &mut Linker::of(&trace, None));
            let sources = Sources { captures: &[&capture], ..Sources::default() };
            let stages = Stages::of(gpu, &launches, None);
            replay::map(gpu, &launches, &mut places, &stages, &sources, &mut |_, _, _, _| {});
            Some(places)
        };
        let found = look_on(&trace, |_| Stage::Decode, places, &of(*framework), Platform::Rocm);
        assert_eq!(seen(&found), *expected, "{name}");
        let locations = found.rows.iter().map(|row| row.current_location.as_str());
        assert!(locations.clone().all(|location| location.contains(".py:")), "{name}: {found:?}");
    }
}
