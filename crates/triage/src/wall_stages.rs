//! The wall time of each stage: each moment of the window belongs to the stage of the work that runs, or that ends the idle time; that
//! in which the data loader keeps the device waiting to none.

use std::collections::BTreeMap;

use catalog::{Category, RawKind};
use report::{Cell, Column, Row, Table, Unit};
use serde::Serialize;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, both, length, union, without};
use timeline::percent;

use crate::stages::Stage;
use crate::wall_time::{WallPart, WallTimes};
use crate::words;

/// The wall time of a stage on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageWall {
    /// The device's id.
    pub device: String,
    /// The stage.
    pub stage: Stage,
    /// Its wall time, in ns; the stages of a device add up to the window of its bar.
    pub total_ns: i64,
    /// That in percent of the window.
    pub share_pct: f64,
    /// Its parts, in ns, by id of the part; they add up to `total_ns`.
    pub parts: BTreeMap<&'static str, i64>,
}

impl StageWall {
    /// A part of it, in ns.
    #[must_use]
    pub fn part(&self, part: WallPart) -> i64 {
        self.parts.get(part.id()).copied().unwrap_or(0)
    }
}

/// When the stages of a device are, in the order in which they first come; none if all of it is one stage.
#[inline(never)]
pub(crate) fn stage_times(
    gpu: &Gpu<'_>,
    stage_of: &dyn Fn(usize) -> Stage,
    window: &[Interval],
    times: &WallTimes,
) -> Vec<(Stage, Vec<Interval>)> {
    let mut stages = times_of_stages(gpu, stage_of, window);
    if stages.len() < 2 {
        return Vec::new();
    }
    outside(&mut stages, times.part(WallPart::DataLoading));
    trace::sort_by_key(&mut stages, |(_, own)| own.first().copied());
    stages
}

impl WallTimes {
    /// The wall time of the stages, of all of the window or of what of it is in `within`.
    #[must_use]
    pub fn stage_walls(&self, within: Option<&[Interval]>) -> Vec<StageWall> {
        let cut =
            |own: &[Interval]| within.map_or_else(|| own.to_vec(), |within| both(own, within));
        let mut stages: Vec<(Stage, Vec<Interval>)> =
            self.stages.iter().map(|(stage, own)| (*stage, cut(own))).collect();
        stages.retain(|(_, own)| !own.is_empty());
        // (Of one stage the bar says it.)
        if stages.len() < 2 {
            return Vec::new();
        }
        let whole = stages.iter().map(|(_, own)| length(own)).sum();
        let wall = |(stage, own): (Stage, Vec<Interval>)| {
            let mut parts = BTreeMap::new();
            let with_time = |(part, times): &(WallPart, Vec<Interval>)| {
                Some((part.id(), length(&both(times, &own)))).filter(|(_, ns)| *ns > 0)
            };
            parts.extend(self.parts.iter().filter_map(with_time));
            let total_ns = length(&own);
            let share_pct = percent(total_ns, whole);
            StageWall { device: self.device.clone(), stage, total_ns, share_pct, parts }
        };
        stages.into_iter().map(wall).collect()
    }
}

/// Gives these times to no stage: what the data loader keeps waiting is the step, and no stage of it.
fn outside(stages: &mut Vec<(Stage, Vec<Interval>)>, times: &[Interval]) {
    if times.is_empty() {
        return;
    }
    let mut taken = Vec::new();
    for (_, own) in stages.iter_mut().filter(|(stage, _)| *stage != Stage::All) {
        taken.extend(both(own, times));
        *own = without(own, times);
    }
    match stages.iter_mut().find(|(stage, _)| *stage == Stage::All) {
        Some((_, own)) => {
            own.extend(taken);
            *own = union(std::mem::take(own));
        }
        None if !taken.is_empty() => stages.push((Stage::All, union(taken))),
        None => {}
    }
    stages.retain(|(_, own)| !own.is_empty());
}

/// When each stage is. Of slices that run at once, compute has the moment before communication and copies, and of these the one that
/// began first; idle time has the stage of the next.
fn times_of_stages(
    gpu: &Gpu<'_>,
    stage_of: &dyn Fn(usize) -> Stage,
    window: &[Interval],
) -> Vec<(Stage, Vec<Interval>)> {
    let (Some(first), Some(last)) = (window.first(), window.last()) else { return Vec::new() };
    let own = (0..gpu.len()).map(|at| {
        let slice = gpu.slice(at);
        (slice.start_ns, slice.end_ns(), Some(at))
    });
    // (Work of an earlier step is of no stage of these.)
    let earlier = (0..gpu.n_beside()).map(|at| {
        let slice = gpu.slice_beside(at);
        (slice.start_ns, slice.end_ns(), None)
    });
    let mut slices: Vec<(i64, i64, Option<usize>)> = own.chain(earlier).collect();
    trace::sort(&mut slices);
    let is_compute = |at: Option<usize>| {
        at.is_some_and(|at| {
            let work = gpu.work(gpu.slice(at).work);
            work.kind == RawKind::Kernel && work.category != Category::Communication
        })
    };
    let compute = slices.iter().filter(|(.., at)| is_compute(*at)).copied().collect();
    let compute = claimed(compute, stage_of);
    let of_compute = union(compute.iter().flat_map(|(_, times)| times.iter().copied()).collect());
    let mut found: Vec<(Stage, Vec<Interval>)> = compute;
    for (stage, times) in rest(&slices, stage_of, (first.0, last.1)) {
        let times = without(&times, &of_compute);
        match found.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, own)) => {
                own.extend(times);
                *own = union(std::mem::take(own));
            }
            None => found.push((stage, times)),
        }
    }
    for (_, times) in &mut found {
        *times = both(times, window);
    }
    found.retain(|(_, times)| !times.is_empty());
    found
}

