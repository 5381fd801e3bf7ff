//! Timelines as text, for terminals: a row for each stream, a character for each stretch of time.

use std::collections::BTreeMap;

use catalog::{Category, OverlapClass};
use report::units;
use trace::{StreamId, Trace};

use crate::{OverlapWindow, WindowSlice};
use timeline::Options;
use timeline::absolute_ns;
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::{Extent, Gpu};
use timeline::streams::natural;

/// Marks time in which nothing ran.
const IDLE: char = '.';

/// Marks, in a timeline of a whole trace, time that is busy less than half.
const SPARSE: char = ':';

/// Streams that a timeline of a whole trace shows; the busiest stay.
const MOST_STREAMS: usize = 16;

/// A class and its character; the order is that of legends.
const CLASSES: [(OverlapClass, char); 5] = [
    (OverlapClass::Compute, '#'),
    (OverlapClass::Communication, '~'),
    (OverlapClass::Elementwise, '+'),
    (OverlapClass::Memory, '='),
    (OverlapClass::Other, '?'),
];

fn of_class(class: OverlapClass) -> char {
    CLASSES.iter().find(|(of, _)| *of == class).map_or('?', |(_, char)| *char)
}

fn of_category(id: &str) -> char {
    let category = Category::from_id(id);
    of_class(category.map_or(OverlapClass::Other, Category::overlap_class))
}

/// Draws a window of the overlap table in `columns` characters: letters for the instance (`A`) and the longest others,
/// a character for the class of everything else.
#[must_use]
pub fn window_text(window: &OverlapWindow, columns: usize) -> String {
    let scale = Scale { start_ns: window.start_ns, end_ns: window.end_ns, columns };
    let mut named: Vec<(char, &WindowSlice, &str)> = Vec::new();
    let mut classes = Vec::new();
    let rows: Vec<(String, String)> = window
        .lanes
        .iter()
        .map(|lane| {
            let mut row = vec![IDLE; columns];
            // What has a letter is drawn last, and the instance itself on top of all.
            let mut slices: Vec<&WindowSlice> = lane.slices.iter().collect();
            trace::sort_by_key(&mut slices, |slice| {
                std::cmp::Reverse(slice.letter.unwrap_or(char::MAX))
            });
            for slice in slices {
                let char = match slice.letter {
                    Some(letter) => {
                        named.push((letter, slice, &lane.stream));
                        letter
                    }
                    None => {
                        let char = of_category(&slice.category);
                        classes.push(char);
                        char
                    }
                };
                if let Some(cells) = row.get_mut(scale.cells(slice.start_ns, slice.end_ns())) {
                    cells.fill(char);
                }
            }
            (label(&lane.stream), row.into_iter().collect())
        })
        .collect();
    let mut out = draw(&rows, &scale);
    trace::sort_by_key(&mut named, |(letter, ..)| *letter);
    for (letter, slice, stream) in named {
        let early = if slice.before_window { ", launched before profiling started" } else { "" };
        out.push_str(&format!(
            "{letter} = {} ({}, {}, {}{early})\n",
            slice.name,
            slice.category,
            label(stream),
            units::time(slice.dur_ns),
        ));
    }
    out.push_str(&legend(&classes));
    if window.n_left_out > 0 {
        let left_out = units::plural(window.n_left_out, "slice is", "slices are");
        out.push_str(&format!("{left_out} not shown, the shortest.\n"));
    }
    out
}

