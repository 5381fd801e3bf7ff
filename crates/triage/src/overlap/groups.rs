//! The kernels of each stage with their times, and which of them get a row.

use catalog::{Category, OverlapClass, is_pageable};

use super::sweep::{Lanes, SliceOverlap};
use super::verdict::{HEADROOM_PCT, HIDDEN_PCT, MOST_ROWS, Verdict, at_least, is_light, weight};
use crate::site::Attribution;
use crate::stages::Stage;
use timeline::gpu::{Extent, Gpu};

/// A stream that does less of a stage's work than this is no second stream, in percent.
const LEAST_STREAM_PCT: i64 = 1;

/// One stage.
pub(super) struct StageSums {
    pub(super) stage: Stage,
    pub(super) total_ns: i64,
    pub(super) busy_ns: i64,
    /// The most streams of a device that do at least a hundredth of its work. (A kernel of 5 µs on a stream of its own
    /// says nothing of what could overlap.)
    pub(super) n_streams: usize,
    /// The most streams that any device uses.
    pub(super) n_used: usize,
}

/// All instances of one name in one stage; of copies of pageable memory, those of one place.
pub(super) struct Group {
    pub(super) stage: Stage,
    pub(super) work: usize,
    pub(super) instances: Vec<u32>,
    pub(super) total_ns: i64,
    pub(super) exclusive_ns: i64,
    pub(super) hidden_ns: i64,
    pub(super) hidden_by_compute_ns: i64,
}

impl Group {
    fn of(gpu: &Gpu<'_>, per_slice: &SliceOverlap, stage_of: &[Stage], instances: &[u32]) -> Self {
        let first = instances[0] as usize;
        let mut group = Self {
            stage: stage_of[first],
            work: gpu.slice(first).work,
            instances: instances.to_vec(),
            total_ns: 0,
            exclusive_ns: 0,
            hidden_ns: 0,
            hidden_by_compute_ns: 0,
        };
        for at in instances.iter().map(|at| *at as usize) {
            for (sum, ns) in [
                (&mut group.total_ns, gpu.slice(at).dur_ns),
                (&mut group.exclusive_ns, per_slice.exclusive_ns[at]),
                (&mut group.hidden_ns, per_slice.hidden_ns[at]),
                (&mut group.hidden_by_compute_ns, per_slice.hidden_by_compute_ns[at]),
            ] {
                *sum = sum.saturating_add(ns);
            }
        }
        group
    }

    fn rank(&self, class: OverlapClass) -> (bool, i128) {
        (class != OverlapClass::Compute, i128::from(self.exclusive_ns) * weight(class))
    }
}

/// The stages that have slices, in the order of tables.
#[inline(never)]
pub(super) fn stages(gpu: &Gpu<'_>, stage_of: &[Stage]) -> Vec<StageSums> {
    let lanes = Lanes::of(gpu.trace);
    let mut busy = vec![vec![Extent::default(); lanes.n_devices]; Stage::EVERY.len()];
    let mut work_ns = vec![vec![0_i64; lanes.device_of.len()]; Stage::EVERY.len()];
    for (at, stage) in stage_of.iter().enumerate() {
        let slice = gpu.slice(at);
        let lane = lanes.of_stream(slice.stream);
        busy[*stage as usize][lanes.device_of[lane]].add(&slice);
        let sum = &mut work_ns[*stage as usize][lane];
        *sum = sum.saturating_add(slice.dur_ns);
    }
    let sums = Stage::EVERY.into_iter().map(|stage| {
        let devices = &busy[stage as usize];
        let sum = |of: fn(&Extent) -> i64| devices.iter().map(of).fold(0, i64::saturating_add);
        let streams = |pct: i64| {
            let mut of_device = vec![0; lanes.n_devices];
            for (device, ns) in lanes.device_of.iter().zip(&work_ns[stage as usize]) {
                let works = *ns > 0 && at_least(*ns, pct, devices[*device].total_ns);
                of_device[*device] += usize::from(works);
            }
            of_device.into_iter().max().unwrap_or(0)
        };
        StageSums {
            stage,
            total_ns: sum(|extent| extent.total_ns),
            busy_ns: sum(|extent| extent.busy_ns),
            n_streams: streams(LEAST_STREAM_PCT),
            n_used: streams(0),
        }
    });
    sums.filter(|stage| stage.total_ns > 0).collect()
}

/// Captures are no time to judge; what no annotation names counts only where it is more than a hundredth.
pub(super) fn is_judged(stage: &StageSums, stages: &[StageSums]) -> bool {
    let all_ns = stages.iter().fold(0_i64, |sum, stage| sum.saturating_add(stage.total_ns));
    match stage.stage {
        Stage::Capture => false,
        Stage::All => at_least(stage.total_ns, 1, all_ns),
        _ => true,
    }
}

