//! A file that is not a trace but belongs to traces.

pub mod queries;
pub mod view;
