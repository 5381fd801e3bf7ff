//! One event's text, changed as the plan says and nowhere else.

use std::ops::Range;

use scan::object::{self, MemberSpan};
use scan::{strict, string};
use trace::decimal::write_micros;
use trace::{Flags, IdToken, Phase, Row, Trace};

use crate::types::{Action, EventEdit, RepairPlan};

/// Writes the event `row`, whose original text is `text`, to `out`.
pub(crate) fn event(trace: &Trace, plan: &RepairPlan, row: Row, text: &[u8], out: &mut Vec<u8>) {
    let mut clean = Vec::new();
    let text = if trace.flags(row).has(Flags::TEXT) {
        strict::rewrite(text, &mut clean);
        &clean
    } else {
        text
    };
    let edit = plan.edit(row).copied().unwrap_or_default();
    let mut patch = Patch { text, members: object::members(text).collect(), changes: Vec::new() };
    times(trace, plan, row, &edit, &mut patch);
    if let Some(tid) = edit.tid {
        patch.set("tid", tid.to_string());
    } else if let Some(track) = edit.track {
        let tid = match trace.track_info(track).tid {
            IdToken::Text(tid) => quoted(trace.strings.get(tid)),
            // (As the importer reads one that is missing.)
            IdToken::Missing => "0".to_owned(),
            tid => tid.display(&trace.strings),
        };
        patch.set("tid", tid);
    }
    if let Some(id) = edit.flow_id {
        patch.set("id", id.to_string());
    }
    if let Some(id) = edit.bind_id {
        patch.set("bind_id", id.to_string());
    }
    if edit.bind_enclosing {
        patch.set("bp", "\"e\"".to_owned());
    } else if edit.bind_next {
        patch.changes.push(Change::Remove("bp"));
    }
    if edit.action == Action::Instant {
        to_instant(&mut patch);
    }
    if let Some(scope) = edit.scope {
        patch.set("s", format!("\"{scope}\""));
    }
    if edit.thread_times {
        for key in ["dur", "tdur", "tts"] {
            // A number may be too large, too.
            let beyond = key == "dur" && trace.flags(row).has(Flags::DUR_UNREADABLE);
            // (A dur in an odd spelling is spelt plainly.)
            let spelt = key == "dur" && edit.numbers && trace.flags(row).has(Flags::DUR_REJECTED);
            patch.move_bad_to_args(key, beyond, spelt);
        }
    }
    if edit.dur_ns.is_some()
        && let Some(original) = patch.original("dur")
    {
        patch.add_arg("original dur", original);
    }
    if edit.arguments {
        arguments(trace, row, &mut patch);
    }
    if let Some(name) = plan.process_names.get(&row) {
        patch.set_arg("name", quoted(name));
    }
    patch.write(out);
}

/// `ts` and `dur`, where a time base, a clip or a plain spelling asks for it.
fn times(trace: &Trace, plan: &RepairPlan, row: Row, edit: &EventEdit, patch: &mut Patch<'_>) {
    let is_early_metadata = trace.phase(row) == Phase::Metadata && edit.ts_ns.is_some();
    if (trace.flags(row).has(Flags::HAS_TS) && (plan.rewrites_numbers(row) || edit.ts_ns.is_some()))
        || is_early_metadata
    {
        let ts = trace.origin_ns + i128::from(edit.ts_ns.unwrap_or(trace.ts_ns(row)));
        let shifted = match trace.phase(row) {
            // Where times overflow, those of metadata are kept against no origin: they mean nothing.
            Phase::Metadata if trace.origin_ns != 0 => 0,
            _ => plan.base.map_or(ts, |base| base.apply(ts)),
        };
        let decimals = patch.value("ts").map_or(0, decimals);
        patch.set("ts", write_micros(shifted, decimals));
    }
    if let Some(dur) = edit.dur_ns {
        let decimals = patch.value("dur").map_or(0, decimals);
        patch.set("dur", write_micros(i128::from(dur), decimals));
    } else if edit.numbers && trace.flags(row).has(Flags::HAS_DUR) {
        let decimals = patch.value("dur").map_or(0, decimals);
        patch.set("dur", write_micros(i128::from(trace.dur_ns(row)), decimals));
    }
}

/// Digits after the point in a number's text.
fn decimals(number: &[u8]) -> usize {
    let number = number.strip_suffix(b"\"").unwrap_or(number);
    if number.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return 0;
    }
    number.iter().position(|byte| *byte == b'.').map_or(0, |at| number.len() - at - 1)
}

fn to_instant(patch: &mut Patch<'_>) {
    if let Some(original) = patch.original("ph") {
        patch.add_arg("original ph", original);
    }
    patch.set("ph", "\"i\"".to_owned());
    patch.set("s", "\"t\"".to_owned());
    for key in ["dur", "tdur", "tts"] {
        if patch.value(key).is_some() {
            patch.move_to_args(key);
        }
    }
}

