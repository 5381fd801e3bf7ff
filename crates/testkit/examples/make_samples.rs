//! Writes the samples of this repository as files: `make_samples FOLDER`. In it, `nasty` and `counterexamples` have the small
//! traces that are wrong in one way each, `traces` and `truth` the others and their figures, as the corpus has them.

use std::path::Path;
use std::process::ExitCode;

use testkit::nasty::{COUNTEREXAMPLES, NASTY};

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(std::path::PathBuf::from) else {
        report("usage: make_samples FOLDER");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(n) => {
            report(&format!("{n} samples"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            report(&format!("{}: {error}", folder.display()));
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr, reason = "a command line program")]
fn report(line: &str) {
    eprintln!("{line}");
}

fn write(folder: &Path) -> std::io::Result<usize> {
    let mut n = 0;
    for (kind, table) in [("nasty", NASTY), ("counterexamples", COUNTEREXAMPLES)] {
        for nasty in table {
            put(folder, kind, nasty.name, &nasty.bytes())?;
            n += 1;
        }
    }
    for sample in testkit::own_trace_samples() {
        put(folder, "traces", &sample.name, &sample.bytes())?;
        let truth = format!("{:#}\n", sample.truth());
        put(folder, "truth", &format!("{}.truth.json", sample.stem()), truth.as_bytes())?;
        n += 1;
    }
    Ok(n)
}

fn put(folder: &Path, kind: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join(kind))?;
    std::fs::write(folder.join(kind).join(name), bytes)
}
