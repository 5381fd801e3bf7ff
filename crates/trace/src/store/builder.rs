//! Fills the columns of a trace.

use std::collections::HashMap;

use super::{LONG_DUR, NO_LINK, NO_STREAM, PHASE_SHIFT, Row, SPAN_BLOCK, Trace, WIDE_LINK};
use crate::{
    Bind, BuildIdHasher, Event, Flags, IdToken, ImporterNs, Phase, Process, ProcessId, Stream,
    StreamId, StringId, StringTable, TimeNs, Track, TrackId,
};

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
        let row = trace.n_rows;
        let (Ok(len), Ok(row_id)) = (u32::try_from(event.span.len), Row::try_from(row)) else {
            return false;
        };
        if row.is_multiple_of(SPAN_BLOCK) {
            trace.span_bases.push(event.span.start);
        }
        let Some(base) = trace.span_bases.last() else { return false };
        let Ok(start) = u32::try_from(event.span.start - base) else {
            // Never the first row of a block, whose distance is 0: no base stays behind without its row.
            return false;
        };
        debug_assert!(event.span.start >= self.span_end, "spans come in file order");
        self.span_end = event.span.end();

        let mut flags = event.flags;
        trace.ts_ns.put(row, event.ts_ns);
        let dur = match u32::try_from(event.dur_ns) {
            Ok(short) if short != LONG_DUR => short,
            _ => {
                trace.long_durs.push((row_id, event.dur_ns));
                LONG_DUR
            }
        };
        trace.dur.put(row, dur);
        if let Some(importer) = importer {
            flags.set(Flags::ODD_NUMBER);
            trace.importer_ns.push((row_id, importer));
        }
        trace.name.put(row, event.name.0);
        trace.track.put(row, event.track.0);
        let link = narrow(event.link, &mut trace.wide_links, &mut self.by_wide_link);
        trace.link.put(row, link);
        let external = narrow(event.external, &mut trace.wide_links, &mut self.by_wide_link);
        trace.external.put(row, external);
        trace.span_start.put(row, start);
        trace.span_len.put(row, len);
        let category = match self.last_category {
            Some((text, id)) if text == event.raw_category => id,
            _ => self.category(event.raw_category),
        };
        let trace = &mut self.trace;
        trace.raw_category.put(row, category);
        trace.stream.put(row, event.stream.map_or(NO_STREAM, |stream| stream.0));
        trace.flags.put(row, flags.0 | (event.phase as u32) << PHASE_SHIFT);
        trace.n_rows += 1;
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
        if row as usize >= trace.n_rows {
            return;
        }
        let flags = trace.flags.at(row as usize);
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
    use crate::ByteSpan;

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
        // The last one begins past 4 GiB, which an address of a worker cannot say.
        for n in 0..6000_u64 {
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
