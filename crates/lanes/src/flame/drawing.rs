//! Calls as boxes: each below what called it, as wide as its time.

use std::collections::BTreeSet;

use report::Drawing;
use report::drawing::{Anchor, Shape, Stroke, fits};
use report::units;
use trace::{StringId, Trace};

use super::{Calls, Weight, readable};

const WIDTH: f32 = 1000.0;
const LEVEL: f32 = 20.0;
/// Narrower boxes are not drawn.
const LEAST: f32 = 1.0;
/// Levels that are drawn. Frames of Python alone take some twenty.
const LEVELS: usize = 60;
/// Width of a letter, and of the room beside a label, in units of the drawing.
const LETTER: f32 = 7.6;
const MARGIN: f32 = 12.0;
/// A shorter name says nothing.
const FEWEST_LETTERS: usize = 4;

/// A picture of calls; `None` where they take no time. `beside`: what a person who does not see it is told after its title. Names that
/// are `marked` have an edge.
pub(super) fn drawing(
    calls: &Calls,
    trace: &Trace,
    (id, weight): (&'static str, Weight),
    (title, beside): (String, &str),
    marked: Option<&BTreeSet<StringId>>,
) -> Option<Drawing> {
    let whole = calls.whole()[weight as usize];
    if whole <= 0 {
        return None;
    }
    let mut drawn = Drawn { weight, whole, marked, ..Drawn::new(calls, trace) };
    drawn.add(&calls.roots, 0.0, 0);
    let Drawn { shapes, edges, deepest, omitted, too_deep, .. } = drawn;
    let says = format!("{title} {} in all.{beside}", units::time(whole));
    let mut title = title;
    if omitted > 0 {
        title.push_str(" Boxes below a thousandth of the width are not drawn.");
    }
    if too_deep > 0 {
        title.push_str(&format!(" Calls below {LEVELS} others are not drawn."));
    }
    let height = (deepest + 1) as f32 * LEVEL;
    let shapes = shapes.into_iter().chain(edges).collect();
    Some(Drawing { id: id.into(), title, says, width: WIDTH, height, shapes, legend: Vec::new() })
}

struct Drawn<'a> {
    calls: &'a Calls,
    trace: &'a Trace,
    weight: Weight,
    whole: i64,
    marked: Option<&'a BTreeSet<StringId>>,
    shapes: Vec<Shape>,
    /// Above all boxes.
    edges: Vec<Shape>,
    deepest: usize,
    omitted: u64,
    too_deep: u64,
}

impl<'a> Drawn<'a> {
    fn new(calls: &'a Calls, trace: &'a Trace) -> Self {
        Self {
            calls,
            trace,
            weight: Weight::Cpu,
            whole: 0,
            marked: None,
            shapes: Vec::new(),
            edges: Vec::new(),
            deepest: 0,
            omitted: 0,
            too_deep: 0,
        }
    }

    fn add(&mut self, nodes: &[usize], left: f32, level: usize) {
        let mut x = left;
        let mut nodes = nodes.to_vec();
        trace::sort_by_key(&mut nodes, |at| {
            std::cmp::Reverse(self.calls.nodes[*at].total(self.weight))
        });
        for at in nodes {
            let node = &self.calls.nodes[at];
            let ns = node.total(self.weight);
            let width = (f64::from(WIDTH) * ns as f64 / self.whole as f64) as f32;
            if width < LEAST {
                self.omitted += u64::from(ns > 0);
                continue;
            }
            if level >= LEVELS {
                self.too_deep += 1;
                continue;
            }
            let name = &*readable(self.trace.strings.get(node.name));
            let category = self.trace.raw_category_text(node.row).to_owned();
            let y = level as f32 * LEVEL;
            self.shapes.push(Shape::Bar {
                x,
                y,
                width,
                height: LEVEL - 1.0,
                category: category.clone().into(),
                title: format!(
                    "{name}: {}, {} of its own",
                    units::time(ns),
                    units::time(node.own[self.weight as usize].max(0))
                ),
            });
            if let Some(text) = shortened(name, width) {
                self.shapes.push(Shape::Text {
                    x: x + 5.0,
                    y: y + 14.0,
                    anchor: Anchor::Start,
                    text,
                    on: category.into(),
                });
            }
            if self.marked.is_some_and(|marked| marked.contains(&node.name)) {
                let (right, foot) = (x + width, y + LEVEL - 1.0);
                let points = vec![(x, y), (right, y), (right, foot), (x, foot), (x, y)];
                self.edges.push(Shape::Line { points, stroke: Stroke::Axis });
            }
            self.deepest = self.deepest.max(level);
            self.add(&node.below, x, level + 1);
            x += width;
        }
    }
}

/// As much of a name as fits; `None` where that is too little to read.
fn shortened(name: &str, width: f32) -> Option<String> {
    if fits(name, width) {
        return Some(name.to_owned());
    }
    let letters = ((width - MARGIN) / LETTER) as usize;
    (letters > FEWEST_LETTERS).then(|| name.chars().take(letters - 1).chain(['…']).collect())
}
