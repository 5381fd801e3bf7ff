//! Where the CPU was in a piece of idle time.

use trace::{Flags, Phase, Row, StringId, Trace, TrackId, each_row};

use super::{Kind, Named, kind, named};
use timeline::intervals::Interval;
use timeline::recorded::{is_gpu, may_have_lost_its_end};

/// What runs for at least half of a piece of idle time, of Python for four fifths: of each kind the innermost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// A call of the runtime.
    pub(crate) call: Option<Row>,
    /// An op or an annotation.
    pub(crate) range: Option<Row>,
    /// A frame of Python.
    pub(crate) frame: Option<Row>,
    /// A frame of the profiler, which the others may be inside: the outermost.
    pub(crate) profiler: Option<Row>,
}

/// What a frame, and everything else, covers of a piece at least, as a fraction.
const FOUR_FIFTHS: (i64, i64) = (4, 5);
const HALF: (i64, i64) = (1, 2);

/// An annotation of this share of the window is around everything, in percent.
const WHOLE_PCT: i64 = 80;

/// The places of pieces of idle time; of those with a thread the places on it. Names of steps say nothing, nor does an
/// annotation around most of the window.
#[inline(never)]
pub(crate) fn places(
    trace: &Trace,
    pieces: &[(Interval, Option<TrackId>)],
    window_ns: i64,
) -> Vec<Place> {
    let mut found = vec![Place::default(); pieces.len()];
    if pieces.is_empty() {
        return found;
    }
    let names: Vec<Named> =
        (0..trace.strings.len() as u32).map(|id| named(trace.strings.get(StringId(id)))).collect();
    let kinds = trace.by_raw_category(kind);
    each_row(trace, |row| {
        let flags = trace.flags(row);
        if trace.phase(row) != Phase::Complete || !flags.has(Flags::HAS_TS) || is_gpu(flags) {
            return;
        }
        let kind = *kinds.of(trace, row);
        let name = names[trace.name(row).0 as usize];
        if name.step {
            return;
        }
        let (start, end) = (trace.ts_ns(row), trace.end_ns(row));
        let dur_ns = i128::from(end.saturating_sub(start));
        let around = dur_ns * 100 >= i128::from(window_ns) * i128::from(WHOLE_PCT);
        let is_loader = name.loader;
        if around && kind == Kind::Annotation && !is_loader {
            return;
        }
        for (place, ((from, to), track)) in found.iter_mut().zip(pieces) {
            let shared = end.min(*to).saturating_sub(start.max(*from));
            let (part, whole) = if kind == Kind::Python { FOUR_FIFTHS } else { HALF };
            if shared <= 0
                || shared.saturating_mul(whole) < to.saturating_sub(*from).saturating_mul(part)
                || track.is_some_and(|track| track != trace.track(row))
            {
                continue;
            }
            if kind == Kind::Python && name.profiles && place.profiler.is_none() {
                place.profiler = Some(row);
            }
            let best = match kind {
                Kind::Runtime => &mut place.call,
                Kind::Op | Kind::Annotation => &mut place.range,
                Kind::Python => &mut place.frame,
                Kind::Overhead | Kind::GpuAnnotation | Kind::Other => continue,
            };
            let dur_ns = end.saturating_sub(start);
            let shorter = |known: Row| trace.end_ns(known).saturating_sub(trace.ts_ns(known));
            if best.is_none_or(|known| dur_ns <= shorter(known)) {
                *best = Some(row);
            }
        }
    });
    without_lost_ends(trace, pieces, &mut found);
    found
}

/// Takes back ranges and frames that lost their end: one around them ends first, and up to there they are too little of a piece. (The end of
/// what is open where the recording stops may be that of the file.)
#[inline(never)]
fn without_lost_ends(trace: &Trace, pieces: &[(Interval, Option<TrackId>)], found: &mut [Place]) {
    let chosen = |place: &Place| [place.range, place.frame];
    let mut rows: Vec<Row> = found.iter().flat_map(chosen).flatten().collect();
    trace::sort(&mut rows);
    rows.dedup();
    // When the last slice of each of their tracks ends.
    let mut tracks: Vec<(TrackId, i64)> =
        rows.iter().map(|row| (trace.track(*row), i64::MIN)).collect();
    trace::sort(&mut tracks);
    tracks.dedup();
    let each = |add: &mut dyn FnMut(Row)| {
        each_row(trace, |row| {
            if trace.phase(row) == Phase::Complete && !is_gpu(trace.flags(row)) {
                add(row);
            }
        });
    };
    each(&mut |row| {
        let track = trace.track(row);
        if let Some((_, last)) = tracks.iter_mut().find(|(known, _)| *known == track) {
            *last = trace.end_ns(row).max(*last);
        }
    });
    let is_open = |row: &Row| {
        let track = trace.track(*row);
        let last = tracks.iter().find(|(known, _)| *known == track).map(|(_, last)| *last);
        last.is_some_and(|last_ns| may_have_lost_its_end(trace.end_ns(*row), last_ns))
    };
    let mut ends: Vec<(Row, i64)> =
        rows.into_iter().filter(is_open).map(|row| (row, trace.end_ns(row))).collect();
    if ends.is_empty() {
        return;
    }
    each(&mut |row| {
        let (start, end) = (trace.ts_ns(row), trace.end_ns(row));
        for (one, end_ns) in &mut ends {
            let begun = trace.ts_ns(*one);
            let is_around = start < begun && begun < end && end < *end_ns;
            if is_around && trace.track(row) == trace.track(*one) {
                *end_ns = end;
            }
        }
    });
    let end_of = |row: Row| ends.iter().find(|(one, _)| *one == row).map(|(_, end)| *end);
    for (place, ((from, to), _)) in found.iter_mut().zip(pieces) {
        let lost = |row: &Row, (part, whole): (i64, i64)| {
            let shared = end_of(*row).map(|end| end.min(*to) - trace.ts_ns(*row).max(*from));
            shared.is_some_and(|ns| ns.saturating_mul(whole) < (to - from).saturating_mul(part))
        };
        place.range = place.range.filter(|row| !lost(row, HALF));
        place.frame = place.frame.filter(|row| !lost(row, FOUR_FIFTHS));
    }
}
