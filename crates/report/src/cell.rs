//! One value of a table, raw: what is sorted, filtered and copied, and how it reads.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::units::{self, Scale};

/// One value of a table. It stays a number until somebody looks at it. Its text belongs to the row that it is made of,
/// or to the table that it is read from.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Text: a name, an id.
    Text(Cow<'a, str>),
    /// A length of time in nanoseconds.
    Ns(i64),
    /// A point on the file's own clock in nanoseconds; never rounded.
    Instant(i64),
    /// How many.
    Count(u64),
    /// A share in percent, 0 to 100.
    Percent(f64),
    /// Memory in bytes, shown in binary units.
    Bytes(u64),
    /// The size of a file in bytes, shown in decimal units.
    FileBytes(u64),
    /// Yes or no.
    Flag(bool),
    /// One of a fixed set of words: see [`Word`].
    Word {
        /// The value in JSON and in raw copies: `already_fused`.
        id: Cow<'a, str>,
        /// What a person reads: "already fused".
        label: Cow<'a, str>,
        /// What the word means, in one phrase; empty where it explains itself.
        meaning: Cow<'a, str>,
    },
    /// There is no value, and why.
    Missing {
        /// Why, for a person: "no launch of it is in the file".
        reason: Cow<'a, str>,
    },
}

/// One of a fixed set of values of a column: its id in files, its label for people and what it means. A column
/// with such values has a table of them, so that no renderer has to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The value in JSON and in raw copies: `already_fused`.
    pub id: &'static str,
    /// What a person reads: "already fused".
    pub label: &'static str,
    /// What the word means, in one phrase without a full stop; empty where it explains itself.
    pub meaning: &'static str,
}

impl Word {
    /// The cell of the word called `id` in `words`. An id that the table lacks is shown as it is.
    #[must_use]
    pub fn cell<'a>(words: &[Self], id: &'a str) -> Cell<'a> {
        words.iter().find(|word| word.id == id).map_or_else(|| id.into(), |word| (*word).into())
    }
}

impl From<Word> for Cell<'_> {
    fn from(Word { id, label, meaning }: Word) -> Self {
        Self::Word { id: id.into(), label: label.into(), meaning: meaning.into() }
    }
}

