//! A growable column that never moves its values.

/// Rows per segment. 8 Ki rows waste less than 0.4 MB in the last segments of all columns together, and
/// a segment of the widest column is one 64 KiB page of wasm memory.
const ROWS: usize = 1 << 13;

/// A column of `T` in fixed segments.
///
/// A `Vec` doubles when it is full and temporarily needs three times its size; wasm memory never
/// shrinks, so the tab would keep that memory. Segments grow by their own size.
///
/// The caller counts the rows, because columns of one table have equally many. A segment is an array whose length is a
/// constant, so that a place in it is not compared with a length: neither where a row is stored nor where it is read.
#[derive(Clone, Debug)]
pub struct Segmented<T> {
    segments: Vec<Box<[T; ROWS]>>,
}

impl<T> Default for Segmented<T> {
    fn default() -> Self {
        Self { segments: Vec::new() }
    }
}

impl<T: Copy + Default> Segmented<T> {
    /// Stores the value at `index`, where values at all lower indexes are stored.
    #[inline]
    pub fn put(&mut self, index: usize, value: T) {
        match self.segments.get_mut(index / ROWS) {
            Some(segment) => segment[index % ROWS] = value,
            None => self.put_where_none_fits(index, value),
        }
    }

    // A separate function, because one function contains a dozen `put` calls.
    #[cold]
    #[inline(never)]
    fn put_where_none_fits(&mut self, index: usize, value: T) {
        let segment = vec![T::default(); ROWS].into_boxed_slice();
        self.segments.extend(<Box<[T; ROWS]>>::try_from(segment).ok());
        self.set(index, value);
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// When `index` is past the last segment: a row number of this trace never is.
    // Always inlined, also in crates built for size: in V8's baseline code a call costs more than the access.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, index: usize) -> T {
        self.segments[index / ROWS][index % ROWS]
    }

    /// Replaces the value at `index`; past the last segment nothing happens.
    pub fn set(&mut self, index: usize, value: T) {
        if let Some(segment) = self.segments.get_mut(index / ROWS) {
            segment[index % ROWS] = value;
        }
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.segments.len() * size_of::<[T; ROWS]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_across_segments() {
        let mut column = Segmented::default();
        for value in 0..(ROWS as u32 * 2 + 5) {
            column.put(value as usize, value);
        }
        assert_eq!(column.at(ROWS), ROWS as u32);
        column.set(ROWS * 3, 7);
        assert!((0..ROWS as u32 * 2 + 5).all(|value| column.at(value as usize) == value));
        assert_eq!(column.heap_bytes(), ROWS * 3 * size_of::<u32>());
    }
}
