//! Formulas over the shapes and values that an op was called with.

use std::fmt;

use serde_json::Value;

/// Floating point operations of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Multiplications and additions.
    pub flops: i128,
    /// Additions of a bias, which `flops` does not have.
    pub bias: i128,
}

impl From<i128> for Operations {
    fn from(flops: i128) -> Self {
        Self { flops, bias: 0 }
    }
}

/// Why the operations of a call are not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncovered {
    /// No shapes were recorded.
    NoDims,
    /// A tensor has no shape, or one with another number of dimensions than the formula takes.
    Dims(usize),
    /// The inner dimensions of a product differ.
    InnerDims,
    /// The dimensions of input and weight do not belong together.
    Rank,
    /// An argument that is no tensor was not recorded.
    NoValue(usize),
    /// Such an argument is not what the formula takes.
    BadValue(usize, String),
    /// Such a list has another length than the formula takes.
    ValueLength(usize, usize),
    /// Such an argument is neither true nor false.
    NotBool(usize),
    /// Sequences are packed: their lengths are not in the shapes.
    Packed,
    /// Sizes among the arguments do not agree with the shapes.
    Sizes,
}

impl fmt::Display for Uncovered {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDims => write!(to, "no Input Dims"),
            Self::Dims(at) => write!(to, "dims of argument {at} unusable"),
            Self::InnerDims => write!(to, "inner dims differ"),
            Self::Rank => write!(to, "rank"),
            Self::NoValue(at) => write!(to, "no Concrete Input {at}"),
            Self::BadValue(at, text) => write!(to, "Concrete Input {at} is '{text}'"),
            Self::ValueLength(at, n) => write!(to, "Concrete Input {at} has {n} values"),
            Self::NotBool(at) => write!(to, "Concrete Input {at} not a bool"),
            Self::Packed => write!(to, "varlen"),
            Self::Sizes => write!(to, "sizes disagree"),
        }
    }
}

/// What a formula gives.
pub type Found = Result<Operations, Uncovered>;

/// Shapes and values of one call.
pub struct Arguments {
    dims: Vec<Value>,
    concrete: Option<Vec<Value>>,
}

impl Arguments {
    /// Reads `Input Dims` and `Concrete Inputs`; the second is empty where it was not recorded.
    ///
    /// # Errors
    /// When the shapes are no list.
    pub fn of(dims: &str, concrete: &str) -> Result<Self, Uncovered> {
        let dims = serde_json::from_str(dims).map_err(|_| Uncovered::NoDims)?;
        Ok(Self { dims, concrete: serde_json::from_str(concrete).ok() })
    }

    /// The shape of tensor `at`, with `least` to `most` dimensions.
    pub(crate) fn tensor(
        &self,
        at: usize,
        least: usize,
        most: usize,
    ) -> Result<Vec<i128>, Uncovered> {
        let list = self.dims.get(at).and_then(Value::as_array).ok_or(Uncovered::Dims(at))?;
        let dims: Option<Vec<i128>> = list.iter().map(|n| n.as_i64().map(i128::from)).collect();
        let dims = dims.ok_or(Uncovered::Dims(at))?;
        if (least..=most).contains(&dims.len()) { Ok(dims) } else { Err(Uncovered::Dims(at)) }
    }

    fn value(&self, at: usize) -> Result<String, Uncovered> {
        match self.concrete.as_ref().and_then(|list| list.get(at)) {
            None | Some(Value::Null) => Err(Uncovered::NoValue(at)),
            Some(Value::String(text)) if text.is_empty() => Err(Uncovered::NoValue(at)),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Ok(other.to_string()),
        }
    }

