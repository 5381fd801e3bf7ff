//! Functions of libraries whose cost is known, and what keeps graphs from a step, on tiny traces.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::diagnosis;
use diagnosis::{Action, Diagnosis};
use fixture::{Fixture, kernel, slice};

const US: i64 = 1_000;
const RECOMPUTE: &str = "torch/utils/checkpoint.py(1588): recompute_fn";

/// The same with frames around frames, from and to such launches.
fn in_frames(frames: &[(&str, i64, i64)], every: i64, read: &str) -> Diagnosis {
    launches_in(frames, &|n| n % every == every - 1, read)
}

fn launches(frame: Option<(&str, i64, i64)>, every: i64, read: &str) -> Diagnosis {
    in_frames(frame.as_slice(), every, read)
}

/// 200 kernels of 5 us, each launched 50 us after the one before; frames around the launches from one to another; and after some an op that reads, with
/// its copy to the host.
fn launches_in(frames: &[(&str, i64, i64)], reads: &dyn Fn(i64) -> bool, read: &str) -> Diagnosis {
    let mut fixture = Fixture::default();
    let device = r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "warpSize": 32}]"#;
    fixture.metadata("deviceProperties", device);
    for n in 0..200_i64 {
        let at = n * 50 * US;
        let op = slice("cpu_op", "aten::add").at(at, 12 * US);
        fixture.push(op.on(1, 1));
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 2 * US, 4 * US);
        fixture.push(call.on(1, 1).link(n + 1));
        fixture.push(kernel("elementwise").at(at + 8 * US, 5 * US).link(n + 1));
        if reads(n) {
            fixture.push(slice("cpu_op", read).at(at + 14 * US, 20 * US).on(1, 1));
            let call = slice("cuda_runtime", "cudaMemcpyAsync").at(at + 15 * US, 10 * US);
            fixture.push(call.on(1, 1).link(1_000 + n));
            let copy = slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)");
            fixture.push(copy.on(0, 7).at(at + 20 * US, US).link(1_000 + n));
        }
    }
    for (name, from, to) in frames {
        let own = slice("python_function", name).at(from * 50 * US, (to - from) * 50 * US);
        fixture.push(own.on(1, 1));
    }
    diagnosis(fixture)
}

fn action<'a>(found: &'a Diagnosis, remedy: &str) -> Option<&'a Action> {
    found.actions.iter().find(|action| action.remedy == remedy)
}

#[test]
fn a_known_function_is_advised_by_what_it_costs() {
    let found = launches(Some((RECOMPUTE, 100, 140)), 1_000, "aten::item");
    let own = action(&found, "checkpoint-less").unwrap();
    let expected = "1 call of recompute_fn takes the CPU 2.00 ms, and the GPU works 200 µs for it.";
    assert!(own.observation.ends_with(expected), "{own:?}");
    // (40 kernels of 5 us, and the time between them.)
    assert!((1_900_000..=2_000_000).contains(&own.bound_ns), "{own:?}");
    for frame in [None, Some(("model.py(3): recompute_fn", 100, 140)), Some((RECOMPUTE, 100, 102))]
    {
        let other = launches(frame, 1_000, "aten::item");
        assert!(action(&other, "checkpoint-less").is_none(), "{frame:?}");
    }
}

#[test]
fn a_known_function_is_judged_by_its_caller_and_its_work() {
    let norm = "torch_geometric/nn/conv/gcn_conv.py(45): gcn_norm";
    let of = |caller: &str| in_frames(&[(caller, 90, 150), (norm, 100, 140)], 1_000, "aten::item");
    let own = of("torch_geometric/nn/conv/gcn_conv.py(230): forward");
    assert!(action(&own, "cached-graph-norm").is_some(), "{:?}", own.actions);
    let other = of("torch_geometric/nn/conv/lg_conv.py(40): forward");
    assert!(action(&other, "cached-graph-norm").is_none(), "{:?}", other.actions);
    // (After the last launch: it launches nothing, as where the types are equal.)
    let cast = "peft/tuners/tuners_utils.py(2220): _cast_input_dtype";
    let casts = launches(Some((cast, 60, 140)), 1_000, "aten::item");
    assert!(action(&casts, "adapter-type").is_some(), "{:?}", casts.actions);
    let equal = launches(Some((cast, 200, 280)), 1_000, "aten::item");
    assert!(action(&equal, "adapter-type").is_none(), "{:?}", equal.actions);
}

