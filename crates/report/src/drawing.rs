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

/// A coordinate with two digits at most, and no sign of zero.
fn number(value: f32) -> String {
    let text = crate::units::fixed(value.into(), 2);
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

    /// The shapes as SVG elements. Classes are those of the style sheets, hatches those of the page's or document's `defs`.
    #[must_use]
    pub fn elements(&self) -> Vec<Element> {
        let mut elements = Vec::new();
        self.shapes.iter().for_each(|shape| shape.push_elements(&mut elements));
        elements
    }

    /// The canvas, as SVG spells it.
    #[must_use]
    pub fn view_box(&self) -> String {
        format!("0 0 {} {}", number(self.width), number(self.height))
    }

    /// As the text of an SVG element.
    #[must_use]
    pub fn svg(&self) -> String {
        let (view_box, says) = (self.view_box(), escaped(&self.says));
        let mut out = format!("<svg viewBox=\"{view_box}\" role=\"img\" aria-label=\"{says}\">\n");
        for Element { tag, attributes, title, text } in self.elements() {
            out.push_str(&format!("<{tag}"));
            for (key, value) in attributes {
                out.push_str(&format!(" {key}=\"{}\"", escaped(&value)));
            }
            out.push('>');
            if !title.is_empty() {
                out.push_str(&format!("<title>{}</title>", escaped(&title)));
            }
            out.push_str(&format!("{}</{tag}>\n", escaped(&text)));
        }
        out.push_str("</svg>\n");
        out
    }
}

/// One SVG element.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// Its tag.
    pub tag: Cow<'static, str>,
    /// Its attributes: keys of [`ATTRIBUTES`].
    pub attributes: Vec<(Cow<'static, str>, String)>,
    /// What a pointer on it shows; empty where that is nothing.
    pub title: String,
    /// Its text.
    pub text: String,
}

/// Every attribute of an [`Element`].
pub const ATTRIBUTES: &[&str] =
    &["x", "y", "width", "height", "cx", "cy", "r", "points", "text-anchor", "class", "fill"];

impl Shape {
    fn push_elements(&self, out: &mut Vec<Element>) {
        let at = |pairs: &[(&'static str, f32)]| -> Vec<(Cow<'static, str>, String)> {
            pairs.iter().map(|(key, value)| ((*key).into(), number(*value))).collect()
        };
        match self {
            Self::Bar { x, y, width, height, category, title } => {
                let at = at(&[("x", *x), ("y", *y), ("width", *width), ("height", *height)]);
                push_filled(out, "rect", at, category, title);
            }
            Self::Mark { x, y, radius, category, title } => {
                let at = at(&[("cx", *x), ("cy", *y), ("r", *radius)]);
                push_filled(out, "circle", at, category, title);
            }
            Self::Line { points, stroke } => {
                let one = |(x, y): &(f32, f32)| format!("{},{}", number(*x), number(*y));
                let points = points.iter().map(one).collect::<Vec<_>>().join(" ");
                out.push(Element {
                    tag: "polyline".into(),
                    attributes: vec![
                        ("points".into(), points),
                        ("class".into(), stroke.class().to_owned()),
                    ],
                    ..Element::default()
                });
            }
            Self::Text { x, y, anchor, text, on } => {
                let mut attributes = at(&[("x", *x), ("y", *y)]);
                attributes.push(("text-anchor".into(), anchor.id().to_owned()));
                attributes.push(("class".into(), text_class(on)));
                let (tag, title) = ("text".into(), String::new());
                out.push(Element { tag, attributes, title, text: text.clone() });
            }
        }
    }
}

/// The classes of a label on a shape of a category, or on the canvas.
fn text_class(on: &str) -> String {
    match on {
        "" => "drawing-label".to_owned(),
        category => format!("segment-label on-{}", palette::paint(category).hue.id()),
    }
}

/// A shape in its hue, and its hatch over it.
fn push_filled(
    out: &mut Vec<Element>,
    tag: &'static str,
    at: Vec<(Cow<'static, str>, String)>,
    category: &str,
    title: &str,
) {
    let paint = palette::paint(category);
    let with = |key: &'static str, value: String, title: &str| {
        let mut attributes = at.clone();
        attributes.push((key.into(), value));
        Element { tag: tag.into(), attributes, title: title.to_owned(), text: String::new() }
    };
    out.push(with("class", format!("segment {}", paint.class()), title));
    if let Some(fill) = paint.hatch_fill() {
        let mut hatch = with("fill", fill.to_owned(), "");
        hatch.attributes.push(("class".into(), "hatched".to_owned()));
        out.push(hatch);
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
    fn every_attribute_is_known() {
        let shapes = vec![
            Shape::Bar {
                x: 0.0,
                y: 0.0,
                width: 1.0,
                height: 1.0,
                category: "conv".into(),
                title: String::new(),
            },
            Shape::Mark {
                x: 0.0,
                y: 0.0,
                radius: 1.0,
                category: "conv".into(),
                title: String::new(),
            },
            Shape::Line { points: vec![(0.0, 0.0), (1.0, 2.5)], stroke: Stroke::Axis },
            Shape::Text {
                x: 0.0,
                y: 0.0,
                anchor: Anchor::Middle,
                text: "a".to_owned(),
                on: "".into(),
            },
        ];
        let drawing = Drawing { shapes, ..Drawing::default() };
        let keys = drawing.elements().into_iter().flat_map(|element| element.attributes);
        for (key, _) in keys {
            assert!(ATTRIBUTES.contains(&&*key), "{key}");
        }
        assert!(drawing.svg().contains("points=\"0,0 1,2.5\""));
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
