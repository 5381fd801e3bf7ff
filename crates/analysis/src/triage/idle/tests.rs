use catalog::Platform;
use serde_json::Value;

use super::cause::{Cause, explain};
use super::intervals::{both, length};
use super::*;
use crate::Options;
use crate::before_window::BeforeWindowSlices;
use crate::fixture::{Fixture, kernel, slice};
use crate::triage::{Sources, TriageOptions, blocked, triage};

const MS: i64 = 1_000_000;

fn decode(path: &std::path::Path) -> Trace {
    let mut decoder = decode::Decoder::new();
    decoder.push(&std::fs::read(path).unwrap()).map_err(|reason| reason.to_string()).unwrap();
    decoder.finish().map_err(|reason| reason.to_string()).unwrap().trace
}

/// From the first start to the last end of ops, frames, calls and annotations.
fn host_range(trace: &Trace) -> Interval {
    let kinds = trace.by_raw_category(kind);
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    each_row(trace, |row| {
        let of = *kinds.of(trace, row);
        let host = matches!(of, Kind::Op | Kind::Python | Kind::Runtime | Kind::Annotation);
        if host && trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS) {
            first = first.min(trace.ts_ns(row));
            last = last.max(trace.end_ns(row));
        }
    });
    (first, last)
}

/// Every figure of idle cover, against another program in another language.
#[test]
fn idle_cover_equals_the_reference() {
    const COVERS: [(&str, Cover); 11] = [
        ("sync", Cover::Sync),
        ("blocking_memcpy", Cover::BlockingCopy),
        ("memcpy", Cover::Copy),
        ("launch", Cover::Launch),
        ("malloc_free", Cover::Allocation),
        ("module_load", Cover::ModuleLoad),
        ("pageable_or_dtoh_memcpy_call", Cover::HostCopy),
        ("dataloader_annotation", Cover::DataLoader),
        ("overhead", Cover::Overhead),
        ("cpu_op", Cover::Op),
        ("python", Cover::Python),
    ];
    let Some(corpus) = testkit::shared("corpus") else { return };
    let mut n = 0;
    for folder in ["traces", "training"] {
        let mut files: Vec<_> = std::fs::read_dir(corpus.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".json.gz"))
            .collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap().to_string_lossy().replace(".json.gz", "");
            let truth = corpus.join(format!("truth/{name}.cpu.truth.json"));
            let Ok(truth) = std::fs::read_to_string(truth) else { continue };
            let truth: Value = serde_json::from_str(&truth).unwrap();
            let devices = truth["verdicts"]["devices"].as_object().unwrap();
            let Some((_, of)) = devices.iter().next().filter(|_| devices.len() == 1) else {
                continue;
            };
            let trace = decode(&file);
            let before = BeforeWindowSlices::of(&trace);
            let gpu = Gpu::new(&trace, Platform::Unknown, &before, &Options::default());
            let mut host = Host::of(&trace);
            host.add_host_copies(&host_copies(&gpu, &Launches::of(&gpu)));
            let of = &of["idle"];
            let window: Vec<Interval> = match of["window"].as_str() {
                Some("cpu_steps") => cpu_steps(&trace),
                _ => vec![host_range(&trace)],
            };
            let idle = Idle::within(&gpu, &window);
            assert_eq!(Some(idle.window_ns), of["window_ns"].as_i64(), "{name}: window");
            assert_eq!(Some(idle.ns()), of["idle_ns"].as_i64(), "{name}: idle");
            let runtime = length(&both(&idle.idle, host.cover(Cover::Runtime)));
            assert_eq!(Some(runtime), of["cover_ns"]["runtime_any"].as_i64(), "{name}: runtime");
            for (key, cover) in COVERS {
                let ns = length(&both(&idle.idle, host.cover(cover)));
                assert_eq!(Some(ns), of["cover_ns"][key].as_i64(), "{name}: {key}");
            }
            n += 1;
        }
    }
    assert!(n >= 20, "{n} traces");
}

/// A step of 100 ms: the GPU works for its last 10 ms, and for the rest this slice runs on the CPU.
fn during(raw_category: &str, name: &str) -> Fixture {
    let mut fixture = Fixture::default();
    fixture.push(slice("user_annotation", "ProfilerStep#3").on(1, 1).at(0, 100 * MS));
    fixture.push(slice(raw_category, name).on(1, 1).at(5 * MS, 80 * MS));
    fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(89 * MS, 1000).link(1));
    fixture.push(kernel("sgemm").at(90 * MS, 10 * MS).link(1));
    fixture
}

