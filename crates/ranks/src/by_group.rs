//! What the ranks of each group wait for each other.

use report::units::{count, percent, plural, time};

use crate::axes::axis;
use crate::begins::BeforeRecordings;
use crate::calls::RankCalls;
use crate::known::Known;
use crate::matched::Matched;
use crate::rows::GroupRow;
use crate::same_calls::Matches;

/// Waits of a smaller share of a rank's time are in the table alone: no sentence of a report is about less.
const LEAST_PCT: f64 = 1.0;
/// So many groups have a sentence of their own.
const SHOWN: usize = 8;

/// The collectives of one set of ranks.
pub(crate) struct OfGroup<'a> {
    /// The places of the ranks.
    pub(crate) members: &'a [usize],
    pub(crate) matches: Vec<&'a Matches>,
}

/// The matches by the ranks that call them together: of all ranks first, then by the first rank.
pub(crate) fn groups(known: &Known) -> Vec<OfGroup<'_>> {
    let mut all: Vec<&Matches> = known.matches.iter().collect();
    let order = |one: &&Matches| (usize::MAX - one.members.len(), one.members.clone());
    trace::sort_by(&mut all, |a, b| order(a).cmp(&order(b)));
    let mut groups: Vec<OfGroup<'_>> = Vec::new();
    for found in all {
        match groups.last_mut().filter(|group| *group.members == found.members) {
            Some(group) => group.matches.push(found),
            None => groups.push(OfGroup { members: &found.members, matches: vec![found] }),
        }
    }
    groups
}

impl OfGroup<'_> {
    /// Its row. `ranks` are on one clock.
    pub(crate) fn row(&self, ranks: &[&RankCalls], before: &BeforeRecordings<'_>) -> GroupRow {
        let of = |at: &usize| ranks.get(*at).copied();
        let own: Vec<&RankCalls> = self.members.iter().filter_map(of).collect();
        let files: Vec<&str> = own.iter().map(|rank| rank.file.as_str()).collect();
        let numbers: Vec<i64> = own.iter().map(|rank| rank.rank).collect();
        let row = GroupRow {
            group: short(&numbers),
            axis: axis(&files).unwrap_or_default(),
            ranks: own.iter().map(|rank| rank.name.clone()).collect(),
            n_missing: self.matches.iter().map(|found| found.n_missing as u64).max().unwrap_or(0),
            n: self.matches.iter().map(|found| found.calls.len() as u64).sum(),
            ..GroupRow::default()
        };
        let matched = Matched::of_group(ranks, &self.matches, before);
        let Some((last, late)) =
            matched.latest().and_then(|(last, _)| Some((last, matched.device(last)?)))
        else {
            return row;
        };
        let wait = |rank: &&RankCalls| {
            let ns = matched.device(&rank.name)?.exposed_for(last).map_or(0, |wait| wait.ns);
            let pct = ns as f64 * 100.0 / rank.span_ns().max(1) as f64;
            (rank.name != last).then_some((ns, pct))
        };
        let waits: Vec<(i64, f64)> = own.iter().filter_map(wait).collect();
        GroupRow {
            last: Some(last.to_owned()),
            n_last: Some(late.n_last as u64),
            behind_ns: Some(late.behind_ns),
            least_wait_ns: waits.iter().map(|(ns, _)| *ns).min(),
            most_wait_ns: waits.iter().map(|(ns, _)| *ns).max(),
            most_wait_pct: waits.iter().map(|(_, pct)| *pct).reduce(f64::max),
            ..row
        }
    }

    /// Whether it has collectives of which all wait for each other.
    fn waits_for_all(&self) -> bool {
        self.matches.iter().any(|found| !found.is_broadcast)
    }
}

impl GroupRow {
    fn sentence(&self) -> Option<String> {
        let (last, n_last) = (self.last.as_deref()?, self.n_last?);
        let (least, most) = (time(self.least_wait_ns?), time(self.most_wait_ns?));
        let pct = self.most_wait_pct?;
        let (axis, space) = (self.axis, if self.axis.is_empty() { "" } else { " " });
        let given = if self.n_missing > 0 { " of the ranks given" } else { "" };
        let of = plural(self.n, "collective", "collectives");
        let share = format!("{} of the time from its first kernel to its last", percent(pct));
        let cost = match self.ranks.len() {
            2 => format!("the other waits {most} for it, {share}"),
            _ if least == most => format!("each of the others waits {most} for it, up to {share}"),
            _ => format!("each of the others waits {least} to {most} for it, up to {share}"),
        };
        Some(format!(
            "In the {axis}{space}group of ranks {}, rank {last} is the last{given} to join {} of {of}: {cost}.",
            self.group,
            count(n_last),
        ))
    }
}

