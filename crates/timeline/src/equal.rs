//! Equal collectives: what the slow ones take more than the fast ones.
//!
//! A kernel of a collective runs until every rank has joined. Calls with the same sizes, number format and group move the same
//! bytes, so what one takes above the fast ones is mostly waiting for a rank that comes later. It is an estimate: other traffic on the
//! link, and kernels that run at the same time, slow a collective, too. Where all calls of a size wait, the best rate that any large call
//! of the same ranks reaches is the measure. Of collectives in graphs no sizes are recorded: there those at one place of equal graphs are
//! compared ([`crate::graph_places`]); where one place waits in every launch, the places of the same kernel and launch config show it.
//!
//! A call that was queued behind another of its group starts as that ends, which an all-reduce does on all ranks at once: the ranks are in
//! step. What such calls take differs by the link and not by waiting, unless it is far more: a rank can fall behind by more than a whole
//! collective.

use trace::{Collective, Details, StreamId};

use crate::graph_places::Place;
use crate::intervals::{Interval, union};

/// Fewer equal calls do not show how long such a call takes without waiting.
const LEAST_CALLS: usize = 3;
/// Of the equal calls, the one that counts as not waiting: one in ten is faster, so that of fewer than ten it is the fastest.
const FAST_SHARE: usize = 10;

/// Calls of this many bytes or more show the rate of the links: latency is a small part of them.
pub const LARGE: i64 = 4 << 20;
/// A call that starts so soon after the one before it was queued behind that. (NCCL's kernels lie 1 to 3 µs apart then.)
const IN_STEP_NS: i64 = 10_000;
/// Calls that take as many times what the best rate of their group allows all wait, if they vary by half: their fastest is no measure.
const FAR: i64 = 2;

/// Equal calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equal<K> {
    /// What they have in common.
    pub key: K,
    /// How many there are: three or more.
    pub n: usize,
    /// What they take.
    pub total_ns: i64,
    /// The shortest and the longest.
    pub shortest_ns: i64,
    #[allow(missing_docs, reason = "said above")]
    pub longest_ns: i64,
    /// What those take (a median) that start right after another of their group, so that they wait for no rank; `None` where few do.
    pub in_step_ns: Option<i64>,
    /// What they take above the fast ones; without a recorded size only those that take half as much again.
    pub excess_ns: i64,
    /// When that is, as if each waited first.
    pub waits: Vec<Interval>,
}

/// Why collectives of one kernel move the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Same {
    /// They are calls of one recorded collective: an index of [`Details::collectives`].
    Collective(u32),
    /// They have one place in launches of a graph.
    Place(Place),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a, K> {
    /// What equal calls have in common.
    pub key: K,
    /// When its kernel runs.
    pub times: Interval,
    /// The stream on which it runs.
    pub stream: Option<StreamId>,
    /// The group of ranks that take part: its calls go over the same links.
    pub group: &'a str,
    /// Bytes that cross the links; 0 where that is not known.
    pub bytes: i64,
    /// Whether its size is recorded; else it is its place in a graph that makes it equal to others.
    pub is_sized: bool,
    /// Equal for calls that move as much as far as their kernels show, if they vary ([`Place::like`]).
    pub like: Option<i64>,
}

