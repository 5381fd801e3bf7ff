//! Sorts the slices of a trace into tracks and lanes.

use std::collections::BTreeMap;

use dialect::{Records, kineto};
use report::palette::{self, Hue};
use timeline::before_window::{duration_ns, is_gpu_slice};
use timeline::gpu::Gpu;
use timeline::intervals::{length, union};
use timeline::streams::natural;
use trace::{Flags, Phase, Row, StringId, Trace, TrackId, each_of, each_row};

use crate::damage::{self, Becomes, Damaged};
use crate::lane::Lane;
use crate::levels::{self, Levels};

/// Slices of a track of several lanes whose busy time is added up on request.
const MOST_ADDED: usize = 20_000;

/// Lanes of a track. Real traces have some hundred frames of Python at most; Perfetto draws 512.
const MOST_LANES: usize = 512;

/// What a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The steps of the profiler.
    Steps,
    /// Kernels, copies and fills of a GPU stream.
    Stream,
    /// What the profiler wrote around the work of a stream: annotations.
    StreamAnnotations,
    /// The memory of a device.
    Memory,
    /// A counter of the file.
    Counter,
    /// A thread of the CPU, or anything else with a tid.
    Thread,
}

/// A track: a stream, a thread. Its slices nest or cross; each lane has those that lie side by side.
#[derive(Clone, Debug)]
pub struct Track {
    /// What it is.
    pub kind: Kind,
    /// What a person reads: "GPU 0, stream 7".
    pub label: String,
    /// Lanes from the outermost slices to the innermost. A slice that crosses another one lies below it, too.
    pub lanes: Vec<Lane>,
    /// Slices that lie deeper than the last lane, and are not drawn.
    pub n_deep: usize,
    /// The memory of a device, or a counter: a track of one lane without slices.
    pub levels: Option<Levels>,
    pub(crate) key: Key,
    /// Slices that no lane has: they lie too deep, or are none after the repair.
    pub(crate) rest: Vec<(Row, Hue)>,
}

impl Track {
    pub(crate) fn new(key: Key, label: String) -> Self {
        let (lanes, rest) = (Vec::new(), Vec::new());
        Self { kind: key.kind, label, lanes, n_deep: 0, levels: None, key, rest }
    }

    /// Whether it is a lane that the repair adds.
    #[must_use]
    pub fn is_of_repair(&self) -> bool {
        self.key.lane > 0
    }

    /// Number of slices.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }
}

/// Where a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The track.
    pub track: usize,
    /// The lane in it.
    pub lane: usize,
    /// The slice in that.
    pub at: usize,
}

/// All lanes of a trace.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// The tracks: steps, streams by device, threads by process.
    pub tracks: Vec<Track>,
    /// When any stream is busy; without streams, when any thread is. Its slices are these times, not events.
    pub overview: Lane,
    /// The first start, in ns of the trace. All other times are counted from it.
    pub origin_ns: i64,
    /// The last end.
    pub span_ns: i64,
    /// Events of other phases, or without a readable start, that no lane shows: instants, arrows, begins and ends, and counters until they
    /// are read.
    pub n_other: usize,
    /// By track of the trace: the place of its kinds here.
    pub(crate) places: BTreeMap<Key, usize>,
    /// The slices that are not where the file has them, by event: the lanes are those after the repair.
    pub(crate) changed: Vec<Damaged>,
}

/// What slices of one track have in common; the order in which tracks are shown, but for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    /// Of the stream, or of the track of the trace.
    pub(crate) id: u32,
    /// The lane that the repair adds, from 1; 0 of the track itself.
    pub(crate) lane: u32,
}

