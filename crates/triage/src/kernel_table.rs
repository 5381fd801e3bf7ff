//! The kernel table of triage: kernels by stage, with their time and Python line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use catalog::Category;
use report::units;
use trace::{LaunchConfig, StreamId};

use super::arguments::Arguments;
use super::kernel_row::KernelTableRow;
use super::notes::Note;
use super::site::{Attribution, Confidence, is_convolution};
use super::stages::Stage;
use timeline::gpu::{DecidedBy, Gpu};
use timeline::launches::Launches;
use timeline::median;
use timeline::percent;
use timeline::streams::{names, stream_labels};

/// Places of one kernel that are named in its row.
const MOST_PLACES: usize = 8;

/// What is summed per place.
#[derive(Clone, Copy, Default)]
struct Part {
    ns: i64,
    launches: u64,
}

/// What the rows of a device are made from.
pub(crate) struct Facts<'a> {
    pub gpu: &'a Gpu<'a>,
    pub places: &'a Attribution,
    pub launches: &'a Launches,
    pub arguments: &'a Arguments,
    /// By GPU slice: its time with no other stream running.
    pub exposed_ns: &'a [i64],
    /// By GPU slice: whether its name may be another kernel's; empty where none is.
    pub displaced: &'a [bool],
    /// By GPU slice: whether a cold iteration launched it; `None` where none is cold.
    pub in_cold: Option<&'a [bool]>,
    /// When the first event of the trace begins.
    pub zero_ns: i64,
}

/// The rows, most time first within a stage. Where `stage_of` gives no stage, rows sum all of them.
#[inline(never)]
pub(crate) fn kernel_table(
    facts: &Facts<'_>,
    stage_of: &dyn Fn(usize) -> Option<Stage>,
) -> Vec<KernelTableRow> {
    let Facts { gpu, places, .. } = *facts;
    let mut order: Vec<(Option<Stage>, u32, u32)> = Vec::with_capacity(gpu.len());
    let mut stage_ns: BTreeMap<Option<Stage>, i64> = BTreeMap::new();
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        let stage = stage_of(at);
        order.push((stage, slice.work as u32, at as u32));
        let sum = stage_ns.entry(stage).or_default();
        *sum = sum.saturating_add(slice.dur_ns);
    }
    order.sort_unstable();
    let gpu_ns = stage_ns.values().fold(0_i64, |all, ns| all.saturating_add(*ns));
    let labels = stream_labels(gpu);
    let mut rows: Vec<KernelTableRow> = order
        .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|group| {
            let all_ns = stage_ns.get(&group[0].0).copied().unwrap_or_default();
            let slices = group.iter().map(|(_, _, at)| *at as usize);
            let sums = Sums::of(facts, slices.clone());
            let row = KernelTableRow {
                stage: group[0].0,
                gpu_share_pct: percent(sums.total_ns, gpu_ns),
                share_pct: percent(sums.total_ns, all_ns),
                ..sums.row(facts, group[0].1 as usize, &labels)
            };
            let mut row = how_launched(row, gpu, places, facts.arguments, slices.clone());
            if slices.into_iter().any(|at| facts.displaced.get(at) == Some(&true)) {
                row.notes.push(Note::NamesDisplaced);
            }
            row
        })
        .collect();
    trace::sort_by(&mut rows, |a, b| {
        (a.stage, b.total_ns, &a.kernel_name).cmp(&(b.stage, a.total_ns, &b.kernel_name))
    });
    rows
}

/// The sums of one kernel name in one stage.
#[derive(Default)]
struct Sums {
    durations: Vec<i64>,
    total_ns: i64,
    cold_ns: i64,
    exposed_ns: i64,
    queue_ns: i64,
    n_queued: i64,
    orphans: u64,
    streams: Vec<StreamId>,
    first_ns: i64,
    sites: BTreeMap<u32, Part>,
}

