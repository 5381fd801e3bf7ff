use catalog::Platform;
use serde_json::Value;

use super::cause::{Cause, deal, explain};
use super::gaps::Gaps;
use super::*;
use crate::{Sources, TriageOptions, blocked, triage};
use fixture::{Fixture, kernel, slice};
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::intervals::{both, length};

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

/// On samples of this repository, and on the corpus where it is.
#[test]
fn each_moment_of_idle_time_has_one_cause() {
    let mut n_idle = 0;
    for sample in testkit::trace_samples() {
        let mut decoder = decode::Decoder::new();
        decoder.push(&sample.bytes()).map_err(|reason| reason.to_string()).unwrap();
        let trace = decoder.finish().map_err(|reason| reason.to_string()).unwrap().trace;
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, Platform::Unknown, &before, &Options::default());
        let launches = Launches::of(&gpu);
        let mut host = Host::of(&trace);
        host.add_host_copies(&host_copies(&gpu, &launches));
        let idle = Idle::of(&gpu, &cpu_steps(&trace), None);
        let gaps = Gaps::of(&gpu, &launches, &idle, &host);
        let dealt = deal(&idle, &host, &gaps, &blocked::blocked(&gpu, &launches));
        let mut times: Vec<Interval> = dealt.into_iter().flat_map(|(_, times)| times).collect();
        times.sort_unstable();
        let name = sample.stem();
        assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{name}: {times:?}");
        assert_eq!(length(&times), idle.ns(), "{name}");
        assert_eq!(length(&both(&times, &idle.idle)), idle.ns(), "{name}: only idle time");
        n_idle += u64::from(idle.ns() > 0);
    }
    assert!(n_idle >= 9, "{n_idle} samples with idle time");
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
    let idle = Idle::of(&gpu, &cpu_steps(&trace), None);
    let gaps = Gaps::of(&gpu, &launches, &idle, &host);
    let found =
        explain(&idle, &host, &gaps, deal(&idle, &host, &gaps, &blocked::blocked(&gpu, &launches)))
            .unwrap();
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
        ("user_annotation", "_compile.compile_inner (dynamo_timed)", Cause::SetUp),
        ("python_function", "torch/_dynamo/convert_frame.py(1023): __call__", Cause::SetUp),
        ("python_function", "<frozen importlib._bootstrap>(1349): _find_and_load", Cause::SetUp),
        ("cuda_runtime", "cuModuleLoadData", Cause::SetUp),
        ("cuda_runtime", "cudaLaunchKernel", Cause::SetUp),
        ("cuda_runtime", "cudaFuncGetAttributes", Cause::SetUp),
        ("overhead", "Lazy Function Loading", Cause::SetUp),
        ("cuda_runtime", "cudaMalloc", Cause::Allocation),
        // (Profilers of 2021 and before write annotations as ops.)
        ("Operator", "Optimizer.step#AdamW.step", Cause::Unknown),
        ("cuda_runtime", "cudaGraphLaunch", Cause::Runtime),
        ("overhead", "Activity Buffer Request", Cause::Overhead),
        ("cuda_runtime", "cudaStreamSynchronize", Cause::Sync),
        ("hip_runtime", "hipMemcpyWithStream", Cause::Sync),
        ("cpu_op", "aten::conv2d", Cause::Op),
        ("cpu_op", "Torch-Compiled Region: 0/0", Cause::Compiled),
        ("python_function", "train.py(7): preprocess", Cause::Python),
        ("cuda_runtime", "cudaEventRecord", Cause::Runtime),
    ] {
        // (The launch of the kernel is a call, too.)
        let ns = match cause {
            Cause::Runtime => 80 * MS + 1000,
            Cause::Unknown => 90 * MS - 1000,
            _ => 80 * MS,
        };
        assert_eq!(cause_of(during(raw_category, name)), (cause, ns), "{name}");
    }
    // A range that somebody named explains nothing by itself.
    assert_eq!(cause_of(during("user_annotation", "epoch")), (Cause::Unknown, 90 * MS - 1000));
}

/// Before the first launch in the file, work of an earlier step was queued, whatever the CPU does meanwhile.
#[test]
fn a_gap_before_work_of_an_earlier_step_is_no_late_launch() {
    let mut fixture = Fixture::default();
    fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(0, 90 * MS));
    fixture.push(kernel("k").at(0, MS).link(7));
    fixture.push(kernel("k").at(80 * MS, MS).link(8));
    fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(80 * MS, 5_000).link(9));
    fixture.push(kernel("k").at(81 * MS, MS).link(9));
    assert_eq!(cause_of(fixture), (Cause::Queued, 79 * MS));
}

