//! `execution_details.json`, which SGLang writes next to its traces: the batch size of each capture trace.

use std::fmt;

use serde_json::Value;
use triage::CaptureFacts;

use crate::base_name;

/// The error for text that is not an `execution_details.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDetails(String);

impl fmt::Display for NotDetails {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not a list of captures: {}", self.0)
    }
}

impl std::error::Error for NotDetails {}

/// The captures that an `execution_details.json` lists, a list of `{file, batch_size, mode}`.
///
/// # Errors
/// When the text has another form, with the entry.
pub fn execution_details(json: &str) -> Result<Vec<CaptureFacts>, NotDetails> {
    let document: Value = serde_json::from_str(json.trim_start_matches('\u{feff}'))
        .map_err(|error| NotDetails(format!("it is not JSON: {error}")))?;
    let Value::Array(entries) = document else {
        return Err(NotDetails("it is not a JSON array".to_owned()));
    };
    let entry = |(at, entry): (usize, &Value)| {
        let Some(file) = entry.get("file").and_then(Value::as_str) else {
            return Err(NotDetails(format!("entry {at} has no file")));
        };
        let batch_size = match entry.get("batch_size") {
            None | Some(Value::Null) => None,
            Some(size) => Some(size.as_u64().ok_or_else(|| {
                NotDetails(format!("entry {at}: batch_size {size} is not an integer"))
            })?),
        };
        let mode = entry.get("mode").and_then(Value::as_str).map(str::to_owned);
        Ok(CaptureFacts { name: base_name(file).to_owned(), batch_size, mode })
    };
    entries.iter().enumerate().map(entry).collect()
}

/// The entry of a capture trace; the file may have been compressed or decompressed since.
#[must_use]
pub fn details_of_capture(all: &[CaptureFacts], file_name: &str) -> Option<CaptureFacts> {
    let plain = |name: &str| {
        let name = base_name(name);
        name.strip_suffix(".gz").unwrap_or(name).to_owned()
    };
    let wanted = plain(file_name);
    let found = all.iter().find(|details| plain(&details.name) == wanted)?;
    Some(CaptureFacts { name: base_name(file_name).to_owned(), ..found.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_file() {
        let text = r#"[{"file": "captures/bs_32.json.gz", "batch_size": 32, "mode": "FULL"},
            {"file": "bs_1.json", "mode": "FULL"}]"#;
        let all = execution_details(text).unwrap();
        let of = |name: &str| details_of_capture(&all, name);
        let expected = |name: &str, batch_size| {
            let mode = Some("FULL".to_owned());
            Some(CaptureFacts { name: name.to_owned(), batch_size, mode })
        };
        assert_eq!(of("/runs/bs_32.json"), expected("bs_32.json", Some(32)));
        assert_eq!(of("bs_1.json.gz"), expected("bs_1.json.gz", None));
        assert_eq!(of("bs_2.json"), None);
    }

    #[test]
    fn another_form_is_refused_with_its_entry() {
        for (text, what) in [
            ("", "not JSON"),
            ("{}", "not a JSON array"),
            ("[{\"file\": \"a\"}, {}]", "entry 1 has no file"),
            ("[{\"file\": \"a\", \"batch_size\": -1}]", "entry 0: batch_size -1"),
        ] {
            let error = execution_details(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn the_list_of_the_corpus_is_read() {
        let Some(file) = testkit::shared("corpus/not-traces/execution_details.json") else {
            return;
        };
        let all = execution_details(&std::fs::read_to_string(file).unwrap()).unwrap();
        let known: Vec<_> = all.iter().map(|of| (of.name.as_str(), of.in_words())).collect();
        assert_eq!(known, [("bs_32_rank0.json.gz", "FULL, batch 32".to_owned())]);
    }
}
