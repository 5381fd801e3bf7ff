//! Artifacts, and the run details that are not in a trace.

pub mod facts_form;
pub mod protocol;
pub mod queries;
pub mod state;
pub mod view;
