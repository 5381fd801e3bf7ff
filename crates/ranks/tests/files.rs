//! Ranks of one run, each in a file of its own.

use fixture::{Fixture, kernel, slice};
use host::HostIndex;
use ranks::{Compared, RankCalls, Runs};
use trace::{Collective, Details, Trace};

/// One rank of a run in a file of its own: a product of 100 us, then a collective until 600 us.
fn one_rank(start: i64, base: &str) -> (Trace, Details) {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    let (name, kind) =
        (details.texts.intern("allreduce"), details.texts.intern("Float;0;[0, 1];[];[];"));
    details.collectives.push(Collective {
        name,
        kind,
        in_elements: 8,
        out_elements: 8,
        group_size: 2,
    });
    fixture.push(kernel("gemm").at(start - 100_000, 100_000));
    let ring = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    fixture.push(kernel(ring).on(0, 9).at(start, 600_000 - start));
    details.collective_of.push((1, 0));
    fixture.metadata("baseTimeNanoseconds", base);
    (fixture.finish(), details)
}

#[test]
fn ranks_in_files_of_their_own_are_compared_on_the_clock_of_the_machine() {
    let section = |bases: [&str; 2]| {
        let of = |(start, base): (i64, &str), rank| {
            let (trace, details) = one_rank(start, base);
            let index = HostIndex::of(&trace);
            RankCalls::of(&index, &details, rank, "")
        };
        let [first, second] = bases;
        let ranks = [of((100_000, first), 0), of((500_000, second), 1)];
        Runs::of(&ranks[..]).largest().expect("they are of one run").section()
    };
    let same = section(["1700000000000000000", "1700000000000000000"]);
    assert_eq!(
        same.intro,
        ["The other rank waits for rank 1, the last to join 1 of 1 collective: 400 µs."]
    );
    // A clock that is a second apart shows nothing.
    let apart = section(["1700000000000000000", "1700000001000000000"]);
    assert!(apart.intro[0].starts_with("No collective could be matched"), "{:?}", apart.intro);
}

#[test]
fn what_a_function_calls_on_another_thread_is_one_wait_with_it() {
    let of = |rank: i64| {
        let mut fixture = Fixture::default();
        let call = "sglang/srt/utils/common.py(1316): broadcast_pyobj";
        fixture.push(slice("python_function", call).on(1, 1).at(1_000, 9_000));
        fixture.push(slice("user_annotation", "gloo:broadcast").on(1, 2).at(2_000, 3_000));
        fixture.push(slice("user_annotation", "gloo:broadcast").on(1, 2).at(6_000, 4_000));
        fixture.push(slice("user_annotation", "gloo:barrier").on(1, 2).at(20_000, 4_000));
        fixture.push(kernel("gemm").at(1_000, 1_000));
        let trace = fixture.finish();
        RankCalls::of(&HostIndex::of(&trace), &Details::default(), rank, "")
    };
    let ranks = [of(0), of(1)];
    let section = Runs::of(&ranks[..]).largest().expect("they are of one run").section();
    let rows = section.tables.iter().find(|table| table.id == "cpu_waits").map(|t| t.n_rows());
    assert_eq!(rows, Some(4), "broadcast_pyobj and the barrier, each on two ranks");
}

