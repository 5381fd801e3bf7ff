//! The page and its worker.
//!
//! Constraints of this package, the only one that knows a browser:
//!
//! * the page holds no trace and runs no analysis: it shows [`protocol`] values that a worker sends;
//! * [`state`] changes in one pure reducer, [`queries`] derive from it, `tasks` have the effects;
//! * nothing is set by `style` attributes and nothing is loaded from another origin: the page's
//!   Content-Security-Policy forbids both;
//! * `protocol`, `state`, `queries` and the worker's core run in native tests.

pub mod protocol;
pub mod queries;
pub mod shared;
pub mod state;
