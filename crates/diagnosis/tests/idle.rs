//! What a device waits for, on tiny traces: each sentence is said of what it is about, and not of the same trace without it.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::{Confidence, Diagnosis, Finding, WallPart};
use fixture::{Fixture, kernel, slice};

const MS: i64 = 1_000_000;
const LOADER: &str = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
const REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32";

const EXCHANGE: &str = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

/// The findings of a rule.
fn found<'a>(diagnosis: &'a Diagnosis, rule: &str) -> Vec<&'a Finding> {
    diagnosis.findings.iter().filter(|finding| finding.rule.id() == rule).collect()
}

#[test]
fn idle_time_in_an_annotation_of_the_program_names_it() {
    let of = |annotation: Option<(&str, i64)>, by_graph: bool| {
        let mut fixture = Fixture::default();
        if by_graph {
            let call = slice("cuda_runtime", "cudaGraphLaunch").at(-10_000, 2_000).on(1, 1);
            fixture.push(call.link(99));
            fixture.push(kernel("gemm").at(-6_000, 1_000).link(99));
        }
        for n in 0..3_i64 {
            let at = n * 10 * MS;
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 2 * MS);
            if let Some((name, tid)) = annotation {
                let one = slice("user_annotation", name).at(at + 2 * MS + 4_000, 7 * MS);
                fixture.push(one.on(1, tid));
            }
        }
        diagnosis(fixture)
    };
    let with = |annotation| of(annotation, false);
    // Beside graphs, too: none can hold work that launches nothing.
    let graphs = of(Some(("evaluate", 1)), true);
    assert_eq!(graphs.actions.first().map(|one| one.remedy), Some("beside-graphs"));
    let own = with(Some(("evaluate", 1)));
    let headline = own.headline.as_deref().unwrap();
    let expected = "The GPU is idle in evaluate, in which no op or call is recorded, for 72";
    assert!(headline.starts_with(expected), "{headline}");
    let [finding] = found(&own, "M3")[..] else { panic!("{:?}", own.findings) };
    assert_eq!((finding.verdict, finding.bound_ns), ("in_annotations", Some(14 * MS)));
    let action = &own.actions[0];
    assert_eq!((action.remedy, &*action.place), ("earlier-launches", "evaluate"));
    // A pass of the model cannot be moved out of the step.
    let pass = with(Some(("## backward ##", 1)));
    // What is not named is told, so that the parts add up.
    let mut fixture = Fixture::default();
    for n in 0..3_i64 {
        let at = n * 100 * MS;
        launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 2 * MS);
        let parts = [("decode", 3, 70), ("resize", 73, 20), ("open", 93, 5)];
        for (name, from, dur) in parts {
            fixture.push(slice("user_annotation", name).at(at + from * MS, dur * MS).on(1, 1));
        }
    }
    launch(&mut fixture, "gemm", 9, 300 * MS, 300 * MS + 4_000, 2 * MS);
    let headline = diagnosis(fixture).headline.unwrap();
    let parts = "is idle in decode (210 ms), resize (60.0 ms) and others (15.0 ms), in which";
    assert!(headline.contains(parts), "{headline}");
    assert_eq!(found(&pass, "M3")[0].verdict, "in_annotations");
    assert!(pass.actions.is_empty(), "{:?}", pass.actions);
    // A step says nothing, nor does a thread that launches nothing.
    for annotation in [None, Some(("ProfilerStep#1", 1)), Some(("writer", 2))] {
        let other = with(annotation);
        assert!(found(&other, "M3").is_empty(), "{annotation:?}: {:?}", other.findings);
        assert!(other.headline.is_none_or(|text| !text.contains("writer")));
    }
}

