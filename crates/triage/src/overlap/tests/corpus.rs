//! The sweep and the table on real traces. The figures come from another program in another language, which looks at
//! every elementary interval and every pair that runs in it; its busy times are those of the truth files.

use catalog::{OverlapClass, Platform};

use crate::attribution::{Linker, attribute};
use crate::overlap::edges::Edges;
use crate::overlap::sweep::sweep;
use crate::overlap::{Overlap, OverlapOptions, Verdict, overlap};
use crate::stages::Stage;
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

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

fn decode(name: &str) -> Option<trace::Trace> {
    let path = testkit::real_trace(name)?;
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

/// The table of a trace whose stages are not told apart.
fn table(name: &str) -> Option<(trace::Trace, Overlap)> {
    let trace = decode(name)?;
    let found = {
        let before = BeforeWindowSlices::of(&trace);
        let platform = timeline::device::platform(&trace);
        let gpu = Gpu::new(&trace, platform, &before, &Options::default());
        let launches = Launches::of(&gpu);
        let places = attribute(&gpu, &launches, &mut Linker::of(&trace, None));
        let wall = wall::Wall::of(&gpu, &launches, wall::Lost::default());
        let options = OverlapOptions { wall: Some(&wall), ..OverlapOptions::default() };
        overlap(&gpu, &launches, &|_| Stage::All, Some(&places), &options)
    };
    Some((trace, found))
}

/// Instances of a name, of these next to an event wait, total, hidden, and the sum over all steps of what independent
/// compute could hide, as the other program has them.
type Known = (&'static str, &'static str, u64, u64, i64, i64, i64);

#[rustfmt::skip]
const ROWS: &[Known] = &[
    ("nccl", "ncclKernel_AllReduce", 15, 3, 46_762_159, 7_685_824, 3 * 10_854_295),
    ("mi300_resnet_training", "ncclDevKernel_Generic", 17, 6, 71_516_523, 16_228_016, 3 * 489_995),
    ("integer_us_control", "ncclKernel_SendRecv", 42, 24, 130_655_000, 48_205_000, 6 * 9_180_334),
    ("integer_us_control", "ncclKernel_AllReduce", 18, 8, 32_880_000, 28_776_000, 6 * 684_000),
];

#[test]
fn rows_of_real_traces() {
    for (name, kernel, n, waited, total_ns, hidden_ns, bound_ns) in ROWS {
        let Some((_, found)) = table(name) else { return };
        let row = found.rows.iter().find(|row| row.kernel_name.starts_with(kernel)).unwrap();
        assert_eq!(
            (row.n_instances, row.total_ns, row.hidden_ns),
            (*n, *total_ns, *hidden_ns),
            "{name}"
        );
        assert_eq!(row.exclusive_ns, total_ns - hidden_ns, "{name}");
        assert_eq!(row.waited_pct, Some(100.0 * *waited as f64 / *n as f64), "{name}");
        // The rest is held up by consumers, or by a GPU that waits for the CPU.
        assert!(row.savings_bound_ns.unwrap() <= *bound_ns, "{row:?}");
        let advised = row.savings_pct.unwrap() >= 0.5 && row.verdict == Verdict::Headroom;
        assert_eq!(row.is_advice(), advised, "{row:?}");
    }
}

#[test]
fn pinned_memory_is_advised_only_where_it_is_worth_it() {
    let Some((_, found)) = table("alexnet") else { return };
    let name = "Memcpy HtoD (Pageable -> Device)";
    let row = found.rows.iter().find(|row| row.kernel_name == name).unwrap();
    // 55.5 ms in a span of 13 s.
    assert_eq!((row.n_instances, row.exclusive_ns, row.priority), (16, 55_503_000, None));
    assert_eq!(row.recommendation, None);
    assert_eq!(row.waited_pct, Some(0.0), "40 waits are recorded, none next to a copy");
}

/// The edges that a few lines of Python find in the arguments of the same file: six of twenty waits. (The other
/// fourteen are for streams that nothing was launched on.)
#[test]
fn event_waits_tie_the_slices_that_really_waited() {
    let Some(path) = testkit::shared("corpus/traces/alexnet.json.gz") else { return };
    let file = std::fs::read(path).unwrap();
    let mut decoder = decode::Decoder::new();
    decoder.push(&file).unwrap();
    let decoded = decoder.finish().unwrap();
    let mut reader = decode::DetailsReader::new(&decoded);
    reader.push(&file);
    let details = reader.finish();
    let trace = &decoded.trace;
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, Platform::Cuda, &before, &Options::default());
    let edges = Edges::of(&gpu, &Launches::of(&gpu), &details).unwrap();
    assert_eq!((details.waits.len(), edges.len()), (20, 6));
    let at = |ts_us: i64| (0..gpu.len()).find(|at| gpu.slice(*at).start_ns == ts_us * 1_000);
    let (producer, consumer) =
        (at(1_695_835_585_860_487).unwrap(), at(1_695_835_585_860_634).unwrap());
    assert_eq!(edges.near(&gpu, producer, 2_000), [consumer as u32]);
    assert_eq!(edges.near(&gpu, consumer, 2_000), [producer as u32]);
    assert!(edges.near(&gpu, consumer, 999).is_empty(), "there is 1 us between the two");
    let report = crate::triage(
        trace,
        &crate::TriageOptions::default(),
        &crate::Sources { details: Some(&details), ..crate::Sources::default() },
    );
    assert!(report.overlap.iter().all(|row| row.waited_pct.is_some()));
}

#[test]
fn on_one_stream_only_copies_and_communication_are_listed() {
    // The rule that this replaces told people to fuse a GEMM and attention of this trace.
    let Some((_, found)) = table("mi300_xdit_sd35") else { return };
    assert!(!found.note.contains("No second stream"), "nothing could move: {}", found.note);
    assert!(found.rows.is_empty(), "neither communication nor copies take 1% of it");
    let Some((_, found)) = table("mi250_toy_training") else { return };
    let rows: Vec<_> =
        found.rows.iter().map(|row| (row.kernel_name.as_str(), row.priority)).collect();
    assert_eq!(
        rows,
        [("Memcpy HtoD (Host -> Device)", None)],
        "its name does not say whether it is pinned"
    );
}
