//! Copies: ops that copy, what each `aten::copy_` was for, and copies on the GPU by kind.

mod places;
mod purpose;
mod sections;

use std::collections::BTreeMap;

use serde::Serialize;
use timeline::intervals::{Interval, both, holds, length, length_within, touching, union};
use trace::Details;

use crate::links::{GpuSide, GpuSlice};
use crate::ops::Ops;
use crate::slices::Slices;

use places::{place_of_each, places};
use purpose::{purpose, repeats};

pub use places::CopyPlace;
pub use purpose::Purpose;
pub(crate) use sections::section;

/// Ops that copy, in the order of the table.
pub(crate) const COPY_OPS: [&str; 6] =
    ["aten::copy_", "aten::to", "aten::_to_copy", "aten::contiguous", "aten::clone", CAT];
/// It does more than one copy.
const CAT: &str = "aten::cat";
/// Those that copy only if they must: without a copy inside they do nothing.
const MAY_DO_NOTHING: [&str; 4] = ["aten::to", "aten::_to_copy", "aten::contiguous", "aten::clone"];
/// Ops that read a value or a size from the GPU, and wait for it. `aten::item` and the op inside it are one event.
pub(crate) const READING_OPS: [&str; 5] = [
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::is_nonzero",
    "aten::nonzero",
    "aten::masked_select",
];

/// The outermost op that only makes this `aten::copy_`, or the copy itself: what goes away with it.
#[must_use]
pub fn made_by(slices: &Slices<'_>, copy: usize) -> usize {
    let ops = &slices.ops;
    let copies = |at: &usize| {
        let name = slices.name(&ops.slices[*at]);
        name != CAT && COPY_OPS.contains(&name)
    };
    ops.chain(copy).take_while(copies).last().unwrap_or(copy)
}

/// Whether a GPU slice is a copy (and neither kernel nor fill).
#[must_use]
pub(crate) fn is_copy(slices: &Slices<'_>, one: &GpuSlice) -> bool {
    !one.is_kernel && category(slices, one) == Some(dialect::Records::GpuCopy)
}

fn category(slices: &Slices<'_>, one: &GpuSlice) -> Option<dialect::Records> {
    dialect::known(slices.trace.raw_category_text(one.slice.row))
}

/// Everything about copies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copies {
    /// Ops that copy.
    pub ops: Vec<CopyOp>,
    /// `aten::copy_` by what it was for. One inside another counts in both, with its GPU time.
    #[serde(rename = "copy__diag")]
    pub copy_diag: BTreeMap<Purpose, PurposeSum>,
    /// The same copies by where they are made, most GPU time first. GPU work counts once, for the innermost one around it.
    #[serde(skip)]
    pub copy_places: BTreeMap<Purpose, Vec<CopyPlace>>,
    /// Each of them with GPU work, by the number of the op in [`Slices::ops`].
    #[serde(skip)]
    pub made: Vec<(usize, Purpose)>,
    /// `aten::cat` by how it ran.
    pub cat_diag: BTreeMap<&'static str, u64>,
    /// Copies on the GPU by the name of their slices.
    pub memcpy_kinds: Vec<CopyKind>,
    /// Fills on the GPU by name.
    pub memset: BTreeMap<String, Fills>,
    /// Ops that read from the GPU.
    pub item_family: BTreeMap<&'static str, Reads>,
}

/// All ops of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyOp {
    /// Name.
    pub name: &'static str,
    /// Calls.
    pub count: u64,
    /// Time on the host without those inside an op of the same name, in ns.
    pub total_ns: i64,
    /// Self time on the host.
    pub self_ns: i64,
    /// GPU time.
    pub device_ns: i64,
    /// Calls that launched GPU work.
    pub with_gpu: u64,
    /// Calls that copied nothing; missing where the op always copies.
    pub noop: Option<u64>,
}

