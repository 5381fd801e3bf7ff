//! Which ranks may call a function of the CPU together.
//!
//! Nothing names the group of such a call, nor its sender. The calls themselves contradict a wrong guess:
//!
//! * where all wait, no rank leaves before another has joined;
//! * nobody has what one rank sends before that rank joins, and who receives from all leaves after all have joined;
//! * calls that belong together run at one time: more of them do than if one rank's calls were one further or one less.
//!
//! All of this is asked of the times as they are, with what a [corrected clock](crate::clocks::Clocks::slack_ns) leaves. Clocks that differ
//! by more than the shortest of the overlaps shut the gate, too.

use timeline::intervals::Interval;

/// Parts of the names of functions that no rank leaves before all have joined.
const ALL_WAIT: [&str; 7] = [
    "all_reduce",
    "allreduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "alltoall",
    "barrier",
];
/// Parts of the names of those in which one rank sends.
const FROM_ONE: [&str; 2] = ["broadcast", "scatter"];
/// Parts of the names of those in which one rank receives.
const TO_ONE: [&str; 2] = ["reduce", "gather"];
/// Of the calls of a function so many percent run on all ranks at some moment, where nothing else shows that the clocks are one: those of a
/// sender that is early do not, and more than one in ten of them would leave the clock open.
const LEAST_TOGETHER_PCT: usize = 90;

/// Who waits for whom in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// All for all.
    All,
    /// All for one that sends.
    FromOne,
    /// One that receives for all.
    ToOne,
    /// One of the two, or none of them.
    Unknown,
}

impl Way {
    pub(crate) fn of(name: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match () {
            () if has(&ALL_WAIT) => Self::All,
            () if has(&FROM_ONE) => Self::FromOne,
            () if has(&TO_ONE) => Self::ToOne,
            () => Self::Unknown,
        }
    }
}

/// The nth call of each of some ranks.
pub(crate) fn nth<'a>(
    calls: &'a [&[Interval]],
    nth: usize,
) -> impl DoubleEndedIterator<Item = Interval> + ExactSizeIterator + 'a {
    calls.iter().map(move |own| own[nth])
}

pub(crate) fn last_start(calls: &[&[Interval]], at: usize) -> i64 {
    nth(calls, at).map(|(from, _)| from).max().unwrap_or_default()
}

/// Whether these ranks may call a function together. `slack_ns`: what their clocks may differ by; `None` where they may not be one.
pub(crate) fn are_one(calls: &[&[Interval]], way: Way, slack_ns: Option<i64>) -> bool {
    let n = calls.first().map_or(0, |own| own.len());
    if n == 0 || calls.iter().any(|own| own.len() != n) {
        return false;
    }
    let slack = slack_ns.unwrap_or_default();
    let left_before = |at: &usize| {
        let joined = last_start(calls, *at);
        nth(calls, *at).any(|(_, to)| to.saturating_add(slack) < joined)
    };
    let n_left = (0..n).filter(left_before).count();
    if way == Way::All {
        return n_left == 0;
    }
    let is_one_clock = slack_ns.is_some() || n_left <= n * (100 - LEAST_TOGETHER_PCT) / 100;
    // (Whose start is before every end: it may have sent.)
    let sends = |of: usize| {
        (0..n).all(|at| {
            let from = calls[of][at].0;
            nth(calls, at).all(|(_, to)| to.saturating_add(slack) >= from)
        })
    };
    let receives =
        |of: usize| (0..n).all(|at| calls[of][at].1.saturating_add(slack) >= last_start(calls, at));
    let mut ranks = 0..calls.len();
    let has_one = match way {
        Way::All => true,
        Way::FromOne => ranks.any(sends),
        Way::ToOne => ranks.any(receives),
        Way::Unknown => ranks.any(|of| sends(of) || receives(of)),
    };
    is_one_clock && has_one && (0..calls.len()).all(|of| is_nth(calls, of))
}

/// Whether the nth call of a rank belongs to the nth of the others: more of them run at one time so than with one call more or less
/// before them, as where a recording begins later.
fn is_nth(calls: &[&[Interval]], of: usize) -> bool {
    let n_with = |later: usize, earlier: usize| {
        let own = calls[of].iter().skip(later);
        own.enumerate()
            .map(|(at, (from, to))| {
                let others = (0..calls.len()).filter(|other| *other != of);
                let others = others.filter_map(|other| calls[other].get(at + earlier));
                others.filter(|(start, end)| start <= to && from <= end).count()
            })
            .sum::<usize>()
    };
    let n_together = n_with(0, 0);
    n_together > n_with(1, 0).max(n_with(0, 1))
}

