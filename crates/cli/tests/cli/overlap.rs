//! `overlap`: what it prints of one trace and of a pair.

use crate::common::{Folder, assert_golden, sound};

#[test]
fn the_example_reads_as_checked_in() {
    let folder = Folder::new("overlap-example");
    folder.write("example.json.gz", testkit::example::json_gz());
    let run = folder.run(&["overlap", "example.json.gz", "--rows", "3"]).done();
    assert_golden("overlap.md", &run.stdout);
    // --formal is another way to name it; three rows are drawn, the rest is counted.
    let formal = folder.run(&["overlap", "--formal", "example.json.gz", "--rows", "3"]).done();
    assert_eq!(formal.stdout, run.stdout);
    assert_eq!(run.stdout.matches("```text").count(), 3);
    assert!(run.stdout.contains("Mode: single trace"), "{}", run.stdout);
    // triage --timeline prints the same pictures below its tables.
    let triage = folder.run(&["triage", "example.json.gz", "--timeline"]).done().stdout;
    let all = folder.run(&["overlap", "example.json.gz"]).done().stdout;
    let pictures = |text: &str| text.split_once("## Source context").unwrap().1.to_owned();
    assert_eq!(pictures(&triage), pictures(&all));
}

#[test]
fn one_stage_and_a_span() {
    let folder = Folder::new("overlap-stage");
    folder.write("example.json.gz", testkit::example::json_gz());
    let run = folder
        .run(&["overlap", "example.json.gz", "--stage", "decode", "--rows", "1", "--span", "100"])
        .done();
    assert!(run.stdout.contains(", decode: ") && !run.stdout.contains(", extend/prefill: "));
    // 100 µs around an instance of 8.90 µs.
    assert!(run.stdout.contains("109 µs"), "{}", run.stdout);
    assert_eq!(folder.run(&["overlap", "example.json.gz", "--stage", "backward"]).code, 2);
}

#[test]
fn a_trace_with_one_stream_says_that_overlap_cannot_be_judged() {
    let folder = Folder::new("overlap-one-stream");
    folder.write("a.json", sound());
    let run = folder.run(&["overlap", "a.json"]).done();
    assert!(run.stdout.contains("No second stream"), "{}", run.stdout);
    assert!(run.stdout.contains("| Peak concurrency | 1 |"), "{}", run.stdout);
}

#[test]
fn a_pair_says_where_times_and_places_come_from() {
    let Some(corpus) = testkit::shared("corpus/traces") else { return };
    let path = |name: &str| corpus.join(format!("{name}.json.gz")).to_string_lossy().into_owned();
    let folder = Folder::new("overlap-pair");
    let (formal, mapping) =
        (path("mi300_sglang_decode_formal"), path("mi300_sglang_prefilldecode"));
    let run = folder.run(&["overlap", "--formal", &formal, "--mapping", &mapping]).done();
    for part in [
        "Mode: measured trace with mapping (times from mi300\\_sglang\\_decode\\_formal.json.gz, ops and Python lines also \
         from mi300\\_sglang\\_prefilldecode.json.gz)",
        // Truth of the measured trace, and what the two streams share.
        "| GPU busy | 9.77 ms |",
        "| Overlapped | 5.69 µs |",
        "| Peak concurrency | 2 |",
        "| Mapped to an op | 18.9% |",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    // Communication and copies take 0.1% of it.
    assert!(!run.stdout.contains("No second stream"), "{}", run.stdout);
    // With the capture every replayed kernel has its op.
    let capture = path("mi300_sglang_decode_capture");
    let run = folder.run(&["overlap", &formal, "--capture", &capture]).done();
    assert!(run.stdout.contains("| Mapped to an op | 99.8% |"), "{}", run.stdout);
    assert!(run.stdout.contains("from their capture traces"), "{}", run.stdout);
}

#[test]
fn it_is_told_what_triage_is_told() {
    let folder = Folder::new("overlap-facts");
    folder.write("run.json", sound());
    folder.write("facts.json", "{\"model_name\": \"m\", \"server_flags\": {\"tp_size\": 2}}");
    let told = ["--facts", "facts.json", "--target-arch", "gfx950"];
    let run = folder.run(&[&["overlap", "run.json"], &told[..]].concat()).done();
    assert_eq!(run.stdout, folder.run(&["overlap", "run.json"]).done().stdout);
    folder.write("facts.json", "[]");
    assert_ne!(folder.run(&[&["overlap", "run.json"], &told[..]].concat()).code, 0);
}
