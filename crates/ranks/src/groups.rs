//! Which ranks may call a collective together: all of a run, or a process group of PyTorch.

use serde_json::Value;
use timeline::device::member;
use trace::Trace;

use crate::calls::RankCalls;

/// The groups of several ranks that a file lists (`distributedInfo.pg_config`; PyTorch since 2.5) and `rank` is in, each once.
pub(crate) fn groups_of(trace: &Trace, rank: i64) -> Vec<Vec<i64>> {
    let info = member(trace, "distributedInfo").unwrap_or_default();
    let mut groups: Vec<Vec<i64>> = Vec::new();
    for group in info.get("pg_config").and_then(Value::as_array).into_iter().flatten() {
        let ranks = group.get("ranks").and_then(Value::as_array);
        let ranks: Vec<i64> = ranks.into_iter().flatten().filter_map(Value::as_i64).collect();
        if ranks.len() > 1 && ranks.contains(&rank) && !groups.contains(&ranks) {
            groups.push(ranks);
        }
    }
    groups
}

/// A group, as far as its ranks have files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The places of its ranks.
    pub(crate) members: Vec<usize>,
    /// How many ranks it has, with those that have no file.
    pub(crate) size: usize,
}

/// The groups that these ranks may form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// The largest first: all ranks, and those of the files.
    pub(crate) all: Vec<Group>,
    /// Whether the files list groups.
    pub(crate) is_known: bool,
}

impl Groups {
    pub(crate) fn of(ranks: &[&RankCalls]) -> Self {
        let mut all: Vec<Group> = Vec::new();
        for listed in ranks.iter().flat_map(|rank| &rank.groups) {
            let has = |at: &usize| listed.contains(&ranks[*at].rank);
            let members: Vec<usize> = (0..ranks.len()).filter(has).collect();
            let size = listed.len();
            match all.iter_mut().find(|group| group.members == members) {
                Some(group) => group.size = group.size.min(size),
                None if members.len() > 1 => all.push(Group { members, size }),
                None => {}
            }
        }
        let (n, is_known) = (ranks.len(), !all.is_empty());
        if !all.iter().any(|group| group.members.len() == n) {
            let world = ranks.iter().filter_map(|rank| rank.world_size).max();
            let size = world.and_then(|size| usize::try_from(size).ok()).unwrap_or(n).max(n);
            all.push(Group { members: (0..n).collect(), size });
        }
        trace::sort_by_key(&mut all, |group| {
            (usize::MAX - group.members.len(), group.members.first().copied())
        });
        Self { all, is_known }
    }

    /// Whether the files say that no ranks but all of these call a collective together.
    pub(crate) fn is_one(&self) -> bool {
        self.is_known && self.all.len() == 1
    }

    /// The groups of one size that have no rank in common, as sets: the one with all ranks first, then by size.
    pub(crate) fn families(&self) -> Vec<Vec<&Group>> {
        let mut families: Vec<Vec<&Group>> = Vec::new();
        for group in &self.all {
            let is_other = |one: &&Group| {
                one.size == group.size && !one.members.iter().any(|at| group.members.contains(at))
            };
            match families.iter_mut().find(|family| family.iter().all(is_other)) {
                Some(family) => family.push(group),
                None => families.push(vec![group]),
            }
        }
        families
    }
}
