//! The collectives of several devices or ranks, matched: which one comes last, and how long the others wait for it.

use host::Slices;
use host::links::GpuSide;
use timeline::intervals::{Interval, holds};
use trace::Details;

use crate::begins::BeforeRecordings;
use crate::calls::{DEEP_EP, Kind, OnCpu, RankCalls, moved};
use crate::clocks::{OfKey, by_key};
use crate::groups::{Group, Groups, MOST_RANKS};
use crate::known::Known;
use crate::same_calls::Matches;
use crate::waits::{Awaited, Waits};

/// What every device of a file, or every rank of a run, waits for the others; in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    rows: Vec<(String, Waits)>,
    /// Whether those that are waited for are ranks, of files of their own.
    of_files: bool,
    /// Why nothing could be matched; empty where something was.
    none: String,
    /// Whether ranks of a group that was matched have no file.
    pub is_part: bool,
}

impl Matched {
    /// More devices than a machine has, or ranks than a person compares, are not matched.
    pub const MOST_RANKS: usize = MOST_RANKS;

    /// What that means.
    pub const OTHERS: &'static str = "One of those may join later than all that are given.";

    /// Matches the collectives of a file with several devices: those that the last device joins within these times, or all.
    #[must_use]
    pub fn of(
        slices: &Slices<'_>,
        gpu: &GpuSide,
        details: &Details,
        within: Option<&[Interval]>,
    ) -> Self {
        let communicates = || gpu.slices.iter().any(|one| one.is_communication);
        if !(2..=Self::MOST_RANKS).contains(&gpu.devices.len()) || !communicates() {
            return Self::default();
        }
        let on_cpu = OnCpu::of(slices, details, 0);
        let of = |(device, name): (usize, &String)| {
            let place = (Some(device), 0);
            RankCalls::within(slices, gpu, details, name.clone(), place, &on_cpu)
        };
        let ranks: Vec<RankCalls> = gpu.devices.iter().enumerate().map(of).collect();
        Self::of_ranks(&ranks.iter().collect::<Vec<_>>(), within)
    }

    /// Matches the collectives of several ranks, on one clock.
    #[must_use]
    pub fn of_ranks(ranks: &[&RankCalls], within: Option<&[Interval]>) -> Self {
        Self::of_all(ranks, &Known::of(ranks), within)
    }

    /// The same where it is known what their collectives show.
    pub(crate) fn of_all(ranks: &[&RankCalls], known: &Known, within: Option<&[Interval]>) -> Self {
        Self::of_some(ranks, known, within, |_| true)
    }

