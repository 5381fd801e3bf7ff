//! The built program on real files: what it prints, what it writes, how it ends.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod audit;
mod bench_op;
mod breakdown;
mod common;
mod corpus;
mod corpus_golden;
mod documents;
mod endings;
mod folders;
mod kinds;
mod maps;
mod memory;
mod outputs;
mod overlap;
mod perfetto_fix;
mod places;
mod report;
mod same_run;
mod scaling;
mod step;
mod triage;
