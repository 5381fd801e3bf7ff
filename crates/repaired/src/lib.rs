//! A repaired file: written in one pass over the original, verified by two independent counts, and described.
//!
//! Constraints of this crate:
//!
//! * [`Repairer`] takes the file's bytes in pieces of any size and gives the repaired ones; it holds no file;
//! * the counts of input and output share no code with the plan ([`Proof`]);
//! * what is said of a repair is read from its plan, not decided again.

#![warn(unreachable_pub)]

mod crossings;
mod digest;
mod gzip;
mod log_json;
mod places;
mod problems;
mod proof;
mod repair_report;
mod repair_rows;
mod repairer;
mod text_faults;

pub use crossings::{Crossings, crossings};
pub use log_json::{REPAIR_LOG_SCHEMA, repair_log_json};
pub use places::{DrawnLane, DrawnSlice, Fate, Place};
pub use problems::{ProblemRow, problem_table};
pub use proof::{Proof, ProofRow, proof_table};
pub use repair_report::RepairReport;
pub use repair_rows::LogRow;
pub use repairer::{Output, Repairer};

/// Version of Kinetoscope, as it stands in the log.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
