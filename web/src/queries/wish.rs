//! Converts form fields to artifact options.

use std::collections::BTreeMap;

use kinetoscope::artifacts::{FACT_FIELDS, cutoff_of_text};

use super::stages::Narrowed;
use crate::protocol::{ArtifactWish, Beside};
use crate::state::{ArtifactForm, ServerArgs};

/// The key of the errors about `server_args.json`.
pub const SERVER_ARGS: &str = "server_args";
/// The key of the errors about the cut-off.
pub const CUTOFF: &str = "cutoff";

/// What is wrong with the fields of a form, by key.
fn faults(form: &ArtifactForm) -> BTreeMap<&'static str, String> {
    let faults = FACT_FIELDS.iter().filter_map(|field| {
        let typed = form.facts.get(field.key)?;
        Some((field.key, field.value(typed).err()?.to_string()))
    });
    let mut found = BTreeMap::new();
    found.extend(faults);
    found
}

/// What is asked for.
///
/// # Errors
/// What is wrong, by the key of its field.
pub fn wish(
    form: &ArtifactForm,
    server_args: Option<&ServerArgs>,
    narrowed: &Narrowed,
    count_before_window: bool,
    beside: Vec<Beside>,
) -> Result<ArtifactWish, BTreeMap<&'static str, String>> {
    let mut errors = faults(form);
    if let Some(fault) = server_args.and_then(|flags| flags.fault.clone()) {
        errors.insert(SERVER_ARGS, fault);
    }
    let cutoff_pct = cutoff_of_text(&form.cutoff).unwrap_or_else(|error| {
        errors.insert(CUTOFF, error.to_string());
        0.0
    });
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(ArtifactWish {
        facts: form.facts.clone(),
        server_args: server_args.map(|flags| flags.text.clone()),
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
    fn a_form_becomes_a_wish() {
        let form = typed(&[("trial_id", " 17 "), ("gpu_device_ids", "0,1"), ("target_arch", "")]);
        let flags = ServerArgs { text: "{\"tp_size\": 8}".into(), fault: None };
        let wish = wish(&form, Some(&flags), &Narrowed::default(), true, Vec::new()).unwrap();
        assert_eq!(wish.facts, form.facts);
        assert_eq!(wish.server_args.as_deref(), Some("{\"tp_size\": 8}"));
        assert!((wish.cutoff_pct - 1.0).abs() < f64::EPSILON && !wish.keep_names);
        assert!(wish.count_before_window);
    }

    #[test]
    fn what_is_wrong_stands_at_its_field() {
        let mut form = typed(&[("preflight_passed", "perhaps"), ("trial_id", "17")]);
        form.cutoff = "a lot".into();
        let flags = ServerArgs { text: "[]".into(), fault: Some("no object".into()) };
        let errors =
            wish(&form, Some(&flags), &Narrowed::default(), false, Vec::new()).unwrap_err();
        let keys: Vec<&str> = errors.keys().copied().collect();
        assert_eq!(keys, ["cutoff", "preflight_passed", "server_args"]);
        assert_eq!(errors["preflight_passed"], "preflight_passed must be yes or no");
    }
}
