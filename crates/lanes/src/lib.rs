//! The lanes of a trace: which slices lie side by side, how busy a lane is in each column of a picture, which slice is at a point,
//! and what a range of time holds.
//!
//! Constraints of this crate:
//!
//! * pure: it draws nothing and knows no pixels, only times and columns;
//! * slices of one lane never overlap; every slice of the trace with a readable start is in exactly one lane of its track, or
//!   counted as lying too deep;
//! * times are ns from the first start of the trace: a float holds them exactly, where 1.7e18 ns since 1970 lose 256 ns;
//! * what a column shows is the exact time that slices cover in it;
//! * 21 bytes a slice, and 9 sums of hues for every 64 slices.

#![warn(unreachable_pub)]

mod arrows;
mod bands;
mod build;
mod counters;
mod damage;
mod facts;
mod flame;
mod lane;
mod levels;
mod range;
mod repaired;
mod search;
mod series;
mod told;

pub use arrows::Arrows;
pub use bands::{Band, Recorded as RecordedBand, RecordedPart};
pub use build::{Kind, Lanes, Spot, Track};
pub use damage::{Becomes, Damage, Damaged};
pub use lane::{Column, Lane};
pub use levels::{Levels, Recorded as RecordedLevels};
pub use search::Found;
pub use series::{Bounds, Series};
pub use told::{Alone, News, Place, Places, RecordedPlaces, Told};

use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::device::platform;
use timeline::gpu::Gpu;
use trace::Trace;

/// The lanes of a trace, and what launched what.
#[must_use]
pub fn lanes_of(trace: &Trace) -> (Lanes, Arrows) {
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, platform(trace), &before, &Options::default());
    (Lanes::of(trace, &gpu), Arrows::of(&gpu))
}
