//! What a thread did in a range of time: ops, calls and frames of Python by the path on which they were called, as wide as their time.

use std::collections::BTreeMap;

use catalog::python::frame_parts;
use report::drawing::{Anchor, Shape, fits};
use report::{Cell, Column, Drawing, Row as TableRow, Table, Unit, units};
use timeline::percent;
use trace::{StringId, Trace};

use crate::build::{Kind, Lanes};

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
/// Slices that are added up: more make a person wait.
const MOST_SLICES: usize = 300_000;
/// Rows of the table.
const MOST_NAMES: usize = 50;

/// Something that ran, on one path of calls.
struct Node {
    name: StringId,
    /// A slice of it, for its category.
    row: trace::Row,
    total_ns: i64,
    /// Of that, what nothing below it covers.
    self_ns: i64,
    below: Vec<usize>,
}

/// The calls of a thread in a range of time.
struct Calls {
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

/// A slice of the lane above, with its node.
type Above = (i64, i64, usize);

impl Calls {
    /// Adds up the slices of a track between two moments. A slice lies below the nearest slice of the lanes above that holds all of
    /// it; one that crosses all of them was called by none.
    fn of(lanes: &Lanes, trace: &Trace, track: usize, (from, to): (i64, i64)) -> Self {
        let mut found = Self { nodes: Vec::new(), roots: Vec::new() };
        let mut known: BTreeMap<(Option<usize>, StringId), usize> = BTreeMap::new();
        let mut above: Vec<Vec<Above>> = Vec::new();
        let all = lanes.tracks.get(track).map_or(&[][..], |track| &track.lanes);
        for lane in all {
            let slices = lane.slices(from as f64, to as f64);
            let mut own: Vec<Above> = Vec::with_capacity(slices.len());
            // (A lane has its slices in time order, so each lane above is walked once.)
            let mut places = vec![0; above.len()];
            for at in slices {
                let (start, end) = lane.times(at);
                let holding = above.iter().zip(&mut places).rev().find_map(|(lane, place)| {
                    while lane.get(*place).is_some_and(|(_, end, _)| *end <= start) {
                        *place += 1;
                    }
                    lane.get(*place).filter(|(begun, over, _)| *begun <= start && *over >= end)
                });
                let parent = holding.map(|of| of.2);
                let (row, name) = (lane.row(at), trace.name(lane.row(at)));
                let ns = end.min(to).saturating_sub(start.max(from)).max(0);
                let node = *known.entry((parent, name)).or_insert_with(|| {
                    let node = found.nodes.len();
                    let below = Vec::new();
                    found.nodes.push(Node { name, row, total_ns: 0, self_ns: 0, below });
                    match parent {
                        Some(parent) => found.nodes[parent].below.push(node),
                        None => found.roots.push(node),
                    }
                    node
                });
                found.nodes[node].total_ns += ns;
                found.nodes[node].self_ns += ns;
                if let Some(parent) = parent {
                    found.nodes[parent].self_ns -= ns;
                }
                own.push((start, end, node));
            }
            if !own.is_empty() {
                above.push(own);
            }
        }
        let by_time = |nodes: &[Node], list: &mut Vec<usize>| {
            trace::sort_by_key(list, |at| std::cmp::Reverse(nodes[*at].total_ns));
        };
        for at in 0..found.nodes.len() {
            let mut below = std::mem::take(&mut found.nodes[at].below);
            by_time(&found.nodes, &mut below);
            found.nodes[at].below = below;
        }
        by_time(&found.nodes, &mut found.roots);
        found
    }

