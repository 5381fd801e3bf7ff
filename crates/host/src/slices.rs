//! The slices of a trace by family and thread, nested.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use dialect::{Records, kineto};
use timeline::before_window::{duration_ns, is_gpu_slice};
use timeline::intervals::{Interval, union};
use timeline::recorded::has_lost_its_end;
use trace::{Flags, Phase, Row, SmallIndex, Trace, TrackId, each_row};

use crate::class::{Class, is_blocking_copy};

/// One slice of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSlice {
    /// Its event.
    pub row: Row,
    /// Start, in ns of the trace.
    pub start_ns: i64,
    /// End, in ns of the trace; never before the start.
    pub end_ns: i64,
}

impl HostSlice {
    /// Duration in ns.
    #[must_use]
    pub fn dur_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }

    /// From start to before end.
    #[must_use]
    pub fn interval(&self) -> (i64, i64) {
        (self.start_ns, self.end_ns)
    }

    /// Whether `at_ns` lies in it.
    #[must_use]
    pub fn holds(&self, at_ns: i64) -> bool {
        self.start_ns <= at_ns && at_ns < self.end_ns
    }
}

/// What a slice is, as the figures of the host count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A kernel, copy or fill.
    Gpu,
    /// An op.
    Op,
    /// A frame of Python.
    Frame,
    /// A call of a runtime or driver.
    Call,
    /// A range that somebody named.
    Annotation,
    /// Everything else.
    Other,
}

impl Family {
    fn of(raw_category: &str) -> Self {
        match dialect::known(raw_category) {
            Some(Records::Op) => Self::Op,
            Some(Records::Frame) => Self::Frame,
            Some(Records::Call(_)) => Self::Call,
            Some(Records::Annotation) => Self::Annotation,
            _ => Self::Other,
        }
    }
}

/// A thread, or a lane of GPU work: what has one pid and one tid, as the file spells them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// The pid as text.
    pub pid: String,
    /// The tid as text.
    pub tid: String,
}

/// Number of a thread in [`Slices::threads`].
pub type ThreadId = u32;

/// Every slice with a readable start, by family.
pub struct Slices<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Threads with a slice, in order of first appearance.
    pub threads: Vec<Thread>,
    /// By track: its thread.
    thread_of_track: Vec<Option<ThreadId>>,
    /// Ops, nested.
    pub ops: Nested,
    /// Frames of Python, nested.
    pub frames: Nested,
    /// Ops and frames with the ends that some of them lost; `None` where none did.
    closed: [Option<Nested>; 2],
    /// Calls, in file order.
    pub calls: Vec<HostSlice>,
    /// Annotations of the host, in file order.
    pub annotations: Vec<HostSlice>,
    /// The profiler's steps on the host, by start.
    pub steps: Vec<HostSlice>,
    /// The profiler's copies of them around the work on the GPU, by start.
    pub step_copies: Vec<HostSlice>,
    /// All slices, in file order, with their families.
    pub all: Vec<(HostSlice, Family)>,
    /// By name: what calls of it do, and whether they copy and block. (Read off each name once.)
    call_names: Vec<Option<(Class, bool)>>,
}