impl Cell<'_> {
    /// A cell that says why it has no value.
    #[must_use]
    pub fn missing(reason: &'static str) -> Self {
        Self::Missing { reason: Cow::Borrowed(reason) }
    }

    /// `value` in a cell made by `make`, or the reason why there is none.
    pub fn or_missing<T>(
        value: Option<T>,
        make: impl FnOnce(T) -> Self,
        reason: &'static str,
    ) -> Self {
        value.map_or_else(|| Self::missing(reason), make)
    }

    /// The cell with text of its own.
    #[must_use]
    pub fn into_owned(self) -> Cell<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Text(text) => Cell::Text(owned(text)),
            Self::Word { id, label, meaning } => {
                Cell::Word { id: owned(id), label: owned(label), meaning: owned(meaning) }
            }
            Self::Missing { reason } => Cell::Missing { reason: owned(reason) },
            Self::Ns(ns) => Cell::Ns(ns),
            Self::Instant(ns) => Cell::Instant(ns),
            Self::Count(count) => Cell::Count(count),
            Self::Percent(percent) => Cell::Percent(percent),
            Self::Bytes(bytes) => Cell::Bytes(bytes),
            Self::FileBytes(bytes) => Cell::FileBytes(bytes),
            Self::Flag(flag) => Cell::Flag(flag),
        }
    }

    /// The text of a cell of words; of a [`Word`] its id.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Word { id, .. } => Some(id),
            _ => None,
        }
    }

    /// What the value means, where its column explains its words.
    #[must_use]
    pub fn meaning(&self) -> Option<&str> {
        match self {
            Self::Word { meaning, .. } if !meaning.is_empty() => Some(meaning),
            _ => None,
        }
    }

    /// The value on its own, with its unit: `12.3 µs`, `1 204`, `43.0%`, `-`.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::Ns(ns) => units::time(*ns),
            Self::Instant(ns) => format!("{} µs", units::instant(*ns)),
            Self::Count(count) => units::count(*count),
            Self::Percent(percent) => units::percent(*percent),
            Self::Bytes(bytes) => units::bytes(*bytes),
            Self::FileBytes(bytes) => units::file_bytes(*bytes),
            Self::Flag(true) => "yes".to_owned(),
            Self::Flag(false) => "no".to_owned(),
            Self::Word { label, .. } => label.clone().into_owned(),
            Self::Missing { .. } => units::MISSING.to_owned(),
        }
    }

    /// The value in its column: the unit stands in the column's header ([`Scale::suffix`]), or beside the
    /// value where the column has none.
    #[must_use]
    pub fn show_in(&self, scale: Scale) -> String {
        match self {
            Self::Ns(_) | Self::Bytes(_) | Self::FileBytes(_) if scale == Scale::None => {
                self.show()
            }
            Self::Ns(ns) => scale.number(ns.unsigned_abs(), *ns < 0),
            Self::Bytes(bytes) | Self::FileBytes(bytes) => scale.number(*bytes, false),
            Self::Instant(ns) => units::instant(*ns),
            other => other.show(),
        }
    }

    /// The exact value in words, for a title or a tooltip; for a missing value the reason.
    #[must_use]
    pub fn exact(&self) -> String {
        match self {
            Self::Ns(ns) => format!("{} ns", units::signed(*ns)),
            Self::Instant(ns) => format!("{} ns", units::signed(*ns)),
            Self::Bytes(bytes) | Self::FileBytes(bytes) => {
                format!("{} bytes", units::count(*bytes))
            }
            Self::Percent(percent) if percent.is_finite() => {
                format!("{}%", units::shortest(*percent))
            }
            Self::Missing { reason } => reason.clone().into_owned(),
            Self::Word { label, meaning, .. } if !meaning.is_empty() => {
                format!("{label}: {meaning}")
            }
            other => other.show(),
        }
    }

    /// The raw value for a spreadsheet: digits without groups or unit, nothing when missing.
    #[must_use]
    pub fn raw(&self) -> String {
        match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::Ns(ns) | Self::Instant(ns) => ns.to_string(),
            Self::Count(n) | Self::Bytes(n) | Self::FileBytes(n) => n.to_string(),
            Self::Percent(percent) if percent.is_finite() => crate::units::shortest(*percent),
            Self::Flag(flag) => flag.to_string(),
            Self::Word { id, .. } => id.clone().into_owned(),
            Self::Percent(_) | Self::Missing { .. } => String::new(),
        }
    }

    /// The value as a number, for a bar or a filter such as `>100us` (ns, bytes, percent, how many).
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Ns(ns) | Self::Instant(ns) => Some(*ns as f64),
            Self::Count(n) | Self::Bytes(n) | Self::FileBytes(n) => Some(*n as f64),
            Self::Percent(percent) if percent.is_finite() => Some(*percent),
            Self::Flag(flag) => Some(f64::from(u8::from(*flag))),
            Self::Percent(_) | Self::Text(_) | Self::Word { .. } | Self::Missing { .. } => None,
        }
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }

    /// The order of a column from small to large, by raw value. A missing value is neither small nor
    /// large: [`crate::View::sort`] puts it last either way.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Ns(a), Self::Ns(b)) | (Self::Instant(a), Self::Instant(b)) => a.cmp(b),
            (Self::Count(a), Self::Count(b))
            | (Self::Bytes(a), Self::Bytes(b))
            | (Self::FileBytes(a), Self::FileBytes(b)) => a.cmp(b),
            (Self::Percent(a), Self::Percent(b)) => a.total_cmp(b),
            (Self::Flag(a), Self::Flag(b)) => a.cmp(b),
            (Self::Word { label: a, .. }, Self::Word { label: b, .. }) => a.cmp(b),
            // A column holds one kind of cell; mixed kinds only need some fixed order.
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    /// The sum of two cells of one kind, for a totals row; `None` where a sum means nothing.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Ns(a), Self::Ns(b)) => Some(Self::Ns(a.saturating_add(*b))),
            (Self::Count(a), Self::Count(b)) => Some(Self::Count(a.saturating_add(*b))),
            (Self::Percent(a), Self::Percent(b)) => Some(Self::Percent(a + b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(Self::Bytes(a.saturating_add(*b))),
            (Self::FileBytes(a), Self::FileBytes(b)) => Some(Self::FileBytes(a.saturating_add(*b))),
            (value, Self::Missing { .. }) => Some(value.clone()),
            (Self::Missing { .. }, value) => Some(value.clone()),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Text(_) => 0,
            Self::Ns(_) => 1,
            Self::Instant(_) => 2,
            Self::Count(_) => 3,
            Self::Percent(_) => 4,
            Self::Bytes(_) => 5,
            Self::FileBytes(_) => 6,
            Self::Flag(_) => 7,
            Self::Word { .. } => 8,
            Self::Missing { .. } => 9,
        }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_reads_short_exact_and_raw() {
        let table = [
            (Cell::Ns(12_345), "12.3 µs", "12\u{2009}345 ns", "12345"),
            (
                Cell::Instant(5_000_000_000_123_456),
                "5\u{2009}000\u{2009}000\u{2009}000\u{2009}123.456 µs",
                "5\u{2009}000\u{2009}000\u{2009}000\u{2009}123\u{2009}456 ns",
                "5000000000123456",
            ),
            (Cell::Count(1_204), "1\u{2009}204", "1\u{2009}204", "1204"),
            (Cell::Percent(43.04), "43.0%", "43.04%", "43.04"),
            (Cell::Percent(f64::NAN), "-", "-", ""),
            (
                Cell::Bytes(1 << 30),
                "1.00 GiB",
                "1\u{2009}073\u{2009}741\u{2009}824 bytes",
                "1073741824",
            ),
            (Cell::FileBytes(4_029_954), "4.03 MB", "4\u{2009}029\u{2009}954 bytes", "4029954"),
            (Cell::Flag(true), "yes", "yes", "true"),
            (Cell::missing("no launch is in the file"), "-", "no launch is in the file", ""),
        ];
        for (cell, show, exact, raw) in table {
            assert_eq!(
                (cell.show(), cell.exact(), cell.raw()),
                (show.into(), exact.into(), raw.into())
            );
        }
    }

    #[test]
    fn a_word_shows_its_label_and_keeps_its_id() {
        const WORDS: &[Word] = &[
            Word { id: "already_fused", label: "already fused", meaning: "the fused kernel runs" },
            Word { id: "partial", label: "partly fused", meaning: "" },
        ];
        let cell = Word::cell(WORDS, "already_fused");
        assert_eq!((cell.show(), cell.raw()), ("already fused".into(), "already_fused".into()));
        assert_eq!(cell.exact(), "already fused: the fused kernel runs");
        assert_eq!(
            (cell.text(), cell.meaning()),
            (Some("already_fused"), Some("the fused kernel runs"))
        );
        let cell = Word::cell(WORDS, "partial");
        assert_eq!((cell.exact(), cell.meaning()), ("partly fused".into(), None));
        assert_eq!(Word::cell(WORDS, "unheard_of"), Cell::from("unheard_of"));
    }

    #[test]
    fn a_sum_needs_one_kind() {
        assert_eq!(Cell::Ns(1).plus(&Cell::Ns(2)), Some(Cell::Ns(3)));
        assert_eq!(Cell::Ns(1).plus(&Cell::missing("x")), Some(Cell::Ns(1)));
        assert_eq!(Cell::Ns(1).plus(&Cell::Count(2)), None);
        assert_eq!(Cell::from("a").plus(&Cell::from("b")), None);
    }
}