#[test]
fn a_stall_within_one_launch_is_one_part_whatever_its_length() {
    // A kernel, then an op of `op_us`, then the launch of a graph that takes `call_us`.
    let with = |op_us: i64, call_us: i64| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, 0, 4_000, 100_000);
        fixture.push(slice("cpu_op", "prepare_inputs").at(20_000, op_us * 1_000).on(1, 1));
        let called = 20_000 + op_us * 1_000;
        let call = slice("cuda_runtime", "cudaGraphLaunch").at(called, call_us * 1_000);
        fixture.push(call.on(1, 1).link(2));
        fixture.push(kernel("gemm").at(called + call_us * 1_000 + 5_000, 500_000).link(2));
        let found = diagnosis(fixture);
        let part = |of| found.wall.iter().find(|row| row.part == of).map_or(0, |row| row.total_ns);
        (part(WallPart::Launch) / 1_000, part(WallPart::HostCompute) / 1_000)
    };
    assert_eq!(with(30, 980), (926, 0), "a gap below 1 ms");
    assert_eq!(with(130, 980), (980, 46), "a gap of 1.03 ms");
    // What comes before a short call is work of the CPU.
    assert_eq!(with(3_000, 90), (0, 3_006));
}

#[test]
fn a_little_idle_time_in_an_annotation_of_the_program_is_no_longer_unexplained() {
    // Kernels of 30 ms, and after each 2 ms in an annotation.
    let with = |name: &str| {
        let mut fixture = Fixture::default();
        let mut at = 0;
        for n in 0..3_i64 {
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 30 * MS);
            at += 32 * MS;
            let one = slice("user_annotation", name).at(at - 2 * MS + 10_000, 2 * MS - 20_000);
            fixture.push(one.on(1, 1));
        }
        diagnosis(fixture)
    };
    let own = with("mask_to_rle");
    let [finding] = found(&own, "M3")[..] else { panic!("{:?}", own.findings) };
    assert!(finding.observation.contains(" in mask_to_rle: an annotation"), "{finding:?}");
    assert_eq!((finding.bound_ns, own.actions.len()), (None, 0));
    assert!(found(&with("Optimizer.step#SGD.step"), "M3").is_empty(), "PyTorch's own");
}

/// Five iterations of 100 ms: the loader for `loads_ms` of each, while an all-reduce waits for another rank for 40 ms.
fn loads(loads_ms: i64) -> Diagnosis {
    let mut fixture = Fixture::default();
    for n in 0..5_i64 {
        let at = n * 100 * MS;
        launch(&mut fixture, "gemm", 2 * n + 1, at, at + 4_000, 20 * MS);
        launch(&mut fixture, REDUCE, 2 * n + 2, at + 4_000, at + 20 * MS + 4_000, 40 * MS);
        let loader = slice("user_annotation", LOADER).at(at + 20_000, loads_ms * MS);
        fixture.push(loader.on(1, 1));
    }
    // The last loader holds up what comes next, too.
    launch(&mut fixture, "gemm", 99, 500 * MS, 500 * MS + 4_000, 20 * MS);
    diagnosis(fixture)
}

#[test]
fn a_loader_on_the_critical_path_has_the_communication_that_runs_meanwhile() {
    let slow = loads(99);
    let [finding] = found(&slow, "M9")[..] else { panic!("{:?}", slow.findings) };
    let expected = "The data loader is on the critical path for 400 ms (76.9% of its span): the GPU is idle for 200 ms of it, and only \
                    communicates for 200 ms.";
    assert_eq!(finding.observation, expected);
    assert!(
        slow.headline.as_deref().unwrap().starts_with("The data loader is on the critical path")
    );
    let remedies: Vec<&str> = slow.actions.iter().map(|action| action.remedy).collect();
    assert_eq!(remedies.first(), Some(&"loader-workers"));
    assert!(!remedies.contains(&"fewer-launches"), "{remedies:?}");
}

#[test]
fn a_loader_that_ends_while_the_device_computes_is_hidden() {
    let quick = loads(15);
    assert!(found(&quick, "M9").is_empty(), "{:?}", quick.findings);
}

