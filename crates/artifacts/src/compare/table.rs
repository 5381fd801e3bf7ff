//! Rows of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use report::{Cell, Column, Row, Unit, units};
use serde::Serialize;

/// What one run spent on one thing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// The thing's name.
    pub name: String,
    /// Sum of durations.
    pub total_ns: i64,
    /// Number of launches.
    pub launches: u64,
    /// Total as a percentage of the run's.
    pub share_pct: f64,
}

impl Measured {
    /// A row of one run.
    #[must_use]
    pub(super) fn new(name: &str, total_ns: i64, launches: u64, share_pct: f64) -> Self {
        Self { name: name.to_owned(), total_ns, launches, share_pct }
    }

    fn mean_ns(&self) -> Option<i64> {
        let n = i64::try_from(self.launches).unwrap_or(i64::MAX);
        (n > 0).then(|| self.total_ns.saturating_add(n / 2) / n)
    }
}

/// In which of the runs a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Presence {
    /// In both, under one name.
    Matched,
    /// In both, under names that differ in their settings only.
    Similar,
    /// In the first only.
    OnlyA,
    /// In the second only.
    OnlyB,
}

impl Presence {
    /// The words for it.
    #[must_use]
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Similar => "similar name",
            Self::OnlyA => "only A",
            Self::OnlyB => "only B",
        }
    }
}

/// One thing in both runs. A value is missing where the run does not have the thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeltaRow {
    /// The name; of a pair of similar names the second run's.
    pub name: String,
    /// In which of the runs it is.
    pub presence: String,
    /// The first run's total.
    pub a_total_ns: Option<i64>,
    /// The second run's total.
    pub b_total_ns: Option<i64>,
    /// Second less first, absent counting as nothing.
    pub delta_ns: i64,
    /// The difference in percent of the first.
    pub delta_pct: Option<f64>,
    /// The first run's share of its own total.
    pub a_share_pct: Option<f64>,
    /// The second run's share of its own total.
    pub b_share_pct: Option<f64>,
    /// Number of launches in the first.
    pub a_launches: Option<u64>,
    /// Number of launches in the second.
    pub b_launches: Option<u64>,
    /// The first run's mean.
    pub a_mean_ns: Option<i64>,
    /// The second run's mean.
    pub b_mean_ns: Option<i64>,
    /// Of a pair of similar names the first run's.
    pub a_name: Option<String>,
}

impl DeltaRow {
    fn of(a: Option<&Measured>, b: Option<&Measured>) -> Self {
        let similar = a.zip(b).filter(|(a, b)| a.name != b.name);
        let presence = match (a, b) {
            (Some(a), Some(b)) if a.name == b.name => Presence::Matched,
            (Some(_), Some(_)) => Presence::Similar,
            (Some(_), None) => Presence::OnlyA,
            (None, _) => Presence::OnlyB,
        };
        let total = |side: Option<&Measured>| side.map(|side| side.total_ns);
        let delta_ns = total(b).unwrap_or(0).saturating_sub(total(a).unwrap_or(0));
        let pair = a.zip(b).filter(|(a, _)| a.total_ns > 0);
        Self {
            name: b.or(a).map(|side| side.name.clone()).unwrap_or_default(),
            a_name: similar.map(|(a, _)| a.name.clone()),
            presence: presence.id().to_owned(),
            a_total_ns: total(a),
            b_total_ns: total(b),
            delta_ns,
            delta_pct: pair.map(|(a, _)| 100.0 * delta_ns as f64 / a.total_ns as f64),
            a_share_pct: a.map(|side| side.share_pct),
            b_share_pct: b.map(|side| side.share_pct),
            a_launches: a.map(|side| side.launches),
            b_launches: b.map(|side| side.launches),
            a_mean_ns: a.and_then(Measured::mean_ns),
            b_mean_ns: b.and_then(Measured::mean_ns),
        }
    }
}

