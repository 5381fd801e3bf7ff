//! What a canvas is filled with, in drawing order.

use report::palette::Hue;

/// A colour by what it means. The page knows the value, which the theme decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// Below everything.
    Ground,
    /// Text.
    Text,
    /// Text of lesser weight.
    Muted,
    /// Grid lines.
    Grid,
    /// A limit; the edge of what is selected.
    Strong,
    /// What is selected, over other ink: half transparent.
    Selected,
    /// The cursor.
    Accent,
    /// Something that went wrong.
    Bad,
    /// The hue of a category of [`report::palette`].
    Category(&'static str),
    /// A hue.
    Hue(Hue),
    /// Text on a hue: black or white, whichever has more contrast with it.
    OnHue(Hue),
}

/// A bar of [`Ink::Bars`], one CSS pixel wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its hue.
    pub hue: Hue,
    /// How much of the height it fills, 0 to 1.
    pub share: f32,
    /// From which share on it is pale: what it shows goes from there to `share`. As much as `share` where it is of one colour.
    pub low: f32,
}

/// Which end of a text its position names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The left one.
    Start,
    /// The middle.
    Middle,
    /// The right one.
    End,
}

/// One stroke or text.
#[derive(Clone, Debug, PartialEq)]
pub enum Ink {
    /// Nothing is left of what was drawn before: what lies below the canvas is seen.
    Clear {
        /// To the right.
        width: f32,
        /// Down.
        height: f32,
    },
    /// A filled box.
    Box {
        /// Left edge.
        x: f32,
        /// Top edge.
        y: f32,
        /// To the right.
        width: f32,
        /// Down.
        height: f32,
        /// Its colour.
        tone: Tone,
    },
    /// Bars side by side from a common base, one for each CSS pixel, on the ground. It covers whatever was drawn there before.
    Bars {
        /// Left edge.
        x: f32,
        /// Top edge.
        y: f32,
        /// Down.
        height: f32,
        /// The bars, from left to right; `None` for no bar.
        bars: Vec<Option<Bar>>,
    },
    /// A line through points, 1.5 px wide.
    Line {
        /// The points.
        points: Vec<(f32, f32)>,
        /// Its colour.
        tone: Tone,
    },
    /// A text of 12 px.
    Text {
        /// Position of the anchor.
        x: f32,
        /// Its baseline.
        y: f32,
        /// What the position names.
        anchor: Anchor,
        /// The text.
        text: String,
        /// Its colour.
        tone: Tone,
    },
}

/// Mean width of a character of a text of 12 px, in px: an estimate, so that no text is measured.
const CHARACTER: f32 = 6.6;

/// The width of a text of 12 px: an estimate, in px.
#[must_use]
pub fn text_width(text: &str) -> f32 {
    text.chars().count() as f32 * CHARACTER
}

/// A text that fits into a width: cut in the middle, where names differ least. `None` where not even five characters fit.
#[must_use]
pub fn shortened(text: &str, width: f32) -> Option<String> {
    let room = (width / CHARACTER) as usize;
    let length = text.chars().count();
    if length <= room {
        return Some(text.to_owned());
    }
    if room < 5 {
        return None;
    }
    let (head, tail) = (room / 2, room - room / 2 - 1);
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    short.extend(text.chars().skip(length - tail));
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_both_ends() {
        assert_eq!(shortened("short", 200.0).as_deref(), Some("short"));
        assert_eq!(shortened("train.py:120:forward", 66.0).as_deref(), Some("train…ward"));
        assert_eq!(shortened("train.py:120:forward", 20.0), None);
    }
}
