//! How much sooner a rank would be done without waiting: its kernels, replayed.

use host::Slices;
use host::links::GpuSide;
use timeline::intervals::{Interval, both, length_within, union};
use trace::{Details, TrackId};

use crate::calls::{OnCpu, RankCalls};

impl RankCalls {
    /// How much sooner its last kernel would end, at most, without `waiting`, times in which kernels of the rank wait for others.
    ///
    /// Where nothing else runs meanwhile, what follows on each stream begins as much earlier, but no kernel before its launch. Where
    /// something does, the kernel that waits ends earlier, and so do those after it on its stream, and those of other streams that stand
    /// still until it ends: they may wait for it. The launches come earlier only where the
    /// CPU waits for the GPU, at most by that wait, or for the CPUs of other ranks, at most by all of these calls: those may be done with
    /// what they wait for earlier, too. (What streams wait for each other is not recorded: it could only save less.)
    pub(crate) fn sooner_ns(&self, waiting: &[Interval]) -> i64 {
        self.sooner(&both(&self.exposed, waiting), waiting, &self.calls_on_cpu())
    }

    /// When the CPU is in calls that wait for other ranks: disjoint, by end.
    fn calls_on_cpu(&self) -> Vec<Interval> {
        union(self.on_cpu.iter().flat_map(|kind| kind.calls.iter().copied()).collect())
    }

    /// The same with those of the times in which nothing else runs, `removed`, and with the calls in which the CPU waits for those of other
    /// ranks: what follows is launched earlier by all of them.
    fn sooner(&self, removed: &[Interval], waiting: &[Interval], on_cpu: &[Interval]) -> i64 {
        let mut collectives: Vec<Interval> =
            self.kinds.iter().flat_map(|kind| kind.calls.iter().copied()).collect();
        trace::sort(&mut collectives);
        let mut on_cpu = on_cpu.iter().peekable();
        let mut streams: Vec<Stream> = Vec::new();
        let (mut all, mut cpu_sooner) = (0_i64, 0_i64);
        let mut removed = removed.iter().peekable();
        let mut waits = self.waits.iter().peekable();
        for kernel in &self.kernels {
            let (start, end) = kernel.times;
            while let Some((from, to)) = removed.next_if(|(_, to)| *to <= start) {
                all = all.saturating_add(to.saturating_sub(*from));
            }
            let at = streams.iter().position(|stream| stream.id == kernel.stream);
            let at = at.unwrap_or_else(|| {
                streams.push(Stream::new(kernel.stream));
                streams.len() - 1
            });
            let stands_ns = start.saturating_sub(streams[at].end_ns);
            let awaited = streams.iter().map(|stream| stream.ends_sooner).max().unwrap_or_default();
            let after_others = match stands_ns {
                STANDS_NS.. => awaited.min(streams[at].ends_sooner.saturating_add(stands_ns)),
                _ => streams[at].ends_sooner,
            };
            if let Some(launch_ns) = kernel.launch_ns {
                while let Some((from, to)) = on_cpu.next_if(|(_, to)| *to <= launch_ns) {
                    cpu_sooner = cpu_sooner.saturating_add(to.saturating_sub(*from));
                }
                while let Some((from, to)) = waits.next_if(|(_, to)| *to <= launch_ns) {
                    let waited = cpu_sooner.saturating_add(to.saturating_sub(*from));
                    let most = streams.iter().map(|stream| stream.now(all)).max();
                    cpu_sooner = most.unwrap_or(all).min(waited);
                }
                let queued = start.saturating_sub(launch_ns).max(0);
                let stream = &mut streams[at];
                stream.sooner =
                    stream.now(all).max(after_others).min(queued.saturating_add(cpu_sooner));
                stream.since = all;
            }
            let stream = &mut streams[at];
            stream.end_ns = stream.end_ns.max(end);
            let is_collective = collectives.binary_search(&kernel.times).is_ok();
            let own_ns = if is_collective { length_within(waiting, kernel.times) } else { 0 };
            stream.ends_sooner = stream.now(all).saturating_add(own_ns);
        }
        for (from, to) in removed {
            all = all.saturating_add(to.saturating_sub(*from));
        }
        let ends = || streams.iter().map(|stream| stream.end_ns);
        let sooner = streams
            .iter()
            .map(|stream| stream.end_ns.saturating_sub(stream.now(all).max(stream.ends_sooner)));
        let (end, sooner) = (ends().max().unwrap_or_default(), sooner.max().unwrap_or_default());
        end.saturating_sub(sooner).max(0)
    }
}

