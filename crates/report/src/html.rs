//! Reports as one HTML document: no script, nothing to fetch, one style sheet inside. It prints.

use std::collections::BTreeMap;

use crate::drawing::escaped;
use crate::units::Scale;
use crate::{Align, Cell, Drawing, Finding, Section, Table, TableColumn, Unit, View, short_names};

/// The style sheet of the document.
const STYLE: &str = include_str!("html.css");
/// The hatches that shapes refer to.
const HATCHES: &str = include_str!("hatches.svg");
/// Longest name in a table; the whole name is its title.
const NAME_CHARS: usize = 72;

/// Sections as one HTML document; `title` is its first heading.
#[must_use]
pub fn html_document(title: &str, sections: &[Section]) -> String {
    let title = escaped(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{HATCHES}<main>\n<h1>{title}</h1>\n"
    );
    out.push_str("<nav aria-label=\"Sections\">\n<ul>\n");
    let printed = || sections.iter().filter(|section| section.is_printed());
    for section in printed() {
        let (id, title) = (escaped(&section.id), escaped(&section.title));
        out.push_str(&format!("<li><a href=\"#{id}\">{title}</a></li>\n"));
    }
    out.push_str("</ul>\n</nav>\n");
    printed().for_each(|section| push_section(&mut out, section));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn push_section(out: &mut String, section: &Section) {
    let (id, title) = (escaped(&section.id), escaped(&section.title));
    out.push_str(&format!("<section id=\"{id}\">\n<h2>{title}</h2>\n"));
    for sentence in &section.intro {
        out.push_str(&format!("<p>{}</p>\n", escaped(sentence)));
    }
    section.drawings.iter().for_each(|drawing| push_drawing(out, drawing));
    section.printed_tables().for_each(|table| push_table(out, table));
    section.findings.iter().for_each(|finding| push_finding(out, finding));
    out.push_str("</section>\n");
}

fn push_drawing(out: &mut String, drawing: &Drawing) {
    let title = escaped(&drawing.title);
    out.push_str(&format!(
        "<figure>\n<figcaption>{title}</figcaption>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\">\n{}</div>\n",
        drawing.svg()
    ));
    if !drawing.legend.is_empty() {
        out.push_str("<ul class=\"legend\">\n");
        for entry in &drawing.legend {
            out.push_str(&format!(
                "<li>{}{}</li>\n",
                swatch(&entry.category),
                escaped(&entry.label)
            ));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</figure>\n");
}

fn swatch(category: &str) -> String {
    let paint = crate::palette::paint(category);
    let hatch = paint.hatch_fill().map_or_else(String::new, |fill| {
        format!("<rect width=\"12\" height=\"12\" fill=\"{fill}\"/>")
    });
    format!(
        "<svg class=\"swatch\" width=\"12\" height=\"12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" class=\"segment \
         {}\"/>{hatch}</svg>",
        paint.class()
    )
}

fn push_table(out: &mut String, table: &Table) {
    out.push_str(&format!("<h3>{}</h3>\n", escaped(&table.title)));
    let (mut view, rest) = table.printed_view();
    if view.rows.is_empty() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&table.when_empty)));
        return;
    }
    let shown = table.shown_columns().into_iter().map(|column| column as u32);
    view.columns = shown.filter(|column| view.columns.contains(column)).collect();
    let mut summed = table.view();
    summed.columns.clone_from(&view.columns);
    // A part that scrolls can be reached by keyboard.
    out.push_str(&format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n<thead>\n<tr>",
        escaped(&table.title)
    ));
    for (index, column) in view.columns() {
        let (header, help) = (escaped(&table.header(index)), escaped(&column.help));
        out.push_str(&format!("<th scope=\"col\"{} title=\"{help}\">{header}</th>", align(column)));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    push_rows(out, &view);
    out.push_str("</tbody>\n");
    push_totals(out, &view, &summed);
    out.push_str("</table>\n</div>\n");
    if rest > 0 {
        out.push_str(&format!("<p class=\"rest\">{}</p>\n", summed.left_out(rest)));
    }
}

fn push_rows(out: &mut String, view: &View<'_>) {
    let scales: Vec<Scale> = view.columns().map(|(index, _)| view.table().scale(index)).collect();
    let cells: Vec<Vec<Cell<'_>>> = view.cells().collect();
    let names = cells.iter().flat_map(|row| row.iter().zip(view.columns()));
    let names: Vec<&str> = names
        .filter_map(|(cell, (_, column))| match cell {
            Cell::Text(text) if column.unit == Unit::Name => Some(&**text),
            _ => None,
        })
        .collect();
    let names = short_names(&names, NAME_CHARS);
    for row in &cells {
        out.push_str("<tr>");
        for ((cell, (_, column)), scale) in row.iter().zip(view.columns()).zip(&scales) {
            push_cell(out, cell, column, *scale, &names);
        }
        out.push_str("</tr>\n");
    }
}

