//! How long launching threads wait for another process or thread while a device waits for them.

use dialect::processes::{is_cpu_collective, loads_data, waits_for_others};
use timeline::intervals::{Interval, both, touching, union, without};
use trace::{StringId, Trace};

use super::{IdlePlace, Parts, parts};
use crate::by_name::ByName;
use crate::lines::Lines;
use crate::links::{DeviceId, GpuSide};
use crate::slices::{HostSlice, Nested, Slices, ThreadId};

/// By name: whether a frame or an annotation waits for another process or thread, and whether it is of a data loader, which waits for its
/// own workers.
pub(super) struct Others {
    waits: Vec<bool>,
    loads: Vec<bool>,
}

impl Others {
    pub(super) fn of(trace: &Trace) -> Self {
        let marks = |is: fn(&str) -> bool| trace.strings.marked(&is);
        Self { waits: marks(waits_for_others), loads: marks(loads_data) }
    }

    pub(super) fn is_known(&self, name: StringId) -> bool {
        self.waits[name.0 as usize] || self.loads[name.0 as usize]
    }

    /// Whether the outermost of these that slice `at` lies in waits for another process or thread.
    pub(super) fn are_waited_for(&self, trace: &Trace, nested: &Nested, at: usize) -> bool {
        let names = nested.chain(at).map(|at| trace.name(nested.slices[at].row));
        let outermost = names.filter(|name| self.is_known(*name)).last();
        outermost.is_some_and(|name| self.waits[name.0 as usize])
    }
}

/// How long the launching threads of a device wait for another process or thread, such as one that gives them work, while it waits for them
/// within these windows (disjoint, by start); with the function that has most of it. Not for the workers of a data loader.
#[must_use]
pub fn waits_for_others_within(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    device: DeviceId,
    within: &[Interval],
) -> Option<IdlePlace> {
    let trace = slices.trace;
    let lines = Lines::of(trace);
    let parts = &parts(slices, gpu, device, Some(within));
    let others = Others::of(trace);
    let mut found: ByName<(i64, u64)> = ByName::new(trace);
    let mut total_ns = 0_i64;
    for (thread, parts) in parts {
        let before_ns = total_ns;
        // (An annotation of gloo lies inside a frame that counts, where frames are recorded.)
        for nested in [slices.closed_frames(), slices.closed_ops()] {
            for at in nested.on(*thread) {
                let name = |at: usize| trace.name(nested.slices[at].row);
                let mut around = nested.chain(at).skip(1);
                if !others.waits[name(at).0 as usize]
                    || around.any(|outer| others.is_known(name(outer)))
                {
                    continue;
                }
                let ns = parts.within(nested.slices[at].start_ns, nested.slices[at].end_ns);
                let sum = found.entry(name(at));
                *sum = (sum.0 + ns, sum.1 + 1);
                total_ns += ns;
            }
            if total_ns > before_ns {
                break;
            }
        }
        if total_ns == before_ns {
            for (name, ns) in behind_gloo(slices, *thread, parts) {
                let sum = found.entry(name);
                *sum = (sum.0 + ns, sum.1 + 1);
                total_ns += ns;
            }
        }
    }
    let (name, (_, n)) = found.iter().max_by_key(|(_, (ns, _))| *ns)?;
    let name = lines.shown(name);
    (total_ns > 0).then(|| IdlePlace::new(name, total_ns, *n))
}

/// Less is no wait, but the time between two ops.
const LEAST_WAIT_NS: i64 = 100_000;

/// How long a launching thread waits for collectives of gloo that run on other threads of its process, by their names. PyTorch's reducer
/// waits for them in no recorded function: then the thread is in no op, and in no Python but the built-in that it called.
fn behind_gloo(slices: &Slices<'_>, thread: ThreadId, parts: &Parts) -> Vec<(StringId, i64)> {
    let trace = slices.trace;
    let pid = |thread: ThreadId| slices.threads.get(thread as usize).map(|one| one.pid.as_str());
    let is_other = |one: &&HostSlice| {
        let on = slices.thread(one.row);
        is_cpu_collective(slices.name(one)) && on != thread && pid(on) == pid(thread)
    };
    let mut collectives: Vec<&HostSlice> = slices.annotations.iter().filter(is_other).collect();
    if collectives.is_empty() {
        return Vec::new();
    }
    let of = |nested: &Nested, keep: &dyn Fn(&str) -> bool| {
        let own = nested.on(thread).map(|at| &nested.slices[at]);
        union(own.filter(|one| keep(slices.name(one))).map(HostSlice::interval).collect())
    };
    let ops = of(slices.closed_ops(), &|_| true);
    let frames = slices.closed_frames();
    let in_built_ins = match frames.on(thread).is_empty() {
        true => vec![(i64::MIN / 2, i64::MAX / 2)],
        false => of(frames, &|name| name.starts_with("<built-in")),
    };
    let mut free = without(&in_built_ins, &ops);
    free.retain(|(from, to)| to - from >= LEAST_WAIT_NS);
    trace::sort_by_key(&mut collectives, |one| one.start_ns);
    // (What two wait for at once counts once.)
    let mut done_ns = i64::MIN;
    let mut found = Vec::new();
    for one in collectives {
        let open = (one.start_ns.max(done_ns), one.end_ns);
        done_ns = done_ns.max(one.end_ns);
        if open.0 >= open.1 {
            continue;
        }
        let waits = both(touching(&free, open), &[open]);
        let ns: i64 = waits.iter().map(|(start, end)| parts.within(*start, *end)).sum();
        if ns > 0 {
            found.push((trace.name(one.row), ns));
        }
    }
    found
}
