//! Everything that can be done, with a filter, and what keys do.

pub mod queries;
pub mod view;
