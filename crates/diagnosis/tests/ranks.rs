//! Several ranks in one file.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use diagnosis::{Facts, WallPart};
use fixture::{Fixture, Slice, kernel, slice};
use host::HostIndex;
use trace::{Collective, Details, Trace};
use triage::{Sources, TriageOptions, triage};

/// Two ranks in one file that call three collectives of all. The second one launches its products later each time, because its
/// thread is busy. Whether the first one launches its next ones when its all-reduce is done, or no earlier than it does for a reason of its own.
fn two_ranks(waits: bool) -> (Fixture, Details) {
    several_ranks(&[(0, false), (400_000, false)], waits)
}

/// The same of ranks that launch their products so late each time, in ns, or all of them ahead.
fn several_ranks(ranks: &[(i64, bool)], waits: bool) -> (Fixture, Details) {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    let (name, kind) =
        (details.texts.intern("allreduce"), details.texts.intern("Float;0;[0, 1];[];[];"));
    let group_size = ranks.len() as i64;
    let all = Collective { name, kind, in_elements: 8, out_elements: 8, group_size };
    details.collectives.push(all);
    let (mut row, mut id) = (0_u32, 1_i64);
    let mut push = |fixture: &mut Fixture, slice: Slice<'_>| {
        fixture.push(slice);
        row += 1;
        row - 1
    };
    for step in 0..3 {
        for (rank, (late, ahead)) in (0..).zip(ranks.iter().copied()) {
            let at = step * 1_000_000;
            let on = |name| slice("cuda_runtime", name).on(70 + rank, 1);
            let launch = if ahead { step * 2_000 } else { at + late };
            let next = if ahead { launch + 1_000 } else { launch + 10_000 };
            push(&mut fixture, on("cudaLaunchKernel").at(launch, 1_000).link(id));
            push(&mut fixture, kernel("gemm").on(rank, 7).at(at + late + 10_000, 100_000).link(id));
            push(&mut fixture, on("cudaLaunchKernel").at(next, 1_000).link(id + 1));
            let ring = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
            let start = at + late + 110_000;
            let ring = kernel(ring).on(rank, 9).at(start, at + 600_000 - start).link(id + 1);
            let row = push(&mut fixture, ring);
            details.collective_of.push((row, 0));
            // (The first rank waits in a call while the second one works.)
            if rank == 0 && waits {
                push(&mut fixture, on("cudaStreamSynchronize").at(at + 20_000, 590_000));
            }
            id += 2;
        }
    }
    (fixture, details)
}

fn diagnosed(trace: &Trace, details: &Details) -> diagnosis::Diagnosis {
    let triage_of = |part: &Trace| {
        let sources = Sources { details: Some(details), ..Sources::default() };
        triage(part, &TriageOptions::default(), &sources)
    };
    let index = HostIndex::of(trace);
    let report = host::host(&index, details);
    let triaged = triage_of(trace);
    diagnosis::diagnose_ranks(&Facts::of(&index, details, &report, &triaged), &triage_of)
}

#[test]
fn each_rank_of_a_file_is_told_of_by_its_own_threads_and_the_late_one_is_named() {
    let (fixture, details) = two_ranks(true);
    let found = diagnosed(&fixture.finish(), &details);
    // Only device 0 stands still after a call of its own thread.
    let waits = |device: &str| {
        let mut rows = found.wall.iter().filter(|row| row.device == device);
        rows.find(|row| row.part == WallPart::HostWaits).map_or(0, |row| row.total_ns)
    };
    assert!(waits("0") > 0, "{:?}", found.wall);
    assert_eq!(waits("1"), 0);
    assert_eq!(
        found.headline.as_deref().and_then(|text| text.split_once(". ")).map(|(first, _)| first),
        Some(
            "The other GPU waits for GPU 1, the last to join 3 of 3 collectives: GPU 0 for 1.20 ms (46.3% of its wall time)"
        )
    );
    let late = found.findings.iter().find(|one| one.rule.id() == "late_rank").expect("it is late");
    assert_eq!((late.device.as_deref(), late.bound_ns), (Some("1"), Some(1_200_000)));
    let exposed: Vec<(&str, &str, Option<i64>)> = found
        .findings
        .iter()
        .filter(|one| one.rule.id() == "M10")
        .filter_map(|one| Some((one.device.as_deref()?, one.verdict, one.bound_ns)))
        .collect();
    // Device 0 communicates alone for 490 us a step, 400 of it until device 1 joins.
    // (A wait for the GPU counts for all threads of a file: without it the launches for device 1 might come sooner, too. Its own allow 90 us.)
    assert_eq!(exposed, [("0", "exposed", Some(270_000)), ("1", "exposed", Some(190_000))]);
}

