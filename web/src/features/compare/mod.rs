//! Two runs side by side.

pub mod queries;
pub mod run_picker;
pub mod view;
