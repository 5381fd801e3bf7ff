//! Derivations: pure functions from state and reports to the values that views draw. No effects, no browser.

pub mod address;
pub mod aside;
pub mod cards;
pub mod columns;
pub mod commands;
pub mod compare;
pub mod dock;
pub mod filter;
pub mod grid;
pub mod order;
pub mod page;
pub mod palette;
pub mod panel;
pub mod roles;
pub mod scroll;
pub mod stages;
pub mod status;
pub mod window;
pub mod wish;
