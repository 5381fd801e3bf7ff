//! Derivations that several features share: pure functions from state and reports to the values that views draw. No
//! effects, no browser.

pub mod address;
pub mod page;
pub mod palette;
pub mod status;
