//! Carrying out a plan: the original bytes stream by, and only what the plan names changes.

use std::collections::VecDeque;
use std::io::Write as _;

use scan::strict;
use trace::{Container, Flags, IdToken, Member, Row, Trace};

use crate::patch::{self, quoted};
use crate::splice::{Runner, Step, Steps};
use crate::types::{Action, LaneKind, RepairPlan};

/// Set-aside events are kept in the output up to this many bytes; the rest is only counted.
const ASIDE_MAX: usize = 4 << 20;

/// Splices a plan into the decompressed bytes of the file that the trace was decoded from.
///
/// Sans-I/O: [`Applier::push`] the file in any pieces, then [`Applier::finish`]; output is appended to the
/// given buffer. Any chunking gives the same output.
#[derive(Debug)]
pub struct Applier<'a> {
    runner: Runner,
    work: Work<'a>,
}

/// Where the generation of steps is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Prefix,
    Rows(Row),
    Suffix,
    Done,
}

#[derive(Debug)]
struct Work<'a> {
    trace: &'a Trace,
    plan: &'a RepairPlan,
    stage: Stage,
    /// Gaps are judged one by one, because some are wrong or events leave.
    judged: bool,
    gap: Gap,
    /// Whether an event was written.
    any: bool,
    /// The first document's suffix, when events of another document follow it.
    held: Option<Vec<u8>>,
    aside: Vec<u8>,
    n_aside: u64,
    n_aside_unkept: u64,
}

/// What lies between two events.
#[derive(Debug, Default)]
struct Gap {
    commas: u32,
    junk: bool,
    /// All of it, while it is blanks and commas and short.
    text: Vec<u8>,
    /// Length of the blanks at its end.
    blanks: usize,
}

impl Gap {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.blanks += 1,
                b',' => {
                    self.commas += 1;
                    self.blanks = 0;
                }
                _ => {
                    self.junk = true;
                    self.blanks = 0;
                }
            }
            if self.blanks == 0 && self.junk {
                self.text.clear();
            } else if self.text.len() < 4096 {
                self.text.push(*byte);
            } else {
                self.junk = true;
            }
        }
    }

    fn trailing_blanks(&self) -> &[u8] {
        let text = &self.text;
        let blanks = text.iter().rev().take_while(|byte| **byte != b',').count();
        &text[text.len() - blanks..]
    }

    /// Writes the gap as it should be before an event.
    fn write(&mut self, first: bool, out: &mut Vec<u8>) {
        match (first, self.junk, self.commas) {
            (true, false, 0) | (false, false, 1) => out.extend_from_slice(&self.text),
            (true, ..) => out.extend_from_slice(self.trailing_blanks()),
            (false, ..) => {
                out.push(b',');
                out.extend_from_slice(self.trailing_blanks());
            }
        }
        *self = Self::default();
    }
}

impl<'a> Applier<'a> {
    /// An applier for the file that `trace` was decoded from.
    #[must_use]
    pub fn new(trace: &'a Trace, plan: &'a RepairPlan) -> Self {
        let layout = &trace.layout;
        let aside = plan.edits().values().any(|edit| edit.action == Action::SetAside);
        let identity = plan.is_identity() || layout.array.is_none();
        let queue = VecDeque::from(if identity {
            vec![Step::Copy { until: u64::MAX }]
        } else {
            vec![Step::Drop { until: layout.start }]
        });
        Self {
            runner: Runner::at(0, queue),
            work: Work {
                trace,
                plan,
                stage: if identity { Stage::Done } else { Stage::Prefix },
                judged: aside
                    || layout.gaps_need_rewrite
                    || layout.documents > 1
                    || layout.array.is_some_and(|array| array.close.is_none()),
                gap: Gap::default(),
                any: false,
                held: None,
                aside: Vec::new(),
                n_aside: 0,
                n_aside_unkept: 0,
            },
        }
    }

    /// Handles the next bytes of the decompressed file.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.runner.push(bytes, &mut self.work, out);
    }

    /// The file is over; returns how many events were set aside but not kept in the output for their size.
    pub fn finish(mut self, out: &mut Vec<u8>) -> u64 {
        self.runner.finish(&mut self.work, out);
        match self.work.trace.layout.container {
            Container::Object => self.work.n_aside_unkept,
            // A bare array has no place to keep them.
            Container::Array => self.work.n_aside,
        }
    }
}

