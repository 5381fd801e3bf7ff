//! The stage from a file's name, for traces without stage annotations.

use super::Stage;

/// Folders above a file can be about anything; only the nearest are asked.
const COMPONENTS: usize = 6;

/// The stage in the last components of a path: a word of its own, `…-TP-0-DECODE.trace.json.gz` or
/// `prefill/rank0.json`; the nearest component that has one decides. `prefilldecode` is no such word, and a
/// name with both words does not identify the stage of a slice.
pub(crate) fn stage_of_path(path: &str) -> Option<Stage> {
    for component in path.rsplit(['/', '\\']).take(COMPONENTS) {
        let lower = component.to_ascii_lowercase();
        let (mut extend, mut decode) = (false, false);
        for word in lower.split(|letter: char| !letter.is_ascii_alphanumeric()) {
            extend |= word == "extend" || word == "prefill";
            decode |= word == "decode";
        }
        match (extend, decode) {
            (true, false) => return Some(Stage::Extend),
            (false, true) => return Some(Stage::Decode),
            (true, true) => return None,
            (false, false) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_its_own_counts() {
        for (path, stage) in [
            ("1741-TP-0-DECODE.trace.json.gz", Some(Stage::Decode)),
            ("1741-TP-0-EXTEND.trace.json.gz", Some(Stage::Extend)),
            ("run_prefill.json", Some(Stage::Extend)),
            ("traces/decode/rank0.json", Some(Stage::Decode)),
            (r"traces\prefill\rank0.json", Some(Stage::Extend)),
            ("mi300_sglang_prefilldecode.json.gz", None),
            ("prefill_decode.json", None),
            ("decoder.json", None),
            ("prefill/run-DECODE.json", Some(Stage::Decode)),
            ("decode/1/2/3/4/5/6.json", None),
            ("", None),
        ] {
            assert_eq!(stage_of_path(path), stage, "{path}");
        }
    }
}
