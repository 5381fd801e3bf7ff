//! The JSON document that `kinetoscope diagnose --json` prints.
//!
//! One object with a `schema` number. A change of meaning raises the number; a new key does not.

use ranks::Compared;
use serde::Serialize;

use crate::{Action, Diagnosis, Finding, Iterations, ModuleTree, StageWall, WallRow};

/// Schema of [`diagnosis_json`].
const DIAGNOSIS_SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    headline: Option<&'a str>,
    wall: &'a [WallRow],
    wall_stages: &'a [StageWall],
    iterations: Option<&'a Iterations>,
    modules: Option<&'a ModuleTree>,
    findings: &'a [Finding],
    actions: &'a [Action],
    ranks: Option<&'a Compared>,
}

/// `kinetoscope diagnose --json`: only what is said; actions in the order in which they come first. `ranks`: those of its run, where
/// several are given.
///
/// # Errors
/// Never for these types; required by serde's signature.
pub fn diagnosis_json(
    diagnosis: &Diagnosis,
    ranks: Option<&Compared>,
) -> Result<String, serde_json::Error> {
    // (The iterations say which of them are cold.)
    let Diagnosis {
        headline,
        wall,
        wall_stages,
        left_out: _,
        iterations,
        modules,
        findings,
        actions,
        platform: _,
    } = diagnosis;
    let (headline, modules) = (headline.as_deref(), modules.as_ref());
    let iterations = iterations.as_ref();
    let document = Document {
        schema: DIAGNOSIS_SCHEMA,
        headline,
        wall,
        wall_stages,
        iterations,
        modules,
        findings,
        actions,
        ranks,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
