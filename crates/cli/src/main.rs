//! `kinetoscope`: the page's analyses and repair, for files.
//!
//! The command line uses the same facade as the page: it prints the page's tables, and the files that it writes
//! equal the page's downloads, byte for byte. Only this crate handles files, the terminal and exit codes.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod bench_op;
mod breakdown;
mod companions;
mod compare;
mod cpu;
mod diagnose;
mod failure;
mod guard;
mod input;
mod interrupt;
mod memory;
mod output;
mod overlap;
mod perfetto_fix;
mod report;
mod run_ranks;
mod scaling;
mod step;
mod traces;
mod triage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Analyse PyTorch profiler traces, and repair them for Perfetto. No data leaves this machine.
#[derive(Parser)]
#[command(name = "kinetoscope", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 success; 1 a file could not be read or written, or the repaired file failed its verification; 2 bad usage; 3 the input is not a trace; 130 interrupted."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a repaired trace that Perfetto opens without dropped slices or errors.
    PerfettoFix(perfetto_fix::Arguments),
    /// Print GPU time by category, family, kernel and stream, and the problems in the file.
    Breakdown(breakdown::Arguments),
    /// Print stages, kernels with their ops and Python lines, and overlap and fusion opportunities; write them as artifacts.
    Triage(triage::Arguments),
    /// Print the overlap opportunities, each with its neighbours drawn as text.
    Overlap(overlap::Arguments),
    /// Print what the CPU did: ops, threads, steps, calls, gaps, copies, modules, floating point operations and memory.
    Cpu(cpu::Arguments),
    /// Print what a GPU memory snapshot shows: totals, peak, call sites, fragmentation, failed allocations and growth.
    Memory(memory::Arguments),
    /// Print why a run is slow, and what to do first.
    Diagnose(diagnose::Arguments),
    /// Write a report on resources as Markdown, JSON or HTML: what a run uses, what limits it, and what to do first.
    Report(report::Arguments),
    /// Print how the time of an iteration follows the batch size, from several traces of one model.
    Scaling(scaling::Arguments),
    /// Print a PyTorch script that times one op alone, with the sizes, types, strides and values that the trace recorded.
    BenchOp(bench_op::Arguments),
    /// Compare two runs, after a check that they are comparable.
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
        Command::Cpu(arguments) => cpu::run(&arguments),
        Command::Memory(arguments) => memory::run(&arguments),
        Command::Diagnose(arguments) => diagnose::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Scaling(arguments) => scaling::run(&arguments),
        Command::BenchOp(arguments) => bench_op::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