/// Draws all GPU work of a trace in `columns` characters: each shows the class that took most of its time, where the
/// stream was busy for half of it. Empty for a trace without GPU slices.
#[must_use]
pub fn gpu_text(trace: &Trace, options: &Options, columns: usize) -> String {
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, timeline::device::platform(trace), &before, options);
    let mut all = Extent::default();
    gpu.each_slice(|slice| all.add(&slice));
    if all.n == 0 || columns == 0 {
        return String::new();
    }
    let scale = Scale { start_ns: all.first_ns, end_ns: all.last_ns, columns };
    // Time by stream, then by column and class.
    let mut streams: BTreeMap<Option<StreamId>, Vec<[i64; CLASSES.len()]>> = BTreeMap::new();
    gpu.each_slice(|slice| {
        let class = gpu.works[slice.work].category.overlap_class();
        let class = CLASSES.iter().position(|(of, _)| *of == class).unwrap_or(CLASSES.len() - 1);
        let row = streams.entry(slice.stream).or_insert_with(|| vec![[0; CLASSES.len()]; columns]);
        for column in scale.cells(slice.start_ns, slice.end_ns()) {
            let (from_ns, to_ns) = scale.times(column);
            let ns = slice.end_ns().min(to_ns).saturating_sub(slice.start_ns.max(from_ns)).max(0);
            row[column][class] = row[column][class].saturating_add(ns);
        }
    });
    let sum = |row: &[[i64; CLASSES.len()]]| {
        row.iter().flatten().fold(0_i64, |sum, ns| sum.saturating_add(*ns))
    };
    let mut streams: Vec<_> = streams.into_iter().collect();
    let n_streams = streams.len();
    trace::sort_by_key(&mut streams, |(_, row)| std::cmp::Reverse(sum(row)));
    streams.truncate(MOST_STREAMS);
    let mut classes = Vec::new();
    let mut rows: Vec<(String, String)> = Vec::new();
    for (stream, row) in &streams {
        let char = |(column, of_class): (usize, &[i64; CLASSES.len()])| {
            let (from_ns, to_ns) = scale.times(column);
            let busy_ns = of_class.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns));
            let most = of_class.iter().zip(CLASSES).max_by_key(|(ns, (class, _))| {
                // Of equal ones the first of the legend.
                (**ns, std::cmp::Reverse(CLASSES.iter().position(|(of, _)| of == class)))
            });
            match most {
                _ if busy_ns == 0 => IDLE,
                Some((_, (_, char))) if busy_ns >= to_ns.saturating_sub(from_ns) / 2 => char,
                _ => SPARSE,
            }
        };
        let row: String = row.iter().enumerate().map(char).collect();
        classes.extend(row.chars());
        let stream = stream.and_then(|StreamId(id)| trace.streams.get(usize::from(id)));
        let name = stream.map(|of| of.stream.display(&trace.strings)).unwrap_or_default();
        rows.push((label(&name), row));
    }
    trace::sort_by_key(&mut rows, |(label, _)| natural(label.trim_start_matches("stream ")));
    let mut out = String::new();
    if let Some(ns) = absolute_ns(trace, all.first_ns) {
        out.push_str(&format!("from {} µs on the file's clock\n", units::instant(ns)));
    }
    out.push_str(&draw(&rows, &scale));
    out.push_str(&legend(&classes));
    if n_streams > rows.len() {
        let more = units::plural((n_streams - rows.len()) as u64, "stream", "streams");
        out.push_str(&format!("{more} with less GPU time not shown.\n"));
    }
    out
}

fn label(stream: &str) -> String {
    if stream.is_empty() { "no stream".to_owned() } else { format!("stream {stream}") }
}

/// The classes that were drawn, and the mark of idle time.
fn legend(drawn: &[char]) -> String {
    let shown = CLASSES.iter().filter(|(_, char)| drawn.contains(char));
    let mut parts: Vec<String> =
        shown.map(|(class, char)| format!("{char} {}", class.id())).collect();
    if drawn.contains(&SPARSE) {
        parts.push(format!("{SPARSE} busy less than half"));
    }
    parts.push(format!("{IDLE} idle"));
    format!("{}\n", parts.join("  "))
}

/// A stretch of time in columns.
struct Scale {
    start_ns: i64,
    end_ns: i64,
    columns: usize,
}

impl Scale {
    fn len_ns(&self) -> i128 {
        (i128::from(self.end_ns) - i128::from(self.start_ns)).max(1)
    }

    /// The columns that a stretch touches, one at least; none of what lies outside.
    fn cells(&self, start_ns: i64, end_ns: i64) -> std::ops::Range<usize> {
        if end_ns < self.start_ns || start_ns > self.end_ns || self.columns == 0 {
            return 0..0;
        }
        let columns = self.columns as i128;
        let from = |ns: i64| (i128::from(ns) - i128::from(self.start_ns)).max(0) * columns;
        let first = (from(start_ns) / self.len_ns()).min(columns - 1);
        let last = (from(end_ns) + self.len_ns() - 1) / self.len_ns();
        first as usize..last.clamp(first + 1, columns) as usize
    }

    /// Begin and end of a column.
    fn times(&self, column: usize) -> (i64, i64) {
        let at = |column: usize| {
            let ns = self.len_ns() * column as i128 / self.columns.max(1) as i128;
            (i128::from(self.start_ns) + ns) as i64
        };
        (at(column), at(column + 1))
    }
}