#[test]
fn a_loader_that_a_collective_outlasts_is_hidden() {
    // The loader ends at 30 ms, and the next product is launched at 31 ms. A collective runs until `until` ms.
    let with = |until: i64| {
        let mut fixture = Fixture::default();
        for n in 0..5_i64 {
            let at = n * 100 * MS;
            launch(&mut fixture, "gemm", 3 * n + 1, at, at + 4_000, 10 * MS);
            launch(
                &mut fixture,
                REDUCE,
                3 * n + 2,
                at + 4_000,
                at + 10 * MS + 4_000,
                (until - 10) * MS,
            );
            fixture.push(slice("user_annotation", LOADER).at(at + 20_000, 30 * MS).on(1, 1));
            let start = at + until.max(31) * MS + 8_000;
            launch(&mut fixture, "gemm", 3 * n + 3, at + 31 * MS, start, 99 * MS + at - start);
        }
        diagnosis(fixture)
    };
    let holds = with(28);
    let [finding] = found(&holds, "M9")[..] else { panic!("{:?}", holds.findings) };
    assert!(finding.observation.contains("on the critical path"), "{finding:?}");
    let outlasts = with(60);
    assert!(found(&outlasts, "M9").is_empty(), "{:?}", outlasts.findings);
}

#[test]
fn idle_time_of_which_the_calls_were_lost_is_blamed_on_nothing() {
    let with = |lost: bool| {
        let mut fixture = Fixture::default();
        for n in 0..60_i64 {
            let at = n * MS;
            fixture.push(slice("cpu_op", "aten::mm").at(at, 900_000).on(1, 1));
            if !(20..40).contains(&n) {
                launch(&mut fixture, "gemm", n + 1, at + 1_000, at + 4_000, 950_000);
            } else if !lost {
                let call = slice("cuda_runtime", "cudaStreamIsCapturing").at(at + 1_000, 1_000);
                fixture.push(call.on(1, 1));
            }
        }
        diagnosis(fixture)
    };
    let window = |of: &Diagnosis| of.wall.iter().map(|row| row.total_ns).sum::<i64>();
    let idle = |of: &Diagnosis| -> i64 {
        of.wall.iter().filter(|row| row.part.is_idle()).map(|row| row.total_ns).sum()
    };
    let (lost, recorded) = (with(true), with(false));
    assert_eq!(found(&lost, "lost")[0].verdict, "no_calls");
    assert!(found(&recorded, "lost").is_empty());
    // Nor is it a gap in which the device has nothing to do.
    assert!(found(&lost, "M4").is_empty(), "{:?}", lost.findings);
    assert_eq!(found(&recorded, "M4").len(), 1);
    let [busy] = found(&lost, "M1")[..] else { panic!("{:?}", lost.findings) };
    assert!(!busy.observation.contains(", and "), "{}", busy.observation);
    // From the last call before to the first one after: 20 ms and what is between two launches, without the end of the kernel before.
    let left_out_ns = window(&recorded) - window(&lost);
    assert_eq!(left_out_ns, idle(&recorded) - idle(&lost));
    assert!((20 * MS..21 * MS).contains(&left_out_ns), "{left_out_ns}");
}

#[test]
fn idle_time_within_one_call_names_it() {
    let with = |call_ns: i64| {
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let at = n * 10 * MS;
            let call = slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).link(n + 1);
            let call_ns = if n == 5 { call_ns } else { 20_000 };
            fixture.push(call.at(at, call_ns));
            for node in 0..8_i64 {
                let start = at + call_ns + 10_000 + node * 500_000;
                fixture.push(kernel("gemm").at(start, 490_000).link(n + 1));
            }
        }
        diagnosis(fixture)
    };
    let slow = with(5 * MS);
    let findings = found(&slow, "M3");
    let one = findings.iter().find(|one| one.verdict == "in_one_call").unwrap();
    let expected =
        "The GPU is idle for 5.00 ms (5.3% of its span) within one call of cudaGraphLaunch.";
    assert_eq!((one.observation.as_str(), one.meaning.as_str()), (expected, ""));
    assert!(found(&with(20_000), "M3").iter().all(|one| one.verdict != "in_one_call"));
}

