//! A push scanner for JSON in chunks, also truncated or with stray commas. It contains nothing about traces.
//!
//! Constraints of this crate:
//!
//! * no I/O, no recursion, no `unsafe`; memory is bounded by the longest element, never by the file;
//! * one pass: a [`Cursor`] reads an element in place in the caller's chunk, and only an element that a
//!   chunk boundary cuts is copied;
//! * any chunking of the same bytes gives the same calls on the [`Sink`], and the time is linear in the
//!   bytes for any input;
//! * code that runs for every element is in functions of moderate size, called for each element or value, and
//!   rare code is outside of them (`#[inline(never)]`, `#[cold]`). V8 replaces the baseline code of a wasm
//!   function only at its next call, and its optimising compiler needs more than twice the time for a function
//!   of twice the size: one large function cost a third of a decode in a new tab;
//! * lenient reading is always reported: text that is not strict JSON in UTF-8 is flagged ([`Cursor::lenient`])
//!   and can be located and rewritten ([`strict`]).

#![warn(unreachable_pub)]

mod ahead;
mod cursor;
mod decimal;
mod keys;
mod lexis;
mod nest;
pub mod object;
mod quirk;
mod scanner;
mod skip;
mod splitter;
pub mod strict;
pub mod string;
mod value;

pub use ahead::Ahead;
pub use cursor::Cursor;
pub use decimal::Decimal;
pub use keys::Keys;
pub use quirk::Quirk;
pub use scanner::{Defect, DefectKind, Frame, Member, Place, Scanner, Sink};
pub use splitter::{Part, PartSink, Splitter};
pub use value::{Spelling, Stop, Text, Value};
