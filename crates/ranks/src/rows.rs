//! The tables of a run: its ranks and their groups, one row each.

use report::{Cell, Column, Row, Unit};
use serde::Serialize;

const UNMATCHED: &str = "none of its collectives could be matched";
const NO_WAIT: &str = "it waits for none";
const NO_LAST: &str = "the others wait for no one rank most of the time";

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RankRow {
    pub(crate) rank: String,
    pub(crate) busy_ns: i64,
    pub(crate) communication_ns: i64,
    pub(crate) n: u64,
    pub(crate) n_last: u64,
    pub(crate) behind_ns: Option<i64>,
    pub(crate) n_late_launches: u64,
    pub(crate) late_launch_ns: i64,
    pub(crate) exposed_ns: Option<i64>,
    pub(crate) saves_ns: Option<i64>,
    pub(crate) most: String,
    pub(crate) most_ns: Option<i64>,
    pub(crate) clock_ns: i64,
    pub(crate) groups: Vec<String>,
}

/// A group of ranks that call collectives together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct GroupRow {
    pub(crate) group: String,
    pub(crate) axis: &'static str,
    pub(crate) ranks: Vec<String>,
    pub(crate) n_missing: u64,
    pub(crate) n: u64,
    pub(crate) last: Option<String>,
    pub(crate) n_last: Option<u64>,
    pub(crate) behind_ns: Option<i64>,
    pub(crate) least_wait_ns: Option<i64>,
    pub(crate) most_wait_ns: Option<i64>,
    pub(crate) most_wait_pct: Option<f64>,
}

impl Row for RankRow {
    const SHOWN: &'static [&'static str] =
        &["rank", "busy_ns", "n", "n_last", "behind_ns", "exposed_ns", "most", "saves_ns"];
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "rank",
            title: "Rank",
            unit: Unit::Text,
            help: "The rank.",
            cell: |row| row.rank.as_str().into(),
        },
        Column {
            key: "busy_ns",
            title: "Kernels run",
            unit: Unit::Time,
            help: "Time in which a kernel runs on this rank, without copies and fills.",
            cell: |row| Cell::Ns(row.busy_ns),
        },
        Column {
            key: "communication_ns",
            title: "Only communication",
            unit: Unit::Time,
            help: "Of it, the time in which no other kernel runs: transfer, and waiting for others.",
            cell: |row| Cell::Ns(row.communication_ns),
        },
        Column {
            key: "n",
            title: "Collectives",
            unit: Unit::Count,
            help: "Collectives that were matched with those of the other ranks.",
            cell: |row| Cell::Count(row.n),
        },
        Column {
            key: "n_last",
            title: "Last to join",
            unit: Unit::Count,
            help: "Those that this rank joins last.",
            cell: |row| Cell::Count(row.n_last),
        },
        Column {
            key: "behind_ns",
            title: "Later than the next to last",
            unit: Unit::Time,
            help: "By how much, summed over those.",
            cell: |row| Cell::or_missing(row.behind_ns, Cell::Ns, UNMATCHED),
        },
        Column {
            key: "n_late_launches",
            title: "Late launches",
            unit: Unit::Count,
            help: "Of those, the ones whose launch began after the next to last rank had joined: the CPU of this rank is late.",
            cell: |row| Cell::Count(row.n_late_launches),
        },
        Column {
            key: "late_launch_ns",
            title: "Launch delay",
            unit: Unit::Time,
            help: "Time from the join of the next to last rank to the launch, summed over the late launches.",
            cell: |row| Cell::Ns(row.late_launch_ns),
        },
        Column {
            key: "exposed_ns",
            title: "Waits",
            unit: Unit::Time,
            help: "Time in which only communication runs on this rank and a later one has not joined.",
            cell: |row| Cell::or_missing(row.exposed_ns, Cell::Ns, UNMATCHED),
        },
        Column {
            key: "saves_ns",
            title: "Saved without waits",
            unit: Unit::Time,
            help: "How much sooner the last kernel of this rank would end without the waiting: its kernels begin no sooner than they are launched, and recorded calls in which its CPU waits for those of other ranks take no time. Waits that no call records, as in the allocator, are left in: without them it is more.",
            cell: |row| Cell::or_missing(row.saves_ns, Cell::Ns, UNMATCHED),
        },
        Column {
            key: "most",
            title: "Waits most for",
            unit: Unit::Text,
            help: "The rank for which it waits most.",
            cell: |row| row.most.as_str().into(),
        },
        Column {
            key: "most_ns",
            title: "Waits for that one",
            unit: Unit::Time,
            help: "Its waits for that rank.",
            cell: |row| Cell::or_missing(row.most_ns, Cell::Ns, NO_WAIT),
        },
        Column {
            key: "clock_ns",
            title: "Clock correction",
            unit: Unit::Time,
            help: "The constant added to its times, by which its clock differs from that of most ranks.",
            cell: |row| Cell::Ns(row.clock_ns),
        },
        Column {
            key: "groups",
            title: "Groups",
            unit: Unit::Text,
            help: "The groups of ranks that it was matched in.",
            cell: |row| row.groups.join("; ").into(),
        },
    ];
}