impl Work<'_> {
    fn is_touched(&self, row: Row) -> bool {
        let flags = self.trace.flags(row);
        flags.has(Flags::TEXT)
            || (self.plan.base.is_some() && flags.has(Flags::HAS_TS))
            || self.plan.edit(row).is_some()
    }

    fn step_for(&self, row: Row) -> Step {
        let until = self.trace.span(row).end();
        match self.plan.edit(row) {
            Some(edit) if edit.action == Action::SetAside => Step::Aside { row, until },
            _ if self.is_touched(row) => Step::Event { row, until },
            _ => Step::Copy { until },
        }
    }

    /// Copies up to the next event that changes, when every gap is sound.
    fn run(&mut self, from: Row, queue: &mut VecDeque<Step>) {
        let end = self.trace.len() as Row;
        match (from..end).find(|row| self.is_touched(*row)) {
            Some(row) => {
                queue.push_back(Step::Copy { until: self.trace.span(row).start });
                queue.push_back(self.step_for(row));
                self.stage = Stage::Rows(row + 1);
            }
            None => {
                if let Some(last) = end.checked_sub(1) {
                    queue.push_back(Step::Copy { until: self.trace.span(last).end() });
                }
                self.stage = Stage::Suffix;
            }
        }
        self.any = end > 0;
    }

    /// The gap before `row`; true when the first document's suffix lies in it.
    fn gap_before(&mut self, start: u64, queue: &mut VecDeque<Step>) {
        let layout = &self.trace.layout;
        let close = layout.array.and_then(|array| array.close);
        if let (Some(close), Some(end)) = (close, layout.end)
            && start >= end
            && self.held.is_none()
        {
            self.held = Some(Vec::new());
            self.gap.junk = true;
            queue.push_back(Step::Gap { until: close });
            queue.push_back(Step::Hold { until: end });
        }
        queue.push_back(Step::Gap { until: start });
    }

    fn prefix(&mut self, queue: &mut VecDeque<Step>) {
        let layout = &self.trace.layout;
        let Some(array) = layout.array else { return };
        if layout.prefix_needs_rewrite {
            queue.push_back(Step::Insert(match layout.container {
                Container::Object => b"{".to_vec(),
                Container::Array => b"[".to_vec(),
            }));
            // (An array has no members; these are of a document without events before it.)
            if layout.container == Container::Object {
                for member in &layout.before {
                    self.member(member, queue);
                    queue.push_back(Step::Insert(b", ".to_vec()));
                }
                queue.push_back(Step::Insert(b"\"traceEvents\": [".to_vec()));
            }
            queue.push_back(Step::Drop { until: array.open });
        } else {
            self.with_base_time(&layout.before, queue);
            queue.push_back(Step::Copy { until: array.open });
        }
    }

    /// Copies up to and past the base time among `members`, if it is there and changes.
    fn with_base_time(&self, members: &[Member], queue: &mut VecDeque<Step>) {
        let Some((member, value)) = members.iter().find_map(|m| Some((m, self.base_time(m)?)))
        else {
            return;
        };
        queue.push_back(Step::Copy { until: member.value_span.start });
        queue.push_back(Step::Insert(value.into_bytes()));
        queue.push_back(Step::Drop { until: member.value_span.end() });
    }

    /// The new `baseTimeNanoseconds`, when `member` is that and an integer.
    fn base_time(&self, member: &Member) -> Option<String> {
        let base = self.plan.base?;
        if member.key != "baseTimeNanoseconds" {
            return None;
        }
        let old: i128 = member.text.as_deref()?.trim().parse().ok()?;
        Some((old + base.ns).to_string())
    }

    /// A member written anew.
    fn member(&self, member: &Member, queue: &mut VecDeque<Step>) {
        queue.push_back(Step::Insert(
            format!("{}: ", quoted(&member.key).replace('\x7f', "\\u007f")).into_bytes(),
        ));
        queue.push_back(Step::Drop { until: member.value_span.start });
        // The text is at hand unless it is huge; and where a second event array follows the member, its
        // bytes have already gone by.
        match self.base_time(member).or_else(|| member.text.clone()) {
            Some(value) => {
                queue.push_back(Step::Insert(value.into_bytes()));
                queue.push_back(Step::Drop { until: member.value_span.end() });
            }
            None => queue.push_back(Step::Strict { until: member.value_span.end() }),
        }
    }

    /// The suffix, as steps over the bytes from `array.close` to `end`.
    fn suffix_steps(&self, queue: &mut VecDeque<Step>) {
        let layout = &self.trace.layout;
        let close = layout.array.and_then(|array| array.close);
        let object = layout.container == Container::Object;
        match (close, layout.end) {
            (Some(_), Some(end)) if !layout.suffix_needs_rewrite => {
                if object {
                    self.with_base_time(&layout.after, queue);
                    queue.push_back(Step::Copy { until: end - 1 });
                    queue.push_back(Step::Extras);
                }
                queue.push_back(Step::Copy { until: end });
            }
            _ => {
                queue.push_back(Step::Insert(b"]".to_vec()));
                for member in layout.after.iter().filter(|_| object) {
                    queue.push_back(Step::Insert(b", ".to_vec()));
                    self.member(member, queue);
                }
                if object {
                    queue.push_back(Step::Extras);
                    queue.push_back(Step::Insert(b"}".to_vec()));
                }
                queue.push_back(Step::Drop { until: layout.end.unwrap_or(u64::MAX) });
            }
        }
    }

    /// The metadata events of the new lanes.
    fn lane_events(&self, out: &mut Vec<u8>) {
        let mut any = self.any;
        let mut write = |event: std::fmt::Arguments<'_>| {
            out.extend_from_slice(if any { b",\n" } else { b"\n" });
            any = true;
            // (Writing to memory does not fail.)
            let _ = out.write_fmt(event);
        };
        for lane in &self.plan.lanes {
            let place = format!("{}\"tid\": {}", self.pid(lane.process), lane.tid);
            if let Some(name) = &lane.name {
                write(format_args!(
                    "{{\"ph\": \"M\", \"name\": \"thread_name\", {place}, \"ts\": 0, \
                     \"args\": {{\"name\": {}}}}}",
                    quoted(name)
                ));
            }
            if let Some(index) = lane.sort_index.filter(|_| lane.kind != LaneKind::Split) {
                write(format_args!(
                    "{{\"ph\": \"M\", \"name\": \"thread_sort_index\", {place}, \"ts\": 0, \
                     \"args\": {{\"sort_index\": {index}}}}}"
                ));
            }
        }
        for (process, name) in &self.plan.added_process_names {
            write(format_args!(
                "{{\"ph\": \"M\", \"name\": \"process_name\", {}\"ts\": 0, \
                 \"args\": {{\"name\": {}}}}}",
                self.pid(*process),
                quoted(name)
            ));
        }
    }

    fn pid(&self, process: trace::ProcessId) -> String {
        let strings = &self.trace.strings;
        match self.trace.processes.get(process.0 as usize).map(|process| process.pid) {
            None | Some(IdToken::Missing) => String::new(),
            Some(IdToken::Int(pid)) => format!("\"pid\": {pid}, "),
            Some(IdToken::Number(text)) => {
                let mut number = Vec::new();
                strict::rewrite(strings.get(text).as_bytes(), &mut number);
                format!("\"pid\": {}, ", String::from_utf8_lossy(&number))
            }
            Some(IdToken::Text(text)) => format!("\"pid\": {}, ", quoted(strings.get(text))),
        }
    }
}