    fn by_name(&self, trace: &Trace) -> Vec<NameRow> {
        let mut sums: BTreeMap<StringId, (i64, i64)> = BTreeMap::new();
        for node in &self.nodes {
            let sum = sums.entry(node.name).or_default();
            *sum = (sum.0 + node.self_ns.max(0), sum.1.max(node.total_ns));
        }
        let all: i64 = sums.values().map(|sum| sum.0).sum();
        let row = |(name, (self_ns, _)): (StringId, (i64, i64))| NameRow {
            name: readable(trace.strings.get(name)),
            self_ns,
            share_pct: percent(self_ns, all),
        };
        let mut rows: Vec<NameRow> =
            sums.into_iter().map(row).filter(|row| row.self_ns > 0).collect();
        trace::sort_by(&mut rows, |a, b| {
            b.self_ns.cmp(&a.self_ns).then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    fn drawing(&self, trace: &Trace, label: &str) -> Option<Drawing> {
        let whole: i64 = self.roots.iter().map(|root| self.nodes[*root].total_ns).sum();
        if whole <= 0 {
            return None;
        }
        let mut drawn = Drawn {
            calls: self,
            trace,
            whole,
            shapes: Vec::new(),
            deepest: 0,
            omitted: 0,
            too_deep: 0,
        };
        drawn.add(&self.roots, 0.0, 0);
        let Drawn { shapes, deepest, omitted, too_deep, .. } = drawn;
        let mut more = String::new();
        if omitted > 0 {
            more.push_str(" Boxes below a thousandth of the width are not drawn.");
        }
        if too_deep > 0 {
            more.push_str(&format!(" Calls below {LEVELS} others are not drawn."));
        }
        Some(Drawing {
            id: "range-flame".into(),
            title: format!("Calls of {label} in the range, as wide as their time.{more}"),
            says: format!(
                "The calls of {label}: {} in all. The table has the time of each name.",
                units::time(whole)
            ),
            width: WIDTH,
            height: (deepest + 1) as f32 * LEVEL,
            shapes,
            legend: Vec::new(),
        })
    }
}

struct Drawn<'a> {
    calls: &'a Calls,
    trace: &'a Trace,
    whole: i64,
    shapes: Vec<Shape>,
    deepest: usize,
    omitted: u64,
    too_deep: u64,
}

impl Drawn<'_> {
    fn add(&mut self, nodes: &[usize], left: f32, level: usize) {
        let mut x = left;
        for at in nodes {
            let node = &self.calls.nodes[*at];
            let width = (f64::from(WIDTH) * node.total_ns as f64 / self.whole as f64) as f32;
            if width < LEAST {
                self.omitted += 1;
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
                    units::time(node.total_ns),
                    units::time(node.self_ns.max(0))
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
            self.deepest = self.deepest.max(level);
            self.add(&node.below, x, level + 1);
            x += width;
        }
    }
}

/// A frame of Python as `file:line function`, as everywhere; other names as they are.
fn readable(name: &str) -> String {
    frame_parts(name).map_or_else(
        || name.to_owned(),
        |(path, line, function)| format!("{path}:{line} {function}"),
    )
}

/// As much of a name as fits; `None` where that is too little to read.
fn shortened(name: &str, width: f32) -> Option<String> {
    if fits(name, width) {
        return Some(name.to_owned());
    }
    let letters = ((width - MARGIN) / LETTER) as usize;
    (letters > FEWEST_LETTERS).then(|| name.chars().take(letters - 1).chain(['…']).collect())
}

/// The thread whose calls are shown, and how many slices it has in the range: that of the selected slice, else the one with most. (What
/// is open for all of it may be no thread: the profiler has a track of its own.)
fn thread(
    lanes: &Lanes,
    selected: Option<usize>,
    (from, to): (f64, f64),
) -> Option<(usize, usize)> {
    let threads = lanes.tracks.iter().enumerate().filter(|(_, of)| of.kind == Kind::Thread);
    let counted = threads.map(|(track, of)| {
        let n: usize = of.lanes.iter().map(|lane| lane.slices(from, to).len()).sum();
        (n, track)
    });
    let there: Vec<(usize, usize)> = counted.filter(|(n, _)| *n > 0).collect();
    let chosen = there.iter().find(|(_, track)| Some(*track) == selected);
    let most = || there.iter().max_by_key(|(n, track)| (*n, std::cmp::Reverse(*track)));
    let (n, track) = *chosen.or_else(most)?;
    Some((track, n))
}

/// The calls of a thread in a range: a picture, and the time of each name. `None` where no thread has a slice in it; the sentence
/// where there are too many.
pub(crate) fn flame(
    lanes: &Lanes,
    trace: &Trace,
    selected: Option<usize>,
    (from, to): (i64, i64),
) -> Option<Result<(Drawing, Table), String>> {
    let (track, n) = thread(lanes, selected, (from as f64, to as f64))?;
    let of = lanes.tracks.get(track)?;
    if n > MOST_SLICES {
        return Some(Err(format!(
            "{} has {} in the range: select a shorter one to see its calls.",
            of.label,
            units::plural(n as u64, "slice", "slices")
        )));
    }
    let calls = Calls::of(lanes, trace, track, (from, to));
    let drawing = calls.drawing(trace, &of.label)?;
    let mut rows = calls.by_name(trace);
    let n = rows.len();
    rows.truncate(MOST_NAMES);
    let title = match n > MOST_NAMES {
        true => format!(
            "Calls of {}: the {MOST_NAMES} of {n} names with most time of their own",
            of.label
        ),
        false => format!("Calls of {}, by time of their own", of.label),
    };
    let mut table = Table::of("range-calls", "", &rows);
    table.title = title.into();
    Some(Ok((drawing, table)))
}

/// A name with its own time.
struct NameRow {
    name: String,
    self_ns: i64,
    share_pct: f64,
}

impl TableRow for NameRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Path,
            help: "Op, call, annotation or frame of Python.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "self_ns",
            title: "Own time",
            unit: Unit::Time,
            help: "Its time in the range without what it called.",
            cell: |row| Cell::Ns(row.self_ns),
        },
        Column {
            key: "share_pct",
            title: "Share",
            unit: Unit::Percent,
            help: "Own time as a share of the thread's time in calls.",
            cell: |row| Cell::Percent(row.share_pct),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, slice};

