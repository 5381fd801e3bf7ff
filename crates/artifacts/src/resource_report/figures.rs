//! The CPU figures of a report: ops by self time, threads, families of ops.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::HostReport;
use serde::Serialize;
use timeline::percent;

/// Rows of the two tables.
const TOP: usize = 10;

/// What the CPU did, in short. Times are nanoseconds here; the JSON has microseconds beside them.
pub(super) struct CpuFigures {
    pub(super) n_ops: usize,
    pub(super) window: Option<(i64, i64)>,
    pub(super) top_ops: Vec<TopOp>,
    pub(super) top_threads: Vec<TopThread>,
    /// By self time, the largest first.
    pub(super) families: Vec<FamilyRow>,
}

/// One name of ops.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TopOp {
    pub(super) name: String,
    pub(super) family: &'static str,
    pub(super) count: u64,
    pub(super) self_ns: i64,
    pub(super) total_ns: i64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TopThread {
    pub(super) name: String,
    pub(super) pid: String,
    pub(super) tid: String,
    /// Self time of its ops.
    pub(super) self_ns: i64,
    /// Time covered by ops.
    pub(super) busy_ns: i64,
    pub(super) busy_pct: f64,
}

/// One family of ops.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FamilyRow {
    pub(super) family: &'static str,
    pub(super) count: u64,
    pub(super) self_ns: i64,
    /// Sum of durations: an op inside an op of the same family counts twice.
    pub(super) total_ns: i64,
}

impl CpuFigures {
    pub(super) fn of(host: &HostReport) -> Self {
        let ops = &host.cpu_ops;
        let mut top_ops: Vec<TopOp> = ops
            .ops
            .iter()
            .filter(|op| !op.is_step())
            .map(|op| TopOp {
                name: op.name.clone(),
                family: catalog::op_family(&op.name),
                count: op.count,
                self_ns: op.self_ns,
                total_ns: op.total_ns,
            })
            .collect();
        let mut families: BTreeMap<&'static str, FamilyRow> = BTreeMap::new();
        for op in &top_ops {
            let family = op.family;
            let row = families.entry(family).or_insert(FamilyRow {
                family,
                count: 0,
                self_ns: 0,
                total_ns: 0,
            });
            row.count += op.count;
            row.self_ns = row.self_ns.saturating_add(op.self_ns);
            row.total_ns = row.total_ns.saturating_add(op.total_ns);
        }
        let mut families: Vec<FamilyRow> = families.into_values().collect();
        trace::sort_by_key(&mut families, |row| Reverse(row.self_ns));
        trace::sort_by_key(&mut top_ops, |op| Reverse(op.self_ns));
        top_ops.truncate(TOP);
        let window = ops.window_start_ns.zip(ops.window_end_ns);
        let window_ns = ops.window_ns.unwrap_or(0);
        let of_ops = host.threads.list.iter().filter(|thread| thread.n_ops > 0);
        let mut top_threads: Vec<TopThread> = of_ops
            .map(|thread| TopThread {
                name: thread.name.clone().unwrap_or_default(),
                pid: thread.pid.clone(),
                tid: thread.tid.clone(),
                self_ns: thread.op_self_ns,
                busy_ns: thread.op_busy_ns,
                busy_pct: percent(thread.op_busy_ns, window_ns),
            })
            .collect();
        trace::sort_by_key(&mut top_threads, |thread| Reverse(thread.self_ns));
        top_threads.truncate(TOP);
        Self { n_ops: ops.n, window, top_ops, top_threads, families }
    }
}
