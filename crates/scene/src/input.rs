//! What a person does to a picture.

use serde::{Deserialize, Serialize};

/// What a pointer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pointer {
    /// Moved, with no button down.
    Hover,
    /// A button went down.
    Down,
    /// Moved with the button down.
    Drag,
    /// The button went up.
    Up,
    /// It left the picture.
    Leave,
    /// Clicked twice.
    Double,
}

/// A key or button of a picture. Perfetto's keys where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// `W`, `+`.
    ZoomIn,
    /// `S`, `-`.
    ZoomOut,
    /// `A`.
    PanLeft,
    /// `D`.
    PanRight,
    /// Left arrow; with Shift ten at a time.
    Back,
    /// Right arrow; with Shift ten at a time.
    Forward,
    /// Up arrow.
    Up,
    /// Down arrow.
    Down,
    /// `Home`.
    First,
    /// `End`.
    Last,
    /// `0`.
    Whole,
    /// `F`: zoom to what is selected.
    Fit,
    /// `P`: to the highest point.
    Peak,
    /// `T`: another axis.
    Axis,
    /// `L`: other layers.
    Layers,
    /// `Escape`.
    Clear,
    /// `,`: to the previous slice of this name.
    PreviousSame,
    /// `.`: to the next slice of this name.
    NextSame,
    /// `[`: to what launched it.
    Cause,
    /// `]`: to what it launched.
    Effect,
    /// `R`: select the time of the slice.
    Range,
    /// `I`: the range starts here.
    RangeStart,
    /// `O`: the range ends here.
    RangeEnd,
    /// `G`: select the next time in which a device stands still; with Shift the one before.
    Gap,
    /// `M`: mark the slice's time, or remove its mark.
    Mark,
    /// `Enter`: fold or unfold the track.
    Fold,
    /// `B`: keep the track at the top, or no longer.
    Pin,
    /// `V`: the slices as the file has them, or as the repaired file has them.
    Repaired,
    /// `N`: to the next place that is damaged; with Shift the previous one.
    Damage,
    /// `U`: the track goes up by one.
    TrackUp,
    /// `J`: the track goes down by one.
    TrackDown,
    /// `H`: the track is hidden; with Shift all that are hidden are shown.
    Hide,
    /// `X`: all tracks are shown in their first order.
    ResetTracks,
    /// To the next slice that is searched for; with Shift the previous one.
    Found,
}

/// Something done to a picture. Positions are CSS pixels from its upper left corner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// It is there, or has another size. Pixels of the device per CSS pixel.
    Size {
        /// Width.
        width: f32,
        /// Height.
        height: f32,
        /// Pixels of the device per CSS pixel.
        scale: f32,
    },
    /// The colours are these: a name and a value that a canvas understands.
    Colours(Vec<(String, String)>),
    /// A pointer did something.
    Pointer {
        /// What.
        what: Pointer,
        /// From the left.
        x: f32,
        /// From the top.
        y: f32,
        /// Whether to move the picture instead of selecting.
        pans: bool,
    },
    /// A finger did something. It moves the picture; two zoom it.
    Finger {
        /// Which.
        id: i32,
        /// What.
        what: Pointer,
        /// From the left.
        x: f32,
        /// From the top.
        y: f32,
    },
    /// A wheel turned, to zoom (`dy`) or to move (`dx`).
    Wheel {
        /// Where the pointer is.
        x: f32,
        /// To the right, in px.
        dx: f32,
        /// Down, in px; 0 where it only moves.
        dy: f32,
    },
    /// A key or button was pressed.
    Key {
        /// Which.
        key: Key,
        /// With Shift.
        shift: bool,
    },
    /// Another device (of several) is chosen, by its place in the list.
    Device(u32),
    /// A wheel turned, to scroll rows: down, in px.
    Scroll(f32),
    /// Slices whose names have this text are searched for; an empty one ends the search.
    Find(String),
    /// A slice with this name is to be shown.
    Name(String),
    /// Only tracks whose names have this text are shown; an empty one shows all.
    Tracks(String),
    /// The slice of an event is to be shown, by the number of the event in the file.
    Event(u32),
    /// The order of tracks that was kept, as the picture wrote it.
    Layout(String),
    /// What is seen is to be saved as an SVG, under this name.
    Picture(String),
    /// Shows a moment, in ns on the clock of the file, and what begins there.
    Moment(i64),
    /// This is selected and shown, in ns from the first slice, or no range is selected any longer.
    Range(Option<(i64, i64)>),
    /// Pictures of several files have one axis from now on; `None` where the picture has its own again.
    Axis(Option<SharedAxis>),
    /// Another picture of that axis shows this.
    Shown(Shown),
}

/// The axis of several pictures, in units of one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedAxis {
    /// Where the axis begins.
    pub from: i64,
    /// Where it ends.
    pub to: i64,
    /// What is added to a unit of the picture for the labels of the axis.
    pub offset: i64,
    /// What the picture is of, for its labels.
    pub name: String,
    /// Which of the pictures it is, from the top. The others show what the first one shows, when the axis is new.
    pub nth: u32,
}

/// What a picture shows of an axis that it shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The left edge and the right one.
    pub window: (f64, f64),
    /// Where the pointer is.
    pub pointer: Option<f64>,
    /// The range that is selected.
    pub range: Option<(f64, f64)>,
    /// Whether the range is still being dragged.
    pub is_held: bool,
}

impl Shown {
    /// The same in units of a picture that has `offset` more where this one has none.
    #[must_use]
    pub fn moved(self, offset: i64) -> Self {
        let by = offset as f64;
        let both = |(from, to): (f64, f64)| (from + by, to + by);
        Self {
            window: both(self.window),
            pointer: self.pointer.map(|at| at + by),
            range: self.range.map(both),
            is_held: self.is_held,
        }
    }
}
