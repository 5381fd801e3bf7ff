//! A set of events.

use trace::Row;

/// Some events of a trace, a bit each: asked of every event, and nearly always in vain.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSet(Vec<u64>);

impl RowSet {
    /// Those of a list.
    #[inline(never)]
    pub(crate) fn of(rows: &[Row]) -> Self {
        let mut set = Self::default();
        for row in rows {
            set.insert(*row);
        }
        set
    }

    /// Adds an event; whether it is new.
    #[inline(never)]
    pub(crate) fn insert(&mut self, row: Row) -> bool {
        let (word, bit) = (row as usize / 64, 1 << (row % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// All of them, in file order.
    #[inline(never)]
    pub(crate) fn to_vec(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (at, word) in self.0.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                rows.push(at as Row * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        rows
    }

    /// Whether an event is among them.
    #[inline(always)]
    pub(crate) fn contains(&self, row: Row) -> bool {
        self.0.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::RowSet;

    #[test]
    fn what_was_added_is_there() {
        let mut rows = RowSet::default();
        assert!(rows.insert(64) && rows.insert(3) && !rows.insert(64));
        assert!(rows.insert(63) && rows.insert(700));
        let found: Vec<u32> = (0..1000).filter(|row| rows.contains(*row)).collect();
        assert_eq!(found, [3, 63, 64, 700]);
        assert_eq!(rows.to_vec(), found);
    }
}
