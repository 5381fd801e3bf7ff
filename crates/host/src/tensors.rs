//! The tensors among the inputs of a call: their sizes, and the memory that they span.

use serde_json::Value;

/// A tensor among the inputs of a call.
pub(crate) struct Tensor {
    /// Its sizes; at least one.
    pub dims: Vec<i128>,
    /// Bytes of an element; `None` for a type that has no known size.
    pub size: Option<i128>,
    /// Whether its type is one of floating point.
    pub is_float: bool,
    /// Elements of memory that its strides span, if these are recorded, and no more than it has.
    pub span: i128,
}

/// The inputs of a call; `None` for what is no tensor with dimensions.
pub(crate) struct Tensors(Vec<Option<Tensor>>);

impl Tensors {
    /// Reads `Input Dims`, `Input type` and `Input Strides`; the last is empty where it was not recorded.
    pub(crate) fn of(dims: &str, types: &str, strides: &str) -> Option<Self> {
        let dims: Vec<Value> = serde_json::from_str(dims).ok()?;
        let types: Vec<String> = serde_json::from_str(types).ok()?;
        let strides: Vec<Value> = serde_json::from_str(strides).unwrap_or_default();
        let mut all = Vec::with_capacity(dims.len());
        for (at, dims) in dims.iter().enumerate() {
            let dims = integers(dims).filter(|dims| !dims.is_empty());
            let Some(dims) = dims else {
                all.push(None);
                continue;
            };
            let elements = product(&dims)?;
            let spanned =
                strides.get(at).and_then(integers).and_then(|strides| span(&dims, &strides));
            let name = types.get(at).map_or("", String::as_str);
            all.push(Some(Tensor {
                span: spanned.map_or(elements, |span| span.min(elements)),
                size: bytes_of_type(name),
                is_float: !name.contains("int") && !name.contains("char") && name != "bool",
                dims,
            }));
        }
        Some(Self(all))
    }

    /// The tensor at an argument.
    pub(crate) fn tensor(&self, at: usize) -> Option<&Tensor> {
        self.0.get(at)?.as_ref()
    }

    /// Bytes of some tensors, each once; `None` where a size is not known.
    pub(crate) fn bytes_of(&self, these: &[usize]) -> Option<i128> {
        these.iter().try_fold(0_i128, |all, at| {
            let tensor = self.tensor(*at)?;
            all.checked_add(tensor.span.checked_mul(tensor.size?)?)
        })
    }
}

fn integers(list: &Value) -> Option<Vec<i128>> {
    list.as_array()?.iter().map(|n| n.as_i64().map(i128::from)).collect()
}

/// Elements of a tensor; `None` where the number does not fit.
pub(crate) fn product(dims: &[i128]) -> Option<i128> {
    dims.iter().try_fold(1_i128, |all, n| all.checked_mul((*n).max(0)))
}

/// Elements of memory from the first to the last one that strides reach.
fn span(dims: &[i128], strides: &[i128]) -> Option<i128> {
    if dims.len() != strides.len() || dims.contains(&0) {
        return None;
    }
    let reach = dims.iter().zip(strides).try_fold(0_i128, |all, (dim, stride)| {
        all.checked_add(dim.checked_sub(1)?.checked_mul(stride.checked_abs()?)?)
    })?;
    reach.checked_add(1)
}

/// Bytes of an element, by the name in `Input type`, as it is kept: without blanks.
fn bytes_of_type(name: &str) -> Option<i128> {
    Some(match name {
        "double" | "long" | "longint" | "c10::complex<float>" => 8,
        "float" | "int" => 4,
        "c10::Half" | "c10::BFloat16" | "short" | "shortint" => 2,
        "signedchar" | "unsignedchar" | "bool" => 1,
        // (Two values of 4 bits are one element of the recorded shape.)
        "c10::Float4_e2m1fn_x2" => 1,
        name if name.starts_with("c10::Float8_") => 1,
        _ => return None,
    })
}
