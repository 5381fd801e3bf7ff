//! Files that belong to others: related files, and runs that are compared.

pub mod companions;
pub mod protocol;
pub mod queries;
pub mod state;
