//! The JSON document that `kinetoscope diagnose --json` prints.
//!
//! One object with a `schema` number. A change of meaning raises the number; a new key does not.

use serde::Serialize;

use crate::{Action, Diagnosis, Finding, WallRow};

/// Schema of [`diagnosis_json`].
pub const DIAGNOSIS_SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    headline: Option<&'a str>,
    wall: &'a [WallRow],
    findings: &'a [Finding],
    actions: &'a [Action],
}

/// `kinetoscope diagnose --json`: only what is said; actions in the order in which they come first.
///
/// # Errors
/// Never for these types; required by serde's signature.
pub fn diagnosis_json(diagnosis: &Diagnosis) -> Result<String, serde_json::Error> {
    let Diagnosis { headline, wall, findings, actions } = diagnosis;
    let headline = headline.as_deref();
    let document = Document { schema: DIAGNOSIS_SCHEMA, headline, wall, findings, actions };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
