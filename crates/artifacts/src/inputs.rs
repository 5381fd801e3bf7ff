//! The rank and the possible role of a file, from its name and content.

use trace::Trace;
use triage::Signs;

/// The rank of a trace: from `distributedInfo`, else from its name.
#[must_use]
pub fn rank(trace: &Trace, file_name: &str) -> Option<i64> {
    let info = trace.metadata.get("distributedInfo");
    let info: Option<serde_json::Value> = info.and_then(|json| serde_json::from_str(json).ok());
    let own = info.and_then(|info| info.get("rank")?.as_i64());
    own.or_else(|| rank_of_name(file_name))
}

/// Characteristics of a trace that decide its role next to other files.
#[must_use]
pub fn signs(trace: &Trace, file_name: &str) -> Signs {
    Signs { rank: rank(trace, file_name), ..Signs::of(trace) }
}

/// The rank in a file name: `run-TP-3.trace.json.gz`, `x_rank0.json`, `tp1-decode.json`, `worker2_a.json`.
#[must_use]
pub fn rank_of_name(file_name: &str) -> Option<i64> {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name).to_ascii_lowercase();
    let number = |text: &str| -> Option<i64> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        // A bare number must end the word.
        let ends = text[end..].chars().next().is_none_or(|next| matches!(next, '_' | '.' | '-'));
        if ends { text[..end].parse().ok() } else { None }
    };
    let word = |word: &str| {
        name.match_indices(word).find_map(|(at, _)| {
            let starts = name[..at].chars().next_back().is_none_or(|c| matches!(c, '_' | '-'));
            if starts { number(&name[at + word.len()..]) } else { None }
        })
    };
    word("tp").or_else(|| word("tp-")).or_else(|| word("rank")).or_else(|| word("worker"))
}

/// Names of files next to traces that are not traces.
#[must_use]
pub fn is_no_trace_by_name(file_name: &str) -> bool {
    let name = file_name.to_ascii_lowercase();
    let json = name.ends_with(".json") || name.ends_with(".json.gz");
    let beside = ["server_args.json", "metadata.json", "config.json", "execution_details.json"];
    let ours = [crate::METADATA, crate::KERNELS, crate::OVERLAP, crate::FUSE, crate::FIXED_TRACE];
    !json || beside.contains(&name.as_str()) || ours.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_ranks() {
        for (name, rank) in [
            ("1712-TP-3.trace.json.gz", Some(3)),
            ("x_tp1-decode.json", Some(1)),
            ("TP0.json", Some(0)),
            ("rank12_iter3.json", Some(12)),
            ("/runs/tp7/a_rank2.json", Some(2)),
            ("worker2.pt.trace.json", Some(2)),
            ("http0.json", None),
            ("rank0x.json", None),
            ("trace.json", None),
        ] {
            assert_eq!(rank_of_name(name), rank, "{name}");
        }
    }

    #[test]
    fn what_lies_beside_traces_is_none() {
        for name in
            ["server_args.json", "kernel_table.json", "notes.txt", "perfetto_fixed_trace.json.gz"]
        {
            assert!(is_no_trace_by_name(name), "{name}");
        }
        assert!(!is_no_trace_by_name("run.pt.trace.json") && !is_no_trace_by_name("a.JSON.GZ"));
    }
}
