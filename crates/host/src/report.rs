//! Everything about the host in one value.

use std::collections::BTreeMap;

use serde::Serialize;
use trace::{Details, Flags, Phase, Trace, each_row};

use crate::calls::{self, Calls};
use crate::class::Class;
use crate::copies::{self, Copies, CopyPlace, Purpose};
use crate::custom_ops::{self, CustomOps};
use crate::flops::{self, Flops};
use crate::frames::{self, Frames, Ids};
use crate::gaps::{self, DeviceGaps};
use crate::idle::{self, IdlePlaces};
use crate::key_averages::{self, Average};
use crate::links::GpuSide;
use crate::memory::{self, MemoryRow};
use crate::misaligned::{self, Misaligned};
use crate::modules::{self, Modules};
use crate::ops::{self, Ops};
use crate::rates::{self, Rates};
use crate::slices::Slices;
use crate::steps::{self, Steps};
use crate::threads::{self, Threads};
use crate::traffic::{self, Traffic};
use crate::verdicts::{self, Verdicts};

/// What the host did. Its JSON is that of `kinetoscope cpu --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostReport {
    /// Slices with a readable start.
    pub n_x: usize,
    /// The same by raw category, in lower case.
    pub by_cat: BTreeMap<String, u64>,
    /// Slices with digits below 1 ns, which are cut.
    pub events_with_sub_ns_digits: u64,
    /// GPU slices and their launches.
    pub links: Links,
    /// Ops.
    pub cpu_ops: Ops,
    /// Threads.
    pub threads: Threads,
    /// Frames of Python.
    pub python: Frames,
    /// Steps.
    pub steps: Steps,
    /// Calls of runtimes and drivers.
    pub runtime: Calls,
    /// Gaps by device.
    pub gaps: BTreeMap<String, DeviceGaps>,
    /// Where the launching threads were while each device waited for them.
    pub idle_places: BTreeMap<String, IdlePlaces>,
    /// Floating point operations.
    pub flops: Flops,
    /// Their rates against the peaks of the device.
    pub rates: Rates,
    /// Operations and rates of custom ops, which `flops` and `rates` do not have.
    pub custom_ops: CustomOps,
    /// Bytes of ops that compute little, and what has no figure.
    pub traffic: Traffic,
    /// Matrix products whose rows are no multiple of 16 bytes.
    pub misaligned: Vec<Misaligned>,
    /// Modules.
    pub modules: Modules,
    /// Copies.
    pub copies: Copies,
    /// `aten::copy_` by what it was for and by where it is made, most GPU time first.
    pub copy_places: BTreeMap<Purpose, Vec<CopyPlace>>,
    /// Memory.
    pub memory: Vec<MemoryRow>,
    /// What the rules of the diagnosis read.
    pub verdicts: Verdicts,
    /// The table that PyTorch prints.
    pub key_averages: BTreeMap<String, Average>,
}

/// GPU slices and their launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Links {
    /// GPU slices.
    pub gpu: usize,
    /// Those whose launch is in the file.
    pub linked: usize,
    /// The others.
    pub orphans: usize,
    /// Slices that an op launched.
    pub linked_with_owner_op: usize,
    /// Time of the orphans, in ns.
    pub orphan_ns: i64,
    /// Time of slices with a launch in no op.
    pub no_owner_ns: i64,
    /// Calls with the correlation of an earlier one.
    pub duplicate_correlations_in_runtime: u64,
    /// Calls that make work, without a GPU slice in the file.
    pub runtime_calls_without_gpu_slice: BTreeMap<Class, u64>,
    /// Whether the op that the launching call names (`External id`) is the op around it by time. Traces of PyTorch 1.8 have the
    /// correlation there.
    pub external_id_vs_owner: BTreeMap<&'static str, u64>,
    /// GPU slices with an op around their op that had ended when they were launched (only where ops cross).
    pub gpu_slices_with_ended_ancestor: u64,
}

/// The slices of a trace and its GPU's side: what every figure of the host is made of.
pub struct HostIndex<'a> {
    /// The slices of the host.
    pub slices: Slices<'a>,
    /// GPU slices and their launches.
    pub gpu: GpuSide,
}

impl<'a> HostIndex<'a> {
    /// The index of a trace.
    #[must_use]
    pub fn of(trace: &'a Trace) -> Self {
        let slices = Slices::of(trace);
        let gpu = GpuSide::of(&slices);
        Self { slices, gpu }
    }
}

/// Whether an op's strides and concrete inputs are needed: by a formula, to count bytes, or to tell what a copy was for.
#[must_use]
pub fn wants_inputs(op: &str) -> bool {
    flops::has_formula(op)
        || custom_ops::has_row(op)
        || traffic::has_rule(op)
        || op == copies::COPY_OPS[0]
}

