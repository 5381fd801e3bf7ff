//! A few lines beside the pointer.

use kinetoscope::scene::{Anchor, Ink, Tone, shortened};

const LINE: f32 = 16.0;
const PAD: f32 = 7.0;
/// Mean width of a character, as in [`shortened`].
const CHARACTER: f32 = 6.6;

/// Draws lines of text in a box beside the pointer, within the picture.
pub(super) fn hint(
    ink: &mut Vec<Ink>,
    (all_width, all_height): (f32, f32),
    (x, y): (f32, f32),
    lines: &[String],
) {
    let most = all_width - 4.0 * PAD;
    let lines: Vec<String> = lines.iter().filter_map(|line| shortened(line, most)).collect();
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    if longest == 0 {
        return;
    }
    let width = (longest as f32 * CHARACTER + 2.0 * PAD).min(all_width);
    let height = lines.len() as f32 * LINE + PAD;
    let left = if x + 14.0 + width <= all_width { x + 14.0 } else { (x - 14.0 - width).max(0.0) };
    let top = (y - height / 2.0).clamp(0.0, (all_height - height).max(0.0));
    let around = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height), (0.0, 0.0)];
    ink.push(Ink::Box { x: left, y: top, width, height, tone: Tone::Ground });
    ink.push(Ink::Line {
        points: around.iter().map(|(dx, dy)| (left + dx, top + dy)).collect(),
        tone: Tone::Strong,
    });
    for (row, text) in lines.into_iter().enumerate() {
        ink.push(Ink::Text {
            x: left + PAD,
            y: top + LINE * (row + 1) as f32 - 2.0,
            anchor: Anchor::Start,
            text,
            tone: if row == 0 { Tone::Text } else { Tone::Muted },
        });
    }
}
