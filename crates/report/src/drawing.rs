//! A picture as data: what it shows, and shapes. The page and the HTML document draw the same shapes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::palette;

/// A picture: shapes on a canvas. The renderer scales it to the space that it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// Stable id: `wall`.
    pub id: Cow<'static, str>,
    /// What it is of: "Wall time".
    pub title: String,
    /// What it shows, for people who do not see it.
    pub says: String,
    /// Width of the canvas, in units of the shapes (1000 fills a page).
    pub width: f32,
    /// Height of the canvas.
    pub height: f32,
    /// The shapes, from back to front.
    pub shapes: Vec<Shape>,
    /// The categories that have a place in the legend, with their labels.
    pub legend: Vec<Entry>,
}

/// A row of the legend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Id of the category: see [`palette::paint`].
    pub category: Cow<'static, str>,
    /// Its name, and a figure where there is one.
    pub label: String,
}

/// One shape. Coordinates are units of the canvas, from its top left corner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A filled box.
    Bar {
        /// Left edge.
        x: f32,
        /// Upper edge.
        y: f32,
        /// Width.
        width: f32,
        /// Height.
        height: f32,
        /// What it is filled for: see [`palette::paint`].
        category: Cow<'static, str>,
        /// What a pointer on it shows.
        title: String,
    },
    /// A filled circle.
    Mark {
        /// Centre.
        x: f32,
        /// Centre.
        y: f32,
        /// Radius.
        radius: f32,
        /// What it is filled for.
        category: Cow<'static, str>,
        /// What a pointer on it shows.
        title: String,
    },
    /// Straight lines from point to point.
    Line {
        /// Two points or more.
        points: Vec<(f32, f32)>,
        /// How it is drawn.
        stroke: Stroke,
    },
    /// A label.
    Text {
        /// Where it begins, has its middle or ends.
        x: f32,
        /// Its base line.
        y: f32,
        /// Which of them.
        anchor: Anchor,
        /// The text.
        text: String,
        /// On a shape of this category; empty where it stands on the canvas.
        on: Cow<'static, str>,
    },
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stroke {
    /// The edge of a chart.
    Axis,
    /// A line behind the marks.
    Grid,
    /// A limit.
    Limit,
}

/// Which part of a label is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Stroke {
    /// The class of the line.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Axis => "axis",
            Self::Grid => "grid-line",
            Self::Limit => "limit",
        }
    }
}

impl Anchor {
    /// As SVG spells it.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A letter's share of a label, in units of the canvas at the size of the labels.
const LETTER: f32 = 7.6;

/// Whether `text` fits into `width` units.
#[must_use]
pub fn fits(text: &str, width: f32) -> bool {
    text.chars().count() as f32 * LETTER + 12.0 <= width
}

/// The points of a line, as SVG spells them.
#[must_use]
pub fn points(points: &[(f32, f32)]) -> String {
    let one = |(x, y): &(f32, f32)| format!("{},{}", number(*x), number(*y));
    points.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A coordinate with two digits at most, and no sign of zero.
#[must_use]
pub fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Drawing {
    /// One bar that fills the width, of parts with their shares in percent: id, label, share, what a pointer shows.
    #[must_use]
    pub fn stacked<'a>(
        id: &'static str,
        title: String,
        parts: impl Iterator<Item = (&'static str, &'a str, f64, String)>,
    ) -> Self {
        const HEIGHT: f32 = 44.0;
        let mut drawing =
            Self { id: id.into(), title, width: 1000.0, height: HEIGHT, ..Self::default() };
        let mut x = 0.0;
        let mut said = Vec::new();
        for (category, label, share_pct, exact) in parts {
            let width = (share_pct * 10.0) as f32;
            let share = crate::units::percent(share_pct);
            let title = format!("{label}: {share}, {exact}");
            let (y, height) = (0.0, HEIGHT);
            drawing.shapes.push(Shape::Bar {
                x,
                y,
                width,
                height,
                category: category.into(),
                title,
            });
            if fits(label, width) {
                drawing.shapes.push(Shape::Text {
                    x: x + 8.0,
                    y: 27.0,
                    anchor: Anchor::Start,
                    text: label.to_owned(),
                    on: category.into(),
                });
            }
            said.push(format!("{label} {share}"));
            drawing
                .legend
                .push(Entry { category: category.into(), label: format!("{label} {share}") });
            x += width;
        }
        drawing.says = format!("{}: {}", drawing.title, said.join(", "));
        drawing
    }

    /// Every text in it.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { title, says, shapes, legend, .. } = self;
        let shapes = shapes.iter_mut().filter_map(|shape| match shape {
            Shape::Bar { title: text, .. }
            | Shape::Mark { title: text, .. }
            | Shape::Text { text, .. } => Some(text),
            Shape::Line { .. } => None,
        });
        [title, says]
            .into_iter()
            .chain(shapes)
            .chain(legend.iter_mut().map(|entry| &mut entry.label))
    }

