//! What the collectives of several traces of one run tell: one trace a rank.

use report::units::{count, plural, time};
use report::{Cell, Column, Row, Section, Table, Unit};

use crate::collectives::Matched;

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RankRow {
    rank: String,
    n: u64,
    n_last: u64,
    behind_ns: i64,
    exposed_ns: i64,
    saves_ns: i64,
    most: String,
}

impl Row for RankRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "rank",
            title: "Rank",
            unit: Unit::Text,
            help: "The rank.",
            cell: |row| row.rank.as_str().into(),
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
            cell: |row| Cell::Ns(row.behind_ns),
        },
        Column {
            key: "exposed_ns",
            title: "Waits",
            unit: Unit::Time,
            help: "Time in which only communication runs on this rank and a later one has not joined.",
            cell: |row| Cell::Ns(row.exposed_ns),
        },
        Column {
            key: "saves_ns",
            title: "Done sooner without",
            unit: Unit::Time,
            help: "How much sooner the last kernel of this rank would start without the waiting, at most: its kernels begin no sooner than they are launched.",
            cell: |row| Cell::Ns(row.saves_ns),
        },
        Column {
            key: "most",
            title: "Most of it for",
            unit: Unit::Text,
            help: "The rank for which it waits most.",
            cell: |row| row.most.as_str().into(),
        },
    ];
}

impl Matched {
    /// What the collectives of the ranks of a run tell of each other.
    #[must_use]
    pub fn section(&self) -> Section {
        let mut section = Section::new("ranks", "Ranks");
        let rows = self.devices().map(|(rank, waits)| RankRow {
            rank: rank.to_owned(),
            n: waits.n as u64,
            n_last: waits.n_last as u64,
            behind_ns: waits.behind_ns,
            exposed_ns: waits.exposed_ns,
            saves_ns: waits.saves_ns,
            most: waits
                .most()
                .map(|wait| format!("{} ({})", wait.last, time(wait.ns)))
                .unwrap_or_default(),
        });
        let rows: Vec<RankRow> = rows.collect();
        section.intro.push(self.sentence());
        let table = Table::of("ranks", "Ranks, by the collectives that all of them call", &rows);
        section.tables.push(table.when_empty("None."));
        section
    }

    fn sentence(&self) -> String {
        let late = self.latest().and_then(|(name, _)| Some((name, self.device(name)?)));
        match late {
            Some((name, late)) => {
                let waits = self.devices().filter_map(|(_, waits)| waits.exposed_for(name));
                let (mut saves_ns, mut all_ns) = (0_i64, i64::MAX);
                let waits: Vec<i64> = waits
                    .map(|wait| {
                        saves_ns = saves_ns.max(wait.saves_ns);
                        all_ns = all_ns.min(wait.ns);
                        wait.ns
                    })
                    .collect();
                let (least, most) = (waits.iter().min(), waits.iter().max());
                let (least, most) = (time(*least.unwrap_or(&0)), time(*most.unwrap_or(&0)));
                let each = match least == most {
                    true => most,
                    false => format!("each for {least} to {most} in all"),
                };
                let n_others = self.devices().count() - 1;
                let others = match waits.len() {
                    n if n == n_others && n > 1 => "The other ranks wait".to_owned(),
                    1 if n_others == 1 => "The other rank waits".to_owned(),
                    1 => "One other rank waits".to_owned(),
                    n => format!("{n} of the {n_others} other ranks wait"),
                };
                let late_too = match saves_ns.saturating_mul(2) < all_ns {
                    true => cpu_limits(saves_ns),
                    false => String::new(),
                };
                format!(
                    "{others} for rank {name}, the last to join {} of {}: {each}.{late_too}",
                    count(late.n_last as u64),
                    plural(late.n as u64, "collective", "collectives"),
                )
            }
            None if self.devices().next().is_some() => {
                let mut text =
                    "No rank keeps the others waiting for most of the time that they wait."
                        .to_owned();
                let waits = || self.devices().map(|(_, waits)| waits);
                let saves = waits().map(|waits| waits.saves_ns).max().unwrap_or_default();
                let least = waits().map(|waits| waits.exposed_ns).min().unwrap_or_default();
                if saves.saturating_mul(2) < least {
                    text.push_str(&cpu_limits(saves));
                }
                text
            }
            None => format!("No collective could be matched. {}", self.why_none()),
        }
    }
}

/// That the waiting is no cause where the ranks launch late themselves.
fn cpu_limits(saves_ns: i64) -> String {
    format!(
        " Without the waiting a rank would be done {} sooner at most: its own launches come no earlier, so that the CPU limits all ranks.",
        time(saves_ns)
    )
}
