//! The cards of the open files.

pub mod file_cards;
pub mod queries;
