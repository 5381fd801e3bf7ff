//! A pattern language just large enough for kernel names.
//!
//! Patterns are lower case and match lower-case text. A pattern matches anywhere unless anchored:
//!
//! | sign | meaning |
//! |---|---|
//! | `^`, `$` | start, end of the text |
//! | `<` | start of a word: the character before is no letter |
//! | `>` | end of a word: the character after is no letter |
//! | `x?` | `x` or nothing |
//! | `#` | one digit or more |
//! | `*` | anything |
//! | `\x` | `x` itself |
//!
//! Word boundaries are what keeps `mma` out of `gamma` and `mha` out of Tensile's `_HA_`; alternatives
//! are separate patterns. A pattern opens (after `^` or `<`) with two plain characters, by which
//! [`PatternSet`] finds the few patterns worth trying at a position: one pass over a name decides
//! among hundreds of patterns.

use std::ops::Range;

/// Whether `pattern` matches the text from `at` on, all of `pattern` consumed.
fn matches_rest(pattern: &[u8], text: &[u8], at: usize) -> bool {
    let Some((&sign, rest)) = pattern.split_first() else { return true };
    match sign {
        b'^' => at == 0 && matches_rest(rest, text, at),
        b'$' => at == text.len() && matches_rest(rest, text, at),
        b'<' => starts_word(text, at) && matches_rest(rest, text, at),
        b'>' => !text.get(at).is_some_and(u8::is_ascii_alphabetic) && matches_rest(rest, text, at),
        b'*' => (at..=text.len()).any(|next| matches_rest(rest, text, next)),
        b'#' => {
            let digits = text.get(at..).unwrap_or_default().iter();
            let run = digits.take_while(|b| b.is_ascii_digit()).count();
            (1..=run).rev().any(|n| matches_rest(rest, text, at + n))
        }
        _ => {
            let (literal, rest) = match (sign, rest.split_first()) {
                (b'\\', Some((&escaped, rest))) => (escaped, rest),
                _ => (sign, rest),
            };
            let here = text.get(at) == Some(&literal);
            match rest.split_first() {
                Some((b'?', rest)) => {
                    (here && matches_rest(rest, text, at + 1)) || matches_rest(rest, text, at)
                }
                _ => here && matches_rest(rest, text, at + 1),
            }
        }
    }
}

fn starts_word(text: &[u8], at: usize) -> bool {
    at == 0 || !text[at - 1].is_ascii_alphabetic()
}

/// The first occurrence of `word` in `text`. (`str::find` prepares itself for texts longer than a name.)
#[must_use]
#[inline(never)]
pub(crate) fn find(text: &str, word: &str) -> Option<usize> {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let first = *word.first()?;
    // (Comparing words is a call, which hardly any place needs.)
    let n_places = (text.len() + 1).saturating_sub(word.len());
    let places = text.get(..n_places)?.iter().enumerate();
    places
        .filter(|(_, byte)| **byte == first)
        .map(|(at, _)| at)
        .find(|at| text[*at..].starts_with(word))
}

/// Whether `pattern` matches somewhere in `text`.
#[must_use]
pub(crate) fn is_match(pattern: &str, text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |at: usize| matches_rest(pattern.as_bytes(), bytes, at);
    if pattern.starts_with('^') {
        return fits(0);
    }
    match opening(pattern) {
        Some([first, second]) => {
            let mut pairs = bytes.windows(2).enumerate();
            pairs.any(|(at, here)| here[0] == first && here[1] == second && fits(at))
        }
        None => (0..=bytes.len()).any(fits),
    }
}

/// The two plain characters a pattern opens with, after an anchor.
pub(crate) fn opening(pattern: &str) -> Option<[u8; 2]> {
    let bytes = pattern.as_bytes();
    let body = match bytes.first() {
        Some(b'^' | b'<') => &bytes[1..],
        _ => bytes,
    };
    let plain = |b: &u8| letter(*b).is_some();
    match body {
        [a, b, rest @ ..] if plain(a) && plain(b) && rest.first() != Some(&b'?') => Some([*a, *b]),
        _ => None,
    }
}

/// Characters that may open a pattern: letters, digits, `_`, `:`.
const ALPHABET: usize = 38;

fn letter(byte: u8) -> Option<usize> {
    let place = LETTERS[usize::from(byte)];
    (place < NO_LETTER).then_some(usize::from(place))
}

const NO_LETTER: u8 = u8::MAX;

