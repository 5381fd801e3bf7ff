//! Gaps of a device: when it stood still between two pieces of work, what ended each gap, and what the host did meanwhile.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use timeline::absolute_ns;
use timeline::intervals::{Interval, length};
use trace::Row;

use crate::class::Class;
use crate::links::{DeviceId, GpuSide, GpuSlice};
use crate::slices::{Family, HostSlice, Slices, ThreadId};

/// The gaps of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceGaps {
    /// Between any GPU slices.
    pub all: Gaps,
    /// Between those whose launch is in the file; missing where that is all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked: Option<Gaps>,
}

/// Gaps, their sums and the ten longest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gaps {
    /// Gaps.
    pub n: usize,
    /// Their time in ns.
    pub total_ns: i64,
    /// The part in which the next slice had been launched already: the host is not what the GPU waited for.
    pub queued_ns: i64,
    /// The part before slices whose launch is not in the file.
    pub no_launch_ns: i64,
    /// The rest: the host had not launched the next slice yet.
    pub host_ns: i64,
    /// Gaps longer than 10 us, 100 us, 1 ms.
    pub bins: Bins,
    /// The ten longest.
    pub ten: Vec<Gap>,
}

/// Gaps above a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are the meaning")]
pub struct Bins {
    pub gt_10us: Bin,
    pub gt_100us: Bin,
    pub gt_1ms: Bin,
}

/// A number of gaps and their time in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the type says it")]
pub struct Bin {
    pub n: usize,
    pub ns: i64,
}

/// One gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// Start, on the clock of the file.
    pub start_ns: Option<i64>,
    /// End.
    pub end_ns: Option<i64>,
    /// Length.
    pub dur_ns: i64,
    /// The GPU slice that ends it, at most 120 characters of its name.
    pub next: Option<String>,
    /// The call that launched that slice.
    pub launch: Option<String>,
    /// More of that call.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub launched: Option<GapLaunch>,
    /// What the launching thread did when the host had done all that the gap waited for.
    pub host_at_t_star: Option<HostAt>,
    /// What the launching thread did in the middle of the gap.
    pub host_at_mid: Option<HostAt>,
    /// The call that covers most of it.
    pub rt_cover: Option<Cover>,
}

/// The launch of the slice that ends a gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapLaunch {
    /// The pid of the launching thread.
    pub launch_pid: String,
    /// Its tid.
    pub launch_tid: String,
    /// Start of the call, on the clock of the file.
    pub launch_ts_ns: Option<i64>,
    /// Its end.
    pub launch_end_ns: Option<i64>,
    /// From the end of the call to the end of the gap.
    pub q_ns: i64,
    /// The end of the call, at most the end of the gap.
    pub t_star_ns: Option<i64>,
    /// Whether the call ended before the gap began.
    pub launch_before_gap: bool,
    /// The part of the gap after the call.
    pub queued_ns: i64,
}

/// A slice of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostAt {
    /// Name.
    pub name: String,
    /// Raw category, in lower case.
    pub cat: String,
    /// Start, on the clock of the file.
    pub ts_ns: Option<i64>,
    /// Duration.
    pub dur_ns: i64,
}

/// A call over a gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cover {
    /// Name.
    pub name: String,
    /// What it does.
    pub class: Class,
    /// Time that it shares with the gap.
    pub overlap_ns: i64,
    /// Duration.
    pub dur_ns: i64,
}

/// What a thread did at some instants.
struct HostAtInstants<'a, 's> {
    slices: &'s Slices<'a>,
    /// By instant; each with the deepest slice that was found so far.
    asked: Vec<(Question, Option<HostSlice>)>,
}

/// A thread, an instant, and a call that does not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    at_ns: i64,
    thread: ThreadId,
    but: Option<Row>,
}

impl<'a, 's> HostAtInstants<'a, 's> {
    /// Answers all questions in one pass over the slices of the host.
    fn answer(slices: &'s Slices<'a>, mut questions: Vec<Question>) -> Self {
        trace::sort(&mut questions);
        questions.dedup();
        let asked: Vec<_> = questions.into_iter().map(|question| (question, None)).collect();
        let mut found = Self { slices, asked };
        for (slice, family) in &slices.all {
            if matches!(family, Family::Op | Family::Frame | Family::Call | Family::Annotation) {
                found.see(slice);
            }
        }
        found
    }

