//! Bytes of a file to a [`Trace`] and what is wrong with the file.
//!
//! Constraints of this crate:
//!
//! * no I/O: bytes are pushed in pieces of any size, and any pieces of the same file give the same result;
//! * bad input is data: only a file that is no trace at all is an error ([`NotATrace`]), everything else
//!   is a trace and a list of [`Problem`]s;
//! * every `{...}` of the event array becomes a row, however hopeless: flags say what is wrong with it,
//!   and repair decides;
//! * the format is recognised by content, never by name, and a pickle is never deserialised.
//!
//! [`Trace`]: trace::Trace

mod decoder;
mod details;
mod event;
mod excerpt;
pub mod gunzip;
mod layout;
mod not_a_trace;
mod problem;
mod sniff;

pub use decoder::{Decoded, Decoder, Source};
pub use details::DetailsReader;
pub use not_a_trace::{FileKind, NotATrace};
pub use problem::{Problem, ProblemKind, Severity};

/// Whether a raw JSON key (without quotes) is one that trace events have: what the scanner looks for when
/// it finds its way back after damage.
#[must_use]
pub fn is_event_key(key: &[u8]) -> bool {
    event::Events::is_event_key(key)
}
