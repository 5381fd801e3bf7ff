//! Several runs of one model with inputs of different sizes: how time follows the size of the batch.
//!
//! The batch size of a run is the first dimension of the first tensor that its iterations take (of an embedding, of its indices):
//! inferred, and told with the op. It is withheld where the runs' first ops differ, or their other dimensions do: then the sizes are of different things.

use report::drawing::{Anchor, Entry, Shape, Stroke};
use report::units::{count, time};
use report::{Cell, Column, Drawing, Row, Section, Table, Unit};
use serde::{Deserialize, Serialize};

use crate::{Class, Diagnosis, Iterations};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingRow {
    /// The name of its file.
    pub name: String,
    /// Its inferred batch size; `None` where that cannot be told.
    pub batch: Option<i64>,
    /// Sizes of the first tensor, as the file has them.
    pub input: Option<Vec<i64>>,
    /// The op that takes it.
    pub op: Option<String>,
    /// Sizes of its weight, of an embedding.
    pub weight: Option<Vec<i64>>,
    /// Warm iterations of the class with most time.
    pub n: usize,
    /// Median duration of these on the CPU, in ns; with a GPU of the span of their GPU work.
    pub p50_ns: Option<i64>,
    /// Whether the duration is of GPU work.
    pub of_gpu: bool,
    /// The same by item of the batch.
    pub item_ns: Option<i64>,
    /// Items in a second.
    pub per_s: Option<f64>,
    /// Items in a second by those of the smallest batch.
    pub gain: Option<f64>,
}

/// What runs must have in common for their batch sizes to be of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunKind<'a> {
    /// The op that takes the first tensor.
    pub op: &'a str,
    /// The other dimensions of that tensor.
    pub dims: &'a [i64],
    /// Sizes of its weight, of an embedding.
    pub weight: Option<&'a [i64]>,
    /// Whether the duration is of GPU work.
    pub of_gpu: bool,
}

/// The class with most time.
fn main_class(iterations: &Iterations) -> Option<&Class> {
    let sum = |class: &&Class| class.cpu.figures.as_ref().map_or(0, |figures| figures.sum_ns);
    iterations.classes.iter().max_by_key(sum)
}

/// The runs by batch size, the smallest first; those without one last.
#[must_use]
pub fn scaling(mut rows: Vec<ScalingRow>) -> Vec<ScalingRow> {
    // Runs of different inputs have no batch sizes to compare.
    let is_of_one = |first: &ScalingRow| {
        first.kind().is_some() && rows.iter().all(|row| row.kind() == first.kind())
    };
    if !rows.first().is_some_and(is_of_one) {
        for row in &mut rows {
            row.batch = None;
        }
    }
    trace::sort_by_key(&mut rows, |row| (row.batch.is_none(), row.batch, row.name.clone()));
    for row in &mut rows {
        let known = row.batch.filter(|batch| *batch > 0).zip(row.p50_ns.filter(|ns| *ns > 0));
        row.item_ns = known.map(|(batch, ns)| ns / batch);
        row.per_s = known.map(|(batch, ns)| batch as f64 * 1e9 / ns as f64);
    }
    let least = rows.iter().find_map(|row| row.per_s);
    for row in &mut rows {
        row.gain = row.per_s.zip(least).map(|(rate, least)| rate / least);
    }
    rows
}

impl ScalingRow {
    /// A run by itself; [`scaling`] compares it with others.
    #[must_use]
    pub fn of(name: &str, run: &Diagnosis) -> Self {
        let iterations = run.iterations.as_ref();
        let class = iterations.and_then(main_class);
        let of_gpu = class.is_some_and(|class| class.gpu_span.figures.is_some());
        let stats = class.map(|class| if of_gpu { &class.gpu_span } else { &class.cpu });
        let input = iterations.and_then(|iterations| iterations.input.clone());
        Self {
            name: name.to_owned(),
            batch: input.as_ref().and_then(|input| input.dims.first().copied()),
            op: input.as_ref().map(|input| input.op.clone()),
            weight: input.as_ref().and_then(|input| input.weight.clone()),
            input: input.map(|input| input.dims),
            n: stats.map_or(0, |stats| stats.n),
            p50_ns: stats.and_then(|stats| Some(stats.figures.as_ref()?.p50_ns)),
            of_gpu,
            item_ns: None,
            per_s: None,
            gain: None,
        }
    }

    /// Of what kind the run is; `None` where that is not recorded.
    #[must_use]
    pub fn kind(&self) -> Option<RunKind<'_>> {
        Some(RunKind {
            op: self.op.as_deref()?,
            dims: self.input.as_ref()?.get(1..)?,
            weight: self.weight.as_deref(),
            of_gpu: self.of_gpu,
        })
    }
}