    fn see(&mut self, slice: &HostSlice) {
        let first = self.asked.partition_point(|(question, _)| question.at_ns < slice.start_ns);
        for (question, deepest) in &mut self.asked[first..] {
            if question.at_ns >= slice.end_ns {
                break;
            }
            let counts =
                question.thread == self.slices.thread(slice.row) && question.but != Some(slice.row);
            let depth = |slice: &HostSlice| (slice.start_ns, Reverse(slice.end_ns), slice.row);
            if counts && deepest.is_none_or(|known| depth(&known) < depth(slice)) {
                *deepest = Some(*slice);
            }
        }
    }

    /// The deepest slice of a thread at an instant.
    fn deepest(&self, question: Question) -> Option<HostAt> {
        let at = self.asked.binary_search_by_key(&question, |(known, _)| *known).ok()?;
        let slice = self.asked[at].1?;
        let trace = self.slices.trace;
        Some(HostAt {
            name: self.slices.name(&slice).to_owned(),
            cat: trace.raw_category_text(slice.row).to_ascii_lowercase(),
            ts_ns: absolute_ns(trace, slice.start_ns),
            dur_ns: slice.dur_ns(),
        })
    }
}

/// The gaps of every device.
#[must_use]
pub fn gaps(slices: &Slices<'_>, gpu: &GpuSide) -> BTreeMap<String, DeviceGaps> {
    let of_device = |device: usize| {
        let id = device as DeviceId;
        let members: Vec<&GpuSlice> = gpu.on(id).collect();
        let linked: Vec<&GpuSlice> =
            members.iter().copied().filter(|one| one.launch.is_some()).collect();
        let with_linked = linked.len() < members.len();
        let all = Found::of(gpu.busy(id), members);
        let linked = with_linked.then(|| Found::of(gpu.busy_linked(id), linked));
        (gpu.devices[device].clone(), all, linked)
    };
    let devices: Vec<_> = (0..gpu.devices.len()).map(of_device).collect();
    let every = devices.iter().flat_map(|(_, all, linked)| std::iter::once(all).chain(linked));
    let questions = every.flat_map(|found| found.questions(slices)).collect();
    let host = HostAtInstants::answer(slices, questions);
    let row = |(device, all, linked): (String, Found<'_>, Option<Found<'_>>)| {
        let linked = linked.map(|found| found.table(&host));
        (device, DeviceGaps { all: all.table(&host), linked })
    };
    devices.into_iter().map(row).collect()
}

/// Between the parts of a union.
#[must_use]
pub fn between(busy: &[Interval]) -> Vec<Interval> {
    busy.windows(2).map(|pair| (pair[0].1, pair[1].0)).collect()
}

/// The GPU slice that starts at an instant; of several, the first of the file.
pub struct Starts<'g>(Vec<&'g GpuSlice>);

impl<'g> Starts<'g> {
    /// Sorts GPU slices by start.
    #[must_use]
    pub fn of(mut members: Vec<&'g GpuSlice>) -> Self {
        trace::sort_by_key(&mut members, |one| (one.slice.start_ns, one.slice.row));
        Self(members)
    }

    /// The slice that starts at `at_ns`.
    #[must_use]
    pub fn at(&self, at_ns: i64) -> Option<&'g GpuSlice> {
        let first = self.0.partition_point(|one| one.slice.start_ns < at_ns);
        self.0.get(first).copied().filter(|one| one.slice.start_ns == at_ns)
    }
}

/// The part of a gap after the end of the call that launched what ends it.
#[must_use]
pub fn queued_ns(gap: Interval, launch: &HostSlice) -> i64 {
    gap.1 - gap.0.max(launch.end_ns).min(gap.1)
}

/// The gaps between some GPU slices.
struct Found<'g> {
    all: Vec<Interval>,
    starts: Starts<'g>,
    longest: Vec<Interval>,
}

impl<'g> Found<'g> {
    fn of(busy: &[Interval], members: Vec<&'g GpuSlice>) -> Self {
        let all = between(busy);
        let mut longest = all.clone();
        trace::sort_by_key(&mut longest, |(start, end)| (Reverse(end - start), *start));
        longest.truncate(10);
        Self { all, starts: Starts::of(members), longest }
    }

