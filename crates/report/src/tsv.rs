//! Tab-separated values, for a spreadsheet: raw numbers, keys as headers (they carry the units).

use crate::{Cell, View};

impl View<'_> {
    /// The shown rows and columns as tab-separated raw values under the column keys.
    #[must_use]
    pub fn tsv(&self) -> String {
        let mut out = String::new();
        line(&mut out, self.columns().map(|(_, column)| column.key.to_string()));
        for cells in self.cells() {
            line(&mut out, cells.iter().map(value));
        }
        out
    }
}

fn line(out: &mut String, values: impl Iterator<Item = String>) {
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push('\t');
        }
        out.push_str(&value);
    }
    out.push('\n');
}

/// A raw value in one field. Names come from a file that anybody may have made: a spreadsheet must not take
/// one for a formula.
fn value(cell: &Cell) -> String {
    match cell.text() {
        Some(text) => {
            let text = text.replace(['\t', '\n', '\r'], " ");
            if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
        }
        None => cell.raw(),
    }
}

#[cfg(test)]
mod tests {
    use crate::table::tests::fruits;

    #[test]
    fn raw_numbers_under_keys() {
        assert_eq!(
            fruits().view().tsv(),
            "name\teaten_ns\tshare_pct\tseeds\n\
             pear|x\t4500000\t90\t1204\n\
             fig<int, a::b<c>>(d)\t450000\t9\t\n\
             '=kiwi z\t50000\t0.05\t7\n"
        );
    }
}
