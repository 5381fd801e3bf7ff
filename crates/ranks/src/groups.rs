//! Which ranks may call a collective together: all of a run, or a process group of PyTorch.

use crate::calls::RankCalls;

/// More devices than a machine has, or ranks than a person compares, are not matched.
pub(crate) const MOST_RANKS: usize = 256;

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

#[cfg(test)]
mod tests {
    use fixture::Fixture;

    use super::*;
    use crate::listed::groups_of;

    #[test]
    fn the_groups_of_a_rank_are_read_each_once_and_sorted_into_families() {
        let mut fixture = Fixture::default();
        fixture.metadata(
            "distributedInfo",
            r#"{"rank": 1, "pg_config": [{"pg_name": "0", "ranks": [0, 1, 2, 3]}, {"pg_name": "1", "ranks": [0, 1]}, {"ranks": [0, 1]},
                {"ranks": [1]}, {"ranks": [2, 3]}, {"ranks": [1, 3]}, {"pg_name": "7"}, {"ranks": "all"}, 3]}"#,
        );
        let trace = fixture.finish();
        assert_eq!(groups_of(&trace, 1), [vec![0, 1, 2, 3], vec![0, 1], vec![1, 3]]);
        assert!(groups_of(&Fixture::default().finish(), 1).is_empty());
        let rank = |rank: i64, groups: &[&[i64]]| RankCalls {
            rank,
            groups: groups.iter().map(|one| one.to_vec()).collect(),
            ..RankCalls::default()
        };
        let world: &[i64] = &[0, 1, 2, 3];
        let all = [
            rank(0, &[world, &[0, 1], &[0, 2]]),
            rank(1, &[world, &[0, 1], &[1, 3]]),
            rank(3, &[world, &[2, 3], &[1, 3]]),
        ];
        let groups = Groups::of(&all.iter().collect::<Vec<_>>());
        assert!(groups.is_known && !groups.is_one());
        let members = |family: &Vec<&Group>| -> Vec<Vec<usize>> {
            family.iter().map(|group| group.members.clone()).collect()
        };
        let families: Vec<_> = groups.families().iter().map(members).collect();
        assert_eq!(families, [vec![vec![0, 1, 2]], vec![vec![0, 1]], vec![vec![1, 2]]]);
        assert_eq!(groups.all[0].size, 4, "a rank has no file");
        assert!(Groups::of(&[&rank(0, &[world]), &rank(1, &[world])]).is_one());
    }
}
