//! Formats inputs of ops, such as `bf16[2048,4096], bf16[4096,4096]`, and computes the sizes of matrix products for
//! ops whose matrix inputs are known.

use serde_json::Value;
use timeline::inputs::numbers;

/// Tensors of one op that are shown; of a list of tensors as many.
const MOST: usize = 6;

/// The inputs of an op.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its tensors, with type and size; empty where it has none.
    pub shapes: String,
    /// Its sizes, when it is a matrix product.
    pub gemm: Option<Gemm>,
    /// The number of elements of its largest tensor; `None` where it has no tensor.
    pub elements: Option<u64>,
}

/// `batch` products of `m` by `k` with `k` by `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gemm {
    pub batch: i64,
    pub m: i64,
    pub n: i64,
    pub k: i64,
}

impl std::fmt::Display for Gemm {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { batch, m, n, k } = self;
        match batch {
            1 => write!(out, "{m} x {n} x {k}"),
            batch => write!(out, "{batch} of {m} x {n} x {k}"),
        }
    }
}

/// Ops that multiply matrices, with the places of the two among their inputs (`torch/csrc` signatures), and whether the
/// second is transposed.
const PRODUCTS: &[(&str, usize, usize, bool)] = &[
    ("aten::mm", 0, 1, false),
    ("aten::matmul", 0, 1, false),
    ("aten::bmm", 0, 1, false),
    ("aten::_int_mm", 0, 1, false),
    ("aten::_scaled_mm", 0, 1, false),
    ("aten::linear", 0, 1, true),
    ("aten::addmm", 1, 2, false),
    ("aten::addmm_", 1, 2, false),
    ("aten::_addmm_activation", 1, 2, false),
    ("aten::baddbmm", 1, 2, false),
    ("aten::baddbmm_", 1, 2, false),
];

/// The profiler's names of number types, and the short ones.
const TYPES: &[(&str, &str)] = &[
    ("float", "f32"),
    ("double", "f64"),
    ("c10::Half", "f16"),
    ("c10::BFloat16", "bf16"),
    ("c10::Float8_e4m3fn", "f8e4m3fn"),
    ("c10::Float8_e4m3fnuz", "f8e4m3fnuz"),
    ("c10::Float8_e5m2", "f8e5m2"),
    ("c10::Float8_e5m2fnuz", "f8e5m2fnuz"),
    ("c10::complex<float>", "c64"),
    ("c10::complex<double>", "c128"),
    ("c10::complex<c10::Half>", "c32"),
    ("long int", "i64"),
    ("long long int", "i64"),
    ("long long", "i64"),
    ("long", "i64"),
    ("int", "i32"),
    ("short int", "i16"),
    ("short", "i16"),
    ("signed char", "i8"),
    ("char", "i8"),
    ("unsigned char", "u8"),
    ("unsigned short", "u16"),
    ("short unsigned int", "u16"),
    ("unsigned int", "u32"),
    ("unsigned long", "u64"),
    ("long unsigned int", "u64"),
    ("unsigned long long", "u64"),
    ("Int", "i32"),
    ("Long", "i64"),
    ("Byte", "u8"),
    ("Float", "f32"),
    ("Half", "f16"),
    ("BFloat16", "bf16"),
    ("bool", "bool"),
];

/// Whether an op multiplies matrices. (What it launches on the way, as the copy of a bias, belongs to the product.)
pub(crate) fn is_product(op: &str) -> bool {
    PRODUCTS.iter().any(|(name, ..)| *name == op)
}

impl Call {
    /// The inputs of `op`; `dims` and `types` are the JSON of `Input Dims` and `Input type`. `None` when the dims are
    /// no list of lists.
    #[inline(never)]
    pub(crate) fn of(op: &str, dims: &str, types: &str) -> Option<Self> {
        let dims: Vec<Vec<Value>> = serde_json::from_str(dims).ok()?;
        let types: Vec<String> = serde_json::from_str(types).unwrap_or_default();
        let mut tensors: Vec<String> = Vec::new();
        let mut most = None;
        for (at, dims) in dims.iter().enumerate() {
            let of_type = types.get(at).map_or("", String::as_str);
            if let Some(tensor) = tensor(dims, of_type) {
                tensors.push(tensor);
                most = most.max(elements(dims));
            }
        }
        Some(Self { shapes: list(&tensors), gemm: gemm(op, &dims), elements: most })
    }
}

/// The number of elements of a tensor, or of the largest one of a list.
fn elements(dims: &[Value]) -> Option<u64> {
    if dims.iter().any(Value::is_array) {
        return dims.iter().filter_map(|dims| elements(dims.as_array()?)).max();
    }
    dims.iter().try_fold(1_u64, |all, dim| all.checked_mul(dim.as_u64()?))
}

/// `a, b, 3 more`.
#[inline(never)]
fn list(tensors: &[String]) -> String {
    let shown = tensors[..tensors.len().min(MOST)].join(", ");
    match tensors.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown}, {more} more"),
    }
}

/// One input; `None` when it is no tensor.
#[inline(never)]
fn tensor(dims: &[Value], of_type: &str) -> Option<String> {
    if dims.iter().any(Value::is_array) {
        let tensors: Vec<String> =
            dims.iter().filter_map(numbers).map(|dims| size(&dims)).collect();
        return Some(format!("({})", list(&tensors)));
    }
    // (A number, a list of numbers, a device: none of them has a size; a tensor without dimensions neither, but that has
    // the type of a number.)
    let scalar = matches!(of_type, "" | "Scalar" | "ScalarList" | "TensorList" | "GenericList");
    if dims.is_empty() && scalar {
        return None;
    }
    let short = short_type(of_type);
    let dims: Vec<i64> = dims.iter().map(Value::as_i64).collect::<Option<_>>()?;
    Some(format!("{short}{}", size(&dims)))
}

