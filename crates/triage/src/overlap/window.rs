//! The work around one instance: the streams of its device in a time window, for the page's drawing and for text.
//!
//! Everything that ran is in it, also what was launched before the profiler's window and so is in no table: a picture
//! that hid it would show idle time where there was none.

use report::short_name;
use serde::{Deserialize, Serialize};
use trace::{Row, Trace};

use super::sweep::Lanes;
use timeline::Options;
use timeline::absolute_ns;
use timeline::before_window::BeforeWindowSlices;
use timeline::gpu::Gpu;
use timeline::streams::natural;

/// The shortest window around an instance, in ns.
const LEAST_SPAN_NS: i64 = 40_000;
/// The length of the window, in durations of the instance.
const SPAN_DURATIONS: i64 = 6;
/// Number of slices with their own letter; others show their category.
const LETTERS: usize = 8;
/// The most slices of a window, because more cannot be drawn. The longest are kept.
const MOST_SLICES: usize = 4_000;
/// Longest name in a window.
const NAME_CHARS: usize = 96;

/// A stretch of time on one device, with what ran in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapWindow {
    /// The device's id.
    pub device: String,
    /// The event of the instance that it was made for.
    pub representative: Row,
    /// Begin, in ns on the trace's clock.
    pub start_ns: i64,
    /// End, in ns on the trace's clock.
    pub end_ns: i64,
    /// Begin on the file's clock in ns, where that fits.
    pub file_start_ns: Option<i64>,
    /// The streams on which anything ran, in natural order.
    pub lanes: Vec<WindowLane>,
    /// Slices that are left out because there are too many to draw; they are the shortest.
    pub n_left_out: u64,
}

/// One stream in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowLane {
    /// The stream's id; empty for work whose stream is not known.
    pub stream: String,
    /// By start. They may overlap, and reach over the window's ends.
    pub slices: Vec<WindowSlice>,
}

/// One slice in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSlice {
    /// Its event in the file, from 0.
    pub row: Row,
    /// Its name, shortened for people.
    pub name: String,
    /// Category id.
    pub category: String,
    /// Start in ns on the trace's clock.
    pub start_ns: i64,
    /// Duration in ns, never negative.
    pub dur_ns: i64,
    /// `A` is the instance itself; `B` to `H` are the longest others.
    pub letter: Option<char>,
    /// Launched before the profiler's window: it counts in no table.
    pub before_window: bool,
}

impl WindowSlice {
    /// Its end in ns on the trace's clock.
    #[must_use]
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.dur_ns)
    }
}

/// The windows around the events `representatives` ([`super::OverlapRow::representative`]); `None` for what is no GPU
/// slice. `span_ns` is their length without the instance, by default 6 of its durations and 40 µs at least: 35% of it
/// lie before the instance, 65% after.
#[must_use]
pub fn overlap_windows(
    trace: &Trace,
    representatives: &[Row],
    span_ns: Option<i64>,
) -> Vec<Option<OverlapWindow>> {
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, timeline::device::platform(trace), &before, &Options::default());
    let lanes = Lanes::of(trace);
    let mut at_row: Vec<(Row, usize)> = (0..gpu.len()).map(|at| (gpu.row(at), at)).collect();
    trace::sort(&mut at_row);
    let find = |row: &Row| {
        let found = at_row.binary_search_by_key(row, |(other, _)| *other).ok()?;
        Some(window(&gpu, &lanes, at_row[found].1, span_ns))
    };
    representatives.iter().map(find).collect()
}

