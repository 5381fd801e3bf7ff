//! Lists of an op's inputs, as their JSON is recorded: sizes, types or strides, an entry for each argument.

use serde_json::Value;

/// The entries of such a list; none where it was not recorded.
#[must_use]
pub fn entries(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The sizes or strides of one tensor; `None` for a list of tensors and for what is no tensor.
#[must_use]
pub fn numbers(entry: &Value) -> Option<Vec<i64>> {
    entry.as_array()?.iter().map(Value::as_i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_has_numbers_and_a_list_of_tensors_has_none() {
        let all = entries("[[2,3],[[2],[3]],[],\"\"]");
        let read: Vec<Option<Vec<i64>>> = all.iter().map(numbers).collect();
        assert_eq!(read, [Some(vec![2, 3]), None, Some(Vec::new()), None]);
        assert!(entries("").is_empty(), "not recorded");
    }
}