/// The place of each byte in the alphabet.
static LETTERS: [u8; 256] = {
    let mut letters = [NO_LETTER; 256];
    let alphabet = b"abcdefghijklmnopqrstuvwxyz0123456789_:";
    assert!(alphabet.len() == ALPHABET);
    let mut at = 0;
    while at < ALPHABET {
        letters[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    letters
};

fn slot([a, b]: [u8; 2]) -> Option<usize> {
    Some(letter(a)? * ALPHABET + letter(b)?)
}

/// Many patterns, each with the number of its row; finds the lowest row that matches.
pub(crate) struct PatternSet {
    /// By opening, and in the order of the rows.
    patterns: Vec<(u16, &'static str)>,
    /// Where those of each opening begin, and where the last ones end.
    starts: Vec<u16>,
}

impl PatternSet {
    /// Collects patterns; the rows must come in ascending order. Patterns without an opening are left
    /// out (a test forbids them).
    pub(crate) fn new(patterns: impl Iterator<Item = (u16, &'static str)>) -> Self {
        let with_slot = |(row, pattern)| Some((opening(pattern).and_then(slot)?, (row, pattern)));
        Self::of(patterns.filter_map(with_slot).collect())
    }

    /// Puts patterns in the order of their openings.
    #[inline(never)]
    fn of(patterns: Vec<(usize, (u16, &'static str))>) -> Self {
        let mut starts = vec![0; ALPHABET * ALPHABET + 2];
        for (slot, _) in &patterns {
            starts[slot + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // Each start moves to its end, which is the start of the next.
        let mut sorted = vec![(0, ""); patterns.len()];
        for (slot, pattern) in patterns {
            let place = &mut starts[slot + 1];
            sorted[usize::from(*place)] = pattern;
            *place += 1;
        }
        Self { patterns: sorted, starts }
    }

    /// The lowest row below `limit` that has a pattern matching `text`.
    pub(crate) fn first(&self, text: &str, limit: u16) -> Option<u16> {
        let bytes = text.as_bytes();
        let mut best = limit;
        let mut before = None;
        for (end, byte) in bytes.iter().enumerate() {
            let here = letter(*byte);
            if let (Some(before), Some(here)) = (before, here) {
                let slot = before * ALPHABET + here;
                let (start, stop) = (self.starts[slot], self.starts[slot + 1]);
                if start < stop {
                    best = self.better(bytes, end - 1, usize::from(start)..usize::from(stop), best);
                }
            }
            before = here;
        }
        (best < limit).then_some(best)
    }

    /// The lowest row, up to the best so far, of which a pattern matches at a place.
    #[inline(never)]
    fn better(&self, text: &[u8], at: usize, patterns: Range<usize>, best: u16) -> u16 {
        let rows = self.patterns[patterns].iter().take_while(|(row, _)| *row < best);
        let mut fitting = rows.filter(|(_, pattern)| matches_rest(pattern.as_bytes(), text, at));
        fitting.next().map_or(best, |(row, _)| *row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        for (pattern, yes, no) in [
            ("mma", "gammabeta", "gama"),
            ("<mma", "x_mma", "gamma"),
            ("<mm>", "triton_mm_4", "xmma"),
            ("^memcpy", "memcpy htod", "my_memcpy"),
            ("reduce$", "split_reduce", "reduce_kernel"),
            ("all_?reduce", "allreduce", "all__reduce"),
            ("all_?reduce", "all_reduce", "al_reduce"),
            ("f#x#_fp", "f3x2_fp32", "fx2_fp32"),
            ("expert*gemm", "expert_fused_gemm", "gemm_expert"),
            ("copy\\<", "copy<float>", "copy_kernel"),
        ] {
            assert!(is_match(pattern, yes), "{pattern} should match {yes}");
            assert!(!is_match(pattern, no), "{pattern} should not match {no}");
        }
    }

    #[test]
    fn the_set_agrees_with_trying_every_pattern() {
        let patterns = [(0, "<bn_fw"), (1, "norm"), (1, "conv_"), (2, "^volta_"), (3, "no#")];
        let set = PatternSet::new(patterns.into_iter());
        for text in ["volta_norm", "cudnn::bn_fw_tr", "no12", "", "x", "subn_fw", "volta_conv_1"] {
            let slow = patterns.iter().find(|(_, p)| is_match(p, text)).map(|(row, _)| *row);
            assert_eq!(set.first(text, u16::MAX), slow, "{text}");
        }
    }

    #[test]
    fn openings() {
        assert_eq!(opening("^cijk_"), Some(*b"ci"));
        assert_eq!(opening("<mm>"), Some(*b"mm"));
        assert_eq!(opening("a?bc"), None);
        assert_eq!(opening("ab?c"), None);
        assert_eq!(opening("*ab"), None);
    }
}