#[test]
fn without_a_loader_what_it_hides_behind_comes_earlier() {
    // In each step the loader runs for 6 ms, in 2 of which the device still works.
    let of = |waits_at: Option<i64>| {
        let mut fixture = Fixture::default();
        for n in 0..4_i64 {
            let at = n * 10 * MS;
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 3 * MS);
            fixture.push(slice("user_annotation", LOADER).at(at + MS, 6 * MS).on(1, 1));
            if let Some(waits_at) = waits_at {
                let wait = slice("cuda_runtime", "cudaStreamSynchronize").on(1, 1);
                fixture.push(wait.at(at + waits_at, 10_000));
            }
        }
        launch(&mut fixture, "gemm", 5, 40 * MS, 40 * MS + 4_000, 3 * MS);
        diagnosis(fixture)
    };
    // A wait right behind the loader: the work is done by then either way.
    let waits = of(Some(7 * MS + 1_000));
    let [finding] = found(&waits, "M9")[..] else { panic!("{:?}", waits.findings) };
    let bound_ns = finding.bound_ns.unwrap();
    assert!((16 * MS..16 * MS + 100_000).contains(&bound_ns), "{finding:?}");
    // One at the end of the step: 2.9 ms of idle time may go away.
    let waits = of(Some(10 * MS - 100_000));
    let [finding] = found(&waits, "M9")[..] else { panic!("{:?}", waits.findings) };
    assert_eq!(finding.bound_ns, Some(24 * MS), "{finding:?}");
    // Two loaders before one wait share the idle time before it: 3 ms, of which each hides 2 ms.
    let mut fixture = Fixture::default();
    for n in 0..4_i64 {
        let at = n * 20 * MS;
        launch(&mut fixture, "gemm", 2 * n + 1, at, at + 4_000, 3 * MS);
        fixture.push(slice("user_annotation", LOADER).at(at + MS, 6 * MS).on(1, 1));
        launch(&mut fixture, "gemm", 2 * n + 2, at + 7 * MS, at + 7 * MS + 4_000, 3 * MS);
        fixture.push(slice("user_annotation", LOADER).at(at + 8 * MS, 6 * MS).on(1, 1));
        let wait = slice("cuda_runtime", "cudaStreamSynchronize").on(1, 1);
        fixture.push(wait.at(at + 17 * MS, 10_000));
    }
    launch(&mut fixture, "gemm", 99, 80 * MS, 80 * MS + 4_000, 3 * MS);
    let shared = diagnosis(fixture);
    let [finding] = found(&shared, "M9")[..] else { panic!("{:?}", shared.findings) };
    let bound_ns = finding.bound_ns.unwrap();
    assert!((44 * MS..44 * MS + 200_000).contains(&bound_ns), "{finding:?}");
    let diagnosis = of(None);
    let [finding] = found(&diagnosis, "M9")[..] else { panic!("{:?}", diagnosis.findings) };
    assert_eq!(finding.bound_ns, Some(24 * MS), "{finding:?}");
    assert!(finding.meaning.starts_with("It runs for 24.0 ms in all"), "{finding:?}");
}

#[test]
fn a_loader_that_holds_nothing_up_is_not_said_to_communicate() {
    // It runs on a thread that launches nothing.
    let mut fixture = Fixture::default();
    for n in 0..4_i64 {
        launch(&mut fixture, "gemm", n + 1, n * 10 * MS, n * 10 * MS + 4_000, 3 * MS);
        fixture.push(slice("user_annotation", LOADER).at(n * 10 * MS + 4 * MS, 5 * MS).on(1, 2));
    }
    let diagnosis = diagnosis(fixture);
    let [finding] = found(&diagnosis, "M9")[..] else { panic!("{:?}", diagnosis.findings) };
    let waits = "The GPU waits for the data loader for ";
    assert!(finding.observation.starts_with(waits), "{finding:?}");
}

