//! What `perfetto-fix` writes, and under which name.

use crate::common::{Folder, assert_golden, damaged, gzip, sound, sound_and_long};
use serde_json::Value;

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.starts_with(&[0x1f, 0x8b]), "it is gzip");
    testkit::gunzip(bytes).unwrap()
}

fn events(json: &[u8]) -> Vec<Value> {
    let json: Value = serde_json::from_slice(json).unwrap();
    json["traceEvents"].as_array().unwrap().clone()
}

#[test]
fn the_output_is_beside_the_input_and_compressed_unless_told_otherwise() {
    for (input, output) in [
        ("run.json", "run.perfetto.json.gz"),
        ("run.pt.trace.json.gz", "run.pt.trace.perfetto.json.gz"),
        ("run", "run.perfetto.json.gz"),
    ] {
        let folder = Folder::new(&format!("name-{input}"));
        folder.write(input, damaged());
        let run = folder.run(&["perfetto-fix", input]).done();
        assert_eq!(run.stdout, "");
        assert!(run.stderr.starts_with(&format!("{output}: ")), "{}", run.stderr);
        let mut names = [input, output];
        names.sort_unstable();
        assert_eq!(folder.names(), names);
        assert!(!events(&gunzip(&folder.read(output))).is_empty());
    }
}

#[test]
fn the_ending_of_the_name_chooses_the_form() {
    let folder = Folder::new("form");
    folder.write("run.json", damaged());
    for out in ["out.json", "out.JSON", "out.json.gz", "out.gz", "out"] {
        folder.run(&["perfetto-fix", "run.json", "-o", out]).done();
    }
    let json = folder.read("out.json");
    assert!(json.starts_with(b"{"));
    assert!(folder.read("out.JSON") == json);
    let compressed = folder.read("out.json.gz");
    assert!(gunzip(&compressed) == json, "the JSON is the same in both forms");
    assert!(folder.read("out.gz") == compressed && folder.read("out") == compressed);
}

#[test]
fn the_form_of_the_input_does_not_matter() {
    let folder = Folder::new("input-form");
    let file = damaged();
    folder.write("plain.json", &file);
    folder.write("stored.json.gz", gzip(file.as_bytes()));
    // The content decides, not the name; and a file may have several members.
    folder.write("misnamed.json", gzip(file.as_bytes()));
    let (a, b) = file.as_bytes().split_at(file.len() / 3);
    folder.write("members.json.gz", [gzip(a), gzip(b)].concat());
    let mut outputs = ["plain.json", "stored.json.gz", "misnamed.json", "members.json.gz"]
        .into_iter()
        .map(|input| {
            folder.run(&["perfetto-fix", input, "-o", "out.json"]).done();
            folder.run(&["perfetto-fix", input, "-o", "out.json.gz"]).done();
            (input, folder.read("out.json"), folder.read("out.json.gz"))
        });
    let (_, json, compressed) = outputs.next().unwrap();
    assert!(gunzip(&compressed) == json);
    for (input, other_json, other_compressed) in outputs {
        assert!(other_json == json && other_compressed == compressed, "{input}");
    }
}

#[test]
fn a_sound_file_comes_out_byte_for_byte() {
    let folder = Folder::new("sound");
    let compressed = gzip(sound().as_bytes());
    folder.write("run.json", sound());
    folder.write("run.json.gz", &compressed);
    folder.run(&["perfetto-fix", "run.json", "-o", "a.json"]).done();
    assert_eq!(folder.text("a.json"), sound());
    folder.run(&["perfetto-fix", "run.json.gz", "-o", "b.json.gz"]).done();
    assert!(folder.read("b.json.gz") == compressed, "even its compression is kept");
    folder.run(&["perfetto-fix", "run.json", "-o", "c.json.gz"]).done();
    assert!(gunzip(&folder.read("c.json.gz")) == sound().as_bytes());
    folder.run(&["perfetto-fix", "run.json.gz", "-o", "d.json"]).done();
    assert_eq!(folder.text("d.json"), sound());
}

#[test]
fn a_repaired_file_needs_no_repair() {
    let folder = Folder::new("twice");
    folder.write("run.json", damaged());
    folder.run(&["perfetto-fix", "run.json"]).done();
    let again = folder.run(&["perfetto-fix", "run.perfetto.json.gz", "-o", "again.json.gz"]).done();
    assert!(again.stderr.contains("No problems found"), "{}", again.stderr);
    assert!(folder.read("again.json.gz") == folder.read("run.perfetto.json.gz"));
}

#[test]
fn what_it_says_writes_and_logs() {
    let folder = Folder::new("log");
    folder.write("run.json", damaged());
    let arguments = ["perfetto-fix", "run.json", "-o", "out.json", "--log", "log.json"];
    let run = folder.run(&arguments).done();
    assert_golden("damaged.stderr.txt", &run.stderr);
    assert_golden("damaged.repaired.json", &folder.text("out.json"));
    assert_golden("damaged.log.json", &folder.text("log.json"));
    assert_eq!(folder.names(), ["log.json", "out.json", "run.json"]);
}

