//! M20: kernels with fewer blocks than the device has multiprocessors, which leave a part of it without work.

use std::collections::BTreeMap;

use catalog::{Category, Platform};
use dialect::rocm;
use report::units::{count, percent, time};
use timeline::device::platform;
use timeline::intervals::{Interval, length, union, without};
use trace::StringId;

use crate::{Confidence, Facts, Finding, Level, Rule};

/// A shorter kernel is limited by its launch, not by its grid.
const LEAST_NS: i64 = 10_000;
/// A grid that leaves fewer of the multiprocessors without a block is often meant so: persistent kernels leave some free.
const LEAST_EMPTY: f64 = 0.25;
/// Of the wall time: the part of it in which multiprocessors have no block, all together.
const LEAST_SHARE: f64 = 0.02;
/// Where the device is busy for less than this share, what its kernels leave free is not what limits it.
const LEAST_BUSY: f64 = 0.3;
/// Kernels that the sentence names.
const NAMED: usize = 2;
/// Letters of a name in the sentence.
const NAME: usize = 48;

#[derive(Default)]
struct Small {
    n: u64,
    blocks: u64,
    spans: Vec<Interval>,
    /// Time in which only such kernels run, this one among them.
    alone_ns: i64,
}

/// Time of kernels by the multiprocessors that have no block of them.
#[derive(Default)]
struct Empty {
    ns: i128,
    unit_ns: i128,
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .devices()
        .filter(|device| device.busy_share() >= LEAST_BUSY)
        .filter_map(|device| {
            let units = facts.properties(device.name)?.n_units?;
            let busy_ns = length(facts.gpu.busy(device.id()));
            let id = facts.gpu.devices.iter().position(|name| name == device.name)?;
            under_filled(facts, id as u32, device.name, units, busy_ns)
        })
        .collect()
}

/// The finding of one device, where such kernels run alone for long enough.
fn under_filled(
    facts: &Facts<'_>,
    id: host::links::DeviceId,
    name: &str,
    units: u64,
    busy_ns: i64,
) -> Option<Finding> {
    let mut small: BTreeMap<StringId, Small> = BTreeMap::new();
    let mut empty = Empty::default();
    let mut spans: Vec<Interval> = Vec::new();
    let mut rest: Vec<Interval> = Vec::new();
    for one in facts.gpu.slices.iter().filter(|one| one.device == id) {
        let blocks = one
            .is_kernel
            .then(|| blocks(facts, one))
            .flatten()
            .filter(|blocks| *blocks > 0 && *blocks as f64 <= (1.0 - LEAST_EMPTY) * units as f64)
            .filter(|_| one.slice.dur_ns() > LEAST_NS && !one.is_communication);
        match blocks {
            Some(blocks) => {
                let sum = small.entry(facts.trace.name(one.slice.row)).or_default();
                sum.n += 1;
                sum.spans.push(one.slice.interval());
                sum.blocks = sum.blocks.max(blocks);
                empty.ns += i128::from(one.slice.dur_ns());
                empty.unit_ns += i128::from(one.slice.dur_ns()) * i128::from(units - blocks);
                spans.push(one.slice.interval());
            }
            None => rest.push(one.slice.interval()),
        }
    }
    // (Where another stream fills the rest of the device, nothing is lost.)
    let rest = union(rest);
    let alone = length(&without(&union(spans), &rest));
    for sum in small.values_mut() {
        sum.alone_ns = length(&without(&union(std::mem::take(&mut sum.spans)), &rest));
    }
    let idle = empty.unit_ns as f64 / (empty.ns.max(1) as f64 * units.max(1) as f64);
    let share = alone as f64 / busy_ns.max(1) as f64;
    let of_wall = alone as f64 / facts.wall_ns() as f64;
    if busy_ns <= 0 || alone == 0 || of_wall * idle < LEAST_SHARE {
        return None;
    }
    let mut rows: Vec<(StringId, Small)> = small.into_iter().collect();
    trace::sort_by(&mut rows, |a, b| b.1.alone_ns.cmp(&a.1.alone_ns));
    let n: u64 = rows.iter().map(|(_, row)| row.n).sum();
    let named: Vec<String> = rows
        .iter()
        .take(NAMED)
        .map(|(id, row)| {
            let name = report::short_name(facts.trace.strings.get(*id), NAME);
            format!("{name} ({} alone, at most {} blocks)", time(row.alone_ns), count(row.blocks))
        })
        .collect();
    let unit = match platform(facts.trace) {
        Platform::Rocm => "compute units",
        _ => "multiprocessors",
    };
    let text = format!(
        "Kernels longer than 10 µs with three blocks or fewer for every four of the {} {unit} run alone for {} ({} of the busy time, {}) and leave {} of the {unit} without a block; most time: {}.",
        count(units),
        time(alone),
        percent(100.0 * share),
        report::units::plural(n, "launch", "launches"),
        percent(100.0 * idle),
        named.join(", ")
    );
    let meaning = meaning(facts, id, &rows);
    Some(
        Finding::fact(Rule::Occupancy, "under_filled", text)
            .level(Level::of_share(of_wall * idle))
            .on(name)
            .confidence(Confidence::Medium)
            .means(meaning)
            .with("triage", "time in which only such kernels run", time(alone)),
    )
}

/// What gives such kernels more blocks.
fn meaning(
    facts: &Facts<'_>,
    id: host::links::DeviceId,
    rows: &[(StringId, Small)],
) -> &'static str {
    let named = || rows.iter().take(NAMED).map(|(name, _)| *name);
    let grids = |name: StringId| {
        let own = facts.gpu.slices.iter().filter(move |one| one.device == id);
        let own = own.filter(move |one| facts.trace.name(one.slice.row) == name);
        own.filter_map(|one| blocks(facts, one))
    };
    let grows = |name: StringId| grids(name).min() < grids(name).max();
    match named().all(|name| is_product(facts, facts.trace.strings.get(name))) {
        // (A batch within one tile of the rows adds no block: where the grid never changes, nothing shows that it would.)
        true if named().any(grows) => {
            "Part of the GPU has no work meanwhile: a larger batch or split-K gives it more blocks."
        }
        true => "Part of the GPU has no work meanwhile: split-K gives it more blocks.",
        false => "",
    }
}

/// Whether a kernel multiplies matrices: the work of others (a reduction over parts, a choice of the largest, a scan) cannot be
/// divided into more blocks.
fn is_product(facts: &Facts<'_>, kernel: &str) -> bool {
    let rows = &facts.triage.merged;
    rows.iter().any(|row| row.kernel_name == kernel && row.category == Category::Gemm)
}

/// Blocks of a kernel's grid, if it is recorded: with the kernel, or on ROCm with the launching call.
fn blocks(facts: &Facts<'_>, one: &host::links::GpuSlice) -> Option<u64> {
    let of = |row| facts.details.launch(row).copied().unwrap_or_default();
    let own = of(one.slice.row);
    let by_call = one.launch.map(|launch| of(launch.row)).unwrap_or_default();
    let call = one.launch.map_or("", |launch| facts.slices.name(&launch));
    let (grid, _) =
        rocm::grid_and_block(own.grid.or(by_call.grid), own.block.or(by_call.block), call);
    grid?.iter().try_fold(1_u64, |all, n| all.checked_mul(u64::from(*n)))
}