/// Copies of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurposeSum {
    /// Ops.
    pub count: u64,
    /// Sum of their durations on the host, in ns.
    pub cpu_ns: i64,
    /// GPU time.
    pub device_ns: i64,
}

/// Copies on the GPU of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopyKind {
    /// Name of the slices.
    pub kind: String,
    /// Slices.
    pub count: u64,
    /// Sum of their bytes.
    pub bytes: i64,
    /// Slices that tell their bytes.
    pub n_bytes: u64,
    /// Sum of durations, in ns.
    pub time_ns: i64,
    /// Time in which no kernel ran on the same device.
    pub exposed_ns: i64,
    /// Slices by the call that launched them; `None` where the file has no call.
    pub launches: BTreeMap<String, u64>,
}

/// Fills of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fills {
    /// Slices.
    pub count: u64,
    /// Sum of durations, in ns.
    pub time_ns: i64,
}

/// Ops of one name that read from the GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// Calls.
    pub count: u64,
    /// Those with a copy on the GPU: only these wait for it.
    pub with_gpu_memcpy: u64,
    /// Sum of durations on the host, in ns.
    pub cpu_total_ns: i64,
    /// The copies by name and call.
    pub memcpy: BTreeMap<String, u64>,
    /// Time on the host of those with a copy, in ns.
    #[serde(skip)]
    pub reading_ns: i64,
    /// When these run.
    #[serde(skip)]
    pub times: Vec<Interval>,
    /// Where those with a copy are made, and how many there: most of them first.
    #[serde(skip)]
    pub places: Vec<(String, u64)>,
    /// Those with a copy that the compiler of `torch.compile` makes, which no later run has. The figures above leave them out.
    #[serde(skip)]
    pub compiling: u64,
}

/// What is known of each op that copies or reads.
struct OpWork<'a> {
    /// By op: its GPU slices, those of ops inside it included; only of ops in the tables above.
    gpu: BTreeMap<usize, Vec<&'a GpuSlice>>,
    /// By `aten::copy_`: its GPU slices without those of an `aten::copy_` inside it.
    own: BTreeMap<usize, Vec<&'a GpuSlice>>,
    /// By op: whether an `aten::copy_` lies in it, or it is one.
    copies: Vec<bool>,
}

impl<'a> OpWork<'a> {
    fn of(slices: &Slices<'_>, gpu: &'a GpuSide) -> Self {
        let nested = &slices.ops;
        let name = |at: usize| slices.name(&nested.slices[at]);
        let wanted = |at: &usize| COPY_OPS.contains(&name(*at)) || READING_OPS.contains(&name(*at));
        let copies = vec![false; nested.slices.len()];
        let mut found = Self { gpu: BTreeMap::new(), own: BTreeMap::new(), copies };
        for one in gpu.linked() {
            let chain = || one.owner.into_iter().flat_map(|owner| nested.chain(owner));
            if let Some(at) = chain().find(|at| name(*at) == COPY_OPS[0]) {
                found.own.entry(at).or_default().push(one);
            }
            let chain = chain();
            for at in chain.filter(wanted) {
                found.gpu.entry(at).or_default().push(one);
            }
        }
        for at in slices.ops_named(COPY_OPS[0]) {
            found.copies[at] = true;
            nested.mark_around(at, &mut found.copies);
        }
        found
    }

    fn of_op(&self, at: usize) -> &[&'a GpuSlice] {
        self.gpu.get(&at).map_or(&[], Vec::as_slice)
    }
}

