//! In which order the details of a row list its columns, and what of a row the timeline shows.

use kinetoscope::report::{Cell, RowKey, Table};

use super::columns::in_order;
use crate::state::Sought;

/// What comes first and last of one table.
struct Panel {
    /// Id of the table.
    table: &'static str,
    /// Why, and what to do.
    first: &'static [&'static str],
    /// Ids and figures for programs.
    last: &'static [&'static str],
}

const PANELS: &[Panel] = &[
    Panel {
        table: "fuse",
        first: &["pattern", "rationale", "candidate_fused_path"],
        last: &["pattern_id"],
    },
    Panel {
        table: "overlap",
        first: &["kernel_name", "recommendation", "reason"],
        last: &["formal_signal", "representative"],
    },
    Panel { table: "kernel-table", first: &[], last: &["notes"] },
];

/// The columns of `table` in the order of its details: why and what to do, then the columns as the table shows them,
/// ids last.
#[must_use]
pub fn details(table: &Table) -> Vec<usize> {
    let panel = PANELS.iter().find(|panel| panel.table == table.id);
    let (first, last) = panel.map_or((&[][..], &[][..]), |panel| (panel.first, panel.last));
    let at = |keys: &[&str]| keys.iter().filter_map(|key| table.column(key)).collect::<Vec<_>>();
    let (mut columns, last) = (at(first), at(last));
    for column in in_order(table) {
        if !columns.contains(&column) && !last.contains(&column) {
            columns.push(column);
        }
    }
    columns.extend(last);
    columns
}

/// What of a row the timeline can show: the moment of its first time, else slices of the op that it is of.
#[must_use]
pub fn sought(table: &Table, row: usize) -> Option<Sought> {
    let moment = (0..table.columns.len()).find_map(|at| match table.cell(row, at)? {
        Cell::Instant(ns) => Some(Sought::Moment(ns)),
        _ => None,
    });
    moment.or_else(|| match table.key(row)? {
        RowKey::Event(event) => Some(Sought::Event(event)),
        RowKey::Kernel { name, .. } | RowKey::Op(name) => Some(Sought::Name(name.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use kinetoscope::FuseRow;
    use kinetoscope::report::{Column, Row, Unit};

    use super::*;

    /// When a call began, if that is known.
    struct Call(Option<i64>);

    impl Row for Call {
        const COLUMNS: &'static [Column<Self>] = &[Column {
            key: "start_ns",
            title: "Start",
            unit: Unit::Time,
            help: "",
            cell: |row| Cell::or_missing(row.0, Cell::Instant, "not recorded"),
        }];

        fn key(&self) -> Option<RowKey<'_>> {
            Some(RowKey::Event(5))
        }
    }

    #[test]
    fn why_and_what_to_do_come_first_and_the_id_last() {
        let table = Table::of::<FuseRow>("fuse", "Fuse", &[]);
        let keys: Vec<&str> =
            details(&table).into_iter().map(|at| &*table.columns[at].key).collect();
        assert_eq!(keys[..3], ["pattern", "rationale", "candidate_fused_path"]);
        assert_eq!(keys.last(), Some(&"pattern_id"));
        assert_eq!(keys.len(), FuseRow::COLUMNS.len(), "every column once");
    }

    #[test]
    fn a_row_leads_to_its_moment_else_to_what_it_is_about() {
        let table = Table::of("calls", "Calls", &[Call(None), Call(Some(7))]);
        assert_eq!(sought(&table, 0), Some(Sought::Event(5)));
        assert_eq!(sought(&table, 1), Some(Sought::Moment(7)));
        assert_eq!(sought(&table, 2), None);
    }
}
