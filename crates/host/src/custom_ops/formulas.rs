//! Formulas of custom ops: operations by the shapes and values that an op was called with.
//!
//! A formula gives either the exact number, or a number that the call cannot exceed: lengths of sequences and the tokens of each
//! expert are values in GPU memory, which no trace records, but their sums and maxima often are arguments.

use serde::Serialize;

use super::passes::Pass;
use crate::flops::{Arguments, Attention, Corner, Uncovered, attention, pairs, product};

/// What a number of operations says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The arguments determine it.
    Exact,
    /// The call does not exceed it.
    AtMost,
}

impl Bound {
    /// What a person reads.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtMost => "at most",
        }
    }
}

/// Operations of one call, and what the number says.
pub(super) type Counted = Result<(i128, Bound), Uncovered>;

/// Where a product has the number of its columns.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    /// The result is this argument, `[..,N]`.
    Result(usize),
    /// The weight is this argument, `[..,N,K]`.
    Rows(usize),
    /// The weight is this argument, `[..,K,N]`; so many columns are packed into one value.
    Columns(usize, i128),
    /// This argument is the number itself.
    Value(usize),
}

/// A product of matrices, `2 * rows * K * N`. The left one is an argument, `[..,K]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// Number of the left matrix.
    pub left: usize,
    /// Values of K in one element of the left matrix: two of 4 bits.
    pub packed: i128,
    /// Where the number of columns is.
    pub columns: Width,
    /// Whether the rows belong to groups, such as experts: rows past the last group are padding.
    pub grouped: bool,
}

/// Where the number of (token, expert) pairs is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pairs {
    /// An argument has an element for each pair.
    Elements(usize),
    /// An argument has a row for each pair: `[tokens, experts of a token, size]`.
    Rows(usize),
    /// This argument is the number of experts of a token; the tokens are the rows of the first.
    PerToken(usize),
}

/// Both products of gated or plain experts: `2 * pairs * (K * gates * I + I * K)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experts {
    /// Number of the hidden states, `[T,K]`; the weights `[E, gates * I, K]` and `[E, K, I]` follow.
    pub hidden: usize,
    /// Where the pairs are.
    pub pairs: Pairs,
}

/// One product of experts: `2 * pairs * inner size * outer size`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// Number of the left matrix, whose last dimension is the inner size.
    pub left: usize,
    /// Number of the weights, `[E, outer, inner]`.
    pub weights: usize,
    /// Where the pairs are.
    pub pairs: Pairs,
}

/// Where attention over packed or paged sequences has the largest number of keys of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys {
    /// This argument is the number.
    Longest(usize),
    /// This argument is the number; else the pages of a row in the first tensor times the size of a page, the second dimension of
    /// the second tensor; without the first tensor that dimension alone.
    LongestOrPages(usize, (usize, usize)),
    /// Pages of a row times the size of a page.
    Pages((usize, usize)),
    /// No argument says: only the annotation of the pass may.
    NotRecorded,
}

/// Attention over sequences of different lengths: `2 * H * pairs * (Dqk + Dv)` with the pairs that the maxima allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequences {
    /// Number of the queries, `[T,H,D]` or `[B,S,H,D]`.
    pub query: usize,
    /// Where the size of a value is.
    pub value: ValueSize,
    /// The offsets of the sequences, one more than there are.
    pub offsets: Option<usize>,
    /// Largest number of keys of a sequence.
    pub keys: Keys,
    /// The argument that says whether the mask is causal, aligned at the last query and the last key.
    pub causal: Option<usize>,
    /// The first of the two arguments with the sizes of a window.
    pub window: Option<usize>,
    /// Whether it is the backward pass.
    pub backward: bool,
}

/// Where the size of a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueSize {
    /// The last dimension of this tensor.
    LastOf(usize),
    /// This argument is the number.
    Value(usize),
}