impl Row for ScalingRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Trace",
            unit: Unit::Text,
            help: "Name of the file.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "batch",
            title: "Batch size",
            unit: Unit::Count,
            help: "First dimension of the first tensor of the iterations, of an embedding that of its indices: inferred.",
            cell: |row| match row.batch {
                Some(batch) => Cell::Count(batch.max(0) as u64),
                None => Cell::missing("no sizes are recorded, or the runs take different inputs"),
            },
        },
        Column {
            key: "input",
            title: "First input",
            unit: Unit::Text,
            help: "Sizes of that tensor, and the op that takes it.",
            cell: |row| match (&row.input, &row.op) {
                (Some(dims), Some(op)) => {
                    let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
                    format!("[{}] of {op}", dims.join(", ")).into()
                }
                _ => Cell::missing("not recorded: record_shapes=True"),
            },
        },
        Column {
            key: "n",
            title: "Iterations",
            unit: Unit::Count,
            help: "Warm iterations.",
            cell: |row| Cell::Count(row.n as u64),
        },
        Column {
            key: "p50_ns",
            title: "P50",
            unit: Unit::Time,
            help: "Median duration of an iteration: of its GPU work where there is any, else on the CPU.",
            cell: |row| Cell::or_missing(row.p50_ns, Cell::Ns, "no iterations"),
        },
        Column {
            key: "item_ns",
            title: "By item",
            unit: Unit::Time,
            help: "P50 / items of the batch.",
            cell: |row| Cell::or_missing(row.item_ns, Cell::Ns, "no batch size"),
        },
        Column {
            key: "per_s",
            title: "Items/s",
            unit: Unit::Text,
            help: "Batch size / P50.",
            cell: |row| match row.per_s {
                Some(rate) => format!("{rate:.1}").into(),
                None => Cell::missing("no batch size"),
            },
        },
        Column {
            key: "gain",
            title: "Throughput gain",
            unit: Unit::Text,
            help: "Items per second / those of the smallest batch.",
            cell: |row| match row.gain {
                Some(gain) => format!("{gain:.2}x").into(),
                None => Cell::missing("no batch size"),
            },
        },
    ];
}

/// The table with its sentence.
#[must_use]
pub fn scaling_section(rows: &[ScalingRow]) -> Section {
    let mut section = Section::new("scaling", "Scaling with the batch size");
    section.intro.push(sentence(rows));
    section.drawings.extend(drawing(rows));
    section.tables.push(Table::of("scaling", "Runs by batch size", rows));
    section
}

const WIDTH: f32 = 1000.0;
const HEIGHT: f32 = 300.0;
/// Of the chart in the drawing: room for labels of both axes is outside.
const LEFT: f32 = 84.0;
const RIGHT: f32 = 84.0;
const TOP: f32 = 26.0;
const FOOT: f32 = 34.0;
/// Lines between the axis and the top.
const STEPS: u8 = 4;
/// What the marks of both lines are filled as.
const STEP: &str = "gemm";
const ITEM: &str = "memcpy";

/// Time of an iteration, and of an item of its batch, over the size of the batch; each by its own axis, from zero. `None` without
/// two sizes.
fn drawing(rows: &[ScalingRow]) -> Option<Drawing> {
    let known = |row: &ScalingRow| Some((row.batch?, row.p50_ns?, row.item_ns?));
    let points: Vec<(i64, i64, i64)> = rows.iter().filter_map(known).collect();
    let largest =
        |of: fn(&(i64, i64, i64)) -> i64| points.iter().map(of).max().filter(|most| *most > 0);
    let (most_batch, most_ns, most_item) =
        (largest(|of| of.0)?, largest(|of| of.1)?, largest(|of| of.2)?);
    if points.iter().all(|of| of.0 == most_batch) {
        return None;
    }
    let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - FOOT);
    let x = |batch: i64| LEFT + width * (batch as f64 / most_batch as f64) as f32;
    let y = |ns: i64, most: i64| TOP + height * (1.0 - (ns as f64 / most as f64) as f32);
    let text = |x: f32, y: f32, anchor: Anchor, text: String| Shape::Text {
        x,
        y,
        anchor,
        text,
        on: "".into(),
    };
    let mut shapes = Vec::new();
    for step in 0..=STEPS {
        let share = f64::from(step) / f64::from(STEPS);
        let at = TOP + height * (1.0 - share as f32);
        let stroke = if step == 0 { Stroke::Axis } else { Stroke::Grid };
        shapes.push(Shape::Line { points: vec![(LEFT, at), (WIDTH - RIGHT, at)], stroke });
        let label = |most: i64| time((most as f64 * share) as i64);
        shapes.push(text(LEFT - 8.0, at + 4.0, Anchor::End, label(most_ns)));
        shapes.push(text(WIDTH - RIGHT + 12.0, at + 4.0, Anchor::Start, label(most_item)));
    }
    shapes.push(text(0.0, 14.0, Anchor::Start, "Iteration, P50".to_owned()));
    shapes.push(text(WIDTH, 14.0, Anchor::End, "By item".to_owned()));
    let line = |of: fn(&(i64, i64, i64)) -> i64, most: i64| -> Vec<(f32, f32)> {
        points.iter().map(|point| (x(point.0), y(of(point), most))).collect()
    };
    shapes.push(Shape::Line { points: line(|of| of.1, most_ns), stroke: Stroke::Axis });
    shapes.push(Shape::Line { points: line(|of| of.2, most_item), stroke: Stroke::Axis });
    let mut last = f32::NEG_INFINITY;
    for (batch, ns, item) in &points {
        let at = x(*batch);
        let size = count((*batch).max(0) as u64);
        for (ns, most, category, what) in
            [(ns, most_ns, STEP, "an iteration"), (item, most_item, ITEM, "an item")]
        {
            let title = format!("Batch size {size}: {} for {what}", time(*ns));
            shapes.push(Shape::Mark {
                x: at,
                y: y(*ns, most),
                radius: 5.0,
                category: category.into(),
                title,
            });
        }
        // (Of sizes that are near each other the first has a label.)
        if at - last > LABEL {
            shapes.push(text(at, HEIGHT - 14.0, Anchor::Middle, size));
            last = at;
        }
    }
    let said: Vec<String> = points
        .iter()
        .map(|(batch, ns, item)| format!("{batch}: {}, {} per item", time(*ns), time(*item)))
        .collect();
    Some(Drawing {
        id: "scaling".into(),
        title: "Time of an iteration by batch size".to_owned(),
        says: format!("Time of an iteration by batch size. {}", said.join("; ")),
        width: WIDTH,
        height: HEIGHT,
        shapes,
        legend: vec![
            Entry { category: STEP.into(), label: "Iteration, P50 (axis on the left)".to_owned() },
            Entry {
                category: ITEM.into(),
                label: "Per item of the batch (axis on the right)".to_owned(),
            },
        ],
    })
}

