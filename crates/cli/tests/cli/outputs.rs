//! No output replaces an input, whatever its name; what is replaced is said; nothing partial stays.

use std::path::Path;

use crate::common::{Folder, damaged, sound, sound_and_long};

const OUTPUTS: [&str; 7] = [
    "fuse_opportunities.json",
    "kernel_table.json",
    "kinetoscope_artifacts.zip",
    "overlap_opportunities.json",
    "perfetto_fixed_trace.json.gz",
    "profile_metadata.json",
    "profile_summary.md",
];

/// Every file below a folder with its content, links followed.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                files.push((path.to_string_lossy().into_owned(), content));
            }
        }
    }
    files.sort();
    files
}

/// The command must be refused as bad usage, before it prints or writes anything.
#[track_caller]
fn refused(folder: &Folder, arguments: &[&str]) {
    let before = contents(folder.path());
    let run = folder.run(arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains("is the input"), "{arguments:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{arguments:?}");
    assert!(before == contents(folder.path()), "{arguments:?}: a file changed");
}

/// Other names of a file: another spelling, and on Unix links of both kinds and a linked folder. Returned with the
/// folder in which they were made.
fn aliases(folder: &Folder, file: &str) -> Vec<String> {
    let mut names = vec![
        file.to_owned(),
        format!("./{file}"),
        folder.path().join(file).to_string_lossy().into_owned(),
    ];
    #[cfg(unix)]
    {
        let flat = file.replace('/', "-");
        let (soft, hard) = (format!("soft-{flat}"), format!("hard-{flat}"));
        let _ = std::os::unix::fs::symlink(file, folder.path().join(&soft));
        let _ = std::fs::hard_link(folder.path().join(file), folder.path().join(&hard));
        let _ = std::os::unix::fs::symlink(".", folder.path().join("around"));
        names.extend([soft, hard, format!("around/{file}")]);
    }
    names
}

#[test]
fn perfetto_fix_replaces_no_input() {
    let folder = Folder::new("keep-fix");
    folder.write("run.json", damaged());
    for name in aliases(&folder, "run.json") {
        refused(&folder, &["perfetto-fix", "run.json", "-o", &name]);
        refused(&folder, &["perfetto-fix", &name, "-o", "run.json"]);
        refused(&folder, &["perfetto-fix", "run.json", "-o", "out.json", "--log", &name]);
        refused(&folder, &["perfetto-fix", &name, "--log", "run.json"]);
    }
}

/// A folder with every kind of input, and the command that reads them all.
fn every_input(name: &str) -> (Folder, Vec<&'static str>) {
    let folder = Folder::new(name);
    folder.write("run.json", sound());
    folder.write("mapping.json", sound());
    folder.run(&["triage", "mapping.json", "--export-map", "map.json"]).done();
    std::fs::create_dir(folder.path().join("captures")).unwrap();
    folder.write("captures/capture.json", sound());
    folder.write("captures/execution_details.json", "[]");
    folder.write("facts.json", "{}");
    folder.write("flags.json", "{}");
    folder.write("server_args.json", "{}");
    folder.write("bench.json", "{}");
    let command = vec![
        "triage",
        "run.json",
        "--mapping",
        "mapping.json",
        "--map",
        "map.json",
        "--capture",
        "captures/capture.json",
        "--facts",
        "facts.json",
        "--server-args",
        "flags.json",
        "--benchmark-config",
        "bench.json",
    ];
    (folder, command)
}

const INPUTS: [&str; 9] = [
    "run.json",
    "mapping.json",
    "map.json",
    "captures/capture.json",
    "captures/execution_details.json",
    "facts.json",
    "flags.json",
    "server_args.json",
    "bench.json",
];

#[test]
fn an_exported_map_replaces_no_input() {
    let (folder, command) = every_input("keep-map");
    for input in INPUTS {
        for name in aliases(&folder, input) {
            refused(&folder, &[&command[..], &["--export-map", &name]].concat());
        }
    }
    // The command itself is sound.
    folder.run(&[&command[..], &["--export-map", "new.json"]].concat()).done();
}