/// Analyses the host. `details` are best read with [`crate::wants_inputs`]: without them floating point operations, memory and
/// names of threads are missing.
#[inline(never)]
#[must_use]
pub fn host(index: &HostIndex<'_>, details: &Details) -> HostReport {
    let HostIndex { slices, gpu } = index;
    let trace = slices.trace;
    let ids = Ids::of(slices);
    let own = slices.ops.self_ns();
    let cpu_ops = ops::ops(slices, gpu, &own);
    let of_each = ops::device_of_each(&slices.ops, gpu);
    let counted = flops::of_each(slices, details);
    let mut sub_ns = 0;
    each_row(trace, |row| {
        let flags = trace.flags(row);
        let counts = trace.phase(row) == Phase::Complete && flags.has(Flags::HAS_TS);
        sub_ns += u64::from(counts && flags.has(Flags::SUB_NS));
    });
    let mut copies = copies::copies(slices, gpu, details, &cpu_ops);
    HostReport {
        n_x: slices.all.len(),
        by_cat: threads::by_category(slices),
        events_with_sub_ns_digits: sub_ns,
        links: links(slices, gpu),
        threads: threads::threads(slices, details, &own),
        python: frames::frames(slices, &ids),
        steps: steps::steps(slices, gpu),
        runtime: calls::calls(slices, gpu),
        gaps: gaps::gaps(slices, gpu),
        idle_places: idle::idle_places(slices, gpu, None),
        flops: flops::flops(slices, details, &counted, &of_each),
        rates: rates::rates(slices, gpu, details, &counted, &of_each),
        custom_ops: custom_ops::custom_ops(slices, details, &of_each),
        misaligned: misaligned::misaligned(slices, gpu, details, &counted, &of_each),
        traffic: traffic::traffic(slices, gpu, details, &counted, &of_each),
        modules: modules::modules(slices, gpu, &ids),
        copy_places: std::mem::take(&mut copies.copy_places),
        copies,
        memory: memory::memory(trace, details),
        verdicts: verdicts::verdicts(slices, gpu),
        key_averages: key_averages::key_averages(slices, details),
        cpu_ops,
    }
}

fn links(slices: &Slices<'_>, gpu: &GpuSide) -> Links {
    let linked = gpu.linked().count();
    let mut used: Vec<trace::Row> =
        gpu.linked().filter_map(|one| one.launch.map(|launch| launch.row)).collect();
    used.sort_unstable();
    let without = |class: Class| {
        let those = slices.calls.iter().filter(|call| slices.class(call) == class);
        let n = those.filter(|call| used.binary_search(&call.row).is_err()).count();
        (class, n as u64)
    };
    let nested = &slices.ops;
    let ended = gpu.linked().filter(|one| {
        let Some((launch, owner)) = one.launch.zip(one.owner) else { return false };
        nested.chain(owner).any(|at| nested.slices[at].end_ns <= launch.start_ns)
    });
    let orphans = gpu.slices.iter().filter(|one| one.launch.is_none());
    let no_owner = gpu.linked().filter(|one| one.owner.is_none());
    let mut correlations: Vec<i64> = slices
        .calls
        .iter()
        .filter_map(|call| slices.trace.link(call.row).filter(|id| *id != 0))
        .collect();
    let n_correlated = correlations.len();
    correlations.sort_unstable();
    correlations.dedup();
    Links {
        duplicate_correlations_in_runtime: (n_correlated - correlations.len()) as u64,
        gpu: gpu.slices.len(),
        linked,
        orphans: gpu.slices.len() - linked,
        linked_with_owner_op: gpu.linked().filter(|one| one.owner.is_some()).count(),
        orphan_ns: orphans.map(|one| one.slice.dur_ns()).sum(),
        no_owner_ns: no_owner.map(|one| one.slice.dur_ns()).sum(),
        runtime_calls_without_gpu_slice: [
            Class::Launch,
            Class::GraphLaunch,
            Class::Memcpy,
            Class::Memset,
        ]
        .map(without)
        .into_iter()
        .collect(),
        external_id_vs_owner: external_ids(slices, gpu),
        gpu_slices_with_ended_ancestor: ended.count() as u64,
    }
}

fn external_ids(slices: &Slices<'_>, gpu: &GpuSide) -> BTreeMap<&'static str, u64> {
    let trace = slices.trace;
    let id = |row: trace::Row| trace.external(row).filter(|id| *id != 0);
    let mut by_id: Vec<(i64, trace::Row)> =
        slices.ops.slices.iter().filter_map(|op| Some((id(op.row)?, op.row))).collect();
    by_id.sort_unstable();
    let mut found = BTreeMap::new();
    for one in gpu.linked() {
        let Some(launch) = one.launch else { continue };
        let named = id(launch.row).and_then(|id| {
            let first = by_id.partition_point(|(other, _)| *other < id);
            by_id.get(first).filter(|(other, _)| *other == id).map(|(_, row)| *row)
        });
        let owner = one.owner.map(|at| slices.ops.slices[at].row);
        let verdict = match (named, owner) {
            (None, None) => "no_external_op_owner_none",
            (None, Some(_)) => "no_external_op_owner_some",
            (Some(named), Some(owner)) if named == owner => "same",
            (Some(_), _) => "differ",
        };
        *found.entry(verdict).or_default() += 1;
    }
    found
}
