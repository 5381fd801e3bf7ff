//! Sorting that is compiled once.
//!
//! The library's sort is compiled again for every type and every comparison, at some 8 KB each: copies of it were a fifth
//! of the worker's download. Rows of a table and other short lists are sorted here instead: only a comparison and a swap
//! are compiled for each type. Lists of millions use the library's sort.

use std::cmp::Ordering;

/// Sorts row numbers or indexes by `compare`. Stable.
#[inline(never)]
pub fn sort_numbers(numbers: &mut [u32], compare: &dyn Fn(u32, u32) -> Ordering) {
    // (What is in order already does not have a browser compile the sort.)
    if !are_sorted(numbers, compare) {
        numbers.sort_by(|a, b| compare(*a, *b));
    }
}

#[inline(never)]
fn are_sorted(numbers: &[u32], compare: &dyn Fn(u32, u32) -> Ordering) -> bool {
    numbers.is_sorted_by(|a, b| compare(*a, *b).is_le())
}

/// Sorts by `compare`. Stable.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut from: Vec<u32> = (0..items.len() as u32).collect();
    sort_numbers(&mut from, &|a, b| compare(&items[a as usize], &items[b as usize]));
    put(&mut from, &mut |a, b| items.swap(a, b));
}

/// Sorts by the result of `key`. Stable.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts. Stable.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Permutes the items in place: the item for place `i` is at `from[i]`.
#[inline(never)]
fn put(from: &mut [u32], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..from.len() {
        let mut at = start;
        loop {
            let next = std::mem::replace(&mut from[at], at as u32) as usize;
            if next == start {
                break;
            }
            swap(at, next);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_library_sorts() {
        let mut seed = 1_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        for n in 0..200 {
            let mut items: Vec<(u32, u32)> = (0..n).map(|_| (random(9), random(1000))).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by_key(&mut items, |item| item.0);
            assert_eq!(items, expected, "equal ones stay in order");
            expected.sort_by(|a, b| b.cmp(a));
            sort_by(&mut items, |a, b| b.cmp(a));
            assert_eq!(items, expected);
            expected.sort_unstable();
            sort(&mut items);
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn numbers_are_sorted_by_what_they_stand_for() {
        let names = ["c", "a", "b"];
        let mut numbers = [0, 1, 2];
        sort_numbers(&mut numbers, &|a, b| names[a as usize].cmp(names[b as usize]));
        assert_eq!(numbers, [1, 2, 0]);
    }
}
