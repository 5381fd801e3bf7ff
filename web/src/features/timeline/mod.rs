//! The timeline, as a view and below the others.

mod beneath;
pub mod dock;
pub mod queries;
pub mod state;
pub mod view;