#[test]
fn work_that_was_queued_at_the_begin_tells_that_the_cpu_was_ahead() {
    // The CPU works for 9 ms between two launches of 2 ms each; before them, kernels run whose launches are not in the file.
    let with = |queued_ns: i64, launches: i64| {
        let mut fixture = Fixture::default();
        for n in 0..4 {
            let before = kernel("gemm").at(n * queued_ns / 4, queued_ns / 4);
            fixture.push(before.link(1_000 + n % launches));
        }
        for n in 0..6_i64 {
            let at = queued_ns + n * 11 * MS;
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 2 * MS);
            let work = slice("cpu_op", "prepare").at(at + 10_000, 10 * MS);
            fixture.push(work.on(1, 1));
        }
        diagnosis(fixture).headline.unwrap()
    };
    let ahead = with(20 * MS, 4);
    let why = " 20.0 ms of GPU work was queued when the recording began: the CPU was ahead then, and may stay ahead without the profiler.";
    assert!(ahead.contains(why), "{ahead}");
    assert!(!with(MS, 4).contains("was queued"), "a little may be left at any begin");
    assert!(!with(20 * MS, 1).contains("was queued"), "the nodes of one graph");
}

#[test]
fn what_the_cpu_does_outside_the_work_of_the_gpu_is_named() {
    let with = |ns: i64| {
        let mut fixture = Fixture::default();
        for n in 0..3_i64 {
            let at = n * 300_000;
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 20_000);
        }
        fixture.push(slice("cpu_op", "aten::expand").at(MS, ns).on(1, 1));
        // (The profiler notes how long it recorded.)
        fixture.push(slice("Trace", "PyTorch Profiler (0)").in_process("Spans").at(0, 60 * MS));
        diagnosis(fixture).headline.unwrap()
    };
    let long = with(9 * MS);
    let spans = "The GPU's work spans 620 µs of the 10.0 ms recorded; for 9.00 ms of the rest the CPU is in aten::expand.";
    assert!(long.ends_with(spans), "{long}");
    assert!(!with(10_000).contains("recorded"), "nothing is outside but the profiler's own slice");
}

#[test]
fn an_all_to_all_is_hidden_by_other_inputs_alone() {
    let with = |op: &str| {
        let mut fixture = Fixture::default();
        for n in 0..4_i64 {
            let (called, at) = (n * 20_000, n * 4 * MS + 4_000);
            let add = "void at::native::vectorized_elementwise_kernel<4>(int)";
            launch(&mut fixture, add, 2 * n + 1, called, at, 3 * MS);
            fixture.push(slice("cpu_op", op).at(called + 5_000, 10_000).on(1, 1));
            launch(&mut fixture, EXCHANGE, 2 * n + 2, called + 7_000, at + 3 * MS, MS);
        }
        diagnosis(fixture).actions.into_iter().find(|one| one.rule == "M10").map(|one| one.remedy)
    };
    assert_eq!(with("c10d::alltoall_base_"), Some("split-exchange"));
    assert_eq!(with("c10d::allreduce_"), Some("earlier-communication"));
}

