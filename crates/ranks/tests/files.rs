//! Ranks of one run, each in a file of its own.

use fixture::{Fixture, kernel, slice};
use host::HostIndex;
use ranks::{RankCalls, Runs};
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
