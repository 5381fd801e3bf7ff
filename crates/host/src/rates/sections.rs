//! Rates as a table and as a roofline.

use report::drawing::{Anchor, Shape, Stroke};
use report::units::percent;
use report::{Cell, Column, Drawing, Row, Section, Table, Unit};

use super::{RateRow, Rates};

/// Rows that a document prints.
const PREVIEW: u32 = 25;
/// An op with a smaller part of the rows' GPU time is not drawn, in percent.
const DRAWN_PCT: f64 = 1.0;

fn text(value: Option<String>, reason: &'static str) -> Cell<'static> {
    value.map_or(Cell::missing(reason), Cell::from)
}

/// Columns that need a known device.
pub(crate) const OF_PEAKS: &[&str] =
    &["peak_pct", "peak_tflops", "gb_per_s", "intensity", "limit", "limit_pct"];

const NO_BYTES: &str = "sizes of the result are not known";
const NO_PEAK: &str = "the device or the number format is not known";

impl Row for RateRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Op",
            unit: Unit::Name,
            help: "Innermost op with a formula.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "format",
            title: "Format",
            unit: Unit::Text,
            help: "Number format of the operands, by Input type; of 32-bit floats by the names of the kernels.",
            cell: |row| match row.format {
                Some(format) => format.into(),
                None => Cell::missing("operands differ, or neither types nor kernels show it"),
            },
        },
        Column {
            key: "calls",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls with known sizes that launched GPU work.",
            cell: |row| Cell::Count(row.calls),
        },
        Column {
            key: "device_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "GPU time of these calls.",
            cell: |row| Cell::Ns(row.device_ns),
        },
        Column {
            key: "tflops",
            title: "TFLOP/s",
            unit: Unit::Text,
            help: "Operations / GPU time.",
            cell: |row| format!("{:.1}", row.tflops).into(),
        },
        Column {
            key: "gb_per_s",
            title: "GB/s, at least",
            unit: Unit::Text,
            help: "The least bytes that they move / GPU time: operands read once, the result written once.",
            cell: |row| text(row.gb_per_s.map(|of| format!("{of:.0}")), NO_BYTES),
        },
        Column {
            key: "peak_pct",
            title: "Of the dense peak",
            unit: Unit::Percent,
            help: "Achieved rate in percent of the device's dense peak of the format. A short product may exceed it: clocks boost above the one that the peak is given for.",
            cell: |row| Cell::or_missing(row.peak_pct, Cell::Percent, NO_PEAK),
        },
        Column {
            key: "peak_tflops",
            title: "Dense peak, TFLOP/s",
            unit: Unit::Text,
            help: "Theoretical peak without sparsity.",
            cell: |row| text(row.peak_tflops.map(|peak| format!("{peak}")), NO_PEAK),
        },
        Column {
            key: "intensity",
            title: "FLOP per byte, at most",
            unit: Unit::Text,
            help: "Operations / the least bytes that they move: operands read once, the result written once.",
            cell: |row| text(row.intensity.map(|of| format!("{of:.1}")), NO_BYTES),
        },
        Column {
            key: "limit",
            title: "Lower limit",
            unit: Unit::Text,
            help: "Which limit of the roofline is lower at this intensity: the bandwidth (memory) or the peak (compute). An op may be far from both.",
            cell: |row| match row.limit {
                Some(limit) => limit.into(),
                None => Cell::missing("the device, the format or the bytes are not known"),
            },
        },
        Column {
            key: "limit_pct",
            title: "Of that limit",
            unit: Unit::Percent,
            help: "Achieved rate in percent of the lower limit.",
            cell: |row| Cell::or_missing(row.limit_pct, Cell::Percent, NO_PEAK),
        },
    ];
}

