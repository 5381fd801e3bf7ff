//! A table narrowed to a stage and a device.

use kinetoscope::report::{Cell, Table, TableColumn, Unit};

/// Key of the column with the stage of a row.
const STAGE: &str = "stage";
/// Key of the column with its device.
const DEVICE: &str = "device";

/// Which rows of a table are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Only this stage.
    pub stage: Option<String>,
    /// Only this device.
    pub device: Option<String>,
}

/// The rows that `narrowed` leaves, and which rows of `table` they are. A column with the same stage or device in every
/// row is left out.
#[must_use]
pub fn of_stage(table: &Table, narrowed: &Narrowed) -> (Table, Vec<u32>) {
    let by = [(STAGE, &narrowed.stage), (DEVICE, &narrowed.device)];
    let by: Vec<(usize, Option<&String>)> = by
        .into_iter()
        .filter_map(|(key, wanted)| Some((table.column(key)?, wanted.as_ref())))
        .collect();
    let is_in = |row: &u32| {
        by.iter().all(|(at, wanted)| {
            let cell = table.cell(*row as usize, *at);
            wanted.is_none_or(|wanted| cell.is_none_or(|cell| is_text(&cell, wanted)))
        })
    };
    let kept: Vec<u32> = (0..table.n_rows() as u32).filter(is_in).collect();
    let mut narrowed = table.keep(&kept);
    for key in [STAGE, DEVICE] {
        let at = narrowed.column(key);
        let one_value =
            |at: usize| narrowed.cells(at).skip(1).all(|of| narrowed.cell(0, at) == Some(of));
        if at.is_some_and(one_value) {
            narrowed = narrowed.without(key);
        }
    }
    if kept.is_empty() && !table.is_empty() {
        narrowed.when_empty = "No rows in this stage.".into();
    }
    (narrowed, kept)
}

/// Whether a cell of text, or a word by its id, is `wanted`. Other cells are of every stage.
fn is_text(cell: &Cell, wanted: &str) -> bool {
    cell.text().is_none_or(|text| text == wanted)
}

/// Key of the share that [`share_of_shown`] adds.
const SHOWN_SHARE: &str = "gpu_time_share_pct";

/// Gives a table of kernels the share of the GPU time that it shows, where its own share is of something else: of each
/// stage, while it shows several. So the column adds up to 100%.
pub fn share_of_shown(table: &mut Table) {
    // The report's own is of the whole device, not of what is shown.
    *table = std::mem::take(table).without("gpu_share_pct");
    let (Some(share), Some(total)) = (table.column("share_pct"), table.column("total_ns")) else {
        return;
    };
    if table.column(STAGE).is_none() && table.column(DEVICE).is_none() && table.id != MERGED {
        table.columns[share].summed = true;
        return;
    }
    let ns_of = |cell: Cell| match cell {
        Cell::Ns(ns) => ns,
        _ => 0,
    };
    let each_ns: Vec<i64> = table.cells(total).map(ns_of).collect();
    let all_ns = each_ns.iter().copied().fold(0_i64, i64::saturating_add);
    let column = TableColumn {
        key: SHOWN_SHARE.into(),
        title: "Share of GPU time".into(),
        unit: Unit::Percent,
        help: "Total as a percentage of the GPU time of all rows in this table, summed over all streams (not wall time).".into(),
        summed: true,
    };
    let share_of = |ns: &i64| if all_ns > 0 { 100.0 * *ns as f64 / all_ns as f64 } else { 0.0 };
    let shares: Vec<f64> = each_ns.iter().map(share_of).collect();
    *table = std::mem::take(table).with_shares(share, column, &shares);
    for key in &mut table.shown {
        if key == "share_pct" {
            *key = SHOWN_SHARE.into();
        }
    }
    if table.id == MERGED {
        // The share of a stage says nothing of a row that merges stages.
        *table = std::mem::take(table).without("share_pct");
    }
}

/// Id of the table of kernels that merges stages, as the worker sends it.
pub const MERGED: &str = "kernels-merged";
/// Id of the table of kernels by stage. The page shows one of the two at a time, under this id.
pub const KERNELS: &str = "kernel-table";

#[cfg(test)]
mod tests {
    use super::*;
    use kinetoscope::report::{Column, Row};
    use kinetoscope::{KernelLine, KernelTableRow, Stage};

