//! When each of some things happens first.

/// The first time of each key, by key.
#[derive(Clone, Debug, Default)]
pub struct First<K>(Vec<(K, i64)>);

impl<K: Ord> First<K> {
    /// Of all times.
    #[must_use]
    pub fn of(mut times: Vec<(K, i64)>) -> Self {
        times.sort_unstable();
        times.dedup_by(|later, first| later.0 == first.0);
        Self(times)
    }

    /// The first time of a key.
    #[must_use]
    pub fn of_key(&self, key: &K) -> Option<i64> {
        let at = self.0.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        self.0.get(at).map(|(_, ns)| *ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_of_each_key() {
        let first = First::of(vec![("b", 5), ("a", 9), ("b", 2), ("a", 11)]);
        let of = |key| first.of_key(&key);
        assert_eq!((of("a"), of("b"), of("c")), (Some(9), Some(2), None));
    }
}