    /// As the text of an SVG element. Its classes are those of the document's style sheet, its hatches those of its `defs`.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut out = format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
            number(self.width),
            number(self.height),
            escaped(&self.says)
        );
        self.shapes.iter().for_each(|shape| shape.push_svg(&mut out));
        out.push_str("</svg>\n");
        out
    }
}

impl Shape {
    fn push_svg(&self, out: &mut String) {
        match self {
            Self::Bar { x, y, width, height, category, title } => {
                let at = format!(
                    "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                    number(*x),
                    number(*y),
                    number(*width),
                    number(*height)
                );
                push_filled(out, "rect", &at, category, title);
            }
            Self::Mark { x, y, radius, category, title } => {
                let at = format!(
                    "cx=\"{}\" cy=\"{}\" r=\"{}\"",
                    number(*x),
                    number(*y),
                    number(*radius)
                );
                push_filled(out, "circle", &at, category, title);
            }
            Self::Line { points: at, stroke } => out.push_str(&format!(
                "<polyline points=\"{}\" class=\"{}\"/>\n",
                points(at),
                stroke.class()
            )),
            Self::Text { x, y, anchor, text, on } => out.push_str(&format!(
                "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                number(*x),
                number(*y),
                anchor.id(),
                text_class(on),
                escaped(text)
            )),
        }
    }
}

/// The classes of a label on a shape of a category, or on the canvas.
#[must_use]
pub fn text_class(on: &str) -> String {
    match on {
        "" => "drawing-label".to_owned(),
        category => format!("segment-label on-{}", palette::paint(category).hue.id()),
    }
}

/// A shape in its hue, and its hatch over it.
fn push_filled(out: &mut String, shape: &str, at: &str, category: &str, title: &str) {
    let paint = palette::paint(category);
    let class = paint.class();
    let title = escaped(title);
    out.push_str(&format!(
        "<{shape} {at} class=\"segment {class}\"><title>{title}</title></{shape}>\n"
    ));
    if let Some(fill) = paint.hatch_fill() {
        out.push_str(&format!("<{shape} {at} fill=\"{fill}\" pointer-events=\"none\"/>\n"));
    }
}

/// Text for any place in HTML or SVG. Characters that XML does not have become spaces.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stacked_bar_fills_the_width_and_says_its_parts() {
        let parts = [
            ("compute", "Compute", 75.0, "3 ns".to_owned()),
            ("launch", "A <b>", 25.0, "1 ns".to_owned()),
        ];
        let drawing = Drawing::stacked("wall", "Wall time".to_owned(), parts.into_iter());
        assert_eq!(drawing.says, "Wall time: Compute 75.0%, A <b> 25.0%");
        let svg = drawing.svg();
        assert!(svg.contains("x=\"750\" y=\"0\" width=\"250\""), "{svg}");
        assert!(svg.contains("A &lt;b&gt;") && !svg.contains("<b>"), "{svg}");
        assert!(svg.contains("url(#hatch-lines)"), "{svg}");
    }

    #[test]
    fn coordinates_are_short() {
        for (value, text) in
            [(0.0, "0"), (-0.001, "0"), (12.5, "12.5"), (99.999, "100"), (100.0, "100")]
        {
            assert_eq!(number(value), text);
        }
    }
}
