//! Tables of a type with rows that the tests of this crate share.

use super::*;
use crate::Column;

#[derive(Serialize)]
pub(crate) struct Fruit {
    pub(crate) name: &'static str,
    pub(crate) eaten_ns: i64,
    pub(crate) share_pct: f64,
    pub(crate) seeds: Option<u64>,
}

impl Row for Fruit {
    fn key(&self) -> Option<RowKey<'_>> {
        Some(RowKey::Event(u32::try_from(self.seeds?).ok()?)).filter(|_| self.seeds == Some(7))
    }

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Fruit",
            unit: Unit::Name,
            help: "What it is.",
            cell: |row| row.name.into(),
        },
        Column {
            key: "eaten_ns",
            title: "Eaten in",
            unit: Unit::Time,
            help: "How long it took.",
            cell: |row| Cell::Ns(row.eaten_ns),
        },
        Column {
            key: "share_pct",
            title: "Share",
            unit: Unit::Percent,
            help: "Part of the meal.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "seeds",
            title: "Seeds",
            unit: Unit::Count,
            help: "How many.",
            cell: |row| Cell::or_missing(row.seeds, Cell::Count, "not counted"),
        },
    ];
}

pub(crate) fn fruits() -> Table {
    let rows = [
        Fruit { name: "pear|x", eaten_ns: 4_500_000, share_pct: 90.0, seeds: Some(1_204) },
        Fruit { name: "fig<int, a::b<c>>(d)", eaten_ns: 450_000, share_pct: 9.0, seeds: None },
        Fruit { name: "=kiwi\tz", eaten_ns: 50_000, share_pct: 0.05, seeds: Some(7) },
    ];
    Table::of("fruits", "Fruits", &rows).summing(&["eaten_ns", "share_pct"])
}

#[test]
fn json_keys_are_column_keys() {
    testkit::assert_keys(
        &Fruit { name: "", eaten_ns: 0, share_pct: 0.0, seeds: None },
        Fruit::COLUMNS.iter().map(|column| column.key),
    );
}

#[test]
fn the_unit_stands_in_the_header() {
    let table = fruits();
    let headers: Vec<_> = (0..5).map(|column| table.header(column)).collect();
    assert_eq!(headers, ["Fruit", "Eaten in (ms)", "Share", "Seeds", ""]);
    assert_eq!(table.columns[1].align(), Align::Right);
}

#[test]
fn a_table_crosses_as_json() {
    let table = fruits();
    let text = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<Table>(&text).unwrap(), table);
}

#[test]
fn the_page_shows_at_most_eight_columns_the_named_ones_first() {
    let mut table = fruits();
    assert_eq!(table.shown_columns(), [0, 1, 2, 3], "without names the first ones");
    table.shown = vec!["seeds".into(), "gone".into(), "name".into()];
    assert_eq!(table.shown_columns(), [3, 0]);
    table = table.mapped(|column, cell| match &*column.key {
        "seeds" => Cell::missing("not counted"),
        _ => cell,
    });
    assert_eq!(table.shown_columns(), [0], "a column without a value gives way");
    let column = table.columns[1].clone();
    while table.columns.len() < 12 {
        table = table.with_shares(1, column.clone(), &[1.0; 3]);
    }
    table.shown.clear();
    assert_eq!(table.shown_columns().len(), MOST_SHOWN);
}

#[test]
fn some_columns_are_kept_in_the_order_asked() {
    let table = fruits().only(&["seeds", "nothing", "name"]);
    let keys: Vec<&str> = table.columns.iter().map(|column| &*column.key).collect();
    assert_eq!(keys, ["seeds", "name"]);
    assert!(table.row(0).eq([Cell::Count(1204), "pear|x".into()]));
}

#[test]
fn some_rows_share_the_cells_of_all() {
    let table = fruits();
    let some = table.keep(&[2, 0]).keep(&[1, 0]);
    assert_eq!(some.cells(0).map(|cell| cell.show()).collect::<Vec<_>>(), ["pear|x", "=kiwi\tz"]);
    assert!(Arc::ptr_eq(&some.stored.values[0], &table.stored.values[0]));
    assert_eq!((some.key(1), table.key(1), some.key(2)), (Some(RowKey::Event(7)), None, None));
    let column = some.columns[3].clone();
    let some = some.with_shares(1, column, &[0.0, 1.0]);
    assert!(some.row(1).take(2).eq(["=kiwi\tz".into(), Cell::Percent(1.0)]));
    let upper = some.mapped(|column, cell| match &*column.key {
        "name" => cell.show().to_uppercase().into(),
        _ => cell,
    });
    assert_eq!(upper.cell(1, 0), Some("=KIWI\tZ".into()));
    assert_eq!(upper.cell(1, 2), Some(Cell::Ns(50_000)));
    assert_eq!(upper.key(1), some.key(1));
    assert!(!format!("{upper:?}").contains("kiwi"), "what was changed is gone");
}