impl Sums {
    #[inline(never)]
    fn of(facts: &Facts<'_>, slices: impl Iterator<Item = usize>) -> Self {
        let Facts { gpu, places, launches, exposed_ns, .. } = *facts;
        let mut sums = Self { first_ns: i64::MAX, ..Self::default() };
        for at in slices {
            let slice = gpu.slice(at);
            sums.durations.push(slice.dur_ns);
            sums.total_ns = sums.total_ns.saturating_add(slice.dur_ns);
            if facts.in_cold.is_some_and(|cold| cold.get(at) == Some(&true)) {
                sums.cold_ns = sums.cold_ns.saturating_add(slice.dur_ns);
            }
            let exposed_ns = exposed_ns.get(at).copied().unwrap_or_default();
            sums.exposed_ns = sums.exposed_ns.saturating_add(exposed_ns);
            sums.first_ns = sums.first_ns.min(slice.start_ns);
            sums.orphans += u64::from(slice.before_window);
            let part = sums.sites.entry(places.site_of[at]).or_default();
            part.ns = part.ns.saturating_add(slice.dur_ns);
            part.launches += 1;
            if let Some(stream) = slice.stream
                && let Err(place) = sums.streams.binary_search(&stream)
            {
                sums.streams.insert(place, stream);
            }
            if let Some(launch) = launches.of_slice(at)
                && launches.is_sure(at)
                && !places.site(at).graph
            {
                let delay = slice.start_ns.saturating_sub(gpu.trace.ts_ns(launch));
                sums.queue_ns = sums.queue_ns.saturating_add(delay);
                sums.n_queued += 1;
            }
        }
        sums
    }

    #[inline(never)]
    fn row(
        mut self,
        facts: &Facts<'_>,
        work: usize,
        labels: &[((bool, i64, String), String)],
    ) -> KernelTableRow {
        let Facts { gpu, places, .. } = *facts;
        let n = self.durations.len();
        let launches = i64::try_from(n).unwrap_or(i64::MAX).max(1);
        let max_ns = self.durations.iter().copied().max().unwrap_or_default();
        let p50_ns = median(&mut self.durations).unwrap_or_default();
        let place = Place::of(&self.sites, places);
        let mut notes = Vec::new();
        if place.graph {
            notes.push(Note::GraphLaunched);
        }
        if self.orphans > 0 {
            notes.push(Note::LaunchedBeforeWindow(self.orphans));
        }
        if gpu.works[work].decided_by == DecidedBy::Op {
            notes.push(Note::CategoryByOp);
        }
        notes.extend(place.forward_op.map(Note::LineOfForwardOp));
        if place.n_locations > 1 {
            notes.push(Note::Locations(place.n_locations as u64));
        }
        let trace = gpu.trace;
        let category = gpu.works[work].category;
        // What would make a linear layer faster does nothing for it.
        if category == Category::Gemm && is_convolution(&place.cpu_op) {
            notes.push(Note::GemmOfConvolution);
        }
        KernelTableRow {
            device: gpu.device().to_owned(),
            kernel_name: trace.strings.get(gpu.works[work].name).to_owned(),
            category,
            family: gpu.works[work].family,
            total_ns: self.total_ns,
            cold_ns: facts.in_cold.map(|_| self.cold_ns),
            launches: n as u64,
            mean_ns: self.total_ns.saturating_add(launches / 2) / launches,
            p50_ns,
            max_ns,
            exposed_ns: self.exposed_ns,
            queue_ns: (self.n_queued > 0).then(|| self.queue_ns / self.n_queued),
            python_location: place.location,
            location_share_pct: percent(place.ns, self.total_ns),
            locations: place.locations,
            modules: place.modules,
            cpu_op: place.cpu_op,
            mapping_confidence: place.confidence,
            streams: names(&self.streams, labels),
            first_seen_ns: self.first_ns.saturating_sub(facts.zero_ns),
            notes,
            // Stage, shares and what arguments tell are added by the caller.
            ..KernelTableRow::default()
        }
    }
}