#[test]
fn a_late_rank_costs_only_what_the_launches_of_the_others_let_go_away() {
    let (fixture, details) = two_ranks(false);
    let found = diagnosed(&fixture.finish(), &details);
    let headline = found.headline.unwrap_or_default();
    assert!(headline.starts_with("GPU 1 is idle in the gaps between launches"), "{headline}");
    let costs = "GPU 1 is the last to join 3 of 3 collectives, which costs at most 500 µs (22.8% of the wall time of GPU 1): GPU 0 waits \
                 for it for 1.20 ms, but its own launches come no earlier.";
    assert!(headline.ends_with(costs), "{headline}");
    let late = found.findings.iter().find(|one| one.rule.id() == "late_rank").expect("it is late");
    assert_eq!((late.device.as_deref(), late.bound_ns), (Some("1"), Some(500_000)));
    let meaning = "Most of their waiting costs nothing: their own launches come no earlier. It runs as many kernels as they do.";
    assert_eq!(late.meaning, meaning, "the other one has such gaps beside its all-reduces");
}

#[test]
fn launches_are_said_to_limit_those_that_they_limit() {
    let headline = |ranks: &[(i64, bool)]| {
        let (fixture, details) = several_ranks(ranks, false);
        diagnosed(&fixture.finish(), &details).headline.unwrap_or_default()
    };
    let costs = |why: &str| {
        format!(
            " GPU 3 is the last to join 3 of 3 collectives, which costs at most 467 µs (21.3% of the wall time of GPU 3): {why} come no \
             earlier."
        )
    };
    let (late, second, second_ahead) = ((400_000, false), (33_000, false), (33_000, true));
    // GPU 0 waits longest and would save all of it.
    let said = headline(&[(0, true), second, second, late]);
    let others = costs("GPU 0 waits for it for 1.20 ms, but the launches of GPUs 1, 2");
    assert!(said.ends_with(&others), "{said}");
    // It launches as late itself, as all of them do, or it alone does.
    let said = headline(&[(0, false), second, second, late]);
    let all = costs("the other GPUs wait for it for up to 1.20 ms, but their own launches");
    assert!(said.ends_with(&all), "{said}");
    let said = headline(&[(0, false), second_ahead, second, late]);
    let own = costs("GPU 0 waits for it for 1.20 ms, but its own launches");
    assert!(said.ends_with(&own), "{said}");
    // Launches limit none of them.
    let said = headline(&[(0, true), second_ahead, second_ahead, late]);
    let first = "The other GPUs wait for GPU 3, the last to join 3 of 3 collectives: GPU 0 for 1.20 ms (46.3% of its wall time).";
    assert!(said.starts_with(first), "{said}");
}

#[test]
fn calls_that_a_rank_lost_are_said_of_that_rank() {
    let mut fixture = Fixture::default();
    for n in 0..40_i64 {
        for device in [0, 1] {
            let (at, pid, id) = (n * 1_000_000, 70 + device, 2 * n + device + 1);
            fixture.push(slice("cpu_op", "aten::mm").at(at, 500_000).on(pid, 1));
            if device == 0 || !(10..16).contains(&n) {
                let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 100_000, 10_000);
                fixture.push(call.on(pid, 1).link(id));
                fixture.push(kernel("gemm").at(at + 200_000, 400_000).on(device, 7).link(id));
            }
        }
    }
    let (trace, details) = (fixture.finish(), Details::default());
    let triage_of = |part: &Trace| triage(part, &TriageOptions::default(), &Sources::default());
    let index = HostIndex::of(&trace);
    let report = host::host(&index, &details);
    let triaged = triage_of(&trace);
    let facts = Facts::of(&index, &details, &report, &triaged);
    let said = |of: diagnosis::Diagnosis| -> Vec<String> {
        let own = of.findings.into_iter().filter(|one| one.verdict == "no_calls");
        own.map(|one| one.observation).collect()
    };
    let ops = "although ops run that launch kernels elsewhere.";
    let each = said(diagnosis::diagnose_ranks(&facts, &triage_of));
    assert_eq!(each, [format!("Device 1: No runtime call is recorded for 6.99 ms, {ops}")]);
    let whole = said(diagnosis::diagnose(&facts));
    let rank = "No runtime call is recorded for 6.99 ms on the rank of GPU 1";
    assert_eq!(whole, [format!("{rank}, {ops}")]);
}