/// Pairs the rows of two runs: equal names, then, where `head` is given, what is left and has one and only one
/// partner with the same head. The largest difference comes first.
#[must_use]
pub(super) fn deltas(
    a: &[Measured],
    b: &[Measured],
    head: Option<fn(&str) -> String>,
) -> Vec<DeltaRow> {
    let by_name: BTreeMap<&str, &Measured> = b.iter().map(|row| (row.name.as_str(), row)).collect();
    let names: BTreeSet<&str> = a.iter().map(|row| row.name.as_str()).collect();
    let mut rows = Vec::with_capacity(a.len().max(b.len()));
    let mut left: Vec<&Measured> = Vec::new();
    for row in a {
        match by_name.get(row.name.as_str()) {
            Some(other) => rows.push(DeltaRow::of(Some(row), Some(other))),
            None => left.push(row),
        }
    }
    let mut right: Vec<&Measured> =
        b.iter().filter(|row| !names.contains(row.name.as_str())).collect();
    if let Some(head) = head {
        let mut heads: BTreeMap<String, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, row) in left.iter().enumerate() {
            heads.entry(head(&row.name)).or_default().0.push(at);
        }
        for (at, row) in right.iter().enumerate() {
            heads.entry(head(&row.name)).or_default().1.push(at);
        }
        let pairs: Vec<(usize, usize)> = heads
            .values()
            .filter_map(|(a, b)| match (&a[..], &b[..]) {
                ([a], [b]) => Some((*a, *b)),
                _ => None,
            })
            .collect();
        rows.extend(pairs.iter().map(|(a, b)| DeltaRow::of(Some(left[*a]), Some(right[*b]))));
        let (paired_a, paired_b): (BTreeSet<usize>, BTreeSet<usize>) = pairs.into_iter().unzip();
        left = unpaired(&left, &paired_a);
        right = unpaired(&right, &paired_b);
    }
    rows.extend(left.into_iter().map(|row| DeltaRow::of(Some(row), None)));
    rows.extend(right.into_iter().map(|row| DeltaRow::of(None, Some(row))));
    trace::sort_by(&mut rows, |a, b| {
        let size = |row: &DeltaRow| row.delta_ns.unsigned_abs();
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    rows
}

fn unpaired<'a>(rows: &[&'a Measured], paired: &BTreeSet<usize>) -> Vec<&'a Measured> {
    let rows = rows.iter().enumerate().filter(|(at, _)| !paired.contains(at));
    rows.map(|(_, row)| *row).collect()
}

/// "GPU time: 3.20 ms in A, 2.90 ms in B (-9.4%). The largest difference, -0.250 ms, is in GEMM." `rows` are categories.
pub(crate) fn sentence(rows: &[DeltaRow]) -> String {
    let sum = |of: fn(&DeltaRow) -> Option<i64>| {
        rows.iter().filter_map(of).fold(0_i64, i64::saturating_add)
    };
    let (a, b) = (sum(|row| row.a_total_ns), sum(|row| row.b_total_ns));
    let mut text = format!("GPU time: {} in A, {} in B", units::time(a), units::time(b));
    if a > 0 {
        text.push_str(&format!(" ({:+.1}%)", 100.0 * b.saturating_sub(a) as f64 / a as f64));
    }
    if let Some(first) = rows.first().filter(|row| row.delta_ns != 0) {
        let sign = if first.delta_ns > 0 { "+" } else { "" };
        let delta = units::time(first.delta_ns);
        text.push_str(&format!(
            ". The largest difference, {sign}{delta}, is in {}",
            analysis::words::category(&first.name).show()
        ));
    }
    text + "."
}

/// How much of each run is in kernels of the other, where not all is: what is in one run only is no gain and no loss.
pub(crate) fn matched_sentence(kernels: &[DeltaRow]) -> Option<String> {
    let in_both = |row: &&DeltaRow| row.a_total_ns.is_some() && row.b_total_ns.is_some();
    let share = |of: fn(&DeltaRow) -> Option<i64>| {
        let sum = |rows: &mut dyn Iterator<Item = &DeltaRow>| {
            rows.filter_map(of).fold(0_i64, i64::saturating_add)
        };
        let all = sum(&mut kernels.iter());
        let matched = sum(&mut kernels.iter().filter(in_both));
        if all == 0 { 0.0 } else { 100.0 * matched as f64 / all as f64 }
    };
    let n = kernels.iter().filter(in_both).count() as u64;
    (n < kernels.len() as u64).then(|| {
        format!(
            "{} in both runs, with {} of A's GPU time and {} of B's. The other kernels are in one run only: their rows show neither a speedup nor a slowdown.",
            units::plural(n, "kernel name is", "kernel names are"),
            units::percent(share(|row| row.a_total_ns)),
            units::percent(share(|row| row.b_total_ns)),
        )
    })
}

