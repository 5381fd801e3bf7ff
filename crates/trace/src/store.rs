//! The columnar store and its builder.

use std::collections::HashMap;

use crate::{
    Bind, BuildIdHasher, ByteSpan, Event, Flags, IdToken, ImporterNs, Layout, Metadata, Phase,
    Process, ProcessId, Producer, Segmented, Stream, StreamId, StringId, StringTable, TimeNs,
    Track, TrackId,
};

/// Number of an event in file order, from 0.
pub type Row = u32;

/// `dur` value that means "in the overflow list".
const LONG_DUR: u32 = u32::MAX;
/// `link` and `external` value that means "none".
const NO_LINK: u32 = u32::MAX;
/// Links from here on are indexes into `wide_links`.
const WIDE_LINK: u32 = 1 << 31;
/// Stream value that means "none".
const NO_STREAM: u16 = u16::MAX;
/// Where the phase begins in the word that flags and phase share.
const PHASE_SHIFT: u32 = 27;
/// Events per span base: the start of an event is its block's base plus a u32.
const SPAN_BLOCK: usize = 1 << 10;

/// A decoded trace: every event of the file in file order, as columns.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Every text once.
    pub strings: StringTable,
    /// Every (pid, tid) pair, in order of first appearance.
    pub tracks: Vec<Track>,
    /// Every pid, in order of first appearance.
    pub processes: Vec<Process>,
    /// Every GPU stream, in order of first appearance.
    pub streams: Vec<Stream>,
    /// The document around the events.
    pub layout: Layout,
    /// Top-level facts.
    pub metadata: Metadata,
    /// The program that wrote it.
    pub producer: Producer,
    /// Times in the columns are the file's times minus this. 0 unless the file's own do not fit `i64` ns.
    pub origin_ns: i128,
    ts_ns: Segmented<i64>,
    dur: Segmented<u32>,
    name: Segmented<u32>,
    track: Segmented<u32>,
    link: Segmented<u32>,
    external: Segmented<u32>,
    span_start: Segmented<u32>,
    span_len: Segmented<u32>,
    raw_category: Segmented<u16>,
    stream: Segmented<u16>,
    /// Flags in the low bits, the phase above [`PHASE_SHIFT`].
    flags: Segmented<u32>,
    span_bases: Segmented<u64>,
    /// Distinct raw categories; the column holds indexes.
    raw_categories: Vec<StringId>,
    /// Durations that do not fit the column, sorted by row.
    long_durs: Vec<(Row, i64)>,
    /// How the importer reads [`Flags::ODD_NUMBER`] events, sorted by row.
    importer_ns: Vec<(Row, ImporterNs)>,
    /// Correlations and flow ids that do not fit 31 bits.
    wide_links: Vec<i64>,
    /// Every flag that any event has.
    seen_flags: Flags,
    /// Kernel names of launches, where recorded; sorted by row.
    launched: Vec<(Row, StringId)>,
    /// Flows of the second version; sorted by row.
    binds: Vec<(Row, Bind)>,
    /// How often the importer rejects an event, where that is more than once; sorted by row.
    rejections: Vec<(Row, u32)>,
}

impl Trace {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// Whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// All rows in file order.
    pub fn rows(&self) -> impl Iterator<Item = Row> + use<> {
        0..self.len() as Row
    }

    /// Phase of `row`. Every accessor panics past the end; rows of this trace never are.
    #[inline]
    #[must_use]
    pub fn phase(&self, row: Row) -> Phase {
        Phase::from_index(self.flags.at(row as usize) >> PHASE_SHIFT)
    }

    /// Flags of `row`.
    #[inline]
    #[must_use]
    pub fn flags(&self, row: Row) -> Flags {
        Flags(self.flags.at(row as usize) & ((1 << PHASE_SHIFT) - 1))
    }

    /// The name of the kernel that a launch launches (`args.kernel`, which ROCm's runtime calls have).
    #[must_use]
    pub fn launched_kernel(&self, row: Row) -> Option<StringId> {
        find(&self.launched, row)
    }

    /// All launches that name their kernel, in file order.
    #[must_use]
    pub fn launched_kernels(&self) -> &[(Row, StringId)] {
        &self.launched
    }

    /// The flow that a slice itself starts, continues or ends (`bind_id`).
    #[must_use]
    pub fn bind(&self, row: Row) -> Option<Bind> {
        if self.binds.is_empty() { None } else { find(&self.binds, row) }
    }

