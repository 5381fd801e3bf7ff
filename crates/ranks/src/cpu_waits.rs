//! The calls of a function on several ranks, of which the nth of each rank are one, and what the ranks wait in them.

use timeline::intervals::Interval;

use crate::cpu_gates::{Way, are_one, last_start, leave_apart, nth};
use crate::groups::Group;
use crate::known::Known;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuWaits {
    /// Calls that were matched.
    pub(crate) n: u64,
    pub(crate) n_last: u64,
    pub(crate) ns: i64,
    /// By rank that comes last.
    pub(crate) of: Vec<i64>,
}

impl CpuWaits {
    /// These and others of the same rank.
    pub(crate) fn and(mut self, other: Self) -> Self {
        let Self { n, n_last, ns, of } = other;
        self.n += n;
        self.n_last += n_last;
        self.ns = self.ns.saturating_add(ns);
        self.of.iter_mut().zip(of).for_each(|(own, other)| *own = own.saturating_add(other));
        self
    }
}

/// Calls of which the nth of every rank of a group are one.
#[derive(Default)]
pub(crate) struct InOrder {
    /// By rank.
    pub(crate) waits: Vec<Option<CpuWaits>>,
    pub(crate) groups: (usize, usize),
    pub(crate) n_before: usize,
    pub(crate) is_estimate: bool,
}

/// The calls of the ranks, the nth with the nth; `None` where every group contradicts that. `since`: when the last recording begins.
pub(crate) fn in_order(
    calls: &[Vec<Interval>],
    way: Way,
    Known { groups, clocks, .. }: &Known,
    since: i64,
) -> Option<InOrder> {
    let callers = || (0..calls.len()).filter(|at| !calls[*at].is_empty());
    for family in &groups.families() {
        let is_whole = callers().all(|at| family.iter().any(|one| one.members.contains(&at)));
        let of_group = |group: &&'_ Group| -> Option<Vec<&[Interval]>> {
            let own: Vec<&[Interval]> = group.members.iter().map(|at| &*calls[*at]).collect();
            let is_one_clock = clocks.are_one(&group.members);
            let slack_ns = is_one_clock.then(|| clocks.slack_ns(&group.members));
            are_one(&own, way, slack_ns).then_some(own)
        };
        let own: Option<Vec<_>> = family.iter().map(of_group).collect();
        let Some(own) = own.filter(|own| is_whole && !own.is_empty()) else { continue };
        // (Calls of all ranks look like those of any smaller group, unless these go their own ways.)
        if own.len() > 1 && way == Way::All && !leave_apart(&own) {
            continue;
        }
        let overlaps = |own: &Vec<Interval>| own.windows(2).any(|two| two[1].0 < two[0].1);
        let mut found = InOrder {
            waits: vec![None; calls.len()],
            groups: (own.len(), family[0].members.len()),
            n_before: 0,
            is_estimate: calls.iter().any(overlaps),
        };
        for (Group { members, .. }, own) in family.iter().zip(own) {
            let n_before = waits(members, &own, since, &mut found.waits);
            found.n_before = found.n_before.max(n_before);
        }
        return Some(found);
    }
    None
}

/// Writes down what each rank of a group waits, and returns how many calls were left out because they began before `since`.
fn waits(
    members: &[usize],
    calls: &[&[Interval]],
    since: i64,
    of_ranks: &mut [Option<CpuWaits>],
) -> usize {
    let n = calls.first().map_or(0, |own| own.len());
    let none = CpuWaits { of: vec![0; of_ranks.len()], ..CpuWaits::default() };
    let mut waits = vec![none; calls.len()];
    let mut n_before = 0;
    for at in 0..n {
        if nth(calls, at).any(|(from, _)| from < since) {
            n_before += 1;
            continue;
        }
        let joined = last_start(calls, at);
        // (Of equal starts the last rank counts as the last, as it does on the GPU.)
        let mut own = nth(calls, at).enumerate().filter(|(_, (from, _))| *from == joined);
        let Some((last, _)) = own.next_back() else { continue };
        waits[last].n_last += 1;
        for (own, (from, to)) in waits.iter_mut().zip(nth(calls, at)) {
            own.n += 1;
            if to > joined {
                let ns = joined.saturating_sub(from);
                own.ns = own.ns.saturating_add(ns);
                let of = &mut own.of[members[last]];
                *of = of.saturating_add(ns);
            }
        }
    }
    for (at, own) in members.iter().zip(waits) {
        of_ranks[*at] = Some(own);
    }
    n_before
}
