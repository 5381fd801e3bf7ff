//! The JSON document that `kinetoscope cpu --json` prints.
//!
//! One object with a `schema` number. A change of meaning raises the number; a new key does not.

use host::HostReport;
use serde::Serialize;

/// Schema of [`cpu_json`].
pub const CPU_SCHEMA: u32 = 1;

/// Rows of the three tables that can be long; the numbers of all rows stand beside them.
const THREADS: usize = 100;
const FRAMES: usize = 200;
const MODULES: usize = 200;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    report: &'a HostReport,
}

/// `kinetoscope cpu --json`: every row, or the first 100 threads, 200 frames and 200 modules.
///
/// # Errors
/// Never for these types; required by serde's signature.
pub fn cpu_json(mut report: HostReport, all: bool) -> Result<String, serde_json::Error> {
    if !all {
        report.threads.list.truncate(THREADS);
        report.python.frames.truncate(FRAMES);
        report.modules.list.truncate(MODULES);
    }
    let document = Document { schema: CPU_SCHEMA, report: &report };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