impl Lanes {
    /// The lanes of a trace. `gpu` has its GPU slices with their categories.
    #[inline(never)]
    #[must_use]
    pub fn of(trace: &Trace, gpu: &Gpu<'_>) -> Self {
        let mut hues = vec![Hue::Other; gpu.n_works()];
        for (work, hue) in hues.iter_mut().enumerate() {
            *hue = palette::paint(gpu.work(work).category.id()).hue;
        }
        // (Texts are looked at once a category and once a name, not once a slice.)
        let host = trace.by_raw_category(|raw| (hue_of_host(raw), is_gpu_annotation(raw)));
        let names = 0..trace.strings.len() as u32;
        let is_step: Vec<bool> =
            names.map(|id| kineto::is_step(trace.strings.get(StringId(id)))).collect();
        let mut slices: BTreeMap<Key, Vec<(Row, Hue)>> = BTreeMap::new();
        let mut at = 0;
        gpu.each_row(|row| {
            let hue = hues[gpu.slice(at).work];
            slices.entry(Key::of(trace, row, false)).or_default().push((row, hue));
            at += 1;
        });
        let mut n_other = 0;
        each_row(trace, |row| {
            if is_gpu_slice(trace, row) {
                return;
            }
            if !is_slice(trace, row) {
                n_other += usize::from(trace.phase(row) != Phase::Metadata);
                return;
            }
            let (hue, of_gpu) = *host.of(trace, row);
            slices.entry(Key::of(trace, row, of_gpu)).or_default().push((row, hue));
            if !of_gpu && is_step.get(trace.name(row).0 as usize) == Some(&true) {
                slices.entry(STEPS).or_default().push((row, hue));
            }
        });

        let starts = slices.values().flatten().map(|(row, _)| trace.ts_ns(*row));
        let origin_ns = starts.min().unwrap_or_default();
        let mut found = Self { n_other, origin_ns, ..Self::default() };
        let mut tracks: Vec<(Key, Track)> = Vec::new();
        for (key, mut slices) in slices {
            let mut track = Track::new(key, label(trace, key));
            let last_ns = pack(trace, &mut slices, &mut track, origin_ns, &[]);
            found.span_ns = found.span_ns.max(last_ns);
            tracks.push((key, track));
        }
        let place = |(key, track): &(Key, Track)| place(trace, *key, track.n_slices());
        trace::sort_by(&mut tracks, |a, b| place(a).cmp(&place(b)));
        for (key, track) in tracks {
            found.places.insert(key, found.tracks.len());
            found.tracks.push(track);
        }
        found.overview = found.busy_times();
        found
    }

    /// Adds the memory of devices as tracks, behind all others; those that were added before go.
    pub fn add_memory(&mut self, recorded: &[levels::Recorded]) {
        let origin_ns = self.origin_ns;
        let levels = recorded.iter().map(|one| Levels::of(one, origin_ns)).collect();
        self.add_levels(Kind::Memory, levels);
    }

    /// Adds tracks of levels behind all others; those of their kind that were added before go.
    #[inline(never)]
    pub(crate) fn add_levels(&mut self, kind: Kind, all: Vec<Levels>) {
        self.tracks.retain(|track| track.kind != kind);
        for (id, levels) in (0..).zip(all) {
            let track = Track::new(Key { kind, id, lane: 0 }, levels.label.clone());
            let lanes = vec![Lane::default()];
            self.tracks.push(Track { lanes, levels: Some(levels), ..track });
        }
    }

    /// When any stream is busy; without streams, when any thread is.
    #[inline(never)]
    pub(crate) fn busy_times(&self) -> Lane {
        let of_kind = |kind| self.tracks.iter().filter(move |track: &&Track| track.kind == kind);
        let kind = if of_kind(Kind::Stream).next().is_some() { Kind::Stream } else { Kind::Thread };
        // (Slices of a thread lie in its first lane, or below a slice of that.)
        let lanes = |track: &'_ Track| if kind == Kind::Thread { 1 } else { track.lanes.len() };
        let mut times = Vec::new();
        for lane in of_kind(kind).flat_map(|track| &track.lanes[..lanes(track)]) {
            times.extend((0..lane.len()).map(|at| lane.times(at)));
        }
        let mut overview = Lane::default();
        for (start, end) in union(times) {
            overview.push(0, start, end, Hue::Host);
        }
        overview
    }

    /// The time that the slices of a track cover from `from` to `to`; `None` where that would take long to add up.
    #[must_use]
    pub fn busy_ns(&self, track: usize, from: f64, to: f64) -> Option<f64> {
        let lanes = &self.tracks.get(track)?.lanes;
        if let [only] = lanes.as_slice() {
            return Some(only.columns(from, to, 1)[0].map_or(0.0, |column| column.busy_ns));
        }
        let n: usize = lanes.iter().map(|lane| lane.slices(from, to).len()).sum();
        let (first, last) = (from.ceil() as i64, to.floor() as i64);
        let clipped = |(start, end): (i64, i64)| (start.max(first), end.min(last));
        let times =
            lanes.iter().flat_map(|lane| lane.slices(from, to).map(|at| clipped(lane.times(at))));
        (n <= MOST_ADDED).then(|| length(&union(times.collect())) as f64)
    }

    /// Tracks before the first of streams and threads.
    pub(crate) fn n_step_tracks(&self) -> usize {
        self.tracks.iter().take_while(|track| track.kind == Kind::Steps).count()
    }