/// How much sooner the last kernel of a device would end, at most, if none of its communication that no other kernel hides took time, nor
/// any wait of its CPU for those of other ranks: its own launches set the rest. Of the communication within these times, or of all.
#[must_use]
pub fn sooner_without_communication_ns(
    index: (&Slices<'_>, &GpuSide),
    details: &Details,
    device: usize,
    within: Option<&[Interval]>,
) -> i64 {
    let (slices, gpu) = index;
    let on_cpu = OnCpu::of(slices, details, 0);
    let own = RankCalls::within(slices, gpu, details, String::new(), (Some(device), 0), &on_cpu);
    let removed = within.map_or_else(|| own.exposed.clone(), |within| both(&own.exposed, within));
    let calls = own.calls_on_cpu();
    let calls = within.map_or_else(|| calls.clone(), |within| both(&calls, within));
    own.sooner(&removed, &[], &calls)
}

/// A stream that stands still for less than this, in ns, waits for no other: kernels follow each other so closely.
const STANDS_NS: i64 = 5_000;

/// A stream of a replay.
struct Stream {
    id: TrackId,
    /// How much sooner its last kernel so far begins, and what was removed in all by then.
    sooner: i64,
    since: i64,
    /// How much sooner its last kernel so far ends.
    ends_sooner: i64,
    /// When its kernels end.
    end_ns: i64,
}

impl Stream {
    fn new(id: TrackId) -> Self {
        Self { id, sooner: 0, since: 0, ends_sooner: 0, end_ns: 0 }
    }

    /// How much sooner it would go on, with `all` removed by now.
    fn now(&self, all: i64) -> i64 {
        self.sooner.saturating_add(all.saturating_sub(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{CpuKind, Kind, Launched};

    #[test]
    fn what_follows_a_wait_begins_no_sooner_than_its_launch() {
        let of = |kernels: &[(Interval, i64)], waits: &[Interval], removed: &[Interval]| {
            let kernel = |(times, launch_ns): &(Interval, i64)| Launched {
                times: *times,
                launch_ns: Some(*launch_ns),
                stream: TrackId(0),
            };
            let kernels = kernels.iter().map(kernel).collect();
            let (waits, exposed) = (waits.to_vec(), removed.to_vec());
            RankCalls { kernels, waits, exposed, ..RankCalls::default() }.sooner_ns(removed)
        };
        // A collective waits from 10 to 60; the next kernel was launched at 5, or at 55.
        let ahead = [((10, 65), 1), ((70, 80), 5)];
        let behind = [((10, 65), 1), ((70, 80), 55)];
        assert_eq!(of(&ahead, &[], &[(10, 60)]), 50);
        assert_eq!(of(&behind, &[], &[(10, 60)]), 15);
        // Twice as late does not save twice: the launches come at their own pace.
        let twice = [&behind[..], &[((80, 145), 58), ((150, 160), 135)]].concat();
        assert_eq!(of(&twice, &[], &[(10, 60), (80, 140)]), 15);
        // The CPU that waits for the collective launches sooner, too.
        assert_eq!(of(&behind, &[(20, 52)], &[(10, 60)]), 47);
        assert_eq!(of(&ahead, &[], &[(10, 60), (80, 90)]), 60, "at the end");
    }

    #[test]
    fn a_cpu_that_waits_for_those_of_other_ranks_launches_sooner_by_that_at_most() {
        let of = |calls: Vec<Interval>| {
            let kernel = |(times, launch_ns)| Launched {
                times,
                launch_ns: Some(launch_ns),
                stream: TrackId(0),
            };
            let kernels = [((10, 65), 1), ((70, 80), 55)].map(kernel).to_vec();
            let on_cpu = vec![CpuKind { calls, ..CpuKind::default() }];
            let exposed = vec![(10, 60)];
            RankCalls { kernels, on_cpu, exposed, ..RankCalls::default() }.sooner_ns(&[(10, 60)])
        };
        assert_eq!(of(vec![]), 15, "from its launch on");
        assert_eq!(of(vec![(20, 40), (30, 44)]), 15 + 24);
        assert_eq!(of(vec![(60, 90)]), 15, "after the launch");
    }

    #[test]
    fn a_stream_that_is_not_queued_holds_back_its_own_end_alone() {
        let on = |stream: u32, times: Interval, launch_ns: i64| Launched {
            times,
            launch_ns: Some(launch_ns),
            stream: TrackId(stream),
        };
        let of = |side: Launched| {
            let kernels = vec![on(0, (10, 65), 1), side, on(0, (70, 80), 5)];
            let exposed = vec![(10, 60)];
            RankCalls { kernels, exposed, ..RankCalls::default() }.sooner_ns(&[(10, 60)])
        };
        assert_eq!(of(on(1, (20, 22), 19)), 50);
        // It is launched at 64 and takes 2: all is done at 66, and not at 80.
        assert_eq!(of(on(1, (66, 68), 64)), 14);
    }

    #[test]
    fn a_wait_behind_other_work_holds_back_what_follows_the_collective() {
        const US: i64 = 1_000;
        let on = |stream: u32, (from, to): Interval, launch_ns: i64| Launched {
            times: (from * US, to * US),
            launch_ns: Some(launch_ns * US),
            stream: TrackId(stream),
        };
        // A collective waits from 10 to 260, the first 180 of it behind work of the other stream, which stands still until it is done.
        let of = |last_launch: i64| {
            let kernels = vec![
                on(1, (10, 275), 9),
                on(0, (10, 190), 8),
                on(1, (275, 285), 100),
                on(0, (290, 300), last_launch),
            ];
            let exposed = vec![(190 * US, 285 * US)];
            let collective = Kind {
                key: "allreduce".to_owned(),
                group_size: None,
                is_broadcast: false,
                calls: vec![kernels[0].times],
            };
            let kinds = vec![collective];
            let rank = RankCalls { kernels, exposed, kinds, ..RankCalls::default() };
            rank.sooner_ns(&[(10 * US, 260 * US)]) / US
        };
        assert_eq!(of(195), 95, "from its launch on");
        assert_eq!(of(150), 102, "right after the other work, which ends at 188");
    }
}