impl<'a> Slices<'a> {
    /// Sorts the slices of a trace into families.
    #[inline(never)]
    #[must_use]
    pub fn of(trace: &'a Trace) -> Self {
        let families = trace.by_raw_category(Family::of);
        let mut found = Self {
            trace,
            threads: Vec::new(),
            thread_of_track: vec![None; trace.tracks.len()],
            ops: Nested::default(),
            frames: Nested::default(),
            closed: [None, None],
            calls: Vec::new(),
            annotations: Vec::new(),
            steps: Vec::new(),
            step_copies: Vec::new(),
            all: Vec::new(),
            call_names: vec![None; trace.strings.len()],
        };
        let (mut ops, mut frames) = (Vec::new(), Vec::new());
        let mut known = BTreeMap::new();
        each_row(trace, |row| {
            let wanted = trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS);
            if !wanted {
                return;
            }
            let family =
                if is_gpu_slice(trace, row) { Family::Gpu } else { *families.of(trace, row) };
            let start_ns = trace.ts_ns(row);
            let end_ns = start_ns.saturating_add(duration_ns(trace, row));
            let slice = HostSlice { row, start_ns, end_ns };
            found.add_thread(trace.track(row), &mut known);
            found.all.push((slice, family));
            match family {
                Family::Op => ops.push(slice),
                Family::Frame => frames.push(slice),
                Family::Call => {
                    let name = trace.name(row);
                    found.call_names[name.0 as usize].get_or_insert_with(|| {
                        let name = trace.strings.get(name);
                        (Class::of(name), is_blocking_copy(name))
                    });
                    found.calls.push(slice);
                }
                Family::Annotation => found.annotations.push(slice),
                Family::Gpu | Family::Other => {}
            }
        });
        found.ops = found.nest(ops);
        found.frames = found.nest(frames);
        found.closed = [found.ops.closed(), found.frames.closed()];
        found.find_steps();
        found
    }

    /// The ops, to look up what a thread is in at a moment: those that lost their end have that of the one around them. Figures of ops are of
    /// [`Self::ops`], as the file has them.
    #[must_use]
    pub fn closed_ops(&self) -> &Nested {
        self.closed[0].as_ref().unwrap_or(&self.ops)
    }

    /// The frames of Python, likewise.
    #[must_use]
    pub(crate) fn closed_frames(&self) -> &Nested {
        self.closed[1].as_ref().unwrap_or(&self.frames)
    }

    /// The thread of an event.
    #[must_use]
    pub fn thread(&self, row: Row) -> ThreadId {
        let TrackId(track) = self.trace.track(row);
        self.thread_of_track.get(track as usize).copied().flatten().unwrap_or_default()
    }

    /// The thread of a track, if it has a slice.
    #[must_use]
    pub fn thread_of(&self, TrackId(track): TrackId) -> Option<ThreadId> {
        self.thread_of_track.get(track as usize).copied().flatten()
    }

    /// The name of an event.
    #[must_use]
    pub fn name(&self, slice: &HostSlice) -> &'a str {
        self.trace.name_text(slice.row)
    }

    /// The ops of one name, by number.
    #[must_use]
    pub(crate) fn ops_named(&self, name: &str) -> Vec<usize> {
        let Some(name) = self.trace.strings.find(name) else { return Vec::new() };
        let ops = self.ops.slices.iter().enumerate();
        ops.filter(|(_, op)| self.trace.name(op.row) == name).map(|(at, _)| at).collect()
    }

    /// What a call does.
    #[must_use]
    pub fn class(&self, call: &HostSlice) -> Class {
        self.call_name(call).map_or(Class::Other, |(class, _)| class)
    }

    /// Whether a call copies and, by its name, waits for the copy.
    #[must_use]
    pub fn blocks(&self, call: &HostSlice) -> bool {
        self.call_name(call).is_some_and(|(_, blocks)| blocks)
    }

    fn call_name(&self, call: &HostSlice) -> Option<(Class, bool)> {
        self.call_names.get(self.trace.name(call.row).0 as usize).copied().flatten()
    }

    /// When ranges and frames of torch.compile's compiler run, on any thread.
    #[must_use]
    pub fn compiling(&self) -> Vec<Interval> {
        self.within(dialect::inductor::compiles)
    }

    /// When graphs are captured, or that is prepared, on any thread: sorted and disjoint.
    #[must_use]
    pub fn capturing(&self) -> Vec<Interval> {
        let ranges = self.within(dialect::inductor::captures);
        union([ranges, timeline::captures::recording(self.trace)].concat())
    }

    /// When a range or a frame is open of whose name that holds.
    fn within(&self, is: fn(&str) -> bool) -> Vec<Interval> {
        let mut known: Vec<Option<bool>> = vec![None; self.trace.strings.len()];
        let all = self.annotations.iter().chain(&self.frames.slices);
        let own = all.filter(|slice| {
            let id = self.trace.name(slice.row).0 as usize;
            *known[id].get_or_insert_with(|| is(self.name(slice)))
        });
        union(own.map(HostSlice::interval).collect())
    }

    /// Whether each name has `part` in it, by name.
    #[must_use]
    pub fn names_with(&self, part: &str) -> Vec<bool> {
        self.trace.strings.marked(&|name| name.contains(part))
    }

    /// Nests slices of one family.
    #[must_use]
    pub fn nest(&self, slices: Vec<HostSlice>) -> Nested {
        Nested::new(slices, |row| self.thread(row))
    }

    /// The steps of the profiler, by start: those of the host, and the profiler's copies around the work on the GPU.
    fn find_steps(&mut self) {
        let trace = self.trace;
        let names = trace.strings.marked(&is_step);
        let is_gpu_side =
            trace.by_raw_category(|raw| dialect::known(raw) == Some(Records::GpuAnnotation));
        let mut steps: Vec<HostSlice> = self
            .all
            .iter()
            .map(|(slice, _)| *slice)
            .filter(|slice| names[trace.name(slice.row).0 as usize])
            .collect();
        trace::sort_by_key(&mut steps, |slice| (slice.start_ns, slice.row));
        (self.steps, self.step_copies) =
            steps.into_iter().partition(|slice| !*is_gpu_side.of(trace, slice.row));
    }

    /// Notes the thread of a track. Tracks whose ids are spelled alike are one thread (`known`).
    fn add_thread(&mut self, track: TrackId, known: &mut BTreeMap<Thread, ThreadId>) {
        if self.thread_of(track).is_some() {
            return;
        }
        let strings = &self.trace.strings;
        let pid = self.trace.process_of(track).pid.display(strings);
        let tid = self.trace.track_info(track).tid.display(strings);
        let thread = Thread { pid, tid };
        let id = *known.entry(thread.clone()).or_insert_with(|| {
            self.threads.push(thread);
            self.threads.len() as ThreadId - 1
        });
        if let Some(place) = self.thread_of_track.get_mut(track.0 as usize) {
            *place = Some(id);
        }
    }
}

