//! A table narrowed to a stage, with the columns that matter first.

use kinetoscope::report::{Cell, Table};

/// Key of the column that tells the stage of a row.
const STAGE: &str = "stage";
/// Key of the column that tells its device.
const DEVICE: &str = "device";

/// Which rows of a table are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Only this stage.
    pub stage: Option<String>,
    /// Only this device.
    pub device: Option<String>,
}

/// The rows that `narrowed` leaves, with the columns `lead` before the others, and which rows of `table` they are. A
/// column that says the same stage or device in every row is left out.
#[must_use]
pub fn of_stage(table: &Table, narrowed: &Narrowed, lead: &[&str]) -> (Table, Vec<u32>) {
    let by = [(STAGE, &narrowed.stage), (DEVICE, &narrowed.device)];
    let by: Vec<(usize, Option<&String>)> = by
        .into_iter()
        .filter_map(|(key, wanted)| Some((table.column(key)?, wanted.as_ref())))
        .collect();
    let is_in = |row: &[Cell]| {
        by.iter().all(|(at, wanted)| match (row.get(*at), wanted) {
            (Some(Cell::Text(of)), Some(wanted)) => of == *wanted,
            _ => true,
        })
    };
    let kept: Vec<(u32, &Vec<Cell>)> =
        (0..).zip(&table.rows).filter(|(_, row)| is_in(row)).collect();
    let one_value = |at: usize| kept.windows(2).all(|pair| pair[0].1.get(at) == pair[1].1.get(at));
    // What tells rows of the same name apart stands beside the name.
    let (first, others) = lead.split_at(lead.len().min(1));
    let keys = first.iter().chain(&[STAGE, DEVICE]).chain(others);
    let mut columns: Vec<usize> = Vec::with_capacity(table.columns.len());
    for at in keys.filter_map(|key| table.column(key)).chain(0..table.columns.len()) {
        if !columns.contains(&at) {
            columns.push(at);
        }
    }
    columns.retain(|column| !by.iter().any(|(at, _)| at == column && one_value(*at)));
    let nothing_here = kept.is_empty() && !table.rows.is_empty();
    let narrowed = Table {
        columns: columns.iter().map(|column| table.columns[*column].clone()).collect(),
        rows: kept
            .iter()
            .map(|(_, row)| columns.iter().filter_map(|column| row.get(*column).cloned()).collect())
            .collect(),
        when_empty: match nothing_here {
            true => "Nothing here.".into(),
            false => table.when_empty.clone(),
        },
        id: table.id.clone(),
        title: table.title.clone(),
        preview: table.preview,
    };
    (narrowed, kept.into_iter().map(|(row, _)| row).collect())
}

/// The text of a row's cell; `None` if there is no such column or no text in it.
#[must_use]
pub fn text_of<'a>(table: &'a Table, row: u32, key: &str) -> Option<&'a str> {
    match table.cell(row as usize, table.column(key)?)? {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

/// What a word of a cell means, where the column's help explains its words: `exact: by ids; none: not known.`
/// Sentences do as well as semicolons.
#[must_use]
pub fn meaning<'a>(help: &'a str, word: &str) -> Option<&'a str> {
    let parts = help.split("; ").flat_map(|part| part.split(". "));
    let meaning = parts.filter_map(|part| part.split_once(": ")).find(|(of, _)| *of == word)?.1;
    Some(meaning.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinetoscope::report::{Column, Row, Unit};
    use kinetoscope::{Confidence, KernelTableRow};

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

    fn shown(stage: Option<&str>) -> (Vec<String>, Vec<Vec<Cell>>) {
        let rows = [Kernel("extend", "a"), Kernel("decode", "a"), Kernel("decode", "b")];
        let narrowed = Narrowed { stage: stage.map(str::to_owned), device: None };
        let (table, _) = of_stage(&Table::of("kernels", "Kernels", &rows), &narrowed, &["name"]);
        (table.columns.iter().map(|column| column.key.to_string()).collect(), table.rows)
    }

    #[test]
    fn a_stage_leaves_its_rows_and_no_column_of_stages() {
        let (columns, rows) = shown(Some("decode"));
        assert_eq!(columns, ["name"]);
        assert_eq!(rows, [[Cell::from("a")], [Cell::from("b")]]);
        let (columns, rows) = shown(None);
        assert_eq!(columns, ["name", "stage"]);
        assert_eq!(rows[0], [Cell::from("a"), Cell::from("extend")]);
        assert!(shown(Some("moon")).1.is_empty());
    }

    #[test]
    fn what_tells_rows_apart_stands_beside_what_leads() {
        let rows = [KernelTableRow::default(), KernelTableRow::default()];
        let mut table = Table::of("kernels", "Kernels", &rows);
        let at = table.column("stage").unwrap();
        table.rows[1][at] = Cell::from("decode");
        let lead = ["kernel_name", "total_ns"];
        let (table, _) = of_stage(&table, &Narrowed::default(), &lead);
        let keys: Vec<&str> = table.columns.iter().take(3).map(|column| &*column.key).collect();
        assert_eq!(keys, ["kernel_name", "stage", "total_ns"]);
    }

    #[test]
    fn a_narrowed_row_is_found_in_the_whole_table() {
        let rows = [Kernel("extend", "a"), Kernel("decode", "a"), Kernel("decode", "b")];
        let table = Table::of("kernels", "Kernels", &rows);
        let decode = Narrowed { stage: Some("decode".into()), device: None };
        let (_, source) = of_stage(&table, &decode, &[]);
        assert_eq!(source, [1, 2]);
        assert_eq!(text_of(&table, source[1], "name"), Some("b"));
        assert_eq!(text_of(&table, source[1], "moon"), None);
    }

    #[test]
    fn a_table_without_stages_stands_as_it_is() {
        let table = Table::of("steps", "Steps", &[Kernel("x", "a"), Kernel("y", "b")]);
        let (mut plain, rows) = of_stage(&table, &Narrowed::default(), &[]);
        assert_eq!((&plain, rows), (&table, vec![0, 1]));
        plain.columns[0].key = "phase".into();
        let decode = Narrowed { stage: Some("decode".into()), device: None };
        assert_eq!(of_stage(&plain, &decode, &[]).0, plain);
    }

    #[test]
    fn every_word_for_how_sure_a_place_is_has_its_meaning() {
        let columns = KernelTableRow::COLUMNS;
        let help = columns.iter().find(|column| column.key == "mapping_confidence").unwrap().help;
        assert_eq!(meaning(help, Confidence::Exact.id()), Some("by the file's ids"));
        for word in ["forward", "replay", "position", "mapping", "enclosing", "launch", "none"] {
            assert!(meaning(help, word).is_some_and(|text| !text.is_empty()), "{word}: {help}");
        }
        assert_eq!(meaning(help, "by"), None);
        assert_eq!(meaning("done: it runs. partial: both.", "partial"), Some("both"));
    }
}