/// `u8` of `unsigned char`, and of `unsignedchar` as some profilers write it.
fn short_type(of_type: &str) -> &str {
    let letters = |text: &'_ str| text.bytes().filter(|byte| *byte != b' ').collect::<Vec<u8>>();
    let wanted = letters(of_type);
    TYPES.iter().find(|(long, _)| letters(long) == wanted).map_or(of_type, |(_, short)| short)
}

fn size(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
    format!("[{}]", dims.join(","))
}

#[inline(never)]
fn gemm(op: &str, dims: &[Vec<Value>]) -> Option<Gemm> {
    let (_, first, second, transposed) = PRODUCTS.iter().find(|(name, ..)| *name == op)?;
    let sizes = |at: usize| -> Option<Vec<i64>> {
        dims.get(at)?.iter().map(|dim| dim.as_i64().filter(|dim| *dim >= 0)).collect()
    };
    let (first, second) = (sizes(*first)?, sizes(*second)?);
    let ([batch @ .., m, k], [others @ .., rows, columns]) = (&first[..], &second[..]) else {
        return None;
    };
    let (inner, n) = if *transposed { (columns, rows) } else { (rows, columns) };
    let batch = batch.iter().try_fold(1_i64, |all, dim| all.checked_mul(*dim))?;
    if inner != k {
        return None;
    }
    // Many matrices times one are one product: their rows stand below each other.
    let (batch, m) = if others.is_empty() { (1, batch.checked_mul(*m)?) } else { (batch, *m) };
    Some(Gemm { batch, m, n: *n, k: *k })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(op: &str, dims: &str, types: &str) -> (String, Option<String>) {
        let call = Call::of(op, dims, types).unwrap();
        (call.shapes, call.gemm.map(|gemm| gemm.to_string()))
    }

    #[test]
    fn inputs_as_a_person_writes_them() {
        let dims = "[[5120],[32,4096],[4096,5120],[],[]]";
        let types = r#"["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar"]"#;
        let found = call("aten::addmm", dims, types);
        assert_eq!(found.0, "bf16[5120], bf16[32,4096], bf16[4096,5120]");
        assert_eq!(found.1.as_deref(), Some("32 x 5120 x 4096"));
        let (shapes, none) = call("aten::cat", "[[[2,3],[4,3]],[]]", r#"["TensorList","Scalar"]"#);
        assert_eq!((shapes.as_str(), none), ("([2,3], [4,3])", None));
        assert_eq!(call("aten::item", "[[]]", r#"["float"]"#).0, "f32[]");
        assert_eq!(call("my::op", "[[2],[7,7]]", r#"["thing"]"#).0, "thing[2], [7,7]");
        let types = r#"["unsigned char", "unsignedchar", "longint", "long int", "short"]"#;
        let dims = "[[1],[10905190400],[32],[4],[5]]";
        assert_eq!(call("o", dims, types).0, "u8[1], u8[10905190400], i64[32], i64[4], i16[5]");
        assert_eq!(call("my::op", "[]", "no json").0, "");
        let many = format!("[[{}]]", ["[1]"; 9].join(","));
        assert_eq!(call("o", &many, "[]").0, "([1], [1], [1], [1], [1], [1], 3 more)");
        assert_eq!(Call::of("o", "{}", "[]"), None);
        assert_eq!(Call::of("o", "[1]", "[]"), None);
    }

    #[test]
    fn the_largest_tensor_counts() {
        let elements = |dims, types| Call::of("o", dims, types).unwrap().elements;
        assert_eq!(elements("[[128],[32,128],[]]", r#"["float","float","Scalar"]"#), Some(4096));
        assert_eq!(elements("[[[2,3],[4,3]],[5]]", r#"["TensorList","float"]"#), Some(12));
        assert_eq!(elements("[[]]", r#"["float"]"#), Some(1), "a tensor without dimensions");
        assert_eq!(elements("[[]]", r#"["Scalar"]"#), None);
        assert_eq!(elements("[[-1]]", r#"["float"]"#), None);
        let huge = format!("[[{0},{0},{0}]]", i64::MAX);
        assert_eq!(elements(&huge, "[]"), None);
    }

    #[test]
    fn products_know_their_sizes() {
        let gemm = |op, dims| call(op, dims, "[]").1;
        assert_eq!(gemm("aten::mm", "[[2,3],[3,4]]").as_deref(), Some("2 x 4 x 3"));
        assert_eq!(gemm("aten::linear", "[[8,2,3],[4,3],[4]]").as_deref(), Some("16 x 4 x 3"));
        assert_eq!(gemm("aten::bmm", "[[5,2,3],[5,3,4]]").as_deref(), Some("5 of 2 x 4 x 3"));
        assert_eq!(gemm("aten::matmul", "[[3],[3]]"), None, "two vectors");
        assert_eq!(gemm("aten::mm", "[[2,3],[4,4]]"), None, "they do not fit");
        assert_eq!(gemm("aten::mm", "[[2,3]]"), None);
        assert_eq!(gemm("aten::mm", "[[-2,3],[3,4]]"), None);
        assert_eq!(gemm("my::mm", "[[2,3],[3,4]]"), None, "not known");
        let huge = format!("[[{0},{0},{0},2,3],[3,4]]", i64::MAX);
        assert_eq!(gemm("aten::matmul", &huge), None);
    }
}
