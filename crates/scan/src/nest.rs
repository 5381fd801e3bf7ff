//! The stack of open brackets, one bit each.

/// A stack of bracket kinds. Real nesting fits in one word; hostile nesting spills into a `Vec`, so a level of depth
/// costs an eighth of a byte and no call stack.
#[derive(Debug, Default)]
pub(crate) struct Nest {
    bits: u64,
    depth: usize,
    spilled: Vec<u64>,
}

impl Nest {
    /// Opens an object or an array.
    #[inline]
    pub(crate) fn push(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.spilled.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    /// Closes the innermost one; returns whether any bracket is still open.
    #[inline]
    pub(crate) fn pop(&mut self) -> bool {
        self.bits >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.bits = self.spilled.pop().unwrap_or_default();
        }
        self.depth != 0
    }

    /// Whether the innermost one is an object.
    #[inline]
    pub(crate) fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_back_in_reverse_at_any_depth() {
        let kind = |level: usize| level.is_multiple_of(3) || level.is_multiple_of(7);
        let mut nest = Nest::default();
        for level in 0..1000 {
            nest.push(kind(level));
        }
        for level in (0..1000).rev() {
            assert_eq!(nest.in_object(), kind(level), "level {level}");
            assert_eq!(nest.pop(), level != 0);
        }
    }
}
