//! Time by category.

pub mod view;