impl Row for GroupRow {
    const SHOWN: &'static [&'static str] =
        &["group", "axis", "n", "last", "n_last", "behind_ns", "most_wait_ns", "most_wait_pct"];
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "group",
            title: "Group",
            unit: Unit::Text,
            help: "Its ranks, in short.",
            cell: |row| row.group.as_str().into(),
        },
        Column {
            key: "axis",
            title: "Ranks differ in",
            unit: Unit::Text,
            help: "The axis of parallelism, where the names of the files have one for every rank.",
            cell: |row| row.axis.into(),
        },
        Column {
            key: "ranks",
            title: "Ranks",
            unit: Unit::Text,
            help: "Its ranks that have a file.",
            cell: |row| row.ranks.join(", ").into(),
        },
        Column {
            key: "n_missing",
            title: "Without a file",
            unit: Unit::Count,
            help: "Ranks of the group that have no file.",
            cell: |row| Cell::Count(row.n_missing),
        },
        Column {
            key: "n",
            title: "Collectives",
            unit: Unit::Count,
            help: "Collectives of the group that were matched.",
            cell: |row| Cell::Count(row.n),
        },
        Column {
            key: "last",
            title: "Late rank",
            unit: Unit::Text,
            help: "The rank for which the others wait more than for all others together.",
            cell: |row| match &row.last {
                Some(last) => last.as_str().into(),
                None => Cell::missing(NO_LAST),
            },
        },
        Column {
            key: "n_last",
            title: "It joins last",
            unit: Unit::Count,
            help: "Collectives that the late rank joins last.",
            cell: |row| Cell::or_missing(row.n_last, Cell::Count, NO_LAST),
        },
        Column {
            key: "behind_ns",
            title: "Later than the next to last",
            unit: Unit::Time,
            help: "By how much, summed over those.",
            cell: |row| Cell::or_missing(row.behind_ns, Cell::Ns, NO_LAST),
        },
        Column {
            key: "least_wait_ns",
            title: "Waits for it, at least",
            unit: Unit::Time,
            help: "What the rank that waits least for the late one waits for it, with nothing else running.",
            cell: |row| Cell::or_missing(row.least_wait_ns, Cell::Ns, NO_LAST),
        },
        Column {
            key: "most_wait_ns",
            title: "Waits for it, at most",
            unit: Unit::Time,
            help: "What the rank that waits most for the late one waits for it, with nothing else running.",
            cell: |row| Cell::or_missing(row.most_wait_ns, Cell::Ns, NO_LAST),
        },
        Column {
            key: "most_wait_pct",
            title: "Share of its time",
            unit: Unit::Percent,
            help: "That in percent of the time from the first kernel of the rank that waits to its last.",
            cell: |row| Cell::or_missing(row.most_wait_pct, Cell::Percent, NO_LAST),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keys_are_column_keys() {
        let keys =
            |columns: &[Column<RankRow>]| columns.iter().map(|one| one.key).collect::<Vec<_>>();
        testkit::assert_keys(&RankRow::default(), keys(RankRow::COLUMNS));
        testkit::assert_keys(&GroupRow::default(), GroupRow::COLUMNS.iter().map(|one| one.key));
    }
}
