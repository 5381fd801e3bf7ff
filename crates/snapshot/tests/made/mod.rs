//! A run made by hand, whose blocks lie in places of their own.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

pub const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;
const SLOT: i64 = 64 * MIB;

/// Frames, innermost first: file, function, line.
pub type Stack = &'static [(&'static str, &'static str, i64)];

fn frames(stack: Stack) -> Value {
    let frame = |(file, name, line): &(&str, &str, i64)| json!({"filename": file, "name": name, "line": line});
    stack.iter().map(frame).collect()
}

#[derive(Default)]
pub struct Run {
    events: Vec<Value>,
    marks: Vec<Value>,
    /// Slot, MiB, stack of the allocation.
    live: Vec<(i64, i64, Stack)>,
    time: i64,
}

impl Run {
    fn event(&mut self, action: &str, slot: i64, mib: i64, by: Stack) {
        self.time += 10;
        self.events.push(json!({"action": action, "addr": A + slot * SLOT, "size": mib * MIB, "stream": 0, "frames": frames(by), "time_us": self.time}));
    }

    pub fn alloc(&mut self, slot: i64, mib: i64, by: Stack) -> &mut Self {
        self.event("alloc", slot, mib, by);
        self.live.push((slot, mib, by));
        self
    }

    /// In use before the first event.
    pub fn old(&mut self, slot: i64, mib: i64) -> &mut Self {
        self.live.push((slot, mib, &[]));
        self
    }

    pub fn free(&mut self, slot: i64, by: Stack) -> &mut Self {
        let place = self.live.iter().position(|live| live.0 == slot).unwrap();
        let (_, mib, _) = self.live.remove(place);
        self.event("free_requested", slot, mib, by);
        self.event("free_completed", slot, mib, by);
        self
    }

    /// An annotation that begins and ends now, or `before` us ago.
    pub fn mark(&mut self, name: &str, before: i64) -> &mut Self {
        for stage in ["START", "END"] {
            self.time += 1;
            self.marks.push(
                json!({"stage": stage, "name": name, "device": 0, "time_us": self.time - before}),
            );
        }
        self
    }

    /// The report as JSON, and its sentences and tables.
    pub fn report(&self) -> (Value, String) {
        let segments: Vec<Value> = (0..16)
            .map(|slot| {
                let used = self.live.iter().find(|live| live.0 == slot);
                let (size, by) = used.map_or((0, &[][..]), |(_, mib, by)| (mib * MIB, *by));
                let at = A + slot * SLOT;
                let block = |at: i64, size: i64, state: &str, by: Stack| json!({"address": at, "size": size, "requested_size": size, "state": state, "frames": frames(by)});
                let mut blocks = vec![];
                if size > 0 {
                    blocks.push(block(at, size, "active_allocated", by));
                }
                blocks.push(block(at + size, SLOT - size, "inactive", &[]));
                json!({"device": 0, "address": at, "total_size": SLOT, "allocated_size": size, "active_size": size,
                    "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
                    "is_expandable": false, "frames": [], "blocks": blocks})
            })
            .collect();
        let document = json!({"segments": segments, "device_traces": [self.events], "external_annotations": self.marks});
        let mut reader = Reader::new();
        reader.push(document.to_string().as_bytes()).unwrap();
        let report = analyze(&reader.finish().unwrap());
        let text = ::report::document("", &report.sections()).replace('\\', "");
        (serde_json::to_value(report).unwrap(), text)
    }
}

/// The finding of a rule.
pub fn finding(report: &Value, rule: &str) -> Option<Value> {
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["rule"] == rule).cloned()
}
