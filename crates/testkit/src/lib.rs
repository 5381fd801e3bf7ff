//! Test support, the samples of this repository, and the example trace. Development only: the product does not depend on it.
//!
//! Constraints of this crate:
//!
//! * it depends on no other crate of the workspace, so that every crate may use it in its tests;
//! * traces are made as *text* ([`Kineto`]), the form in which they reach the product;
//! * everything is deterministic: a sample has the same bytes on every machine.

#![warn(unreachable_pub)]

pub mod example;
mod golden;
mod gzip;
mod keys;
mod kinds;
mod kineto;
pub mod nasty;
mod prng;
mod samples;
mod scenarios;
mod scenes;
mod shared;
mod sim;
mod tally;
mod truth;

pub use golden::assert_golden;
pub use gzip::{gunzip, gzip};
pub use keys::assert_keys;
pub use kinds::{TRACES, kinds};
pub use kineto::{Kineto, KinetoEvent, event};
pub use samples::{
    Sample, counterexamples, nasty_samples, own_trace_samples, recorded_snapshots, scene_gz,
    trace_samples,
};
pub use scenarios::{Scenario, scenarios};
pub use scenes::Scene;
pub use shared::{real_trace, real_traces, shared};
