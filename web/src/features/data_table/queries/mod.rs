//! What a table shows, as lists of row numbers.

pub mod columns;
pub mod filter;
pub mod grid;
pub mod link;
pub mod order;
pub mod panel;
pub mod scroll;
