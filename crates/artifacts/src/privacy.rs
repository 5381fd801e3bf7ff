//! Removes names of hosts and users from artifacts, unless the user keeps them.
//!
//! Nothing of a trace's environment keys (`host_name`, `username`, `tw_*`, `mast_*`, `INFO`) is ever copied. What
//! is left to do is to take the same names out of texts that are: paths, file names, launch flags.

use report::{Cell, Finding, Section, Unit};
use serde_json::{Map, Value};
use trace::Metadata;

/// What stands in place of a value that was taken out.
pub const STRIPPED: &str = "[stripped]";

/// Names of the host and the user, as far as the file tells them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    known: Vec<String>,
    keep: bool,
}

impl Names {
    /// The names in a file's metadata; with `keep`, nothing is taken out of any text.
    #[inline(never)]
    pub(crate) fn of(metadata: &Metadata, keep: bool) -> Self {
        let text = |key: &str| {
            serde_json::from_str::<Value>(metadata.get(key)?).ok()?.as_str().map(str::to_owned)
        };
        let node = metadata.get("metadata").and_then(|json| {
            let value: Value = serde_json::from_str(json).ok()?;
            value.pointer("/system/uname/node")?.as_str().map(str::to_owned)
        });
        let known = ["host_name", "hostname", "username", "user", "tw_user"].into_iter().map(text);
        let mut known: Vec<String> = known.chain([node]).flatten().collect();
        // A name of two letters would also be found where it means something else.
        known.retain(|name| name.len() > 2 && name != "root");
        // The longest first: `node7.cluster` before `node7`.
        trace::sort_by(&mut known, |a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Self { known, keep }
    }

    /// `text` without these names, and without the user's in the path of a home folder.
    #[inline(never)]
    pub(crate) fn strip(&self, text: &str) -> String {
        if self.keep {
            return text.to_owned();
        }
        let mut text = without_home(text);
        for name in &self.known {
            text = without_word(&text, name);
        }
        text
    }

    /// A document whose texts are without these names. Keys stay.
    pub(crate) fn strip_texts(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.strip(&text)),
            Value::Array(values) => {
                values.into_iter().map(|value| self.strip_texts(value)).collect()
            }
            Value::Object(members) => Value::Object(
                members.into_iter().map(|(key, value)| (key, self.strip_texts(value))).collect(),
            ),
            other => other,
        }
    }

    /// Launch flags without these names, addresses and secrets. Secrets go in any case.
    pub(crate) fn strip_flags(&self, flags: &Map<String, Value>) -> Map<String, Value> {
        flags
            .iter()
            .map(|(key, value)| {
                let value = match value {
                    Value::Null => Value::Null,
                    _ if self.is_hidden(key) => Value::from(STRIPPED),
                    value => self.strip_value(value),
                };
                (key.clone(), value)
            })
            .collect()
    }

    /// A list of values, which may be a command line: `--api-key` and its value are two of them, or one.
    fn strip_arguments(&self, values: &[Value]) -> Value {
        let mut after_secret = false;
        let strip = |value: &Value| {
            let hidden = std::mem::take(&mut after_secret);
            let Some(text) = value.as_str().filter(|text| text.starts_with('-')) else {
                return if hidden { Value::from(STRIPPED) } else { self.strip_value(value) };
            };
            match text.split_once('=') {
                Some((key, _)) if self.is_hidden(key) => Value::from(format!("{key}={STRIPPED}")),
                None if self.is_hidden(text) => {
                    after_secret = true;
                    value.clone()
                }
                _ => self.strip_value(value),
            }
        };
        values.iter().map(strip).collect()
    }

    /// Whether the value of a flag is a secret or an address.
    fn is_hidden(&self, key: &str) -> bool {
        let key = key.trim_start_matches('-').replace('-', "_").to_ascii_lowercase();
        is_secret(&key) || (!self.keep && is_address(&key))
    }

    fn strip_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(without_login(&self.strip(text))),
            Value::Array(values) => self.strip_arguments(values),
            Value::Object(flags) => Value::Object(self.strip_flags(flags)),
            other => other.clone(),
        }
    }
}

/// A chapter without these names. Kernel names stay as they are: they are measured, not written by a person.
#[inline(never)]
pub(crate) fn strip_section(names: &Names, section: &Section) -> Section {
    let mut section = section.clone();
    section.intro.iter_mut().for_each(|text| *text = names.strip(text));
    for drawing in &mut section.drawings {
        for text in drawing.texts() {
            *text = names.strip(text);
        }
    }
    for table in &mut section.tables {
        *table = table.mapped(|column, cell| match cell {
            Cell::Text(text) if column.unit != Unit::Name => names.strip(&text).into(),
            other => other,
        });
    }
    for finding in &mut section.findings {
        let Finding { observation, hypothesis, action, validation, .. } = finding;
        for text in [observation, hypothesis, action, validation] {
            *text = names.strip(text);
        }
        finding.evidence.iter_mut().for_each(|text| *text = names.strip(text));
    }
    section
}