    struct Kernel(&'static str, &'static str);

    impl Row for Kernel {
        const COLUMNS: &'static [Column<Self>] = &[
            Column {
                key: "stage",
                title: "Stage",
                unit: Unit::Text,
                help: "",
                cell: |row| row.0.into(),
            },
            Column {
                key: "name",
                title: "Kernel",
                unit: Unit::Name,
                help: "",
                cell: |row| row.1.into(),
            },
        ];
    }

    fn shown(stage: Option<&str>) -> (Vec<String>, Vec<Vec<Cell<'static>>>) {
        let rows = [Kernel("extend", "a"), Kernel("decode", "a"), Kernel("decode", "b")];
        let narrowed = Narrowed { stage: stage.map(str::to_owned), device: None };
        let (table, _) = of_stage(&Table::of("kernels", "Kernels", &rows), &narrowed);
        let row = |row| table.row(row).map(Cell::into_owned).collect();
        let rows = (0..table.n_rows()).map(row).collect();
        (table.columns.iter().map(|column| column.key.to_string()).collect(), rows)
    }

    #[test]
    fn a_stage_leaves_its_rows_and_no_column_of_stages() {
        let (columns, rows) = shown(Some("decode"));
        assert_eq!(columns, ["name"]);
        assert_eq!(rows, [[Cell::from("a")], [Cell::from("b")]]);
        let (columns, rows) = shown(None);
        assert_eq!(columns, ["stage", "name"]);
        assert_eq!(rows[0], [Cell::from("extend"), Cell::from("a")]);
        assert!(shown(Some("moon")).1.is_empty());
    }

    fn kernels() -> Table {
        let row = |stage: Stage, total_ns: i64, share_pct: f64| {
            KernelLine::from(KernelTableRow {
                stage: Some(stage),
                kernel_name: "k".into(),
                total_ns,
                share_pct,
                ..KernelTableRow::default()
            })
        };
        let rows = [
            row(Stage::Decode, 30, 100.0),
            row(Stage::Extend, 60, 66.7),
            row(Stage::Extend, 30, 33.3),
        ];
        Table::of(KERNELS, "Kernels", &rows).without("device")
    }

    fn shares(table: &Table, key: &str) -> Vec<f64> {
        let at = table.column(key).unwrap();
        table.cells(at).filter_map(|cell| cell.number()).collect()
    }

    #[test]
    fn shares_of_several_stages_are_of_what_is_shown() {
        let (mut table, _) = of_stage(&kernels(), &Narrowed::default());
        share_of_shown(&mut table);
        assert_eq!(shares(&table, SHOWN_SHARE), [25.0, 50.0, 25.0]);
        assert!(shares(&table, "share_pct").iter().sum::<f64>() > 199.0, "exports have it still");
        let keys: Vec<&str> =
            table.shown_columns().into_iter().map(|at| &*table.columns[at].key).collect();
        assert!(keys.contains(&SHOWN_SHARE) && !keys.contains(&"share_pct"), "{keys:?}");

        let extend = Narrowed { stage: Some("extend".into()), device: None };
        let (mut table, _) = of_stage(&kernels(), &extend);
        share_of_shown(&mut table);
        assert_eq!(
            (table.column(SHOWN_SHARE), shares(&table, "share_pct")),
            (None, vec![66.7, 33.3])
        );
        assert!(table.columns[table.column("share_pct").unwrap()].summed);
    }

    #[test]
    fn a_narrowed_row_is_found_in_the_whole_table() {
        let rows = [Kernel("extend", "a"), Kernel("decode", "a"), Kernel("decode", "b")];
        let table = Table::of("kernels", "Kernels", &rows);
        let decode = Narrowed { stage: Some("decode".into()), device: None };
        let (_, source) = of_stage(&table, &decode);
        assert_eq!(source, [1, 2]);
    }

    #[test]
    fn a_table_without_stages_stands_as_it_is() {
        let table = Table::of("steps", "Steps", &[Kernel("x", "a"), Kernel("y", "b")]);
        let (mut plain, rows) = of_stage(&table, &Narrowed::default());
        assert_eq!((&plain, rows), (&table, vec![0, 1]));
        plain.columns[0].key = "phase".into();
        let decode = Narrowed { stage: Some("decode".into()), device: None };
        assert_eq!(of_stage(&plain, &decode).0, plain);
    }
}
