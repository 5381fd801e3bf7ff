//! Graphs and their captures, on synthetic traces.

use trace::Trace;

use super::*;
use crate::attribution::attribute;
use crate::{Confidence, Coverage, TriageOptions, triage};
use fixture::{Fixture, Slice, kernel, slice};
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;

/// A trace with a capture for each text, a launch for each letter: its kernel's name, `.` for one that is not
/// told, `=` for a copy.
fn capture(texts: &[&str]) -> Trace {
    let mut fixture = Fixture::default();
    let call = |name, at| slice("cuda_runtime", name).at(at, 1).on(1, 1);
    let mut at = 0;
    for text in texts {
        fixture.push(call("hipStreamBeginCapture", at));
        for letter in text.split("").filter(|letter| !letter.is_empty()) {
            at += 10;
            fixture.push(slice("cpu_op", letter).at(at - 5, 9).on(1, 1).external(at));
            let launch = match letter {
                "=" => call("hipMemcpyAsync", at),
                "." => call("cudaLaunchKernel", at),
                name => call("hipLaunchKernel", at).launching(name),
            };
            fixture.push(launch.link(at).external(at));
        }
        fixture.push(call("hipStreamEndCapture", at + 5));
        at += 10;
    }
    fixture.finish()
}

/// Ops and confidence of a replay of `letters` by these captures, and what mapping did.
fn replayed(letters: &str, captures: &[&str]) -> (String, &'static str, Replayed) {
    let mut fixture = Fixture::default();
    fixture.push(slice("cuda_runtime", "hipGraphLaunch").at(0, 2).on(1, 1).link(1));
    let letters: Vec<String> = letters.chars().map(String::from).collect();
    for (letter, at) in letters.iter().zip(1_i64..) {
        let new: Slice<'_> =
            if letter == "=" { slice("gpu_memcpy", "Memcpy DtoD") } else { kernel(letter) };
        fixture.push(new.at(at * 10, 5).link(1));
    }
    let trace = fixture.finish();
    let before = BeforeWindowSlices::of(&trace);
    let gpu = Gpu::new(&trace, catalog::Platform::Rocm, &before, &Options::default());
    let launches = Launches::of(&gpu);
    let mut places = attribute(&gpu, &launches, &mut Linker::of(&trace, None));
    let capture = capture(captures);
    let stages = Stages::of(&gpu, &launches, None);
    let given = Sources { captures: &[&capture], ..Sources::default() };
    let done = map(&gpu, &launches, &mut places, &stages, &given, &mut |_, _, _, _| {});
    let op = |at: usize| places.site(at).cpu_op.clone().unwrap_or_else(|| "-".to_owned());
    ((0..gpu.len()).map(op).collect(), places.site(0).confidence.id(), done)
}

#[test]
fn a_capture_tells_by_names_by_place_or_not_at_all() {
    for (letters, captures, ops, confidence, identical) in [
        ("abca", &["abca"][..], "abca", "replay", 1),
        ("ab=a", &["ab=a"], "ab=a", "replay", 1),
        // The one of its length, though a longer one has all its names, too.
        ("abca", &["aabxca", "abca"], "abca", "replay", 1),
        ("abca", &["abxca"], "abca", "replay", 0),
        ("abza", &["abca"], "ab-a", "replay", 0),
        // Names are not told: the place alone tells, and only where the numbers agree.
        ("abca", &["...."], "....", "position", 0),
        ("abca", &["..."], "----", "launch", 0),
        // Less than half in common is another graph.
        ("abca", &["axyz"], "----", "launch", 0),
    ] {
        let (found, sure, done) = replayed(letters, captures);
        assert_eq!((found.as_str(), sure, done.identical), (ops, confidence, identical));
        assert_eq!((done.graphs, done.slices), (1, letters.len() as u64));
        assert_eq!(done.mapped, ops.chars().filter(|op| *op != '-').count() as u64);
    }
}

/// A launch of a graph for `requests`, which runs `names`.
fn formal(requests: &str, names: &[&str]) -> Trace {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
    let step = format!("step[DECODE bs={requests}]");
    fixture.push(cpu("user_annotation", &step).at(0, 100));
    fixture.push(cpu("cuda_runtime", "cudaGraphLaunch").at(10, 2).link(7));
    for (at, name) in (0..).zip(names) {
        fixture.push(kernel(name).at(50 + at * 10, 5).link(7));
    }
    fixture.finish()
}

/// A capture of `n` launches, which do not name their kernels; `annotated` is the batch that it tells.
fn unnamed(n: i64, annotated: Option<u64>) -> Trace {
    let mut fixture = Fixture::default();
    let cpu =
        |raw_category, name: &'static str| -> Slice<'static> { slice(raw_category, name).on(1, 1) };
    match annotated {
        Some(16) => fixture.push(cpu("user_annotation", "capture_16_FULL").at(0, 900)),
        Some(_) => fixture.push(cpu("user_annotation", "capture_32_FULL").at(0, 900)),
        None => {}
    }
    fixture.push(cpu("cuda_runtime", "cudaStreamBeginCapture_v10000").at(1, 1));
    for n in 0..n {
        fixture.push(cpu("cpu_op", "aten::mm").at(10 + n * 10, 8));
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(12 + n * 10, 2).link(n + 1));
    }
    fixture.push(cpu("cuda_runtime", "cudaStreamEndCapture_v10000").at(800, 1));
    fixture.finish()
}

fn coverage(formal: &Trace, captures: &[&Trace], details: &[CaptureFacts]) -> Coverage {
    let sources = Sources { captures, capture_facts: details, ..Sources::default() };
    triage(formal, &TriageOptions::default(), &sources).coverage
}

