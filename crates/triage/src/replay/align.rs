//! Aligns two sequences of names: their longest common order.

/// Cells of the table that aligns two orders of names; beyond, only what they share at both ends is found.
const MAX_CELLS: usize = 16_000_000;
/// Cells of all such tables of one run.
pub(super) const ALL_CELLS: usize = 20 * MAX_CELLS;

/// The longest common subsequence of two orders of names, as pairs of places. What they have in common at both ends is
/// taken first: it is nearly everything. `cells` is what a table for the rest may cost, and is less afterwards.
#[inline(never)]
pub(super) fn align(a: &[u32], b: &[u32], cells: &mut usize) -> Vec<(usize, usize)> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[head..], &b[head..]);
    let tail = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (mid_a, mid_b) = (&rest_a[..rest_a.len() - tail], &rest_b[..rest_b.len() - tail]);
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    let size = (mid_a.len() + 1).saturating_mul(mid_b.len() + 1);
    if !mid_a.is_empty() && !mid_b.is_empty() && size <= (*cells).min(MAX_CELLS) {
        *cells -= size;
        pairs.extend(middle(mid_a, mid_b).into_iter().map(|(x, y)| (head + x, head + y)));
    }
    let ends = (0..tail).rev().map(|from_end| (a.len() - 1 - from_end, b.len() - 1 - from_end));
    pairs.extend(ends);
    pairs
}

#[inline(never)]
fn middle(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    // length[i][j]: of the longest common subsequence of a[i..] and b[j..]; within MAX_CELLS the shorter of the two
    // has at most 4,000 names.
    let mut length = vec![0_u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            length[i * width + j] = if a[i] == b[j] {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if length[(i + 1) * width + j] >= length[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_aligned_over_what_differs() {
        let pairs = |a: &str, b: &str| {
            let numbers = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
            align(&numbers(a), &numbers(b), &mut ALL_CELLS.clone())
        };
        assert_eq!(pairs("abc", "abc"), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(pairs("abxcd", "abcd"), [(0, 0), (1, 1), (3, 2), (4, 3)]);
        assert_eq!(pairs("abcbd", "aebd"), [(0, 0), (3, 2), (4, 3)]);
        assert_eq!(pairs("", "a"), []);
        assert_eq!(pairs("aa", "a"), [(0, 0)]);
        assert_eq!(pairs("xyz", "abc"), []);
        let mut cells = 11;
        assert_eq!(align(&[1, 2, 3], &[1, 9, 2, 8, 3], &mut cells), [(0, 0), (1, 2), (2, 4)]);
        assert_eq!(cells, 3, "a table of two by four");
        assert_eq!(align(&[1, 2, 3], &[1, 9, 2, 8, 3], &mut cells), [(0, 0), (2, 4)]);
    }
}