/// The groups of three equal calls or more, in the order of their keys.
#[must_use]
pub fn equal<K: Ord + Copy>(mut calls: Vec<Call<'_, K>>) -> Vec<Equal<K>> {
    trace::sort_by(&mut calls, |a, b| (a.key, a.times).cmp(&(b.key, b.times)));
    let ends = ends(&calls);
    let best = best_rates(&calls);
    let of_call = |call: &Call<'_, K>| Some((call.like?, length(call)));
    let likes = fast_of_likes(calls.iter().filter_map(of_call).collect());
    let floor = |of: &Call<'_, K>| {
        let known = best.binary_search_by(|(group, _)| (*group).cmp(of.group));
        let rate = known.ok().filter(|_| of.bytes >= LARGE).map(|at| best[at].1);
        rate.filter(|rate| *rate > 0.0).map_or(0, |rate| (of.bytes as f64 / rate) as i64)
    };
    let groups = calls.chunk_by(|a, b| a.key == b.key).filter_map(|calls| {
        let first = calls.first().filter(|_| calls.len() >= LEAST_CALLS)?;
        let mut durations: Vec<i64> = calls.iter().map(length).collect();
        trace::sort(&mut durations);
        let fast_ns = *durations.get(durations.len() / FAST_SHARE)?;
        let is_far = |ns: i64, of_ns: i64| ns.saturating_mul(2) >= of_ns.saturating_mul(3);
        let in_step_ns = in_step_ns(calls, &ends).filter(|ns| !is_late(*ns, fast_ns));
        let fast_ns = in_step_ns.unwrap_or(fast_ns);
        // (Where all of them wait, the fast one does, too.)
        let floor_ns = floor(first);
        let (shortest_ns, longest_ns) = (*durations.first()?, *durations.last()?);
        let varies = is_far(longest_ns, shortest_ns);
        let fast_ns = match varies && floor_ns.saturating_mul(FAR) < fast_ns && floor_ns > 0 {
            true => floor_ns,
            false => fast_ns,
        };
        // (Where nearly all at this place wait, those at others do not. One that is as fast shows that it is no larger, and so does one that
        // varies: a larger one takes as long each time.)
        let of_like = first.like.and_then(|like| {
            let at = likes.binary_search_by_key(&like, |(like, _)| *like).ok()?;
            Some(likes[at].1)
        });
        let high_ns = *durations.get(durations.len() * (FAST_SHARE - 1) / FAST_SHARE)?;
        let is_no_larger = |like_ns: i64| {
            is_far(high_ns, fast_ns) || shortest_ns.saturating_mul(4) <= like_ns.saturating_mul(5)
        };
        let of_like = of_like.filter(|like_ns| *like_ns < fast_ns && is_no_larger(*like_ns));
        let fast_ns = of_like.unwrap_or(fast_ns);
        let counts = |call: &&Call<'_, K>| {
            let ns = length(call);
            ns > fast_ns
                && match is_in_step(call, &ends) {
                    true => is_late(ns, fast_ns),
                    // (Launches of a graph are few, and the fast one is the fastest: what differs a little from it is no waiting.)
                    false => call.is_sized || is_far(ns, fast_ns),
                }
        };
        let sum = |times: &mut dyn Iterator<Item = i64>| times.fold(0, i64::saturating_add);
        let waits = || {
            let slow = calls.iter().filter(counts).map(|call| call.times);
            slow.map(|(start, end)| (start, end.saturating_sub(fast_ns)))
        };
        Some(Equal {
            key: first.key,
            n: durations.len(),
            total_ns: sum(&mut durations.iter().copied()),
            shortest_ns,
            longest_ns,
            in_step_ns,
            excess_ns: sum(&mut waits().map(|(start, end)| end.saturating_sub(start))),
            waits: union(waits().collect()),
        })
    });
    groups.collect()
}

fn length<K>(call: &Call<'_, K>) -> i64 {
    call.times.1.saturating_sub(call.times.0)
}

/// When a call of a group ends on a stream.
type End<'a> = (Option<StreamId>, &'a str, i64);

/// The ends of all calls that end on all ranks at once: of those whose bytes are counted. Sorted.
fn ends<'a, K>(calls: &[Call<'a, K>]) -> Vec<End<'a>> {
    let sized = calls.iter().filter(|call| call.bytes > 0 && call.stream.is_some());
    let mut ends: Vec<_> = sized.map(|call| (call.stream, call.group, call.times.1)).collect();
    trace::sort(&mut ends);
    ends
}

/// Whether a call that was queued takes so much longer than the fast ones that a rank joined it late, after all: the rate of a link varies
/// less.
fn is_late(ns: i64, fast_ns: i64) -> bool {
    ns.saturating_mul(4) >= fast_ns.saturating_mul(5)
}

/// Whether a call was queued behind one of its group: all ranks had joined that as it ended.
fn is_in_step<K>(call: &Call<'_, K>, ends: &[End<'_>]) -> bool {
    let own = (call.stream, call.group, call.times.0);
    let before = ends.partition_point(|end| *end <= own).checked_sub(1).and_then(|at| ends.get(at));
    before.is_some_and(|(stream, group, end_ns)| {
        (*stream, *group) == (own.0, own.1) && own.2.saturating_sub(*end_ns) <= IN_STEP_NS
    })
}

/// The median of the calls that are in step, where there are enough of them.
fn in_step_ns<K>(calls: &[Call<'_, K>], ends: &[End<'_>]) -> Option<i64> {
    let in_step = calls.iter().filter(|call| is_in_step(call, ends));
    let mut times: Vec<i64> = in_step.map(length).collect();
    crate::median(&mut times).filter(|_| times.len() >= LEAST_CALLS)
}

