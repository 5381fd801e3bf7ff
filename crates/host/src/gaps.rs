//! Gaps of a device: when it stood still between two pieces of work, what ended each gap, and what the host did meanwhile.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use timeline::absolute_ns;
use timeline::intervals::{Interval, length};
use trace::Row;

use crate::calls::Class;
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

/// What the host did at an instant: every slice of ops, frames, calls and annotations, by thread.
pub struct HostAtInstant<'a, 's> {
    slices: &'s Slices<'a>,
    /// By thread, start, the longest first, file order.
    sorted: Vec<(ThreadId, HostSlice)>,
}

impl<'a, 's> HostAtInstant<'a, 's> {
    /// Sorts the slices of the host.
    #[must_use]
    pub fn of(slices: &'s Slices<'a>) -> Self {
        let of_host = |family: &Family| {
            matches!(family, Family::Op | Family::Frame | Family::Call | Family::Annotation)
        };
        let mut sorted: Vec<(ThreadId, HostSlice)> = slices
            .all
            .iter()
            .filter(|(_, family)| of_host(family))
            .map(|(slice, _)| (slices.thread(slice.row), *slice))
            .collect();
        sorted.sort_unstable_by_key(|(thread, slice)| {
            (*thread, slice.start_ns, Reverse(slice.end_ns), slice.row)
        });
        Self { slices, sorted }
    }

    /// The deepest slice of a thread at an instant; `but` does not count.
    #[must_use]
    pub fn deepest(&self, thread: ThreadId, at_ns: i64, but: Option<Row>) -> Option<HostSlice> {
        let end = self
            .sorted
            .partition_point(|(other, slice)| (*other, slice.start_ns) <= (thread, at_ns));
        self.sorted[..end]
            .iter()
            .rev()
            .take_while(|(other, _)| *other == thread)
            .map(|(_, slice)| *slice)
            .find(|slice| at_ns < slice.end_ns && Some(slice.row) != but)
    }

    fn row(&self, slice: HostSlice) -> HostAt {
        let trace = self.slices.trace;
        HostAt {
            name: self.slices.name(&slice).to_owned(),
            cat: trace.raw_category_text(slice.row).to_lowercase(),
            ts_ns: absolute_ns(trace, slice.start_ns),
            dur_ns: slice.dur_ns(),
        }
    }
}

/// The gaps of every device.
#[must_use]
pub fn gaps(slices: &Slices<'_>, gpu: &GpuSide) -> BTreeMap<String, DeviceGaps> {
    let host = HostAtInstant::of(slices);
    let of_device = |device: usize| {
        let id = device as DeviceId;
        let members: Vec<&GpuSlice> = gpu.on(id).collect();
        let linked: Vec<&GpuSlice> =
            members.iter().copied().filter(|one| one.launch.is_some()).collect();
        let with_linked = linked.len() < members.len();
        let row = DeviceGaps {
            all: of_members(&host, gpu.busy(id), members),
            linked: with_linked.then(|| of_members(&host, gpu.busy_linked(id), linked)),
        };
        (gpu.devices[device].clone(), row)
    };
    (0..gpu.devices.len()).map(of_device).collect()
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

fn of_members(host: &HostAtInstant<'_, '_>, busy: &[Interval], members: Vec<&GpuSlice>) -> Gaps {
    let all = between(busy);
    let starts = Starts::of(members);
    let (mut queued, mut no_launch) = (0, 0);
    for gap in &all {
        match starts.at(gap.1).and_then(|one| one.launch) {
            Some(launch) => queued += queued_ns(*gap, &launch),
            None => no_launch += gap.1 - gap.0,
        }
    }
    let bin = |least_ns: i64| {
        let longer = all.iter().map(|(start, end)| end - start).filter(|ns| *ns > least_ns);
        Bin { n: longer.clone().count(), ns: longer.sum() }
    };
    let mut longest = all.clone();
    trace::sort_by_key(&mut longest, |(start, end)| (Reverse(end - start), *start));
    longest.truncate(10);
    let total_ns = length(&all);
    Gaps {
        n: all.len(),
        total_ns,
        queued_ns: queued,
        no_launch_ns: no_launch,
        host_ns: total_ns - queued - no_launch,
        bins: Bins { gt_10us: bin(10_000), gt_100us: bin(100_000), gt_1ms: bin(1_000_000) },
        ten: longest.into_iter().map(|gap| of_gap(host, gap, starts.at(gap.1))).collect(),
    }
}

fn of_gap(host: &HostAtInstant<'_, '_>, gap: Interval, next: Option<&GpuSlice>) -> Gap {
    let slices = host.slices;
    let trace = slices.trace;
    let (start, end) = gap;
    let launch = next.and_then(|next| next.launch);
    let t_star = launch.map(|launch| launch.end_ns.min(end));
    let deepest = |at_ns: i64, but: Option<Row>| {
        let found = host.deepest(slices.thread(launch?.row), at_ns, but)?;
        Some(host.row(found))
    };
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
        host_at_t_star: t_star.and_then(|at_ns| deepest(at_ns, launch.map(|launch| launch.row))),
        host_at_mid: deepest((start + end).div_euclid(2), None),
        rt_cover: cover(slices, gap),
    }
}

fn cover(slices: &Slices<'_>, (start, end): Interval) -> Option<Cover> {
    let shared = |call: &HostSlice| call.end_ns.min(end) - call.start_ns.max(start);
    let over = slices.calls.iter().filter(|call| shared(call) > 0);
    let best = over.max_by_key(|call| (shared(call), Reverse(call.start_ns), Reverse(call.row)))?;
    Some(Cover {
        name: slices.name(best).to_owned(),
        class: Class::of(slices.name(best)),
        overlap_ns: shared(best),
        dur_ns: best.dur_ns(),
    })
}
