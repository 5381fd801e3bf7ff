//! How a command ends when it cannot go on.

use std::fmt;
use std::process::ExitCode;

use kinetoscope::{NotASnapshot, NotATrace, Reader};

use crate::interrupt::{self, Interrupted};

/// The arguments make no sense together; clap cannot see it.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Says why on stderr and chooses the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // `kinetoscope breakdown ... | head` is no failure.
        return ExitCode::SUCCESS;
    }
    eprintln!("kinetoscope: {error:#}");
    if let Some(what) = error.downcast_ref::<NotATrace>() {
        if !what.excerpt.is_empty() {
            eprintln!("  at byte {}: {}", what.offset, what.excerpt);
        }
        match what.kind.reader() {
            Some(Reader::KernelMap) => eprintln!("  load it with --map"),
            Some(Reader::ServerFlags) => eprintln!("  load it with triage --server-args"),
            // (A list of captures is read by itself, from the folder of a capture.)
            Some(Reader::Snapshot) => eprintln!("  read it with kinetoscope memory"),
            Some(Reader::Captures | Reader::Trace) | None => {}
        }
        return ExitCode::from(3);
    }
    if error.is::<NotASnapshot>() {
        return ExitCode::from(3);
    }
    if error.is::<Interrupted>() {
        return ExitCode::from(interrupt::EXIT_CODE);
    }
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