    /// The rows of some of the ranks.
    fn of_some(
        ranks: &[&RankCalls],
        known: &Known,
        within: Option<&[Interval]>,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Self {
        if ranks.len() > Self::MOST_RANKS {
            let none = format!("At most {} ranks are compared.", Self::MOST_RANKS);
            return Self { of_files: true, none, ..Self::default() };
        }
        let ranks = known.on_one_clock(ranks);
        let of_files = ranks.iter().any(|rank| rank.shift_ns.is_some());
        // (A group without any of those says nothing of them.)
        let tells = |found: &&Matches| found.members.iter().any(|at| is_wanted(*at));
        let matches: Vec<&Matches> = known.matches.iter().filter(tells).collect();
        let before = BeforeRecordings::of(&ranks, &known.matches);
        let rows = rows(&ranks, (&matches, &before), within, (&is_wanted, true));
        let is_none = of_files && known.matches.is_empty();
        let none = if is_none { why_none(&ranks, &known.groups) } else { String::new() };
        let is_part = matches.iter().any(|found| found.n_missing > 0);
        Self { rows, of_files, none, is_part }
    }

    /// What ranks on one clock wait for each other in the collectives of one group, without what that saves.
    pub(crate) fn of_group(
        ranks: &[&RankCalls],
        matches: &[&Matches],
        before: &BeforeRecordings<'_>,
    ) -> Self {
        let rows = rows(ranks, (matches, before), None, (&|_| true, false));
        let is_part = matches.iter().any(|found| found.n_missing > 0);
        Self { rows, of_files: true, none: String::new(), is_part }
    }

    /// What one of several ranks waits for the others, as that of its device: of the collectives that the last rank joins within these
    /// times, on the clock of its trace, or of all. Its times are on that clock.
    #[must_use]
    pub(crate) fn of_rank(
        ranks: &[&RankCalls],
        known: &Known,
        at: usize,
        (device, within): (&str, Option<&[Interval]>),
    ) -> Self {
        let Some(rank) = ranks.get(at) else { return Self::default() };
        let shift = rank.shift_ns.unwrap_or_default().saturating_add(known.clocks.by_ns(at));
        let within: Option<Vec<Interval>> =
            within.map(|windows| windows.iter().map(|window| moved(*window, shift)).collect());
        let mut own = Self::of_some(ranks, known, within.as_deref(), |one| one == at);
        for (name, waits) in &mut own.rows {
            *name = device.to_owned();
            let back = |times: &Interval| moved(*times, shift.saturating_neg());
            waits.exposed = waits.exposed.iter().map(back).collect();
        }
        own
    }

    /// Why nothing could be matched, in a sentence; empty where something was.
    #[must_use]
    pub fn why_none(&self) -> &str {
        &self.none
    }

    /// Whether its ranks have files of their own.
    #[must_use]
    pub fn is_of_files(&self) -> bool {
        self.of_files
    }

    /// What a rank is called in sentences: `rank`, or `device`.
    #[must_use]
    pub fn who(&self) -> &'static str {
        if self.of_files { "rank" } else { "device" }
    }

    /// What a device waits for others; `None` where none of its collectives could be matched.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Waits> {
        self.rows.iter().find(|(device, _)| device == name).map(|(_, waits)| waits)
    }

    /// The devices, with what they wait.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &Waits)> {
        self.rows.iter().map(|(name, waits)| (name.as_str(), waits))
    }

    /// The device for which the others wait most, if that is most of what they wait: with the sum of the others' waits for it.
    #[must_use]
    pub fn latest(&self) -> Option<(&str, i64)> {
        // (Of one of several ranks nothing tells whom the others wait for.)
        if self.rows.len() < 2 {
            return None;
        }
        let sum = |last: &str| {
            let waits = self.rows.iter().filter_map(|(_, waits)| waits.exposed_for(last));
            waits.map(|wait| wait.ns).sum::<i64>()
        };
        let all: i64 =
            self.rows.iter().flat_map(|(_, waits)| &waits.exposed_for).map(|wait| wait.ns).sum();
        let sums = self.rows.iter().map(|(device, _)| (device.as_str(), sum(device)));
        let (device, ns) = sums.max_by_key(|(_, ns)| *ns)?;
        (ns > 0 && ns.saturating_mul(2) > all).then_some((device, ns))
    }
}

