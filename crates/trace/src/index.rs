//! Indexes that may be missing, in four bytes.

use std::num::NonZeroU32;

/// A row or an index below `u32::MAX`. An `Option` of it takes four bytes, one of a `u32` eight: columns over all events hold
/// millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SmallIndex(NonZeroU32);

impl SmallIndex {
    /// The index; `None` for `u32::MAX`, which is a number of no event of any trace.
    #[inline]
    #[must_use]
    pub fn new(index: u32) -> Option<Self> {
        NonZeroU32::new(index.wrapping_add(1)).map(Self)
    }

    /// The number.
    #[inline]
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get() - 1
    }

    /// The number, to index with.
    #[inline]
    #[must_use]
    pub fn at(self) -> usize {
        self.get() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_what_went_in_and_its_option_is_small() {
        for index in [0, 1, 77, u32::MAX - 1] {
            let small = SmallIndex::new(index).unwrap();
            assert_eq!((small.get(), small.at()), (index, index as usize));
        }
        assert_eq!(SmallIndex::new(u32::MAX), None);
        assert!(SmallIndex::new(3) < SmallIndex::new(4));
        assert_eq!(size_of::<Option<SmallIndex>>(), size_of::<u32>());
    }
}
