//! The GPU slices of a trace in time order, with the class of each name. Every analysis uses this index.

use std::collections::HashMap;

use catalog::{Category, Family, Platform, RawKind};
use dialect::Records;
use trace::{BuildIdHasher, ByRawCategory, Flags, Row, StreamId, StringId, Trace, each_of};

use crate::Options;
use crate::before_window::{BeforeWindowSlices, duration_ns};

/// GPU slices, sorted by start.
pub struct Gpu<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Every distinct (name, kind), in order of first appearance.
    pub works: Vec<Work>,
    rows: Vec<Row>,
    /// Index into `works`, beside `rows`.
    work_of: Vec<u32>,
    before_window: Vec<bool>,
    /// GPU slices that are excluded because they were launched before profiling started. They ran concurrently.
    beside: Beside,
    /// The id of the device that all slices are of.
    device: String,
}

/// GPU slices that no table counts, sorted by start.
#[derive(Clone, Default)]
struct Beside {
    rows: Vec<Row>,
    /// Index into [`Gpu::works`] and then `works`, beside `rows`.
    work_of: Vec<u32>,
    /// Names that nothing else has.
    works: Vec<Work>,
}

/// A name that ran on the GPU, with what the catalog says about it.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The name.
    pub name: StringId,
    /// Kernel, copy or fill.
    pub kind: RawKind,
    /// What it does.
    pub category: Category,
    /// The library or compiler that it comes from.
    pub family: Family,
    /// What decided the category.
    pub decided_by: DecidedBy,
}

/// What decided the category of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The rule of the catalog with this id.
    Rule(&'static str),
    /// Its ops: no rule matches the name, or the rule leaves it open. Only triage has ops.
    Op,
    /// Nothing: no rule matches the name, and its ops are unknown.
    Nothing,
}

/// One GPU slice.
#[derive(Clone, Copy)]
pub struct GpuSlice {
    /// Start, in ns of the trace.
    pub start_ns: i64,
    /// Never negative.
    pub dur_ns: i64,
    /// Index into [`Gpu::works`].
    pub work: usize,
    /// The stream; `None` where the file does not tell.
    pub stream: Option<StreamId>,
    /// Whether it was launched before profiling started.
    pub before_window: bool,
}

impl GpuSlice {
    /// End, in ns of the trace.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.dur_ns)
    }
}

impl<'a> Gpu<'a> {
    /// The GPU slices that `options` choose.
    #[inline(never)]
    pub fn new(
        trace: &'a Trace,
        platform: Platform,
        before: &BeforeWindowSlices,
        options: &Options,
    ) -> Self {
        // Which streams count: decided once per stream, not once per slice.
        let on_device: Option<Vec<bool>> = options.device.as_ref().map(|device| {
            let streams = trace.streams.iter();
            streams.map(|stream| stream.device.display(&trace.strings) == *device).collect()
        });
        let is_on_device = |row: Row| match (&on_device, trace.stream(row)) {
            (None, _) => true,
            (Some(keep), Some(StreamId(id))) => keep.get(usize::from(id)) == Some(&true),
            (Some(_), None) => false,
        };
        let is_wanted = |row: Row| {
            is_on_device(row) && !(options.without_before_window && before.contains(trace, row))
        };
        let mut rows = before.gpu_rows.clone();
        if *options != Options::default() {
            rows.retain(|row| is_wanted(*row));
        }
        // Stable, and quick on what is nearly sorted already.
        trace::sort_numbers(&mut rows, &|a, b| trace.ts_ns(a).cmp(&trace.ts_ns(b)));

        // (Only what is left out for that: other devices hide nothing.)
        let mut left_out: Vec<Row> = Vec::new();
        if options.without_before_window {
            left_out.extend(
                before
                    .gpu_rows
                    .iter()
                    .copied()
                    .filter(|row| is_on_device(*row) && before.contains(trace, *row)),
            );
            trace::sort_numbers(&mut left_out, &|a, b| trace.ts_ns(a).cmp(&trace.ts_ns(b)));
        }

        let others = trace.by_raw_category(other_kind);
        let mut works = Vec::new();
        let mut known: HashMap<(StringId, u8), u32, BuildIdHasher> = HashMap::default();
        let mut work_of = Vec::with_capacity(rows.len());
        let mut before_window = Vec::with_capacity(rows.len());
        each_of(&rows, |row| {
            let name = trace.name(row);
            let kind = kind(trace, row, &others);
            let work = *known.entry((name, kind as u8)).or_insert_with(|| {
                works.push(Work::of(trace, name, kind, platform));
                works.len() as u32 - 1
            });
            work_of.push(work);
            before_window.push(before.contains(trace, row));
        });
        let mut beside = Beside { rows: left_out, ..Beside::default() };
        each_of(&beside.rows, |row| {
            let (name, kind) = (trace.name(row), kind(trace, row, &others));
            let work = *known.entry((name, kind as u8)).or_insert_with(|| {
                beside.works.push(Work::of(trace, name, kind, platform));
                (works.len() + beside.works.len()) as u32 - 1
            });
            beside.work_of.push(work);
        });
        Self { trace, works, rows, work_of, before_window, beside, device: String::new() }
    }