#[test]
fn gradients_that_are_sent_as_soon_as_they_can_be_are_not_to_be_sent_earlier() {
    // Four times a product and an all-reduce of 1 ms behind it, as by ranges of DistributedDataParallel or without.
    let of = |kernel: &str, range: Option<&str>, in_pass: bool| {
        let mut fixture = Fixture::default();
        for n in 0..4_i64 {
            let (called, at) = (n * 20_000, n * 4 * MS + 4_000);
            let add = "void at::native::vectorized_elementwise_kernel<4>(int)";
            launch(&mut fixture, add, 2 * n + 1, called, at, 3 * MS);
            fixture.push(slice("cpu_op", "c10d::allreduce_").at(called + 5_000, 10_000).on(1, 1));
            launch(&mut fixture, kernel, 2 * n + 2, called + 7_000, at + 3 * MS, MS);
            if let Some(range) = range {
                let from = if in_pass { called + 4_000 } else { called };
                fixture.push(slice("user_annotation", range).at(from, 5_000).on(1, 1));
            }
        }
        diagnosis(fixture).actions.into_iter().find(|one| one.rule == "M10").map(|one| one.remedy)
    };
    let earlier = Some("earlier-communication");
    let ddp = "torch.distributed.ddp.reducer::copy_bucket_to_grad";
    let reduce = "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWork)";
    assert_eq!(of(reduce, None, false), earlier);
    assert_eq!(of(reduce, Some(ddp), false), None);
    assert_eq!(
        of(reduce, Some("DistributedDataParallel.forward"), true),
        earlier,
        "a pass launches them"
    );
    let with = |range, in_pass| of(EXCHANGE, range, in_pass);
    assert_eq!(with(None, false), earlier);
    // (These are no all-reduces by their kernels: of some other program beside DistributedDataParallel.)
    assert_eq!(with(Some(ddp), false), earlier);
}

#[test]
fn a_little_exposed_communication_is_said() {
    let with = |exposed_ns: i64| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, 0, 4_000, 10 * MS);
        launch(&mut fixture, REDUCE, 2, 3_000, 4_000 + 10 * MS, exposed_ns);
        launch(&mut fixture, "gemm", 3, 6_000, 4_000 + 10 * MS + exposed_ns, 10 * MS);
        diagnosis(fixture)
    };
    let little = with(500_000);
    let [finding] = found(&little, "M10")[..] else { panic!("{:?}", little.findings) };
    assert!(finding.observation.contains("for 500 µs (2.4% of its span)"), "{finding:?}");
    assert_eq!(finding.bound_ns, Some(500_000));
    assert!(found(&with(100_000), "M10").is_empty());
}

/// Sixty graph launches of 20 kernels of 10 us, with so long a pause from one to the next; the calls return `returned_us` after the first
/// kernel starts.
fn graphs(pause_us: i64, returned_us: i64) -> Diagnosis {
    let mut fixture = Fixture::default();
    let mut at = 0;
    for n in 0..60 {
        let call = slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).link(n + 1);
        fixture.push(call.at(at, (5 + returned_us) * 1_000));
        at += 5_000;
        for _ in 0..20 {
            fixture.push(kernel("triton_poi_fused_add_0").at(at, 10_000).link(n + 1));
            at += (10 + pause_us) * 1_000;
        }
    }
    diagnosis(fixture)
}

#[test]
fn pauses_from_kernel_to_kernel_are_neither_late_launches_nor_held_up() {
    let pauses = graphs(4, 100);
    let [gaps] = found(&pauses, "M4")[..] else { panic!("{:?}", pauses.findings) };
    assert_eq!(gaps.verdict, "queued");
    assert!(gaps.observation.contains("for 4.56 ms it had"), "{}", gaps.observation);
    assert!(gaps.meaning.starts_with("Most of it is pauses between"), "{}", gaps.meaning);
    assert!(pauses.actions.is_empty(), "{:?}", pauses.actions);
    let told = pauses.without_actions();
    assert!(told.contains("pauses between queued kernels: fewer kernels"), "{told}");
    // Without pauses nothing is said of them.
    let none = graphs(0, 100);
    assert!(!none.without_actions().contains("pauses"), "{}", none.without_actions());
}

