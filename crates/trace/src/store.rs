//! The columnar store.

mod builder;

pub use builder::TraceBuilder;

use crate::{
    Bind, ByteSpan, Flags, ImporterNs, Layout, Metadata, Phase, Process, Producer, Segmented,
    Stream, StreamId, StringId, StringTable, TimeNs, Track, TrackId,
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

/// The step or the rank that a trace is narrowed to, and what analyses of it need of the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePart {
    /// The name of the step, as people read it; `None` where it is all of a rank.
    pub step: Option<String>,
    /// When the first event of the file begins: there Perfetto's timeline does.
    pub file_start_ns: TimeNs,
    /// Whether the file has launch calls: without one, no GPU slice is known to be launched before the step.
    pub has_launches: bool,
}

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
    /// What it is narrowed to, if it is not the whole file.
    pub part: Option<TracePart>,
    /// Number of events: of rows in each column.
    n_rows: usize,
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
    /// Where each block of [`SPAN_BLOCK`] rows starts.
    span_bases: Vec<u64>,
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
        self.n_rows
    }

    /// Whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
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

    /// Whether `row` is a complete slice that has all of `flags` and none of `but`.
    #[inline]
    #[must_use]
    pub fn is_complete(&self, row: Row, flags: Flags, but: Flags) -> bool {
        let mask = !((1 << PHASE_SHIFT) - 1) | flags.0 | but.0;
        self.flags.at(row as usize) & mask == (Phase::Complete as u32) << PHASE_SHIFT | flags.0
    }

    /// Start and duration of a complete slice that has both, neither of them before 0 or above `most_ns`, and none of the flags
    /// `but`: of most events, by one call. `None` for every other event.
    #[inline]
    #[must_use]
    pub fn sound_slice(&self, row: Row, but: Flags, most_ns: TimeNs) -> Option<(TimeNs, u32)> {
        if !self.is_complete(row, Flags(Flags::HAS_TS.0 | Flags::HAS_DUR.0), but) {
            return None;
        }
        let (ts_ns, dur_ns) = (self.ts_ns.at(row as usize), self.dur.at(row as usize));
        let is_sound =
            (0..=most_ns).contains(&ts_ns) && dur_ns != LONG_DUR && i64::from(dur_ns) <= most_ns;
        is_sound.then_some((ts_ns, dur_ns))
    }

    /// Start of a flow event that has one, not before 0 nor above `most_ns`, and an id, and none of the flags `but`.
    #[inline]
    #[must_use]
    pub fn sound_flow(&self, row: Row, but: Flags, most_ns: TimeNs) -> Option<(Phase, TimeNs)> {
        let flags = self.flags.at(row as usize);
        let phase = Phase::from_index(flags >> PHASE_SHIFT);
        let has = Flags::HAS_TS.0;
        if !phase.is_flow() || flags & (has | but.0) != has {
            return None;
        }
        let ts_ns = self.ts_ns.at(row as usize);
        let is_sound = (0..=most_ns).contains(&ts_ns) && self.link.at(row as usize) != NO_LINK;
        is_sound.then_some((phase, ts_ns))
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

    /// Makes the `External id` of `row` its correlation.
    pub fn link_by_external(&mut self, row: Row) {
        let external = self.external.at(row as usize);
        self.link.set(row as usize, external);
    }

    /// Removes the correlation of `row`.
    pub fn unlink(&mut self, row: Row) {
        self.link.set(row as usize, NO_LINK);
    }

    /// Makes `row` an event that analyses pass over. Its span and its arguments stay.
    pub fn hide(&mut self, row: Row) {
        self.flags.set(row as usize, (Phase::Other as u32) << PHASE_SHIFT);
    }

    /// Gives the slice `row` another start and duration, of 0 ns or more.
    pub fn set_time(&mut self, row: Row, ts_ns: TimeNs, dur_ns: TimeNs) {
        self.ts_ns.set(row as usize, ts_ns);
        let short = u32::try_from(dur_ns).ok().filter(|short| *short != LONG_DUR);
        self.dur.set(row as usize, short.unwrap_or(LONG_DUR));
        if short.is_none() {
            match self.long_durs.binary_search_by_key(&row, |(known, _)| *known) {
                Ok(at) => self.long_durs[at].1 = dur_ns,
                Err(at) => self.long_durs.insert(at, (row, dur_ns)),
            }
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
        let base = self.span_bases[row / SPAN_BLOCK];
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
            part: _,
            n_rows: _,
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
            + span_bases.capacity() * size_of::<u64>()
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