    /// All events with a readable `bind_id`, in file order.
    #[must_use]
    pub fn binds(&self) -> &[(Row, Bind)] {
        &self.binds
    }

    /// How many errors the importer counts for the arguments of a [`Flags::ARGS_UNREADABLE`] event.
    #[must_use]
    pub fn rejections(&self, row: Row) -> u64 {
        find(&self.rejections, row).map_or(1, u64::from)
    }

    /// Every flag that at least one event has. A flag that is not in here need not be searched for.
    #[must_use]
    pub fn seen_flags(&self) -> Flags {
        self.seen_flags
    }

    /// Start of `row` in ns relative to [`Trace::origin_ns`]; 0 without [`Flags::HAS_TS`].
    #[inline]
    #[must_use]
    pub fn ts_ns(&self, row: Row) -> TimeNs {
        self.ts_ns.at(row as usize)
    }

    /// Duration of `row` in ns as recorded (it may be negative); 0 without [`Flags::HAS_DUR`].
    #[inline]
    #[must_use]
    pub fn dur_ns(&self, row: Row) -> TimeNs {
        match self.dur.at(row as usize) {
            LONG_DUR => find(&self.long_durs, row).unwrap_or_default(),
            short => i64::from(short),
        }
    }

    /// `ts + dur`, saturating.
    #[inline]
    #[must_use]
    pub fn end_ns(&self, row: Row) -> TimeNs {
        self.ts_ns(row).saturating_add(self.dur_ns(row))
    }

    /// Name of `row`.
    #[inline]
    #[must_use]
    pub fn name(&self, row: Row) -> StringId {
        StringId(self.name.at(row as usize))
    }

    /// Name of `row` as text.
    #[must_use]
    pub fn name_text(&self, row: Row) -> &str {
        self.strings.get(self.name(row))
    }

    /// The file's `cat` of `row`.
    #[inline]
    #[must_use]
    pub fn raw_category(&self, row: Row) -> StringId {
        self.raw_categories
            .get(usize::from(self.raw_category.at(row as usize)))
            .copied()
            .unwrap_or(StringId::EMPTY)
    }

    /// The file's `cat` of `row` as text.
    #[must_use]
    pub fn raw_category_text(&self, row: Row) -> &str {
        self.strings.get(self.raw_category(row))
    }

    /// Applies `tell` to each raw category: once per distinct text, not once per event.
    pub fn by_raw_category<T>(&self, tell: impl Fn(&str) -> T) -> ByRawCategory<T> {
        let told = self.raw_categories.iter().map(|id| tell(self.strings.get(*id))).collect();
        ByRawCategory { told, none: tell("") }
    }

    /// Track of `row`.
    #[inline]
    #[must_use]
    pub fn track(&self, row: Row) -> TrackId {
        TrackId(self.track.at(row as usize))
    }

    /// GPU stream of `row`, for GPU events.
    #[inline]
    #[must_use]
    pub fn stream(&self, row: Row) -> Option<StreamId> {
        let stream = self.stream.at(row as usize);
        (stream != NO_STREAM).then_some(StreamId(stream))
    }

    /// For slices `args.correlation`; for flow events the id as Perfetto reads it (integers as they are,
    /// strings as hexadecimal); with [`Flags::PYTHON_IDS`] the frame's own id.
    #[inline]
    #[must_use]
    pub fn link(&self, row: Row) -> Option<i64> {
        self.wide(self.link.at(row as usize))
    }

    /// `args["External id"]`; with [`Flags::PYTHON_IDS`] the id of the frame that called.
    #[inline]
    #[must_use]
    pub fn external(&self, row: Row) -> Option<i64> {
        self.wide(self.external.at(row as usize))
    }

    /// Where the event's text lies in the decompressed file.
    #[inline]
    #[must_use]
    pub fn span(&self, row: Row) -> ByteSpan {
        let row = row as usize;
        let base = self.span_bases.at(row / SPAN_BLOCK);
        ByteSpan {
            start: base + u64::from(self.span_start.at(row)),
            len: u64::from(self.span_len.at(row)),
        }
    }

    /// The importer's own reading of a [`Flags::ODD_NUMBER`] event.
    #[must_use]
    pub fn importer_ns(&self, row: Row) -> Option<ImporterNs> {
        if !self.flags(row).has(Flags::ODD_NUMBER) {
            return None;
        }
        find(&self.importer_ns, row)
    }

    /// The track `id` names.
    ///
    /// # Panics
    /// For an id of another trace.
    #[must_use]
    pub fn track_info(&self, id: TrackId) -> &Track {
        &self.tracks[id.0 as usize]
    }

