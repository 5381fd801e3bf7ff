//! The colours of the theme, by what they mean.

use std::collections::BTreeMap;

use kinetoscope::report::palette;
use kinetoscope::scene::Tone;

/// Colours by name, as the stylesheet has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tones(BTreeMap<String, String>);

impl Tones {
    /// Those that the page has sent.
    pub(super) fn of(colours: &[(String, String)]) -> Self {
        Self(colours.iter().cloned().collect())
    }

    /// A colour as the stylesheet computes it: `rgb(0, 114, 178)`.
    pub(super) fn rgb(&self, tone: Tone) -> [u8; 3] {
        let text = self.colour(tone);
        let numbers = text.split(|letter: char| !letter.is_ascii_digit());
        let mut numbers = numbers.filter_map(|number| number.parse().ok());
        [0; 3].map(|none| numbers.next().unwrap_or(none))
    }

    /// A colour for a canvas.
    pub(super) fn colour(&self, tone: Tone) -> &str {
        let name = match tone {
            Tone::Ground => "ground",
            Tone::Text => "text",
            Tone::Muted => "muted",
            Tone::Grid => "grid",
            Tone::Strong => "strong",
            Tone::Selected => "selected",
            Tone::Accent => "accent",
            Tone::Bad => "bad",
            Tone::Category(category) => palette::paint(category).hue.id(),
            Tone::Hue(hue) => hue.id(),
            Tone::OnHue(hue) => return on(self.rgb(Tone::Hue(hue))),
        };
        self.0.get(name).map_or("", String::as_str)
    }
}

/// Black or white, whichever has more contrast with a colour (relative luminance of WCAG 2, with the square in place of its
/// curve).
fn on(colour: [u8; 3]) -> &'static str {
    let [r, g, b] = colour.map(|part| (f32::from(part) / 255.0).powi(2));
    let luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    // (Contrast with white, 1.05 / (l + 0.05), is that with black, (l + 0.05) / 0.05, at 0.18.)
    if luminance < 0.18 { "#fff" } else { "#000" }
}