/// A sentence for each group in which one rank keeps the others waiting, where there are several groups; those with the longest waits.
/// What pairs wait for in broadcasts alone is said of the senders.
pub(crate) fn sentences(groups: &[OfGroup<'_>], rows: &[GroupRow]) -> Option<String> {
    if groups.len() < 2 {
        return None;
    }
    let is_told = |(group, row): &(&OfGroup<'_>, &GroupRow)| {
        group.waits_for_all() && row.most_wait_pct.is_some_and(|pct| pct >= LEAST_PCT)
    };
    let mut told: Vec<&GroupRow> =
        groups.iter().zip(rows).filter(is_told).map(|(_, row)| row).collect();
    trace::sort_by_key(&mut told, |row| -row.most_wait_ns.unwrap_or_default());
    let sentences: Vec<String> =
        told.into_iter().take(SHOWN).filter_map(GroupRow::sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Numbers in short: `0 to 7, 9`.
fn short(numbers: &[i64]) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut().filter(|run| run.1.checked_add(1) == Some(*number)) {
            Some(run) => run.1 = *number,
            None => runs.push((*number, *number)),
        }
    }
    let one = |(from, to): &(i64, i64)| match to - from {
        0 => from.to_string(),
        1 => format!("{from}, {to}"),
        _ => format!("{from} to {to}"),
    };
    runs.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use timeline::intervals::Interval;

    use super::*;
    use crate::calls::{Kind, Launched};

    const US: i64 = 1_000;

    /// Two groups of two that call their collective four times; `late` by rank in us, of 100 us until the common end.
    fn ranks(late: [i64; 4]) -> Vec<RankCalls> {
        let of = |(rank, late): (i64, i64)| {
            let call = |nth: i64| ((nth * 1_000 - 100 + late) * US, nth * 1_000 * US);
            let calls: Vec<Interval> = (1..=4).map(call).collect();
            let kernel = |times: &Interval| Launched {
                times: *times,
                // (The launch begins 3 us before the kernel.)
                launch_ns: Some(times.0 - 3 * US),
                stream: trace::TrackId(0),
            };
            let kind = Kind {
                key: format!("allreduce;{}", rank / 2),
                group_size: Some(2),
                is_broadcast: false,
                calls: calls.clone(),
            };
            RankCalls {
                name: rank.to_string(),
                rank,
                file: format!("dp{}_tp{}.json", rank / 2, rank % 2),
                kernels: calls.iter().map(kernel).collect(),
                exposed: calls,
                kinds: vec![kind],
                shift_ns: Some(0),
                ..RankCalls::default()
            }
        };
        (0..).zip(late).map(of).collect()
    }

    fn said(ranks: &[RankCalls]) -> (Vec<GroupRow>, Option<String>) {
        let ranks: Vec<&RankCalls> = ranks.iter().collect();
        let known = Known::of(&ranks);
        let groups = groups(&known);
        let rows: Vec<GroupRow> =
            groups.iter().map(|group| group.row(&ranks, &BeforeRecordings::default())).collect();
        let sentences = sentences(&groups, &rows);
        (rows, sentences)
    }

    #[test]
    fn each_group_whose_others_wait_for_one_rank_has_a_sentence() {
        // Rank 1 comes 80 us late; the ranks of the other group come 1 us apart.
        let (rows, told) = said(&ranks([0, 80, 0, 1]));
        assert_eq!(
            told.as_deref(),
            Some(
                "In the tensor-parallel group of ranks 0, 1, rank 1 is the last to join 4 of 4 collectives: the other waits 320 µs for it, 10.3% \
                 of the time from its first kernel to its last."
            )
        );
        assert_eq!(rows.len(), 2);
        let GroupRow { group, last, n, behind_ns, most_wait_ns, .. } = &rows[1];
        assert_eq!((group.as_str(), last.as_deref(), *n), ("2, 3", Some("3"), 4));
        assert_eq!((*behind_ns, *most_wait_ns), (Some(4 * US), Some(4 * US)), "0.1%: no sentence");
        // Of one group the first sentence of the section tells.
        assert_eq!(said(&ranks([0, 80, 0, 1])[..2]).1, None);
        assert_eq!(said(&ranks([0, 0, 0, 0])).1, None);
    }

    #[test]
    fn a_launch_is_late_by_the_time_since_the_next_to_last_rank_joined() {
        let ranks = ranks([0, 80, 0, 1]);
        let ranks: Vec<&RankCalls> = ranks.iter().collect();
        let found = Matched::of_ranks(&ranks, None);
        let of = |rank| found.device(rank).map(|own| (own.n_late_launches, own.late_launch_ns));
        // 80 us later, launched 3 us before.
        assert_eq!(of("1"), Some((4, 4 * 77 * US)));
        assert_eq!((of("0"), of("3")), (Some((0, 0)), Some((0, 0))), "launched in time");
    }

    #[test]
    fn numbers_that_follow_each_other_are_a_range() {
        assert_eq!(short(&[0, 1, 2, 3, 5, 8, 9]), "0 to 3, 5, 8, 9");
        assert_eq!(short(&[]), "");
    }
}