#[test]
fn artifacts_replace_no_input() {
    for input in INPUTS {
        for output in OUTPUTS {
            let (folder, command) = every_input("keep-out");
            // The input has the name of an artifact in the folder of the artifacts.
            std::fs::create_dir(folder.path().join("out")).unwrap();
            let moved = format!("out/{output}");
            std::fs::rename(folder.path().join(input), folder.path().join(&moved)).unwrap();
            let command: Vec<&str> =
                command.iter().map(|word| if *word == input { &moved[..] } else { word }).collect();
            // Lists that are found by their names have them.
            if command.contains(&&moved[..]) {
                refused(&folder, &[&command[..], &["--out", "out", "--zip"]].concat());
                refused(&folder, &[&command[..], &["--out", "./out/../out", "--zip"]].concat());
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn artifacts_replace_no_input_through_links() {
    for input in INPUTS {
        for output in ["kernel_table.json", "perfetto_fixed_trace.json.gz"] {
            for hard in [false, true] {
                let (folder, command) = every_input("keep-linked");
                std::fs::create_dir(folder.path().join("out")).unwrap();
                let (from, to) =
                    (folder.path().join(input), folder.path().join("out").join(output));
                match hard {
                    true => std::fs::hard_link(from, to).unwrap(),
                    false => std::os::unix::fs::symlink(from, to).unwrap(),
                }
                refused(&folder, &[&command[..], &["--out", "out"]].concat());
            }
        }
    }
}

#[test]
fn files_of_folders_are_inputs_also_those_of_other_ranks() {
    let folder = Folder::new("keep-folder");
    std::fs::create_dir_all(folder.path().join("run/deep")).unwrap();
    folder.write("run/TP-0.json", sound());
    folder.write("run/deep/TP-1.json", sound());
    // By its name no trace, and yet one.
    folder.write("run/kernel_table.json", sound());
    refused(&folder, &["triage", "run", "--rank", "0", "--export-map", "run/deep/TP-1.json"]);
    refused(&folder, &["triage", "run", "--rank", "0", "--out", "run"]);
    for flag in ["--mapping", "--capture"] {
        folder.write("own.json", sound());
        let command = ["triage", "own.json", flag, "run", "--export-map", "run/deep/TP-1.json"];
        refused(&folder, &command);
    }
    // With several traces each has a folder of its own, and none of them is an input's.
    std::fs::create_dir_all(folder.path().join("out/TP-1")).unwrap();
    folder.write("out/TP-1/kernel_table.json", sound());
    let command = ["triage", "run/TP-0.json", "run/deep/TP-1.json", "out/TP-1/kernel_table.json"];
    refused(&folder, &[&command[..], &["--all-ranks", "--out", "out"]].concat());
}

#[test]
fn an_older_output_in_an_input_folder_is_replaced_and_said() {
    let folder = Folder::new("replace");
    std::fs::create_dir(folder.path().join("run")).unwrap();
    folder.write("run/a.json", sound());
    let command = ["triage", "run", "--out", "run", "--zip", "--export-map", "run/kernel_map.json"];
    let first = folder.run(&command).done();
    assert!(!first.stderr.contains("replaced"), "{}", first.stderr);
    let second = folder.run(&command).done();
    assert!(second.stderr.contains("replaced 8 existing files: "), "{}", second.stderr);
    assert!(second.stderr.contains("run/kernel_table.json"), "{}", second.stderr);
    assert_eq!(folder.text("run/a.json"), sound());
    folder.run(&["perfetto-fix", "run/a.json", "-o", "fixed.json", "--log", "log.json"]).done();
    let again = ["perfetto-fix", "run/a.json", "-o", "fixed.json", "--log", "log.json"];
    let again = folder.run(&again).done();
    for name in ["fixed.json", "log.json"] {
        let line = format!("replaced the existing {name}\n");
        assert!(again.stderr.contains(&line), "{}", again.stderr);
    }
}

#[test]
fn two_outputs_have_two_names() {
    let folder = Folder::new("two-outputs");
    folder.write("run.json", sound());
    for arguments in [
        &["perfetto-fix", "run.json", "-o", "out.json", "--log", "./out.json"][..],
        &["triage", "run.json", "--out", "out", "--export-map", "out/kernel_table.json"],
    ] {
        std::fs::create_dir_all(folder.path().join("out")).unwrap();
        let run = folder.run(arguments);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("another output"), "{}", run.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_triage_that_cannot_write_everything_leaves_nothing() {
    let folder = Folder::new("triage-full");
    folder.write("run.json", sound_and_long());
    let run = folder.run_limited(1, "triage run.json --out a/b --export-map m.json");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("cannot write"), "{}", run.stderr);
    assert_eq!(folder.names(), ["run.json"]);
}

#[cfg(unix)]
#[test]
fn a_report_is_not_appended_to_an_input() {
    let folder = Folder::new("append");
    folder.write("run.json", sound());
    folder.write("other.json", sound());
    let hard = folder.path().join("hard.json");
    std::fs::hard_link(folder.path().join("run.json"), &hard).unwrap();
    for arguments in [
        &["breakdown", "run.json"][..],
        &["triage", "run.json"],
        &["overlap", "run.json"],
        &["overlap", "other.json", "--mapping", "run.json"],
        &["compare", "other.json", "run.json"],
    ] {
        for name in ["run.json", "hard.json"] {
            let file = std::fs::File::options().append(true).open(folder.path().join(name));
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_kinetoscope"))
                .args(arguments)
                .current_dir(folder.path())
                .stdout(file.unwrap())
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
            assert!(stderr.contains("standard output is the input"), "{stderr}");
            assert_eq!(folder.text("run.json"), sound(), "{arguments:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_triage_leaves_nothing() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let folder = Folder::new("triage-interrupt");
    folder.write_large();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kinetoscope"))
        .args(["triage", "run.json", "--out", "new/out", "--export-map", "map.json"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // The map and the artifacts are written, the repaired trace is at work.
    let fixed = || {
        let names = std::fs::read_dir(folder.path().join("new/out")).into_iter().flatten();
        let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.any(|name| name.starts_with("perfetto_fixed_trace") && name.ends_with(".partial"))
    };
    while !fixed() {
        assert!(begun.elapsed() < Duration::from_secs(120) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "kinetoscope: interrupted\n");
    assert_eq!(folder.names(), ["run.json"]);
}
