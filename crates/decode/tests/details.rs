//! The second reading: what arguments say, whatever the pieces.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::decode;
use decode::{Decoded, DetailsReader};
use proptest::prelude::*;
use testkit::gzip;
use trace::{Details, Sequence, StreamWait};

fn details_in(decoded: &Decoded, file: &[u8], sizes: &[usize]) -> Details {
    let mut reader = DetailsReader::new(decoded);
    let mut rest = file;
    for size in sizes.iter().cycle() {
        let (piece, more) = rest.split_at(rest.len().min((*size).max(1)));
        reader.push(piece);
        rest = more;
        if rest.is_empty() {
            break;
        }
    }
    reader.finish()
}

fn details(file: &[u8]) -> Details {
    details_in(&decode(file).unwrap(), file, &[1 << 20])
}

const FILE: &str = r#"{"traceEvents":[
 {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7,
  "registers per thread":64,"shared memory":49152,"blocks per SM":0.5925926,"warps per SM":2.3703704,
  "grid":[64, 1,1],"block":[128,1,1],"est. achieved occupancy %":4}},
 {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2,"args":{"Input Dims":[[2, 3],[3,4],[]],
  "Input type":["float","float",""],"Sequence number":17,"Fwd thread id":0}},
 {"ph":"X","cat":"python_function","name":"f","pid":1,"tid":1,"ts":1,"dur":2,"args":{"grid":[1,1,1]}},
 {"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,
  "args":{"kernel":"k","grid":[8,2,1],"block":[64,1,1],"shared memory":0}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,"args":{"grid":[9,9,9]}},
 {"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":20,"ts":1,"dur":2,"args":{"device":0,"stream":20,
  "wait_on_stream":7,"wait_on_cuda_event_record_corr_id":5169,"wait_on_cuda_event_id":1,"correlation":5170}},
 {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":2,"args":{"block":[128,1,1],
  "grid":[64,1,1],"est. achieved occupancy %":4,"warps per SM":2.3703704,"blocks per SM":0.5925926,
  "registers per thread":64,"shared memory":49152}}
]}"#;

#[test]
fn what_is_wanted_is_kept_once() {
    let found = details(FILE.as_bytes());
    assert_eq!((found.n_read, found.n_unread, found.n_unkept), (5, 0, 0));
    assert_eq!(found.launches, [(0, 0), (3, 1), (6, 0)]);
    let config = found.launch(6).unwrap();
    assert_eq!((config.grid, config.block), (Some([64, 1, 1]), Some([128, 1, 1])));
    assert_eq!((config.registers, config.shared_bytes), (Some(64), Some(49_152)));
    let millis =
        (config.occupancy_milli_pct, config.blocks_per_sm_milli, config.warps_per_sm_milli);
    assert_eq!(millis, (Some(4_000), Some(593), Some(2_370)));
    assert_eq!(found.launch(3).unwrap().grid, Some([8, 2, 1]));
    assert_eq!(found.launch(1), None);
    let inputs = found.inputs(1).unwrap();
    assert_eq!(found.texts.get(inputs.dims), "[[2,3],[3,4],[]]");
    assert_eq!(found.texts.get(inputs.types), r#"["float","float",""]"#);
    assert_eq!(found.sequence(1), Some(Sequence { number: 17, forward_thread: 0 }));
    let wait =
        StreamWait { device: Some(0), stream: Some(20), on_stream: Some(7), record: Some(5169) };
    assert_eq!(found.waits, [(5, wait)]);
}

#[test]
fn collectives_are_kept_once() {
    let call = |elements: &str| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","ts":1,"dur":1,"args":{{"Collective name":"all_to_allv",
            "In msg nelems":{elements},"Out msg nelems":2048,"Group size":2,"dtype":"Float","In split size":"[4, 4]","Process Group Name":"0"}}}}"#
        )
    };
    let file = format!("[{},{},{},{}]", call("2048"), call("4096"), call("2048"), call("\"x\""));
    let found = details(file.as_bytes());
    assert_eq!(found.collective_of, [(0, 0), (1, 1), (2, 0)]);
    let first = found.collectives[0];
    assert_eq!(found.texts.get(first.name), "all_to_allv");
    assert_eq!(found.texts.get(first.kind), "Float;0;;[4,4];;");
    assert_eq!((first.in_elements, first.out_elements, first.group_size), (2048, 2048, 2));
    assert_eq!((found.collective(2), found.collective(3)), (Some(0), None));
}

#[test]
fn of_annotations_the_sizes_of_calls_of_gloo_are_read_for_the_host() {
    let call = |category: &str, name: &str| {
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","ts":1,"dur":1,"args":{{"Input Dims":[[8]],"Input type":["float"]}}}}"#
        )
    };
    let annotation = "user_annotation";
    let gloo = call(annotation, "gloo:all_reduce");
    let file = format!("[{gloo},{},{}]", call(annotation, "mine"), call("x", "gloo:all_reduce"));
    let decoded = decode(file.as_bytes()).unwrap();
    let mut reader = DetailsReader::with_host(&decoded, |_| false);
    reader.push(file.as_bytes());
    let found = reader.finish();
    assert_eq!(found.ops, [(0, 0)]);
    assert_eq!(found.texts.get(found.inputs[0].dims), "[[8]]");
    assert!(details(file.as_bytes()).ops.is_empty(), "triage alone does not compare ranks");
}

