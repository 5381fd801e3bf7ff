//! The sweep over real traces. The figures come from another program in another language, which looks at
//! every elementary interval and every pair that runs in it; its busy times are those of the truth files.

use catalog::{OverlapClass, Platform};

use super::sweep::sweep;
use crate::Options;
use crate::before_window::BeforeWindowSlices;
use crate::gpu::Gpu;

/// What the other program found. Its "compute" is one plain test on the name, to be the same on both sides.
#[derive(Debug, PartialEq)]
struct Sums {
    n: usize,
    total_ns: i64,
    hidden_ns: i64,
    exclusive_ns: i64,
    hidden_by_compute_ns: i64,
    busy_ns: i64,
    overlapped_ns: i64,
    /// `sum((i + 1) * hidden_ns[i]) % 1_000_000_007`: the same sum on other slices does not pass.
    hidden_check: i64,
    hidden_by_compute_check: i64,
}

type Row = (&'static str, usize, i64, i64, i64, i64, i64, i64, i64, i64);

#[rustfmt::skip]
const FOUND: &[Row] = &[
    ("alexnet", 98, 66_203_000, 124_000, 66_079_000, 0, 66_141_000, 62_000, 5_838_000, 0),
    ("cpu_only", 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ("h100_bert_small", 61, 309_437, 0, 309_437, 0, 309_437, 0, 0, 0),
    ("h100_qwen15_0.5b", 1_707, 45_647_300, 0, 45_647_300, 0, 45_647_300, 0, 0, 0),
    ("integer_us_control", 9_450, 501_567_000, 216_997_000, 284_570_000, 25_327_000, 388_587_000, 104_017_000, 60_786_384, 371_202_090),
    ("mi210_gpu_only", 562, 5_343_422, 0, 5_343_422, 0, 5_343_422, 0, 0, 0),
    ("mi250_toy_training", 16, 149_042, 0, 149_042, 0, 149_042, 0, 0, 0),
    ("mi300_bert_small", 61, 390_748, 0, 390_748, 0, 390_748, 0, 0, 0),
    ("mi300_qwen15_0.5b", 1_517, 43_062_802, 0, 43_062_802, 0, 43_062_802, 0, 0, 0),
    ("mi300_resnet_training", 3_653, 100_230_072, 32_456_032, 67_774_040, 4_195_728, 84_002_056, 16_228_016, 345_674_495, 457_943_965),
    ("mi300_sglang_decode_capture", 2, 11_015, 0, 11_015, 0, 11_015, 0, 0, 0),
    ("mi300_sglang_decode_formal", 558, 9_778_614, 11_376, 9_767_238, 5_688, 9_772_926, 5_688, 1_131_912, 568_800),
    ("mi300_sglang_prefilldecode", 534, 492_811_563, 9_372, 492_802_191, 4_686, 492_806_877, 4_686, 454_542, 229_614),
    ("mi300_vllm_decode_capture", 10, 28_830, 0, 28_830, 0, 28_830, 0, 0, 0),
    ("mi300_vllm_decode_formal", 434, 10_717_708, 0, 10_717_708, 0, 10_717_708, 0, 0, 0),
    ("mi300_xdit_sd35", 8_066, 712_489_971, 0, 712_489_971, 0, 712_489_744, 0, 0, 0),
    ("nccl", 3_774, 165_185_838, 15_371_648, 149_814_190, 1_959_366, 157_500_014, 7_685_824, 418_376_675, 54_073_887),
    ("normalization_layers", 173, 1_018_632, 0, 1_018_632, 0, 1_018_632, 0, 0, 0),
    ("ns_resolution_absolute_us", 6_095, 472_454_441, 0, 472_454_441, 0, 472_454_441, 0, 0, 0),
    ("torch_compile_triton", 12, 12_549_021, 0, 12_549_021, 0, 12_549_021, 0, 0, 0),
];

pub(super) fn decode(name: &str) -> Option<trace::Trace> {
    let path = testkit::shared(&format!("corpus/traces/{name}.json.gz"))?;
    let mut decoder = decode::Decoder::new();
    decoder.push(&std::fs::read(path).unwrap()).unwrap();
    Some(decoder.finish().unwrap().trace)
}

#[test]
fn the_sweep_equals_the_reference_on_real_traces() {
    for (name, n, total, hidden, exclusive, by_compute, busy, overlapped, check, compute_check) in
        FOUND
    {
        let Some(trace) = decode(name) else { return };
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, Platform::Unknown, &before, &Options::default());
        let found = sweep(&gpu, |work| {
            let name = gpu.trace.strings.get(gpu.works[work].name);
            let computes = name.to_ascii_lowercase().contains("gemm") || name.contains("Cijk");
            if computes { OverlapClass::Compute } else { OverlapClass::Other }
        });
        let check_of = |ns: &[i64]| {
            let weighted = ns.iter().zip(1_i128..).map(|(ns, at)| i128::from(*ns) * at);
            (weighted.sum::<i128>() % 1_000_000_007) as i64
        };
        let sums = Sums {
            n: gpu.len(),
            total_ns: (0..gpu.len()).map(|at| gpu.slice(at).dur_ns).sum(),
            hidden_ns: found.hidden_ns.iter().sum(),
            exclusive_ns: found.exclusive_ns.iter().sum(),
            hidden_by_compute_ns: found.hidden_by_compute_ns.iter().sum(),
            busy_ns: found.devices.iter().map(|device| device.busy_ns).sum(),
            overlapped_ns: found.devices.iter().map(|device| device.overlapped_ns).sum(),
            hidden_check: check_of(&found.hidden_ns),
            hidden_by_compute_check: check_of(&found.hidden_by_compute_ns),
        };
        let expected = Sums {
            n: *n,
            total_ns: *total,
            hidden_ns: *hidden,
            exclusive_ns: *exclusive,
            hidden_by_compute_ns: *by_compute,
            busy_ns: *busy,
            overlapped_ns: *overlapped,
            hidden_check: *check,
            hidden_by_compute_check: *compute_check,
        };
        assert_eq!(sums, expected, "{name}");
    }
}
