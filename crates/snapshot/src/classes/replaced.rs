//! Which tensors an optimizer makes in place of older ones: `p.data = p - lr * update`, `state["m"] = beta * state["m"] + ...`.
//!
//! A block that an optimizer allocates and keeps takes the place of the block of the same size that it frees next.

use std::collections::HashMap;

use super::Class;

/// Blocks that are looked at: the newest ones.
const MOST_OPEN: usize = 64;

/// A block of the optimizer: the event that allocated it, and its size.
type New = (usize, i64);

#[derive(Default)]
pub(super) struct Replaced {
    /// Blocks in use that replace nothing so far, the oldest first.
    new: Vec<New>,
    /// Sizes of old blocks that were freed before the block that replaces them was allocated.
    freed: Vec<i64>,
    /// By the allocation: what it replaces, and the event that freed that.
    of: HashMap<usize, (Class, usize)>,
    last_alloc: usize,
}

impl Replaced {
    /// An allocation; of the optimizer or of something else.
    pub(super) fn allocated(&mut self, at: usize, size: i64, is_own: bool) {
        self.last_alloc = at;
        if is_own {
            if self.new.len() >= MOST_OPEN {
                self.new.remove(0);
            }
            self.new.push((at, size));
        }
    }

    /// What the block of an allocation replaces, and the event that freed that.
    pub(super) fn of(&self, born: Option<usize>) -> Option<(Class, usize)> {
        self.of.get(&born?).copied()
    }

    /// The block of an allocation is free again.
    pub(super) fn gone(&mut self, born: Option<usize>) {
        let place = born.and_then(|born| self.new.iter().rposition(|new| new.0 == born));
        place.map(|place| self.new.remove(place));
    }

    /// A block is free again; the optimizer freed an older one where it has a class.
    pub(super) fn old(&mut self, class: Option<Class>, size: i64, at: usize) {
        let Some(class) = class else { return };
        let own = |new: &&New| new.1 == size;
        let n = self.new.iter().filter(own).count();
        let before = self.freed.iter().filter(|freed| **freed == size).count();
        // (An old block may be freed before the next one is made.)
        if n <= before {
            if self.freed.len() >= MOST_OPEN {
                self.freed.remove(0);
            }
            self.freed.push(size);
            return;
        }
        let newest =
            self.new.iter().rev().find(own).filter(|new| new.0 == self.last_alloc).copied();
        if let Some((born, _)) = newest {
            // It was bound at once: what is left of the same size is no replacement.
            self.of.insert(born, (class, at));
            self.new.retain(|new| new.1 != size);
            self.freed.retain(|freed| *freed != size);
            return;
        }
        // Names that still hold old blocks are bound again in the order of the new ones.
        if let Some((born, _)) = self.new.iter().filter(own).nth(before).copied() {
            self.of.insert(born, (class, at));
            self.gone(Some(born));
        }
    }
}
