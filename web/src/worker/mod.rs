//! The worker: decodes one file, analyses it with what others tell of it, plans and writes its repair.
//!
//! `session` is the whole of it without a browser, and runs in native tests; `port` gives it a file to
//! read and somewhere to answer.

mod artifacts;
mod page;
mod port;
mod session;

pub use port::start;
pub use session::{Files, Port, Session, Source};
