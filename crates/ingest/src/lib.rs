//! The entrance for the bytes of a file: decompression, and what kind of file it is.
//!
//! Constraints of this crate:
//!
//! * no I/O: bytes are pushed, in pieces of any size, and the result does not depend on the pieces;
//! * a kind is recognised by content, never by name, and a pickle is never deserialised;
//! * only what a format's own bytes prove is named; everything else is "not recognised", with advice.
//!
//! [`Unpacker`] decompresses, [`Beginning`] names a file by its first bytes, and [`Document`] a JSON file without events by
//! its keys. Why it is so: docs/adr/0014.

#![warn(unreachable_pub)]

pub mod gunzip;
mod kind;
mod rules;
mod text;
mod unpack;

pub use kind::{FileKind, Kind, Reader};
pub use rules::{Beginning, Document};
pub use text::{NotText, text_of_file};
pub use unpack::{Unpacked, Unpacker};