/// Width of a label of the lower axis.
const LABEL: f32 = 44.0;

/// From the smallest to the largest batch; where throughput is highest, if that is neither.
fn sentence(rows: &[ScalingRow]) -> String {
    let known = |row: &&ScalingRow| row.batch.is_some() && row.per_s.is_some();
    let of: Vec<&ScalingRow> = rows.iter().filter(known).collect();
    let (Some(first), Some(last)) = (of.first(), of.last()) else {
        return "No batch sizes to compare: record these runs with record_shapes=True and prof.step(), with inputs that differ in \
                their first dimension only."
            .to_owned();
    };
    let (Some(from), Some(to)) = (first.batch, last.batch) else { return String::new() };
    if of.len() < 2 || from == to {
        return "The first tensor of the iterations has one size in all runs.".to_owned();
    }
    let ns = |row: &ScalingRow| time(row.p50_ns.unwrap_or(0));
    let mut text = format!(
        "From batch size {} to {} an iteration goes from {} to {} (P50), throughput by a factor of {:.2} for {:.1} times the items.",
        count(from.max(0) as u64),
        count(to.max(0) as u64),
        ns(first),
        ns(last),
        last.gain.unwrap_or(1.0),
        to as f64 / from.max(1) as f64
    );
    let best = of.iter().max_by(|a, b| a.per_s.unwrap_or(0.0).total_cmp(&b.per_s.unwrap_or(0.0)));
    if let Some(best) = best.filter(|best| best.batch != last.batch) {
        let batch = best.batch.unwrap_or(0).max(0) as u64;
        text.push_str(&format!(" It is highest at batch size {}.", count(batch)));
    }
    text.push_str(
        " The files do not show that the runs are of one model: only their first inputs are alike.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, batch: i64, p50_ns: i64) -> ScalingRow {
        ScalingRow {
            name: name.to_owned(),
            batch: Some(batch),
            input: Some(vec![batch, 64]),
            op: Some("aten::linear".to_owned()),
            weight: None,
            n: 3,
            p50_ns: Some(p50_ns),
            of_gpu: false,
            item_ns: None,
            per_s: None,
            gain: None,
        }
    }

    #[test]
    fn marks_lie_where_their_figures_are() {
        let rows = scaling(vec![run("b", 64, 8_000), run("a", 32, 6_400)]);
        let drawing = drawing(&rows).unwrap();
        let marks: Vec<(f32, f32, &str)> = drawing
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Mark { x, y, category, .. } => Some((*x, *y, &**category)),
                _ => None,
            })
            .collect();
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - FOOT);
        // Half of the width and 0.8 of the height; 125 ns of 200 by item.
        let expected = [
            (LEFT + width / 2.0, TOP + height * 0.2, STEP),
            (LEFT + width / 2.0, TOP, ITEM),
            (LEFT + width, TOP, STEP),
            (LEFT + width, TOP + height * 0.375, ITEM),
        ];
        for (mark, expected) in marks.iter().zip(expected) {
            let is_near = (mark.0 - expected.0).abs() < 0.01 && (mark.1 - expected.1).abs() < 0.01;
            assert!(is_near && mark.2 == expected.2, "{mark:?}, not {expected:?}");
        }
        assert_eq!(marks.len(), 4);
    }

    #[test]
    fn one_size_is_no_line() {
        assert!(drawing(&scaling(vec![run("a", 32, 10), run("b", 32, 20)])).is_none());
        assert!(drawing(&scaling(vec![run("a", 32, 10)])).is_none());
        assert!(drawing(&[]).is_none());
    }
}