/// A graph of many nodes with pauses of 2 us, while a thread of the CPU waits for it.
#[test]
fn pauses_between_the_nodes_of_a_graph_are_not_the_cpus() {
    let mut fixture = Fixture::default();
    fixture.push(slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).at(0, 5_000).link(1));
    fixture.push(slice("cuda_runtime", "cudaEventSynchronize").on(1, 1).at(6_000, MS).link(2));
    for node in 0..100_i64 {
        fixture.push(kernel("node").at(4_000 + node * 10_000, 8_000).link(1));
    }
    let (cause, ns) = cause_of(fixture);
    assert_eq!((cause, ns), (Cause::Between, 99 * 2_000));
}

/// Kernels that were all queued before the first ran, with pauses of 20 us.
#[test]
fn what_shortens_pauses_is_what_the_platform_has() {
    let said = |device: &str, call: &str| {
        let mut fixture = Fixture::default();
        fixture.metadata("deviceProperties", device);
        for n in 0..20_i64 {
            let launch = slice("cuda_runtime", call).on(1, 1).at(n * 10 * US, 4 * US);
            fixture.push(launch.link(n + 1));
            fixture.push(kernel("attn_fwd").at(MS + n * 120 * US, 100 * US).link(n + 1));
        }
        takeaways_of(fixture).concat()
    };
    let amd =
        said(r#"[{"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64}]"#, "hipLaunchKernel");
    assert!(amd.contains("only fewer kernels (fusion) or HIP graphs shorten them"), "{amd}");
    let nvidia = said(r#"[{"id": 0, "name": "NVIDIA H100", "warpSize": 32}]"#, "cudaLaunchKernel");
    assert!(nvidia.contains("(fusion) or programmatic dependent launch shorten"), "{nvidia}");
}

fn gaps_of(fixture: Fixture) -> Gaps {
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, Platform::Cuda, &before, &Options::default());
    let idle = Idle::of(&gpu, &[], None);
    Gaps::of(&gpu, &Launches::of(&gpu), &idle, &Host::of(&trace))
}

#[test]
fn pauses_that_rounding_makes_are_told() {
    let rounded = |from_ns: i64, pause_ns: i64| {
        let mut fixture = Fixture::default();
        fixture.push(slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).at(0, 5_000).link(1));
        for node in 0..10_i64 {
            let at = from_ns + node * (8_000 + pause_ns);
            fixture.push(kernel("node").at(at, 8_000).link(1));
        }
        gaps_of(fixture).rounded_ns()
    };
    assert_eq!(rounded(4_000, 1_000), Some(9 * 1_000));
    assert_eq!(rounded(4_500, 1_000), None, "times are finer than a microsecond");
    assert_eq!(rounded(4_000, 2_000), None, "pauses that rounding cannot make");
}

/// The launches of a stream that is far ahead, and one that is not.
#[test]
fn a_pause_after_an_early_launch_is_the_devices_and_after_a_late_one_the_cpus() {
    let early = |launched_ns: i64| {
        let mut fixture = Fixture::default();
        for (link, launched_ns, start_ns) in [(1, 0, 10_000), (2, launched_ns, 1_020_000)] {
            fixture.push(
                slice("cuda_runtime", "cudaLaunchKernel")
                    .on(1, 1)
                    .at(launched_ns, 1_000)
                    .link(link),
            );
            fixture.push(kernel("k").at(start_ns, MS / 20).link(link));
        }
        fixture.push(kernel("other").on(0, 8).at(60_000, 955_000).link(3));
        fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(5_000, 1_000).link(3));
        gaps_of(fixture).all.iter().map(|gap| gap.between().is_some()).collect::<Vec<_>>()
    };
    assert_eq!(early(100_000), [true], "launched 0.9 ms before");
    assert_eq!(early(1_016_000), [false], "launched within the gap");
    assert_eq!(early(1_000_000), [false], "launched just before: its way to the device");
}

