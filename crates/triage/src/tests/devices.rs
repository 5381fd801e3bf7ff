//! Several devices in one file: each is triaged as if it stood alone.

use trace::Trace;

use crate::{KernelKey, Sources, TriageOptions, TriageReport, triage, triage_kept};
use fixture::{Fixture, kernel, slice};

const GEMM: &str = "nvjet_tst_128x64";
const SILU: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)";
const MUL: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)";
const NCCL: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)";

/// Work that takes turns on two devices: stream 7 of each computes, stream 9 communicates. On device 0 the communication
/// stands alone; only device 1 computes beside it in time.
fn trace(devices: &[i64]) -> Trace {
    let mut fixture = Fixture::default();
    for step in 0..20 {
        let at = step * 100_000;
        for device in devices.iter().copied() {
            let late = device * 30_000;
            fixture.push(kernel(GEMM).at(at + late, 20_000).on(device, 7));
            fixture.push(kernel(SILU).at(at + late + 20_000, 3_000).on(device, 7));
            fixture.push(kernel(MUL).at(at + late + 23_000, 3_000).on(device, 7));
            fixture.push(kernel(NCCL).at(at + 30_000, 20_000).on(device, 9));
        }
    }
    fixture.finish()
}

fn all(trace: &Trace) -> TriageReport {
    triage(trace, &TriageOptions::default(), &Sources::default())
}

#[test]
fn each_device_is_triaged_as_if_it_stood_alone() {
    let both = trace(&[0, 1]);
    let report = all(&both);
    assert_eq!(report.devices(), ["0", "1"]);
    for device in ["0", "1"] {
        let mut options = TriageOptions::default();
        options.slices.device = Some(device.to_owned());
        let alone = triage(&both, &options, &Sources::default());
        let of_both = report.clone().on_device(device);
        assert_eq!(alone.stages, of_both.stages);
        assert_eq!(alone.kernels, of_both.kernels);
        assert_eq!(alone.overlap, of_both.overlap);
        assert_eq!(alone.fuse, of_both.fuse);
        let shares: f64 = of_both.kernels.iter().map(|row| row.share_pct).sum();
        assert!((shares - 100.0).abs() < 1e-9, "{shares}");
    }
}

#[test]
fn what_another_device_does_hides_nothing() {
    let report = all(&trace(&[0, 1]));
    let exposed = |device: &str| {
        let of = |row: &&crate::KernelTableRow| row.device == device && row.kernel_name == NCCL;
        let row = report.kernels.iter().find(of).unwrap();
        (row.exposed_ns, row.total_ns)
    };
    assert_eq!(exposed("0"), (400_000, 400_000), "device 1 computes meanwhile, device 0 does not");
    assert_eq!(exposed("1"), (0, 400_000));
}

#[test]
fn what_stands_next_to_it_on_another_device_makes_no_chain() {
    // The two parts of a fuse chain, each always on another device; both streams have the same number.
    let mut fixture = Fixture::default();
    for step in 0..50 {
        let at = step * 10_000;
        fixture.push(kernel(SILU).at(at, 4_000).on(0, 7));
        fixture.push(kernel(MUL).at(at + 4_000, 4_000).on(1, 7));
    }
    assert_eq!(all(&fixture.finish()).fuse_note, None);
    let mut fixture = Fixture::default();
    for step in 0..50 {
        let at = step * 10_000;
        fixture.push(kernel(SILU).at(at, 4_000).on(0, 7));
        fixture.push(kernel(MUL).at(at + 4_000, 4_000).on(0, 7));
    }
    let note = all(&fixture.finish()).fuse_note.unwrap_or_default();
    assert!(note.contains("Unfused activation (K02)"), "on one device it is one: {note}");
}

#[test]
fn one_device_has_no_column_of_devices() {
    let columns = |trace: &Trace| {
        let sections = all(trace).sections(0.0);
        let tables = sections.iter().flat_map(|section| &section.tables);
        tables.map(|table| table.column("device").is_some()).collect::<Vec<_>>()
    };
    assert_eq!(columns(&trace(&[3])), [false; 4]);
    assert_eq!(columns(&trace(&[0, 1])), [true; 4]);
}