/// How the operations of a custom op are counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Formula {
    /// A product.
    Product(Product),
    /// A product whose sizes M, N and K are three arguments in a row; the left matrix is the first argument.
    Sizes,
    /// The same of experts: with the pairs of tokens and experts, and the number of experts of a row.
    ExpertSizes(Pairs, usize),
    /// Both products of experts.
    Experts(Experts),
    /// One of them.
    Stage(Stage),
    /// Attention over tensors without packing. The second is the first of two arguments with a window's sizes; the third the
    /// offsets of packed sequences.
    Dense(Attention, Option<usize>, Option<usize>),
    /// Attention over packed or paged sequences.
    Sequences(Sequences),
}

impl Formula {
    /// The operations of a call, which may be in a pass whose sequences are known.
    pub(super) fn evaluate(self, args: &Arguments, pass: Option<&Pass>) -> Counted {
        let counted = match self {
            Self::Product(at) => at.count(args),
            Self::Sizes => {
                let [m, n, k] = sizes(args)?;
                Ok((product(&[2, m, n, k]), Bound::Exact))
            }
            Self::ExpertSizes(at, per_row) => expert_sizes(args, at, per_row),
            Self::Experts(at) => at.count(args),
            Self::Stage(at) => at.count(args),
            Self::Dense(at, window, packed) => dense(args, at, window, packed),
            Self::Sequences(at) => at.count(args, pass),
        };
        // (Only sizes that are no sizes give less than nothing.)
        counted.and_then(|found| if found.0 < 0 { Err(Uncovered::Sizes) } else { Ok(found) })
    }
}

/// Whether `packed` values of `inner` fill a dimension: the weight may hold several in one element.
fn is_inner(inner: i128, dim: i128) -> bool {
    const MOST_PACKED: i128 = 8;
    dim > 0 && inner % dim == 0 && inner / dim <= MOST_PACKED
}

impl Product {
    fn count(self, args: &Arguments) -> Counted {
        let left = args.tensor(self.left, 1, 99)?;
        let (inner, rows) = left.split_last().ok_or(Uncovered::Dims(self.left))?;
        let inner = inner.saturating_mul(self.packed);
        let rows = product(rows);
        let results = match self.columns {
            Width::Result(at) => {
                let result = args.tensor(at, 1, 99)?;
                let (columns, own) = result.split_last().ok_or(Uncovered::Dims(at))?;
                let own = product(own);
                // (Experts have a row of the result for each of a token's experts.)
                if own != rows && !(self.grouped && rows > 0 && own % rows == 0) {
                    return Err(Uncovered::Rank);
                }
                own.saturating_mul(*columns)
            }
            Width::Rows(at) => {
                let (batch, [columns, depth]) = matrix(args, at)?;
                check(&left, &batch, is_inner(inner, depth))?;
                rows.saturating_mul(columns)
            }
            Width::Columns(at, packed) => {
                let (batch, [depth, columns]) = matrix(args, at)?;
                check(&left, &batch, is_inner(inner, depth))?;
                product(&[rows, columns, packed])
            }
            Width::Value(at) => rows.saturating_mul(args.integer(at)?),
        };
        let bound = if self.grouped { Bound::AtMost } else { Bound::Exact };
        Ok((product(&[2, results, inner]), bound))
    }
}

/// A product per batch needs as many weights as batches; one weight serves all.
fn check(left: &[i128], batch: &[i128], fits: bool) -> Result<(), Uncovered> {
    if !fits {
        return Err(Uncovered::InnerDims);
    }
    match batch {
        [] => Ok(()),
        _ if left.len() == batch.len() + 2 && left.starts_with(batch) => Ok(()),
        _ => Err(Uncovered::Rank),
    }
}

/// The last two dimensions of a tensor, and those before.
fn matrix(args: &Arguments, at: usize) -> Result<(Vec<i128>, [i128; 2]), Uncovered> {
    let dims = args.tensor(at, 2, 99)?;
    match &dims[..] {
        [batch @ .., rows, columns] => Ok((batch.to_vec(), [*rows, *columns])),
        _ => Err(Uncovered::Dims(at)),
    }
}

/// Weights of experts, `[E, rows, columns]`.
fn expert_weights(args: &Arguments, at: usize) -> Result<[i128; 2], Uncovered> {
    match args.tensor(at, 3, 3)?[..] {
        [_, rows, columns] => Ok([rows, columns]),
        _ => Err(Uncovered::Dims(at)),
    }
}

