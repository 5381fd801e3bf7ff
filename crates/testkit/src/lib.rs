//! Test support, and the example trace. Development only: the product does not depend on it.
//!
//! Constraints of this crate:
//!
//! * it depends on no other crate of the workspace, so that every crate may use it in its tests;
//! * traces are made as *text* ([`Kineto`]), the form in which they reach the product;
//! * everything is deterministic: the example trace has the same bytes on every machine.

pub mod example;
mod golden;
mod keys;
mod kineto;
mod shared;

pub use golden::assert_golden;
pub use keys::assert_keys;
pub use kineto::{Kineto, KinetoEvent, event};
pub use shared::{gunzip, real_trace, real_traces, shared};
