//! What is wrong with a file, and the repaired file.

pub mod problems;
pub mod protocol;
pub mod view;