/// What the fast ones of calls that are alike take, where there are enough of them; sorted.
fn fast_of_likes(mut all: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    trace::sort(&mut all);
    let of = |same: &[(i64, i64)]| {
        let fast = same.get(same.len() / FAST_SHARE).filter(|_| same.len() >= LEAST_CALLS)?;
        Some(*fast)
    };
    all.chunk_by(|a, b| a.0 == b.0).filter_map(of).collect()
}

/// The best rate of the large calls of each group, in bytes a nanosecond; by group.
fn best_rates<'a, K>(calls: &[Call<'a, K>]) -> Vec<(&'a str, f64)> {
    let large = calls.iter().filter(|call| call.bytes >= LARGE);
    let rate = |call: &Call<'a, K>| {
        let (start, end) = call.times;
        (call.group, call.bytes as f64 / end.saturating_sub(start).max(1) as f64)
    };
    let mut rates: Vec<(&str, f64)> = large.map(rate).collect();
    trace::sort_by(&mut rates, |a, b| a.0.cmp(b.0).then_with(|| b.1.total_cmp(&a.1)));
    rates.dedup_by(|later, best| later.0 == best.0);
    rates
}

/// The group of ranks of a recorded collective: its name and its ranks.
#[must_use]
pub fn group_of<'a>(details: &'a Details, of: &Collective) -> &'a str {
    let kind = details.texts.get(of.kind);
    let mut signs = kind.match_indices(';').map(|(at, _)| at);
    match (signs.next(), signs.nth(1)) {
        (Some(from), Some(to)) => &kind[from..to],
        _ => kind,
    }
}

/// The bytes that a recorded collective moves over the links; 0 where they are not known.
#[must_use]
pub fn bytes_of(details: &Details, of: &Collective) -> i64 {
    let kind = details.texts.get(of.kind);
    let format = kind.split(';').next().unwrap_or_default();
    bytes(details.texts.get(of.name), format, of.in_elements.max(of.out_elements))
}

/// The bytes of the larger side of a recorded collective, whatever of it crosses the links; `None` where the number format is not known.
#[must_use]
pub fn larger_side(details: &Details, of: &Collective) -> Option<i64> {
    let format = details.texts.get(of.kind).split(';').next().unwrap_or_default();
    let size = size_of(format);
    let bytes = of.in_elements.max(of.out_elements).saturating_mul(size);
    (size > 0).then_some(bytes)
}

/// The bytes of an element; 0 where the format is not known.
fn size_of(format: &str) -> i64 {
    match format {
        "Double" | "Long" => 8,
        "Float" | "Int" => 4,
        "Half" | "BFloat16" | "Short" => 2,
        "Byte" | "Char" | "Bool" => 1,
        format if format.starts_with("Float8") => 1,
        _ => 0,
    }
}

