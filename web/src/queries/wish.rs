//! Converts form fields to artifact options.

use std::collections::BTreeMap;

use kinetoscope::artifacts::{FACT_FIELDS, UserFacts, cutoff_of_text};

use super::stages::Narrowed;
use crate::protocol::{ArtifactWish, Beside};
use crate::state::ArtifactForm;

/// The key of the errors about `server_args.json`.
pub const SERVER_ARGS: &str = "server_args";
/// The key of the errors about the cut-off.
pub const CUTOFF: &str = "cutoff";

/// The facts of a form as a facts file, and what is wrong with a field, by key. What is wrong is left out.
#[must_use]
pub fn facts(form: &ArtifactForm) -> (String, BTreeMap<&'static str, String>) {
    let mut errors = BTreeMap::new();
    let mut members = Vec::new();
    for field in FACT_FIELDS {
        let typed = form.facts.get(field.key).map_or("", String::as_str);
        match field.value(typed) {
            Ok(Some(value)) => members.push(format!("\"{}\":{value}", field.key)),
            Ok(None) => {}
            Err(error) => {
                errors.insert(field.key, error.to_string());
            }
        }
    }
    (format!("{{{}}}", members.join(",")), errors)
}

/// What is asked for.
///
/// # Errors
/// What is wrong, by the key of its field.
pub fn wish(
    form: &ArtifactForm,
    server_args: Option<&str>,
    narrowed: &Narrowed,
    count_before_window: bool,
    beside: Vec<Beside>,
) -> Result<ArtifactWish, BTreeMap<&'static str, String>> {
    let (facts, mut errors) = facts(form);
    if let Some(text) = server_args
        && let Err(error) = UserFacts::default().take_server_args(text)
    {
        errors.insert(SERVER_ARGS, error.to_string());
    }
    let cutoff_pct = cutoff_of_text(&form.cutoff).unwrap_or_else(|error| {
        errors.insert(CUTOFF, error.to_string());
        0.0
    });
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(ArtifactWish {
        facts,
        server_args: server_args.map(str::to_owned),
        stage: narrowed.stage.clone(),
        device: narrowed.device.clone(),
        cutoff_pct,
        count_before_window,
        keep_names: form.keep_names,
        beside,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(facts: &[(&str, &str)]) -> ArtifactForm {
        let facts = facts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        ArtifactForm { facts: facts.collect(), ..ArtifactForm::default() }
    }

    #[test]
    fn a_form_becomes_a_facts_file_that_the_facade_takes() {
        let form = typed(&[
            ("trial_id", " 17 "),
            ("base_image", "a\"b"),
            ("gpu_device_ids", "0,1"),
            ("target_arch", ""),
        ]);
        let wish =
            wish(&form, Some("{\"tp_size\": 8}"), &Narrowed::default(), true, Vec::new()).unwrap();
        let facts = UserFacts::from_json(&wish.facts).unwrap();
        assert_eq!((facts.trial_id.as_deref(), facts.target_arch), (Some("17"), None));
        assert_eq!(facts.base_image.as_deref(), Some("a\"b"));
        assert_eq!(facts.gpu_device_ids, Some(vec![0, 1]));
        assert!((wish.cutoff_pct - 1.0).abs() < f64::EPSILON && !wish.keep_names);
        assert!(wish.count_before_window);
    }

    #[test]
    fn what_is_wrong_stands_at_its_field() {
        let mut form = typed(&[("preflight_passed", "perhaps"), ("trial_id", "17")]);
        form.cutoff = "a lot".into();
        let errors = wish(&form, Some("[]"), &Narrowed::default(), false, Vec::new()).unwrap_err();
        let keys: Vec<&str> = errors.keys().copied().collect();
        assert_eq!(keys, ["cutoff", "preflight_passed", "server_args"]);
        assert_eq!(errors["preflight_passed"], "preflight_passed must be yes or no");
    }
}
