//! Sorted lists of pairs: which slice each flow event belongs to.

use trace::Row;

/// Sorts pairs: many that start with different numbers, in time that grows with their number alone.
#[inline(never)]
pub(crate) fn sort(pairs: &mut [(Row, Row)]) {
    if is_sorted(pairs) {
        return;
    }
    let most = pairs.iter().fold(0, |most, pair| most | pair.0);
    let mut from = pairs.to_vec();
    let mut shift = 0;
    while most >> shift != 0 {
        pass(&from, pairs, shift);
        from.copy_from_slice(pairs);
        shift += DIGIT;
        if shift >= Row::BITS {
            break;
        }
    }
    if !is_sorted(pairs) {
        trace::sort(pairs);
    }
}

/// Bits that are sorted by at a time.
const DIGIT: u32 = 11;

/// Puts pairs in the order of some bits, and else as they were.
#[inline(never)]
fn pass(from: &[(Row, Row)], to: &mut [(Row, Row)], shift: u32) {
    let mut places = [0_u32; 1 << DIGIT];
    let digit = |pair: &(Row, Row)| (pair.0 >> shift) as usize % (1 << DIGIT);
    for pair in from {
        places[digit(pair)] += 1;
    }
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for pair in from {
        let place = &mut places[digit(pair)];
        to[*place as usize] = *pair;
        *place += 1;
    }
}

#[inline(never)]
fn is_sorted(pairs: &[(Row, Row)]) -> bool {
    let mut last = (0, 0);
    for pair in pairs {
        if pair.0 < last.0 || (pair.0 == last.0 && pair.1 < last.1) {
            return false;
        }
        last = *pair;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::sort;

    #[test]
    fn pairs_are_sorted_as_the_library_does() {
        let mut seed = 1_u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed
        };
        for bits in [1, 8, 11, 12, 22, 23, 32] {
            let mut pairs: Vec<_> = (0..500).map(|_| (random() >> (32 - bits), random())).collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            sort(&mut pairs);
            assert_eq!(pairs, expected, "{bits} bits");
        }
    }
}
