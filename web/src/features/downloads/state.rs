//! Run details from the form, and what is chosen for artifacts.

use std::collections::BTreeMap;

/// A `server_args.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerArgs {
    /// Its text.
    pub text: String,
    /// Why it cannot be used.
    pub fault: Option<String>,
}

/// What a person told and chose, for the artifacts of all files.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactForm {
    /// Facts as they were typed, by key.
    pub facts: BTreeMap<String, String>,
    /// Whether the browser keeps them between visits.
    pub remember: bool,
    /// The cut-off of the summary as it was typed, in percent.
    pub cutoff: String,
    /// Whether names of hosts and users stay.
    pub keep_names: bool,
}

impl Default for ArtifactForm {
    fn default() -> Self {
        Self {
            facts: BTreeMap::new(),
            remember: false,
            // As on the command line.
            cutoff: "1".to_owned(),
            keep_names: false,
        }
    }
}
