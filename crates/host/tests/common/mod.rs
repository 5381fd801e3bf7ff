//! What the tests of made traces share.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use host::{HostIndex, HostReport, host, wants_inputs};
use serde_json::Value;

/// The figures of the host of a file.
pub fn report_of(file: &Value) -> HostReport {
    let bytes = serde_json::to_vec(file).unwrap();
    let mut decoder = decode::Decoder::new();
    decoder.push(&bytes).unwrap();
    let decoded = decoder.finish().unwrap();
    let mut reader = decode::DetailsReader::with_host(&decoded, wants_inputs);
    reader.push(&bytes);
    host(&HostIndex::of(&decoded.trace), &reader.finish())
}