    /// A lane.
    #[must_use]
    pub fn lane(&self, track: usize, lane: usize) -> Option<&Lane> {
        self.tracks.get(track)?.lanes.get(lane)
    }

    /// The event of a slice.
    #[must_use]
    pub fn row(&self, spot: Spot) -> Option<Row> {
        let lane = self.lane(spot.track, spot.lane)?;
        (spot.at < lane.len()).then(|| lane.row(spot.at))
    }

    /// When a slice begins and ends.
    #[must_use]
    pub fn times(&self, spot: Spot) -> Option<(i64, i64)> {
        let lane = self.lane(spot.track, spot.lane)?;
        (spot.at < lane.len()).then(|| lane.times(spot.at))
    }

    /// Where the slice of an event is; `None` of an event that is no slice.
    #[must_use]
    pub fn spot(&self, trace: &Trace, row: Row) -> Option<Spot> {
        let track = *self.places.get(&self.key(trace, row))?;
        let start_ns = trace.ts_ns(row).saturating_sub(self.origin_ns);
        let lanes = self.tracks.get(track)?.lanes.iter().enumerate();
        lanes
            .filter_map(|(lane, of)| Some(Spot { track, lane, at: of.find(row, start_ns)? }))
            .next()
    }

    /// The key of the track that has the slice of an event.
    #[inline(never)]
    pub(crate) fn key(&self, trace: &Trace, row: Row) -> Key {
        let own = Key::own(trace, row);
        match damage::find(&self.changed, row).map(|changed| changed.becomes) {
            Some(Becomes::OnLane(lane)) => Key { lane: lane.saturating_add(1), ..own },
            _ => own,
        }
    }

    /// The slices of the track that enclose one, from the nearest to the outermost.
    #[must_use]
    pub fn around(&self, spot: Spot) -> Vec<Spot> {
        let Some((start, end)) = self.times(spot) else { return Vec::new() };
        let mut found = Vec::new();
        for lane in (0..spot.lane).rev() {
            let Some(of) = self.lane(spot.track, lane) else { continue };
            let holds = of.slices(start as f64, start as f64 + 1.0).find(|at| {
                let (from, to) = of.times(*at);
                from <= start && end <= to
            });
            found.extend(holds.map(|at| Spot { track: spot.track, lane, at }));
        }
        found
    }

    /// Number of slices.
    #[must_use]
    pub fn n_slices(&self) -> usize {
        self.tracks.iter().map(Track::n_slices).sum()
    }
}

/// The steps of all threads.
const STEPS: Key = Key { kind: Kind::Steps, id: 0, lane: 0 };

impl Key {
    /// The key of a slice. `of_gpu`: it is the profiler's annotation around work on the GPU.
    fn of(trace: &Trace, row: Row, of_gpu: bool) -> Self {
        let TrackId(track) = trace.track(row);
        let (kind, id) = match trace.stream(row).filter(|_| is_gpu_slice(trace, row)) {
            Some(stream) => (Kind::Stream, u32::from(stream.0)),
            None if of_gpu => (Kind::StreamAnnotations, track),
            None => (Kind::Thread, track),
        };
        Self { kind, id, lane: 0 }
    }

    /// The key of a slice where the file has it.
    #[inline(never)]
    pub(crate) fn own(trace: &Trace, row: Row) -> Self {
        Self::of(trace, row, is_gpu_annotation(trace.raw_category_text(row)))
    }
}

/// Whether events of a raw category are the profiler's annotations around work on the GPU.
fn is_gpu_annotation(raw_category: &str) -> bool {
    dialect::records(raw_category) == Some(Records::GpuAnnotation)
}

/// A complete slice with a start.
fn is_slice(trace: &Trace, row: Row) -> bool {
    trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS)
}

/// The hue of slices that are no GPU work.
fn hue_of_host(raw_category: &str) -> Hue {
    let id = match dialect::records(raw_category) {
        Some(Records::Op) => "cpu_op",
        Some(Records::Frame) => "python_function",
        Some(Records::Annotation) => "user_annotation",
        Some(Records::GpuAnnotation) => "gpu_user_annotation",
        Some(Records::Call(_)) => "cuda_runtime",
        Some(Records::Sync) => "cuda_sync",
        _ => "",
    };
    palette::paint(id).hue
}

