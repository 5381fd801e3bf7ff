//! How a command ends when it cannot go on.

use std::process::ExitCode;

use kinetoscope::NotATrace;

/// Says why on stderr and chooses the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // `kinetoscope breakdown ... | head` is no failure.
        return ExitCode::SUCCESS;
    }
    eprintln!("kinetoscope: {error:#}");
    match error.downcast_ref::<NotATrace>() {
        Some(what) => {
            if !what.excerpt.is_empty() {
                eprintln!("  at byte {}: {}", what.offset, what.excerpt);
            }
            ExitCode::from(3)
        }
        None => ExitCode::from(1),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