    /// What is asked about the longest: what the host did in their middle, and when the launch was over.
    fn questions(&self, slices: &Slices<'_>) -> Vec<Question> {
        let of = |gap: &Interval| {
            let launch = self.starts.at(gap.1)?.launch?;
            Some([at_launch(slices, *gap, &launch), at_middle(slices, *gap, &launch)])
        };
        self.longest.iter().filter_map(of).flatten().collect()
    }

    fn table(&self, host: &HostAtInstants<'_, '_>) -> Gaps {
        let (mut queued, mut no_launch) = (0, 0);
        for gap in &self.all {
            match self.starts.at(gap.1).and_then(|one| one.launch) {
                Some(launch) => queued += queued_ns(*gap, &launch),
                None => no_launch += gap.1 - gap.0,
            }
        }
        let bin = |least_ns: i64| {
            let longer =
                self.all.iter().map(|(start, end)| end - start).filter(|ns| *ns > least_ns);
            Bin { n: longer.clone().count(), ns: longer.sum() }
        };
        let total_ns = length(&self.all);
        let ten = self.longest.iter().map(|gap| of_gap(host, *gap, self.starts.at(gap.1)));
        Gaps {
            n: self.all.len(),
            total_ns,
            queued_ns: queued,
            no_launch_ns: no_launch,
            host_ns: total_ns - queued - no_launch,
            bins: Bins { gt_10us: bin(10_000), gt_100us: bin(100_000), gt_1ms: bin(1_000_000) },
            ten: ten.collect(),
        }
    }
}

/// What the launching thread did when the launch was over, the launch left out.
fn at_launch(slices: &Slices<'_>, gap: Interval, launch: &HostSlice) -> Question {
    let at_ns = launch.end_ns.min(gap.1);
    Question { at_ns, thread: slices.thread(launch.row), but: Some(launch.row) }
}

/// What it did in the middle of the gap.
fn at_middle(slices: &Slices<'_>, gap: Interval, launch: &HostSlice) -> Question {
    let at_ns = (gap.0 + gap.1).div_euclid(2);
    Question { at_ns, thread: slices.thread(launch.row), but: None }
}

fn of_gap(host: &HostAtInstants<'_, '_>, gap: Interval, next: Option<&GpuSlice>) -> Gap {
    let slices = host.slices;
    let trace = slices.trace;
    let (start, end) = gap;
    let launch = next.and_then(|next| next.launch);
    Gap {
        start_ns: absolute_ns(trace, start),
        end_ns: absolute_ns(trace, end),
        dur_ns: end - start,
        next: next.map(|next| slices.name(&next.slice).chars().take(120).collect()),
        launch: launch.map(|launch| slices.name(&launch).to_owned()),
        launched: launch.map(|launch| {
            let thread = &slices.threads[slices.thread(launch.row) as usize];
            GapLaunch {
                launch_pid: thread.pid.clone(),
                launch_tid: thread.tid.clone(),
                launch_ts_ns: absolute_ns(trace, launch.start_ns),
                launch_end_ns: absolute_ns(trace, launch.end_ns),
                q_ns: end - launch.end_ns,
                t_star_ns: absolute_ns(trace, launch.end_ns.min(end)),
                launch_before_gap: launch.end_ns <= start,
                queued_ns: queued_ns(gap, &launch),
            }
        }),
        host_at_t_star: launch.and_then(|launch| host.deepest(at_launch(slices, gap, &launch))),
        host_at_mid: launch.and_then(|launch| host.deepest(at_middle(slices, gap, &launch))),
        rt_cover: cover(slices, gap),
    }
}

fn cover(slices: &Slices<'_>, (start, end): Interval) -> Option<Cover> {
    let shared = |call: &HostSlice| call.end_ns.min(end) - call.start_ns.max(start);
    let over = slices.calls.iter().filter(|call| shared(call) > 0);
    let best = over.max_by_key(|call| (shared(call), Reverse(call.start_ns), Reverse(call.row)))?;
    Some(Cover {
        name: slices.name(best).to_owned(),
        class: slices.class(best),
        overlap_ns: shared(best),
        dur_ns: best.dur_ns(),
    })
}