/// M, N and K among the scalars: three in a row, the first and the last as the left matrix has them. Releases of vLLM and SGLang
/// differ in how many arguments come before them.
fn sizes(args: &Arguments) -> Result<[i128; 3], Uncovered> {
    let (_, [rows, inner]) = matrix(args, 0)?;
    let found = args.integers_in_a_row().find(|[m, _, k]| (*m, *k) == (rows, inner));
    found.ok_or(Uncovered::Sizes)
}

fn expert_sizes(args: &Arguments, at: Pairs, per_row: usize) -> Counted {
    let [m, n, k] = sizes(args)?;
    let pairs = at.count(args, m)?;
    // The second product has a row per pair already.
    if pairs != m.saturating_mul(args.integer(per_row)?) {
        return Err(Uncovered::Sizes);
    }
    Ok((product(&[2, pairs, n, k]), Bound::AtMost))
}

impl Pairs {
    /// The pairs of `tokens`.
    fn count(self, args: &Arguments, tokens: i128) -> Result<i128, Uncovered> {
        match self {
            Self::Elements(at) => Ok(product(&args.tensor(at, 2, 2)?)),
            Self::Rows(at) => {
                let dims = args.tensor(at, 3, 3)?;
                Ok(product(&dims[..2]))
            }
            Self::PerToken(at) => Ok(tokens.saturating_mul(args.integer(at)?)),
        }
    }
}

impl Experts {
    fn count(self, args: &Arguments) -> Counted {
        let (_, [tokens, inner]) = matrix(args, self.hidden)?;
        let [gated, up_depth] = expert_weights(args, self.hidden + 1)?;
        let [out, down_depth] = expert_weights(args, self.hidden + 2)?;
        if out != inner || !is_inner(inner, up_depth) {
            return Err(Uncovered::InnerDims);
        }
        // Both weights pack as many values into an element.
        let size = down_depth.saturating_mul(inner / up_depth);
        if size <= 0 || !(gated == size || gated == size.saturating_mul(2)) {
            return Err(Uncovered::InnerDims);
        }
        let pairs = self.pairs.count(args, tokens)?;
        Ok((product(&[2, pairs, inner, gated.saturating_add(size)]), Bound::AtMost))
    }
}

impl Stage {
    fn count(self, args: &Arguments) -> Counted {
        let left = args.tensor(self.left, 2, 3)?;
        let (inner, rows) = left.split_last().ok_or(Uncovered::Dims(self.left))?;
        let [outer, depth] = expert_weights(args, self.weights)?;
        if !is_inner(*inner, depth) {
            return Err(Uncovered::InnerDims);
        }
        let pairs = self.pairs.count(args, product(rows))?;
        Ok((product(&[2, pairs, *inner, outer]), Bound::AtMost))
    }
}

/// Attention without packing; a window leaves pairs out, so the number is then a bound.
fn dense(args: &Arguments, at: Attention, window: Option<usize>, packed: Option<usize>) -> Counted {
    if packed.is_some_and(|packed| args.tensor(packed, 1, 1).is_ok()) {
        return Err(Uncovered::Packed);
    }
    let operations = attention(args, at)?;
    let causal = args.boolean(at.causal).unwrap_or(false);
    let narrow = window.is_some_and(|window| has_window(args, window, causal));
    Ok((operations.flops, if narrow { Bound::AtMost } else { Bound::Exact }))
}

/// Whether a window leaves pairs out, or may. A causal mask is often given as a window that ends at the query.
fn has_window(args: &Arguments, at: usize, causal: bool) -> bool {
    let limits = |at: usize| !args.integer(at).is_ok_and(|size| size < 0);
    limits(at) || (limits(at + 1) && !causal)
}

