//! What a trace and the views of memory have to say to each other.
//!
//! Constraints of this crate:
//!
//! * it decodes nothing: a snapshot comes as [`snapshot::RunFacts`], so that no program holds a trace and a snapshot at once;
//! * that two files are of one run is shown, likely or not shown, and the text says by what;
//! * what follows from clocks alone is marked as an estimate.

#![warn(unreachable_pub)]

mod events;
mod same_run;
mod sections;

pub use events::{device_name, timeline_of_events};
pub use same_run::{Evidence, Located, SameRun, Verdict, Why, same_run};