impl Row for DeltaRow {
    const SHOWN: &'static [&'static str] = &[
        "name",
        "presence",
        "a_total_ns",
        "b_total_ns",
        "delta_ns",
        "delta_pct",
        "a_share_pct",
        "b_share_pct",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Name,
            help: "Name of the row; if the names in A and B differ, the one in B.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "presence",
            title: "Match",
            unit: Unit::Text,
            help: "Where the name occurs. matched: in both runs; similar name: in both, with different template arguments; only A; only B.",
            cell: |row| row.presence.as_str().into(),
        },
        Column {
            key: "a_total_ns",
            title: "A",
            unit: Unit::Time,
            help: "Sum of durations in A.",
            cell: |row| Cell::or_missing(row.a_total_ns, Cell::Ns, NOT_IN_A),
        },
        Column {
            key: "b_total_ns",
            title: "B",
            unit: Unit::Time,
            help: "Sum of durations in B.",
            cell: |row| Cell::or_missing(row.b_total_ns, Cell::Ns, NOT_IN_B),
        },
        Column {
            key: "delta_ns",
            title: "B - A",
            unit: Unit::Time,
            help: "B - A; a row that is absent from one run counts as 0 there.",
            cell: |row| Cell::Ns(row.delta_ns),
        },
        Column {
            key: "delta_pct",
            title: "Change",
            unit: Unit::Percent,
            help: "B - A as a percentage of A.",
            cell: |row| Cell::or_missing(row.delta_pct, Cell::Percent, "not in both"),
        },
        Column {
            key: "a_share_pct",
            title: "Share of A",
            unit: Unit::Percent,
            help: "A's time as a percentage of A's total.",
            cell: |row| Cell::or_missing(row.a_share_pct, Cell::Percent, NOT_IN_A),
        },
        Column {
            key: "b_share_pct",
            title: "Share of B",
            unit: Unit::Percent,
            help: "B's time as a percentage of B's total.",
            cell: |row| Cell::or_missing(row.b_share_pct, Cell::Percent, NOT_IN_B),
        },
        Column {
            key: "a_launches",
            title: "Launches A",
            unit: Unit::Count,
            help: "Number of launches in A.",
            cell: |row| Cell::or_missing(row.a_launches, Cell::Count, NOT_IN_A),
        },
        Column {
            key: "b_launches",
            title: "Launches B",
            unit: Unit::Count,
            help: "Number of launches in B.",
            cell: |row| Cell::or_missing(row.b_launches, Cell::Count, NOT_IN_B),
        },
        Column {
            key: "a_mean_ns",
            title: "Mean A",
            unit: Unit::Time,
            help: "Total / launches in A.",
            cell: |row| Cell::or_missing(row.a_mean_ns, Cell::Ns, NOT_IN_A),
        },
        Column {
            key: "b_mean_ns",
            title: "Mean B",
            unit: Unit::Time,
            help: "Total / launches in B.",
            cell: |row| Cell::or_missing(row.b_mean_ns, Cell::Ns, NOT_IN_B),
        },
        Column {
            key: "a_name",
            title: "Name in A",
            unit: Unit::Name,
            help: "Name of the row in A, if it differs from that in B.",
            cell: |row| Cell::or_missing(row.a_name.clone(), Cell::from, "same name"),
        },
    ];
}

const NOT_IN_A: &str = "not in A";
const NOT_IN_B: &str = "not in B";

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, i64, u64)]) -> Vec<Measured> {
        rows.iter().map(|(name, ns, n)| Measured::new(name, *ns, *n, 0.0)).collect()
    }

    #[test]
    fn names_are_paired_then_heads_then_left_alone() {
        let a = rows(&[("same", 100, 2), ("gemm<64>", 50, 1), ("old", 7, 1), ("f<1>", 1, 1)]);
        let b = rows(&[
            ("same", 80, 2),
            ("gemm<128>", 90, 1),
            ("new", 9, 0),
            ("f<2>", 1, 1),
            ("f<3>", 2, 1),
        ]);
        let head = |name: &str| name.split('<').next().unwrap_or_default().to_owned();
        let found = deltas(&a, &b, Some(head));
        let shown: Vec<(&str, &str, i64)> = found
            .iter()
            .map(|row| (row.name.as_str(), row.presence.as_str(), row.delta_ns))
            .collect();
        assert_eq!(
            shown,
            [
                ("gemm<128>", "similar name", 40),
                ("same", "matched", -20),
                ("new", "only B", 9),
                ("old", "only A", -7),
                ("f<3>", "only B", 2),
                ("f<1>", "only A", -1),
                ("f<2>", "only B", 1),
            ]
        );
        assert_eq!(
            found.iter().filter_map(|row| row.a_name.as_deref()).collect::<Vec<_>>(),
            ["gemm<64>"]
        );
        assert_eq!(
            (found[1].delta_pct, found[1].a_mean_ns, found[1].b_mean_ns),
            (Some(-20.0), Some(50), Some(40))
        );
        assert_eq!((found[2].a_total_ns, found[2].b_mean_ns), (None, None));
        assert_eq!(
            sentence(&found),
            "GPU time: 158 ns in A, 182 ns in B (+15.2%). The largest difference, +40 ns, is in gemm<128>."
        );
        assert_eq!(
            matched_sentence(&found).unwrap(),
            "2 kernel names are in both runs, with 94.9% of A's GPU time and 93.4% of B's. The other kernels are in one run only: their rows show neither a speedup nor a slowdown."
        );
        assert_eq!(matched_sentence(&found[..2]), None);
        testkit::assert_keys(&found[0], DeltaRow::COLUMNS.iter().map(|column| column.key));
    }
}
