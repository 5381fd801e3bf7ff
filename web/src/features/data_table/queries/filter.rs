//! The filter of a table: words, `column:text`, and comparisons such as `>100us` or `calls>=10`.

use kinetoscope::report::{Cell, Table, Unit, units};

/// A filter, read from what a person typed. Every term must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    /// Some text cell holds this, in any letter case.
    Anywhere(String),
    /// The cell of this column holds this.
    Within { column: usize, text: String },
    /// The number in this column compares so.
    Compared { column: usize, comparison: Comparison, bound: f64 },
    /// The opposite of a term: `-memcpy`.
    Not(Box<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    AtLeast,
    Greater,
}

/// Longest spelling first, so that `>=` is not read as `>`.
const COMPARISONS: &[(&str, Comparison)] = &[
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

/// Units of a bound, in ns or bytes.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("b", 1.0),
    ("%", 1.0),
    ("k", 1e3),
    ("", 1.0),
];

impl Filter {
    /// Reads `text` for `table`; bare comparisons are about column `weight`. What cannot be read as a
    /// comparison or a column is taken as plain words, so that typing never gives an error.
    #[must_use]
    pub fn parse(text: &str, table: &Table, weight: Option<usize>) -> Self {
        Self { terms: words(text).into_iter().map(|word| term(&word, table, weight)).collect() }
    }

    /// Whether every row passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a row passes.
    #[must_use]
    pub fn keeps(&self, table: &Table, row: usize) -> bool {
        self.terms.iter().all(|term| holds(term, table, row))
    }
}

fn holds(term: &Term, table: &Table, row: usize) -> bool {
    match term {
        Term::Anywhere(text) => table.row(row).any(|cell| match cell {
            Cell::Text(value) => contains(&value, text),
            // By its label or by its id.
            Cell::Word { id, label, .. } => contains(&label, text) || contains(&id, text),
            _ => false,
        }),
        Term::Within { column, text } => table.cell(row, *column).is_some_and(|cell| match cell {
            Cell::Text(value) => contains(&value, text),
            Cell::Word { id, label, .. } => contains(&label, text) || contains(&id, text),
            // `stream:7` means 7, not 17.
            other => other.raw() == *text || other.show().eq_ignore_ascii_case(text),
        }),
        Term::Compared { column, comparison, bound } => {
            let Some(value) = table.cell(row, *column).and_then(|cell| cell.number()) else {
                return false;
            };
            match comparison {
                Comparison::Less => value < *bound,
                Comparison::AtMost => value <= *bound,
                Comparison::Equal => (value - bound).abs() < 0.5,
                Comparison::AtLeast => value >= *bound,
                Comparison::Greater => value > *bound,
            }
        }
        Term::Not(term) => !holds(term, table, row),
    }
}

/// Case-insensitive for ASCII, which names of kernels are; `needle` is lower case.
///
/// (Here and elsewhere in the app: the tables of all other letters would be 6 kB of the download, compressed.)
fn contains(value: &str, needle: &str) -> bool {
    if needle.is_empty() {
        return true;
    }
    let needle = needle.as_bytes();
    value.as_bytes().windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
}

/// Splits at white space outside double quotes.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for char in text.chars() {
        match char {
            '"' => quoted = !quoted,
            char if char.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            char => word.push(char),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn term(word: &str, table: &Table, weight: Option<usize>) -> Term {
    if let Some(rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
        return Term::Not(Box::new(term(rest, table, weight)));
    }
    if let Some(term) = comparison(word, table, weight) {
        return term;
    }
    if let Some((name, text)) = word.split_once(':')
        && !text.starts_with(':')
        && let Some(column) = column_named(name, table)
    {
        return Term::Within { column, text: text.to_ascii_lowercase() };
    }
    Term::Anywhere(word.to_ascii_lowercase())
}

fn comparison(word: &str, table: &Table, weight: Option<usize>) -> Option<Term> {
    let at = word.find(['<', '>', '='])?;
    let (spelling, comparison) =
        COMPARISONS.iter().find(|(text, _)| word[at..].starts_with(text))?;
    let column = if at == 0 { weight? } else { column_named(&word[..at], table)? };
    let bound = word[at + spelling.len()..].to_ascii_lowercase();
    let digits = bound.find(|char: char| !char.is_ascii_digit() && char != '.');
    let (number, unit) = bound.split_at(digits.unwrap_or(bound.len()));
    let number = units::decimal(number)?;
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(Term::Compared { column, comparison: *comparison, bound: number * size })
        .filter(|_| table.columns.get(column).is_some_and(|column| column.unit != Unit::Text))
}

/// The column whose key or title starts with `name`; an exact key wins. `cat` means `category`.
fn column_named(name: &str, table: &Table) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    if name.is_empty() {
        return None;
    }
    let keys = || table.columns.iter().map(|column| column.key.to_ascii_lowercase());
    keys()
        .position(|key| key == name)
        .or_else(|| keys().position(|key| key.starts_with(&name)))
        .or_else(|| {
            table
                .columns
                .iter()
                .position(|column| column.title.to_ascii_lowercase().starts_with(&name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinetoscope::report::{Column, Row};

    struct Kernel(&'static str, &'static str, i64, u64);

    impl Row for Kernel {
        const COLUMNS: &'static [Column<Self>] = &[
            column("name", Unit::Name, |row| row.0.into()),
            column("category", Unit::Category, |row| row.1.into()),
            column("total_ns", Unit::Time, |row| Cell::Ns(row.2)),
            column("stream", Unit::Count, |row| Cell::Count(row.3)),
        ];
    }

    const fn column(
        key: &'static str,
        unit: Unit,
        cell: fn(&Kernel) -> Cell<'_>,
    ) -> Column<Kernel> {
        Column { key, title: key, unit, help: "", cell }
    }

    fn kept(text: &str) -> String {
        let rows = [
            Kernel("Cijk_GEMM", "gemm", 250_000, 7),
            Kernel("flash::fwd kernel", "attention", 100_000, 17),
            Kernel("Memcpy HtoD", "memcpy", 900, 7),
        ];
        let table = Table::of("kernels", "Kernels", &rows);
        let filter = Filter::parse(text, &table, table.column("total_ns"));
        let kept = (0..table.n_rows()).filter(|row| filter.keeps(&table, *row));
        kept.map(|row| row.to_string()).collect()
    }

    #[test]
    fn every_way_to_ask() {
        for (text, rows) in [
            ("", "012"),
            ("gemm", "0"),
            ("MEM", "2"),
            ("\"fwd kernel\"", "1"),
            ("kern fwd", "1"),
            ("cat:mem", "2"),
            ("stream:7", "02"),
            (">100us", "0"),
            (">=100us", "01"),
            (">=0.1ms", "01"),
            ("<1000", "2"),
            ("total<1us", "2"),
            ("stream=17", "1"),
            ("-cat:gemm", "12"),
            ("-gemm >1us", "1"),
            // A C++ name is no column.
            ("flash::fwd", "1"),
            // No unit of this name: plain words, which nothing holds.
            (">5parsec", ""),
        ] {
            assert_eq!(kept(text), rows, "{text}");
        }
    }
}
