//! Memory timelines of `torch.profiler` (`export_memory_timeline`): bytes by category over time.
//!
//! Two forms: rows `[t_ns, action, bytes, category]` (`.raw.json.gz`), whose bytes are signed, so that a plain sum is the level; and
//! `[times_us, sizes]` (`.json`), whose rows of sizes are levels, a 0 first. Source: `torch/profiler/_memory_profiler.py`.
//!
//! The `[memory]` events of a trace are such a timeline, too, by what allocated: [`MemoryTimeline::of_events`].

mod figures;

use std::fmt;

use ingest::Unpacker;
use report::palette;
use scan::{Cursor, Stop, Value};

use crate::chart::{BEFORE, Change, Chart, FIRST_SITE, Layer, OTHER, SITES};
use crate::spelling::integer;

pub use figures::{CategoryRow, TimelineReport};

/// The categories, in the order of their numbers.
const CATEGORIES: [&str; 8] = [
    "parameters",
    "optimizer state",
    "inputs",
    "temporaries",
    "activations",
    "gradients",
    "autograd detail",
    "unknown",
];
/// Larger files are refused: they are read as a whole. A run of an hour has some megabytes.
const MOST_BYTES: usize = 512 << 20;

/// The file is no memory timeline, or one that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotATimeline {
    /// Neither of the two forms.
    Form,
    /// Above 512 MiB.
    TooLarge,
}

impl fmt::Display for NotATimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "no memory timeline: neither rows of time, action, bytes and category, nor times and sizes"
            }
            Self::TooLarge => "a memory timeline above 512 MiB. Export fewer steps",
        })
    }
}

impl std::error::Error for NotATimeline {}

/// A change of the allocated bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When; `None` before the recording.
    pub time_ns: Option<i64>,
    /// The number of its label.
    pub label: u32,
    /// By how much.
    pub bytes: i64,
    /// Reserved bytes after it; 0 where they are not recorded.
    pub reserved: i64,
}

/// What the labels of a timeline are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Labels {
    /// Categories of the profiler.
    #[default]
    Categories,
    /// What allocated: the first label is what was there before.
    Sites,
}

/// A decoded memory timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTimeline {
    labels: Vec<String>,
    kind: Labels,
    /// What changes, in file order.
    changes: Vec<Step>,
    /// Rows of the file.
    rows: u64,
    /// Rows that could not be read.
    damaged: u64,
    /// Whether the file ends before its array does.
    is_cut: bool,
}

/// Reads a memory timeline that is pushed in pieces.
#[derive(Debug, Default)]
pub struct TimelineReader {
    unpacker: Unpacker,
    text: Vec<u8>,
    is_too_large: bool,
}

impl TimelineReader {
    /// At the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes of the file, compressed or not.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { unpacker, text, is_too_large } = self;
        unpacker.push(bytes, &mut |bytes| keep(text, is_too_large, bytes));
    }

    /// The file ends here.
    ///
    /// # Errors
    /// When it is no memory timeline, or too large.
    pub fn finish(self) -> Result<MemoryTimeline, NotATimeline> {
        let Self { unpacker, mut text, mut is_too_large } = self;
        let end = unpacker.finish(&mut |bytes| keep(&mut text, &mut is_too_large, bytes));
        if is_too_large {
            return Err(NotATimeline::TooLarge);
        }
        let labels = CATEGORIES.map(str::to_owned).to_vec();
        let mut timeline = MemoryTimeline { labels, ..MemoryTimeline::default() };
        let read = timeline.read(&mut Cursor::whole(&text));
        timeline.is_cut = read.is_err();
        timeline.damaged += end.faults.len() as u64;
        if timeline.changes.is_empty() { Err(NotATimeline::Form) } else { Ok(timeline) }
    }
}

fn keep(text: &mut Vec<u8>, is_too_large: &mut bool, bytes: &[u8]) {
    *is_too_large |= text.len() + bytes.len() > MOST_BYTES;
    if !*is_too_large {
        text.extend_from_slice(bytes);
    }
}

/// The whole numbers of an array; `None` where one is something else.
fn numbers(array: &[u8]) -> Option<Vec<i64>> {
    let mut cursor = Cursor::whole(array);
    let mut found = Vec::new();
    if cursor.peek().ok()? != b'[' {
        return None;
    }
    cursor.enter();
    while cursor.next(found.is_empty(), false).ok()? {
        match cursor.value().ok()? {
            Value::Number(digits) => found.push(integer(digits)?),
            _ => return None,
        }
    }
    Some(found)
}

/// The label of a category: `unknown` for a number that has no name.
fn label(category: i64) -> u32 {
    u32::try_from(category).ok().filter(|at| (*at as usize) < CATEGORIES.len()).unwrap_or(7)
}

