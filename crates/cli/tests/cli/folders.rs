//! Folders and ranks: what a command takes of them, and that it says what it leaves.

use testkit::{Kineto, event};

use crate::common::{Folder, sound};
use crate::triage::{names_in, of_rank};

/// A run of two ranks, as a server leaves it.
fn ranks(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir(folder.path().join("run")).unwrap();
    folder.write("run/TP-0.json", of_rank(Some(0)));
    folder.write("run/TP-1.json", of_rank(Some(1)));
    folder.write("run/merged-run.json", of_rank(None));
    folder.write("run/server_args.json", "{}");
    folder.write("run/notes.json", "{\"a\": 1}");
    folder
}

#[test]
fn every_command_takes_a_folder_and_says_what_it_leaves() {
    let folder = ranks("folders");
    for command in ["breakdown", "triage", "overlap"] {
        let run = folder.run(&[command, "run"]).done();
        assert!(run.stdout.contains("TP-0.json"), "{command}: {}", run.stdout);
        assert!(!run.stdout.contains("TP-1.json"), "{command}: {}", run.stdout);
        for part in [
            "run/notes.json (JSON without traceEvents)",
            "ignored 1 merged from several ranks, because the folder also contains the traces of single ranks: run/merged-run.json",
            "2 ranks (0, 1); using rank 0",
            "--all-ranks",
        ] {
            assert!(run.stderr.contains(part), "{command}: {part}: {}", run.stderr);
        }
        let other = folder.run(&[command, "run", "--rank", "1"]).done();
        assert!(other.stdout.contains("TP-1.json") && !other.stdout.contains("TP-0.json"));
    }
}

#[test]
fn all_ranks_come_one_after_the_other() {
    let folder = ranks("all-ranks");
    let run = folder.run(&["triage", "run", "--all-ranks", "--out", "out"]).done();
    assert_eq!(run.stdout.matches("\n# Profile of").count(), 1, "and one at the beginning");
    assert_eq!(names_in(&folder, "out"), ["TP-0", "TP-1"]);
    let run = folder.run(&["breakdown", "run", "--all-ranks"]).done();
    assert!(run.stdout.contains("kernel_0") && run.stdout.contains("kernel_1"));
    let json = folder.run(&["breakdown", "run", "--json"]).done().json();
    assert_eq!(json["kernels"][0]["kernel_name"], "kernel_0");
    assert_eq!(folder.run(&["breakdown", "run", "--json", "--all-ranks"]).code, 2);
}

/// A rank that calls an all-reduce at `joined_ns`, which ends at 900 us, between two products.
fn that_joins(rank: i64, joined_ns: i64) -> String {
    let distributed = format!("{{\"rank\": {rank}, \"world_size\": 2}}");
    let mut trace = Kineto::new()
        .with("baseTimeNanoseconds", "1700000000000000000")
        .with("distributedInfo", &distributed);
    let mut launched = |name: &str, id: i64, from: i64, to: i64, collective: bool| {
        // (All at the beginning: the CPU is ahead.)
        let call = event("X", "cuda_runtime", "cudaLaunchKernel").on(1, 1).at_ns(id * 1_000);
        trace.push(call.lasting_ns(500).arg("correlation", id));
        let kernel = event("X", "kernel", name).on(0, 7).at_ns(from).lasting_ns(to - from);
        let kernel = kernel.arg("device", 0).arg("stream", 7).arg("correlation", id);
        trace.push(match collective {
            false => kernel,
            true => kernel
                .arg("Collective name", "allreduce")
                .arg("dtype", "Float")
                .arg("In msg nelems", 1024)
                .arg("Out msg nelems", 1024)
                .arg("Group size", 2)
                .arg("Process Group Name", "0")
                .arg("Process Group Ranks", "[0, 1]"),
        });
    };
    let all_reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    launched("gemm", 1, 10_000, joined_ns, false);
    launched(all_reduce, 2, joined_ns, 900_000, true);
    launched("gemm", 3, 900_000, 1_000_000, false);
    trace.text()
}

