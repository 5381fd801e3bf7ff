//! How a finding is written down.

use report::{Confidence, Finding};

/// Adds a finding: rule, confidence; observation, hypothesis, action, validation and evidence. (One function for all is small.)
#[inline(never)]
pub(crate) fn put(
    to: &mut Vec<Finding>,
    rule: &'static str,
    confidence: Confidence,
    texts: [&str; 5],
) {
    let [observation, hypothesis, action, validation, evidence] = texts.map(str::to_owned);
    let evidence = vec![evidence];
    to.push(Finding {
        rule: rule.into(),
        observation,
        hypothesis,
        first: String::new(),
        action,
        place: String::new(),
        gain: String::new(),
        validation,
        confidence,
        evidence,
    });
}
