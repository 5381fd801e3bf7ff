//! Reports and tables as Markdown.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::units::Scale;
use crate::{Align, Cell, Finding, Section, Table, TableColumn, Unit, View, short_names};

/// Longest name in a printed table.
const NAME_CHARS: usize = 96;

/// Sections as one Markdown document; `title` is its first heading.
#[must_use]
pub fn document(title: &str, sections: &[Section]) -> String {
    let mut out = format!("# {}\n", inline(title));
    for section in sections.iter().filter(|section| section.is_printed()) {
        out.push_str(&format!("\n## {}\n", inline(&section.title)));
        for sentence in &section.intro {
            out.push_str(&format!("\n{}\n", inline(sentence)));
        }
        for table in section.printed_tables() {
            out.push_str(&titled(table));
        }
        for finding in &section.findings {
            out.push_str(&claim(finding));
        }
    }
    out
}

// (Inlined into one, these are 12 kB that a browser compiles twice for the loops in them.)

/// A table with its title, cut to its preview.
#[inline(never)]
fn titled(table: &Table) -> String {
    let mut out = format!("\n### {}\n\n", inline(&table.title));
    let (view, rest) = table.printed_view();
    if view.rows.is_empty() {
        out.push_str(&inline(&table.when_empty));
        out.push('\n');
        return out;
    }
    // The totals cover the whole table, including rows that are not printed.
    let mut summed = table.view();
    summed.columns.clone_from(&view.columns);
    out.push_str(&rows_under_header(&view, &summed));
    if rest > 0 {
        out.push_str(&format!("\n{}\n", summed.left_out(rest)));
    }
    out
}

#[inline(never)]
fn claim(finding: &Finding) -> String {
    let (title, lines) = finding.lines();
    let (rule, confidence) = (inline(&finding.rule), finding.confidence.id());
    let mut out = format!("\n**{}** ({rule}, confidence: {confidence})\n\n", inline(title));
    for (label, text) in lines {
        out.push_str(&format!("- {label}: {}\n", inline(&text)));
    }
    out
}

impl View<'_> {
    /// The shown rows and columns as a Markdown table, formatted, with the totals of the shown rows.
    #[must_use]
    pub fn markdown(&self) -> String {
        rows_under_header(self, self)
    }
}

#[inline(never)]
fn rows_under_header(view: &View<'_>, summed: &View<'_>) -> String {
    let scales: Vec<Scale> = view.columns().map(|(index, _)| view.table().scale(index)).collect();
    // The names of all columns: those of one table must stay apart.
    let names: Vec<Cow<'_, str>> = view
        .cells()
        .flat_map(|cells| cells.into_iter().zip(view.columns()))
        .filter_map(|(cell, (_, column))| match cell {
            Cell::Text(text) if column.unit == Unit::Name => Some(text),
            _ => None,
        })
        .collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let names = short_names(&names, NAME_CHARS);
    let formatted =
        |cell: &Cell, column: &TableColumn, scale: Scale| formatted(cell, column, scale, &names);
    let mut out = String::new();
    line(&mut out, view.columns().map(|(index, _)| inline(&view.table().header(index))));
    line(&mut out, view.columns().map(|(_, column)| rule(column).to_owned()));
    for cells in view.cells() {
        let texts = cells.iter().zip(view.columns()).zip(&scales);
        line(&mut out, texts.map(|((cell, (_, column)), scale)| formatted(cell, column, *scale)));
    }
    if let Some(totals) = summed.totals() {
        let label = view.columns().position(|(_, column)| column.align() == Align::Left);
        let texts = totals.iter().zip(view.columns()).zip(&scales).enumerate();
        line(
            &mut out,
            texts.map(|(place, ((cell, (_, column)), scale))| match cell {
                Some(cell) => format!("**{}**", formatted(cell, column, *scale)),
                None if label == Some(place) => "**Total**".to_owned(),
                None => String::new(),
            }),
        );
    }
    out
}

#[inline(never)]
fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push('|');
    for cell in cells {
        out.push(' ');
        out.push_str(&cell);
        out.push_str(" |");
    }
    out.push('\n');
}