/// Whether the groups leave a call apart from each other: in half of the calls, or more, the ranks of every group leave within half of the
/// time in which all do. Ranks of one large group leave without regard to smaller ones.
pub(crate) fn leave_apart(groups: &[Vec<&[Interval]>]) -> bool {
    let n = groups.first().and_then(|own| own.first()).map_or(0, |own| own.len());
    let spread = |ends: &mut dyn Iterator<Item = i64>| {
        let (least, most) =
            ends.fold((i64::MAX, i64::MIN), |all, end| (all.0.min(end), all.1.max(end)));
        most.saturating_sub(least)
    };
    let is_apart = |at: &usize| {
        // (Groups differ in how often they call it.)
        let ends = |own: &Vec<&[Interval]>| -> Vec<i64> {
            own.iter().filter_map(|calls| Some(calls.get(*at)?.1)).collect()
        };
        let of_all = spread(&mut groups.iter().flat_map(ends));
        let within = groups.iter().map(|own| spread(&mut ends(own).into_iter())).max();
        within.is_some_and(|within| within.saturating_mul(2) <= of_all && of_all > 0)
    };
    n > 0 && (0..n).filter(is_apart).count() * 2 >= n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(calls: &[&[Interval]], way: Way) -> bool {
        are_one(calls, way, Some(0))
    }

    #[test]
    fn where_all_wait_no_rank_leaves_before_another_joins() {
        let early: [Interval; 2] = [(0, 100), (200, 300)];
        let late: [Interval; 2] = [(90, 900), (290, 299)];
        assert!(one(&[&early, &late], Way::All), "however far apart they leave");
        let gone: [Interval; 2] = [(90, 110), (301, 310)];
        assert!(
            !one(&[&early, &gone], Way::All),
            "the second call begins after the first rank left"
        );
        assert!(are_one(&[&early, &gone], Way::All, Some(1)), "the clock may differ by that");
        assert!(!one(&[&early, &late[..1]], Way::All), "one call is missing");
        assert!(!one(&[], Way::All) && !one(&[&[], &[]], Way::All));
    }

    #[test]
    fn a_sender_joins_before_anyone_leaves_and_a_receiver_leaves_after_all_have_joined() {
        // The first sends and is gone; the second is late once.
        let sender: [Interval; 2] = [(100, 110), (300, 310)];
        let receiver: [Interval; 2] = [(50, 120), (320, 330)];
        assert!(one(&[&sender, &receiver], Way::FromOne));
        // Who leaves before any of the others has joined has nothing from them.
        let before: [Interval; 2] = [(50, 60), (320, 330)];
        assert!(!one(&[&sender, &before], Way::FromOne));
        let others: [Interval; 2] = [(0, 20), (200, 210)];
        let last: [Interval; 2] = [(5, 90), (190, 290)];
        assert!(one(&[&others, &last], Way::ToOne));
        let gone: [Interval; 2] = [(15, 90), (190, 195)];
        assert!(
            !one(&[&[(0, 10), (200, 210)], &gone], Way::ToOne),
            "each leaves before the other joins once"
        );
    }

    #[test]
    fn calls_that_would_fit_better_one_further_are_not_matched() {
        // The second recording begins one call later, and has one call more at its end.
        let first: [Interval; 3] = [(0, 100), (1_000, 1_100), (2_000, 2_100)];
        let later: [Interval; 3] = [(1_010, 1_110), (2_010, 2_110), (3_010, 3_110)];
        assert!(!one(&[&first, &later], Way::FromOne));
        let same: [Interval; 3] = [(10, 110), (1_010, 1_110), (2_010, 2_110)];
        assert!(one(&[&first, &same], Way::FromOne));
        // Where none run at one time nothing shows it.
        let after: [Interval; 3] = [(200, 210), (1_200, 1_210), (2_200, 2_210)];
        assert!(!one(&[&first, &after], Way::FromOne));
    }

    #[test]
    fn groups_that_leave_together_are_told_from_calls_of_all() {
        let of = |ends: [i64; 2]| ends.map(|end| (end - 50, end));
        let [a, b] = [of([100, 1_100]), of([101, 1_099])];
        let [c, d] = [of([500, 1_400]), of([502, 1_401])];
        assert!(leave_apart(&[vec![&a, &b], vec![&c, &d]]));
        assert!(!leave_apart(&[vec![&a, &c], vec![&b, &d]]));
    }

    #[test]
    fn names_tell_who_waits_for_whom() {
        let of = |name| Way::of(name);
        assert_eq!(of("gloo:all_to_all"), Way::All);
        assert_eq!((of("gloo:reduce_scatter"), of("gloo:reduce")), (Way::All, Way::ToOne));
        assert_eq!((of("broadcast_pyobj"), of("gloo:scatter")), (Way::FromOne, Way::FromOne));
        assert_eq!((of("gloo:all_gather"), of("gloo:gather")), (Way::All, Way::ToOne));
        assert_eq!(of("point_to_point_pyobj"), Way::Unknown);
    }
}