    /// The process a track belongs to.
    ///
    /// # Panics
    /// For an id of another trace.
    #[must_use]
    pub fn process_of(&self, id: TrackId) -> &Process {
        &self.processes[self.track_info(id).process.0 as usize]
    }

    /// Bytes held on the heap, the interner included.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            strings,
            tracks,
            processes,
            streams,
            layout: _,
            metadata: _,
            producer: _,
            origin_ns: _,
            ts_ns,
            dur,
            name,
            track,
            link,
            external,
            span_start,
            span_len,
            raw_category,
            stream,
            flags,
            span_bases,
            raw_categories,
            long_durs,
            importer_ns,
            wide_links,
            seen_flags: _,
            launched,
            binds,
            rejections,
        } = self;
        strings.heap_bytes()
            + tracks.capacity() * size_of::<Track>()
            + processes.capacity() * size_of::<Process>()
            + streams.capacity() * size_of::<Stream>()
            + ts_ns.heap_bytes()
            + [dur, name, track, link, external, span_start, span_len]
                .iter()
                .map(|column| column.heap_bytes())
                .sum::<usize>()
            + [raw_category, stream].iter().map(|column| column.heap_bytes()).sum::<usize>()
            + flags.heap_bytes()
            + span_bases.heap_bytes()
            + raw_categories.capacity() * size_of::<StringId>()
            + long_durs.capacity() * size_of::<(Row, i64)>()
            + importer_ns.capacity() * size_of::<(Row, ImporterNs)>()
            + wide_links.capacity() * size_of::<i64>()
            + launched.capacity() * size_of::<(Row, StringId)>()
            + binds.capacity() * size_of::<(Row, Bind)>()
            + rejections.capacity() * size_of::<(Row, u32)>()
    }

    fn wide(&self, link: u32) -> Option<i64> {
        match link {
            NO_LINK => None,
            narrow if narrow < WIDE_LINK => Some(i64::from(narrow)),
            wide => self.wide_links.get((wide - WIDE_LINK) as usize).copied(),
        }
    }
}

/// A value for the raw category of every event ([`Trace::by_raw_category`]).
#[derive(Clone, Debug)]
pub struct ByRawCategory<T> {
    told: Vec<T>,
    none: T,
}

impl<T> ByRawCategory<T> {
    /// The value for the raw category of `row`, an event of the trace that this was made for.
    #[inline]
    #[must_use]
    pub fn of(&self, trace: &Trace, row: Row) -> &T {
        let at = usize::from(trace.raw_category.at(row as usize));
        self.told.get(at).unwrap_or(&self.none)
    }
}

fn find<T: Copy>(sorted: &[(Row, T)], row: Row) -> Option<T> {
    let at = sorted.binary_search_by_key(&row, |(key, _)| *key).ok()?;
    sorted.get(at).map(|(_, value)| *value)
}

/// Fills a [`Trace`], one event at a time, in file order.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    trace: Trace,
    span_end: u64,
    by_track: HashMap<(ProcessId, IdToken), TrackId, BuildIdHasher>,
    by_pid: HashMap<IdToken, ProcessId, BuildIdHasher>,
    by_stream: HashMap<Stream, StreamId, BuildIdHasher>,
    by_category: HashMap<StringId, u16, BuildIdHasher>,
    by_wide_link: HashMap<i64, u32, BuildIdHasher>,
    last_track: Option<(IdToken, IdToken, TrackId)>,
    last_category: Option<(StringId, u16)>,
}

impl TraceBuilder {
    /// The text table, to intern names in.
    pub fn strings(&mut self) -> &mut StringTable {
        &mut self.trace.strings
    }

    /// The trace so far.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The trace so far, to set its layout, metadata and origin.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// The track of a (pid, tid) pair.
    #[inline(never)]
    pub fn track(&mut self, pid: IdToken, tid: IdToken) -> TrackId {
        if let Some((p, t, id)) = self.last_track
            && p == pid
            && t == tid
        {
            return id;
        }
        let process = self.process(pid);
        let tracks = &mut self.trace.tracks;
        let id = *self.by_track.entry((process, tid)).or_insert_with(|| {
            tracks.push(Track { process, tid, name: None, sort_index: None, n_timed: 0 });
            TrackId(tracks.len() as u32 - 1)
        });
        self.last_track = Some((pid, tid, id));
        id
    }

