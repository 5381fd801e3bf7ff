//! What takes the time, and what to do first.

pub mod view;
