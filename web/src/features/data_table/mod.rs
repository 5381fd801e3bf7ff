//! The table of every view: sorted, filtered, narrowed and copied as a person sets it.

pub mod queries;
mod view;

pub use view::{DataTable, copy_button};
