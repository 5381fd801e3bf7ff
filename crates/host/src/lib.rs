//! What the host did: ops, threads, frames of Python, steps, calls, copies, modules, floating point operations and memory,
//! and how they explain the times in which the GPU stood still.
//!
//! Constraints of this crate:
//!
//! * every figure is exact, in ns, and has one definition, which is that of the reference figures; the doc comment of its field
//!   states it;
//! * a slice has the family of its raw category; slices nest by time on their thread ([`slices::Nested`]);
//! * no analysis fails, reads a clock or iterates a hash map;
//! * figures only: what follows from them is the diagnosis's matter.

pub mod benchmark;
pub mod by_name;
pub mod calls;
pub mod class;
mod columns;
pub mod copies;
pub mod custom_ops;
pub mod doing;
pub mod flops;
pub mod frames;
pub mod gaps;
pub mod idle;
pub mod key_averages;
mod lines;
pub mod links;
pub mod memory;
pub mod memory_over_time;
pub mod misaligned;
pub mod modules;
pub mod numbers;
pub mod ops;
pub mod rates;
mod report;
pub mod slices;
pub mod steps;
mod tables;
mod tensors;
pub mod threads;
pub mod traffic;
pub mod verdicts;

pub use report::{HostIndex, HostReport, host, wants_inputs};
pub use slices::{HostSlice, Slices};
