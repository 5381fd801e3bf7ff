//! What outside readers of the reports found (docs/audit.md): each sentence prints only where it is true and useful.

use testkit::{Kineto, KinetoEvent, event};

use crate::common::{Folder, sound};

const US: i64 = 1_000;

fn cpu(cat: &str, name: &str, at_us: i64, us: i64) -> KinetoEvent {
    event("X", cat, name).on(5, 1).at_ns(at_us * US).lasting_ns(us * US)
}

/// An op with its inputs, its launch, and a kernel of this grid.
fn launched(trace: &mut Kineto, n: i64, op: &str, dims: &str, grid: &str, kernel_us: i64) {
    let at_us = n * 500;
    let inputs = cpu("cpu_op", op, at_us, 40).arg("External id", n);
    let types = r#"["float", "float"]"#;
    trace.push(inputs.raw_arg("Input Dims", dims).raw_arg("Input type", types));
    let launch = cpu("cuda_runtime", "cudaLaunchKernel", at_us + 2, 4);
    trace.push(launch.arg("correlation", n).arg("External id", n));
    let kernel = event("X", "kernel", "ampere_sgemm_128x64_tn").on(0, 7);
    let kernel = kernel.at_ns((at_us + 10) * US).lasting_ns(kernel_us * US);
    let kernel = kernel.arg("device", 0).arg("stream", 7).arg("correlation", n);
    trace.push(kernel.arg("External id", n).raw_arg("grid", grid).raw_arg("block", "[128,1,1]"));
}

/// More launches of `aten::bmm`, more time in `aten::addmm`.
fn products() -> Kineto {
    let mut trace = Kineto::new();
    for n in 1..=3 {
        launched(&mut trace, n, "aten::bmm", "[[8, 16, 16], [8, 16, 16]]", "[8,1,1]", 10);
    }
    launched(&mut trace, 4, "aten::mm", "[[512, 512], [512, 512]]", "[64,1,1]", 300);
    launched(&mut trace, 5, "aten::mm", "[[64, 64], [64, 64]]", "[2,1,1]", 70);
    trace
}

fn triaged(name: &str, trace: &Kineto) -> (Folder, String) {
    let folder = Folder::new(name);
    folder.write("run.json", trace.text());
    let stdout = folder.run(&["triage", "run.json", "--out", "out"]).done().stdout;
    (folder, stdout)
}

#[test]
fn op_inputs_and_grid_of_a_kernel_are_of_the_same_launches() {
    let (folder, stdout) = triaged("audit-launches", &products());
    let rows = crate::triage::json(&folder, "out/kernel_table.json");
    let row = &rows[0];
    assert_eq!(row["cpu_op"], "aten::mm", "{row}");
    assert_eq!(row["gemm_shape"], "512 x 512 x 512", "{row}");
    assert_eq!(row["grid"], serde_json::json!([64, 1, 1]), "{row}");
    assert_eq!(row["n_shapes"], 3, "{row}");
    assert!(stdout.contains("| aten::mm | 75.0% |"), "300 of 400 µs: {stdout}");
}

