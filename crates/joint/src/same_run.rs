//! Whether a trace and a snapshot are of one run, and what the trace says of what the snapshot holds.
//!
//! Both files tell time since 1970: a snapshot in `time_us`, a trace as `baseTimeNanoseconds` plus `ts`. PyTorch converts the clock of
//! the processor for each file anew, so the same moment can differ by some us (`ApproximateClockToUnixTimeConverter`). Addresses of
//! `[memory]` events are those of the snapshot, which no clock can blur.

use std::collections::{BTreeMap, HashMap};

use host::doing::{Doing, doing, thread_of};
use host::slices::{Slices, ThreadId};
use serde::Serialize;
use serde_json::Value;
use snapshot::{Allocated, Asked, Question, RunFacts};
use timeline::since_1970;
use trace::{Details, Flags, Row};

/// An allocation is the same one if both files have its address at times this close. (A caching allocator hands an address out again
/// after some us at the earliest, but then a free lies between, and the nearest one counts.)
const NEAR_NS: i64 = 1_000_000;
/// Times of one event differ by a constant that the two conversions of the clock make. Those of other ranks, which run in lockstep and
/// may use equal addresses, scatter.
const SCATTER_NS: i64 = 50_000;
/// Allocations that both files must have, so that they say something.
const FEW: usize = 3;

/// How sure it is that the files are of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They are.
    Shown,
    /// Nothing speaks against it, but another rank's file would look the same.
    Likely,
    /// Not shown.
    NotShown,
}

/// By what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Evidence {
    /// Allocations of both files, within the time that both record.
    Allocations {
        /// Those of the snapshot that were looked for.
        wanted: usize,
        /// Those of the trace with the same address at the same time.
        same: usize,
        /// Median of the trace's time less the snapshot's, in ns.
        apart_ns: i64,
    },
    /// Times that overlap, and as many devices.
    Clocks {
        /// How long both record, in ns.
        overlap_ns: i64,
        /// Devices of both.
        n_devices: Option<usize>,
        /// A step of the profiler that both files have, and its start in the trace less that in the snapshot, in ns.
        step: Option<(String, i64)>,
    },
    /// The files record different times.
    Apart {
        /// Between the end of the earlier one and the start of the later one, in ns.
        ns: i64,
    },
    /// The number of devices differs.
    Devices {
        /// Of the trace.
        trace: usize,
        /// Of the snapshot.
        snapshot: usize,
    },
    /// A file tells no time since 1970.
    NoTime {
        /// Whether it is the trace.
        is_trace: bool,
    },
}

/// Why a row has no op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The snapshot records no allocation of it.
    NotRecorded,
    /// It was allocated while the trace did not record.
    OutsideOfTrace,
    /// No op ran on any thread.
    NoOp,
    /// Ops ran on several threads, and nothing tells which of them allocated.
    SeveralThreads,
}

/// What the trace says of a part of the snapshot's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located {
    /// Of what.
    pub asked: Asked,
    /// Device number.
    pub device: i64,
    /// Who allocated, by the stacks of the snapshot.
    pub site: String,
    /// Requested bytes.
    pub bytes: i64,
    /// Requested bytes of its blocks that the trace places in an op.
    pub placed_bytes: i64,
    /// The op that allocated most of them.
    pub op: Option<String>,
    /// The line of Python of most of what the op allocated.
    pub line: Option<String>,
    /// Requested bytes that the op allocated.
    pub op_bytes: i64,
    /// The steps of the profiler in which the op allocated them, in order.
    pub steps: Vec<String>,
    /// Why there is no op.
    pub missing: Option<Why>,
}

/// A trace and a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SameRun {
    /// Whether they are of one run.
    pub verdict: Verdict,
    /// By what.
    pub evidence: Evidence,
    /// Whether places follow from clocks alone.
    pub is_estimate: bool,
    /// What the trace says; nothing where it is not shown that it may.
    pub places: Vec<Located>,
}

/// Compares a trace with what a snapshot has written down of its run.
#[must_use]
pub fn same_run(slices: &Slices<'_>, details: &Details, facts: &RunFacts) -> SameRun {
    let known = Known::of(slices, details);
    let (verdict, evidence, offset_ns) = known.judge(facts);
    let is_by_address = matches!(evidence, Evidence::Allocations { .. });
    let places = match verdict {
        Verdict::NotShown => Vec::new(),
        _ => known.locate(&facts.questions, is_by_address, offset_ns),
    };
    SameRun { verdict, evidence, is_estimate: !is_by_address, places }
}

/// What the trace knows.
struct Known<'a, 's> {
    slices: &'s Slices<'a>,
    /// What makes a time of the trace one since 1970; `None` if it tells none.
    since_1970_ns: Option<i64>,
    /// First and last moment, in ns of the trace.
    span_ns: Option<(i64, i64)>,
    /// Allocations on GPUs by device and address: time in ns of the trace and event, by time.
    allocations: HashMap<(i64, u64), Vec<(i64, Row)>>,
    /// First and last of them.
    recorded_ns: Option<(i64, i64)>,
    n_devices: Option<usize>,
}