/// The bytes that a collective moves over the links, by its name, number format and elements, as PyTorch records them; 0 where the format
/// is not known. (An all-reduce sends what a reduce-scatter and an all-gather send.)
fn bytes(name: &str, format: &str, elements: i64) -> i64 {
    let size = size_of(format);
    let name = name.to_ascii_lowercase().replace('_', "");
    let times = match () {
        () if name.contains("allreduce") => 2,
        () if name.contains("allgather") || name.contains("reducescatter") => 1,
        // (Of others not all that a rank gives crosses the links.)
        () => 0,
    };
    elements.saturating_mul(size).saturating_mul(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: &'static str, times: Interval, bytes: i64) -> Call<'static, &'static str> {
        Call { key, times, stream: None, group: "tp", bytes, is_sized: true, like: None }
    }

    #[test]
    fn what_equal_calls_take_above_the_fast_ones_comes_first() {
        let of =
            |calls: &[Interval]| equal(calls.iter().map(|times| call("all", *times, 0)).collect());
        let found = of(&[(0, 10), (20, 50), (60, 72)]);
        assert_eq!((found[0].n, found[0].total_ns, found[0].excess_ns), (3, 52, 22));
        assert_eq!((found[0].shortest_ns, found[0].longest_ns), (10, 30));
        assert_eq!(found[0].waits, [(20, 40), (60, 62)]);
        let in_graphs = [(0, 10), (20, 50), (60, 72)]
            .map(|times| Call { is_sized: false, ..call("all", times, 0) });
        assert_eq!(equal(in_graphs.to_vec())[0].waits, [(20, 40)]);
        assert!(of(&[(0, 10), (20, 50)]).is_empty(), "two calls");
        // (Of many calls a tenth may be faster.)
        let many: Vec<Interval> =
            (0..20).map(|n| (n * 100, n * 100 + if n < 2 { 1 } else { 50 })).collect();
        assert_eq!(of(&many)[0].excess_ns, 0);
    }

    #[test]
    fn what_is_queued_behind_a_collective_waits_for_no_rank() {
        // Steps of two calls: the second starts `apart` µs after the first ends.
        let of = |times: &[(i64, i64)], apart: i64, group: &'static str| {
            let both = |(step, (first, second)): (i64, &(i64, i64))| {
                let (at, us) = (step * 1_000_000, 1_000);
                let next = at + (first + apart) * us;
                let first = (at, at + first * us);
                [
                    Call { stream: Some(StreamId(7)), ..call("all", first, 1 << 20) },
                    Call {
                        stream: Some(StreamId(7)),
                        group,
                        ..call("all", (next, next + second * us), 1 << 20)
                    },
                ]
            };
            let found = equal((0_i64..).zip(times).flat_map(both).collect());
            (found[0].excess_ns, found[0].waits.len())
        };
        let steps = [(90, 100), (100, 104), (150, 98), (100, 102), (100, 100)];
        assert_eq!(of(&steps, 2, "tp"), (50_000, 1), "the median of those in step is the base");
        // (By the fast ones, which take 98, all the others wait.)
        let by_fast = (2 + 2 + 6 + 52 + 2 + 4 + 2 + 2) * 1_000;
        assert_eq!(of(&steps, 11, "tp"), (by_fast, 8), "a pause before each");
        assert_eq!(of(&steps, 2, "dp").0, by_fast, "another group is not in step");
        let late = [(90, 100), (100, 104), (100, 980), (100, 102), (100, 100)];
        assert_eq!(of(&late, 2, "tp"), (878_000, 1), "a rank fell behind by a whole collective");
        // Two in step are no measure.
        assert_eq!(of(&steps[..2], 2, "tp"), (10_000, 1));
        let all = [(20, 100), (22, 120), (21, 110), (20, 100), (20, 130)];
        assert_eq!(of(&all, 2, "tp").0, 460_000 + 3_000, "nor are those that all wait");
    }

    #[test]
    fn where_all_calls_of_a_size_wait_the_best_rate_of_the_group_is_the_floor() {
        let mut calls = vec![call("other", (0, 1_000), 10 << 20)];
        calls.extend(
            [(0, 5), (10, 15), (20, 28)]
                .map(|(from, to)| call("slow", (from * 1_000, to * 1_000), 10 << 20)),
        );
        assert_eq!(equal(calls.clone())[0].excess_ns, 4_000 + 4_000 + 7_000);
        // Another group goes over other links.
        calls[0].group = "dp";
        assert_eq!(equal(calls.clone())[0].excess_ns, 3_000);
        // What always takes as long is slow, and does not wait.
        calls[0].group = "tp";
        calls[3].times.1 -= 3_000;
        assert_eq!(equal(calls)[0].excess_ns, 0);
    }

    #[test]
    fn a_place_that_always_waits_is_compared_with_the_others_of_its_kernel() {
        // Ten launches of two all-reduces: the second takes 50, the first longer.
        let with = |like: Option<i64>, first: &dyn Fn(i64) -> i64| {
            let of = |n: i64| {
                let at = n * 1_000;
                let first = call("first", (at, at + first(n)), 0);
                [first, call("second", (at + 500, at + 550), 0)]
            };
            let calls = (0..10).flat_map(of).map(|call| Call { is_sized: false, like, ..call });
            equal(calls.collect()).iter().map(|group| group.excess_ns).sum::<i64>()
        };
        let waits = |n: i64| 150 + 20 * n;
        assert_eq!(with(Some(1), &waits), 10 * 100 + 20 * 45);
        assert!(with(None, &waits) < 900, "its own fast ones");
        // (The first of them does not wait.)
        let mostly = |n: i64| if n == 0 { 50 } else { 150 };
        assert_eq!(with(Some(1), &mostly), 9 * 100);
        assert_eq!(with(Some(1), &|n| 150 + n), 0, "a larger one takes as long each time");
    }

    #[test]
    fn bytes_follow_from_the_format() {
        assert_eq!(bytes("_allgather_base", "BFloat16", 8), 16);
        assert_eq!(bytes("allreduce", "Float", 8), 64);
        assert_eq!(bytes("allreduce", "ComplexFloat", 8), 0);
        assert_eq!(bytes("all_to_allv", "Float", 8), 0);
    }
}