/// Everything about copies.
#[must_use]
pub fn copies(slices: &Slices<'_>, gpu: &GpuSide, details: &Details, ops: &Ops) -> Copies {
    let work = OpWork::of(slices, gpu);
    let all = &slices.ops.slices;
    let copy_op = |name: &'static str| {
        let row = ops.ops.iter().find(|row| row.name == name)?;
        let own = slices.ops_named(name);
        let noop = own.iter().filter(|at| !work.copies[**at]).count() as u64;
        Some(CopyOp {
            name,
            count: row.count,
            total_ns: row.total_ns,
            self_ns: row.self_ns,
            device_ns: row.device_ns,
            with_gpu: own.iter().filter(|at| !work.of_op(**at).is_empty()).count() as u64,
            noop: MAY_DO_NOTHING.contains(&name).then_some(noop),
        })
    };
    let mut copy_diag: BTreeMap<Purpose, PurposeSum> = BTreeMap::new();
    let mut made: Vec<Made> = Vec::new();
    for at in slices.ops_named(COPY_OPS[0]) {
        let own = work.of_op(at);
        let purpose = purpose(slices, details, &all[at], own);
        let sum = copy_diag.entry(purpose).or_default();
        sum.count += 1;
        sum.cpu_ns += all[at].dur_ns();
        sum.device_ns += own.iter().map(|one| one.slice.dur_ns()).sum::<i64>();
    }
    let beside = Beside::of(slices, gpu);
    for (at, own) in &work.own {
        let device_ns = own.iter().map(|one| one.slice.dur_ns()).sum::<i64>();
        if device_ns > 0 {
            let purpose = purpose(slices, details, &all[*at], own);
            let exposed_ns = own.iter().map(|one| beside.exposed_ns(one)).sum();
            let repeats = purpose == Purpose::Layout && repeats(details, &all[*at]);
            made.push(Made { at: *at, purpose, repeats, device_ns, exposed_ns });
        }
    }
    let mut cat_diag = BTreeMap::new();
    for at in slices.ops_named(COPY_OPS[5]) {
        let own = work.of_op(at);
        let id = if own.is_empty() {
            "no_gpu"
        } else if own.iter().any(|one| slices.name(&one.slice).contains("CatArrayBatchedCopy")) {
            "concat"
        } else if own.iter().any(|one| is_copy(slices, one)) {
            "memcpy_cat"
        } else {
            "other"
        };
        *cat_diag.entry(id).or_default() += 1;
    }
    // (What a capture reads is set-up as well.)
    let compiling = union([slices.compiling(), slices.capturing()].concat());
    let reads = |name: &'static str| {
        let own = slices.ops_named(name);
        (!own.is_empty()).then(|| (name, reads(slices, &work, &compiling, &own)))
    };
    Copies {
        ops: COPY_OPS.into_iter().filter_map(copy_op).collect(),
        copy_diag,
        made: made.iter().map(|one| (one.at, one.purpose)).collect(),
        copy_places: places(slices, made),
        cat_diag,
        memcpy_kinds: kinds(slices, gpu, details),
        memset: fills(slices, gpu),
        item_family: READING_OPS.into_iter().filter_map(reads).collect(),
    }
}

/// A copy with GPU work.
struct Made {
    /// Number of the op.
    at: usize,
    purpose: Purpose,
    /// Whether its source is a view that repeats values.
    repeats: bool,
    device_ns: i64,
    exposed_ns: i64,
}

/// By device: when two streams or more are busy.
struct Beside(Vec<Vec<Interval>>);

impl Beside {
    fn of(slices: &Slices<'_>, gpu: &GpuSide) -> Self {
        let of_device = |device: u32| {
            let stream = |one: &GpuSlice| slices.trace.stream(one.slice.row).map(|stream| stream.0);
            let mut own: Vec<(Option<u16>, Interval)> =
                gpu.on(device).map(|one| (stream(one), one.slice.interval())).collect();
            own.sort_unstable();
            // (Slices of one stream may overlap: they are one busy time.)
            let mut edges: Vec<(i64, i32)> = Vec::new();
            for of_stream in own.chunk_by(|(a, _), (b, _)| a == b) {
                let busy = union(of_stream.iter().map(|(_, times)| *times).collect());
                edges.extend(busy.into_iter().flat_map(|(start, end)| [(start, 1), (end, -1)]));
            }
            edges.sort_unstable();
            let (mut n, mut since, mut several) = (0, 0, Vec::new());
            for (at_ns, step) in edges {
                if n >= 2 && at_ns > since {
                    several.push((since, at_ns));
                }
                (n, since) = (n + step, at_ns);
            }
            union(several)
        };
        Self((0..gpu.devices.len() as u32).map(of_device).collect())
    }

