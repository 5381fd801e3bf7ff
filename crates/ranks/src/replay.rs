//! How much sooner a rank would be done without waiting: its kernels, replayed.

use host::Slices;
use host::links::GpuSide;
use timeline::intervals::{Interval, both, length, union};
use trace::{Details, TrackId};

use crate::calls::{OnCpu, RankCalls};

impl RankCalls {
    /// How much sooner its last kernel would end, at most, without `waiting`: the times in which its kernels wait for others.
    ///
    /// Where nothing else runs meanwhile, what follows on each stream begins as much earlier. Where something does, the kernel that waits
    /// ends earlier, and what follows on its stream; and a kernel of another stream that stood still until it ended may have waited for it.
    /// No kernel begins before its launch. The launches come earlier only where the CPU waits for the GPU, at most by that wait, or for the
    /// CPUs of other ranks, at most by all of these calls: those may be done with what they wait for earlier, too. (What streams wait for each
    /// other is not recorded: it could only save less.)
    pub(crate) fn sooner_ns(&self, waiting: &[Waiting]) -> i64 {
        let mut waiting = waiting.to_vec();
        trace::sort(&mut waiting);
        let all = when(&waiting);
        let calls = self.calls_on_cpu();
        let sooner_ns = self.sooner(&both(&self.exposed, &all), &waiting, &calls);
        // (No more than what goes away.)
        sooner_ns.min(length(&all).saturating_add(length(&calls)))
    }

    /// When the CPU is in calls that wait for other ranks: disjoint, by end.
    fn calls_on_cpu(&self) -> Vec<Interval> {
        union(self.on_cpu.iter().flat_map(|kind| kind.calls.iter().copied()).collect())
    }

    /// The same, where nothing of the GPU's runs but what goes away in the times `removed`, where kernels wait in the times `waiting`, and
    /// where the CPU is in the calls `on_cpu`, which go away, too. All are sorted, and disjoint but those of `waiting`.
    fn sooner(&self, removed: &[Interval], waiting: &[Waiting], on_cpu: &[Interval]) -> i64 {
        let mut on_cpu = on_cpu.iter().peekable();
        let mut streams: Vec<Stream> = Vec::new();
        let (mut gone, mut cpu_sooner) = (Gone::of(removed), 0_i64);
        let mut waits = self.waits.iter().peekable();
        for kernel in &self.kernels {
            let (start, end) = kernel.times;
            let all = gone.until(start);
            let known = streams.iter().position(|stream| stream.id == kernel.stream);
            let at = known.unwrap_or_else(|| {
                streams.push(Stream { id: kernel.stream, sooner: 0, since: 0, ended: Vec::new() });
                streams.len() - 1
            });
            let mut queued = None;
            if let Some(launch_ns) = kernel.launch_ns {
                loop {
                    // (In the order of their ends.)
                    let wait = waits.peek().filter(|(_, to)| *to <= launch_ns).copied().copied();
                    let until = wait.map_or(launch_ns, |(_, to)| to);
                    if let Some((from, to)) = on_cpu.next_if(|(_, to)| *to <= until) {
                        cpu_sooner = cpu_sooner.saturating_add(to.saturating_sub(*from));
                        continue;
                    }
                    let Some(wait) = wait else { break };
                    cpu_sooner = after_wait(&streams, wait, (cpu_sooner, all));
                    waits.next();
                }
                queued = Some(start.saturating_sub(launch_ns).max(0));
            }
            let by_launch = queued.map(|ns| ns.saturating_add(cpu_sooner));
            let late = queued.is_some_and(|ns| ns < EXPLAINS_NS);
            let in_order = after_others(&streams, at, start, (late, cpu_sooner));
            let sooner = streams[at].now(all).max(in_order).min(by_launch.unwrap_or(i64::MAX));
            let first = waiting.partition_point(|(of, _)| *of < kernel.times);
            let own = waiting[first..].iter().take_while(|(of, _)| *of == kernel.times);
            let own_ns = own.map(|(_, (from, to))| to.saturating_sub(*from)).max();
            streams[at].push(end, sooner, (own_ns.unwrap_or(0), all));
        }
        let all = gone.until(i64::MAX);
        let ends = || streams.iter().filter_map(|stream| Some((stream, *stream.ended.last()?)));
        let sooner = ends().map(|(stream, (end, sooner))| {
            // (What goes away after the begin of its last kernel goes away before the end of it.)
            end.saturating_sub(stream.now(all).max(sooner))
        });
        let end = ends().map(|(_, (end, _))| end).max().unwrap_or_default();
        end.saturating_sub(sooner.max().unwrap_or_default()).max(0)
    }
}

/// When a kernel runs, and when in that time it waits for other ranks.
pub(crate) type Waiting = (Interval, Interval);

/// When any of them is.
pub(crate) fn when(waiting: &[Waiting]) -> Vec<Interval> {
    union(waiting.iter().map(|(_, times)| *times).collect())
}