    /// The process of a pid.
    pub fn process(&mut self, pid: IdToken) -> ProcessId {
        let processes = &mut self.trace.processes;
        *self.by_pid.entry(pid).or_insert_with(|| {
            processes.push(Process { pid, name: None, labels: None, sort_index: None });
            ProcessId(processes.len() as u32 - 1)
        })
    }

    /// The GPU stream of a (device, stream) pair; `None` past 65,535 streams.
    #[inline(never)]
    pub fn stream(&mut self, stream: Stream) -> Option<StreamId> {
        if let Some(known) = self.by_stream.get(&stream) {
            return Some(*known);
        }
        let id = u16::try_from(self.trace.streams.len()).ok().filter(|id| *id != NO_STREAM)?;
        self.trace.streams.push(stream);
        self.by_stream.insert(stream, StreamId(id));
        Some(StreamId(id))
    }

    /// The track, to set values of its metadata events; later events win.
    pub fn track_mut(&mut self, id: TrackId) -> Option<&mut Track> {
        self.trace.tracks.get_mut(id.0 as usize)
    }

    /// The process of a track, for its metadata.
    pub fn process_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        self.trace.processes.get_mut(id.0 as usize)
    }

    /// Appends an event; its row is the number of events before it.
    ///
    /// Spans must not overlap and must come in file order. An event longer than 4 GiB is rejected
    /// (`false`), as is event number 2^32: nothing is stored then.
    pub fn push(&mut self, event: &Event, importer: Option<ImporterNs>) -> bool {
        let trace = &mut self.trace;
        let row = trace.flags.len();
        let (Ok(len), Ok(row_id)) = (u32::try_from(event.span.len), Row::try_from(row)) else {
            return false;
        };
        if row.is_multiple_of(SPAN_BLOCK) {
            trace.span_bases.push(event.span.start);
        }
        let base = trace.span_bases.at(row / SPAN_BLOCK);
        let Ok(start) = u32::try_from(event.span.start - base) else {
            // Never the first row of a block, whose distance is 0: no base stays behind without its row.
            return false;
        };
        debug_assert!(event.span.start >= self.span_end, "spans come in file order");
        self.span_end = event.span.end();

        let mut flags = event.flags;
        trace.ts_ns.push(event.ts_ns);
        trace.dur.push(match u32::try_from(event.dur_ns) {
            Ok(short) if short != LONG_DUR => short,
            _ => {
                trace.long_durs.push((row_id, event.dur_ns));
                LONG_DUR
            }
        });
        if let Some(importer) = importer {
            flags.set(Flags::ODD_NUMBER);
            trace.importer_ns.push((row_id, importer));
        }
        trace.name.push(event.name.0);
        trace.track.push(event.track.0);
        let link = narrow(event.link, &mut trace.wide_links, &mut self.by_wide_link);
        trace.link.push(link);
        let external = narrow(event.external, &mut trace.wide_links, &mut self.by_wide_link);
        trace.external.push(external);
        trace.span_start.push(start);
        trace.span_len.push(len);
        let category = match self.last_category {
            Some((text, id)) if text == event.raw_category => id,
            _ => self.category(event.raw_category),
        };
        let trace = &mut self.trace;
        trace.raw_category.push(category);
        trace.stream.push(event.stream.map_or(NO_STREAM, |stream| stream.0));
        trace.flags.push(flags.0 | (event.phase as u32) << PHASE_SHIFT);
        trace.seen_flags.set(flags);
        if event.phase != Phase::Metadata
            && let Some(track) = trace.tracks.get_mut(event.track.0 as usize)
        {
            track.n_timed = track.n_timed.saturating_add(1);
        }
        true
    }

    #[inline(never)]
    fn category(&mut self, text: StringId) -> u16 {
        let categories = &mut self.trace.raw_categories;
        let id = *self.by_category.entry(text).or_insert_with(|| {
            // Past 65,535 raw categories the rest share the last one.
            let id = u16::try_from(categories.len()).unwrap_or(u16::MAX);
            if id != u16::MAX || categories.len() == usize::from(u16::MAX) {
                categories.push(text);
            }
            id
        });
        self.last_category = Some((text, id));
        id
    }

    /// Stores the name of the kernel that the last event launches.
    pub fn launches(&mut self, row: Row, kernel: StringId) {
        debug_assert_eq!(row as usize + 1, self.trace.len());
        self.trace.launched.push((row, kernel));
    }

    /// Gives an event another start; without one it has no readable time, and `importer` is how Perfetto reads it.
    pub fn move_event(&mut self, row: Row, ts_ns: Option<TimeNs>, importer: ImporterNs) {
        let trace = &mut self.trace;
        trace.ts_ns.set(row as usize, ts_ns.unwrap_or_default());
        if ts_ns.is_some() {
            return;
        }
        let Some(flags) = trace.flags.get(row as usize) else { return };
        let lost = Flags(Flags::TS_UNREADABLE.0 | Flags::TS_BEYOND.0 | Flags::ODD_NUMBER.0);
        trace.flags.set(row as usize, flags & !Flags::HAS_TS.0 | lost.0);
        trace.seen_flags.set(lost);
        match trace.importer_ns.binary_search_by_key(&row, |(row, _)| *row) {
            Ok(at) => trace.importer_ns[at].1 = importer,
            Err(at) => trace.importer_ns.insert(at, (row, importer)),
        }
    }

    /// Notes the flow of the second version that the last event takes part in.
    pub fn binds(&mut self, row: Row, bind: Bind) {
        debug_assert_eq!(row as usize + 1, self.trace.len());
        self.trace.binds.push((row, bind));
    }

    /// Notes that the importer rejects the last event `n` times, for as many arguments.
    pub fn rejects(&mut self, row: Row, n: u32) {
        debug_assert_eq!(row as usize + 1, self.trace.len());
        self.trace.rejections.push((row, n));
    }

    /// The finished trace.
    #[must_use]
    pub fn finish(self) -> Trace {
        self.trace
    }
}

