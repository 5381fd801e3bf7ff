//! A pile of open slices.

/// What is put on top and taken from there, a few million times a file: as [`Vec`] does it, but in the loop itself.
///
/// Code that runs once per file is built for size, and would call a function for each step.
#[derive(Debug)]
pub(crate) struct Pile<T> {
    /// From `n` on: what was taken away.
    items: Vec<T>,
    n: usize,
}

impl<T> Default for Pile<T> {
    fn default() -> Self {
        Self { items: Vec::new(), n: 0 }
    }
}

impl<T: Copy> Pile<T> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    #[inline(always)]
    pub(crate) fn last(&self) -> Option<T> {
        self.items.get(self.n.checked_sub(1)?).copied()
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.n = self.n.saturating_sub(1);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        match self.items.get_mut(self.n) {
            Some(place) => *place = item,
            None => self.grow(item),
        }
        self.n += 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, item: T) {
        self.items.push(item);
    }

    /// The lowest first.
    #[inline]
    pub(crate) fn items(&self) -> &[T] {
        self.items.get(..self.n).unwrap_or_default()
    }

    /// The item at a place from the bottom.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.items.get_mut(..self.n)?.get_mut(at)
    }

    /// Puts an item at a place from the bottom, below those that are there.
    #[inline(never)]
    pub(crate) fn insert(&mut self, at: usize, item: T) {
        self.items.truncate(self.n);
        self.items.insert(at, item);
        self.n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Pile;

    #[test]
    fn it_is_a_vec() {
        let (mut pile, mut vec) = (Pile::default(), Vec::new());
        let mut seed = 1_u32;
        for n in 0..2000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match seed >> 29 {
                0..=2 => {
                    pile.pop();
                    vec.pop();
                }
                3 => {
                    let at = (seed >> 8) as usize % (vec.len() + 1);
                    pile.insert(at, n);
                    vec.insert(at, n);
                }
                4 if !vec.is_empty() => {
                    let at = (seed >> 8) as usize % vec.len();
                    vec[at] = n;
                    *pile.get_mut(at).unwrap() = n;
                }
                _ => {
                    pile.push(n);
                    vec.push(n);
                }
            }
            assert_eq!(pile.items(), vec);
            assert_eq!((pile.len(), pile.last()), (vec.len(), vec.last().copied()));
            assert!(pile.get_mut(vec.len()).is_none());
        }
    }
}