impl MemoryTimeline {
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        // The first array is a row, or the times (µs) of a list of levels: the second one tells.
        let mut first = None;
        let read = self.arrays(cursor, &mut first);
        first.iter().for_each(|only: &Vec<i64>| self.row(only));
        read
    }

    fn arrays(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: &mut Option<Vec<i64>>,
    ) -> Result<(), Stop> {
        if cursor.peek()? != b'[' {
            return Ok(());
        }
        cursor.enter();
        let mut is_first = true;
        while cursor.next(is_first, false)? {
            let Value::Array(array) = cursor.value()? else {
                self.damaged += 1;
                continue;
            };
            match (numbers(array), first.take()) {
                (Some(list), None) if is_first => *first = Some(list),
                (Some(list), before) => {
                    before.iter().for_each(|before| self.row(before));
                    self.row(&list);
                }
                (None, Some(times)) => self.levels(&times, array)?,
                (None, None) => self.damaged += 1,
            }
            is_first = false;
        }
        Ok(())
    }

    /// A row of time in ns, action, bytes and category.
    fn row(&mut self, row: &[i64]) {
        let [at, _, bytes, category] = *row else {
            self.damaged += 1;
            return;
        };
        self.rows += 1;
        // -1: it was there before the recording.
        let time_ns = (at >= 0).then_some(at);
        self.changes.push(Step { time_ns, label: label(category), bytes, reserved: 0 });
    }

    /// Levels by category as changes: what becomes less first, so that no level in between is above both.
    fn levels(&mut self, times: &[i64], array: &[u8]) -> Result<(), Stop> {
        let mut cursor = Cursor::whole(array);
        cursor.enter();
        let mut last = [0_i64; CATEGORIES.len()];
        let mut is_first = true;
        let mut times = times.iter();
        while cursor.next(is_first, false)? {
            is_first = false;
            let Value::Array(row) = cursor.value()? else {
                self.damaged += 1;
                continue;
            };
            let (Some(time), Some(row)) = (times.next(), numbers(row)) else {
                self.damaged += 1;
                continue;
            };
            self.rows += 1;
            let change = |(at, before): (usize, &i64)| {
                row.get(at + 1).copied().unwrap_or_default().saturating_sub(*before)
            };
            let mut changes: Vec<(i64, usize)> =
                last.iter().enumerate().map(|of| (change(of), of.0)).collect();
            changes.sort_unstable();
            for (bytes, at) in changes.into_iter().filter(|(bytes, _)| *bytes != 0) {
                let time_ns = Some(time.saturating_mul(1000));
                self.changes.push(Step { time_ns, label: at as u32, bytes, reserved: 0 });
            }
            for (level, bytes) in last.iter_mut().zip(row.iter().skip(1)) {
                *level = *bytes;
            }
        }
        Ok(())
    }

    /// The `[memory]` events of a device, in order, by what allocated. The first label is what was allocated before them.
    #[must_use]
    pub fn of_events(labels: Vec<String>, changes: Vec<Step>) -> Self {
        let rows = changes.iter().filter(|change| change.time_ns.is_some()).count() as u64;
        Self { labels, kind: Labels::Sites, changes, rows, ..Self::default() }
    }

    /// Whether its labels are what allocated, and not categories of the profiler.
    pub(crate) fn is_by_site(&self) -> bool {
        self.kind == Labels::Sites
    }

    /// Bytes by label before a change, most first; labels without bytes are left out.
    pub(crate) fn by_label(&self, at: usize) -> Vec<CategoryRow> {
        let mut sums = vec![0_i64; self.labels.len()];
        for change in self.changes.iter().take(at) {
            if let Some(sum) = sums.get_mut(change.label as usize) {
                *sum = sum.saturating_add(change.bytes);
            }
        }
        let rows = self.labels.iter().zip(sums).filter(|(_, bytes)| *bytes != 0);
        let mut rows: Vec<CategoryRow> =
            rows.map(|(label, bytes)| CategoryRow { category: label.clone(), bytes }).collect();
        if self.is_by_site() {
            rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        }
        rows
    }

    /// The state with most bytes: the number of changes before it.
    fn peak(&self) -> usize {
        let (mut level, mut most, mut peak) = (0_i64, 0, 0);
        for (at, change) in self.changes.iter().enumerate() {
            level = level.saturating_add(change.bytes);
            if level > most {
                (most, peak) = (level, at + 1);
            }
        }
        peak
    }

    /// The layers of the chart, and the layer of each label.
    fn layers(&self) -> (Vec<Layer>, Vec<u8>) {
        if !self.is_by_site() {
            let layer = |(at, label): (usize, &String)| Layer {
                label: label.clone(),
                category: palette::series(at),
            };
            let layers: Vec<Layer> = self.labels.iter().enumerate().map(layer).collect();
            return (layers, (0..self.labels.len() as u8).collect());
        }
        let before = self.labels.first().cloned().unwrap_or_default();
        let mut layers = vec![
            Layer { label: before.clone(), category: "" },
            Layer { label: "other call sites".to_owned(), category: "other" },
        ];
        let of_peak = self.by_label(self.peak());
        let top = of_peak.into_iter().filter(|row| row.category != before).take(SITES);
        for (at, row) in top.enumerate() {
            layers.push(Layer { label: row.category, category: palette::series(at) });
        }
        let place = |(at, label): (usize, &String)| {
            let own = || layers.iter().skip(FIRST_SITE).position(|layer| layer.label == *label);
            if at == 0 { BEFORE } else { own().map_or(OTHER, |place| FIRST_SITE + place) }
        };
        let of_label = self.labels.iter().enumerate().map(|of| place(of) as u8).collect();
        (layers, of_label)
    }

    /// Bytes by category, or by what allocated, over the rows.
    #[must_use]
    pub fn chart(&self) -> Chart {
        let (layers, of_label) = self.layers();
        let change = |step: &Step| Change {
            time_ns: step.time_ns,
            layer: of_label.get(step.label as usize).copied().unwrap_or_default(),
            bytes: step.bytes,
            reserved: step.reserved,
        };
        Chart::of_changes(layers, &self.changes.iter().map(change).collect::<Vec<_>>())
    }

    /// The figures.
    #[must_use]
    pub fn report(&self) -> TimelineReport {
        let peak = self.peak();
        let level = |at: usize| {
            let changes = self.changes.iter().take(at);
            changes.fold(0_i64, |sum, change| sum.saturating_add(change.bytes))
        };
        let before = self.changes.iter().take_while(|change| change.time_ns.is_none()).count();
        let times = self.changes.iter().filter_map(|change| change.time_ns);
        let first = times.clone().next();
        let last_of_peak = peak.checked_sub(1).and_then(|at| self.changes.get(at));
        let of_peak = last_of_peak.and_then(|change| change.time_ns);
        let reserved = |of: i64| self.is_by_site().then_some(of);
        TimelineReport {
            rows: self.rows,
            damaged_rows: self.damaged,
            is_cut: self.is_cut,
            span_ns: times.max().zip(first).map(|(last, first)| last.saturating_sub(first)),
            peak_bytes: level(peak),
            peak_time_ns: of_peak.zip(first).map(|(at, first)| at.saturating_sub(first)),
            peak_by_category: self.by_label(peak),
            peak_reserved_bytes: last_of_peak.and_then(|change| reserved(change.reserved)),
            most_reserved_bytes: self
                .changes
                .iter()
                .map(|change| change.reserved)
                .max()
                .and_then(reserved),
            preexisting_bytes: level(before),
            is_since_first: self.is_by_site() && before == 0,
            end_bytes: level(self.changes.len()),
            end_by_category: self.by_label(self.changes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> Result<MemoryTimeline, NotATimeline> {
        let mut reader = TimelineReader::new();
        text.as_bytes().chunks(size).for_each(|piece| reader.push(piece));
        reader.finish()
    }

    #[test]
    fn rows_add_up_and_versions_move_bytes() {
        // A parameter from before, an activation that is freed, and a gradient that was a temporary.
        let text = "[[-1, 1, 100, 0], [5000, 2, 40, 4], [6000, 2, 8, 3], [7000, 3, -8, 3], [7000, 3, 8, 5], [9000, 4, -40, 4]]";
        for size in [1, 7, 1000] {
            let report = read(text, size).expect("a timeline").report();
            assert_eq!((report.rows, report.peak_bytes, report.end_bytes), (6, 148, 108));
            assert_eq!((report.preexisting_bytes, report.peak_time_ns), (100, Some(1000)));
            assert_eq!(report.span_ns, Some(4000));
            let end: Vec<_> = report
                .end_by_category
                .iter()
                .map(|row| (row.category.as_str(), row.bytes))
                .collect();
            assert_eq!(end, [("parameters", 100), ("gradients", 8)]);
        }
    }

    #[test]
    fn levels_are_read_as_they_are() {
        // Bytes that move from one category to another are no peak.
        let text = "[[10, 20, 30], [[0, 5, 0, 0, 7, 0, 0, 0, 0], [0, 5, 0, 0, 0, 7, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0]]]";
        let report = read(text, 9).expect("a timeline").report();
        assert_eq!((report.rows, report.peak_bytes, report.end_bytes), (3, 12, 1));
        assert_eq!(report.span_ns, Some(20_000));
    }

    #[test]
    fn anything_else_is_none_and_a_cut_one_says_so() {
        for text in ["", "{}", "[]", "[1, 2]", "[[]]", "[[\"a\", 1, 2, 3]]"] {
            assert_eq!(read(text, 100), Err(NotATimeline::Form), "{text}");
        }
        let cut = read("[[-1, 1, 100, 0], [5000, 2, 4", 100).expect("a part").report();
        assert!(cut.is_cut && cut.peak_bytes == 100);
        let text = cut.sections()[0].intro.join(" ");
        assert!(text.contains("The file is cut"), "{text}");
    }
}
