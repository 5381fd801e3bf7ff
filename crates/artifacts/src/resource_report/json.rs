//! The JSON of the report. Keys of `memory` and `cpu` follow the analyser that the report stands in for (docs/formats.md);
//! times with `_us` are microseconds, those with `_ns` are exact.

use diagnosis::{Action, Diagnosis, Finding, Kind, WallRow};
use host::numbers::Stats;
use ranks::Compared;
use serde::Serialize;
use serde_json::{Value, json};

use super::figures::{CpuFigures, TopOp, TopThread};
use super::sections::{Missing, missing};
use super::{OfTrace, REPORT_SCHEMA, ReportedMemory};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    headline: Option<&'a str>,
    /// `null` where no trace was given.
    cpu: Option<Value>,
    memory: Option<Value>,
    steps: Option<Value>,
    wall: &'a [WallRow],
    /// `null` where no other ranks of its run were given.
    ranks: Option<&'a Compared>,
    diagnosis: &'a [Finding],
    actions: Vec<Value>,
    not_available: Vec<Value>,
}

/// The document, with names as the files have them.
pub(super) fn json(
    known: Option<&OfTrace<'_>>,
    snapshot: Option<&ReportedMemory<'_>>,
) -> Result<Value, serde_json::Error> {
    let mut of_memory = snapshot.map(super::memory::members).transpose()?.unwrap_or_default();
    if let Some(of_trace) = known.and_then(|known| memory(known)) {
        of_memory.insert("of_trace".to_owned(), of_trace);
    }
    if let Some(found) = known.and_then(|known| known.same_run.as_ref()) {
        of_memory.insert("same_run".to_owned(), serde_json::to_value(found)?);
    }
    let of_memory = (!of_memory.is_empty()).then_some(Value::Object(of_memory));
    let diagnosis = known.map(|known| &known.diagnosis);
    let actions = diagnosis.map_or(&[][..], |diagnosis| &diagnosis.actions);
    serde_json::to_value(Document {
        schema: REPORT_SCHEMA,
        headline: diagnosis.and_then(|diagnosis| diagnosis.headline.as_deref()),
        cpu: known.map(|known| cpu(known)),
        memory: of_memory,
        steps: known.and_then(|known| steps(known)),
        wall: diagnosis.map_or(&[], |diagnosis| &diagnosis.wall),
        ranks: known.and_then(|known| known.ranks.as_ref()),
        diagnosis: diagnosis.map_or(&[], |diagnosis| &diagnosis.findings),
        actions: (1..).zip(actions).map(|(rank, action)| action_json(rank, action)).collect(),
        not_available: missing(known, snapshot.is_some())
            .iter()
            .map(
                |Missing { what, reason, how }| json!({"what": what, "reason": reason, "how": how}),
            )
            .collect(),
    })
}

/// The steps on the CPU that the bar is of: of one rank, and without cold ones where these are left out; `None` where there are none.
/// The spread needs two.
fn steps(known: &OfTrace<'_>) -> Option<Value> {
    let Diagnosis { iterations, left_out, .. } = &known.diagnosis;
    let own = iterations.as_ref().filter(|own| own.kind == Kind::ProfilerSteps).map(|own| {
        let told = own.list.iter().filter(|one| left_out.is_empty() || one.cold.is_none());
        Stats::of(told.map(|one| one.dur_ns).collect())
    });
    let steps = own.as_ref().unwrap_or(&known.host.steps.cpu_dur);
    let figures = steps.figures.as_ref()?;
    Some(json!({"n": steps.n, "mean_ns": figures.mean_ns, "std_ns": figures.std_sample_ns}))
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

fn cpu(known: &OfTrace<'_>) -> Value {
    let CpuFigures { n_ops, window, top_ops, top_threads, families } = &known.figures;
    let of_op = |op: &TopOp| {
        let TopOp { name, family, count, self_ns, total_ns } = op;
        let average = if *count > 0 { us(*total_ns) / *count as f64 } else { 0.0 };
        json!({
            "name": name, "family": family, "count": count, "self_ns": self_ns, "total_ns": total_ns,
            "self_us": us(*self_ns), "total_us": us(*total_ns), "avg_us": average,
        })
    };
    let of_thread = |thread: &TopThread| {
        let TopThread { name, pid, tid, self_ns, busy_ns, busy_pct } = thread;
        json!({
            "name": name, "pid": pid, "tid": tid, "self_ns": self_ns, "busy_ns": busy_ns,
            "self_us": us(*self_ns), "busy_us": us(*busy_ns), "busy_pct": busy_pct,
        })
    };
    // By sum of durations, as the analyser has it; the tables rank by self time.
    let dominant = families.iter().max_by_key(|row| row.total_ns).map(|row| row.family);
    let totals: serde_json::Map<String, Value> =
        families.iter().map(|row| (row.family.to_owned(), json!(us(row.total_ns)))).collect();
    let own: serde_json::Map<String, Value> =
        families.iter().map(|row| (row.family.to_owned(), json!(us(row.self_ns)))).collect();
    json!({
        "event_count": n_ops,
        "trace_start_us": window.map(|(start, _)| us(start)),
        "trace_end_us": window.map(|(_, end)| us(end)),
        "trace_window_us": window.map(|(start, end)| us(end.saturating_sub(start))),
        "top_ops": top_ops.iter().map(of_op).collect::<Vec<_>>(),
        "top_threads": top_threads.iter().map(of_thread).collect::<Vec<_>>(),
        "family_totals": totals,
        "family_self_us": own,
        "dominant_family": dominant,
        "dominant_family_by_self": families.first().map(|row| row.family),
    })
}

/// What the trace's own records of memory say; `None` where it has none.
fn memory(known: &OfTrace<'_>) -> Option<Value> {
    let rows = &known.host.memory;
    let of_row = |row: &host::memory::MemoryRow| {
        json!({
            "device_type": row.device_type, "device_id": row.device_id,
            "peak_allocated_bytes": row.peak_total_allocated,
            "peak_reserved_bytes": row.peak_total_reserved,
            "allocations": row.n_alloc, "frees": row.n_free,
            "live_bytes_at_end": row.live_bytes_at_end,
        })
    };
    (!rows.is_empty()).then(|| rows.iter().map(of_row).collect())
}

fn action_json(rank: u32, action: &Action) -> Value {
    json!({
        "rank": rank,
        "rule": action.rule,
        "device": action.device,
        "observation": action.observation,
        "hypothesis": action.hypothesis,
        "first": action.first,
        "action": action.action,
        "expected_impact": action.impact(),
        "bound_ns": action.bound_ns,
        "bound_pct": action.bound_pct,
        "place": action.place,
        "validation_metric": action.check,
        "confidence": action.confidence,
    })
}