fn window(gpu: &Gpu<'_>, lanes: &Lanes, instance: usize, span_ns: Option<i64>) -> OverlapWindow {
    let slice = gpu.slice(instance);
    let by_duration = || slice.dur_ns.saturating_mul(SPAN_DURATIONS).max(LEAST_SPAN_NS);
    let span_ns = span_ns.unwrap_or_else(by_duration).max(0);
    let ahead_ns = (i128::from(span_ns) * 35 / 100) as i64;
    let start_ns = slice.start_ns.saturating_sub(ahead_ns);
    let end_ns = slice.end_ns().saturating_add(span_ns - ahead_ns);
    let lane = |at: usize| lanes.of_stream(gpu.slice(at).stream);
    let device = lanes.device_of[lane(instance)];

    let is_in = |at: &usize| {
        let other = gpu.slice(*at);
        let touches = other.start_ns < end_ns && other.end_ns() > start_ns;
        touches && lanes.device_of[lane(*at)] == device
    };
    let mut others: Vec<usize> = (0..gpu.len())
        .take_while(|at| gpu.slice(*at).start_ns < end_ns)
        .filter(|at| *at != instance && is_in(at))
        .collect();
    // The longest first: they get the letters, and stay if there are too many.
    trace::sort_by_key(&mut others, |at| (std::cmp::Reverse(gpu.slice(*at).dur_ns), *at));
    let n_left_out = others.len().saturating_sub(MOST_SLICES - 1) as u64;
    others.truncate(MOST_SLICES - 1);
    let ranked = std::iter::once(instance).chain(others);
    let letters = ('A'..).take(LETTERS).map(Some).chain(std::iter::repeat(None));
    let mut found: Vec<(usize, WindowSlice)> = ranked
        .zip(letters)
        .map(|(at, letter)| {
            let (slice, work) = (gpu.slice(at), gpu.works[gpu.slice(at).work]);
            let slice = WindowSlice {
                row: gpu.row(at),
                name: short_name(gpu.trace.strings.get(work.name), NAME_CHARS),
                category: work.category.id().to_owned(),
                start_ns: slice.start_ns,
                dur_ns: slice.dur_ns,
                letter,
                before_window: slice.before_window,
            };
            (lane(at), slice)
        })
        .collect();
    trace::sort_by_key(&mut found, |(lane, slice)| (*lane, slice.start_ns, slice.row));
    let name = |lane: usize| {
        let stream = gpu.trace.streams.get(lane);
        stream.map(|of| of.stream.display(&gpu.trace.strings)).unwrap_or_default()
    };
    let mut lanes: Vec<WindowLane> = found
        .chunk_by(|a, b| a.0 == b.0)
        .map(|of_lane| WindowLane {
            stream: name(of_lane[0].0),
            slices: of_lane.iter().map(|(_, slice)| slice.clone()).collect(),
        })
        .collect();
    trace::sort_by_key(&mut lanes, |lane| natural(&lane.stream));
    let stream = slice.stream.and_then(|id| gpu.trace.streams.get(usize::from(id.0)));
    OverlapWindow {
        device: stream.map(|of| of.device.display(&gpu.trace.strings)).unwrap_or_default(),
        representative: gpu.row(instance),
        start_ns,
        end_ns,
        file_start_ns: absolute_ns(gpu.trace, start_ns),
        lanes,
        n_left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel, slice};

    const GEMM: &str = "nvjet_tst_64x64";

    fn of(slices: &[fixture::Slice<'_>], span_ns: Option<i64>) -> Option<OverlapWindow> {
        let mut fixture = Fixture::default();
        slices.iter().for_each(|slice| fixture.push(*slice));
        overlap_windows(&fixture.finish(), &[0], span_ns).remove(0)
    }

    /// (stream, letter, start) of everything in a window.
    fn drawn(window: &OverlapWindow) -> Vec<(&str, Option<char>, i64)> {
        let lanes = window.lanes.iter();
        lanes
            .flat_map(|lane| {
                let slices = lane.slices.iter();
                slices.map(|slice| (lane.stream.as_str(), slice.letter, slice.start_ns))
            })
            .collect()
    }

    #[test]
    fn a_third_before_and_two_after() {
        let window = of(&[kernel(GEMM).at(1_000_000, 10_000)], None).unwrap();
        assert_eq!((window.start_ns, window.end_ns), (979_000, 1_049_000));
        let short = of(&[kernel(GEMM).at(1_000_000, 100)], None).unwrap();
        assert_eq!((short.start_ns, short.end_ns), (986_000, 1_026_100));
        let given = of(&[kernel(GEMM).at(1_000_000, 100)], Some(1_000)).unwrap();
        assert_eq!((given.start_ns, given.end_ns), (999_650, 1_000_750));
    }

    #[test]
    fn what_touches_the_window_on_its_device_is_drawn() {
        let window = of(
            &[
                kernel(GEMM).at(1_000_000, 10_000).on(0, 10),
                kernel("long before, reaching in").at(0, 979_001).on(0, 9),
                kernel("ends where it begins").at(0, 979_000).on(0, 9),
                kernel("another device").at(1_000_000, 5_000).on(1, 9),
                kernel("after").at(1_049_000, 5).on(0, 9),
                kernel("last").at(1_048_999, 5).on(0, 10),
                slice("gpu_memset", "Memset (Device)").at(1_030_000, 40_000).on(0, 9),
            ],
            None,
        );
        let window = window.unwrap();
        assert_eq!(window.device, "0");
        assert_eq!(
            drawn(&window),
            [
                ("9", Some('B'), 0),
                ("9", Some('C'), 1_030_000),
                ("10", Some('A'), 1_000_000),
                ("10", Some('D'), 1_048_999),
            ]
        );
        let categories = window.lanes[0].slices.iter().map(|slice| slice.category.as_str());
        assert_eq!(categories.collect::<Vec<_>>(), ["other", "memset"]);
    }

    #[test]
    fn letters_are_few_and_the_instance_has_the_first() {
        let slices: Vec<_> =
            (0..12).map(|n| kernel(GEMM).at(n * 100, 10 + n).on(0, n % 3)).collect();
        let window = of(&slices, None).unwrap();
        let mut letters: Vec<(i64, char)> =
            drawn(&window).into_iter().filter_map(|(_, c, ns)| Some((ns, c?))).collect();
        letters.sort_unstable();
        let expected: Vec<(i64, char)> =
            [(0, 'A'), (500, 'H'), (600, 'G'), (700, 'F'), (800, 'E'), (900, 'D')].into();
        assert_eq!(letters[..6], expected);
        assert_eq!(letters.len(), LETTERS);
    }

    #[test]
    fn too_many_to_draw_are_counted() {
        let n = MOST_SLICES as i64 + 10;
        let slices: Vec<_> = (0..n).map(|at| kernel(GEMM).at(at, 1).on(0, 7)).collect();
        let window = of(&slices, None).unwrap();
        assert_eq!((window.lanes[0].slices.len(), window.n_left_out), (MOST_SLICES, 10));
        assert_eq!(window.lanes[0].slices[0].letter, Some('A'));
    }

    #[test]
    fn what_is_no_gpu_slice_has_no_window_and_absurd_times_do_not_overflow() {
        assert_eq!(of(&[slice("cpu_op", "aten::mm").at(0, 5)], None), None);
        let absurd = [kernel(GEMM).at(i64::MIN, i64::MAX), kernel(GEMM).at(i64::MAX, i64::MAX)];
        let window = of(&absurd, None).unwrap();
        assert_eq!(window.start_ns, i64::MIN);
        assert!(window.end_ns > 0);
    }
}
