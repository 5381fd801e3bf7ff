//! Writes the example trace: `make_example OUT.json.gz` (or `OUT.json`).

use std::process::ExitCode;

#[allow(clippy::print_stderr, reason = "a command line program")]
fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1).map(std::path::PathBuf::from) else {
        eprintln!("usage: make_example OUT.json.gz | OUT.json");
        return ExitCode::from(2);
    };
    let bytes = if path.extension().is_some_and(|ext| ext == "gz") {
        testkit::example::json_gz()
    } else {
        testkit::example::json().into_bytes()
    };
    match std::fs::write(&path, bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