#[test]
fn diagnose_compares_the_ranks_of_a_folder() {
    let folder = Folder::new("compared-ranks");
    std::fs::create_dir(folder.path().join("run")).unwrap();
    folder.write("run/TP-0.json", that_joins(0, 100_000));
    folder.write("run/TP-1.json", that_joins(1, 800_000));
    let run = folder.run(&["diagnose", "run", "--rank", "0"]).done();
    let late = "The other rank waits for rank 1, the last to join 1 of 1 collective: 700 µs.";
    assert!(run.stdout.contains(late), "{}", run.stdout);
    // Where none is named, it is the one that has the cause.
    let cause = folder.run(&["diagnose", "run"]).done();
    assert!(cause.stdout.contains(late) && cause.stdout.contains("# TP-1.json"));
    assert!(!cause.stdout.contains("# TP-0.json"), "{}", cause.stdout);
    let says = "2 ranks; using rank 1, for which the others wait (--rank selects another";
    assert!(cause.stderr.contains(says), "{}", cause.stderr);
    let first = "The GPU runs only communication kernels for 80.8% of its span (800 µs, 700 µs of it because rank 1 joins later).";
    assert!(run.stdout.contains(first), "{}", run.stdout);
    // As JSON, with the same rows in both documents.
    let json = folder.run(&["diagnose", "run", "--json"]).done().json();
    assert_eq!(json["ranks"]["ranks"][0]["exposed_ns"], 700_000);
    assert_eq!(json["ranks"]["groups"][0]["last"], "1");
    folder.run(&["report", "--cpu-trace", "run", "--json-out", "r.json"]).done();
    let report: serde_json::Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    assert_eq!(report["ranks"], json["ranks"]);
    let alone = folder.run(&["diagnose", "run/TP-0.json", "--json"]).done().json();
    assert!(alone["ranks"].is_null(), "{}", alone["ranks"]);
    // The one that comes late is not told to wait for itself, though its device has the name of the other rank.
    folder.write("run/TP-0.json", that_joins(0, 800_000));
    folder.write("run/TP-1.json", that_joins(1, 100_000));
    let late = folder.run(&["diagnose", "run", "--rank", "1"]).done();
    assert!(late.stdout.contains("700 µs of it because rank 0 joins later"), "{}", late.stdout);
    assert!(!late.stdout.contains("A rank that comes late"), "{}", late.stdout);
    // A rank that is cut before its events does not keep another from its report.
    folder.write("run/TP-1.json", "{\"traceEvents\": [");
    let run = folder.run(&["diagnose", "run", "--rank", "0"]).done();
    assert!(run.stdout.contains("# TP-0.json"), "{}", run.stdout);
    assert!(run.stdout.contains("Rank 1 has no collective, and the others have some"));
    let given = "Their traces are given, but no collective of this rank could be matched with theirs. Rank 1 has no collective";
    assert!(run.stdout.contains(given), "{}", run.stdout);
    assert!(!run.stdout.contains("only their traces show it"), "{}", run.stdout);
    // One of them by itself cannot tell.
    let alone = folder.run(&["diagnose", "run/TP-0.json"]).done();
    assert!(!alone.stdout.contains("joins later"), "{}", alone.stdout);
}