/// Where most of a kernel's time came from.
#[derive(Default)]
struct Place {
    location: String,
    locations: Vec<String>,
    modules: String,
    cpu_op: String,
    /// The op of the forward pass whose line it is.
    forward_op: Option<String>,
    confidence: Confidence,
    ns: i64,
    graph: bool,
    n_locations: usize,
}

/// What came from one line.
#[derive(Default)]
struct OfLine {
    part: Part,
    /// Of the line's places the one with most time, which may differ in callers and op.
    best: Option<(i64, u32)>,
    /// Time by the modules around it; empty where none are known.
    modules: BTreeMap<String, i64>,
}

impl Place {
    #[inline(never)]
    fn of(sites: &BTreeMap<u32, Part>, places: &Attribution) -> Self {
        let mut by_line: BTreeMap<String, OfLine> = BTreeMap::new();
        let mut place = Self::default();
        let mut total_ns = 0_i64;
        for (index, part) in sites {
            let site = &places.sites[*index as usize];
            place.graph |= site.graph;
            total_ns = total_ns.saturating_add(part.ns);
            let line = site.location.as_ref().map(ToString::to_string).unwrap_or_default();
            let of_line = by_line.entry(line).or_default();
            of_line.part.ns = of_line.part.ns.saturating_add(part.ns);
            of_line.part.launches += part.launches;
            let ns = of_line.modules.entry(site.modules.clone().unwrap_or_default()).or_default();
            *ns = ns.saturating_add(part.ns);
            if of_line.best.is_none_or(|(ns, _)| part.ns > ns) {
                of_line.best = Some((part.ns, *index));
            }
        }
        // A line that is known before none; then by time, then by launches (for kernels that take no time).
        let rank = |(line, of): &(String, OfLine)| {
            (line.is_empty(), Reverse((of.part.ns, of.part.launches)))
        };
        let mut lines: Vec<(String, OfLine)> = by_line.into_iter().collect();
        lines.sort_by_key(rank);
        place.n_locations = lines.iter().filter(|(line, _)| !line.is_empty()).count();
        if place.n_locations > 1 {
            place.locations =
                shares(lines.iter().map(|(line, of)| (line.as_str(), of.part.ns)), total_ns);
        }
        let Some((location, of_line)) = lines.into_iter().next() else { return place };
        let Some((_, index)) = of_line.best else { return place };
        let site = &places.sites[index as usize];
        place.cpu_op = site.cpu_op.clone().or_else(|| site.launch.clone()).unwrap_or_default();
        place.ns = if location.is_empty() { 0 } else { of_line.part.ns };
        place.modules = modules(of_line.modules, total_ns);
        place.forward_op = site.forward_op.clone();
        place.confidence = site.confidence;
        place.location = location;
        place
    }
}

/// Modules that hold all the time of a line; else each with its share of the kernel's.
fn modules(times: BTreeMap<String, i64>, total_ns: i64) -> String {
    let mut times: Vec<(String, i64)> = times.into_iter().collect();
    times.sort_by_key(|(modules, ns)| (Reverse(*ns), modules.clone()));
    match times.as_slice() {
        [(only, _)] => only.clone(),
        _ => {
            let known = times.iter().filter(|(modules, _)| !modules.is_empty());
            shares(known.map(|(modules, ns)| (modules.as_str(), *ns)), total_ns).join("; ")
        }
    }
}

/// Places with their share of a kernel's time; those beyond the first few in one.
fn shares<'a>(places: impl Iterator<Item = (&'a str, i64)>, total_ns: i64) -> Vec<String> {
    let places: Vec<(&str, i64)> = places.collect();
    let share = |ns: i64| units::percent(percent(ns, total_ns));
    let (first, rest) = places.split_at(places.len().min(MOST_PLACES));
    let name = |place: &str| if place.is_empty() { "not recorded" } else { place }.to_owned();
    let mut shown: Vec<String> =
        first.iter().map(|(place, ns)| format!("{} ({})", name(place), share(*ns))).collect();
    if !rest.is_empty() {
        let ns = rest.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        shown.push(format!("{} more ({})", rest.len(), share(ns)));
    }
    shown
}

