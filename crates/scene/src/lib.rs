//! Pictures that a person zooms and pans: a window over an axis, its ticks, and the ink that a canvas is filled with.
//!
//! Constraints of this crate:
//!
//! * pure: it draws into a list, which the page puts on a canvas and a test reads;
//! * it knows no trace and no snapshot: what is drawn comes as numbers and texts;
//! * lengths are CSS pixels, positions on an axis are whole units of its kind (events, ns, bytes).

#![warn(unreachable_pub)]

mod axis;
mod ink;
mod input;
mod window;

pub use axis::{Tick, Unit, ticks};
pub use ink::{Anchor, Bar, Ink, Tone, shortened, text_width};
pub use input::{Input, Key, Pointer, SharedAxis, Shown};
pub use window::Window;
