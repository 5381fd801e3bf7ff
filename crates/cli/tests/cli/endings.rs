//! Exit codes, each with its reason on stderr.

use crate::common::{Folder, damaged, sound};

#[test]
fn done_is_0() {
    let folder = Folder::new("done");
    folder.write("run.json", damaged());
    for arguments in [&["breakdown", "run.json"][..], &["perfetto-fix", "run.json"], &["--help"]] {
        let run = folder.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(folder.run(&["breakdown", "run.json"]).stderr, "");
}

#[test]
fn help_says_what_the_codes_mean() {
    let folder = Folder::new("help");
    let help = folder.run(&["--help"]).stdout;
    for word in ["0 success", "1 a file", "failed its verification", "2 bad usage", "3 the", "130"]
    {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_1() {
    let folder = Folder::new("unreadable");
    folder.write("run.json", sound());
    std::fs::create_dir(folder.path().join("out.json")).unwrap();
    let table: [(&[&str], &str); 8] = [
        (&["breakdown", "absent.json"], "cannot read absent.json"),
        (&["overlap", "absent.json"], "cannot read absent.json"),
        (&["triage", "run.json", "--map", "absent.json"], "cannot read absent.json"),
        (
            &["triage", "run.json", "--export-map", "absent/map.json"],
            "cannot write absent/map.json",
        ),
        (&["perfetto-fix", "absent.json"], "cannot read absent.json"),
        (&["perfetto-fix", "."], "cannot read ."),
        (&["perfetto-fix", "run.json", "-o", "absent/out.json"], "cannot write absent/out.json"),
        (&["perfetto-fix", "run.json", "-o", "out.json"], "it is a folder"),
    ];
    for (arguments, reason) in table {
        let run = folder.run(arguments);
        assert_eq!(run.code, 1, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("kinetoscope: "), "{}", run.stderr);
        assert!(run.stderr.contains(reason), "{}", run.stderr);
    }
    assert_eq!(folder.names(), ["out.json", "run.json"]);
}

#[test]
fn bad_usage_is_2() {
    let folder = Folder::new("usage");
    folder.write("run.json", sound());
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let table: [&[&str]; 16] = [
        &[],
        &["breakdown"],
        &["overlap"],
        &["overlap", "run.json", "--span", "0"],
        &["breakdown", "empty"],
        &["breakdown", "run.json", "run.json", "--json"],
        &["breakdown", "run.json", "--json", "--timeline"],
        &["triage", "run.json", "--rank", "0", "--all-ranks"],
        &["triage", "run.json", "run.json", "--export-map", "map.json"],
        &["overlap", "run.json", "--mapping", "empty"],
        &["perfetto-fix"],
        &["repair", "run.json"],
        &["breakdown", "run.json", "--yaml"],
        &["perfetto-fix", "run.json", "-o", "run.json"],
        &["perfetto-fix", "run.json", "--log", "./run.json"],
        &["perfetto-fix", "run.json", "-o", "out.json", "--log", "out.json"],
    ];
    for arguments in table {
        let run = folder.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty(), "{arguments:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
    assert_eq!(folder.names(), ["empty", "run.json"]);
    assert_eq!(folder.text("run.json"), sound(), "the input is never touched");
}

#[test]
fn no_trace_is_3_with_its_kind_and_what_to_do() {
    let folder = Folder::new("no-trace");
    let table: [(&str, &[u8], &str); 5] = [
        ("empty.json", b"", "empty"),
        ("page.html", b"<!DOCTYPE html><html><body>hello</body></html>", "web page"),
        ("snapshot.pickle", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94.", "pickle"),
        ("python.txt", b"{'traceEvents': [{'ph': 'X'}]}", "printed Python object"),
        ("none.json", b"{\"a\": 1}", "traceEvents"),
    ];
    for (name, bytes, reason) in table {
        folder.write(name, bytes);
        for command in ["breakdown", "perfetto-fix", "triage", "overlap"] {
            let run = folder.run(&[command, name]);
            assert_eq!(run.code, 3, "{name}: {}", run.stderr);
            assert!(run.stderr.starts_with(&format!("kinetoscope: {name}: ")), "{}", run.stderr);
            assert!(run.stderr.contains(reason), "{name}: {}", run.stderr);
            assert_eq!(run.stdout, "", "{name}");
        }
    }
    assert_eq!(folder.names().len(), table.len(), "nothing was written: {:?}", folder.names());
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new("pipe");
    folder.write("run.json", damaged());
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kinetoscope"))
        .args(["breakdown", "run.json", "--json"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once_but_not_twice() {
    use std::io::Write as _;
    let folder = Folder::new("stdin");
    let run = |command: &str| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kinetoscope"))
            .args([command, "/dev/stdin"])
            .current_dir(folder.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses need not read it all.
        let _ = child.stdin.take().unwrap().write_all(sound().as_bytes());
        child.wait_with_output().unwrap()
    };
    assert_eq!(run("breakdown").status.code(), Some(0));
    let fix = run("perfetto-fix");
    assert_eq!(fix.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&fix.stderr).contains("read twice"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_half_written() {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    let folder = Folder::new("interrupt");
    folder.write_large();
    for signal in ["INT", "TERM"] {
        folder.write("out.json.gz", "old");
        let mut child: Child = Command::new(env!("CARGO_BIN_EXE_kinetoscope"))
            .args(["perfetto-fix", "run.json", "-o", "out.json.gz"])
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !folder.names().iter().any(|name| name.ends_with(".partial")) {
            assert!(
                begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "kinetoscope: interrupted\n");
        assert_eq!(folder.names(), ["out.json.gz", "run.json"], "{signal}");
        assert_eq!(folder.text("out.json.gz"), "old", "{signal}");
    }
}