#[test]
fn how_far_launches_of_unknown_communication_differ_is_told() {
    let with = |longest_us: i64| {
        let mut fixture = Fixture::default();
        for n in 0..40_i64 {
            let at = n * MS;
            launch(&mut fixture, "gemm", 2 * n + 1, at, at + 4_000, 300_000);
            let ns = if n % 2 == 0 { 100_000 } else { longest_us * 1_000 };
            let name = "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(void*)";
            launch(&mut fixture, name, 2 * n + 2, at + 3_000, at + 304_000, ns);
        }
        let diagnosis = diagnosis(fixture);
        let [finding] = found(&diagnosis, "M10")[..] else { panic!("{:?}", diagnosis.findings) };
        (finding.confidence, finding.meaning.clone())
    };
    let (confidence, far) = with(600);
    assert_eq!(confidence, Confidence::Low, "all of it may be waiting");
    assert!(far.contains("40 launches of deep_ep::intranode::combine<__nv_bfloat16, 8, 768>, of any size, take 100 µs to 600 µs (5th and"), "{far}");
    let (_, near) = with(200);
    assert!(near.starts_with("Part of it may be waiting for other ranks: only"), "{near}");
}

#[test]
fn without_sizes_collectives_are_compared_at_the_same_place_of_the_iterations() {
    // Ten times a product and two all-reduces of one kernel, of which one is small; the launches come late.
    let with = |steps: bool| {
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let at = n * 200_000;
            let name = format!("ProfilerStep#{n}");
            if steps {
                fixture.push(slice("user_annotation", &name).at(at, 190_000).on(1, 1));
            }
            launch(&mut fixture, "gemm", 3 * n + 1, at, at + 10_000, 25_000);
            launch(&mut fixture, REDUCE, 3 * n + 2, at + 3_000, at + 35_000, 5_000);
            let dur = if n < 6 { 160_000 } else { 60_000 };
            launch(&mut fixture, REDUCE, 3 * n + 3, at + 6_000, at + 40_000, dur);
        }
        let diagnosis = diagnosis(fixture);
        let own = diagnosis
            .findings
            .iter()
            .filter(|one| one.rule.id() == if steps { "M2" } else { "M3" });
        own.map(|finding| finding.meaning.as_str()).collect::<String>()
    };
    let places = "they take 600 µs more than fast ones of the same kernels at the same place in the iterations";
    assert!(with(true).contains(places), "{}", with(true));
    // Without a place, one that takes longer may be larger: nothing tells that it waits, and launches limit the GPU in its idle time only.
    assert!(!with(false).contains("fast ones"), "{}", with(false));
    assert!(with(false).contains("318 µs end with a launch of gemm"), "{}", with(false));
}

#[test]
fn late_launches_in_short_and_long_gaps_are_one_figure_of_the_first_sentence() {
    // Twenty kernels of 100 us, 300 us apart; then three after ops of 3 ms each.
    let with = |n_ops: i64, copy_ns: i64| {
        let mut fixture = Fixture::default();
        let mut at = 0;
        for n in 0..20 + n_ops {
            if n >= 20 {
                fixture.push(slice("cpu_op", "prepare_inputs").at(at, 3 * MS).on(1, 1));
                at += 3 * MS;
            }
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 100_000);
            at += 400_000;
        }
        if copy_ns > 0 {
            fixture.push(slice("cuda_runtime", "cudaMemcpyAsync").on(1, 1).at(at, 4_000).link(99));
            let copy = slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)");
            fixture.push(copy.at(at + 4_000, copy_ns).link(99));
        }
        diagnosis(fixture).headline.unwrap()
    };
    let said = with(3, 0);
    let all = "The GPU is idle for 81.9% of its span (14.7 ms) because the CPU launches work late.";
    assert!(said.starts_with(all), "{said}");
    assert!(
        with(0, 0).starts_with("The GPU is idle in the gaps between launches"),
        "{}",
        with(0, 0)
    );
    // A copy is longer than either part, and shorter than both.
    let said = with(3, 10 * MS);
    assert!(said.contains("because the CPU launches work late."), "{said}");
    let said = with(3, 20 * MS);
    assert!(said.contains("runs only copies"), "{said}");
}

