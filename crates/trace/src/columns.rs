//! A growable column that never moves its values.

/// Rows per segment. 8 Ki rows waste less than 0.4 MB in the last segments of all columns together, and
/// a segment of the widest column is one 64 KiB page of wasm memory.
const ROWS: usize = 1 << 13;

/// A column of `T` in fixed segments.
///
/// A `Vec` doubles when it is full and temporarily needs three times its size; wasm memory never
/// shrinks, so the tab would keep that memory. Segments grow by their own size.
/// (The first segment grows as a `Vec` does, because many traces are small.)
#[derive(Clone, Debug)]
pub struct Segmented<T> {
    segments: Vec<Vec<T>>,
}

impl<T> Default for Segmented<T> {
    fn default() -> Self {
        Self { segments: Vec::new() }
    }
}

impl<T: Copy> Segmented<T> {
    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) {
        match self.segments.last_mut() {
            Some(last) if last.len() < last.capacity().min(ROWS) => last.push(value),
            _ => self.push_where_none_fits(value),
        }
    }

    // A separate function, because one function contains a dozen `push` calls.
    #[cold]
    #[inline(never)]
    fn push_where_none_fits(&mut self, value: T) {
        match self.segments.last_mut() {
            Some(last) if last.len() < ROWS => last.push(value),
            last => {
                let first = last.is_none();
                let mut segment = Vec::with_capacity(if first { 64 } else { ROWS });
                segment.push(value);
                self.segments.push(segment);
            }
        }
    }

    /// The value at `index`, or `None` past the end.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<T> {
        self.segments.get(index / ROWS)?.get(index % ROWS).copied()
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// When `index` is past the end: a row number of this trace never is.
    // Always inlined, also in crates built for size: in V8's baseline code a call costs more than the access.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, index: usize) -> T {
        self.segments[index / ROWS][index % ROWS]
    }

    /// Replaces the value at `index`; past the end nothing happens.
    pub fn set(&mut self, index: usize, value: T) {
        if let Some(slot) =
            self.segments.get_mut(index / ROWS).and_then(|it| it.get_mut(index % ROWS))
        {
            *slot = value;
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.segments.split_last() {
            Some((last, full)) => full.len() * ROWS + last.len(),
            None => 0,
        }
    }

    /// Whether the column is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.segments.iter().flat_map(|segment| segment.iter().copied())
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.capacity() * size_of::<T>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_across_segments() {
        let mut column = Segmented::default();
        for value in 0..(ROWS as u32 * 2 + 5) {
            column.push(value);
        }
        assert_eq!(column.len(), ROWS * 2 + 5);
        assert_eq!(column.at(ROWS), ROWS as u32);
        assert_eq!(column.get(ROWS * 2 + 5), None);
        assert!(column.iter().eq(0..(ROWS as u32 * 2 + 5)));
    }
}