fn cause_of(fixture: Fixture) -> (Cause, i64) {
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, Platform::Cuda, &before, &Options::default());
    let launches = Launches::of(&gpu);
    let mut host = Host::of(&trace);
    host.add_host_copies(&host_copies(&gpu, &launches));
    let idle = Idle::of(&gpu, &cpu_steps(&trace));
    let found = explain(&idle, &host, &blocked::blocked(&gpu, &launches)).unwrap();
    (found.cause, found.ns())
}

#[test]
fn each_kind_of_slice_is_a_cause() {
    for (raw_category, name, cause) in [
        (
            "user_annotation",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            Cause::DataLoader,
        ),
        (
            "cpu_op",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            Cause::DataLoader,
        ),
        ("cuda_runtime", "cudaMalloc", Cause::Allocation),
        ("cuda_runtime", "cuModuleLoadData", Cause::Loading),
        ("cuda_runtime", "cudaLaunchKernel", Cause::Loading),
        ("overhead", "Lazy Function Loading", Cause::Overhead),
        ("cuda_runtime", "cudaStreamSynchronize", Cause::Sync),
        ("hip_runtime", "hipMemcpyWithStream", Cause::Sync),
        ("cpu_op", "aten::conv2d", Cause::Op),
        ("python_function", "train.py(7): preprocess", Cause::Python),
        ("cuda_runtime", "cudaEventRecord", Cause::Runtime),
    ] {
        // (The launch of the kernel is a call, too.)
        let ns = if cause == Cause::Runtime { 80 * MS + 1000 } else { 80 * MS };
        assert_eq!(cause_of(during(raw_category, name)), (cause, ns), "{name}");
    }
    // A range that somebody named explains nothing by itself.
    assert_eq!(cause_of(during("user_annotation", "epoch")), (Cause::Unknown, 90 * MS - 1000));
}

#[test]
fn the_first_sentence_names_the_largest_cause() {
    let said = |fixture: Fixture| {
        triage(&fixture.finish(), &TriageOptions::default(), &Sources::default()).takeaways
    };
    let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    let first = said(during("user_annotation", loader)).remove(0);
    assert_eq!(
        first,
        "The GPU is idle for 90.0 ms (90.0% of the profiler steps); for 80.0 ms of it the CPU is in the data loader. The \
         longest such pause is 80.0 ms in enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__. Load in worker \
         processes: num_workers above 0 of the DataLoader (it is 0 here)."
    );
    let workers = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    let first = said(during("user_annotation", workers)).remove(0);
    assert!(!first.contains("num_workers"), "it has workers: {first}");
    let mut quiet = Fixture::default();
    quiet.push(kernel("sgemm").at(0, 10 * MS));
    quiet.push(kernel("sgemm").at(50 * MS, 10 * MS));
    assert_eq!(
        said(quiet)[0],
        "The GPU is idle for 40.0 ms (66.7% of the GPU span); no CPU activity is recorded for it."
    );
    let mut busy = Fixture::default();
    busy.push(kernel("sgemm").at(0, 10 * MS));
    assert_eq!(said(busy)[0], "All GPU time goes to GEMM.");
}

#[test]
fn a_pause_with_work_queued_names_the_call_that_the_cpu_is_in() {
    let mut fixture = Fixture::default();
    let call = |name, link| slice("hip_runtime", name).on(1, 1).link(link);
    fixture.push(call("hipLaunchKernel", 1).at(0, 1000));
    fixture.push(kernel("sgemm").at(2000, MS).link(1));
    fixture.push(call("hipLaunchKernel", 2).at(3000, 1000));
    fixture.push(call("hipMemcpyWithStream", 3).at(5000, 463 * MS));
    fixture.push(kernel("sgemm").at(460 * MS, MS).link(2));
    let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
    assert!(
        report.takeaways[0].starts_with("The GPU is idle for 459 ms"),
        "{:?}",
        report.takeaways
    );
    let call = "During the longest pause the CPU is in hipMemcpyWithStream for 463 ms.";
    assert!(report.takeaways[0].contains(call), "{:?}", report.takeaways);
    assert!(report.takeaways[0].contains("The busy share is not meaningful here."));
    assert!(
        !report.takeaways.iter().any(|it| it.contains("The CPU limits")),
        "{:?}",
        report.takeaways
    );
}