#[test]
fn idle_time_behind_a_launch_that_has_returned_is_told() {
    // Ten kernels of 1 ms, all launched within the first; a pause before each, on the GPU alone.
    let of = |pause_ns: i64| {
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let launched = n * 20_000;
            launch(&mut fixture, "k", n + 1, launched, MS + n * (MS + pause_ns), MS);
        }
        let found = diagnosis(fixture);
        let mut own = found.findings.into_iter().filter(|one| one.verdict == "held");
        own.next().map(|one| (one.observation, one.meaning))
    };
    let (said, meaning) = of(200_000).unwrap();
    assert!(said.starts_with("The GPU is idle for 1.80 ms (15.3% of"), "{said}");
    assert!(
        said.ends_with("although its next work is launched, in 9 pauses of up to 200 µs."),
        "{said}"
    );
    assert!(meaning.contains("another process on the GPU"), "{meaning}");
    assert_eq!(of(20_000), None, "pauses that every kernel has");
}

#[test]
fn all_reduces_between_the_nodes_of_a_backward_pass_begin_as_soon_as_they_can() {
    // As PyTorch 1.8 records DistributedDataParallel: no range names it. A thread evaluates nodes; another one launches their input.
    let of = |apart_ns: i64, nodes_at: fn(i64) -> i64, thread: i64| {
        let mut fixture = Fixture::default();
        for n in 0..4_i64 {
            let (called, at) = (n * apart_ns, n * 4 * MS + 4_000);
            launch(&mut fixture, "sgemm", 2 * n + 1, called, at, 3 * MS);
            fixture.push(slice("cpu_op", "aten::addmm").at(called, 3_000).on(1, 1));
            let node = slice("cpu_op", "AddmmBackward").at(nodes_at(n), 1_000);
            fixture.push(node.on(1, thread));
            let reduce = "ncclAllReduceRingLLKernel_sum_f32(ncclColl)";
            launch(&mut fixture, reduce, 2 * n + 2, called + 7_000, at + 3 * MS, MS);
        }
        diagnosis(fixture).actions.into_iter().find(|one| one.rule == "M10").map(|one| one.remedy)
    };
    let between = |n| n * 20_000 + 5_000;
    let earlier = Some("earlier-communication");
    assert_eq!(of(20_000, between, 1), None);
    assert_eq!(of(20_000, between, 2), earlier, "the nodes are those of another thread");
    assert_eq!(
        of(20_000, |n| n * 1_000, 1),
        earlier,
        "at the end of the pass, one after the other"
    );
    assert_eq!(of(4 * MS, |n| n * 4 * MS + 5_000, 1), earlier, "one at the end of each pass");
}

#[test]
fn what_the_cpu_does_beside_the_work_already_is_not_to_be_done_beside_it() {
    // Three times 4 ms of work, and an annotation of 9 ms that begins so much after its launch.
    let of = |after_ns: i64, waits: bool| {
        let mut fixture = Fixture::default();
        for n in 0..3_i64 {
            let at = n * 10 * MS;
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 4 * MS);
            let decode = slice("user_annotation", "decode").at(at + after_ns, 9 * MS);
            fixture.push(decode.on(1, 1));
            if waits {
                let wait = slice("cuda_runtime", "cudaStreamSynchronize").on(1, 1);
                fixture.push(wait.at(at + after_ns + 1_000, 4 * MS - after_ns));
            }
        }
        launch(&mut fixture, "gemm", 9, 30 * MS, 30 * MS + 4_000, MS);
        let actions = diagnosis(fixture).actions;
        actions.into_iter().find(|one| one.rule == "M3").map(|one| one.remedy)
    };
    assert_eq!(of(20_000, false), Some("several-inputs"));
    assert_eq!(of(20_000, true), Some("earlier-launches"), "it waits for the work first");
}