impl<'a, 's> Known<'a, 's> {
    fn of(slices: &'s Slices<'a>, details: &Details) -> Self {
        let trace = slices.trace;
        let mut allocations: HashMap<(i64, u64), Vec<(i64, Row)>> = HashMap::new();
        let (mut found, mut recorded_ns) = (Vec::new(), None);
        for (row, event) in &details.memory {
            let on_gpu = event.device_type != Some(0);
            if let (true, Some(device), Some(address)) =
                (on_gpu && event.bytes > 0, event.device, event.address)
                && trace.flags(*row).has(Flags::HAS_TS)
            {
                let at = trace.ts_ns(*row);
                let (from, to) = recorded_ns.unwrap_or((at, at));
                recorded_ns = Some((at.min(from), at.max(to)));
                // (An address is 64 bits; JSON of it may be negative.)
                found.push(((device, address.cast_unsigned()), at, *row));
            }
        }
        // (By time in each list.)
        trace::sort(&mut found);
        for (key, at, row) in found {
            allocations.entry(key).or_default().push((at, row));
        }
        let starts = slices.all.iter().map(|(slice, _)| slice.start_ns);
        let ends = slices.all.iter().map(|(slice, _)| slice.end_ns);
        let span_ns = starts.min().zip(ends.max());
        let devices = trace.metadata.get("deviceProperties");
        let devices = devices.and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
        Self {
            slices,
            since_1970_ns: span_ns.and_then(|(first, _)| since_1970(trace, first)),
            span_ns,
            allocations,
            recorded_ns,
            n_devices: devices.map(|listed| listed.len()),
        }
    }

    /// The verdict, by what, and what to subtract from a time of the snapshot (ns since 1970) to get one of the trace.
    fn judge(&self, facts: &RunFacts) -> (Verdict, Evidence, i64) {
        let nothing = |evidence| (Verdict::NotShown, evidence, 0);
        let (Some((first, last)), Some(since)) = (self.span_ns, self.since_1970_ns) else {
            return nothing(Evidence::NoTime { is_trace: true });
        };
        let Some((from_us, to_us)) = facts.span_us else {
            return nothing(Evidence::NoTime { is_trace: false });
        };
        let (from, to) = (ns(from_us).saturating_sub(since), ns(to_us).saturating_sub(since));
        let overlap_ns = last.min(to).saturating_sub(first.max(from));
        if overlap_ns < 0 {
            return nothing(Evidence::Apart { ns: overlap_ns.saturating_neg() });
        }
        let (wanted, mut apart) = self.matched(facts, since);
        let same = apart.len();
        apart.sort_unstable();
        let median = apart.get(same / 2).copied().unwrap_or_default();
        let is_close = |by: &&i64| (**by - median).abs() <= SCATTER_NS;
        let close = apart.iter().filter(is_close).count();
        let evidence = Evidence::Allocations { wanted, same: close, apart_ns: median };
        if wanted >= FEW && close * 10 >= wanted * 9 {
            return (Verdict::Shown, evidence, since - median);
        }
        // (In between, the recordings of one run may have lost events.)
        if wanted >= FEW && close * 2 < wanted {
            return nothing(evidence);
        }
        if let Some(trace) = self.n_devices
            && trace != facts.n_devices
        {
            return nothing(Evidence::Devices { trace, snapshot: facts.n_devices });
        }
        let step = self.step(facts, since);
        let offset_ns = since - step.as_ref().map_or(0, |(_, apart)| *apart);
        let n_devices = self.n_devices;
        (Verdict::Likely, Evidence::Clocks { overlap_ns, n_devices, step }, offset_ns)
    }

    /// How many allocations of the snapshot the trace must have, and by how much the times differ of those that it has.
    fn matched(&self, facts: &RunFacts, since: i64) -> (usize, Vec<i64>) {
        let Some((from, to)) = self.recorded_ns else { return (0, Vec::new()) };
        let (mut wanted, mut apart) = (0, Vec::new());
        for allocated in &facts.allocations {
            let at = ns(allocated.time_us).saturating_sub(since);
            if at < from.saturating_add(NEAR_NS) || at > to.saturating_sub(NEAR_NS) {
                continue;
            }
            wanted += 1;
            apart.extend(self.event_of(allocated, at).map(|(time, _)| time - at));
        }
        (wanted, apart)
    }

    /// The event of the trace that records an allocation: the nearest with its address.
    fn event_of(&self, allocated: &Allocated, at_ns: i64) -> Option<(i64, Row)> {
        let times = self.allocations.get(&(allocated.device, allocated.address))?;
        let after = times.partition_point(|(time, _)| *time < at_ns);
        let near = [after.checked_sub(1), Some(after)];
        let near = near.into_iter().flatten().filter_map(|place| times.get(place));
        let nearest = near.min_by_key(|(time, _)| (time - at_ns).abs()).copied();
        nearest.filter(|(time, _)| (time - at_ns).abs() <= NEAR_NS)
    }