    /// A frame with two ops, of which one crosses the end of the frame: a lane of its own.
    fn found() -> (Trace, Lanes) {
        let mut fixture = Fixture::default();
        for (category, name, at, dur) in [
            ("python_function", "a.py(3): f", 0, 100),
            ("cpu_op", "aten::mm", 10, 20),
            ("cpu_op", "aten::mm", 40, 20),
            ("cuda_runtime", "cudaLaunchKernel", 45, 5),
            ("cpu_op", "crossing", 90, 30),
            ("python_function", "a.py(9): g", 120, 50),
            ("cuda_runtime", "cudaLaunchKernel", 130, 5),
        ] {
            fixture.push(slice(category, name).at(at * 1_000, dur * 1_000).on(1, 1));
        }
        let trace = fixture.finish();
        let (lanes, _) = crate::lanes_of(&trace);
        (trace, lanes)
    }

    #[test]
    fn own_times_are_those_of_the_calls() {
        let (trace, lanes) = found();
        let calls = Calls::of(&lanes, &trace, 0, (0, 170_000));
        let rows = calls.by_name(&trace);
        let own: Vec<(&str, i64)> = rows.iter().map(|row| (&*row.name, row.self_ns)).collect();
        let expected = [
            ("a.py:3 f", 60_000),
            ("a.py:9 g", 45_000),
            ("aten::mm", 35_000),
            ("crossing", 30_000),
        ];
        assert_eq!(own[..4], expected);
        assert_eq!(own[4], ("cudaLaunchKernel", 10_000));
    }

    #[test]
    fn a_range_cuts_what_reaches_out_of_it() {
        let (trace, lanes) = found();
        let calls = Calls::of(&lanes, &trace, 0, (15_000, 50_000));
        let total: i64 = calls.roots.iter().map(|root| calls.nodes[*root].total_ns).sum();
        assert_eq!(total, 35_000);
        let mm = calls.by_name(&trace).into_iter().find(|row| row.name == "aten::mm").unwrap();
        assert_eq!(mm.self_ns, 15_000 + 10_000 - 5_000);
    }

    #[test]
    fn the_thread_with_most_slices_is_drawn() {
        let (trace, lanes) = found();
        let (drawing, table) = flame(&lanes, &trace, None, (0, 170_000)).unwrap().unwrap();
        assert!(table.title.ends_with("by time of their own"), "{}", table.title);
        let texts: Vec<&str> = drawing
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { text, .. } => Some(&**text),
                _ => None,
            })
            .collect();
        assert!(texts.contains(&"a.py:3 f") && texts.contains(&"aten::mm"), "{texts:?}");
        assert!(flame(&lanes, &trace, None, (300_000, 400_000)).is_none(), "nothing runs there");
    }
}
