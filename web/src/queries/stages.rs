//! A table narrowed to a stage, with the columns that matter first.

use kinetoscope::report::{Cell, Table};

/// Key of the column that tells the stage of a row.
const STAGE: &str = "stage";

/// The rows of `stage`, of all stages if there is none, with the columns `lead` before the others. A column
/// of stages that says the same in every row is left out.
#[must_use]
pub fn of_stage(table: &Table, stage: Option<&str>, lead: &[&str]) -> Table {
    let at = table.column(STAGE);
    let is_in = |row: &[Cell]| match (at.and_then(|at| row.get(at)), stage) {
        (Some(Cell::Text(of)), Some(stage)) => of == stage,
        _ => true,
    };
    let rows: Vec<&Vec<Cell>> = table.rows.iter().filter(|row| is_in(row)).collect();
    let cell = |row: &[Cell]| at.and_then(|at| row.get(at)).cloned();
    let one_stage = rows.windows(2).all(|pair| cell(pair[0]) == cell(pair[1]));
    let mut columns: Vec<usize> = lead.iter().filter_map(|key| table.column(key)).collect();
    columns.extend((0..table.columns.len()).filter(|at| !lead.contains(&&*table.columns[*at].key)));
    columns.retain(|column| !(one_stage && at == Some(*column)));
    let nothing_here = rows.is_empty() && !table.rows.is_empty();
    Table {
        columns: columns.iter().map(|column| table.columns[*column].clone()).collect(),
        rows: rows
            .into_iter()
            .map(|row| columns.iter().filter_map(|column| row.get(*column).cloned()).collect())
            .collect(),
        when_empty: match nothing_here {
            true => "Nothing in this stage.".into(),
            false => table.when_empty.clone(),
        },
        id: table.id.clone(),
        title: table.title.clone(),
        preview: table.preview,
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
        let table = of_stage(&Table::of("kernels", "Kernels", &rows), stage, &["name"]);
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
    fn a_table_without_stages_stands_as_it_is() {
        let table = Table::of("steps", "Steps", &[Kernel("x", "a"), Kernel("y", "b")]);
        let mut plain = of_stage(&table, None, &[]);
        assert_eq!(plain, table);
        plain.columns[0].key = "phase".into();
        assert_eq!(of_stage(&plain, Some("decode"), &[]), plain);
    }

    #[test]
    fn every_word_for_how_sure_a_place_is_has_its_meaning() {
        let columns = KernelTableRow::COLUMNS;
        let help = columns.iter().find(|column| column.key == "mapping_confidence").unwrap().help;
        assert_eq!(meaning(help, Confidence::Exact.id()), Some("by the file's ids"));
        for word in ["replay", "position", "mapping", "enclosing", "launch", "none"] {
            assert!(meaning(help, word).is_some_and(|text| !text.is_empty()), "{word}: {help}");
        }
        assert_eq!(meaning(help, "by"), None);
        assert_eq!(meaning("done: it runs. partial: both.", "partial"), Some("both"));
    }
}