#[test]
fn the_json_of_a_run_fits_its_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/ranks.schema.json");
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("it is there")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let of = |start: i64, rank: i64| {
        let (trace, details) = one_rank(start, "0");
        RankCalls::of(&HostIndex::of(&trace), &details, rank, &format!("tp{rank}.json"))
    };
    let runs = Runs::of(vec![of(100_000, 0), of(500_000, 1)]);
    let json = serde_json::to_value(runs.largest().expect("one run").compared()).expect("JSON");
    let errors: Vec<String> =
        validator.iter_errors(&json).map(|one| format!("{}: {one}", one.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let rank = |at: usize| &json["ranks"][at];
    // 100 us of product, then the collective until 600 us.
    assert_eq!(
        (&rank(0)["busy_ns"], &rank(0)["communication_ns"]),
        (&600_000.into(), &500_000.into())
    );
    assert_eq!((&rank(0)["exposed_ns"], &rank(0)["most"]), (&400_000.into(), &"1".into()));
    assert_eq!((&rank(1)["n_last"], &rank(1)["behind_ns"]), (&1.into(), &400_000.into()));
    let group = &json["groups"][0];
    assert_eq!((&group["group"], &group["axis"]), (&"0, 1".into(), &"tensor-parallel".into()));
    assert_eq!((&group["last"], &group["most_wait_pct"]), (&"1".into(), &(400.0 / 6.0).into()));
}

/// A rank of three that calls five all-to-alls and three all-reduces, which end together, each 10 ms after the one before; rank 2 joins
/// the all-to-alls `late` us after rank 0, and rank 1 the all-reduces by 30 us. `call` is around the launch of each all-to-all. All is
/// launched ahead, or each kernel where it can start. Its recording begins and its first op begins so many us late; an annotation before the
/// first call begins at `mark` us.
fn exchanges(
    rank: i64,
    (call, ahead): (&str, bool),
    late: i64,
    (recording, op): (Option<i64>, i64),
    mark: Option<i64>,
) -> RankCalls {
    let us = 1_000;
    let mut fixture = Fixture::default();
    if let Some(from) = recording {
        let span = slice("Trace", "PyTorch Profiler (0)").in_process("Spans");
        fixture.push(span.at(from * us, (100_000 - from) * us));
    }
    fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(op * us, 5 * us));
    if let Some(at) = mark {
        fixture.push(slice("user_annotation", "forward").on(1, 1).at(at * us, 5 * us));
    }
    for nth in 1..=8 {
        let (end, is_exchange) = (nth * 10_000, nth <= 5);
        let wait = match (is_exchange, rank) {
            (true, 2) | (false, 1) => 0,
            (true, _) => late,
            (false, _) => 30,
        };
        let start = end - 10 - wait;
        let name =
            if is_exchange { "SendRecv_RING_SIMPLE_Sum_int8_t" } else { "AllReduce_RING_LL" };
        let name = format!("ncclKernel_{name}(ncclDevComm*, unsigned long, ncclWork*)");
        let on = |category, name| slice(category, name).on(1, 1);
        let launch = if ahead { 100 * nth } else { start - 10 };
        if is_exchange {
            fixture.push(on("user_annotation", call).at((launch - 10) * us, 15 * us));
        }
        fixture.push(on("cuda_runtime", "cudaLaunchKernel").at(launch * us, 3 * us).link(nth));
        let kernel = kernel(&name).on(rank, 84).at(start * us, (end - start + rank) * us);
        fixture.push(kernel.link(nth));
    }
    fixture.metadata("distributedInfo", &format!(r#"{{"rank": {rank}, "world_size": 3}}"#));
    let trace = fixture.finish();
    RankCalls::of(&HostIndex::of(&trace), &Details::default(), rank, "")
}

#[test]
fn all_to_alls_of_send_and_receive_kernels_are_matched_by_the_call_around_their_launch() {
    let run = |call: &str, ahead: bool| {
        let ranks = [0, 1, 2].map(|rank| exchanges(rank, (call, ahead), 400, (None, 0), None));
        let runs = Runs::of(&ranks[..]);
        let run = runs.largest().expect("they are of one run");
        (run.section().intro, run.latest_file())
    };
    for call in ["nccl:all_to_all", "c10d::alltoall_base_"] {
        let (said, late) = run(call, true);
        let most = "The other ranks wait for rank 2, the last to join 5 of 8 collectives: 2.00 ms.";
        assert!(said.len() == 1 && said[0].starts_with(most), "{call}: {said:?}");
        assert_eq!(late, Some((2, true)), "the report is of the rank that the sentence names");
    }
    // Those that wait launch as late themselves: the sentence says so, and no rank is worth more than another one.
    let (said, late) = run("nccl:all_to_all", false);
    let costs = "Without the waiting a rank would finish at most 40.0 µs sooner";
    assert!(said.len() == 1 && said[0].contains(costs), "{said:?}");
    assert!(!late.is_some_and(|(_, costs_much)| costs_much), "{late:?}");
    // Pairs that send and receive, as in a pipeline, are none.
    let (said, late) = run("nccl:send 0->1", true);
    let few = "The other ranks wait for rank 1, the last to join 3 of 3 collectives: 90.0 µs.";
    assert!(said.len() == 1 && said[0].starts_with(few), "{said:?}");
    assert_eq!(late, Some((1, true)));
}

#[test]
fn what_comes_before_the_recordings_is_told_by_the_begin_of_the_profilers_span() {
    let run_with = |begins: [(Option<i64>, i64); 3], marks: [Option<i64>; 3]| {
        let of = |rank: i64| {
            let at = rank as usize;
            exchanges(rank, ("nccl:all_to_all", false), 400, begins[at], marks[at])
        };
        let ranks = [0, 1, 2].map(of);
        Runs::of(&ranks[..]).largest().expect("they are of one run").compared()
    };
    let run = |begins| run_with(begins, [None; 3]);
    let of_recording = |compared: Compared| {
        let said = compared.section().intro;
        said.into_iter().find(|sentence| sentence.contains("The recording of"))
    };
    let said = |begins| of_recording(run(begins));
    // What rank 0 waits, in ns.
    let waits = |begins| {
        let rows = serde_json::to_value(run(begins)).expect("JSON");
        rows["ranks"][0]["exposed_ns"].as_i64().expect("it waits")
    };
    let late = |us: i64| (Some(us), us + 2);
    let sentence = |apart: &str, explained: &str| {
        Some(format!(
            "The recording of rank 2 begins {apart} after that of rank 1: the part of the first collective in which the others wait for it \
             because of that, up to {explained}, is not counted."
        ))
    };
    assert_eq!(said([late(50), late(0), late(380)]), sentence("380 µs", "380 µs"));
    // A wait is no longer than it is, however late the recording begins.
    assert_eq!(said([late(50), late(0), late(900)]), sentence("900 µs", "400 µs"));
    assert_eq!(waits([late(50), late(0), late(380)]), waits([late(0); 3]) - 330_000);
    // The recordings begin at one time, and the program of rank 2 comes late in its own: its file has the cause.
    assert_eq!(said([(Some(0), 2), (Some(0), 2), (Some(0), 382)]), None);
    // Most of the wait is in the recordings.
    assert_eq!(said([late(0), late(0), late(150)]), None);
    // All programs come to one place at one time after that, or rank 2 comes later by most of it.
    let with_marks = |last| {
        of_recording(run_with(
            [late(50), late(0), late(380)],
            [Some(1_000), Some(1_000), Some(last)],
        ))
    };
    assert_eq!(with_marks(1_000), None);
    assert_eq!(with_marks(1_300), sentence("380 µs", "300 µs"));
    // A first op does not tell when the recording begins.
    assert_eq!(said([(None, 2), (None, 2), (None, 382)]), None);
}