#[test]
fn odd_arguments_are_no_arguments() {
    let file = r#"[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"grid":[1,2],"block":"x",
        "registers per thread":-3,"shared memory":1e99,"est. achieved occupancy %":NaN,"warps per SM":-1}},
      {"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"grid":[1,2,3,4],"block":[99999999999,1,1]}},
      {"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":[1]},
      {"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1},
      {"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"grid":[1,1,1]},"args":{"\u0067rid":[2,2,2],"grid":[3,3,3]}},
      {"ph":"X","cat":"cpu_op","name":"o","ts":1,"dur":1,"args":{"Input Dims":"[[1]]","Input type":7,"Sequence number":1}},
      {"ph":"X","cat":"cpu_op","name":"o","ts":1,"dur":1,"args":{"Input Dims":[]}}]"#;
    let found = details(file.as_bytes());
    assert_eq!((found.n_read, found.n_unread), (7, 0));
    assert_eq!(found.launches, [(4, 0)]);
    assert_eq!(found.configs[0].grid, Some([3, 3, 3]));
    assert_eq!(found.ops, [(6, 0)]);
    assert!(found.sequences.is_empty());
}

#[test]
fn ops_of_old_profilers_have_stacks_where_the_text_is_not_empty() {
    let with = |stack: &str| {
        details(
            format!(
                r#"[{{"ph":"X","cat":"Operator","name":"o","ts":1,"dur":1,"args":{{"Call stack": "{stack}"}}}}]"#
            )
            .as_bytes(),
        )
    };
    assert!(with("torch/nn/functional.py(2263): batch_norm;train.py(3): main").ops_have_stacks);
    assert!(!with("").ops_have_stacks);
}

#[test]
fn what_is_not_there_any_more_is_counted() {
    let decoded = decode(FILE).unwrap();
    let cut = details_in(&decoded, &FILE.as_bytes()[..300], &[64]);
    assert_eq!((cut.n_read, cut.n_unread), (1, 4));
    let other = vec![b'x'; FILE.len()];
    let other = details_in(&decoded, &other, &[100]);
    assert_eq!((other.n_read, other.n_unread), (0, 5));
}

#[test]
fn long_lists_are_counted_and_long_events_passed_over() {
    let dims = "[1],".repeat(3_000);
    let op = format!(
        r#"{{"ph":"X","cat":"cpu_op","name":"o","ts":1,"dur":1,"args":{{"Input Dims":[{dims}[2]]}}}}"#
    );
    let huge = "y".repeat(1 << 20);
    let kernel = format!(
        r#"{{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{{"grid":[1,1,1],"z":"{huge}"}}}}"#
    );
    let small = r#"{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"grid":[1,1,1]}}"#;
    let file = format!("[{op},{kernel},{small}]");
    let found = details(file.as_bytes());
    assert_eq!((found.n_read, found.n_unread, found.n_unkept), (2, 1, 1));
    assert_eq!(found.launches, [(2, 0)]);
}

/// Parts which make files that are nearly traces.
const PARTS: &[&str] = &[
    "{\"ph\":\"X\",\"name\":\"k\",\"cat\":\"kernel\",\"pid\":0,\"tid\":7,\"ts\":1.25,\"dur\":2,\"args\":{\"stream\":7,\"grid\":[1,2,3]}}",
    "{\"ph\":\"X\",\"name\":\"o\",\"cat\":\"cpu_op\",\"ts\":1,\"dur\":2,\"args\":{\"Input Dims\":[[1, 2],[]],\"Input type\":[\"float\"],}}",
    "{\"ph\":\"X\",\"name\":\"l\",\"cat\":\"cuda_runtime\",\"ts\":1,\"dur\":2,\"args\":{\"kernel\":\"k\",\"block\":[64,1,1]}}",
    "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"ts\":1,\"dur\":2,\"args\":{\"stream\":\"7\",\"wait_on_stream\":9}}",
    "{\"ph\":\"X\",\"name\":\"o\",\"cat\":\"Operator\",\"ts\":1,\"dur\":2,\"args\":{\"Sequence number\":3,\"Fwd thread id\":1,\"Input Dims\":[[9",
    "{\"cat\":\"kernel\",\"args\":{\"grid\":[1,1,1],\"grid\":null}}",
    "{\"cat\":\"kernel\"}",
    ",",
    ", \n",
    "]",
    "]}",
    "{\"traceEvents\":[",
    "\"text\"",
    "}",
    "\u{1}é",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn any_pieces_give_the_same_details(
        parts in proptest::collection::vec(0..PARTS.len(), 0..24),
        sizes in proptest::collection::vec(1_usize..300, 1..12),
        compressed: bool,
    ) {
        let text: Vec<&str> = parts.into_iter().map(|n| PARTS[n]).collect();
        let plain = format!("{{\"traceEvents\":[{}", text.join(","));
        let file = if compressed { gzip(plain.as_bytes()) } else { plain.into_bytes() };
        let Ok(decoded) = decode(&file) else { return Ok(()) };
        let whole = format!("{:?}", details_in(&decoded, &file, &[usize::MAX]));
        prop_assert_eq!(&format!("{:?}", details_in(&decoded, &file, &[1])), &whole);
        prop_assert_eq!(&format!("{:?}", details_in(&decoded, &file, &sizes)), &whole);
    }
}

/// Per trace: launches with any argument, distinct ones, sum of grid sizes, of registers, of occupancies; ops with
/// input dims, distinct ones, summed length of the dims as compact JSON; ops with a sequence number; stream waits.
/// Counted by a program of a few lines over Python's `json`, without this crate.
type Counts = (&'static str, usize, usize, u64, u64, u64, usize, usize, usize, usize, usize);

const CORPUS: [Counts; 20] = [
    ("alexnet", 79, 33, 971_288, 4_653, 5_309, 0, 0, 0, 132, 20),
    ("cpu_only", 0, 0, 0, 0, 0, 4, 1, 76, 0, 0),
    ("h100_bert_small", 60, 12, 9_079, 4_696, 408, 479, 59, 9_957, 0, 0),
    ("h100_qwen15_0.5b", 1_465, 24, 19_069_436, 73_911, 104_451, 4_186, 113, 99_472, 0, 0),
    (
        "integer_us_control",
        8_568,
        453,
        24_553_308,
        431_694,
        201_235,
        36_468,
        1_476,
        635_292,
        11_556,
        0,
    ),
    ("mi210_gpu_only", 1_124, 132, 69_976_748, 0, 0, 0, 0, 0, 0, 0),
    ("mi250_toy_training", 14, 8, 4_640, 0, 0, 64, 40, 1_125, 18, 0),
    ("mi300_bert_small", 120, 20, 3_617_878, 0, 0, 519, 60, 10_721, 0, 0),
    ("mi300_qwen15_0.5b", 2_106, 46, 51_470_746, 0, 0, 4_619, 117, 107_483, 0, 0),
    ("mi300_resnet_training", 4_476, 162, 737_346_300, 0, 0, 7_605, 271, 160_620, 1_344, 0),
    ("mi300_sglang_decode_capture", 548, 16, 11_749_383, 0, 0, 3_556, 81, 84_803, 2, 0),
    ("mi300_sglang_decode_formal", 22, 12, 152, 0, 0, 61, 37, 1_043, 0, 0),
    ("mi300_sglang_prefilldecode", 1_054, 43, 336_763_268, 0, 0, 3_786, 126, 101_432, 0, 0),
    ("mi300_vllm_decode_capture", 435, 22, 1_848_856, 0, 0, 3_793, 121, 77_685, 48, 0),
    ("mi300_vllm_decode_formal", 8, 8, 230_020, 0, 0, 100, 47, 1_801, 0, 0),
    ("mi300_xdit_sd35", 16_084, 203, 3_004_389_002, 0, 0, 27_338, 577, 704_923, 0, 0),
    ("nccl", 2_700, 162, 10_759_719, 158_706, 129_855, 0, 0, 0, 2_286, 0),
    ("normalization_layers", 336, 49, 1_771_716, 0, 0, 900, 98, 17_277, 210, 0),
    ("ns_resolution_absolute_us", 4_350, 173, 13_881_960, 188_245, 173_705, 0, 0, 0, 3_810, 0),
    ("torch_compile_triton", 24, 12, 9_973_760, 0, 0, 37, 19, 1_133, 0, 0),
];

#[test]
fn real_traces_say_what_another_program_reads() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    for expected in CORPUS {
        let file = std::fs::read(folder.join(format!("{}.json.gz", expected.0))).unwrap();
        let decoded = decode(&file).unwrap();
        let found = details_in(&decoded, &file, &[1 << 18]);
        assert_eq!((found.n_unread, found.n_unkept), (0, 0), "{}", expected.0);
        let launches = || found.launches.iter().map(|(_, config)| &found.configs[*config as usize]);
        let grid = launches().filter_map(|it| it.grid);
        let grid = grid.map(|grid| grid.into_iter().map(u64::from).product::<u64>()).sum();
        let registers = launches().filter_map(|it| it.registers).map(u64::from).sum();
        let occupancy = launches().filter_map(|it| it.occupancy_milli_pct).map(u64::from);
        let occupancy = occupancy.sum::<u64>() / 1000;
        let dims = found.ops.iter().map(|(_, at)| found.inputs[*at as usize].dims);
        let dims = dims.map(|dims| found.texts.get(dims).len()).sum();
        let counts = (
            expected.0,
            found.launches.len(),
            found.configs.len(),
            grid,
            registers,
            occupancy,
            found.ops.len(),
            found.inputs.len(),
            dims,
            found.sequences.len(),
            found.waits.len(),
        );
        assert_eq!(counts, expected);
    }
}