/// Instances by stage and name, in the order of the slices. Copies of pageable memory also by the place that makes them: what is to be
/// done about them is done there.
#[inline(never)]
pub(super) fn groups(
    gpu: &Gpu<'_>,
    per_slice: &SliceOverlap,
    stage_of: &[Stage],
    attribution: Option<&Attribution>,
) -> Vec<Group> {
    let mut order: Vec<u32> = (0..gpu.len() as u32).collect();
    let key = |at: u32| (stage_of[at as usize], gpu.slice(at as usize).work);
    trace::sort_numbers(&mut order, &|a, b| key(a).cmp(&key(b)));
    let mut places: Option<Vec<u32>> = None;
    let mut found = Vec::new();
    for instances in order.chunk_by(|a, b| key(*a) == key(*b)) {
        let name = gpu.trace.strings.get(gpu.works[key(instances[0]).1].name);
        match attribution.filter(|_| is_pageable(name)) {
            None => found.push(Group::of(gpu, per_slice, stage_of, instances)),
            Some(attribution) => {
                let places = &*places.get_or_insert_with(|| place_numbers(attribution));
                let place = |at: u32| places[attribution.site_of[at as usize] as usize];
                let mut own = instances.to_vec();
                trace::sort_numbers(&mut own, &|a, b| place(a).cmp(&place(b)));
                let by_place = own.chunk_by(|a, b| place(*a) == place(*b));
                found.extend(by_place.map(|own| Group::of(gpu, per_slice, stage_of, own)));
            }
        }
    }
    found
}

/// By site: the first site with the same place.
fn place_numbers(attribution: &Attribution) -> Vec<u32> {
    let texts: Vec<Option<String>> =
        attribution.sites.iter().map(crate::site::Site::place).collect();
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    let text = |at: u32| &texts[at as usize];
    trace::sort_numbers(&mut order, &|a, b| text(a).cmp(text(b)));
    let mut numbers = vec![0; texts.len()];
    for same in order.chunk_by(|a, b| text(*a) == text(*b)) {
        same.iter().for_each(|at| numbers[*at as usize] = same[0]);
    }
    numbers
}

/// The rows of a stage: each name once. On one stream only what could move to a second one.
#[inline(never)]
pub(super) fn candidates<'a>(
    gpu: &Gpu<'_>,
    of_stage: &[&'a Group],
    one_stream: bool,
) -> Vec<(Verdict, &'a Group)> {
    let category = |group: &Group| gpu.works[group.work].category;
    let class = |group: &Group| category(group).overlap_class();
    let name = |group: &Group| gpu.trace.strings.get(gpu.works[group.work].name);

    let mut headroom: Vec<&Group> = of_stage
        .iter()
        .copied()
        .filter(|group| at_least(group.exclusive_ns, HEADROOM_PCT, group.total_ns))
        .filter(|group| {
            let movable =
                class(group) == OverlapClass::Communication || category(group) == Category::Memcpy;
            movable || !one_stream
        })
        .collect();
    trace::sort_by(&mut headroom, |a, b| {
        b.rank(class(b)).cmp(&a.rank(class(a))).then_with(|| name(a).cmp(name(b)))
    });
    headroom.truncate(MOST_ROWS);
    let mut found: Vec<(Verdict, &Group)> =
        headroom.into_iter().map(|group| (Verdict::Headroom, group)).collect();
    if one_stream {
        return found;
    }

    let is_new = |found: &[(Verdict, &Group)], group: &Group| {
        !found.iter().any(|(_, known)| std::ptr::eq(*known, group))
    };
    let mut hidden: Vec<&Group> = of_stage
        .iter()
        .copied()
        .filter(|group| is_light(class(group)) && is_new(&found, group))
        .filter(|group| at_least(group.hidden_ns, HIDDEN_PCT, group.total_ns))
        .collect();
    // hidden * (1 + hidden by compute / hidden)
    let gain = |group: &Group| group.hidden_ns.saturating_add(group.hidden_by_compute_ns);
    trace::sort_by(&mut hidden, |a, b| gain(b).cmp(&gain(a)).then_with(|| name(a).cmp(name(b))));
    hidden.truncate(MOST_ROWS);
    found.extend(hidden.into_iter().map(|group| (Verdict::LowRoiHidden, group)));

    let mut others: Vec<&Group> =
        of_stage.iter().copied().filter(|group| is_new(&found, group)).collect();
    trace::sort_by(&mut others, |a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| name(a).cmp(name(b)))
    });
    others.truncate(MOST_ROWS);
    found.extend(others.into_iter().map(|group| (Verdict::Observe, group)));
    found
}