#[test]
fn gaps_that_are_as_long_as_the_longest_stand_with_it() {
    // Kernels of 10 ms, 4.5 to 5 ms apart; in each gap but the last the CPU is in one op.
    let mut fixture = Fixture::default();
    let mut at = 0;
    for n in 0..40_i64 {
        let gap = if n % 2 == 0 { 5 * MS } else { 4 * MS + MS / 2 };
        let op = if n < 30 { "aten::sort" } else { "aten::unique" };
        fixture.push(slice("cpu_op", op).on(1, 1).at(at, gap - 2_000));
        fixture.push(
            slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at + gap - 1_000, 500).link(n),
        );
        fixture.push(kernel("sgemm").at(at + gap, 10 * MS).link(n));
        at += gap + 10 * MS;
    }
    let said = takeaways_of(fixture).remove(0);
    let gaps = "39 gaps that are at least half as long as the longest total 185 ms";
    assert!(said.contains(gaps), "{said}");
    assert!(said.contains("Among them: 29 adding up to"), "{said}");
    assert!(said.contains("with the CPU in aten::sort"), "{said}");
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
        "The GPU is idle for 90.0 ms (90.0% of the profiler steps); for 80.0 ms of it the CPU is in the data loader."
    );
    let mut quiet = Fixture::default();
    quiet.push(kernel("sgemm").at(0, 10 * MS));
    quiet.push(kernel("sgemm").at(50 * MS, 10 * MS));
    assert_eq!(
        said(quiet)[0],
        "The GPU is idle for 40.0 ms (66.7% of the GPU span); no op, call or frame is recorded on the CPU for it."
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
    let gap =
        "459 ms (99.6%) starting at 1.00 ms, with work queued and the CPU in hipMemcpyWithStream.";
    assert!(report.takeaways[0].contains(gap), "{:?}", report.takeaways);
    assert!(report.takeaways[0].contains("The busy share is not meaningful here."));
    assert!(
        !report.takeaways.iter().any(|it| it.contains("The CPU limits")),
        "{:?}",
        report.takeaways
    );
}

#[test]
fn a_wait_explains_a_long_gap_up_to_its_end() {
    // The CPU waits for a kernel that ends at 12 ms, until 13 ms, and then runs Python for 40 ms.
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(MS, 1000).link(1));
    fixture.push(kernel("sgemm").at(2 * MS, 10 * MS).link(1));
    fixture.push(cpu("cuda_runtime", "cudaStreamSynchronize").at(3 * MS, 10 * MS));
    fixture.push(cpu("python_function", "train.py(7): preprocess").at(13 * MS, 40 * MS));
    fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(53 * MS, 1000).link(2));
    fixture.push(kernel("sgemm").at(54 * MS, 10 * MS).link(2));
    assert_eq!(cause_of(fixture), (Cause::Python, 40 * MS));
}

/// What is said of a GPU that is idle from 10 ms on, while the CPU frees memory sixteen times, first at `from_ns`.
fn frees_from(from_ns: i64, mut fixture: Fixture) -> String {
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    fixture.push(kernel("sgemm").at(0, 10 * MS));
    for n in 0..16_i64 {
        fixture.push(cpu("cuda_runtime", "cudaFree").at(from_ns + 7 * n * MS, 7 * MS));
    }
    fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(130 * MS, 1000).link(1));
    fixture.push(kernel("sgemm").at(130 * MS + 2000, 10 * MS).link(1));
    takeaways_of(fixture).remove(0)
}

#[test]
fn an_allocator_that_gives_memory_back_is_told() {
    let mut fixture = Fixture::default();
    fixture.push(slice("cuda_runtime", "cudaMalloc").on(1, 1).at(11 * MS, MS));
    let first = frees_from(12 * MS, fixture);
    assert!(first.contains("with 16 calls that return memory to the driver"), "{first}");
    assert!(!first.contains("first run"), "{first}");
}

#[test]
fn a_call_that_gives_memory_back_and_began_before_the_gpu_was_idle_counts() {
    let first = frees_from(8 * MS, Fixture::default());
    assert!(first.contains("with 16 calls that return memory to the driver"), "{first}");
}

/// Kernels of 2 us that the CPU launches 100 us apart, with overhead of the profiler around those from 5 to 15 ms.
fn launched_in_overhead(every_us: i64) -> (Cause, i64) {
    let mut fixture = Fixture::default();
    for nth in 0..20 * MS / (every_us * 1000) {
        let (at, link) = (nth * every_us * 1000, nth + 1);
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1);
        fixture.push(launch.at(at, 5_000).link(link));
        fixture.push(kernel("k").at(at + 6_000, 2_000).link(link));
    }
    fixture.push(slice("overhead", "Activity Buffer Request").on(9, 0).at(5 * MS, 10 * MS));
    cause_of(fixture)
}

