//! Small Kineto traces as text.

use std::fmt::Write as _;

use serde_json::Value;

use crate::truth::{Facts, truth};

/// Builds a trace: events in the order they are pushed, one a line, as Kineto writes them.
#[derive(Clone, Debug, Default)]
pub struct Kineto {
    before: Vec<(String, String)>,
    after: Vec<(String, String)>,
    events: String,
    facts: Vec<Facts>,
    n_events: usize,
}

impl Kineto {
    /// A trace without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A top-level member before the events; `json` is its value as JSON text.
    #[must_use]
    pub fn with(mut self, key: &str, json: &str) -> Self {
        self.before.push((key.to_owned(), json.to_owned()));
        self
    }

    /// A top-level member after the events.
    #[must_use]
    pub fn with_after(mut self, key: &str, json: &str) -> Self {
        self.after.push((key.to_owned(), json.to_owned()));
        self
    }

    /// Appends an event.
    pub fn push(&mut self, event: KinetoEvent) {
        self.push_text(&event.text());
        self.facts.push(event.facts);
    }

    /// Appends an event as literal text, which may be invalid. [`Kineto::truth`] does not count it.
    pub fn push_text(&mut self, event: &str) {
        self.events.push_str(if self.n_events == 0 { "\n  " } else { ",\n  " });
        self.events.push_str(event);
        self.n_events += 1;
    }

    /// Number of events so far.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.n_events
    }

    /// The figures of the trace, from what its events were made of (`truth.rs` has the definitions).
    #[must_use]
    pub fn truth(&self) -> Value {
        truth(&self.facts)
    }

    /// The document.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.events.len() + 1024);
        out.push('{');
        for (key, json) in &self.before {
            let _ = write!(out, "\n  {}: {json},", quoted(key));
        }
        out.push_str("\n  \"traceEvents\": [");
        out.push_str(&self.events);
        out.push_str("\n  ]");
        for (key, json) in &self.after {
            let _ = write!(out, ",\n  {}: {json}", quoted(key));
        }
        out.push_str("\n}\n");
        out
    }
}

/// One event: its members in the order they are given. See [`event`].
#[derive(Clone, Debug)]
pub struct KinetoEvent {
    members: String,
    args: String,
    facts: Facts,
}

/// An event of a phase, with a raw category and a name; an empty category is left out.
///
/// ```
/// let kernel = testkit::event("X", "kernel", "gemm").on(0, 7).at_ns(1_500).lasting_ns(2_000);
/// assert_eq!(
///     kernel.arg("stream", 7).text(),
///     r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.500, "dur": 2.000, "args": {"stream": 7}}"#
/// );
/// ```
#[must_use]
pub fn event(ph: &str, cat: &str, name: &str) -> KinetoEvent {
    let mut members = format!("\"ph\": {}", quoted(ph));
    if !cat.is_empty() {
        let _ = write!(members, ", \"cat\": {}", quoted(cat));
    }
    let _ = write!(members, ", \"name\": {}", quoted(name));
    let facts = Facts {
        phase: ph.to_owned(),
        category: cat.to_owned(),
        name: name.to_owned(),
        ..Facts::default()
    };
    KinetoEvent { members, args: String::new(), facts }
}

impl KinetoEvent {
    /// The track: a pid and a tid, numbers or text.
    #[must_use]
    pub fn on(mut self, pid: impl Json, tid: impl Json) -> Self {
        (self.facts.pid, self.facts.tid) = (unquoted(&pid.json()), unquoted(&tid.json()));
        self.member("pid", pid).member("tid", tid)
    }

    /// The start, written in microseconds with three decimals.
    #[must_use]
    pub fn at_ns(mut self, ns: i64) -> Self {
        self.facts.start_ns = Some(ns);
        self.raw("ts", &micros(ns))
    }

    /// The duration, written in microseconds with three decimals.
    #[must_use]
    pub fn lasting_ns(mut self, ns: i64) -> Self {
        self.facts.dur_ns = Some(ns);
        self.raw("dur", &micros(ns))
    }

    /// Any other member.
    #[must_use]
    pub fn member(self, key: &str, value: impl Json) -> Self {
        self.raw(key, &value.json())
    }

    /// Any other member, its value as JSON text.
    #[must_use]
    pub fn raw(mut self, key: &str, json: &str) -> Self {
        let _ = write!(self.members, ", {}: {json}", quoted(key));
        self
    }

    /// An argument.
    #[must_use]
    pub fn arg(mut self, key: &str, value: impl Json) -> Self {
        let json = value.json();
        match key {
            "device" => self.facts.device = Some(unquoted(&json)),
            "stream" => self.facts.stream = Some(unquoted(&json)),
            _ => {}
        }
        self.raw_arg(key, &json)
    }

    /// An argument, its value as JSON text.
    #[must_use]
    pub fn raw_arg(mut self, key: &str, json: &str) -> Self {
        let comma = if self.args.is_empty() { "" } else { ", " };
        let _ = write!(self.args, "{comma}{}: {json}", quoted(key));
        self
    }

    /// The event's JSON text.
    #[must_use]
    pub fn text(&self) -> String {
        if self.args.is_empty() {
            format!("{{{}}}", self.members)
        } else {
            format!("{{{}, \"args\": {{{}}}}}", self.members, self.args)
        }
    }
}

/// Types that can be a value.
pub trait Json {
    /// Its JSON text.
    fn json(&self) -> String;
}

impl Json for &str {
    fn json(&self) -> String {
        quoted(self)
    }
}

impl Json for i64 {
    fn json(&self) -> String {
        self.to_string()
    }
}

impl Json for i32 {
    fn json(&self) -> String {
        self.to_string()
    }
}

fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000)
}

/// An id as the reference prints it: text without its quotes.
fn unquoted(json: &str) -> String {
    json.trim_matches('"').to_owned()
}

/// Text as a JSON string in UTF-8.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => {
                out.push('\\');
                out.push(char);
            }
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_json() {
        let mut trace = Kineto::new().with("schemaVersion", "1").with_after("traceName", "\"t\"");
        trace.push(event("M", "", "process_name").on("p\"q", 0).arg("name", "a\nb"));
        trace.push(event("X", "kernel", "k").on(0, 7).at_ns(-1).lasting_ns(0));
        let value: serde_json::Value = serde_json::from_str(&trace.text()).unwrap();
        assert_eq!(value["traceEvents"][0]["args"]["name"], "a\nb");
        assert_eq!(value["traceEvents"][1]["ts"], -0.001);
        assert_eq!(value["traceName"], "t");
        assert_eq!(trace.n_events(), 2);
    }
}