impl Rates {
    /// Adds the sentence, the table and the picture, which has `others`, too: rows that have a table of their own.
    pub(crate) fn add_to(&self, others: &[RateRow], section: &mut Section) {
        if self.rows.is_empty() && others.is_empty() {
            return;
        }
        section.intro.push(match (&self.device, &self.why_not) {
            (Some(device), _) => {
                let is_half = |row: &RateRow| matches!(row.format, Some("bf16" | "fp16"));
                let ceiling = device.ceiling_tflops.filter(|_| self.rows.iter().any(is_half));
                let ceiling = ceiling.map_or_else(String::new, |ceiling| {
                    format!(
                        " Large 16-bit products reach about {ceiling} TFLOP/s (measured elsewhere)."
                    )
                });
                format!(
                    "Peaks are dense theoretical rates of {} ({}).{ceiling}",
                    device.title, device.source
                )
            }
            (None, Some(why)) => format!("No percentage of a peak: {why}."),
            (None, None) => "No percentage of a peak.".to_owned(),
        });
        if !self.rows.is_empty() {
            let table = Table::of("rates", "Rates by op and number format", &self.rows);
            section.tables.push(table.without_missing(OF_PEAKS).preview(PREVIEW));
        }
        if !self.kernels.is_empty() {
            let title = "Rates by kernel and number format";
            let mut table = Table::of("kernel_rates", title, &self.kernels);
            if let Some(name) = table.columns.first_mut() {
                name.title = "Kernel".into();
                name.help = "Only kernel of a call with a formula. A fill before it does not count in its time.".into();
            }
            section.tables.push(table.without_missing(OF_PEAKS).preview(PREVIEW));
        }
        section.drawings.extend(self.roofline(others));
    }