    /// `n` integers; one stands for all.
    fn integers(&self, at: usize, n: usize) -> Result<Vec<i128>, Uncovered> {
        let text = self.value(at)?;
        let inner = text.trim_matches(|letter| "[]() ".contains(letter));
        let parts = inner.split([',', ';']).map(str::trim).filter(|part| !part.is_empty());
        let numbers: Option<Vec<i128>> = parts.map(|part| part.parse().ok()).collect();
        let numbers = numbers.ok_or_else(|| Uncovered::BadValue(at, text.clone()))?;
        match numbers.as_slice() {
            [one] => Ok(vec![*one; n]),
            all if all.len() == n => Ok(numbers),
            all => Err(Uncovered::ValueLength(at, all.len())),
        }
    }

    /// One integer.
    pub(crate) fn integer(&self, at: usize) -> Result<i128, Uncovered> {
        let text = self.value(at)?;
        text.trim().parse().map_err(|_| Uncovered::BadValue(at, text))
    }

    /// Each three arguments in a row that are integers.
    pub(crate) fn integers_in_a_row(&self) -> impl Iterator<Item = [i128; 3]> + '_ {
        let n = self.concrete.as_ref().map_or(0, Vec::len);
        let at = |at: usize| self.integer(at).ok();
        (0..n).filter_map(move |first| Some([at(first)?, at(first + 1)?, at(first + 2)?]))
    }

    pub(crate) fn boolean(&self, at: usize) -> Result<bool, Uncovered> {
        match self.value(at)?.trim().to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(Uncovered::NotBool(at)),
        }
    }

    /// The number of a mask at `at`, or before it: PyTorch before 2.3 has no `max_seqlen_k`, and the flag that follows the mask is there.
    fn mask_type(&self, at: usize) -> Result<String, Uncovered> {
        let text = self.value(at)?;
        let is_flag = ["true", "false"].contains(&text.trim().to_ascii_lowercase().as_str());
        if is_flag { self.value(at.saturating_sub(1)) } else { Ok(text) }
    }

    /// Whether tensor `at` has a shape with dimensions.
    fn has_tensor(&self, at: usize) -> bool {
        self.dims.get(at).and_then(Value::as_array).is_some_and(|dims| !dims.is_empty())
    }
}

/// The product of sizes; one that does not fit is the largest number.
pub(crate) fn product(dims: &[i128]) -> i128 {
    dims.iter().fold(1, |all, n| all.saturating_mul(*n))
}

/// `[M,K]` times `[K,N]` at arguments `at` and the next: 2MNK.
pub fn matmul(args: &Arguments, at: usize, bias: bool) -> Found {
    let (x, y) = (args.tensor(at, 2, 2)?, args.tensor(at + 1, 2, 2)?);
    let ([m, k], [inner, n]) = (&x[..], &y[..]) else { return Err(Uncovered::Rank) };
    if k != inner {
        return Err(Uncovered::InnerDims);
    }
    Ok(Operations {
        flops: product(&[2, *m, *k, *n]),
        bias: if bias { product(&[*m, *n]) } else { 0 },
    })
}

/// `[B,M,K]` times `[B,K,N]`: 2BMNK.
pub(crate) fn batched_matmul(args: &Arguments, at: usize, bias: bool) -> Found {
    let (x, y) = (args.tensor(at, 3, 3)?, args.tensor(at + 1, 3, 3)?);
    let ([b, m, k], [other, inner, n]) = (&x[..], &y[..]) else { return Err(Uncovered::Rank) };
    if (b, k) != (other, inner) {
        return Err(Uncovered::InnerDims);
    }
    let bias = if bias { product(&[*b, *m, *n]) } else { 0 };
    Ok(Operations { flops: product(&[2, *b, *m, *k, *n]), bias })
}

/// `x[..,K]` times the transpose of `W[N,K]`: 2 * elements of x * N.
pub fn linear(args: &Arguments) -> Found {
    let (x, weight) = (args.tensor(0, 1, 99)?, args.tensor(1, 1, 2)?);
    if x.last() != weight.last() {
        return Err(Uncovered::InnerDims);
    }
    let n = if let [n, _] = weight[..] { n } else { 1 };
    let rows = product(&x[..x.len() - 1]);
    let bias = if args.has_tensor(2) { rows.saturating_mul(n) } else { 0 };
    Ok(Operations { flops: product(&[2, product(&x), n]), bias })
}

