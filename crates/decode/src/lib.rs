//! Decodes the bytes of a file to a [`Trace`] and a list of [`Problem`]s.
//!
//! Constraints of this crate:
//!
//! * no I/O: bytes are pushed in pieces of any size, and the size does not change the result;
//! * bad input is data: only a file that is not a trace is an error ([`NotATrace`]), everything else
//!   is a trace and a list of [`Problem`]s;
//! * every `{...}` of the event array becomes a row: flags record what is wrong with it,
//!   and repair decides what happens to it;
//! * the format is recognised by content, never by name, and a pickle is never deserialised.
//!
//! [`Trace`]: trace::Trace

#![warn(unreachable_pub)]

mod counters;
mod decoder;
mod details;
mod event;
mod excerpt;
mod layout;
mod not_a_trace;
mod pairs;
mod pieces;
mod problem;

pub use counters::{Counters, CountersReader};
pub use decoder::{Decoded, Decoder, Source};
pub use details::DetailsReader;
pub use ingest::FileKind;
pub use not_a_trace::NotATrace;
pub use problem::{Problem, ProblemKind, Severity};

/// Whether a raw JSON key (without quotes) is one that trace events have: what the scanner looks for when
/// it finds its way back after damage.
#[must_use]
pub fn is_event_key(key: &[u8]) -> bool {
    event::Events::is_event_key(key)
}

/// Whether Perfetto takes a value for a time: a number, or a string that holds one as JSON spells it. Of equal keys of
/// an event the last such value counts.
#[must_use]
pub fn is_time(value: Option<scan::Value<'_>>) -> bool {
    value.is_some_and(event::number::is_time)
}
