//! The process groups that a file lists.

use serde_json::Value;
use timeline::device::member;
use trace::Trace;

/// The groups of several ranks that a file lists (`distributedInfo.pg_config`; PyTorch since 2.5) and `rank` is in, each once.
pub(crate) fn groups_of(trace: &Trace, rank: i64) -> Vec<Vec<i64>> {
    let info = member(trace, "distributedInfo").unwrap_or_default();
    let mut groups: Vec<Vec<i64>> = Vec::new();
    for group in info.get("pg_config").and_then(Value::as_array).into_iter().flatten() {
        let ranks = group.get("ranks").and_then(Value::as_array);
        let ranks: Vec<i64> = ranks.into_iter().flatten().filter_map(Value::as_i64).collect();
        if ranks.len() > 1 && ranks.contains(&rank) && !groups.contains(&ranks) {
            groups.push(ranks);
        }
    }
    groups
}