impl Steps for Work<'_> {
    fn refill(&mut self, queue: &mut VecDeque<Step>, out: &mut Vec<u8>) -> bool {
        match self.stage {
            Stage::Prefix => {
                self.prefix(queue);
                self.stage = Stage::Rows(0);
            }
            Stage::Rows(row) if (row as usize) < self.trace.len() => {
                if self.judged {
                    self.gap_before(self.trace.span(row).start, queue);
                    queue.push_back(match self.step_for(row) {
                        // The gap is written when its event is known to stay.
                        Step::Copy { until } => Step::Event { row, until },
                        step => step,
                    });
                    self.stage = Stage::Rows(row + 1);
                } else {
                    self.run(row, queue);
                }
            }
            Stage::Rows(_) => self.stage = Stage::Suffix,
            Stage::Suffix => {
                let layout = &self.trace.layout;
                self.lane_events(out);
                self.stage = Stage::Done;
                match (self.held.take(), layout.array.and_then(|array| array.close)) {
                    (Some(held), Some(close)) => {
                        // Everything after the last event is left out; the suffix was read long ago.
                        let mut steps = VecDeque::new();
                        self.suffix_steps(&mut steps);
                        let mut runner = Runner::at(close, steps);
                        runner.push(&held, self, out);
                        runner.finish(self, out);
                        queue.push_back(Step::Drop { until: u64::MAX });
                    }
                    (_, Some(close)) => {
                        let blanks = !self.judged;
                        queue.push_back(if blanks {
                            Step::Copy { until: close }
                        } else {
                            Step::Drop { until: close }
                        });
                        self.suffix_steps(queue);
                        let sound = layout.trailing_bytes == 0 && layout.documents <= 1;
                        queue.push_back(if sound && layout.end.is_some() {
                            Step::Copy { until: u64::MAX }
                        } else {
                            Step::Drop { until: u64::MAX }
                        });
                    }
                    (_, None) => {
                        self.suffix_steps(queue);
                        queue.push_back(Step::Drop { until: u64::MAX });
                    }
                }
            }
            Stage::Done => return false,
        }
        true
    }

    fn gap(&mut self, bytes: &[u8]) {
        self.gap.take(bytes);
    }

    fn hold(&mut self, bytes: &[u8]) {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
        }
    }

    fn event(&mut self, row: Row, text: &[u8], out: &mut Vec<u8>) {
        if self.judged {
            self.gap.write(!self.any, out);
        }
        self.any = true;
        if self.is_touched(row) {
            patch::event(self.trace, self.plan, row, text, out);
        } else {
            out.extend_from_slice(text);
        }
    }

    fn aside(&mut self, _row: Row, text: &[u8]) {
        // The gaps around it become one that is to be written anew.
        self.gap.junk = true;
        self.n_aside += 1;
        if self.aside.len() + text.len() > ASIDE_MAX {
            self.n_aside_unkept += 1;
            return;
        }
        if !self.aside.is_empty() {
            self.aside.extend_from_slice(b", ");
        }
        let mut event = Vec::with_capacity(text.len());
        strict::rewrite(text, &mut event);
        for byte in event {
            // In a top-level member, unlike in an event, Perfetto takes this for a control character.
            match byte {
                0x7f => self.aside.extend_from_slice(b"\\u007f"),
                byte => self.aside.push(byte),
            }
        }
    }

    fn extras(&mut self, out: &mut Vec<u8>) {
        let layout = &self.trace.layout;
        let members = || layout.before.iter().chain(&layout.after);
        if let Some(base) = self.plan.base
            && !members().any(|member| member.key == "baseTimeNanoseconds")
        {
            out.extend_from_slice(format!(", \"baseTimeNanoseconds\": {}", base.ns).as_bytes());
        }
        // A file that was repaired before and damaged again keeps the older note beside the new one.
        let mut key = "kinetoscope".to_owned();
        while members().any(|member| member.key == key) {
            key.push('+');
        }
        let rules: Vec<String> =
            self.plan.counts.iter().map(|(rule, n)| format!("\"{}\": {n}", rule.id())).collect();
        let base = self.plan.base.map_or(0, |base| base.ns);
        out.extend_from_slice(
            format!(
                ", {}: {{\"schema\": 1, \"version\": \"{}\", \"subtractedNanoseconds\": {base}, \
                 \"repaired\": {{{}}}, \"nSetAside\": {}, \"setAside\": [",
                quoted(&key),
                env!("CARGO_PKG_VERSION"),
                rules.join(", "),
                self.n_aside,
            )
            .as_bytes(),
        );
        out.extend_from_slice(&self.aside);
        out.extend_from_slice(b"]}");
    }
}