/// Arguments that the importer rejects: a counter's are left out if they are no numbers, names of metadata events are
/// quoted, a sort index in quotes loses them, a `bind_id` without a direction goes to the arguments. What cannot be
/// kept under its key is kept as "original KEY".
fn arguments(trace: &Trace, row: Row, patch: &mut Patch<'_>) {
    match trace.phase(row) {
        Phase::Counter => {
            let args = patch.value("args").unwrap_or_default().to_vec();
            let kept = object::members(&args)
                .filter(|member| is_count(&args[member.value.clone()]))
                .map(|member| join(&args[member.key.clone()], &args[member.value]));
            let kept: Vec<String> = kept.collect();
            // Beside the arguments, where the importer does not look.
            if !args.is_empty() {
                patch.set("original args", lossy(&args));
            }
            patch.set("args", format!("{{{}}}", kept.join(",")));
        }
        Phase::Metadata => {
            let args = patch.value("args").unwrap_or_default().to_vec();
            let mut kept = Vec::new();
            for member in object::members(&args) {
                let (key, value) = (&args[member.key.clone()], &args[member.value.clone()]);
                match (key, value.first()) {
                    (b"\"name\"", Some(b'"')) if value == b"\"\"" => {
                        kept.push(join(b"\"original name\"", value));
                    }
                    (b"\"name\"", Some(b'n' | b'{' | b'[')) => {
                        kept.push(join(b"\"original name\"", value));
                    }
                    (b"\"name\"", first) if first != Some(&b'"') => {
                        kept.push(join(key, quoted(&lossy(value)).as_bytes()));
                    }
                    (b"\"sort_index\"", Some(b'"')) => match number_in(value) {
                        Some(number) => kept.push(join(key, number.as_bytes())),
                        None => kept.push(join(b"\"original sort_index\"", value)),
                    },
                    (b"\"sort_index\"", Some(b't' | b'f' | b'n' | b'{' | b'[')) => {
                        kept.push(join(b"\"original sort_index\"", value));
                    }
                    _ => kept.push(join(key, value)),
                }
            }
            patch.set("args", format!("{{{}}}", kept.join(",")));
        }
        _ => patch.move_to_args("bind_id"),
    }
}

/// 2^53.
const MOST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The number that a string holds, as JSON spells it.
fn number_in(value: &[u8]) -> Option<String> {
    let text = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let text = string::unescape(text).trim().to_owned();
    if strict::is_strict(text.as_bytes())
        && trace::decimal::importer_value(text.as_bytes()).is_some()
    {
        return Some(text);
    }
    // (`+7` and `007`: JSON has no such spelling. A place in an order is a whole number, as large as a double tells apart.)
    let number = text.parse::<f64>().ok().filter(|number| number.abs() <= MOST_WHOLE)?;
    (number.trunc() == number).then(|| (number as i64).to_string())
}

fn join(key: &[u8], value: &[u8]) -> String {
    format!("{}:{}", lossy(key), lossy(value))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the importer takes a value for a time: a number, or a string that holds one as JSON spells it.
fn is_time(value: &[u8]) -> bool {
    let text = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let text = text.map_or_else(|| String::from_utf8_lossy(value), string::unescape);
    let starts = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    starts && strict::is_strict(text.as_bytes()) && trace::decimal::is_number(text.as_bytes())
}

/// Whether the importer takes a value for a counter's.
fn is_count(value: &[u8]) -> bool {
    match value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) {
        Some(text) => trace::decimal::is_c_number(string::unescape(text).as_bytes()),
        None => trace::decimal::is_number(value),
    }
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|other: char| matches!(other, '"' | '\\') || other < ' ') {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some(control) => out.push_str(&format!("\\u{:04x}", control as u32)),
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out.push('"');
    out
}

/// Under which key `args` keep a member that is moved there.
fn name_in_args(key: &str) -> &'static str {
    match key {
        "dur" => "original dur",
        "tdur" => "original tdur",
        "tts" => "original tts",
        _ => "original bind_id",
    }
}

/// What is to change in one object.
struct Patch<'a> {
    text: &'a [u8],
    members: Vec<MemberSpan>,
    changes: Vec<Change>,
}

