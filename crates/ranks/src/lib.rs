//! What the ranks of one run wait for in their collectives.
//!
//! Constraints of this crate:
//!
//! * a rank is a device of a file with several, or a file; what is known of one is its [`RankCalls`], and nothing here needs two traces
//!   at once;
//! * no time is told where a gate is shut: that the matches are right and the clocks are one follows from the calls themselves;
//! * it knows nothing of triage and of findings.

mod axes;
mod begins;
mod by_group;
mod bytes;
mod calls;
mod clocks;
mod cpu_gates;
mod cpu_waits;
mod groups;
mod known;
mod listed;
mod matched;
mod on_cpu;
mod replay;
mod rows;
mod runs;
mod same_calls;
mod section;
mod senders;
mod unmatched;
mod waits;

pub use calls::RankCalls;
pub use matched::Matched;
pub use replay::{sooner_without_communication_ns, waits_on_cpu};
pub use runs::{OneRun, Runs};
pub use section::Compared;
pub use waits::{WaitFor, Waits};