#[test]
fn work_without_a_stream_is_the_one_devices_or_its_own() {
    let mut fixture = Fixture::default();
    fixture.push(kernel(GEMM).at(0, 10).on(4, 7));
    fixture.push(kernel("lost").at(20, 10).nowhere());
    assert_eq!(all(&fixture.finish()).devices(), ["4"]);
    let mut fixture = Fixture::default();
    fixture.push(kernel("lost").at(20, 10).nowhere());
    fixture.push(kernel(GEMM).at(0, 10).on(4, 7));
    fixture.push(kernel(GEMM).at(0, 10).on(5, 7));
    let report = all(&fixture.finish());
    assert_eq!(report.devices(), ["4", "5", ""]);
    assert_eq!(report.kernels.len(), 3);
}

#[test]
fn launches_are_those_of_the_device() {
    let trace = trace(&[0, 1]);
    let (_, slices) = triage_kept(&trace, &TriageOptions::default(), &Sources::default());
    let key = KernelKey { stage: "all".into(), device: Some("1".into()), kernel_name: NCCL.into() };
    let found = slices.kernel(&trace, &key, 100).unwrap();
    assert_eq!(found.n, 20);
    assert!(found.instances.iter().all(|row| row.stream == "1:9" && row.exposed_ns == 0));
}

#[test]
fn kernels_of_all_stages_merge_by_name() {
    let mut fixture = Fixture::default();
    let call = || fixture::slice("cuda_runtime", "cudaLaunchKernel").on(1, 1);
    for (link, at, step) in [(1, 100, "step[EXTEND bs=1]"), (2, 1_000, "step[DECODE bs=1]")] {
        fixture.push(fixture::slice("user_annotation", step).on(1, 1).at(at, 500));
        fixture.push(call().at(at + 10, 5).link(link));
        fixture.push(kernel(GEMM).at(at + 50, 30).link(link).on(0, 7));
    }
    let report = all(&fixture.finish());
    assert_eq!(report.kernels.len(), 2, "{:?}", report.stages);
    let table = report.merged_table().unwrap();
    assert_eq!(table.n_rows(), 1);
    let cell = |key: &str| table.cell(0, table.column(key).unwrap()).unwrap().raw();
    assert_eq!(
        (cell("launches"), cell("total_ns"), cell("share_pct")),
        ("2".into(), "60".into(), "100".into())
    );
    assert_eq!(table.column("stage"), None);
    assert_eq!(all(&trace(&[0])).merged_table(), None, "one stage has nothing to merge");
}

/// Processes that launch a product on a device of their own each ms; each loses its calls for some of them.
fn ranks_without_calls(lost: &[std::ops::Range<i64>]) -> TriageReport {
    let mut fixture = Fixture::default();
    for n in 0..40_i64 {
        for (device, lost) in (0..).zip(lost) {
            let (at, pid, id) = (n * 1_000_000, 100 + device, 2 * n + device + 1);
            fixture.push(slice("cpu_op", "aten::mm").at(at, 500_000).on(pid, 1));
            if !lost.contains(&n) {
                let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 100_000, 10_000);
                fixture.push(call.on(pid, 1).link(id));
                fixture.push(kernel(GEMM).at(at + 200_000, 400_000).on(device, 7).link(id));
            }
        }
    }
    all(&fixture.finish())
}

#[test]
fn calls_that_one_rank_lost_are_told_of_it() {
    let report = ranks_without_calls(&[0..0, 10..16]);
    let [lost] = &report.lost_calls[..] else { panic!("{:?}", report.lost_calls) };
    assert_eq!(
        (&lost.devices[..], &lost.times[..]),
        (&["1".to_owned()][..], &[(9_110_000, 16_100_000)][..])
    );
    let first = "No runtime call is recorded for 6.99 ms on the rank of GPU 1, although ops run that launch kernels elsewhere: ";
    assert!(report.takeaways[0].starts_with(first), "{:?}", report.takeaways);
    let report = ranks_without_calls(&[20..26, 10..18]);
    assert_eq!(report.lost_calls.len(), 2);
    let first = "No runtime call is recorded on 2 ranks, for up to 8.99 ms (GPU 1), although";
    assert!(report.takeaways[0].starts_with(first), "{:?}", report.takeaways);
    assert!(ranks_without_calls(&[0..0, 0..0]).lost_calls.is_empty());
}