    /// The rows with a peak and bytes, over their intensity, under the roof of the device. Both axes are logarithmic.
    fn roofline(&self, others: &[RateRow]) -> Option<Drawing> {
        let device = self.device.as_ref()?;
        let rows = || self.rows.iter().chain(others);
        let all: i64 = rows().map(|row| row.device_ns).sum();
        let drawn: Vec<(&RateRow, f64, f64)> = rows()
            .filter(|row| timeline::percent(row.device_ns, all) >= DRAWN_PCT && row.tflops > 0.0)
            .filter_map(|row| Some((row, row.intensity?, row.peak_tflops?)))
            .collect();
        let peak = drawn.iter().map(|(.., peak)| *peak).max_by(f64::total_cmp)?;
        let ridge = peak * 1e3 / device.gb_per_s;
        let least = |values: &mut dyn Iterator<Item = f64>| values.min_by(f64::total_cmp);
        let low_x = least(&mut drawn.iter().map(|(_, x, _)| *x))?.min(ridge / 10.0);
        let high_x = drawn.iter().map(|(_, x, _)| *x).max_by(f64::total_cmp)?.max(ridge * 10.0);
        let low_y = least(&mut drawn.iter().map(|(row, ..)| row.tflops))?
            .min(low_x * device.gb_per_s / 1e3);
        let scale = Scale::new((low_x, high_x), (low_y, peak));
        let mut shapes = scale.axes();
        let mut peaks: Vec<(f64, &'static str)> =
            drawn.iter().filter_map(|(row, _, peak)| Some((*peak, row.format?))).collect();
        trace::sort_by(&mut peaks, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
        peaks.dedup();
        for (peak, format) in peaks {
            let ridge = peak * 1e3 / device.gb_per_s;
            let points = vec![
                scale.at(scale.low_x, scale.low_x * device.gb_per_s / 1e3),
                scale.at(ridge, peak),
                scale.at(scale.high_x, peak),
            ];
            let (x, y) = scale.at(scale.high_x, peak);
            shapes.push(Shape::Line { points, stroke: Stroke::Limit });
            let text = format!("{format} {peak} TFLOP/s");
            shapes.push(Shape::Text {
                x: x - 4.0,
                y: y - 6.0,
                anchor: Anchor::End,
                text,
                on: "".into(),
            });
        }
        let mut labels: Vec<(f32, f32)> = Vec::new();
        for (row, intensity, _) in &drawn {
            let (x, y) = scale.at(*intensity, row.tflops);
            let category = catalog::category_of_cpu_op(&row.name).map_or("other", |of| of.id());
            let share = timeline::percent(row.device_ns, all);
            let label = format!("{} {}", row.name, row.format.unwrap_or_default());
            let title = format!(
                "{label}: {:.1} TFLOP/s at {intensity:.1} FLOP per byte, {} of the GPU time shown",
                row.tflops,
                percent(share)
            );
            let radius = 4.0 + (share.sqrt() as f32);
            shapes.push(Shape::Mark { x, y, radius, category: category.into(), title });
            // A label below one that it would cover.
            let (at_x, mut at_y) = (x + radius + 4.0, y + 4.0);
            while labels.iter().any(|(x, y)| (at_y - y).abs() < LINE && (at_x - x).abs() < LABEL) {
                at_y += LINE;
            }
            labels.push((at_x, at_y));
            shapes.push(Shape::Text {
                x: at_x,
                y: at_y,
                anchor: Anchor::Start,
                text: label,
                on: "".into(),
            });
        }
        let title = format!("Roofline of {}", device.title);
        Some(Drawing {
            id: "roofline".into(),
            says: format!(
                "{title}: {} ops under the limits of {} GB/s and the dense peaks; the table of rates has the figures",
                drawn.len(),
                device.gb_per_s
            ),
            title,
            width: WIDTH,
            height: HEIGHT,
            shapes,
            legend: Vec::new(),
        })
    }
}

const WIDTH: f32 = 1000.0;
const HEIGHT: f32 = 420.0;
const LEFT: f32 = 70.0;
const RIGHT: f32 = 34.0;
const TOP: f32 = 24.0;
const BOTTOM: f32 = 50.0;

/// Height of a label.
const LINE: f32 = 15.0;
/// Width that a label may have.
const LABEL: f32 = 240.0;

/// Two logarithmic axes.
struct Scale {
    low_x: f64,
    high_x: f64,
    low_y: f64,
    high_y: f64,
}

impl Scale {
    /// Whole powers of ten around the values.
    fn new((low_x, high_x): (f64, f64), (low_y, high_y): (f64, f64)) -> Self {
        let down = |value: f64| 10_f64.powf(value.max(1e-6).log10().floor());
        let up = |value: f64| 10_f64.powf(value.max(1e-6).log10().ceil());
        Self { low_x: down(low_x), high_x: up(high_x), low_y: down(low_y), high_y: up(high_y) }
    }

    fn at(&self, x: f64, y: f64) -> (f32, f32) {
        let along = |value: f64, low: f64, high: f64| {
            (value.max(low) / low).log10() / (high / low).log10().max(1e-9)
        };
        let across = f64::from(WIDTH - LEFT - RIGHT) * along(x, self.low_x, self.high_x);
        let above = f64::from(HEIGHT - TOP - BOTTOM) * along(y, self.low_y, self.high_y);
        (LEFT + across as f32, HEIGHT - BOTTOM - above as f32)
    }

    /// The axes, a line at each power of ten, and what they are of.
    fn axes(&self) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let line = |from: (f64, f64), to: (f64, f64), stroke: Stroke| Shape::Line {
            points: vec![self.at(from.0, from.1), self.at(to.0, to.1)],
            stroke,
        };
        let label = |x: f32, y: f32, anchor: Anchor, text: String| Shape::Text {
            x,
            y,
            anchor,
            text,
            on: "".into(),
        };
        let powers = |low: f64, high: f64| {
            let n = (high / low).log10().round() as i32;
            (0..=n.max(0)).map(move |power| low * 10_f64.powi(power))
        };
        for x in powers(self.low_x, self.high_x) {
            shapes.push(line((x, self.low_y), (x, self.high_y), Stroke::Grid));
            let (at, _) = self.at(x, self.low_y);
            shapes.push(label(at, HEIGHT - BOTTOM + 18.0, Anchor::Middle, plain(x)));
        }
        for y in powers(self.low_y, self.high_y) {
            shapes.push(line((self.low_x, y), (self.high_x, y), Stroke::Grid));
            let (_, at) = self.at(self.low_x, y);
            shapes.push(label(LEFT - 8.0, at + 4.0, Anchor::End, plain(y)));
        }
        shapes.push(line((self.low_x, self.low_y), (self.high_x, self.low_y), Stroke::Axis));
        shapes.push(line((self.low_x, self.low_y), (self.low_x, self.high_y), Stroke::Axis));
        shapes.push(label(
            WIDTH - RIGHT,
            HEIGHT - 8.0,
            Anchor::End,
            "FLOP per byte, at most".to_owned(),
        ));
        shapes.push(label(8.0, 14.0, Anchor::Start, "TFLOP/s".to_owned()));
        shapes
    }
}

/// A power of ten: `0.1`, `1`, `1000`.
fn plain(value: f64) -> String {
    let digits = (-value.log10()).round().max(0.0) as usize;
    format!("{value:.digits$}")
}