/// Puts slices into lanes: each below all slices that are not over when it begins. Returns the last end. Some durations are
/// `changed`.
#[inline(never)]
pub(crate) fn pack(
    trace: &Trace,
    slices: &mut [(Row, Hue)],
    track: &mut Track,
    origin_ns: i64,
    changed: &[Damaged],
) -> i64 {
    let start = |row: Row| trace.ts_ns(row).saturating_sub(origin_ns);
    let dur_ns = |row: Row| {
        let changed = damage::find(changed, row).and_then(|changed| changed.dur_ns);
        changed.unwrap_or_else(|| duration_ns(trace, row))
    };
    let end = |row: Row| start(row).saturating_add(dur_ns(row));
    let mut last_ns = 0;
    trace::sort_by(slices, |(a, _), (b, _)| {
        let starts = trace.ts_ns(*a).cmp(&trace.ts_ns(*b));
        starts.then_with(|| end(*b).cmp(&end(*a))).then_with(|| a.cmp(b))
    });
    // The end of the last slice of each lane that may not be over.
    let mut open: Vec<i64> = Vec::new();
    each_of(slices, |(row, hue)| {
        let (start, end) = (start(row), end(row));
        while open.last().is_some_and(|end| *end <= start) {
            open.pop();
        }
        if track.lanes.len() == open.len() && open.len() < MOST_LANES {
            track.lanes.push(Lane::default());
        }
        match track.lanes.get_mut(open.len()) {
            Some(lane) => lane.push(row, start, end, hue),
            None => {
                track.n_deep += 1;
                track.rest.push((row, hue));
            }
        }
        open.push(end);
        last_ns = last_ns.max(end);
    });
    last_ns
}

/// In which order tracks are shown: by kind, then by these.
type Place = (Kind, Vec<(bool, i64, String)>);

fn place(trace: &Trace, key: Key, n_slices: usize) -> Place {
    let text = |id: trace::IdToken| natural(&id.display(&trace.strings));
    match key.kind {
        // (No slice is of memory.)
        Kind::Steps | Kind::Memory | Kind::Counter => (key.kind, Vec::new()),
        Kind::Stream => {
            let stream = &trace.streams[key.id as usize];
            (Kind::Stream, vec![text(stream.device), text(stream.stream)])
        }
        Kind::StreamAnnotations | Kind::Thread => {
            let track = trace.track_info(TrackId(key.id));
            let process = trace.process_of(TrackId(key.id));
            let number = |number: i64| (false, number, String::new());
            // Of a process the thread with most slices comes first: it launches the work, and others wait.
            let fewer = number(-(n_slices as i64));
            let sort_index = number(process.sort_index.unwrap_or(0));
            let order = vec![sort_index, text(process.pid), fewer, text(track.tid)];
            (key.kind, order)
        }
    }
}

fn label(trace: &Trace, key: Key) -> String {
    match key.kind {
        Kind::Steps | Kind::Memory | Kind::Counter => "Steps".to_owned(),
        Kind::Stream => {
            let stream = &trace.streams[key.id as usize];
            let (device, stream) =
                (stream.device.display(&trace.strings), stream.stream.display(&trace.strings));
            format!("GPU {device}, stream {stream}")
        }
        Kind::StreamAnnotations => {
            let track = trace.track_info(TrackId(key.id));
            format!("Annotations, stream {}", track.tid.display(&trace.strings))
        }
        Kind::Thread => {
            let track = trace.track_info(TrackId(key.id));
            let tid = track.tid.display(&trace.strings);
            match track.name.map(|name| trace.strings.get(name)) {
                Some(name) if name.contains(&*tid) => name.to_owned(),
                Some(name) => format!("{name} {tid}"),
                None => format!("Thread {tid}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};
    use trace::Row;

    use super::*;
    use crate::lanes_of;

    #[test]
    fn slices_that_lie_too_deep_are_counted() {
        let mut fixture = Fixture::default();
        let n = MOST_LANES as i64 + 40;
        for depth in 0..n {
            fixture.push(slice("cpu_op", "op").on(1, 1).at(depth, 4 * n - 2 * depth));
        }
        let (lanes, _) = lanes_of(&fixture.finish());
        let track = &lanes.tracks[0];
        assert_eq!(
            (track.lanes.len(), track.n_slices(), track.n_deep),
            (MOST_LANES, MOST_LANES, 40)
        );
    }

    #[test]
    fn the_thread_with_most_slices_comes_first_of_its_process() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "waits").on(1, 5).at(0, 10));
        for at in 0..3 {
            fixture.push(slice("cpu_op", "works").on(1, 9).at(at * 10, 5));
        }
        let trace = fixture.finish();
        let (lanes, _) = lanes_of(&trace);
        let first = lanes.tracks[0].lanes[0].row(0);
        assert_eq!(trace.name_text(first), "works");
        assert_eq!(lanes.spot(&trace, 0 as Row).map(|spot| spot.track), Some(1));
    }
}