/// How much sooner a kernel that starts at `start` on stream `at` may begin by the order of kernels: once its own stream has ended the one
/// before, and where that stood still, although this one was launched, another stream the one that it may have waited for. Its launch
/// comes `cpu_sooner`; `is_late`: it begins at once then.
fn after_others(
    streams: &[Stream],
    at: usize,
    start: i64,
    (is_late, cpu_sooner): (bool, i64),
) -> i64 {
    let (ended, ends_sooner) = streams[at].ended.last().copied().unwrap_or((i64::MIN, i64::MAX));
    let stands_ns = start.saturating_sub(ended);
    let by_own = ends_sooner.saturating_add(stands_ns);
    if is_late && ended == i64::MIN {
        // (Nothing is known that holds the first one but its launch.)
        return cpu_sooner;
    }
    if is_late || stands_ns < STANDS_NS {
        return by_own;
    }
    let others = streams.iter().enumerate().filter(|(other, _)| *other != at);
    let awaited = awaited(others.map(|(_, stream)| stream), (ended, start));
    // (Or its launch took long, and it waited for nothing.)
    awaited.unwrap_or(0).max(cpu_sooner).min(by_own).max(0)
}

/// How much sooner the CPU goes on after a wait for the GPU. Before it, it is `cpu_sooner`; `all` was removed by then.
fn after_wait(streams: &[Stream], wait: Interval, (cpu_sooner, all): (i64, i64)) -> i64 {
    let (from, to) = wait;
    let waited_ns = to.saturating_sub(from);
    // (It waits for nothing, and takes as long in any case.)
    if waited_ns < STANDS_NS {
        return cpu_sooner;
    }
    let removed = streams.iter().map(|stream| stream.now(all)).max().unwrap_or(all);
    let done = awaited(streams.iter(), wait).unwrap_or(cpu_sooner).max(removed);
    done.min(cpu_sooner.saturating_add(waited_ns))
}

/// How much sooner something may go on that waited until `to` for one of these streams, from `from` on: for a kernel that ended just
/// then, or for any that ended meanwhile. `None` if there is none.
fn awaited<'a>(
    streams: impl Iterator<Item = &'a Stream> + Clone,
    (from, to): Interval,
) -> Option<i64> {
    let just = from.max(to.saturating_sub(EXPLAINS_NS));
    let ended = |from: i64, slack: i64| {
        streams.clone().filter_map(move |stream| stream.ended_within(from, to, slack)).max()
    };
    ended(just, 1).max(ended(from, 0))
}

/// What goes away, up to a time.
struct Gone<'a> {
    /// Times that are not past.
    left: &'a [Interval],
    /// The length of those that are.
    past_ns: i64,
}

impl<'a> Gone<'a> {
    fn of(times: &'a [Interval]) -> Self {
        Self { left: times, past_ns: 0 }
    }

