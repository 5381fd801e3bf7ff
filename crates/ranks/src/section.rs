//! What the collectives of several traces of one run tell: one trace a rank.

use report::units::{count, plural, time};
use report::{Cell, Column, Row, Section, Table, Unit};

use crate::matched::Matched;
use crate::on_cpu::on_cpu;
use crate::runs::OneRun;
use crate::senders::for_senders;

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RankRow {
    rank: String,
    n: u64,
    n_last: u64,
    behind_ns: i64,
    exposed_ns: i64,
    saves_ns: Option<i64>,
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
            help: "How much sooner the last kernel of this rank would end without the waiting, at most: its kernels begin no sooner than they are launched.",
            cell: |row| Cell::or_missing(row.saves_ns, Cell::Ns, "CPUs wait for each other, too"),
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

impl OneRun<'_> {
    /// What the collectives of its ranks tell of each other, and which files are not of it.
    #[must_use]
    pub fn section(&self) -> Section {
        let (ranks, known) = (self.ranks(), self.known());
        let mut section = Matched::of_all(&ranks, known, None).section();
        section.intro.extend(known.clocks.sentence(&ranks));
        let on_one = known.on_one_clock(&ranks);
        section.intro.extend(for_senders(&on_one, &known.clocks));
        if let Some((sentence, table)) = on_cpu(&on_one, known) {
            section.intro.push(sentence);
            section.tables.push(table);
        }
        section.intro.extend(self.left_out());
        section
    }
}

impl Matched {
    fn section(&self) -> Section {
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
        if self.is_part {
            section.intro.push(format!("Some groups have ranks without a file. {}", Self::OTHERS));
        }
        let table = Table::of("ranks", "Ranks, by the collectives that all of them call", &rows);
        section.tables.push(table.when_empty("None."));
        section
    }

    fn sentence(&self) -> String {
        let late = self.latest().and_then(|(name, _)| Some((name, self.device(name)?)));
        match late {
            Some((name, late)) => {
                let waits = self.devices().filter_map(|(_, waits)| waits.exposed_for(name));
                let waits: Vec<i64> = waits.map(|wait| wait.ns).collect();
                let (least, most) = (waits.iter().min(), waits.iter().max());
                let (least, most) = (time(*least.unwrap_or(&0)), time(*most.unwrap_or(&0)));
                let each = match least == most {
                    true => most,
                    false => format!("each for {least} to {most} in which nothing else runs"),
                };
                let n_others = self.devices().count() - 1;
                let others = match waits.len() {
                    n if n == n_others && n > 1 => "The other ranks wait".to_owned(),
                    1 if n_others == 1 => "The other rank waits".to_owned(),
                    1 => "One other rank waits".to_owned(),
                    n => format!("{n} of the {n_others} other ranks wait"),
                };
                let last = if self.is_part { "the last of the ranks given" } else { "the last" };
                format!(
                    "{others} for rank {name}, {last} to join {} of {}: {each}.{}",
                    count(late.n_last as u64),
                    plural(late.n as u64, "collective", "collectives"),
                    self.cpu_limits(Some(name))
                )
            }
            None if self.devices().next().is_some() => {
                let none = "No rank keeps the others waiting for most of the time that they wait.";
                format!("{none}{}", self.cpu_limits(None))
            }
            None => format!("No collective could be matched. {}", self.why_none()),
        }
    }

    /// That the waiting is no cause, where the ranks launch late themselves; empty where it is, or where that cannot be told.
    fn cpu_limits(&self, late: Option<&str>) -> String {
        let others = || {
            let others = self.devices().filter(|(name, _)| Some(*name) != late);
            others.map(|(_, waits)| waits)
        };
        let saves: Option<Vec<i64>> = others().map(|waits| waits.saves_ns).collect();
        let least_waiting = others().map(|waits| waits.exposed_ns).min().unwrap_or_default();
        let most = saves.and_then(|saves| saves.into_iter().max());
        match most.filter(|ns| ns.saturating_mul(2) < least_waiting) {
            Some(ns) => format!(
                " Without the waiting a rank would be done {} sooner at most: its own launches come no earlier, so that the CPU limits all \
                 ranks.",
                time(ns)
            ),
            None => String::new(),
        }
    }
}