/// When some slices begin, by thread: to ask whether one of them begins within another.
pub struct Begins(Vec<(ThreadId, i64)>);

impl Begins {
    /// Those of `all`.
    #[must_use]
    pub fn of(slices: &Slices<'_>, all: impl Iterator<Item = HostSlice>) -> Self {
        let mut all: Vec<(ThreadId, i64)> =
            all.map(|one| (slices.thread(one.row), one.start_ns)).collect();
        trace::sort(&mut all);
        Self(all)
    }

    /// Whether one begins within a slice of a thread.
    #[must_use]
    pub fn any_within(&self, thread: ThreadId, slice: &HostSlice) -> bool {
        let first = self.0.partition_point(|one| *one < (thread, slice.start_ns));
        self.0.get(first).is_some_and(|one| *one < (thread, slice.end_ns))
    }
}

/// `ProfilerStep#5`, `ProfilerStep5`: the start of the name decides.
#[must_use]
pub fn is_step(name: &str) -> bool {
    name.strip_prefix(kineto::STEP).is_some_and(|rest| {
        let rest = rest.strip_prefix('#').unwrap_or(rest);
        rest.starts_with(|letter: char| letter.is_ascii_digit())
    })
}

/// Slices of one family, nested on each thread: a stack of slices from which those are taken that end at or before the start
/// of the next one. The parent is the top of the stack. A slice may end after its parent (a crossing).
#[derive(Clone, Debug, Default)]
pub struct Nested {
    /// By thread, then start, the longest first, then file order.
    pub slices: Vec<HostSlice>,
    /// The slice that each one lies in, by number.
    parents: Vec<Option<SmallIndex>>,
    /// The slices of each thread that has one.
    threads: Vec<(ThreadId, Range<usize>)>,
    /// Slices that end after their parent.
    pub n_crossings: u64,
}

impl Nested {
    /// Nests slices; `thread_of` tells the thread of an event.
    #[inline(never)]
    #[must_use]
    pub fn new(slices: Vec<HostSlice>, thread_of: impl Fn(Row) -> ThreadId) -> Self {
        // By thread first: then most lists are sorted already, which the stable sort is quick on.
        let mut of_thread: Vec<Vec<HostSlice>> = Vec::new();
        for slice in &slices {
            let thread = thread_of(slice.row) as usize;
            if thread >= of_thread.len() {
                of_thread.resize_with(thread + 1, Vec::new);
            }
            of_thread[thread].push(*slice);
        }
        let n = slices.len();
        drop(slices);
        let mut found = Self {
            slices: Vec::with_capacity(n),
            parents: Vec::with_capacity(n),
            ..Self::default()
        };
        for (thread, mut own) in (0..).zip(of_thread) {
            if !own.is_empty() {
                own.sort_by_key(|slice| (slice.start_ns, Reverse(slice.end_ns), slice.row));
                found.nest_thread(thread, &own, None);
            }
        }
        found
    }

