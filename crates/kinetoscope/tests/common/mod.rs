//! What the tests of repair share.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use kinetoscope::{
    Decoded, Decoder, Output, PlanOptions, Proof, RepairPlan, Repairer, plan_repair,
};
use serde_json::Value;

pub fn decode(file: &[u8]) -> Decoded {
    let mut decoder = Decoder::new();
    decoder.push(file).unwrap();
    decoder.finish().unwrap()
}

pub fn plan(file: &[u8]) -> RepairPlan {
    plan_repair(&decode(file).trace, &PlanOptions::default())
}

/// Repairs to plain JSON, reading the file in pieces of `piece` bytes.
pub fn repair_in(file: &[u8], options: &PlanOptions, piece: usize) -> (String, Proof) {
    let decoded = decode(file);
    let plan = plan_repair(&decoded.trace, options);
    let mut repairer = Repairer::new(&decoded, &plan, Output::Json);
    let mut out = Vec::new();
    for piece in file.chunks(piece) {
        repairer.push(piece, &mut out);
    }
    let proof = repairer.finish(&mut out);
    (String::from_utf8(out).unwrap(), proof)
}

pub fn repair(file: &[u8]) -> (String, Proof) {
    repair_in(file, &PlanOptions::default(), usize::MAX)
}

/// A document of these events, written as they are.
pub fn document(events: &[&str]) -> String {
    format!("{{\"traceEvents\": [{}]}}", events.join(", "))
}

/// A slice on pid 5, tid 7.
pub fn slice(name: &str, ts: i64, dur: i64) -> String {
    on(7, name, "kernel", ts, dur)
}

/// A slice on pid 5.
pub fn on(tid: i64, name: &str, category: &str, ts: i64, dur: i64) -> String {
    format!(
        r#"{{"ph": "X", "name": "{name}", "cat": "{category}", "pid": 5, "tid": {tid}, "ts": {ts}, "dur": {dur}}}"#
    )
}

/// The events of a repaired document, parsed by another parser.
pub fn events(json: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(json).unwrap();
    match value {
        Value::Array(events) => events,
        value => value["traceEvents"].as_array().unwrap().clone(),
    }
}

/// The event called `name`.
pub fn named(json: &str, name: &str) -> Value {
    events(json).into_iter().find(|event| event["name"] == name).unwrap()
}

/// The thread names of a repaired document: (tid, name).
pub fn thread_names(json: &str) -> Vec<(i64, String)> {
    events(json)
        .iter()
        .filter(|event| event["ph"] == "M" && event["name"] == "thread_name")
        .map(|event| {
            (event["tid"].as_i64().unwrap(), event["args"]["name"].as_str().unwrap().to_owned())
        })
        .collect()
}