/// The rows of those `ranks` that are wanted: what they wait in the collectives that the last rank joins within these times, or in all.
/// `replays`: with what that saves.
fn rows(
    ranks: &[&RankCalls],
    (matches, before_them): (&[&Matches], &BeforeRecordings<'_>),
    within: Option<&[Interval]>,
    (is_wanted, replays): (&dyn Fn(usize) -> bool, bool),
) -> Vec<(String, Waits)> {
    let n = ranks.len();
    let mut waits = vec![Waits::default(); n];
    // By waiting rank and then by the last one.
    let mut waiting: Vec<Vec<Awaited>> = vec![Vec::new(); n * n];
    let mut joined: Vec<Vec<Interval>> = vec![Vec::new(); n];
    for of_all in matches.iter().flat_map(|found| &found.calls) {
        let starts = || of_all.iter().map(|(at, (start, _))| (*start, *at));
        let Some((last_ns, last)) = starts().max() else { continue };
        if within.is_some_and(|windows| !holds(windows, last_ns)) {
            continue;
        }
        // (Of what comes from before the recordings the last one is not late.)
        let begun_ns = |(ns, at): (i64, usize)| {
            ns.saturating_add(before_them.explained_ns(of_all, at)).min(last_ns)
        };
        let before = starts().filter(|(_, at)| *at != last).map(begun_ns).max();
        let before_ns = before.unwrap_or(last_ns);
        let own = &mut waits[last];
        own.n_last += 1;
        own.behind_ns = own.behind_ns.saturating_add(last_ns.saturating_sub(before_ns));
        let times = of_all.iter().find(|(at, _)| *at == last).map(|(_, times)| *times);
        let launch_ns = times.and_then(|times| ranks[last].launch_ns(times));
        if let Some(launch_ns) = launch_ns.filter(|launch_ns| *launch_ns > before_ns) {
            own.n_late_launches += 1;
            // (A launch that is recorded to begin after its kernel is late by the kernel.)
            let late_ns = launch_ns.min(last_ns).saturating_sub(before_ns);
            own.late_launch_ns = own.late_launch_ns.saturating_add(late_ns);
        }
        for (at, (start, end)) in of_all {
            waits[*at].n += 1;
            // (What comes from before is neither waiting nor transfer.)
            joined[*at].push((begun_ns((*start, *at)).min(*end), *end));
            if *at != last && is_wanted(*at) {
                let until_ns = last_ns.min(*end);
                let from_ns = begun_ns((*start, *at)).min(until_ns);
                // (Until the next to last has joined, it waits for that one, too.)
                let alone = (before_ns.max(from_ns).min(until_ns), until_ns);
                let times = (from_ns, until_ns);
                waiting[at * n + last].push(Awaited { kernel: (*start, *end), times, alone });
            }
        }
    }
    let wanted = waits.into_iter().enumerate().filter(|(at, own)| own.n > 0 && is_wanted(*at));
    let row = |(at, own): (usize, Waits)| {
        let times = (&mut waiting[at * n..(at + 1) * n], std::mem::take(&mut joined[at]));
        (ranks[at].name.clone(), own.waiting(ranks, at, times, replays))
    };
    wanted.map(row).collect()
}

/// Why kernels of DeepEP are not compared, where a rank has some; empty otherwise.
pub(crate) fn not_compared(ranks: &[&RankCalls]) -> &'static str {
    let is_own = |kind: &Kind| kind.key == DEEP_EP;
    match ranks.iter().any(|rank| rank.kinds.iter().any(is_own)) {
        true => {
            "Kernels of DeepEP (dispatch, combine) are not compared: whether a kernel sends, receives or does both is not recorded, and \
             only receiving waits for other ranks."
        }
        false => "",
    }
}

