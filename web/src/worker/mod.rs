//! The worker: decodes one file, analyses it with its related files, plans and writes its repair. It has four
//! programs ([`crate::protocol::Program`]), so that the first screen does not wait for what few files need.
//!
//! `session` is the whole worker without a browser, and runs in native tests; `port` connects it to the
//! browser's file reader and messages.

mod artifacts;
mod canvas;
mod damage;
mod hint;
mod lanes;
mod memory;
mod page;
mod port;
mod session;
mod svg;
mod tones;

pub use port::{start, start_drawing};
pub use session::{FirstSession, LanesSession, SnapshotSession, TriageSession};