#[test]
fn overhead_of_the_profiler_in_which_the_cpu_launches_holds_nothing_up() {
    assert_eq!(launched_in_overhead(100).0, Cause::Paced);
    let (cause, ns) = launched_in_overhead(5_000);
    assert_eq!(cause, Cause::Overhead, "one every 5 ms is no pace");
    assert!((9 * MS..10 * MS).contains(&ns), "{ns}");
}

#[test]
fn a_gap_is_split_at_the_end_of_the_launch() {
    // The CPU runs Python until 40 ms and launches; the kernel begins at 70 ms.
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(MS, 1000).link(1));
    fixture.push(kernel("sgemm").at(2 * MS, 10 * MS).link(1));
    fixture.push(cpu("python_function", "train.py(7): preprocess").at(12 * MS, 28 * MS));
    fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(40 * MS - 1000, 1000).link(2));
    fixture.push(kernel("sgemm").at(70 * MS, 10 * MS).link(2));
    let first = takeaways_of(fixture).remove(0);
    assert!(first.contains("for 30.0 ms of it the next work is already queued"), "{first}");
    let gap = "58.0 ms (74.4%) starting at 11.0 ms, with the CPU in train.py:7 preprocess; for the last 30.0 ms of it work is queued.";
    assert!(first.contains(gap), "{first}");
}

#[test]
fn what_comes_before_the_first_gpu_work_is_told() {
    let mut fixture = Fixture::default();
    let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    fixture.push(slice("cpu_op", "aten::empty").on(1, 1).at(0, 1000));
    fixture.push(slice("user_annotation", loader).on(1, 1).at(100 * MS, 780 * MS));
    fixture.push(kernel("sgemm").at(900 * MS, 10 * MS));
    let first = takeaways_of(fixture).remove(0);
    assert_eq!(
        first,
        "The first GPU work begins 900 ms after the first op, call or frame, 98.9% of the time until the last, with the CPU in \
         enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__. No share below counts that time."
    );
}

#[test]
fn a_step_ends_with_the_work_of_the_program() {
    // The profiler works for 60 ms at the end of the last step, and waits for the GPU.
    let mut fixture = during("cpu_op", "aten::conv2d");
    fixture.push(slice("user_annotation", "ProfilerStep#4").on(1, 1).at(100 * MS, 100 * MS));
    fixture.push(slice("cpu_op", "aten::add").on(1, 1).at(120 * MS, 20 * MS));
    fixture.push(slice("cuda_runtime", "cudaDeviceSynchronize").on(1, 1).at(150 * MS, 50 * MS));
    let trace = fixture.finish();
    assert_eq!(cpu_steps(&trace), [(0, 200 * MS)]);
    assert_eq!(until_last_work(&trace, cpu_steps(&trace)), [(0, 140 * MS)]);
}

const US: i64 = 1_000;

fn takeaways_of(fixture: Fixture) -> Vec<String> {
    triage(&fixture.finish(), &TriageOptions::default(), &Sources::default()).takeaways
}

/// 40 kernels of 50 µs; after each the CPU waits in `.item()`, and 50 µs later it launches the next.
fn waited_for() -> Fixture {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    for n in 0..40_i64 {
        let begun = n * 100 * US;
        fixture.push(cpu("cpu_op", "aten::add").at(begun, 8 * US));
        let launch = cpu("cuda_runtime", "cudaLaunchKernel").link(n + 1);
        fixture.push(launch.at(begun + US, 4 * US));
        fixture.push(kernel("add").at(begun + 6 * US, 50 * US).link(n + 1));
        fixture.push(cpu("cpu_op", "aten::item").at(begun + 10 * US, 50 * US));
        fixture.push(cpu("cuda_runtime", "cudaStreamSynchronize").at(begun + 12 * US, 47 * US));
    }
    fixture
}

#[test]
fn calls_that_wait_for_the_gpu_are_named_and_graphs_are_not_advised() {
    let said = takeaways_of(waited_for());
    assert!(said[0].contains("in or after calls in which the CPU waits for the GPU"), "{said:?}");
    let named = "The CPU waits for the GPU in 40 calls of cudaStreamSynchronize in aten::item for 1.88 ms in total.";
    assert!(said[0].contains(named), "{said:?}");
    assert!(!said.iter().any(|text| text.contains("graphs") || text.contains("The CPU limits")));
}