/// A matrix times a vector: two operations per element.
pub fn matrix_vector(args: &Arguments, at: usize) -> Found {
    Ok(product(&args.tensor(at, 2, 2)?).saturating_mul(2).into())
}

/// A scalar product.
pub fn dot(args: &Arguments) -> Found {
    Ok(product(&args.tensor(0, 1, 1)?).saturating_mul(2).into())
}

/// Where a convolution has its arguments.
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionArguments {
    /// Number of the argument with the strides.
    pub stride: usize,
    /// The padding.
    pub padding: usize,
    /// The dilation.
    pub dilation: usize,
    /// Whether it is transposed.
    pub transposed: Transposed,
}

/// Whether a convolution is transposed.
#[derive(Clone, Copy, Debug)]
pub enum Transposed {
    /// Never.
    No,
    /// Always.
    Yes,
    /// As this argument says.
    At(usize),
}

fn batch_and_space(x: &[i128], n: usize) -> Result<(i128, &[i128]), Uncovered> {
    match x {
        [_, space @ ..] if space.len() == n => Ok((1, space)),
        [batch, _, space @ ..] if space.len() == n => Ok((*batch, space)),
        _ => Err(Uncovered::Rank),
    }
}

/// 2 * batch * output positions * elements of the weight; of a transposed one input positions.
pub fn convolution(args: &Arguments, at: ConvolutionArguments) -> Found {
    let (x, weight) = (args.tensor(0, 2, 5)?, args.tensor(1, 3, 5)?);
    let n = weight.len() - 2;
    let (batch, space) = batch_and_space(&x, n)?;
    let transposed = match at.transposed {
        Transposed::No => false,
        Transposed::Yes => true,
        Transposed::At(at) => args.boolean(at)?,
    };
    if transposed {
        return Ok(product(&[2, batch, product(space), product(&weight)]).into());
    }
    let (stride, padding, dilation) = (
        args.integers(at.stride, n)?,
        args.integers(at.padding, n)?,
        args.integers(at.dilation, n)?,
    );
    let out = outputs(space, &weight[2..], &stride, &padding, &dilation)?;
    Ok(product(&[2, batch, out, product(&weight)]).into())
}

/// A convolution without dilation: (x, weight, kernel size, bias, stride, padding).
pub(crate) fn slow_convolution(args: &Arguments) -> Found {
    let (x, weight) = (args.tensor(0, 3, 4)?, args.tensor(1, 4, 4)?);
    let (batch, space) = batch_and_space(&x, 2)?;
    let (stride, padding) = (args.integers(4, 2)?, args.integers(5, 2)?);
    let out = outputs(space, &weight[2..], &stride, &padding, &[1, 1])?;
    Ok(product(&[2, batch, out, product(&weight)]).into())
}

/// Positions of a convolution's output: floor((in + 2p - d(k-1) - 1)/s) + 1 in each direction.
fn outputs(
    space: &[i128],
    kernel: &[i128],
    stride: &[i128],
    padding: &[i128],
    dilation: &[i128],
) -> Result<i128, Uncovered> {
    let mut all = 1_i128;
    for (at, size) in space.iter().enumerate() {
        let (Some(k), Some(s), Some(p), Some(d)) =
            (kernel.get(at), stride.get(at), padding.get(at), dilation.get(at))
        else {
            return Err(Uncovered::Rank);
        };
        if *s <= 0 {
            return Err(Uncovered::Rank);
        }
        let span =
            size.saturating_add(p.saturating_mul(2)).saturating_sub(d.saturating_mul(k - 1)) - 1;
        all = all.saturating_mul(span.div_euclid(*s) + 1);
    }
    Ok(all)
}

