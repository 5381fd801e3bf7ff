//! What a report of one step says of its figures.

use super::TriageReport;

impl TriageReport {
    /// The sentence that names the step that all figures are of; `None` for the whole file.
    #[must_use]
    pub fn step_sentence(&self) -> Option<String> {
        let step = self.step.as_ref()?;
        Some(format!(
            "All figures are of {step} alone: its CPU work, and the GPU work that it launched, even if that runs after the step."
        ))
    }
}