#[test]
fn a_first_run_is_told_and_its_launches_are_no_limit() {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    for n in 0..40_i64 {
        // The first three launches load code, and the first convolution sets up its library.
        let (call_ns, op_ns) = match n {
            0 => (20 * MS, 60 * MS),
            1 | 2 => (10 * MS, 11 * MS),
            _ => (4 * US, 300 * US),
        };
        let begun = n * 100 * MS;
        fixture.push(cpu("cpu_op", "aten::conv2d").at(begun, op_ns));
        let launched = begun + op_ns - call_ns - US;
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").link(n + 1).at(launched, call_ns));
        let name = if n < 3 { format!("conv{n}") } else { "conv".to_owned() };
        fixture.push(kernel(&name).at(begun + op_ns, 5 * US).link(n + 1));
    }
    // (What nobody waits for is not part of it.)
    let mut quick = Fixture::default();
    for n in 0..40_i64 {
        let (call_ns, begun) =
            if n < 4 { (5 * MS, n * 6 * MS) } else { (4 * US, 24 * MS + n * 90 * US) };
        quick.push(cpu("cpu_op", "aten::conv2d").at(begun, call_ns + 2 * US));
        quick.push(cpu("cuda_runtime", "cudaLaunchKernel").link(n + 1).at(begun + US, call_ns));
        let name = if n < 4 { format!("conv{n}") } else { "conv".to_owned() };
        quick.push(kernel(&name).at(begun + call_ns + 4 * US, 5 * US).link(n + 1));
    }
    let said = takeaways_of(quick);
    assert!(said[0].contains("as in a first run"), "{said:?}");
    assert!(said[0].contains("warm-up"), "{said:?}");
    assert!(!said.iter().any(|text| text.contains("graphs") || text.contains("The CPU limits")));
    // Where it is a small part of the idle time it is not the cause.
    let said = takeaways_of(fixture);
    assert!(!said[0].contains("first run"), "{said:?}");
}

#[test]
fn every_pause_is_listed_with_the_innermost_range_around_it() {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    fixture.push(cpu("user_annotation", "epoch").at(0, 200 * MS));
    for (n, begun, name) in [(1, 0, "load"), (2, 50 * MS, "decode"), (3, 130 * MS, "evaluate")] {
        fixture.push(cpu("user_annotation", name).at(begun + US, 40 * MS));
        let launched = begun + 45 * MS;
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").link(n).at(launched, 4 * US));
        fixture.push(kernel("k").at(launched + 5 * US, MS).link(n));
    }
    let said = takeaways_of(fixture);
    let pauses = "Gaps above 10% of the GPU span: 49.0 ms (37.4%) starting at 46.0 ms, with the CPU in decode for 40.0 ms of that; 79.0 \
                  ms (60.3%) starting at 96.0 ms, with the CPU in evaluate for 40.0 ms of that.";
    assert!(said[0].contains(pauses), "{said:?}");
}

#[test]
fn a_gap_that_is_little_of_the_idle_time_is_not_named() {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    fixture.push(cpu("user_annotation", "model").at(0, 100 * MS));
    for n in 0..40_i64 {
        let begun = n * 2 * MS;
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").link(n + 1).at(begun, 4 * US));
        fixture.push(kernel("k").at(begun + 5 * US, 500 * US).link(n + 1));
    }
    let said = takeaways_of(fixture);
    assert!(!said[0].contains("longest") && !said[0].contains("model"), "{said:?}");
}

#[test]
fn queued_work_that_a_graph_launch_ends_is_told() {
    let mut fixture = Fixture::default();
    let cpu = |name, link| slice("cuda_runtime", name).on(1, 1).link(link);
    fixture.push(cpu("cudaLaunchKernel", 1).at(0, US));
    fixture.push(kernel("sgemm").at(2 * US, MS).link(1));
    fixture.push(cpu("cudaGraphLaunch", 2).at(3 * US, US));
    fixture.push(kernel("sgemm").at(100 * MS, MS).link(2));
    let said = takeaways_of(fixture);
    assert!(
        said[0].contains("All of it ends with the first kernel of a graph launch."),
        "{said:?}"
    );
}