#[test]
fn breakdown_prints_the_sentences_of_triage() {
    let sentences = |text: &str, chapter: &str| -> Vec<String> {
        let lead = text.lines().skip_while(|line| *line != chapter).skip(1);
        let lead = lead.take_while(|line| !line.starts_with('#'));
        lead.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let (folder, triage) = triaged("audit-same", &products());
    let breakdown = folder.run(&["breakdown", "run.json"]).done().stdout;
    let (of_triage, of_breakdown) =
        (sentences(&triage, "## Triage"), sentences(&breakdown, "## Takeaways"));
    assert!(!of_triage.is_empty(), "{triage}");
    assert_eq!(of_breakdown, of_triage);
}

#[test]
fn questions_that_change_nothing_are_not_asked() {
    let (_folder, stdout) = triaged("audit-questions", &products());
    for useless in [
        "launch flags",
        "record\\_shapes",
        "container image",
        "clocks",
        "Which architecture",
        "no target architecture",
        "Every kernel was launched",
        "100.0% of GPU time maps",
        "Shares are of summed GPU time",
    ] {
        assert!(!stdout.contains(useless), "{useless}: {stdout}");
    }
}

#[test]
fn work_without_a_stage_gets_no_sentence_on_stages() {
    let mut trace = products();
    trace.push(cpu("user_annotation", "evaluate metrics", 400, 4_000));
    let (_folder, stdout) = triaged("audit-annotation", &trace);
    assert!(!stdout.contains("| Stage | no stage |"), "no fact of the run: {stdout}");
    // (A test of triage has the annotation around it, which the page and JSON keep.)
    assert!(!stdout.contains("No stages"), "{stdout}");
}

#[test]
fn busy_shares_agree_in_triage_and_breakdown() {
    let mut trace = products();
    let early =
        event("X", "kernel", "ampere_sgemm_64x64_nn").on(0, 7).at_ns(0).lasting_ns(400 * US);
    trace.push(early.arg("device", 0).arg("stream", 7).arg("correlation", 99));
    let (folder, stdout) = triaged("audit-busy", &trace);
    let breakdown = folder.run(&["breakdown", "run.json"]).done().stdout;
    let busy = |text: &str, before: &str| {
        let (_, rest) = text.split_once(before).unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    let of_triage = busy(&stdout, "GPU busy ");
    assert!(of_triage.ends_with('%'), "{of_triage}");
    assert_eq!(of_triage, busy(&breakdown, "| GPU busy, share of GPU span | "));
}

#[test]
fn launches_without_gpu_work_are_a_fault_of_the_recording() {
    let mut trace = Kineto::new();
    for n in 0..3 {
        trace.push(cpu("cpu_op", "aten::mm", n * 100, 60).arg("External id", n));
        trace.push(cpu("cuda_runtime", "cudaLaunchKernel", n * 100 + 10, 5).arg("correlation", n));
    }
    let folder = Folder::new("audit-no-records");
    folder.write("run.json", trace.text());
    let said = folder.run(&["diagnose", "run.json"]).done().stdout;
    let first = "The file has 3 launch calls and no GPU work: the profiler got no records of what ran on the GPU.";
    assert!(said.contains(first) && !said.contains("of the CPU time of the ops"), "{said}");
}

#[test]
fn a_run_on_the_cpu_is_told_by_its_ops() {
    let mut trace = Kineto::new();
    trace.push(cpu("cpu_op", "aten::mm", 0, 75).arg("External id", 1));
    trace.push(cpu("cpu_op", "aten::add", 100, 25).arg("External id", 2));
    let folder = Folder::new("audit-cpu");
    folder.write("run.json", trace.text());
    let said = folder.run(&["diagnose", "run.json"]).done().stdout;
    let first = "The file has no GPU work. aten::mm takes 75.0% of the CPU time of the ops (75.0 µs of 100 µs).";
    assert!(said.contains(first), "{said}");
}

/// Two processes wrote one file: an event is cut inside a string, and the next one begins there. That one is read, and the cut
/// one is told by every report that has figures.
#[test]
fn a_damaged_file_is_told_and_loses_only_what_is_cut() {
    let folder = Folder::new("audit-damaged");
    let text = sound();
    let at = text.find("\"ph\"").and_then(|at| text[..at].rfind('{')).unwrap();
    let cut = "{\"ph\": \"X\", \"cat\": \"Ker\n  ";
    let damaged = format!("{}{cut}{}", &text[..at], &text[at..]);
    folder.write("run.json", &text);
    folder.write("damaged.json", &damaged);
    let count = |name: &str| {
        let json = folder.run(&["breakdown", "--json", name]).done().stdout;
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        value["overview"]["n_events"].clone()
    };
    assert_eq!(count("damaged.json"), count("run.json"));
    let said = folder.run(&["diagnose", "damaged.json"]).done().stdout;
    assert!(
        said.contains("\nThe file is damaged: 1 place is not readable, the first at byte "),
        "{said}"
    );
    let said = folder.run(&["breakdown", "damaged.json"]).done().stdout;
    assert!(said.contains("not as recorded: 1 unreadable place left out"), "{said}");
}
