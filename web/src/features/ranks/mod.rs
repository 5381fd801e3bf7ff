//! Several ranks of one run.

pub mod state;
