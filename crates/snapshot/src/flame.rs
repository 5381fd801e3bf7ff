//! A flame graph of the stacks of blocks: boxes as wide as bytes, callees below their callers.

use std::collections::BTreeMap;

use report::drawing::{Anchor, Entry, Shape, fits};
use report::{Drawing, palette};

use crate::amounts::size;
use crate::site::{NO_STACK, is_library, is_python};
use crate::stacks::{Frame, StackId, Stacks};

const WIDTH: f32 = 1000.0;
const LEVEL: f32 = 20.0;
/// Narrower boxes are not drawn.
const LEAST: f32 = 1.0;
/// Levels that are drawn.
const LEVELS: usize = 40;
/// Blocks without a stack have a box of their own.
const UNKNOWN: u32 = u32::MAX;

/// A function on a path of calls.
#[derive(Default)]
struct Node {
    bytes: i64,
    /// The callees, by file, function and line.
    below: BTreeMap<(u32, u32, i64), Node>,
}

impl Node {
    fn add(&mut self, frames: &[Frame], bytes: i64) {
        self.bytes = self.bytes.saturating_add(bytes);
        let mut node = self;
        for frame in frames.iter().take(LEVELS) {
            node = node.below.entry((frame.filename, frame.name, frame.line)).or_default();
            node.bytes = node.bytes.saturating_add(bytes);
        }
    }
}

/// The frames of a stack that are drawn, outermost first: those of Python where there are any.
fn path(stacks: &Stacks, stack: StackId) -> Vec<Frame> {
    let all = stacks.frames(stack);
    let is_shown = |frame: &&Frame| is_python(stacks.text(frame.filename));
    let shown: Vec<Frame> = all.iter().rev().filter(is_shown).copied().collect();
    if shown.is_empty() { all.iter().rev().copied().collect() } else { shown }
}

/// The flame graph of blocks with their stacks; `None` where no stack has a frame.
pub(crate) fn flame(stacks: &Stacks, blocks: &BTreeMap<StackId, i64>) -> Option<Drawing> {
    let mut root = Node::default();
    for (stack, bytes) in blocks {
        let mut frames = path(stacks, *stack);
        if frames.is_empty() {
            frames.push(Frame { name: UNKNOWN, filename: UNKNOWN, line: 0 });
        }
        root.add(&frames, *bytes);
    }
    if root.bytes <= 0 || root.below.keys().all(|key| key.0 == UNKNOWN) {
        return None;
    }
    // What is below all blocks tells nothing.
    let mut top = &root;
    while let [node] = top.below.values().collect::<Vec<_>>().as_slice()
        && node.below.len() == 1
    {
        top = node;
    }
    let mut drawn = Drawn { stacks, whole: top.bytes, shapes: Vec::new(), deepest: 0, omitted: 0 };
    drawn.add(top, 0.0, 0);
    let Drawn { shapes, deepest, omitted, .. } = drawn;
    let more =
        if omitted > 0 { " Boxes below a thousandth of the width are not drawn." } else { "" };
    Some(Drawing {
        id: "flame".into(),
        title: format!("Stacks of these blocks, as wide as their bytes.{more}"),
        says: format!(
            "A flame graph of {}. The table has the sums by call site.",
            size(root.bytes)
        ),
        width: WIDTH,
        height: (deepest + 1) as f32 * LEVEL,
        shapes,
        legend: vec![
            Entry { category: palette::series(0).into(), label: "the program".to_owned() },
            Entry { category: "".into(), label: "packages".to_owned() },
        ],
    })
}

struct Drawn<'a> {
    stacks: &'a Stacks,
    whole: i64,
    shapes: Vec<Shape>,
    deepest: usize,
    omitted: u64,
}

impl Drawn<'_> {
    fn add(&mut self, node: &Node, left: f32, level: usize) {
        let mut callees: Vec<_> = node.below.iter().collect();
        callees.sort_by_key(|(key, node)| (std::cmp::Reverse(node.bytes), **key));
        let mut x = left;
        for (&(file, name, line), callee) in callees {
            let width = (f64::from(WIDTH) * callee.bytes as f64 / self.whole as f64) as f32;
            if width < LEAST {
                self.omitted += 1;
                continue;
            }
            let (file, name) = (self.stacks.text(file), self.stacks.text(name));
            let label = if file.is_empty() && name.is_empty() { NO_STACK } else { name };
            let category =
                if is_python(file) && !is_library(file) { palette::series(0) } else { "" };
            let place = if line > 0 { format!(" ({file}:{line})") } else { String::new() };
            let y = level as f32 * LEVEL;
            self.shapes.push(Shape::Bar {
                x,
                y,
                width,
                height: LEVEL - 1.0,
                category: category.into(),
                title: format!("{label}{place}: {}", size(callee.bytes)),
            });
            if fits(label, width) {
                self.shapes.push(Shape::Text {
                    x: x + 5.0,
                    y: y + 14.0,
                    anchor: Anchor::Start,
                    text: label.to_owned(),
                    on: category.into(),
                });
            }
            self.deepest = self.deepest.max(level);
            self.add(callee, x, level + 1);
            x += width;
        }
    }
}