impl Sequences {
    fn count(self, args: &Arguments, pass: Option<&Pass>) -> Counted {
        let query = args.tensor(self.query, 3, 4)?;
        let (tokens, heads, size, sequences) = match query[..] {
            [tokens, heads, size] => {
                let offsets = self.offsets.map(|at| args.tensor(at, 1, 1)).transpose()?;
                // Without offsets, each query is a sequence of its own.
                let sequences = offsets.map_or(tokens, |dims| dims[0] - 1);
                (tokens, heads, size, sequences)
            }
            [batch, queries, heads, size] => (batch.saturating_mul(queries), heads, size, batch),
            _ => return Err(Uncovered::Dims(self.query)),
        };
        let value_size = match self.value {
            ValueSize::LastOf(at) => *args.tensor(at, 3, 4)?.last().ok_or(Uncovered::Dims(at))?,
            ValueSize::Value(at) => args.integer(at)?,
        };
        let causal = self.causal.and_then(|at| args.boolean(at).ok());
        let (pairs, bound) = match pass.and_then(|pass| pass.pairs(tokens, causal == Some(true))) {
            Some(pairs) => {
                // Of a layer with a window, or with a mask that no argument names, the pairs of the pass are a bound.
                let all = self
                    .window
                    .zip(causal)
                    .is_some_and(|(at, causal)| !has_window(args, at, causal));
                (pairs, if all { Bound::Exact } else { Bound::AtMost })
            }
            None => {
                (self.most_pairs(args, tokens, sequences, causal == Some(true))?, Bound::AtMost)
            }
        };
        let each = match self.backward {
            true => product(&[3, size]).saturating_add(product(&[2, value_size])),
            false => size.saturating_add(value_size),
        };
        Ok((product(&[2, heads, pairs, each]), bound))
    }

    /// The most pairs that the maxima among the arguments allow.
    fn most_pairs(
        self,
        args: &Arguments,
        tokens: i128,
        sequences: i128,
        causal: bool,
    ) -> Result<i128, Uncovered> {
        let keys = self.keys.longest(args)?;
        if keys <= 0 || sequences <= 0 {
            return Err(Uncovered::Sizes);
        }
        Ok(match causal {
            true => most_causal_pairs(tokens, sequences, keys),
            false => tokens.saturating_mul(keys),
        })
    }
}

impl Keys {
    fn longest(self, args: &Arguments) -> Result<i128, Uncovered> {
        match self {
            Self::Longest(at) => args.integer(at),
            Self::LongestOrPages(at, (table, cache)) => {
                let pages = || Self::Pages((table, cache)).longest(args);
                // Without pages, a sequence has its own row of the keys.
                let own = || args.tensor(cache, 4, 4).map(|dims| dims[1]);
                let paged = args.tensor(table, 1, 99).is_ok();
                args.integer(at).or_else(|_| if paged { pages() } else { own() })
            }
            Self::NotRecorded => Err(Uncovered::Packed),
            Self::Pages((table, cache)) => {
                let width = args.tensor(table, 2, 2)?[1];
                let page = args.tensor(cache, 4, 4)?[1];
                Ok(width.saturating_mul(page))
            }
        }
    }
}

/// The most (query, key) pairs under a causal mask of `sequences` with `tokens` queries together and at most `keys` keys each.
///
/// The pairs of one sequence are a concave function of its queries, so equal lengths have most; a sequence has no fewer pairs
/// with more keys.
fn most_causal_pairs(tokens: i128, sequences: i128, keys: i128) -> i128 {
    let (short, longer) = (tokens / sequences, tokens % sequences);
    let of = |queries: i128| pairs(queries, keys, Corner::BottomRight);
    of(short)
        .saturating_mul(sequences - longer)
        .saturating_add(of(short + 1).saturating_mul(longer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_division_of_the_queries_has_more_causal_pairs_than_the_bound() {
        // Every way to give 0 to 6 queries to each of three sequences, with any number of keys up to 5.
        for tokens in 0..=8 {
            let mut most = 0;
            for a in 0..=tokens {
                for b in 0..=tokens - a {
                    let queries = [a, b, tokens - a - b];
                    for keys in [[5, 5, 5], [1, 3, 5], [5, 2, 4]] {
                        let all = queries.iter().zip(keys);
                        let found =
                            all.map(|(q, k)| pairs(*q, k, Corner::BottomRight)).sum::<i128>();
                        most = most.max(found);
                    }
                }
            }
            assert_eq!(most_causal_pairs(tokens, 3, 5), most, "{tokens}");
        }
    }
}
