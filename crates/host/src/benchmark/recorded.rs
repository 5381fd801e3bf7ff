//! What a trace does not record of the arguments of an op, and which integers an argument may have.

use serde_json::Value;

/// Namespaces whose ops need nothing but PyTorch: no library that registers them, no process group, no packed weights.
const ALONE: [&str; 2] = ["aten", "prims"];

/// Arguments that the op needs and of which the profiler may record nothing: a storage, a stream, a list of optional tensors, an
/// undefined tensor, a list of symbolic sizes.
const NEVER: &[(&str, usize)] = &[
    ("set_", 1),
    ("record_stream", 1),
    ("empty", 0),
    ("index", 1),
    ("index_put", 1),
    ("index_put_", 1),
    ("_index_put_impl_", 1),
    ("_unsafe_index", 1),
    ("_unsafe_index_put", 1),
    ("_cudnn_attention_backward", 8),
    ("_scaled_dot_product_cudnn_attention_backward", 8),
];

/// From this argument on, the schema has defaults that do not change the work: they stand for values of files without any.
const DEFAULTS: &[(&str, usize)] = &[
    ("_foreach_add_", 2),
    ("add", 2),
    ("add_", 2),
    ("addcdiv_", 3),
    ("addcmul_", 3),
    ("addmm", 3),
    ("baddbmm", 3),
    ("binary_cross_entropy_with_logits", 2),
    ("clone", 1),
    ("contiguous", 1),
    ("copy_", 2),
    ("cross_entropy_loss", 2),
    ("embedding", 2),
    ("empty_like", 1),
    ("linear", 2),
    ("ones_like", 1),
    ("sub", 2),
    ("sub_", 2),
    ("zeros_like", 1),
];

/// Ops that torch.autocast gives its number format (`lower_precision_fp` in `aten/src/ATen/autocast_mode.h`, PyTorch 2.15).
const CAST: &[&str] = &[
    "linear",
    "matmul",
    "addmm",
    "bmm",
    "baddbmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "scaled_dot_product_attention",
];

/// The number format of the autocast around the op: it got 32-bit and shorter floats, which it only takes there.
pub fn autocast(op: &str, kinds: &[Value]) -> Option<&'static str> {
    let has = |kind: &str| kinds.iter().any(|own| own.as_str() == Some(kind));
    let short = [("c10::BFloat16", "bfloat16"), ("c10::Half", "float16")];
    let dtype = short.into_iter().find(|(kind, _)| has(kind)).map(|(_, dtype)| dtype);
    dtype.filter(|_| CAST.contains(&op) && has("float"))
}

fn place(table: &[(&str, usize)], op: &str) -> Option<usize> {
    table.iter().find(|(name, _)| *name == op).map(|(_, at)| *at)
}

/// Whether PyTorch alone can run the ops of a namespace.
pub(crate) fn is_alone(space: &str) -> bool {
    ALONE.contains(&space)
}

/// Whether an argument without a recorded value cannot be left out. `no_values`: the file has none of any op.
pub fn is_missing(op: &str, at: usize, no_values: bool) -> bool {
    place(NEVER, op) == Some(at) || no_values && place(DEFAULTS, op).is_none_or(|from| at < from)
}

/// Integers of a tensor argument are below this: indices must lie in the table. 1 where that is not known: all zeros.
pub fn high(op: &str, at: usize, dims: &[Value], values: Option<&[Value]>) -> i64 {
    let value = |at: usize| -> Option<i64> { values?.get(at)?.as_str()?.parse().ok() };
    let size = |of: usize, dim: i64| {
        let sizes = dims.get(of)?.as_array()?;
        let dim = if dim < 0 { dim + sizes.len() as i64 } else { dim };
        sizes.get(usize::try_from(dim).ok()?)?.as_i64()
    };
    let high = match (op, at) {
        ("embedding" | "_embedding_bag" | "embedding_bag", 1) => size(0, 0),
        ("embedding_dense_backward", 1) => value(2),
        ("index_select" | "gather", 2) => size(0, value(1).unwrap_or(0)),
        ("nll_loss_forward" | "nll_loss" | "cross_entropy_loss", 1) => size(0, 1),
        _ => None,
    };
    high.unwrap_or(1).max(1)
}

/// Elements that the storage of a tensor has at least: a view by strides may reach beyond the tensor that it is taken of.
pub(crate) fn least_span(op: &str, at: usize, values: Option<&[Value]>) -> Option<i64> {
    if at != 0 || !["as_strided", "as_strided_"].contains(&op) {
        return None;
    }
    let list = |at: usize| serde_json::from_str::<Vec<i64>>(values?.get(at)?.as_str()?).ok();
    let (sizes, strides) = (list(1)?, list(2)?);
    // (Left to its default, the offset is 0.)
    let offset = values?.get(3).and_then(Value::as_str).and_then(|text| text.parse().ok());
    let offset: i64 = offset.unwrap_or(0);
    let steps =
        sizes.iter().zip(&strides).map(|(size, step)| size.saturating_sub(1).saturating_mul(*step));
    Some(steps.fold(offset.saturating_add(1), i64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_lie_in_the_dimension_that_they_select_from() {
        let parse = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap();
        let dims = parse("[[50,8],[],[4]]");
        let values = parse(r#"["","-1",""]"#);
        assert_eq!(high("index_select", 2, &dims, Some(&values)), 8);
        assert_eq!(
            high("gather", 2, &dims, None),
            50,
            "the first dimension where none is recorded"
        );
        assert_eq!(high("embedding", 1, &dims, None), 50);
        assert_eq!(high("_embedding_bag", 2, &dims, None), 1, "offsets");
        assert_eq!(high("embedding", 1, &parse("[3]"), None), 1);
    }

    #[test]
    fn a_view_by_strides_fits_into_the_storage() {
        let values =
            serde_json::from_str::<Vec<Value>>(r#"["","[5,33]","[512,1]","512"]"#).unwrap();
        assert_eq!(least_span("as_strided", 0, Some(&values)), Some(512 + 4 * 512 + 33));
        assert_eq!(least_span("as_strided", 1, Some(&values)), None);
        assert_eq!(least_span("view", 0, Some(&values)), None);
    }

    #[test]
    fn mixed_floats_of_a_product_come_from_autocast() {
        let kinds = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap();
        let mixed = kinds(r#"["c10::BFloat16","float","Scalar"]"#);
        assert_eq!(autocast("linear", &mixed), Some("bfloat16"));
        assert_eq!(autocast("mul", &mixed), None, "the result has the wider type");
        assert_eq!(autocast("linear", &kinds(r#"["c10::Half","c10::Half"]"#)), None);
    }

    #[test]
    fn a_value_is_missing_where_the_schema_has_no_default() {
        assert!(is_missing("index", 1, false) && !is_missing("index", 0, false));
        assert!(is_missing("empty", 0, false), "sizes that were symbols");
        assert!(!is_missing("add", 2, true) && is_missing("add", 1, true));
        assert!(is_missing("view", 1, true) && !is_missing("view", 1, false));
        assert!(is_alone("aten") && !is_alone("vllm") && !is_alone("c10d"));
    }
}
