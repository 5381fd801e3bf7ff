//! What a memory snapshot adds to the report.

use report::{Cell, Section};
use serde_json::{Map, Value, json};

use super::ReportedMemory;
use super::sections::Figure;

/// Of all reserved bytes: free ones from here on are a high or a medium risk of fragmentation, by the analyser that the report stands
/// in for. Free whole segments count there, too; `split_fragmentation_ratio` leaves them out.
const HIGH: f64 = 0.2;
const MEDIUM: f64 = 0.1;

/// Sums over the devices of a snapshot.
struct Sums {
    devices: Map<String, Value>,
}

impl Sums {
    fn of(memory: &ReportedMemory<'_>) -> Result<Self, serde_json::Error> {
        let report = serde_json::to_value(memory.report)?;
        let devices = report.get("devices").and_then(Value::as_object).cloned();
        Ok(Self { devices: devices.unwrap_or_default() })
    }

    /// The sum of a key of `totals`.
    fn total(&self, key: &str) -> i64 {
        let of = |device: &Value| device.pointer(&format!("/totals/{key}"))?.as_i64();
        self.devices.values().filter_map(of).fold(0_i64, i64::saturating_add)
    }

    fn actions(&self) -> Map<String, Value> {
        let mut counts: Map<String, Value> = Map::new();
        for actions in self.devices.values().filter_map(|device| device.get("actions")?.as_object())
        {
            for (action, n) in actions {
                let before = counts.get(action).and_then(Value::as_u64).unwrap_or(0);
                counts.insert(action.clone(), json!(before + n.as_u64().unwrap_or(0)));
            }
        }
        counts
    }

    fn largest_segments(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        for (device, figures) in &self.devices {
            let rows = figures.get("largest_segments").and_then(Value::as_array);
            for row in rows.into_iter().flatten() {
                let mut row = row.clone();
                if let Some(row) = row.as_object_mut() {
                    row.insert("device".to_owned(), json!(device));
                }
                all.push(row);
            }
        }
        let size = |row: &Value| row.get("total_size").and_then(Value::as_i64).unwrap_or(0);
        trace::sort_by(&mut all, |a, b| size(b).cmp(&size(a)));
        all.truncate(10);
        all
    }

    fn share(&self, key: &str) -> f64 {
        let reserved = self.total("reserved");
        if reserved == 0 { 0.0 } else { self.total(key) as f64 / reserved as f64 }
    }
}

/// The members of `memory` in the JSON.
pub(super) fn members(
    memory: &ReportedMemory<'_>,
) -> Result<Map<String, Value>, serde_json::Error> {
    let sums = Sums::of(memory)?;
    let ratio = sums.share("inactive");
    let risk = match ratio {
        ratio if ratio > HIGH => "HIGH",
        ratio if ratio > MEDIUM => "MEDIUM",
        _ => "LOW",
    };
    let actions = sums.actions();
    let settings = memory
        .settings
        .map(|text| serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::from(text)));
    let document = json!({
        "total_reserved_bytes": sums.total("reserved"),
        "total_allocated_bytes": sums.total("allocated"),
        "total_active_bytes": sums.total("active"),
        "total_inactive_bytes": sums.total("inactive"),
        "requested_bytes": sums.total("requested_active"),
        "releasable_bytes": sums.total("inactive_whole"),
        "split_inactive_bytes": sums.total("inactive_split"),
        "fragmentation_ratio": ratio,
        "fragmentation_risk": risk,
        "split_fragmentation_ratio": sums.share("inactive_split"),
        "num_segments": sums.total("segments"),
        "top_segments": sums.largest_segments(),
        // (No snapshot records retries.)
        "alloc_retries": Value::Null,
        "num_ooms": actions.get("oom").cloned().unwrap_or(json!(0)),
        "action_counts": actions,
        "allocator_settings": settings,
        "findings": memory.report.findings,
    });
    Ok(match document {
        Value::Object(members) => members,
        _ => Map::new(),
    })
}

/// Rows of the summary.
pub(super) fn figures(memory: &ReportedMemory<'_>) -> Vec<Figure> {
    let Ok(sums) = Sums::of(memory) else { return Vec::new() };
    let row = |what: &'static str, key: &str, note: &str| {
        let bytes = u64::try_from(sums.total(key)).unwrap_or(0);
        Figure::new(what, Cell::Bytes(bytes), format!("snapshot, {note}"))
    };
    let count = |what: &'static str, key: &str, note: &str| {
        let n = u64::try_from(sums.total(key)).unwrap_or(0);
        Figure::new(what, Cell::Count(n), format!("snapshot, {note}"))
    };
    vec![
        row(
            "Memory reserved",
            "reserved",
            "all devices: what the allocator reserved from the driver",
        ),
        row("Memory allocated", "allocated", "blocks in use"),
        row("Memory active", "active", "blocks in use, or waiting for a stream"),
        row("Memory free in cache", "inactive", "free blocks of reserved segments"),
        row(
            "Memory free in split segments",
            "inactive_split",
            "free blocks next to used ones: fragmentation",
        ),
        count("Segments", "segments", "all devices"),
    ]
}

/// The tables of the snapshot as one chapter.
pub(super) fn section(memory: &ReportedMemory<'_>) -> Section {
    let mut found = Section::new("memory", "Memory snapshot");
    for section in memory.report.sections() {
        found.intro.extend(section.intro);
        found.drawings.extend(section.drawings);
        found.tables.extend(section.tables);
    }
    found
}