    /// The same, where each slice that lost its end ends with the one around it; `None` where none lost it. The profiler closes what is
    /// open at its stop then, whether it was over or not: such a slice would be around all that comes later.
    #[must_use]
    fn closed(&self) -> Option<Self> {
        if self.n_crossings == 0 {
            return None;
        }
        let mut found = Self::default();
        for (thread, range) in &self.threads {
            let own = &self.slices[range.clone()];
            let last_ns = own.iter().map(|slice| slice.end_ns).max();
            found.nest_thread(*thread, own, last_ns);
        }
        (found.n_crossings < self.n_crossings).then_some(found)
    }

    /// Nests the slices of a thread. With `last_ns`, what ends where the last one does and long after its parent ends with the parent.
    fn nest_thread(&mut self, thread: ThreadId, own: &[HostSlice], last_ns: Option<i64>) {
        let first = self.slices.len();
        let mut stack: Vec<usize> = Vec::new();
        for slice in own {
            let mut slice = *slice;
            while stack.last().is_some_and(|top| self.slices[*top].end_ns <= slice.start_ns) {
                stack.pop();
            }
            let parent = stack.last().copied();
            if let Some(outer_ns) = parent.map(|top| self.slices[top].end_ns)
                && last_ns.is_some_and(|last| has_lost_its_end(slice.end_ns, outer_ns, last))
            {
                slice.end_ns = outer_ns;
            }
            let crosses = parent.is_some_and(|top| self.slices[top].end_ns < slice.end_ns);
            self.n_crossings += u64::from(crosses);
            self.parents.push(parent.and_then(|at| SmallIndex::new(at as u32)));
            stack.push(self.slices.len());
            self.slices.push(slice);
        }
        self.threads.push((thread, first..self.slices.len()));
    }

    /// The slice that slice `at` lies in.
    #[must_use]
    pub fn parent(&self, at: usize) -> Option<usize> {
        self.parents.get(at).copied().flatten().map(SmallIndex::at)
    }

    /// Slice `at` and those that it lies in, from the inside out.
    pub fn chain(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(at), |at| self.parent(*at))
    }

    /// Marks the slices that slice `at` lies in. A mark has marks around it already.
    pub(crate) fn mark_around(&self, at: usize, marks: &mut [bool]) {
        for outer in self.chain(at).skip(1) {
            if std::mem::replace(&mut marks[outer], true) {
                break;
            }
        }
    }

    /// Time of each slice that none of its children covers, in ns. It can be negative where children cross each other.
    #[must_use]
    pub fn self_ns(&self) -> Vec<i64> {
        let mut own: Vec<i64> = self.slices.iter().map(HostSlice::dur_ns).collect();
        for (at, slice) in self.slices.iter().enumerate() {
            if let Some(parent) = self.parent(at) {
                own[parent] -= slice.end_ns.min(self.slices[parent].end_ns) - slice.start_ns;
            }
        }
        own
    }

    /// The threads with a slice, and their slices as a range.
    #[must_use]
    pub fn threads(&self) -> &[(ThreadId, Range<usize>)] {
        &self.threads
    }

    /// The numbers of the slices of a thread; an empty range if it has none.
    #[must_use]
    pub fn on(&self, thread: ThreadId) -> Range<usize> {
        let at = self.threads.binary_search_by_key(&thread, |(id, _)| *id);
        at.map_or(0..0, |at| self.threads[at].1.clone())
    }

    /// The innermost slice of a thread at each of `instants_ns`, which must ascend. A slice that starts at an instant holds
    /// it; a slice that ends there does not.
    #[must_use]
    pub fn innermost(
        &self,
        thread: ThreadId,
        instants_ns: impl Iterator<Item = i64>,
    ) -> Vec<Option<usize>> {
        let range = self.on(thread);
        let (mut next, mut stack) = (range.start, Vec::<usize>::new());
        let pop = |stack: &mut Vec<usize>, at_ns: i64| {
            while stack.last().is_some_and(|top| self.slices[*top].end_ns <= at_ns) {
                stack.pop();
            }
        };
        instants_ns
            .map(|at_ns| {
                while next < range.end && self.slices[next].start_ns <= at_ns {
                    pop(&mut stack, self.slices[next].start_ns);
                    stack.push(next);
                    next += 1;
                }
                pop(&mut stack, at_ns);
                stack.last().copied()
            })
            .collect()
    }
}