/// When slices run, by stage: of those that run at once, the one that began first has the moment.
fn claimed(
    slices: Vec<(i64, i64, Option<usize>)>,
    stage_of: &dyn Fn(usize) -> Stage,
) -> Vec<(Stage, Vec<Interval>)> {
    let mut found: Vec<(Stage, Vec<Interval>)> = Vec::new();
    let mut since = i64::MIN;
    for (start, end, at) in slices {
        let stage = at.map_or(Stage::All, stage_of);
        if end > since.max(start) {
            add(&mut found, stage, (since.max(start), end));
        }
        since = since.max(end);
    }
    found
}

/// Adds a time that follows those that are there.
fn add(found: &mut Vec<(Stage, Vec<Interval>)>, stage: Stage, (start, end): Interval) {
    let at = found.iter().position(|(known, _)| *known == stage).unwrap_or_else(|| {
        found.push((stage, Vec::new()));
        found.len() - 1
    });
    match found[at].1.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ => found[at].1.push((start, end)),
    }
}

/// The whole window by stage, as if no kernel computed.
fn rest(
    slices: &[(i64, i64, Option<usize>)],
    stage_of: &dyn Fn(usize) -> Stage,
    (first, last): Interval,
) -> Vec<(Stage, Vec<Interval>)> {
    let mut found: Vec<(Stage, Vec<Interval>)> = Vec::new();
    let mut since = first;
    let mut last_stage = None;
    for (_, end, at) in slices {
        let stage = at.map_or(Stage::All, stage_of);
        last_stage = Some(stage);
        if *end > since {
            add(&mut found, stage, (since, *end));
            since = *end;
        }
    }
    if let Some(stage) = last_stage.filter(|_| last > since) {
        add(&mut found, stage, (since, last));
    }
    found
}

/// A column with a part of the wall time.
macro_rules! part {
    ($part:ident, $key:literal) => {
        Column {
            key: $key,
            title: WallPart::$part.title(),
            unit: Unit::Time,
            help: WallPart::$part.meaning(),
            cell: |row: &StageWall| match row.part(WallPart::$part) {
                0 => Cell::missing("no such time"),
                ns => Cell::Ns(ns),
            },
        }
    };
}

/// Columns that are left out where no stage has the part.
const PARTS: [&str; 14] = [
    "compute",
    "communication",
    "copies",
    "data_loading",
    "host_compute",
    "launch",
    "start",
    "host_waits",
    "allocation",
    "loading",
    "profiler",
    "between_kernels",
    "queued",
    "unexplained",
];

impl Row for StageWall {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "Device id.",
            cell: |row| row.device.as_str().into(),
        },
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "The stage of the work that runs, or that ends the idle time; waiting for the data loader belongs to none.",
            cell: |row| words::of_stage(Some(row.stage)),
        },
        Column {
            key: "total_ns",
            title: "Wall time",
            unit: Unit::Time,
            help: "Time of the window that belongs to the stage.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "share_pct",
            title: "Share of the window",
            unit: Unit::Percent,
            help: "Wall time in percent of the window of the bar.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        part!(Compute, "compute"),
        part!(Communication, "communication"),
        part!(Copies, "copies"),
        part!(DataLoading, "data_loading"),
        part!(HostCompute, "host_compute"),
        part!(Launch, "launch"),
        part!(Start, "start"),
        part!(HostWaits, "host_waits"),
        part!(Allocation, "allocation"),
        part!(Loading, "loading"),
        part!(Profiler, "profiler"),
        part!(Between, "between_kernels"),
        part!(Queued, "queued"),
        part!(Unexplained, "unexplained"),
    ];
}

/// The table of stages; `None` where no device has several.
#[must_use]
pub fn stage_wall_table(walls: &[StageWall]) -> Option<Table> {
    let first = walls.first()?;
    let table = Table::of("wall_stages", "Wall time by stage", walls).without_missing(&PARTS);
    let one = walls.iter().all(|wall| wall.device == first.device);
    Some(if one { table.without("device") } else { table })
}

#[cfg(test)]
mod tests {
    use catalog::Platform;
    use fixture::{Fixture, kernel};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;

    use super::*;

    #[test]
    fn compute_has_the_moment_before_a_collective_that_began_earlier() {
        let mut fixture = Fixture::default();
        let ring = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        fixture.push(kernel(ring).at(0, 100).on(0, 9));
        fixture.push(kernel("gemm").at(20, 40).on(0, 7));
        fixture.push(kernel("gemm").at(120, 10).on(0, 7));
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, Platform::Cuda, &before, &Options::default());
        let stage_of = |at: usize| if at == 0 { Stage::Forward } else { Stage::Backward };
        let found = times_of_stages(&gpu, &stage_of, &[(0, 130)]);
        let of = |stage: Stage| {
            found.iter().find(|(known, _)| *known == stage).map(|(_, times)| times.clone())
        };
        assert_eq!(of(Stage::Forward), Some(vec![(0, 20), (60, 100)]));
        // With the idle time before its second kernel.
        assert_eq!(of(Stage::Backward), Some(vec![(20, 60), (100, 130)]));
    }
}