    /// How much of them is before `at`, which only grows.
    fn until(&mut self, at: i64) -> i64 {
        while let Some(((from, to), left)) = self.left.split_first().filter(|(one, _)| one.1 <= at)
        {
            self.past_ns = self.past_ns.saturating_add(to.saturating_sub(*from));
            self.left = left;
        }
        let begun = self.left.first().map_or(0, |(from, _)| at.saturating_sub(*from).max(0));
        self.past_ns.saturating_add(begun)
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

/// Whether the CPU waits for those of other ranks, as far as its calls tell.
#[must_use]
pub fn waits_on_cpu(slices: &Slices<'_>, details: &Details) -> bool {
    OnCpu::of(slices, details, 0).has_calls()
}

/// A stream that stands still for less than this, in ns, waits for no other: kernels follow each other so closely.
const STANDS_NS: i64 = 5_000;
/// What follows in less than this, in ns, may follow from it: the latency of a launch, or of an event that a stream waits for.
const EXPLAINS_NS: i64 = 20_000;

/// A stream of a replay.
struct Stream {
    id: TrackId,
    /// How much sooner its last kernel so far begins, and what was removed in all by then.
    sooner: i64,
    since: i64,
    /// When its kernels so far end, in their order, and how much sooner they would.
    ended: Vec<(i64, i64)>,
}

impl Stream {
    /// How much sooner it would go on, with `all` removed by now.
    fn now(&self, all: i64) -> i64 {
        self.sooner.saturating_add(all.saturating_sub(self.since))
    }

    /// How much sooner than `to` one of its kernels that end after `from`, and by `to`, would end at most; `None` without any. With a slack
    /// of 0, how much sooner than it does.
    fn ended_within(&self, from: i64, to: i64, slack: i64) -> Option<i64> {
        let by = |ns: i64| self.ended.partition_point(|(end, _)| *end <= ns);
        let own = self.ended.get(by(from)..by(to))?.iter();
        own.map(|(end, sooner)| sooner.saturating_add((to - end) * slack)).max()
    }

    /// Adds a kernel that begins `sooner` and waits for `own_ns`, which goes away; `all` was removed when it began.
    fn push(&mut self, end: i64, sooner: i64, (own_ns, all): (i64, i64)) {
        (self.sooner, self.since) = (sooner, all);
        // (A stream runs one kernel after the other.)
        let end = self.ended.last().map_or(end, |(before, _)| end.max(*before));
        self.ended.push((end, sooner.saturating_add(own_ns)));
    }
}

#[cfg(test)]
mod law;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{CpuKind, Launched};

    /// Waits of kernels, from their starts on.
    fn waiting(kernels: &[Launched], times: &[Interval]) -> Vec<Waiting> {
        let kernel = |from: i64| kernels.iter().map(|one| one.times).find(|one| one.0 == from);
        times.iter().map(|times| (kernel(times.0).unwrap_or(*times), *times)).collect()
    }

    #[test]
    fn what_follows_a_wait_begins_no_sooner_than_its_launch() {
        let of = |kernels: &[(Interval, i64)], waits: &[Interval], removed: &[Interval]| {
            let on_one = |(times, launch): &(Interval, i64)| (0, *times, Some(*launch));
            let kernels: Vec<_> = kernels.iter().map(on_one).collect();
            hidden(&kernels, (removed, waits), removed)
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
            let rank = RankCalls { kernels, on_cpu, exposed, ..RankCalls::default() };
            rank.sooner_ns(&waiting(&rank.kernels, &[(10, 60)]))
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
            let rank = RankCalls { kernels, exposed, ..RankCalls::default() };
            rank.sooner_ns(&waiting(&rank.kernels, &[(10, 60)]))
        };
        assert_eq!(of(on(1, (20, 22), 19)), 50);
        // It is launched at 64 and takes 2: all is done at 66, and not at 80.
        assert_eq!(of(on(1, (66, 68), 64)), 14);
    }

    /// How much sooner a rank would be done without these waits, in us, with the waits of its CPU: kernels by start, each with its stream, its
    /// times and its launch.
    fn hidden(
        kernels: &[(u32, Interval, Option<i64>)],
        (exposed, waits): (&[Interval], &[Interval]),
        waiting: &[Interval],
    ) -> i64 {
        const US: i64 = 1_000;
        let us = |(from, to): &Interval| (from * US, to * US);
        let kernel = |(stream, times, launch_us): &(u32, Interval, Option<i64>)| Launched {
            times: us(times),
            launch_ns: launch_us.map(|at| at * US),
            stream: TrackId(*stream),
        };
        let rank = RankCalls {
            kernels: kernels.iter().map(kernel).collect(),
            exposed: exposed.iter().map(us).collect(),
            waits: waits.iter().map(us).collect(),
            ..RankCalls::default()
        };
        let waiting: Vec<Interval> = waiting.iter().map(us).collect();
        rank.sooner_ns(&self::waiting(&rank.kernels, &waiting)) / US
    }

    #[test]
    fn a_wait_behind_other_work_holds_back_what_follows_the_collective() {
        // A collective waits from 10 to 260, the first 180 of it behind work of the other stream, which stands still until it is done.
        let of = |middle: Option<i64>, last: i64| {
            let kernels = [
                (1, (10, 275), Some(9)),
                (0, (10, 190), Some(8)),
                (1, (275, 285), middle),
                (0, (290, 300), Some(last)),
            ];
            hidden(&kernels, (&[(190, 285)], &[]), &[(10, 260)])
        };
        assert_eq!(of(Some(100), 195), 95, "from its launch on");
        assert_eq!(of(Some(100), 150), 100, "right after the other work");
        assert_eq!(of(None, 150), 100, "a launch that is not recorded limits nothing");
        // What begins before the collective ends does not wait for it, nor does what begins when other work came between.
        let before = [(1, (10, 275), Some(9)), (0, (10, 190), Some(8)), (0, (200, 300), Some(50))];
        assert_eq!(hidden(&before, (&[], &[]), &[(10, 260)]), 0);
        let later =
            [&before[..2], &[(0, (280, 290), Some(276)), (0, (900, 950), Some(100))]].concat();
        assert_eq!(
            hidden(&later, (&[(190, 275)], &[]), &[(10, 260)]),
            4,
            "as late as the one before"
        );
    }

    #[test]
    fn what_waits_for_a_collective_may_follow_others_that_are_launched_late() {
        let kernels = [
            (1, (10, 275), Some(9)),
            (0, (10, 100), Some(8)),
            (2, (100, 250), Some(98)),
            (1, (276, 300), Some(274)),
            (0, (277, 500), Some(20)),
        ];
        assert_eq!(hidden(&kernels, (&[(250, 275)], &[]), &[(10, 260)]), 177);
        // A CPU that waits for the collective goes on sooner, too.
        let kernels =
            [(1, (10, 275), Some(9)), (0, (10, 190), Some(8)), (0, (290, 500), Some(280))];
        assert_eq!(hidden(&kernels, (&[(190, 275)], &[(30, 276)]), &[(10, 260)]), 100);
    }

    #[test]
    fn two_collectives_that_wait_at_once_save_no_more_than_that_time() {
        let kernels = [
            (1, (10, 70), Some(1)),
            (2, (20, 110), Some(1)),
            (1, (70, 80), Some(1)),
            (1, (120, 130), Some(1)),
        ];
        assert_eq!(hidden(&kernels, (&[(10, 110)], &[]), &[(10, 60), (20, 100)]), 90);
    }
}