fn is_secret(key: &str) -> bool {
    const WORDS: &[&str] = &[
        "api_key",
        "apikey",
        "password",
        "passwd",
        "secret",
        "hf_token",
        "access_token",
        "auth_token",
        "credential",
        "private_key",
        "authorization",
    ];
    key == "token" || WORDS.iter().any(|word| key.contains(word))
}

/// `redis://me:word@node` without `me:word`, in any case: it is a secret.
fn without_login(text: &str) -> String {
    let login = text.split_once("://").and_then(|(scheme, rest)| {
        let (login, _) = rest[..rest.find('/').unwrap_or(rest.len())].rsplit_once('@')?;
        login.contains(':').then(|| format!("{scheme}://{STRIPPED}{}", &rest[login.len()..]))
    });
    login.unwrap_or_else(|| text.to_owned())
}

fn is_address(key: &str) -> bool {
    matches!(key, "host" | "hostname" | "host_name" | "username" | "user" | "node_ip")
        || ["_addr", "_address", "_host", "_hostname"].iter().any(|end| key.ends_with(end))
}

/// `/home/me/x` becomes `/home/~/x`.
#[inline(never)]
fn without_home(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    const HOMES: &[&str] = &["/home/", "/Users/", "\\Users\\"];
    while let Some((at, home)) =
        HOMES.iter().filter_map(|home| Some((rest.find(home)?, *home))).min()
    {
        let start = at + home.len();
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(['/', '\\', ' ', '"', ';', ':']).unwrap_or(rest.len());
        out.push('~');
        rest = &rest[end..];
    }
    out + rest
}

/// `text` with `~` for `word` where it is no part of a longer word.
#[inline(never)]
fn without_word(text: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let part = |c: char| c.is_alphanumeric();
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        if before.is_some_and(part) || after.is_some_and(part) {
            continue;
        }
        out.push_str(&text[done..at]);
        out.push('~');
        done = end;
    }
    out + &text[done..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(members: &[(&str, &str)]) -> Metadata {
        let members = members.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Metadata { members }
    }

    #[test]
    fn names_leave_paths_and_file_names() {
        let names = Names::of(
            &metadata(&[
                ("host_name", "\"node7.cluster\""),
                ("username", "\"mojif\""),
                ("metadata", r#"{"system": {"uname": {"node": "moca-12"}}}"#),
            ]),
            false,
        );
        for (text, stripped) in [
            ("/home/ajassani/x/run.json", "/home/~/x/run.json"),
            ("/home/a", "/home/~"),
            ("C:\\Users\\jo\\t.json", "C:\\Users\\~\\t.json"),
            ("node7.cluster_4711.pt.trace.json", "~_4711.pt.trace.json"),
            ("moca-12_mojif.json", "~_~.json"),
            ("mojifical.json", "mojifical.json"),
            ("vllm/v1/worker.py:3 f", "vllm/v1/worker.py:3 f"),
        ] {
            assert_eq!(names.strip(text), stripped);
        }
        let kept = Names::of(&metadata(&[("username", "\"mojif\"")]), true);
        assert_eq!(kept.strip("/home/mojif/a"), "/home/mojif/a");
    }

    #[test]
    fn flags_lose_addresses_and_always_secrets() {
        let flags = json!({"host": "10.0.0.4", "api_key": "k", "tp_size": 8, "max_total_tokens": 9,
            "dist_init_addr": "n:1", "admin_api_key": null, "model_path": "/home/jo/m", "nested": {"hf_token": "t"}});
        let Value::Object(flags) = flags else { unreachable!() };
        let stripped = Value::Object(Names::default().strip_flags(&flags));
        assert_eq!(
            stripped,
            json!({"host": STRIPPED, "api_key": STRIPPED, "tp_size": 8, "max_total_tokens": 9,
                "dist_init_addr": STRIPPED, "admin_api_key": null, "model_path": "/home/~/m",
                "nested": {"hf_token": STRIPPED}})
        );
        let Value::Object(more) = json!({"token": "t", "eos_token": "</s>", "store": "redis://me:pw@n:1/0",
            "see": "https://n/a@b", "argv": ["serve", "--api-key", "k", "--port", "1", "--hf-token=t", "--host=n"]})
        else {
            unreachable!()
        };
        assert_eq!(
            Value::Object(Names::default().strip_flags(&more)),
            json!({"token": STRIPPED, "eos_token": "</s>", "store": "redis://[stripped]@n:1/0", "see": "https://n/a@b",
                "argv": ["serve", "--api-key", STRIPPED, "--port", "1", "--hf-token=[stripped]", "--host=[stripped]"]})
        );
        let kept = Names { keep: true, ..Names::default() }.strip_flags(&flags);
        assert_eq!((&kept["host"], &kept["api_key"]), (&json!("10.0.0.4"), &json!(STRIPPED)));
    }
}