    /// The time of a slice in which no other stream is busy.
    fn exposed_ns(&self, one: &GpuSlice) -> i64 {
        let own = one.slice.interval();
        let several = self.0.get(one.device as usize).map_or(&[][..], Vec::as_slice);
        one.slice.dur_ns().saturating_sub(length_within(several, own))
    }
}

fn reads(slices: &Slices<'_>, work: &OpWork<'_>, compiling: &[Interval], ops: &[usize]) -> Reads {
    let mut found = Reads { count: ops.len() as u64, ..Reads::default() };
    let mut reading = Vec::new();
    for at in ops {
        found.cpu_total_ns += slices.ops.slices[*at].dur_ns();
        let copies = || work.of_op(*at).iter().filter(|one| is_copy(slices, one));
        if copies().next().is_some() {
            found.with_gpu_memcpy += 1;
            if holds(compiling, slices.ops.slices[*at].start_ns) {
                found.compiling += 1;
            } else {
                reading.push(*at);
            }
        }
        for one in copies() {
            let Some(launch) = one.launch else { continue };
            let kind = format!("{} <- {}", slices.name(&one.slice), slices.name(&launch));
            *found.memcpy.entry(kind).or_default() += 1;
        }
    }
    found.times = reading.iter().map(|at| slices.ops.slices[*at].interval()).collect();
    found.reading_ns = found.times.iter().map(|(start, end)| end.saturating_sub(*start)).sum();
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    for (_, place) in place_of_each(slices, reading) {
        *places.entry(place).or_default() += 1;
    }
    found.places = places.into_iter().collect();
    trace::sort_by_key(&mut found.places, |(_, n)| std::cmp::Reverse(*n));
    found
}

fn fills(slices: &Slices<'_>, gpu: &GpuSide) -> BTreeMap<String, Fills> {
    let mut found: BTreeMap<String, Fills> = BTreeMap::new();
    let is_fill = |one: &&GpuSlice| category(slices, one) == Some(dialect::Records::GpuFill);
    for one in gpu.slices.iter().filter(is_fill) {
        let sum = found.entry(slices.name(&one.slice).to_owned()).or_default();
        sum.count += 1;
        sum.time_ns += one.slice.dur_ns();
    }
    found
}

fn kinds(slices: &Slices<'_>, gpu: &GpuSide, details: &Details) -> Vec<CopyKind> {
    let kernels: Vec<Vec<Interval>> = (0..gpu.devices.len() as u32)
        .map(|device| {
            let kernels = gpu.on(device).filter(|one| one.is_kernel);
            union(kernels.map(|one| one.slice.interval()).collect())
        })
        .collect();
    let mut found: BTreeMap<&str, CopyKind> = BTreeMap::new();
    for one in gpu.slices.iter().filter(|one| is_copy(slices, one)) {
        let name = slices.name(&one.slice);
        let kind = found.entry(name).or_default();
        kind.count += 1;
        kind.time_ns += one.slice.dur_ns();
        if let Some(bytes) = details.copied_bytes(one.slice.row) {
            kind.bytes += bytes;
            kind.n_bytes += 1;
        }
        let own = one.slice.interval();
        let kernels = touching(&kernels[one.device as usize], own);
        kind.exposed_ns += one.slice.dur_ns() - length(&both(kernels, &[own]));
        let launch = one.launch.map_or("None", |launch| slices.name(&launch));
        *kind.launches.entry(launch.to_owned()).or_default() += 1;
    }
    found.into_iter().map(|(name, kind)| CopyKind { kind: name.to_owned(), ..kind }).collect()
}
