//! Converts form fields to artifact options.

use kinetoscope::artifacts::{FACT_FIELDS, cutoff_of_text};

use crate::features::triage::queries::Narrowed;
use crate::protocol::{ArtifactWish, is_run};
use crate::state::{ArtifactForm, FileEntry, ServerArgs};

/// The key of the errors about `server_args.json`.
pub const SERVER_ARGS: &str = "server_args";
/// The key of the errors about the cut-off.
pub const CUTOFF: &str = "cutoff";

/// What is wrong with the fields of a form, by key, in the order of the fields.
pub type Errors = Vec<(&'static str, String)>;

/// What is wrong with a field.
#[must_use]
pub fn error_of<'a>(errors: &'a Errors, key: &str) -> Option<&'a String> {
    errors.iter().find(|(of, _)| *of == key).map(|(_, error)| error)
}

fn faults(form: &ArtifactForm) -> Errors {
    let faults = FACT_FIELDS.iter().filter_map(|field| {
        let typed = form.facts.get(field.key)?;
        Some((field.key, field.check_text(typed).err()?.to_string()))
    });
    faults.collect()
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
    file: &FileEntry,
) -> Result<ArtifactWish, Errors> {
    let mut errors = faults(form);
    if let Some(fault) = server_args.and_then(|flags| flags.fault.clone()) {
        errors.push((SERVER_ARGS, fault));
    }
    let cutoff_pct = cutoff_of_text(&form.cutoff).unwrap_or_else(|error| {
        errors.push((CUTOFF, error.to_string()));
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
        beside: file.told_by(),
        ranks: file.ranks.iter().filter(|(_, of)| !is_run(of)).map(|(job, _)| *job).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::JobId;

    fn typed(facts: &[(&str, &str)]) -> ArtifactForm {
        let facts = facts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        ArtifactForm { facts: facts.collect(), ..ArtifactForm::default() }
    }

    #[test]
    fn a_form_becomes_a_wish() {
        let form = typed(&[("trial_id", " 17 "), ("gpu_device_ids", "0,1"), ("target_arch", "")]);
        let flags = ServerArgs { text: "{\"tp_size\": 8}".into(), fault: None };
        let file = FileEntry::new(JobId(1), "run.json".into(), 1);
        let wish = wish(&form, Some(&flags), &Narrowed::default(), true, &file).unwrap();
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
        let file = FileEntry::new(JobId(1), "run.json".into(), 1);
        let errors = wish(&form, Some(&flags), &Narrowed::default(), false, &file).unwrap_err();
        let keys: Vec<&str> = errors.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["preflight_passed", "server_args", "cutoff"]);
        let error = error_of(&errors, "preflight_passed").unwrap();
        assert_eq!(error, "preflight_passed must be yes or no");
    }
}