#[test]
fn a_capture_whose_graph_is_replayed_in_the_file_is_no_reason_to_record_again() {
    let first = |replay: bool| {
        let mut fixture = Fixture::default();
        let call = |name, at| slice("cuda_runtime", name).on(1, 1).at(at, 1);
        fixture.push(call("cudaStreamBeginCapture", 1));
        for n in 0..9_i64 {
            fixture.push(call("cudaLaunchKernel", 10 + n * 10).link(n + 1));
        }
        fixture.push(call("cudaStreamEndCapture", 800));
        fixture.push(call("cudaLaunchKernel", 1_000).link(20));
        fixture.push(kernel("gemm").at(1_010, 3_000).link(20));
        if replay {
            fixture.push(call("cudaGraphLaunch", 6_000).link(21));
            fixture.push(kernel("attention").at(6_010, 1_000).link(21));
        }
        let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
        report.takeaways[0].clone()
    };
    let alone = first(false);
    assert!(alone.contains("Record replays of the graphs instead."), "{alone}");
    let both = first(true);
    assert!(both.contains("their kernels take 1.00 µs (25.0% of GPU time)"), "{both}");
    assert!(!both.contains("instead"), "{both}");
}

#[test]
fn the_capture_with_the_same_number_of_launches_is_used() {
    let (two, three) = (unnamed(2, None), unnamed(3, None));
    let found = coverage(&formal("32", &["a", "b"]), &[&three, &two], &[]);
    let replays: Vec<u64> = found.captures.iter().map(|capture| capture.replays).collect();
    assert_eq!((replays, found.graph_mapped), (vec![0, 1], 2));
    assert_eq!(coverage(&formal("32", &["a"]), &[&three, &two], &[]).graph_mapped, 0);
}

#[test]
fn of_equal_captures_the_batch_size_decides() {
    let (small, large) = (unnamed(2, Some(16)), unnamed(2, Some(32)));
    let used = |requests: &str, captures: &[&Trace], details: &[CaptureFacts]| {
        let found = coverage(&formal(requests, &["a", "b"]), captures, details).captures;
        let uses = found.iter().map(|of| (of.replays, of.tied, of.by_batch));
        uses.collect::<Vec<_>>()
    };
    assert_eq!(used("16", &[&large, &small], &[]), [(0, 0, 0), (1, 1, 1)]);
    // 17 requests run in the graph for 32.
    assert_eq!(used("17", &[&small, &large], &[]), [(0, 0, 0), (1, 1, 1)]);
    // What stands beside the traces tells where they do not tell themselves.
    let (one, other) = (unnamed(2, None), unnamed(2, None));
    let details = |sizes: [u64; 2]| {
        sizes.map(|size| CaptureFacts {
            name: format!("bs_{size}"),
            batch_size: Some(size),
            mode: None,
        })
    };
    assert_eq!(used("32", &[&one, &other], &details([16, 32])), [(0, 0, 0), (1, 1, 1)]);
    assert_eq!(used("32", &[&one, &other], &details([32, 16])), [(1, 1, 1), (0, 0, 0)]);
    // Nothing tells: the first, and it is said.
    assert_eq!(used("32", &[&one, &other], &[]), [(1, 1, 0), (0, 0, 0)]);
}

/// A trace of a capture that also ran: first as a warm-up, twice what it captures, then the graph itself, three times.
fn capture_that_ran(letters: &str) -> Trace {
    let mut fixture = Fixture::default();
    let call = |name: &'static str, at| slice("cuda_runtime", name).at(at, 1).on(1, 1);
    let names: Vec<String> = letters.chars().map(String::from).collect();
    let mut link = 1_000;
    for pass in 0..3_i64 {
        let is_captured = pass == 2;
        let base = pass * 1_000;
        if is_captured {
            fixture.push(call("hipStreamBeginCapture", base));
        }
        for (name, at) in names.iter().zip(1_i64..) {
            let at = base + at * 10;
            link += 1;
            let op = if is_captured { name.as_str() } else { "warm_up" };
            fixture.push(slice("cpu_op", op).at(at - 5, 9).on(1, 1).external(link));
            let launch = call("hipLaunchKernel", at).launching(name);
            fixture.push(launch.link(link).external(link));
            if !is_captured {
                fixture.push(kernel(name).at(at + 2, 5).link(link));
            }
        }
        if is_captured {
            fixture.push(call("hipStreamEndCapture", base + 900));
        }
    }
    for replay in 0..3_i64 {
        let base = 5_000 + replay * 1_000;
        fixture.push(call("hipGraphLaunch", base).link(replay + 1));
        for (name, at) in names.iter().zip(1_i64..) {
            fixture.push(kernel(name).at(base + at * 10, 5).link(replay + 1));
        }
    }
    fixture.finish()
}

#[test]
fn a_capture_that_also_ran_its_graph_maps_every_kernel() {
    let mut fixture = Fixture::default();
    fixture.push(slice("cuda_runtime", "hipGraphLaunch").at(0, 2).on(1, 1).link(1));
    for (name, at) in ["a", "b", "a", "c"].iter().zip(1_i64..) {
        fixture.push(kernel(name).at(at * 10, 5).link(1));
    }
    let (measured, capture) = (fixture.finish(), capture_that_ran("abac"));
    let sources = Sources { captures: &[&capture], ..Sources::default() };
    let report = triage(&measured, &TriageOptions::default(), &sources);
    assert_eq!((report.coverage.graph_slices, report.coverage.graph_mapped), (4, 4));
    let mut ops: Vec<&str> = report.kernels.iter().map(|row| &*row.cpu_op).collect();
    ops.sort_unstable();
    assert_eq!(ops, ["a", "b", "c"], "the ops of the capture, not those of its warm-up");
    assert!(report.kernels.iter().all(|row| row.mapping_confidence == Confidence::Replay));
}