    /// The slices of each device by themselves, in the order of the file's streams. Names keep
    /// their numbers in [`Gpu::works`]. Work whose stream is not known can only be that of the one device, if there is
    /// one; beside several it is one of its own, without an id.
    #[inline(never)]
    pub fn by_device(self) -> Vec<Self> {
        let ids: Vec<String> = self
            .trace
            .streams
            .iter()
            .map(|stream| stream.device.display(&self.trace.strings))
            .collect();
        let id_of = |stream: Option<StreamId>| {
            let id = stream.and_then(|StreamId(id)| ids.get(usize::from(id)));
            id.map_or("", String::as_str)
        };
        let mut devices: Vec<&str> = Vec::new();
        let mut device_of: Vec<usize> = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            let id = id_of(self.slice(at).stream);
            let known = devices.iter().position(|device| *device == id);
            device_of.push(known.unwrap_or_else(|| {
                devices.push(id);
                devices.len() - 1
            }));
        }
        if devices.iter().filter(|id| !id.is_empty()).count() < 2 {
            let id = devices.iter().find(|id| !id.is_empty()).copied().unwrap_or_default();
            return vec![Self { device: id.to_owned(), ..self }];
        }
        let mut order: Vec<usize> = (0..devices.len()).collect();
        order.sort_by_key(|device| {
            ids.iter().position(|id| id == devices[*device]).unwrap_or(usize::MAX)
        });
        let part = |device: usize| {
            let own: Vec<usize> = (0..self.len()).filter(|at| device_of[*at] == device).collect();
            Self {
                trace: self.trace,
                works: self.works.clone(),
                rows: own.iter().map(|at| self.rows[*at]).collect(),
                work_of: own.iter().map(|at| self.work_of[*at]).collect(),
                before_window: own.iter().map(|at| self.before_window[*at]).collect(),
                beside: self.beside.only(|row| id_of(self.trace.stream(row)) == devices[device]),
                device: devices[device].to_owned(),
            }
        };
        order.into_iter().map(part).collect()
    }

    /// The id of the device of the slices, if [`Gpu::by_device`] found one; empty for slices of all devices, and of those
    /// whose device is not recorded.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Calls `each` with all GPU slices, by start.
    pub fn each_slice(&self, mut each: impl FnMut(GpuSlice)) {
        let mut at = 0;
        each_of(&self.rows, |_| {
            each(self.slice(at));
            at += 1;
        });
    }

    /// Calls `each` with the event of all GPU slices, by start.
    pub fn each_row(&self, each: impl FnMut(Row)) {
        each_of(&self.rows, each);
    }

    /// The number of GPU slices.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no slice counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The event of the `at`-th GPU slice by start.
    pub fn row(&self, at: usize) -> Row {
        self.rows[at]
    }

    /// The `at`-th GPU slice by start.
    #[inline]
    pub fn slice(&self, at: usize) -> GpuSlice {
        let row = self.rows[at];
        GpuSlice {
            start_ns: self.trace.ts_ns(row),
            dur_ns: duration_ns(self.trace, row),
            work: self.work_of[at] as usize,
            stream: self.trace.stream(row),
            before_window: self.before_window[at],
        }
    }

    /// Number of excluded slices, which ran concurrently.
    pub fn n_beside(&self) -> usize {
        self.beside.rows.len()
    }

    /// The `at`-th of them by start; its work may be one that only [`Gpu::work`] knows.
    #[inline]
    pub fn slice_beside(&self, at: usize) -> GpuSlice {
        let row = self.beside.rows[at];
        GpuSlice {
            start_ns: self.trace.ts_ns(row),
            dur_ns: duration_ns(self.trace, row),
            work: self.beside.work_of[at] as usize,
            stream: self.trace.stream(row),
            before_window: true,
        }
    }

    /// How many names there are, with those of the slices that nothing counts.
    pub fn n_works(&self) -> usize {
        self.works.len() + self.beside.works.len()
    }

    /// A name by its number, also of the slices that nothing counts.
    pub fn work(&self, work: usize) -> &Work {
        match work.checked_sub(self.works.len()) {
            Some(beside) => &self.beside.works[beside],
            None => &self.works[work],
        }
    }

    /// Whether the slice is a kernel (and neither copy nor fill).
    pub fn is_kernel(&self, slice: &GpuSlice) -> bool {
        self.work(slice.work).kind == RawKind::Kernel
    }
}

