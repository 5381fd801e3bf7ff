//! Passes of a serving engine whose annotation has sums over the lengths of its sequences.
//!
//! vLLM and SGLang on ROCm name a pass `execute_<tokens>_context_<n>(sq..sk..sqsq..sqsk..)_generation_<n>(sq..sk..sqsq..sqsk..)`:
//! sums over the sequences that are read (context) and those that get their next token (generation), of queries, keys, queries
//! squared, and queries times keys. (Seen in traces of MI300X. TraceLens, `annotation_utils.py`, reads the same sums.) Other
//! spellings have fewer sums and say nothing about pairs.

use crate::slices::{HostSlice, Slices, ThreadId};

/// Sums over some sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    queries: i128,
    squares: i128,
    pairs: i128,
}

/// A pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    thread: ThreadId,
    start_ns: i64,
    end_ns: i64,
    context: Sums,
    generation: Sums,
}

impl Pass {
    /// (Query, key) pairs of a layer that attends with so many queries: of all sequences of the pass, or of one of its two parts.
    /// Under a causal mask, the last query sees the last key. `None` where the queries are not those of the pass.
    pub(super) fn pairs(&self, queries: i128, causal: bool) -> Option<i128> {
        let (context, generation) = (self.context, self.generation);
        let all = Sums {
            queries: context.queries + generation.queries,
            squares: context.squares + generation.squares,
            pairs: context.pairs + generation.pairs,
        };
        let of_part = |sums: &&Sums| sums.queries == queries && queries > 0;
        let mut parts = [all, context, generation].into_iter();
        let found = match all.queries == queries && queries > 0 {
            true => all,
            // Two parts of as many queries cannot be told apart.
            false if context.queries == generation.queries => return None,
            false => parts.find(|sums| of_part(&sums))?,
        };
        // (Each query squared is counted once too often per pair of different queries of a sequence.)
        let hidden = if causal { (found.squares - found.queries) / 2 } else { 0 };
        Some(found.pairs - hidden).filter(|pairs| *pairs >= 0)
    }
}

/// The passes of a trace with sums, by thread and start.
pub(super) fn passes(slices: &Slices<'_>) -> Vec<Pass> {
    let read = |slice: &HostSlice| {
        let (context, generation) = sums(slices.name(slice))?;
        let (start_ns, end_ns) = (slice.start_ns, slice.end_ns);
        Some(Pass { thread: slices.thread(slice.row), start_ns, end_ns, context, generation })
    };
    let mut passes: Vec<Pass> = slices.annotations.iter().filter_map(read).collect();
    trace::sort_by(&mut passes, |a, b| {
        (a.thread, a.start_ns, a.end_ns).cmp(&(b.thread, b.start_ns, b.end_ns))
    });
    passes
}

/// Number of the pass around an op of a thread: the last one that starts before it.
pub(super) fn around(passes: &[Pass], thread: ThreadId, op: &HostSlice) -> Option<usize> {
    let key = (thread, op.start_ns);
    let started = passes.partition_point(|pass| (pass.thread, pass.start_ns) <= key);
    let at = started.checked_sub(1)?;
    let pass = passes.get(at)?;
    (pass.thread == thread && pass.end_ns >= op.end_ns).then_some(at)
}

/// The sums of an annotation.
fn sums(name: &str) -> Option<(Sums, Sums)> {
    let rest = name.strip_prefix("execute_")?;
    let (context, rest) = part(rest, "context_")?;
    let (generation, _) = part(rest, "generation_")?;
    Some((context, generation))
}

/// The sums after `word` and a number, and what follows.
fn part<'a>(text: &'a str, word: &str) -> Option<(Sums, &'a str)> {
    let (_, rest) = text.split_once(word)?;
    let (_, rest) = rest.split_once('(')?;
    let (inner, rest) = rest.split_once(')')?;
    let mut inner = inner;
    let mut number = |key: &str| -> Option<i128> {
        let after = inner.strip_prefix(key)?;
        let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        let (digits, next) = after.split_at(end);
        inner = next;
        digits.parse::<i64>().ok().map(i128::from)
    };
    let queries = number("sq")?;
    let _keys = number("sk")?;
    let sums = Sums { queries, squares: number("sqsq")?, pairs: number("sqsk")? };
    inner.is_empty().then_some((sums, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "execute_5_context_1(sq4sk6sqsq16sqsk24)_generation_1(sq1sk9sqsq1sqsk9)";

    fn pass(name: &str) -> Pass {
        let (context, generation) = sums(name).expect(name);
        Pass { thread: 1, start_ns: 0, end_ns: 10, context, generation }
    }

    #[test]
    fn pairs_of_a_pass_and_of_its_parts() {
        let mixed = pass(MIXED);
        // Four queries after two keys see 3, 4, 5 and 6 keys; one query sees 9.
        assert_eq!(mixed.pairs(5, true), Some(18 + 9));
        assert_eq!(mixed.pairs(5, false), Some(24 + 9));
        assert_eq!(mixed.pairs(4, true), Some(18));
        assert_eq!(mixed.pairs(1, true), Some(9));
        assert_eq!(mixed.pairs(3, true), None);
        let even = "execute_8_context_1(sq4sk6sqsq16sqsk24)_generation_4(sq4sk9sqsq4sqsk9)";
        assert_eq!(pass(even).pairs(4, true), None);
        assert_eq!(pass(even).pairs(8, true), Some(18 + 9));
    }

    #[test]
    fn other_spellings_have_no_sums() {
        for name in [
            "execute_context_1(888_788544)_generation_0(0)",
            "execute_context_2(6144)_generation_3(3)",
            "step[EXTEND bs=15 toks=15360]",
            "execute_5_context_1(sq4sk6sqsq16)_generation_1(sq1sk9sqsq1sqsk9)",
        ] {
            assert_eq!(sums(name), None, "{name}");
        }
    }

    #[test]
    fn the_pass_of_the_same_thread_is_around_an_op() {
        let of = |thread, start_ns, end_ns| Pass { thread, start_ns, end_ns, ..pass(MIXED) };
        let op = |start_ns, end_ns| HostSlice { row: 0, start_ns, end_ns };
        let passes = [of(1, 0, 10), of(1, 10, 30), of(2, 5, 15)];
        assert_eq!(around(&passes, 1, &op(2, 5)), Some(0));
        assert_eq!(around(&passes, 1, &op(12, 15)), Some(1));
        assert_eq!(around(&passes, 2, &op(6, 8)), Some(2));
        assert_eq!(around(&passes, 2, &op(2, 4)), None);
        assert_eq!(around(&passes, 1, &op(8, 12)), None);
        assert_eq!(around(&passes, 3, &op(12, 15)), None);
    }
}