/// What launches of one kernel have in common: op, inputs, launch config. (Configs and calls by their index.)
type Alike<'a> = (&'a str, Option<u32>, Option<u32>);

#[inline(never)]
fn each_slice(slices: impl Iterator<Item = usize>, each: &mut dyn FnMut(usize)) {
    for at in slices {
        each(at);
    }
}

/// A row with its op, what it was called with and how its kernels were launched: those of the launches with the most time that
/// have all three in common, of equal ones the first.
#[inline(never)]
fn how_launched(
    mut row: KernelTableRow,
    gpu: &Gpu<'_>,
    places: &Attribution,
    arguments: &Arguments,
    slices: impl Iterator<Item = usize> + Clone,
) -> KernelTableRow {
    let mut alike: BTreeMap<Alike<'_>, (Part, usize)> = BTreeMap::new();
    let (mut configs, mut calls) = (BTreeSet::new(), BTreeSet::new());
    // (A function of its own: a browser compiles twice what loops, with all that is around the loop.)
    #[inline(never)]
    fn add<'a>(
        alike: &mut BTreeMap<Alike<'a>, (Part, usize)>,
        key: Alike<'a>,
        at: usize,
        dur_ns: i64,
    ) {
        let (part, _) = alike.entry(key).or_insert((Part::default(), at));
        part.ns = part.ns.saturating_add(dur_ns);
        part.launches += 1;
    }
    each_slice(slices.clone(), &mut |at| {
        let (config, call) = (arguments.config_index(at), arguments.call_index(at));
        configs.extend(config);
        calls.extend(call);
        let site = places.site(at);
        let op = site.cpu_op.as_deref().or(site.launch.as_deref()).unwrap_or_default();
        add(&mut alike, (op, call, config), at, gpu.slice(at).dur_ns);
    });
    let rank = |(part, first): &(Part, usize)| (part.ns, part.launches, Reverse(*first));
    let Some(((op, call, config), (part, first))) =
        alike.into_iter().max_by_key(|(_, found)| rank(found))
    else {
        return row;
    };
    row.cpu_op = op.to_owned();
    row.mapping_confidence = places.site(first).confidence;
    row.group_share_pct = if row.total_ns == 0 { 100.0 } else { percent(part.ns, row.total_ns) };
    if let Some(config) = config.and_then(|config| arguments.configs.get(config as usize)) {
        let LaunchConfig {
            grid,
            block,
            registers,
            shared_bytes,
            occupancy_milli_pct,
            blocks_per_sm_milli,
            warps_per_sm_milli,
        } = *config;
        let thousandths = |milli: u32| f64::from(milli) / 1000.0;
        row.grid = grid;
        row.block = block;
        row.registers = registers.map(u64::from);
        row.shared_bytes = shared_bytes.map(u64::from);
        // (Of some kernels the profiler records 0: it could not compute it.)
        row.occupancy_pct = occupancy_milli_pct.filter(|value| *value > 0).map(thousandths);
        row.blocks_per_sm = blocks_per_sm_milli.map(thousandths);
        row.warps_per_sm = warps_per_sm_milli.map(thousandths);
    }
    row.n_launch_configs = configs.len() as u64;
    if let Some(call) = call.and_then(|call| arguments.calls.get(call as usize)) {
        row.shapes = Some(call.shapes.clone()).filter(|shapes| !shapes.is_empty());
        row.gemm_shape = call.gemm.map(|gemm| gemm.to_string());
    }
    row.n_shapes = calls.len() as u64;
    let captured = slices.filter(|slice| arguments.is_captured(*slice)).count() as u64;
    if captured > 0 {
        row.notes.push(Note::LaunchFromCapture(captured));
    }
    row
}