#[inline]
fn narrow(
    link: Option<i64>,
    wide: &mut Vec<i64>,
    known: &mut HashMap<i64, u32, BuildIdHasher>,
) -> u32 {
    match link {
        None => NO_LINK,
        Some(value) => match u32::try_from(value) {
            Ok(value) if value < WIDE_LINK => value,
            _ => widen(value, wide, known),
        },
    }
}

#[inline(never)]
fn widen(value: i64, wide: &mut Vec<i64>, known: &mut HashMap<i64, u32, BuildIdHasher>) -> u32 {
    *known.entry(value).or_insert_with(|| {
        wide.push(value);
        // 2^31 - 1 distinct wide ids would need a file of hundreds of gigabytes.
        WIDE_LINK + (wide.len() as u32 - 1).min(WIDE_LINK - 2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(builder: &mut TraceBuilder, start: u64) -> Event {
        let name = builder.strings().intern("k");
        let raw_category = builder.strings().intern("kernel");
        Event {
            phase: Phase::Complete,
            flags: Flags(Flags::HAS_TS.0 | Flags::HAS_DUR.0),
            ts_ns: 5,
            dur_ns: 7,
            name,
            raw_category,
            track: builder.track(IdToken::Int(0), IdToken::Int(7)),
            link: None,
            external: None,
            stream: None,
            span: ByteSpan { start, len: 10 },
        }
    }

    #[test]
    fn wide_values_survive_narrow_columns() {
        let mut builder = TraceBuilder::default();
        for (n, (dur, link)) in
            [(7, Some(3)), (i64::MAX, Some(-1)), (-5, Some(1 << 40)), (u32::MAX.into(), None)]
                .into_iter()
                .enumerate()
        {
            let mut event = event(&mut builder, n as u64 * 10);
            event.dur_ns = dur;
            event.link = link;
            assert!(builder.push(&event, None));
        }
        let trace = builder.finish();
        let durs: Vec<_> = trace.rows().map(|row| trace.dur_ns(row)).collect();
        assert_eq!(durs, [7, i64::MAX, -5, i64::from(u32::MAX)]);
        let links: Vec<_> = trace.rows().map(|row| trace.link(row)).collect();
        assert_eq!(links, [Some(3), Some(-1), Some(1 << 40), None]);
    }

    #[test]
    fn spans_survive_blocks_and_distances() {
        let mut builder = TraceBuilder::default();
        for n in 0..3000_u64 {
            let event = event(&mut builder, n * 1_000_000);
            assert!(builder.push(&event, None));
        }
        let trace = builder.finish();
        assert!(trace.rows().all(|row| trace.span(row).start == u64::from(row) * 1_000_000));
    }

    #[test]
    fn an_event_stays_under_48_bytes() {
        let mut builder = TraceBuilder::default();
        let n = 1 << 17;
        for row in 0..n {
            let event = event(&mut builder, row * 260);
            assert!(builder.push(&event, None));
        }
        let trace = builder.finish();
        assert!(trace.heap_bytes() as u64 <= 48 * n, "{} bytes", trace.heap_bytes() as u64 / n);
    }
}