fn rule(column: &TableColumn) -> &'static str {
    match column.align() {
        Align::Left => "---",
        Align::Right => "---:",
    }
}

#[inline(never)]
fn formatted(
    cell: &Cell,
    column: &TableColumn,
    scale: Scale,
    names: &BTreeMap<&str, String>,
) -> String {
    match cell {
        Cell::Text(text) if column.unit == Unit::Name => {
            code(names.get(&**text).map_or(text, |short| short.as_str()))
        }
        Cell::Text(text) => inline(text),
        other => inline(&other.show_in(scale)),
    }
}

/// A name as code.
#[must_use]
pub fn code_span(name: &str) -> String {
    code(name)
}

/// Escapes text for any place in Markdown.
#[must_use]
pub fn plain_text(text: &str) -> String {
    inline(text)
}

/// Text as a code span in a table cell. A table splits at `|` even there, and a backtick ends the span
/// unless the fence is longer than any run of them.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    if text.trim().is_empty() {
        return String::new();
    }
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest > 0 { format!("{fence} {text} {fence}") } else { format!("{fence}{text}{fence}") }
}

/// Escapes text: no markup, no HTML, no line break.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(char);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confidence;
    use crate::table::tests::fruits;

    #[test]
    fn a_copy_is_a_table_with_units_and_totals() {
        assert_eq!(
            fruits().view().markdown(),
            "\
| Fruit | Eaten in (ms) | Share | Seeds |
| --- | ---: | ---: | ---: |
| `pear\\|x` | 4.50 | 90.0% | 1\u{2009}204 |
| `fig<int, b<c>>` | 0.450 | 9.0% | - |
| `=kiwi\tz` | 0.0500 | &lt;0.1% | 7 |
| **Total** | **5.00** | **99.0%** |  |
"
        );
    }

    #[test]
    fn a_document_prints_the_rows_that_are_meant_for_it() {
        let second = titled(&fruits().printing([false, true, false]));
        assert!(second.contains("fig") && !second.contains("pear"), "{second}");
        assert!(!second.contains("Seeds"), "no row that is printed has a value there: {second}");
        let mut section = Section::new("meal", "The meal");
        section.tables =
            vec![fruits().only_on_page(true), fruits().without_zero(&["seeds", "eaten_ns"])];
        let document = document("Report", &[section]);
        assert_eq!(document.matches("### Fruits").count(), 1, "{document}");
        assert!(document.contains("| Seeds |"), "not all are 0: {document}");
        let none = titled(&fruits().printing([false; 3]).when_empty("None is ripe."));
        assert!(none.contains("None is ripe.") && !none.contains("fig"), "{none}");
    }

    #[test]
    fn a_document_prints_a_preview_and_totals_of_all() {
        let mut section = Section::new("meal", "The meal");
        section.intro.push("Mostly *pear*.".to_owned());
        section.tables.push(fruits().preview(1));
        section.tables.push(Table::default().when_empty("No drinks."));
        section.findings.push(Finding {
            rule: "too-many-seeds".into(),
            observation: "1 204 seeds.".to_owned(),
            hypothesis: String::new(),
            first: String::new(),
            action: "Spit.".to_owned(),
            place: String::new(),
            gain: String::new(),
            validation: "Count again.".to_owned(),
            confidence: Confidence::High,
            evidence: vec!["fruits.seeds".to_owned()],
        });
        assert_eq!(
            document("Report", &[section]),
            "\
# Report

## The meal

Mostly \\*pear\\*.

### Fruits

| Fruit | Eaten in (ms) | Share | Seeds |
| --- | ---: | ---: | ---: |
| `pear\\|x` | 4.50 | 90.0% | 1\u{2009}204 |
| **Total** | **5.00** | **99.0%** |  |

2 more rows, included in the totals.

### \n
No drinks.

**1 204 seeds.** (too-many-seeds, confidence: high)

- What to do: Spit.
- How to check: Count again.
"
        );
    }

    #[test]
    fn a_hostile_name_stays_text() {
        assert_eq!(code("a`b``c"), "``` a`b``c ```");
        assert_eq!(inline("<img onerror=x> [a](b)\n# c"), "&lt;img onerror=x&gt; \\[a\\](b) \\# c");
    }
}
