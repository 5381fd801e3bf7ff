//! Handles Ctrl-C and SIGTERM: deletes incomplete files first.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a program that was interrupted: 128 and the number of SIGINT, as shells have it.
pub const EXIT_CODE: u8 = 130;

/// Somebody asked the program to end.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Whether somebody asked the program to end since the watch began.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first request is only noted, so that the work can end in order. A second one ends the
    /// program at once: a read from a network may never return.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn watch() -> Result<Self> {
        let noted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first request must find the flag down.
            flag::register_conditional_shutdown(signal, EXIT_CODE.into(), Arc::clone(&noted))
                .and_then(|_| flag::register(signal, Arc::clone(&noted)))
                .context("cannot watch for Ctrl-C")?;
        }
        Ok(Self(noted))
    }

    /// Whether it was asked.
    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if it was asked.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_noted() { Err(Interrupted) } else { Ok(()) }
    }
}