/// Why no collective of these ranks could be matched: the first gate that is shut.
fn why_none(ranks: &[&RankCalls], groups: &Groups) -> String {
    let (with, without): (Vec<&RankCalls>, Vec<&RankCalls>) =
        ranks.iter().partition(|rank| !rank.kinds.is_empty());
    if with.is_empty() {
        return "The files have no collectives of which all ranks wait for each other.".to_owned();
    }
    if let [one] = with[..] {
        let names: Vec<&str> = without.iter().map(|rank| &*rank.name).collect();
        return match names[..] {
            [name] => format!("Rank {name} has no collective, and the others have some."),
            _ => format!("Only rank {} has collectives, of those that are compared.", one.name),
        };
    }
    let of_keys = by_key(ranks);
    if of_keys.is_empty() {
        return not_compared(ranks).to_owned();
    }
    // By kind and group: which ranks call it, of how many.
    let mut found: Vec<(bool, Vec<&Kind>, usize)> = Vec::new();
    for OfKey { is_broadcast, of_ranks } in of_keys {
        let is_recorded = of_ranks.iter().all(|(_, kind)| kind.group_size.is_some());
        if is_recorded {
            let n = of_ranks.len();
            found.push((is_broadcast, of_ranks.iter().map(|(_, kind)| *kind).collect(), n));
            continue;
        }
        for Group { members, .. } in &groups.all {
            let own = of_ranks.iter().filter(|(at, _)| members.contains(at));
            found.push((is_broadcast, own.map(|(_, kind)| *kind).collect(), members.len()));
        }
    }
    found.retain(|(_, own, _)| own.len() > 1);
    let is_even = |(_, own, n): &(bool, Vec<&Kind>, usize)| {
        own.len() == *n && own.iter().all(|kind| kind.calls.len() == own[0].calls.len())
    };
    let why = match () {
        () if found.is_empty() => {
            "No two of these ranks call the same kind of collective in a group that both are in."
        }
        () if !found.iter().any(is_even) => "The ranks of a group call them unequally often.",
        () if found.iter().filter(|one| is_even(one)).all(|(is_broadcast, ..)| *is_broadcast) => {
            "The ranks call only broadcasts equally often, and those show no clock offset."
        }
        () => {
            "Of the kernels that the ranks call equally often, too few run at the same time and end together, for any clock offset."
        }
    };
    why.to_owned()
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel, slice};
    use host::HostIndex;
    use trace::{Collective, Row};

    use super::*;

    #[test]
    fn kernels_of_an_engine_are_matched_by_their_name_where_they_end_together() {
        const OWN: &str =
            "void (anonymous namespace)::all_reduce_two_shot_kernel<__nv_bfloat16, 4u>(Params)";
        let calls = |ends: [i64; 2]| {
            let mut fixture = Fixture::default();
            fixture.push(kernel(OWN).on(0, 7).at(0, ends[0]));
            fixture.push(kernel(OWN).on(1, 7).at(60_000, ends[1] - 60_000));
            let trace = fixture.finish();
            let index = HostIndex::of(&trace);
            Matched::of(&index.slices, &index.gpu, &Details::default(), None)
        };
        let found = calls([100_000, 101_000]);
        assert_eq!(found.device("0").map(|waits| waits.exposed_ns), Some(60_000));
        assert_eq!(found.latest(), Some(("1", 60_000)));
        assert_eq!(found.device("0").and_then(|waits| waits.saves_ns), Some(60_000));
        // Where CPUs wait for each other, too, no more than all of it is saved.
        let mut fixture = Fixture::default();
        for (device, from) in [(0, 0), (1, 60_000)] {
            fixture.push(kernel(OWN).on(device, 7).at(from, 100_000 - from));
            fixture.push(slice("user_annotation", "gloo:broadcast").on(device, 1).at(0, 10));
        }
        let trace = fixture.finish();
        let index = HostIndex::of(&trace);
        let found = Matched::of(&index.slices, &index.gpu, &Details::default(), None);
        let own = found.device("0").cloned().unwrap_or_default();
        assert_eq!((own.exposed_ns, own.saves_ns), (60_000, Some(60_000)));
        // Other groups of ranks run kernels of this name, too.
        assert_eq!(calls([100_000, 115_000]), Matched::default());
    }

    #[test]
    fn in_a_broadcast_those_wait_that_end_with_the_last_to_join() {
        let (us, mut kinds) = (1_000, Vec::new());
        let kind = |key: &str, is_broadcast, calls: Vec<Interval>| Kind {
            key: key.to_owned(),
            group_size: Some(3),
            is_broadcast,
            calls,
        };
        // The root sends and is done. The second rank gets the data by the third, which comes late.
        let times = [(0, 15), (5, 510), (490, 505)];
        for (rank, (start, end)) in times.into_iter().enumerate() {
            let all_reduce = kind("allreduce", false, vec![(1_000 * us, 1_100 * us)]);
            let broadcast = kind("broadcast", true, vec![(start * us, end * us)]);
            let exposed = vec![(0, 2_000 * us)];
            kinds.push(RankCalls {
                name: rank.to_string(),
                kinds: vec![all_reduce, broadcast],
                exposed,
                ..RankCalls::default()
            });
        }
        let all = |ranks: &[RankCalls]| Matched::of_ranks(&ranks.iter().collect::<Vec<_>>(), None);
        let found = all(&kinds);
        // Of one of them in a file of its own, on its clock.
        let mut files = kinds.clone();
        files.iter_mut().for_each(|rank| rank.shift_ns = Some(300 * us));
        let files: Vec<&RankCalls> = files.iter().collect();
        let known = Known::of(&files);
        let own = Matched::of_rank(&files, &known, 1, ("7", None));
        assert_eq!(own.device("7").map(|waits| waits.exposed_ns), Some(485 * us));
        assert_eq!((own.who(), own.devices().count()), ("rank", 1));
        let early = Matched::of_rank(&files, &known, 1, ("7", Some(&[(0, 200 * us)])));
        assert_eq!(early.device("7").map(|waits| waits.n), Some(1), "the broadcast, at 490 of 300");
        let of = |rank| found.device(rank).cloned().unwrap_or_default();
        assert_eq!((of("0").n, of("0").exposed_ns), (1, 0));
        assert_eq!((of("1").n, of("1").exposed_ns), (2, 485 * us));
        assert_eq!(of("1").exposed_for("2").map(|wait| wait.ns), Some(485 * us));
        // (Of equal starts of the all-reduce the last rank counts as the last.)
        assert_eq!((of("2").n, of("2").n_last), (2, 2));
        // Without collectives of all nothing shows that the clock is one.
        kinds.iter_mut().for_each(|rank| rank.kinds.retain(|kind| kind.is_broadcast));
        assert_eq!(all(&kinds), Matched::default());
    }

    #[test]
    fn the_reason_for_no_match_is_the_gate_that_is_shut() {
        let kind = |key: &str, group_size, is_broadcast, ends: &[i64]| Kind {
            key: key.to_owned(),
            group_size,
            is_broadcast,
            calls: ends.iter().map(|end| (end - 50_000, *end)).collect(),
        };
        let rank = |rank: i64, groups: &[&[i64]], kinds: Vec<Kind>| RankCalls {
            name: rank.to_string(),
            rank,
            groups: groups.iter().map(|one| one.to_vec()).collect(),
            kinds,
            shift_ns: Some(0),
            ..RankCalls::default()
        };
        let why = |ranks: &[RankCalls]| {
            let found = Matched::of_ranks(&ranks.iter().collect::<Vec<_>>(), None);
            found.why_none().to_owned()
        };
        let reduce = |size, ends: &[i64]| vec![kind("allreduce", size, false, ends)];
        // A group of eight of which two have a file: its size keeps nothing from being matched.
        let apart = [1_000_000, 2_000_000];
        let of = |rank_of, size, ends: &[i64]| rank(rank_of, &[], reduce(size, ends));
        let found = why(&[of(0, Some(8), &apart), of(1, Some(8), &[5_000_000, 6_000_000])]);
        assert!(found.starts_with("Of the kernels that the ranks call equally often"), "{found}");
        let found = why(&[of(0, Some(8), &apart), of(1, Some(8), &apart[..1])]);
        assert_eq!(found, "The ranks of a group call them unequally often.");
        // A rank without any is no reason where two others have some.
        let found = why(&[of(0, None, &apart), of(1, None, &apart[..1]), rank(2, &[], vec![])]);
        assert_eq!(found, "The ranks of a group call them unequally often.");
        let found = why(&[of(0, None, &apart), rank(1, &[], vec![]), rank(2, &[], vec![])]);
        assert_eq!(found, "Only rank 0 has collectives, of those that are compared.");
        let found = why(&[of(0, None, &apart), rank(1, &[], vec![])]);
        assert_eq!(found, "Rank 1 has no collective, and the others have some.");
        // Broadcasts show a constant, where they are enough.
        let broadcast = |ends: &[i64]| vec![kind("broadcast", Some(2), true, ends)];
        let found = why(&[
            rank(0, &[], broadcast(&apart)),
            rank(1, &[], broadcast(&[1_400_000, 2_900_000])),
        ]);
        assert!(found.starts_with("The ranks call only broadcasts equally often"), "{found}");
        // Ranks of groups that have none in common.
        let (one, other): (&[i64], &[i64]) = (&[0, 2], &[1, 3]);
        let reduced = |name: &str| vec![kind(name, None, false, &apart)];
        let found = why(&[rank(0, &[one], reduced("a")), rank(1, &[other], reduced("b"))]);
        assert!(found.starts_with("No two of these ranks call the same kind"), "{found}");
    }

    #[test]
    fn kernels_of_deepep_are_named_as_not_compared() {
        const LOW: &str =
            "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*, int*, long*)";
        let of = |device: i64, others: bool| {
            let mut fixture = Fixture::default();
            fixture.push(kernel(LOW).on(device, 7).at(0, 100_000));
            fixture
                .push(kernel("deep_ep::layout::get_dispatch_layout<256>").on(device, 7).at(0, 9));
            if others {
                fixture.push(kernel(RING).on(device, 9).at(200_000, 100_000));
            }
            let trace = fixture.finish();
            RankCalls::of(&HostIndex::of(&trace), &Details::default(), device, "")
        };
        let none = |ranks: [RankCalls; 2]| {
            let ranks = [&ranks[0], &ranks[1]];
            let why = Matched::of_ranks(&ranks, None).why_none().to_owned();
            (why, not_compared(&ranks))
        };
        let (why, not_compared) = none([of(0, false), of(1, false)]);
        assert!(why.starts_with("Kernels of DeepEP (dispatch, combine) are not compared"), "{why}");
        assert_eq!(why, not_compared);
        // They match no others, and stop none.
        assert_eq!(none([of(0, true), of(1, true)]), (String::new(), not_compared));
    }

    const RING: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

    /// Calls as (device, start, duration) in a group of `group_size` ranks, and a product of device 0 from 0 to 10.
    fn matched(name: &str, group_size: i64, calls: &[(i64, i64, i64)]) -> Matched {
        let (mut fixture, mut details) = (Fixture::default(), Details::default());
        let (name, kind) =
            (details.texts.intern(name), details.texts.intern("Float;0;[0, 1];[];[];"));
        let all = Collective { name, kind, in_elements: 8, out_elements: 8, group_size };
        details.collectives.push(all);
        for ((device, at, dur), row) in calls.iter().zip(0_u32..) {
            fixture.push(kernel(RING).on(*device, 9).at(*at, *dur));
            details.collective_of.push((row as Row, 0));
        }
        fixture.push(kernel("gemm").on(0, 7).at(0, 10));
        fixture.push(slice("cpu_op", "aten::mm").on(9, 9).at(0, 10));
        let trace = fixture.finish();
        let index = HostIndex::of(&trace);
        Matched::of(&index.slices, &index.gpu, &details, None)
    }

    #[test]
    fn a_device_waits_until_the_last_one_joins() {
        // Device 1 comes 20 later the first time, and 5 earlier the second time.
        let calls = [(0, 5, 40), (1, 25, 20), (0, 100, 10), (1, 95, 15)];
        let found = matched("allreduce", 2, &calls);
        let of = |device| found.device(device).cloned().unwrap_or_default();
        let (first, second) = (of("0"), of("1"));
        assert_eq!((first.n, first.n_last, first.behind_ns), (2, 1, 5));
        // From 5 to 10 a product runs beside it.
        assert_eq!(first.exposed_ns, 15);
        assert_eq!((second.n, second.n_last, second.exposed_ns), (2, 1, 5));
        assert_eq!(second.behind_ns, 20);
        assert_eq!(found.latest(), Some(("1", 15)));
    }

    #[test]
    fn without_all_ranks_equal_counts_or_one_clock_nothing_is_matched() {
        let calls = [(0, 5, 40), (1, 25, 20)];
        let none = Matched::default();
        assert_eq!(matched("allreduce", 3, &calls), none, "a rank is in another file");
        assert_eq!(matched("send", 2, &calls), none, "a receiver need not wait");
        assert_eq!(matched("broadcast", 2, &calls), none, "the clocks may differ");
        let uneven = [(0, 5, 40), (1, 25, 20), (0, 100, 10)];
        assert_eq!(matched("allreduce", 2, &uneven), none, "one call is missing");
        let apart = [(0, 5, 10), (1, 25, 20)];
        assert_eq!(matched("allreduce", 2, &apart), none, "one ends before the other starts");
    }
}