/// The CPU launches all of its steps before the first kernel starts: the GPU's window is its span, and it is busy.
#[test]
fn steps_that_end_before_the_work_they_launch_are_no_window() {
    let mut fixture = Fixture::default();
    for step in 0..3 {
        let name = format!("ProfilerStep#{step}");
        fixture.push(slice("user_annotation", &name).at(step * 100, 90).on(1, 1));
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(step * 100 + 10, 5).on(1, 1);
        fixture.push(call.link(step + 1));
        fixture.push(kernel("gemm").at(1_000 + step * 1_000, 1_000).link(step + 1));
    }
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, Platform::Cuda, &before, &Options::default());
    let idle = Idle::of(&gpu, &cpu_steps(&trace), None);
    assert_eq!((idle.of_steps, idle.window_ns, idle.ns()), (false, 3_000, 0));
}

#[test]
fn idle_time_that_lies_in_a_small_part_is_told() {
    // 100 kernels, one every 100 µs; before some of them the GPU is idle for 60 µs.
    let said = |idle: std::ops::Range<i64>| {
        let mut fixture = Fixture::default();
        for n in 0..100_i64 {
            let pause = if idle.contains(&n) { 60 * US } else { 0 };
            let at = n * 100 * US + pause;
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(n + 1);
            fixture.push(launch.at(at - 8 * US, 4 * US));
            fixture.push(kernel("k").at(at, 100 * US - pause).link(n + 1));
        }
        takeaways_of(fixture).concat()
    };
    // The first event is the launch of the first kernel, 8 µs before it.
    for (idle, from) in [(1..26, "108 µs"), (40..65, "4.01 ms"), (75..100, "7.51 ms")] {
        let told = format!(" 1.14 ms of the idle time lies within 1.86 ms, starting at {from}.");
        let text = said(idle);
        assert!(text.contains(&told), "{text}");
    }
    let all = said(1..100);
    assert!(all.contains("is idle") && !all.contains("of the idle time lies"), "{all}");
}

#[test]
fn a_wait_that_the_gpu_works_through_is_not_told() {
    // 60 kernels of 300 µs, each launched 100 µs after the one before has ended; then 40 that are launched ahead, and a wait for them.
    let said = |late_ns: i64| {
        let mut fixture = Fixture::default();
        let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
        let (mut ends_ns, mut called_ns) = (0, 0);
        for n in 0..101_i64 {
            // (The last one follows the wait.)
            let is_late = n < 60 || n == 100;
            called_ns = if is_late { ends_ns + 100 * US } else { called_ns + 10 * US };
            let starts_ns = ends_ns.max(called_ns + 10 * US);
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").link(n + 1).at(called_ns, 5 * US));
            fixture.push(kernel("k").at(starts_ns, 300 * US).link(n + 1));
            ends_ns = starts_ns + 300 * US;
            if n == 99 {
                let (from_ns, to_ns) = (called_ns + 10 * US, ends_ns + late_ns);
                fixture.push(
                    cpu("cuda_runtime", "cudaStreamSynchronize").at(from_ns, to_ns - from_ns),
                );
                ends_ns = ends_ns.max(to_ns);
            }
        }
        takeaways_of(fixture).concat()
    };
    let through = said(-20 * US);
    assert!(through.contains("passes before the end of a late launch"), "{through}");
    assert!(!through.contains("The CPU waits"), "{through}");
    // The GPU is idle for a part of it.
    let costs = said(2 * MS);
    assert!(
        costs.contains("The CPU waits for the GPU in 1 call of cudaStreamSynchronize"),
        "{costs}"
    );
}

#[test]
fn one_long_launch_is_named_where_it_is_more_than_the_short_gaps() {
    let with = |n_short: i64| {
        let mut fixture = Fixture::default();
        let mut at = 0;
        for n in 0..n_short {
            let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(n + 1);
            fixture.push(call.at(at, 2_000));
            fixture.push(kernel("sgemm").at(at + 3_000, 200_000).link(n + 1));
            at += 500_000;
        }
        let call = slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).link(1_000);
        fixture.push(call.at(at, 9 * MS));
        fixture.push(kernel("sgemm").at(at + 9 * MS + 2_000, 20 * MS).link(1_000));
        takeaways_of(fixture).remove(0)
    };
    let one = "for 9.00 ms of it the CPU is in one call of cudaGraphLaunch.";
    assert!(with(4).contains(one), "{}", with(4));
    assert!(!with(100).contains("one call of"), "{}", with(100));
}
