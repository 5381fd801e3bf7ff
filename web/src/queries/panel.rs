//! In which order the details of a row list its columns.

use kinetoscope::report::Table;

use super::columns::in_order;

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

#[cfg(test)]
mod tests {
    use kinetoscope::FuseRow;
    use kinetoscope::report::{Row, Table};

    use super::*;

    #[test]
    fn why_and_what_to_do_come_first_and_the_id_last() {
        let table = Table::of::<FuseRow>("fuse", "Fuse", &[]);
        let keys: Vec<&str> =
            details(&table).into_iter().map(|at| &*table.columns[at].key).collect();
        assert_eq!(keys[..3], ["pattern", "rationale", "candidate_fused_path"]);
        assert_eq!(keys.last(), Some(&"pattern_id"));
        assert_eq!(keys.len(), FuseRow::COLUMNS.len(), "every column once");
    }
}
