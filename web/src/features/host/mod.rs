//! The diagnosis, and what the CPU did.

pub mod view;
