//! Caches recently resolved pairs of ids.

use trace::IdToken;

/// Remembers what a (pid, tid) or (device, stream) pair is: events change between a few of them, and this
/// is less work than asking a hash map each time.
#[derive(Debug)]
pub(super) struct Recent<T>([Option<(IdToken, IdToken, T)>; SLOTS]);

const SLOTS: usize = 16;

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self([const { None }; SLOTS])
    }
}

impl<T: Copy> Recent<T> {
    /// What the pair is; `find` says so when it is not remembered.
    #[inline]
    pub(super) fn get(
        &mut self,
        first: IdToken,
        second: IdToken,
        find: impl FnOnce(IdToken, IdToken) -> T,
    ) -> T {
        let slot = &mut self.0[(low_bits(first) ^ low_bits(second).rotate_left(1)) % SLOTS];
        match slot {
            Some((a, b, known)) if *a == first && *b == second => *known,
            _ => Self::find(slot, first, second, find),
        }
    }

    /// Kept out of the way: what is called for every event is quicker compiled without it.
    #[cold]
    #[inline(never)]
    fn find(
        slot: &mut Option<(IdToken, IdToken, T)>,
        first: IdToken,
        second: IdToken,
        find: impl FnOnce(IdToken, IdToken) -> T,
    ) -> T {
        let found = find(first, second);
        *slot = Some((first, second, found));
        found
    }
}

#[inline]
fn low_bits(token: IdToken) -> usize {
    match token {
        IdToken::Missing => 0,
        IdToken::Int(value) => value as usize,
        IdToken::Text(id) | IdToken::Number(id) => id.0 as usize,
    }
}