/// The forward pass's operations for each gradient that was asked for (`output_mask`): input, weight.
pub fn convolution_backward(args: &Arguments) -> Found {
    let (gradient, x, weight) =
        (args.tensor(0, 3, 5)?, args.tensor(1, 3, 5)?, args.tensor(2, 3, 5)?);
    let transposed = args.boolean(7)?;
    let mask = args.value(10)?.to_ascii_lowercase();
    let wanted = mask
        .trim_matches(|letter| "[] ".contains(letter))
        .split(',')
        .take(2)
        .filter(|part| matches!(part.trim(), "true" | "1"))
        .count();
    let outer = if transposed { &x } else { &gradient };
    let positions = product(&outer[2..]).saturating_mul(outer[0]);
    Ok(product(&[wanted as i128, 2, positions, product(&weight)]).into())
}

/// The order of the dimensions of query, key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Batch, heads, sequence, size.
    HeadsFirst,
    /// Batch, sequence, heads, size.
    SequenceFirst,
}

/// Where a causal mask begins where the lengths of queries and keys differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// The first query sees the first key.
    TopLeft,
    /// The last query sees the last key.
    BottomRight,
}

/// How an op of attention takes its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Number of the argument with the queries; keys and values follow.
    pub query: usize,
    /// Order of the dimensions.
    pub layout: Layout,
    /// The argument that says whether the mask is causal.
    pub causal: usize,
    /// Whether that argument is a number of a mask: 0 is none, 2 is aligned at the bottom right.
    pub mask_number: bool,
    /// Whether it is the backward pass.
    pub backward: bool,
    /// The argument with the lengths of packed sequences.
    pub packed: Option<usize>,
    /// Where a causal mask begins.
    pub corner: Corner,
}

/// 2 * B * H * pairs * (Dqk + Dv); backward 2 * B * H * pairs * (3 * Dqk + 2 * Dv). Heads are those of the queries. Under a
/// causal mask only the pairs count that it lets through.
pub fn attention(args: &Arguments, at: Attention) -> Found {
    if at.packed.is_some_and(|lengths| args.has_tensor(lengths)) {
        return Err(Uncovered::Packed);
    }
    let tensor = |more: usize| args.tensor(at.query + more, 4, 4);
    let (query, key, value) = (tensor(0)?, tensor(1)?, tensor(2)?);
    let ([batch, a, b, size], [_, key_a, key_b, _], [.., value_size]) =
        (&query[..], &key[..], &value[..])
    else {
        return Err(Uncovered::Rank);
    };
    let (heads, queries, keys) = match at.layout {
        Layout::HeadsFirst => (*a, *b, *key_b),
        Layout::SequenceFirst => (*b, *a, *key_a),
    };
    let (causal, corner) = if at.mask_number {
        let mask = args.mask_type(at.causal)?;
        let corner = if mask.trim() == "2" { Corner::BottomRight } else { Corner::TopLeft };
        (mask.trim() != "0", corner)
    } else {
        (args.boolean(at.causal)?, at.corner)
    };
    let pairs = if causal { pairs(queries, keys, corner) } else { queries.saturating_mul(keys) };
    let each = if at.backward { 3 * size + 2 * value_size } else { size + value_size };
    Ok(product(&[2, *batch, heads, pairs, each]).into())
}

/// (query, key) pairs under a causal mask.
pub(crate) fn pairs(queries: i128, keys: i128, corner: Corner) -> i128 {
    let triangle = |n: i128| n.saturating_mul(n + 1) / 2;
    match corner {
        Corner::TopLeft if queries <= keys => triangle(queries),
        Corner::TopLeft => triangle(keys) + (queries - keys).saturating_mul(keys),
        Corner::BottomRight if keys >= queries => {
            queries.saturating_mul(keys) - queries.saturating_mul(queries - 1) / 2
        }
        Corner::BottomRight => triangle(keys),
    }
}