#[test]
fn graphs_are_advised_where_most_launches_are_in_long_pieces() {
    // Reads after the last 30 of 200 launches: 170 are in one piece.
    let found = launches_in(&[], &|n| n >= 170, "aten::nonzero");
    assert!(action(&found, "fewer-reads").is_none(), "{:?}", found.actions);
    assert!(action(&found, "cuda-graph").is_some(), "{:?}", found.actions);
}

#[test]
fn graphs_are_advised_where_launches_come_without_reads_between_them() {
    let read = "aten::nonzero";
    let many = launches(None, 5, read);
    let own = action(&many, "fewer-reads").unwrap();
    assert!(
        own.hypothesis
            .contains("100.0% of the launches come in bursts of fewer than 25 between two reads"),
        "{own:?}"
    );
    assert!(action(&many, "cuda-graph").is_none());
    let few = launches(None, 60, read);
    assert!(action(&few, "fewer-reads").is_none(), "{:?}", few.actions);
    let own = action(&few, "cuda-graph").unwrap();
    assert!(own.hypothesis.contains("A graph cannot span a read"), "{own:?}");
}

#[test]
fn reads_between_launches_come_before_larger_graphs() {
    // A graph, `ahead` launches that the GPU has no pause between, then 200 kernels of 5 us, each launched 50 us after the one before, and
    // a read after every `every` of them.
    let with = |every: i64, ahead: i64| {
        let mut fixture = Fixture::default();
        let device = r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "warpSize": 32}]"#;
        fixture.metadata("deviceProperties", device);
        let call = slice("cuda_runtime", "cudaGraphLaunch").at(0, 10 * US).on(1, 1);
        fixture.push(call.link(5_000));
        for n in 0..4 {
            fixture.push(kernel("gemm").at(20 * US + n * 10 * US, 9 * US).link(5_000));
        }
        for n in 0..ahead {
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(60 * US + n * 3 * US, 2 * US);
            fixture.push(call.on(1, 1).link(10_000 + n));
            fixture.push(kernel("gemm").at(100 * US + n * 6 * US, 6 * US).link(10_000 + n));
        }
        for n in 0..200_i64 {
            let at = 100 * US + ahead * 6 * US + n * 50 * US;
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 2 * US, 4 * US);
            fixture.push(call.on(1, 1).link(n + 1));
            fixture.push(kernel("elementwise").at(at + 8 * US, 5 * US).link(n + 1));
            if n % every == every - 1 {
                fixture.push(slice("cpu_op", "aten::nonzero").at(at + 14 * US, 20 * US).on(1, 1));
                let call = slice("cuda_runtime", "cudaMemcpyAsync").at(at + 15 * US, 10 * US);
                fixture.push(call.on(1, 1).link(1_000 + n));
                let copy = slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)");
                fixture.push(copy.on(0, 7).at(at + 20 * US, US).link(1_000 + n));
            }
        }
        let found = diagnosis(fixture);
        ["fewer-reads", "larger-graphs"].map(|remedy| action(&found, remedy).is_some())
    };
    assert_eq!(with(5, 0), [true, false]);
    assert_eq!(with(100, 0), [false, true]);
    // Most launches come before the first read, but the GPU is idle after reads.
    assert_eq!(with(5, 300), [true, false]);
    assert_eq!(with(100, 300), [false, true]);
}

/// Passes of `generate` in each of which an op is called below the update of a cache.
fn generates(op: &str) -> Diagnosis {
    let mut fixture = Fixture::default();
    let device = r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "warpSize": 32}]"#;
    fixture.metadata("deviceProperties", device);
    let whole = slice("python_function", "transformers/generation/utils.py(2718): _sample");
    fixture.push(whole.at(0, 10_100 * US).on(1, 1));
    for n in 0..200_i64 {
        let at = 10 * US + n * 50 * US;
        let update = slice("python_function", "transformers/cache_utils.py(98): update");
        fixture.push(update.at(at, 14 * US).on(1, 1));
        fixture.push(slice("cpu_op", op).at(at + US, 12 * US).on(1, 1));
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 2 * US, 4 * US);
        fixture.push(call.on(1, 1).link(n + 1));
        fixture.push(kernel("CatArrayBatchedCopy").at(at + 8 * US, 5 * US).link(n + 1));
    }
    diagnosis(fixture)
}

#[test]
fn generate_with_a_cache_that_grows_is_given_a_static_one() {
    let grows = generates("aten::cat");
    assert!(action(&grows, "static-cache").is_some(), "{:?}", grows.actions);
    let has_one = generates("aten::index_copy_");
    assert!(action(&has_one, "static-cache").is_none(), "{:?}", has_one.actions);
    assert!(action(&has_one, "cuda-graph").is_some(), "{:?}", has_one.actions);
}