#[test]
fn a_file_of_another_run_is_named_and_neither_compared_nor_reported() {
    let folder = Folder::new("several-runs");
    for name in ["all", "all/old", "all/run"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let of_one = that_joins(0, 800_000).replace("\"world_size\": 2", "\"world_size\": 1");
    folder.write("all/old/TP-0.json", of_one);
    folder.write("all/run/TP-0.json", that_joins(0, 100_000));
    folder.write("all/run/TP-1.json", that_joins(1, 800_000));
    let run = folder.run(&["diagnose", "all"]).done();
    let late = "The other rank waits for rank 1, the last to join 1 of 1 collective: 700 µs.";
    let other = "TP-0.json (rank 0) is not compared: its run has 1 rank, and that of the others 2.";
    assert!(run.stdout.starts_with("# 2 ranks"), "{}", run.stdout);
    assert!(run.stdout.contains(late) && run.stdout.contains(other), "{}", run.stdout);
    assert_eq!(run.stdout.matches("# TP-0.json").count(), 0, "{}", run.stdout);
    assert_eq!(run.stdout.matches("# TP-1.json").count(), 1, "{}", run.stdout);
    folder.run(&["diagnose", "all", "--json"]).done();
    // Its report is that of the folder of the run, with the name of the file that is left out.
    for (of, rank, expected) in
        [("all", "1", other), ("all/run", "0", late), ("all/run", "1", late)]
    {
        let command = ["report", "--cpu-trace", of, "--rank", rank, "--md-out", "r.md"];
        folder.run(&command).done();
        let report = folder.text("r.md");
        assert!(report.contains(expected), "{report}");
        let waits = report.contains("700 µs of it because rank 1 joins later");
        assert_eq!(waits, rank == "0", "{report}");
    }
    let both = folder.run(&["report", "--cpu-trace", "all", "--rank", "0", "--md-out", "r.md"]);
    assert_eq!(both.code, 2, "two files have this rank: {}", both.stderr);
}

#[test]
fn merged_traces_count_where_there_are_no_others() {
    let folder = Folder::new("merged");
    folder.write("merged-a.json", of_rank(None));
    let run = folder.run(&["triage", "."]).done();
    assert!(run.stdout.contains("kernel_-1"), "{}", run.stdout);
    assert_eq!(run.stderr, "");
    // Another trace of no rank does not hold what is merged.
    folder.write("b.json", of_rank(None));
    let run = folder.run(&["triage", "."]).done();
    assert_eq!(run.stdout.matches("# Profile of").count(), 2, "{}", run.stderr);
}

#[test]
fn runs_in_folders_are_compared() {
    let folder = ranks("compare-folders");
    std::fs::create_dir(folder.path().join("other")).unwrap();
    folder.write("other/TP-1.json", of_rank(Some(1)));
    let run = folder.run(&["compare", "run", "other", "--rank", "1"]).done();
    assert!(run.stdout.contains("kernel_1") && !run.stdout.contains("kernel_0"), "{}", run.stdout);
    // Two traces of one rank are two runs.
    folder.write("other/second.json", sound());
    let run = folder.run(&["compare", "run", "other"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("contains 2 traces"), "{}", run.stderr);
    // Artifacts are made already.
    folder.run(&["triage", "run", "--out", "made"]).done();
    folder.run(&["compare", "made", "run"]).done();
    let run = folder.run(&["compare", "made", "run", "--mapping-a", "run"]);
    assert_eq!((run.code, run.stderr.contains("contains artifacts")), (2, true), "{}", run.stderr);
}

#[test]
fn companions_come_from_folders_by_rank() {
    let folder = ranks("companions");
    for (rank, name) in [("0", "TP-0"), ("1", "TP-1")] {
        folder.run(&["triage", "run", "--rank", rank, "--mapping", "run", "--out", rank]).done();
        let metadata = crate::triage::json(&folder, &format!("{rank}/profile_metadata.json"));
        assert_eq!(metadata["sources"][1]["name"], format!("{name}.json"));
    }
}

#[test]
fn breakdown_says_what_to_know_first_and_draws_the_streams() {
    let folder = Folder::new("breakdown-timeline");
    folder.write("example.json.gz", testkit::example::json_gz());
    let plain = folder.run(&["breakdown", "example.json.gz"]).done().stdout;
    for part in ["## Takeaways", "GPU time goes to GEMM (", "Communication takes"] {
        assert!(plain.contains(part), "{part}");
    }
    if let Some(corpus) = testkit::shared("corpus/traces") {
        let traced = corpus.join("mi300_sglang_prefilldecode.json.gz");
        let run = folder.run(&["breakdown", &traced.to_string_lossy()]).done();
        assert!(run.stdout.contains("## Takeaways"), "{}", run.stdout);
    }
    let drawn = folder.run(&["breakdown", "example.json.gz", "--timeline"]).done().stdout;
    let (before, timeline) = drawn.split_once("\n## Timeline\n").unwrap();
    assert_eq!(before, plain);
    for part in ["stream 7 ", "stream 20", "stream 28", "# compute"] {
        assert!(timeline.contains(part), "{part}: {timeline}");
    }
}

/// Four processes of DistributedDataParallel on CPUs; one sleeps 10 ms before the forward pass of every step.
#[test]
fn the_rank_that_sleeps_is_the_one_that_the_others_wait_for() {
    let Some(truth) = testkit::shared("corpus/inputs/kineto-ranks/gloo_ddp.straggler.truth.json")
    else {
        return;
    };
    let folder = Folder::new("gloo-ddp");
    std::fs::create_dir(folder.path().join("run")).unwrap();
    for rank in 0..4 {
        let name = format!("gloo_ddp_rank{rank}.json.gz");
        std::fs::copy(truth.with_file_name(&name), folder.path().join("run").join(name)).unwrap();
    }
    let json = folder.run(&["diagnose", "run", "--json"]).done().json();
    let truth: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(truth).unwrap()).unwrap();
    let rows = json["ranks"]["cpu_calls"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let (rank, ours) = (row["rank"].as_str().unwrap(), row["waits_ns"].as_f64().unwrap() / 1e3);
        let theirs = truth["total_wait_us"][rank].as_f64().unwrap();
        assert!((ours - theirs).abs() < 0.1, "rank {rank}: {ours} and {theirs} us");
        assert_eq!(row["n_last"], if rank == "1" { 6 } else { 0 });
    }
}

/// Nine all-reduces on each of four processes: three of all ranks, three of pairs, three inside a reduce-scatter of all, by size.
#[test]
fn calls_of_pairs_are_told_from_calls_of_all_by_their_sizes() {
    let Some(first) = testkit::shared("corpus/inputs/kineto-ranks/gloo_colls_rank0.json.gz") else {
        return;
    };
    let folder = Folder::new("gloo-colls");
    std::fs::create_dir(folder.path().join("run")).unwrap();
    for rank in 0..4 {
        let name = format!("gloo_colls_rank{rank}.json.gz");
        std::fs::copy(first.with_file_name(&name), folder.path().join("run").join(name)).unwrap();
    }
    let json = folder.run(&["diagnose", "run", "--json"]).done().json();
    let rows = json["ranks"]["cpu_calls"].as_array().unwrap();
    let own = rows.iter().filter(|row| row["call"] == "gloo:all_reduce");
    let found: Vec<_> = own.map(|row| (&row["waits_ns"], &row["n_last"])).collect();
    // (From the annotations, with the groups of the program that was recorded.)
    let by_hand = [(4_040_284, 3), (6_273_698, 4), (6_796_375, 2), (9_694_540, 3)];
    assert_eq!(serde_json::to_value(found).unwrap(), serde_json::to_value(by_hand).unwrap());
}