enum Change {
    /// The member's value becomes this text; a member that is missing is added.
    Set(&'static str, String),
    /// Every member of this key goes.
    Remove(&'static str),
    /// The member of this index goes.
    RemoveAt(usize),
    /// `args` gets this member in front.
    AddArg(&'static str, String),
    /// The member of `args` becomes this text.
    SetArg(&'static str, String),
}

impl<'a> Patch<'a> {
    /// The last member called `key`: of duplicates the importer takes the last.
    fn find(&self, key: &str) -> Option<&MemberSpan> {
        self.members.iter().rev().find(|member| self.is_key(member, key))
    }

    fn is_key(&self, member: &MemberSpan, key: &str) -> bool {
        key_is(&self.text[member.key.clone()], key)
    }

    fn value(&self, key: &str) -> Option<&'a [u8]> {
        self.find(key).map(|member| &self.text[member.value.clone()])
    }

    fn original(&self, key: &str) -> Option<String> {
        self.value(key).map(lossy)
    }

    fn set(&mut self, key: &'static str, value: String) {
        self.changes.push(Change::Set(key, value));
    }

    fn add_arg(&mut self, key: &'static str, value: String) {
        self.changes.push(Change::AddArg(key, value));
    }

    fn set_arg(&mut self, key: &'static str, value: String) {
        self.changes.push(Change::SetArg(key, value));
    }

    /// Moves a member into `args`, as "original KEY".
    fn move_to_args(&mut self, key: &'static str) {
        if let Some(value) = self.original(key) {
            self.add_arg(name_in_args(key), value);
            self.changes.push(Change::Remove(key));
        }
    }

    /// Moves what the importer stops at into `args`: of several values of a key, the good ones stay, and so does the last
    /// if it is spelt anew. `all` are moved if the last one is a number out of range.
    fn move_bad_to_args(&mut self, key: &'static str, all: bool, keeps_last: bool) {
        let same = |at: &usize| self.is_key(&self.members[*at], key);
        let mut found: Vec<usize> = (0..self.members.len()).filter(same).collect();
        if keeps_last {
            found.pop();
        }
        found.retain(|at| all || !is_time(&self.text[self.members[*at].value.clone()]));
        if let Some(last) = found.last() {
            let value = lossy(&self.text[self.members[*last].value.clone()]);
            self.add_arg(name_in_args(key), value);
        }
        self.changes.extend(found.into_iter().map(Change::RemoveAt));
    }

    fn write(self, out: &mut Vec<u8>) {
        let only_sets = self
            .changes
            .iter()
            .all(|change| matches!(change, Change::Set(key, _) if self.find(key).is_some()));
        if only_sets { self.splice(out) } else { self.rebuild(out) }
    }

    /// The usual case: a few values are replaced, every other byte stays.
    fn splice(self, out: &mut Vec<u8>) {
        let mut splices: Vec<(Range<usize>, &str)> = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            if let Change::Set(key, value) = change
                && let Some(member) = self.find(key)
            {
                let range = member.value.clone();
                let at = splices.partition_point(|(before, _)| before.start <= range.start);
                splices.insert(at, (range, value));
            }
        }
        let mut at = 0;
        for (range, value) in splices {
            out.extend_from_slice(&self.text[at..range.start]);
            out.extend_from_slice(value.as_bytes());
            at = range.end;
        }
        out.extend_from_slice(&self.text[at..]);
    }

    /// Members are added or removed: the object is put together again from its members' own bytes.
    fn rebuild(self, out: &mut Vec<u8>) {
        let mut members: Vec<(Vec<u8>, Vec<u8>)> = self
            .members
            .iter()
            .enumerate()
            .filter(|(at, member)| {
                !self.changes.iter().any(|change| match change {
                    Change::Remove(key) => self.is_key(member, key),
                    Change::RemoveAt(index) => index == at,
                    _ => false,
                })
            })
            .map(|(_, member)| {
                (self.text[member.key.clone()].to_vec(), self.text[member.value.clone()].to_vec())
            })
            .collect();
        let position = |members: &[(Vec<u8>, Vec<u8>)], key: &str| {
            members.iter().rposition(|(other, _)| key_is(other, key))
        };
        for change in &self.changes {
            match change {
                Change::Remove(_) | Change::RemoveAt(_) => {}
                Change::Set(key, value) => match position(&members, key) {
                    Some(at) => members[at].1 = value.clone().into_bytes(),
                    None => members.push((quoted(key).into_bytes(), value.clone().into_bytes())),
                },
                Change::AddArg(key, value) | Change::SetArg(key, value) => {
                    let replace = matches!(change, Change::SetArg(..));
                    match position(&members, "args") {
                        Some(at) => {
                            members[at].1 = with_member(&members[at].1, key, value, replace)
                        }
                        None => members
                            .push((b"\"args\"".to_vec(), with_member(b"{}", key, value, replace))),
                    }
                }
            }
        }
        out.push(b'{');
        for (index, (key, value)) in members.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(key);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
        }
        out.push(b'}');
    }
}

/// Whether a key, in its quotes, is `key`. Keys are hardly ever escaped, but "d\u0075r" is a dur.
fn key_is(quoted: &[u8], key: &str) -> bool {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    inner == key.as_bytes() || (inner.contains(&b'\\') && string::unescape(inner) == key)
}

/// An `args` object with one more member in front, or with the member of that key replaced; what is no
/// object becomes a member called "args" of one.
fn with_member(args: &[u8], key: &str, value: &str, replace: bool) -> Vec<u8> {
    let mut out = b"{".to_vec();
    out.extend_from_slice(quoted(key).as_bytes());
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
    if args.first() != Some(&b'{') {
        out.extend_from_slice(b",\"args\":");
        out.extend_from_slice(args);
    } else {
        for member in object::members(args) {
            if replace && key_is(&args[member.key.clone()], key) {
                continue;
            }
            out.push(b',');
            out.extend_from_slice(&args[member.key]);
            out.push(b':');
            out.extend_from_slice(&args[member.value]);
        }
    }
    out.push(b'}');
    out
}