fn push_cell(
    out: &mut String,
    cell: &Cell<'_>,
    column: &TableColumn,
    scale: Scale,
    names: &BTreeMap<&str, String>,
) {
    let align = align(column);
    let exact = escaped(&cell.exact());
    match cell {
        Cell::Text(text) if column.unit == Unit::Name => {
            let short = names.get(&**text).map_or(&**text, String::as_str);
            let short = escaped(short);
            out.push_str(&format!("<td{align} title=\"{exact}\"><code>{short}</code></td>"));
        }
        Cell::Text(text) => out.push_str(&format!("<td{align}>{}</td>", escaped(text))),
        other => {
            let shown = escaped(&other.show_in(scale));
            out.push_str(&format!("<td{align} title=\"{exact}\">{shown}</td>"));
        }
    }
}

/// The totals cover the whole table, including rows that are not printed.
fn push_totals(out: &mut String, view: &View<'_>, summed: &View<'_>) {
    let Some(totals) = summed.totals() else { return };
    let label = view.columns().position(|(_, column)| column.align() == Align::Left);
    out.push_str("<tfoot>\n<tr>");
    for (place, (cell, (index, column))) in totals.iter().zip(view.columns()).enumerate() {
        let align = align(column);
        match cell {
            Some(cell) => {
                let (exact, shown) = (cell.exact(), cell.show_in(view.table().scale(index)));
                let (exact, shown) = (escaped(&exact), escaped(&shown));
                out.push_str(&format!("<td{align} title=\"{exact}\">{shown}</td>"));
            }
            None if label == Some(place) => out.push_str("<th scope=\"row\">Total</th>"),
            None => out.push_str("<td></td>"),
        }
    }
    out.push_str("</tr>\n</tfoot>\n");
}

fn align(column: &TableColumn) -> &'static str {
    match column.align() {
        Align::Left => "",
        Align::Right => " class=\"right\"",
    }
}

fn push_finding(out: &mut String, finding: &Finding) {
    let (title, lines) = finding.lines();
    out.push_str(&format!("<article>\n<h3>{}</h3>\n<dl>\n", escaped(title)));
    for (label, text) in lines {
        out.push_str(&format!("<dt>{label}</dt><dd>{}</dd>\n", escaped(&text)));
    }
    let confidence = finding.confidence.id();
    out.push_str(&format!("<dt>Confidence</dt><dd>{confidence}</dd>\n</dl>\n</article>\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confidence;
    use crate::table::tests::fruits;

    fn section() -> Section {
        let mut section = Section::new("meal", "The <meal>");
        section.intro.push("Mostly \"pear\" & fig.".to_owned());
        section.tables.push(fruits().preview(1));
        section.tables.push(Table::default().when_empty("No drinks."));
        let parts = [("gemm", "Pear", 100.0, "5 ns".to_owned())];
        section.drawings.push(Drawing::stacked("bar", "Eaten".to_owned(), parts.into_iter()));
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
        section
    }

    #[test]
    fn a_document_has_everything_and_no_markup_of_the_input() {
        let html = html_document("Report </title><script>", &[section()]);
        for part in [
            "<title>Report &lt;/title&gt;&lt;script&gt;</title>",
            "<h2>The &lt;meal&gt;</h2>",
            "<p>Mostly &quot;pear&quot; &amp; fig.</p>",
            "<th scope=\"col\" class=\"right\"",
            "<code>pear|x</code>",
            "<th scope=\"row\">Total</th>",
            "2 more rows, included in the totals.",
            "<p>No drinks.</p>",
            "<dt>What to do</dt><dd>Spit.</dd>",
            "role=\"img\" aria-label=\"Eaten: Pear 100.0%\"",
        ] {
            assert!(html.contains(part), "{part} is not in\n{html}");
        }
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("http://") && !html.contains("https://"), "nothing is fetched");
    }

    #[test]
    fn every_hue_has_a_colour() {
        for hue in crate::palette::Hue::ALL {
            let id = hue.id();
            assert!(STYLE.contains(&format!("--hue-{id}: ")), "{id}");
            assert!(STYLE.contains(&format!(".hue-{id} {{")), "{id}");
        }
    }
}