    /// A step that begins in both files at nearly the same time, and how far apart. Names alone say nothing: every run has step 3.
    fn step(&self, facts: &RunFacts, since: i64) -> Option<(String, i64)> {
        let marked: HashMap<&str, i64> =
            facts.steps.iter().map(|(name, time_us)| (name.as_str(), *time_us)).collect();
        let apart = |step: &host::HostSlice| {
            let name = self.slices.name(step);
            let at = ns(*marked.get(name)?).saturating_sub(since);
            Some((name.to_owned(), step.start_ns - at))
        };
        let found = self.slices.steps.iter().filter_map(apart);
        found.filter(|(_, apart)| apart.abs() <= NEAR_NS).min_by_key(|(_, apart)| apart.abs())
    }

    /// What the trace says of each question.
    fn locate(&self, questions: &[Question], by_address: bool, offset_ns: i64) -> Vec<Located> {
        let threads: Vec<ThreadId> =
            self.slices.ops.threads().iter().map(|(thread, _)| *thread).collect();
        // All moments at once: each thread is walked through once.
        let mut moments = Vec::new();
        let mut of_block = Vec::new();
        for block in questions.iter().flat_map(|question| &question.blocks) {
            let at = ns(block.time_us).saturating_sub(offset_ns);
            let from = moments.len();
            let mut time = at;
            if by_address && block.address != 0 {
                if let Some((found, row)) = self.event_of(block, at) {
                    time = found;
                    moments.extend(thread_of(self.slices, row).map(|thread| (thread, found)));
                }
            } else if self.span_ns.is_some_and(|(first, last)| (first..=last).contains(&at)) {
                moments.extend(threads.iter().map(|thread| (*thread, at)));
            }
            of_block.push((time, from..moments.len()));
        }
        let found = doing(self.slices, &moments);
        let mut of_block = of_block.into_iter();
        let mut rows = Vec::new();
        for question in questions {
            let mut sums = Sums::default();
            for (block, (at, places)) in question.blocks.iter().zip(of_block.by_ref()) {
                let seen = found.get(places).unwrap_or_default();
                sums.add(block.bytes, seen, self.step_at(at));
            }
            rows.push(sums.row(question));
        }
        rows
    }

    fn step_at(&self, at_ns: i64) -> Option<&'a str> {
        let step = self.slices.steps.iter().find(|step| step.holds(at_ns))?;
        Some(self.slices.name(step))
    }
}

fn ns(us: i64) -> i64 {
    us.saturating_mul(1_000)
}

/// What an op allocated of a question's blocks.
#[derive(Default)]
struct OfOp<'a> {
    bytes: i64,
    lines: BTreeMap<&'a str, i64>,
    steps: Vec<String>,
}

/// The blocks of a question, by op.
#[derive(Default)]
struct Sums<'a> {
    placed: i64,
    by_op: BTreeMap<&'a str, OfOp<'a>>,
    missing: BTreeMap<&'static str, (Option<Why>, i64)>,
}

impl<'a> Sums<'a> {
    fn add(&mut self, bytes: i64, seen: &'a [Doing<'a>], step: Option<&str>) {
        let mut busy = seen.iter().filter(|doing| doing.op.is_some());
        let why = match (busy.next(), busy.next()) {
            (Some(doing), None) => {
                let of = self.by_op.entry(doing.op.unwrap_or_default()).or_default();
                of.bytes = of.bytes.saturating_add(bytes);
                if let Some(line) = &doing.line {
                    *of.lines.entry(line).or_default() += bytes;
                }
                if let Some(step) = step
                    && of.steps.last().is_none_or(|last| last != step)
                {
                    of.steps.push(step.to_owned());
                }
                self.placed = self.placed.saturating_add(bytes);
                return;
            }
            (Some(_), Some(_)) => Why::SeveralThreads,
            (None, _) if seen.is_empty() => Why::OutsideOfTrace,
            (None, _) => Why::NoOp,
        };
        let sum = self.missing.entry(why.words()).or_default();
        *sum = (Some(why), sum.1.saturating_add(bytes));
    }

    fn row(self, question: &Question) -> Located {
        let most = self.by_op.into_iter().max_by_key(|(_, of)| of.bytes);
        let missing = self.missing.into_values().max_by_key(|(_, bytes)| *bytes);
        let missing = match most {
            Some(_) => None,
            None => Some(missing.and_then(|(why, _)| why).unwrap_or(Why::NotRecorded)),
        };
        let (op, of) = most.map_or((None, OfOp::default()), |(op, of)| (Some(op.to_owned()), of));
        let line = of.lines.iter().max_by_key(|(_, bytes)| **bytes);
        Located {
            asked: question.asked,
            device: question.device,
            site: question.site.clone(),
            bytes: question.bytes,
            placed_bytes: self.placed,
            op,
            line: line.map(|(line, _)| (*line).to_owned()),
            op_bytes: of.bytes,
            steps: of.steps,
            missing,
        }
    }
}

impl Why {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NotRecorded => "the snapshot does not record its allocation",
            Self::OutsideOfTrace => "the trace does not record the time of its allocation",
            Self::NoOp => "no op ran then",
            Self::SeveralThreads => {
                "ops ran on several threads; [memory] events would tell which (profile_memory=True)"
            }
        }
    }
}