impl Work {
    fn of(trace: &Trace, name: StringId, kind: RawKind, platform: Platform) -> Self {
        let class = catalog::classify(kind, trace.strings.get(name), platform);
        let decided_by = match class.category {
            Category::Other => DecidedBy::Nothing,
            _ => DecidedBy::Rule(class.rule),
        };
        Self { name, kind, category: class.category, family: class.family, decided_by }
    }
}

impl Beside {
    fn only(&self, wanted: impl Fn(Row) -> bool) -> Self {
        let kept = self.rows.iter().zip(&self.work_of).filter(|(row, _)| wanted(**row));
        let (rows, work_of) = kept.map(|(row, work)| (*row, *work)).unzip();
        Self { rows, work_of, works: self.works.clone() }
    }
}

fn kind(trace: &Trace, row: Row, others: &ByRawCategory<RawKind>) -> RawKind {
    if trace.flags(row).has(Flags::KERNEL) { RawKind::Kernel } else { *others.of(trace, row) }
}

/// What a GPU slice of a raw category is, if not a kernel.
fn other_kind(raw_category: &str) -> RawKind {
    match dialect::known(raw_category) {
        Some(Records::GpuFill) => RawKind::Memset,
        _ => RawKind::Memcpy,
    }
}

/// Sum, union and extent of slices that are added by start.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Number of slices.
    pub n: u64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Time during which at least one of them ran.
    pub busy_ns: i64,
    /// First start.
    pub first_ns: i64,
    /// Last end.
    pub last_ns: i64,
}

impl Default for Extent {
    fn default() -> Self {
        Self { n: 0, total_ns: 0, busy_ns: 0, first_ns: i64::MAX, last_ns: i64::MIN }
    }
}

impl Extent {
    /// Adds a slice that starts no earlier than any before it.
    #[inline(never)]
    pub fn add(&mut self, slice: &GpuSlice) {
        let (start, end) = (slice.start_ns, slice.end_ns());
        self.n += 1;
        self.total_ns = self.total_ns.saturating_add(slice.dur_ns);
        self.first_ns = self.first_ns.min(start);
        // Everything before `last_ns` is counted; only what reaches past it is new.
        if end > self.last_ns {
            self.busy_ns = self.busy_ns.saturating_add(end.saturating_sub(start.max(self.last_ns)));
            self.last_ns = end;
        }
    }

    /// From the first start to the last end; 0 of nothing.
    pub fn span_ns(&self) -> i64 {
        if self.n == 0 { 0 } else { self.last_ns.saturating_sub(self.first_ns) }
    }

    /// The span without the busy time.
    pub fn idle_ns(&self) -> i64 {
        self.span_ns().saturating_sub(self.busy_ns)
    }

    /// Time that the slices ran concurrently.
    pub fn overlap_ns(&self) -> i64 {
        self.total_ns.saturating_sub(self.busy_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(slices: &[(i64, i64)]) -> Extent {
        let mut extent = Extent::default();
        for (start_ns, dur_ns) in slices {
            extent.add(&GpuSlice {
                start_ns: *start_ns,
                dur_ns: *dur_ns,
                work: 0,
                stream: None,
                before_window: false,
            });
        }
        extent
    }

    #[test]
    fn busy_counts_covered_time_once() {
        let found = extent(&[(0, 10), (2, 3), (5, 10), (15, 0), (20, 5), (20, 7), (27, 1)]);
        assert_eq!((found.n, found.total_ns, found.busy_ns), (7, 36, 23));
        assert_eq!((found.span_ns(), found.idle_ns()), (28, 5));
    }

    #[test]
    fn nothing_is_nothing() {
        let found = extent(&[]);
        assert_eq!((found.span_ns(), found.idle_ns(), found.busy_ns), (0, 0, 0));
        let found = extent(&[(-5, 0), (3, 0)]);
        assert_eq!((found.span_ns(), found.idle_ns(), found.busy_ns), (8, 8, 0));
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let found = extent(&[(i64::MIN, i64::MAX), (0, i64::MAX), (5, i64::MAX)]);
        assert_eq!(found.total_ns, i64::MAX);
        assert_eq!(found.last_ns, i64::MAX);
    }
}