/// The rows under a ruler, which marks the quarters.
fn draw(rows: &[(String, String)], scale: &Scale) -> String {
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let (mut marks, mut times) = (vec![' '; scale.columns], String::new());
    for quarter in 0..=4 {
        let at = (scale.columns * quarter / 4).min(scale.columns.saturating_sub(1));
        let ns = (scale.len_ns() * quarter as i128 / 4).min(i128::from(i64::MAX)) as i64;
        let text = units::time(ns);
        // The last one ends at its mark, the others begin there.
        let at_text = if quarter == 4 { (at + 1).saturating_sub(text.chars().count()) } else { at };
        let missing = at_text.saturating_sub(times.chars().count());
        // (In few columns the texts push each other to the right.)
        let missing = missing.max(usize::from(quarter > 0));
        times.extend(std::iter::repeat_n(' ', missing));
        times.push_str(&text);
        if let Some(mark) = marks.get_mut(at) {
            *mark = '|';
        }
    }
    let marks: String = marks.into_iter().collect();
    let mut out = format!("{:width$}  {times}\n{:width$}  {marks}\n", "", "");
    for (label, row) in rows {
        out.push_str(&format!("{label:width$}  {row}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap_windows;
    use fixture::{Fixture, kernel, slice};

    const GEMM: &str = "nvjet_tst_64x64";
    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)";

    #[test]
    fn a_window_reads_as_drawn() {
        let mut fixture = Fixture::default();
        fixture.push(kernel(GEMM).at(1_000_000, 10_000).on(0, 10));
        fixture.push(kernel(ADD).at(990_000, 5_000).on(0, 7));
        for n in 0..9 {
            fixture.push(kernel(ADD).at(1_012_000 + n * 4_000, 1_000 + n * 10).on(0, 7));
        }
        fixture.push(slice("gpu_memset", "Memset (Device)").at(1_020_000, 500).on(0, 10));
        let window = overlap_windows(&fixture.finish(), &[0], None).remove(0).unwrap();
        let text = window_text(&window, 40);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..6],
            [
                "           0 ns      17.5 µs   35.0 µs   52.5 µs 70.0 µs",
                "           |         |         |         |        |",
                "stream 7   ......BBBB........++.+.++HH.G.F.EEDD.C..",
                "stream 10  ............AAAAAA.....=................",
                "A = nvjet_tst_64x64 (gemm, stream 10, 10.0 µs)",
                "B = vectorized_elementwise_kernel<4, CUDAFunctor_add<float>> (elementwise, stream 7, 5.00 µs)",
            ]
        );
        assert!(lines[11].starts_with("H = ") && lines[11].ends_with("1.03 µs)"), "{text}");
        assert_eq!(lines[12..], ["+ elementwise  = memory  . idle"]);
    }

    #[test]
    fn all_of_a_trace_is_drawn_by_class() {
        let mut fixture = Fixture::default();
        fixture.push(kernel(GEMM).at(0, 500).on(0, 10));
        fixture.push(kernel(ADD).at(400, 100).on(0, 9));
        fixture.push(kernel(ADD).at(900, 100).on(0, 10));
        fixture.push(kernel(ADD).at(700, 1).on(0, 9));
        let text = gpu_text(&fixture.finish(), &Options::default(), 40);
        let expected = "\
from 0.000 µs on the file's clock
           0 ns      250 ns    500 ns    750 ns 1.00 µs
           |         |         |         |        |
stream 9   ................++++........:...........
stream 10  ####################................++++
# compute  + elementwise  : busy less than half  . idle
";
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_draws_nothing_and_absurd_times_do_not_overflow() {
        assert_eq!(gpu_text(&Fixture::default().finish(), &Options::default(), 20), "");
        let mut fixture = Fixture::default();
        fixture.push(kernel(GEMM).at(i64::MIN, i64::MAX));
        fixture.push(kernel(GEMM).at(i64::MAX, i64::MAX));
        let trace = fixture.finish();
        assert!(gpu_text(&trace, &Options::default(), 20).contains('#'));
        let window = overlap_windows(&trace, &[1], None).remove(0).unwrap();
        assert!(window_text(&window, 20).contains('A'));
        assert!(window_text(&window, 0).contains("A ="));
    }

    #[test]
    fn a_stretch_has_its_columns() {
        let scale = Scale { start_ns: 0, end_ns: 100, columns: 10 };
        for (start_ns, end_ns, cells) in [
            (0, 100, 0..10),
            (0, 10, 0..1),
            (10, 11, 1..2),
            (5, 15, 0..2),
            (50, 50, 5..6),
            (-9, 5, 0..1),
            (95, 300, 9..10),
            (100, 100, 9..10),
            (101, 120, 0..0),
        ] {
            assert_eq!(scale.cells(start_ns, end_ns), cells, "{start_ns}..{end_ns}");
        }
    }
}