#[test]
fn only_clipping_changes_a_duration() {
    let folder = Folder::new("clip");
    folder.write("run.json", damaged());
    let arguments = ["perfetto-fix", "run.json", "-o", "out.json", "--log", "log.json"];
    let fixed = |arguments: &[&str]| {
        folder.run(arguments).done();
        let log: Value = serde_json::from_slice(&folder.read("log.json")).unwrap();
        let all = events(&folder.read("out.json"));
        let endless = all.into_iter().find(|event| event["name"] == "endless").unwrap();
        (endless, log)
    };
    let (kept, log) = fixed(&arguments);
    assert_eq!((&kept["dur"], &kept["args"]["original dur"]), (&900.0.into(), &Value::Null));
    assert_eq!(log["impossible"][0]["name"], "endless");
    assert_eq!(log["impossible"][0]["clipped"], false);
    let (clipped, log) = fixed(&[&arguments[..], &["--clip-impossible"]].concat());
    assert_eq!(clipped["dur"], 10.0, "to the next start on its stream");
    assert_eq!(clipped["args"]["original dur"], 900.0);
    assert_eq!(log["impossible"][0]["clipped"], true);
    assert_eq!(log["proof"]["holds"], true);
}

#[test]
fn labels_are_folded_only_on_request() {
    let folder = Folder::new("labels");
    folder.write("run.json", damaged());
    let name = |arguments: &[&str]| {
        folder.run(arguments).done();
        let all = events(&folder.read("out.json"));
        all.into_iter().find(|event| event["name"] == "process_name").unwrap()["args"]["name"]
            .clone()
    };
    let arguments = ["perfetto-fix", "run.json", "-o", "out.json"];
    assert_eq!(name(&arguments), "python");
    assert_eq!(name(&[&arguments[..], &["--fold-labels"]].concat()), "python [GPU 0]");
}

#[test]
fn the_input_is_never_overwritten() {
    let folder = Folder::new("input");
    folder.write("run.json", damaged());
    let refused = |arguments: &[&str]| {
        let run = folder.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(run.stderr.contains("is the input"), "{}", run.stderr);
    };
    refused(&["perfetto-fix", "run.json", "-o", "run.json"]);
    refused(&[
        "perfetto-fix",
        "./run.json",
        "-o",
        folder.path().join("run.json").to_str().unwrap(),
    ]);
    refused(&["perfetto-fix", "run.json", "--log", "run.json"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("run.json", folder.path().join("link.json")).unwrap();
        refused(&["perfetto-fix", "run.json", "-o", "link.json"]);
        refused(&["perfetto-fix", "link.json", "-o", "run.json"]);
    }
    assert_eq!(folder.text("run.json"), damaged());
}

#[test]
fn an_older_output_is_replaced_only_by_a_whole_one() {
    let folder = Folder::new("older");
    folder.write("out.json", "older");
    folder.write("bad.json", "no trace");
    assert_eq!(folder.run(&["perfetto-fix", "bad.json", "-o", "out.json"]).code, 3);
    assert_eq!(folder.text("out.json"), "older");
    folder.write("run.json", sound());
    folder.run(&["perfetto-fix", "run.json", "-o", "out.json"]).done();
    assert_eq!(folder.text("out.json"), sound());
    assert_eq!(folder.names(), ["bad.json", "out.json", "run.json"]);
}

/// The kernel stops a file at a size: a disk that is full, without filling one.
#[cfg(unix)]
#[test]
fn a_failed_write_leaves_nothing_behind() {
    let folder = Folder::new("full");
    folder.write("run.json", sound_and_long());
    let run = folder.run_limited(1_024, "perfetto-fix run.json -o out.json");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("cannot write out.json"), "{}", run.stderr);
    assert_eq!(folder.names(), ["run.json"]);
}

#[test]
fn a_log_that_cannot_be_written_is_said() {
    let folder = Folder::new("no-log");
    folder.write("run.json", sound());
    let run =
        folder.run(&["perfetto-fix", "run.json", "-o", "out.json", "--log", "absent/log.json"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("cannot write absent/log.json"), "{}", run.stderr);
    assert_eq!(folder.text("out.json"), sound(), "the repaired file is whole all the same");
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_not_replaced() {
    let folder = Folder::new("device");
    folder.write("run.json", sound());
    folder.run(&["perfetto-fix", "run.json", "-o", "/dev/null"]).done();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    std::os::unix::fs::symlink("target.json", folder.path().join("link.json")).unwrap();
    folder.write("target.json", "older");
    folder.run(&["perfetto-fix", "run.json", "-o", "link.json"]).done();
    assert_eq!(folder.text("target.json"), sound(), "a link stays a link");
}
