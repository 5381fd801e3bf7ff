//! The order of a table: up to two keys, three states a key, stable.

/// Which way a key runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// The value of `aria-sort`.
    #[must_use]
    pub fn aria(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
        }
    }
}

/// One sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Key of the column.
    pub column: String,
    /// Which way.
    pub direction: Direction,
}

/// The order of a table; the first key decides, the second breaks its ties. Without a key the rows stand
/// as the report lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// At most two keys.
    pub keys: Vec<SortKey>,
}

impl Sort {
    /// One key.
    #[must_use]
    pub fn by(column: &str, direction: Direction) -> Self {
        Self { keys: vec![SortKey { column: column.to_owned(), direction }] }
    }

    /// Direction and rank (from 1) of a column, where the order uses it.
    #[must_use]
    pub fn of(&self, column: &str) -> Option<(Direction, usize)> {
        let at = self.keys.iter().position(|key| key.column == column)?;
        Some((self.keys[at].direction, at + 1))
    }

    /// The order after a click on a header: first `first`, then the other way, then none. With `second`
    /// (Shift) the click moves the second key and leaves the first.
    #[must_use]
    pub fn clicked(&self, column: &str, first: Direction, second: bool) -> Self {
        let next = match self.of(column) {
            None => Some(first),
            Some((direction, _)) if direction == first => Some(first.turned()),
            Some(_) => None,
        };
        let key = next.map(|direction| SortKey { column: column.to_owned(), direction });
        let leading = self.keys.first().filter(|leading| leading.column != column);
        let keys = match (second, leading) {
            (true, Some(leading)) => [Some(leading.clone()), key].into_iter().flatten().collect(),
            _ => key
                .into_iter()
                .chain(self.keys.iter().skip(1).filter(|_| second).cloned())
                .collect(),
        };
        Self { keys }
    }

    /// Reads `total_ns.desc,name.asc`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let keys = text.split(',').map(|part| {
            let (column, direction) = part.rsplit_once('.')?;
            let direction = match direction {
                "asc" => Direction::Ascending,
                "desc" => Direction::Descending,
                _ => return None,
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            (!column.is_empty() && column.bytes().all(plain))
                .then(|| SortKey { column: column.to_owned(), direction })
        });
        let keys: Vec<SortKey> = keys.take(2).collect::<Option<_>>()?;
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// What [`Sort::parse`] reads.
    #[must_use]
    pub fn to_text(&self) -> String {
        let part = |key: &SortKey| {
            let direction = if key.direction == Direction::Ascending { "asc" } else { "desc" };
            format!("{}.{direction}", key.column)
        };
        self.keys.iter().map(part).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Ascending, Descending};

    #[test]
    fn three_clicks_come_back_to_the_reports_order() {
        let one = Sort::default().clicked("total", Descending, false);
        assert_eq!(one.of("total"), Some((Descending, 1)));
        let two = one.clicked("total", Descending, false);
        assert_eq!(two.of("total"), Some((Ascending, 1)));
        assert_eq!(two.clicked("total", Descending, false), Sort::default());
    }

    #[test]
    fn shift_adds_a_second_key_and_a_plain_click_replaces_both() {
        let sort = Sort::by("total", Descending).clicked("name", Ascending, true);
        assert_eq!(sort.to_text(), "total.desc,name.asc");
        assert_eq!(sort.clicked("name", Ascending, true).to_text(), "total.desc,name.desc");
        assert_eq!(sort.clicked("calls", Descending, true).to_text(), "total.desc,calls.desc");
        assert_eq!(sort.clicked("calls", Descending, false).to_text(), "calls.desc");
        // Shift on the leading key turns it and keeps the second.
        assert_eq!(sort.clicked("total", Descending, true).to_text(), "total.asc,name.asc");
    }

    #[test]
    fn only_plain_column_names_are_read_from_an_address() {
        assert_eq!(Sort::parse("<b>.asc"), None);
        assert_eq!(Sort::parse("a.up"), None);
        assert_eq!(Sort::parse("a.asc,b.desc,c.asc").map(|sort| sort.keys.len()), Some(2));
    }
}
