//! `kinetoscope`: the page's analyses and repair, on files.
//!
//! The command line drives the same facade as the page; what it prints is what the page shows, and the
//! files it writes are the page's downloads, byte for byte. Files, the terminal and exit codes live here
//! and nowhere below.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod breakdown;
mod companions;
mod compare;
mod failure;
mod input;
mod interrupt;
mod output;
mod overlap;
mod perfetto_fix;
mod traces;
mod triage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Where GPU time goes, and traces that Perfetto shows whole. Nothing leaves this machine.
#[derive(Parser)]
#[command(name = "kinetoscope", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 a file could not be read or written, or the repaired \
                        file does not hold what the original did, 2 bad usage, 3 the input is no trace, \
                        130 interrupted."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a repaired trace, in which Perfetto drops and flags nothing.
    PerfettoFix(perfetto_fix::Arguments),
    /// Print where GPU time goes: totals, categories, kernels, and what is wrong with the file.
    Breakdown(breakdown::Arguments),
    /// Print where GPU time comes from, what could overlap and what could fuse; write the artifacts of it.
    Triage(triage::Arguments),
    /// Print what could run beside something else, with the surroundings of each row drawn as text.
    Overlap(overlap::Arguments),
    /// Print two runs side by side, and first whether they may be compared.
    Compare(compare::Arguments),
}

fn main() -> ExitCode {
    // Usage errors exit with 2 here, as clap does by itself.
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::PerfettoFix(arguments) => perfetto_fix::run(&arguments),
        Command::Breakdown(arguments) => breakdown::run(&arguments),
        Command::Triage(arguments) => triage::run(&arguments),
        Command::Overlap(arguments) => overlap::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
